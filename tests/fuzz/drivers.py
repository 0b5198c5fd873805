"""OpenCL drivers that fail at the n-th call: results are right, or an error is one line.

A driver fails once, or from some call on for good. Then it is well again, and so must be what runs
next.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np

import hetero_bfs as hb
from hetero_bfs.devices.opencl import built_programs
from hetero_bfs.devices.opencl.driver import list_devices
from hetero_bfs.errors import HeteroBFSError
from tests.fuzz.campaign import campaign_of_faults
from tests.fuzz.failing_driver import DriverFault, draw_fault, failing

sys.path.append(str(Path(__file__).parents[1] / "support"))
from sample_programs import Labels

_RUNS = 3
_LISTS = "hetero_bfs.devices.opencl.driver.list_devices"
_WITH_BUILD_LOG = (
    "BuildProgram",
    "GetProgramInfo",
    "GetProgramBuildInfo",
    "CreateProgramWithSource",
)


@dataclass(frozen=True)
class Fault(DriverFault):
    """How a driver fails, and on what.

    `apart`: devices do not share the host's memory. `memory` then limits theirs, so that edges
    stream.
    """

    apart: bool = False
    memory: int | None = None


@cache
def _graph() -> hb.CSRGraph:
    return hb.CSRGraph.from_edge_source(hb.KroneckerEdges(7, weighted=True))


def _source() -> int:
    return int(np.argmax(_graph().degree()))


def _problem(check: Any) -> str | None:
    return None if check.valid else check.message


def _bfs(engine: hb.Engine) -> str | None:
    found = engine.bfs(_source())
    return _problem(hb.validate(_graph(), _source(), found.parent, found.level))


def _levels(sources: list[int], mask: set[int], limit: int) -> list[int]:
    """Search in plain Python; return levels, -1 where not reached."""
    graph = _graph()
    level = dict.fromkeys(sources, 0)
    waiting = list(sources)
    for v in waiting:
        near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()
        new = [u for u in near if u not in level and u not in mask and level[v] < limit]
        level |= dict.fromkeys(new, level[v] + 1)
        waiting += dict.fromkeys(new)
    return [level.get(v, -1) for v in range(graph.num_vertices)]


def _asked(engine: hb.Engine) -> str | None:
    """Search from two sources with a mask and a limit, then from many sources at once."""
    _, second, *others = np.flatnonzero(engine.bfs(_source()).level == 1).tolist()
    masked, sources = others[::2], [_source(), second]
    found = engine.bfs(sources, depth_limit=2, mask=masked).level.tolist()
    if found != _levels(sources, set(masked), 2):
        return f"levels {found[:20]} with a mask"
    for source, found in zip(sources, engine.bfs_many(sources).level.tolist(), strict=True):
        if found != _levels([source], set(), 99):
            return f"levels {found[:20]} of many"
    return None


def _sssp(engine: hb.Engine) -> str | None:
    found = engine.sssp(_source())
    return _problem(hb.check_paths(_graph(), _source(), found.distance, found.parent))


def _components(engine: hb.Engine) -> str | None:
    return _problem(hb.check_components(_graph(), engine.connected_components().component))


def _colour(engine: hb.Engine) -> str | None:
    return _problem(hb.check_colouring(_graph(), engine.colour().colour))


def _pagerank(engine: hb.Engine) -> str | None:
    return _problem(hb.check_pagerank(_graph(), engine.pagerank().rank))


def _program(engine: hb.Engine) -> str | None:
    found, right = engine.run(Labels()).label, engine.connected_components().component
    return None if found.tolist() == right.tolist() else f"labels {found.tolist()[:20]}"


KINDS: dict[str, Callable[[hb.Engine], str | None]] = {
    "bfs": _bfs, "asked": _asked, "sssp": _sssp, "components": _components, "colour": _colour,
    "pagerank": _pagerank, "program": _program,
}  # fmt: skip
"""What runs; each returns what is wrong with its result, None if nothing is."""


def trouble(kind: str, fault: Fault) -> str | None:
    """Run with the fault, then without; return what went wrong, None if nothing did."""
    with failing(fault):
        wrong = _run(kind, fault)
    if wrong is None:
        after = _run(kind, fault, must_succeed=True)
        wrong = after and f"after the fault: {after}"
    return wrong


def _run(kind: str, fault: Fault, must_succeed: bool = False) -> str | None:
    built_programs.forget()  # so that calls which build may fail
    selector = "fixed:TG,BG,TC,TG" if kind in ("bfs", "asked") else "auto"
    options = {"selector": selector, "correction": False, "device_memory_bytes": fault.memory}
    try:
        with _devices_as(fault), hb.Engine(_graph(), **options) as engine:
            for _ in range(_RUNS):
                wrong = KINDS[kind](engine)
                if wrong is not None:
                    return wrong
    except HeteroBFSError as error:
        logs = fault.function in _WITH_BUILD_LOG
        if must_succeed or ("\n" in str(error) and not logs):
            return f"{type(error).__name__}: {error}"
    except Exception:
        return traceback.format_exc()
    return None


def _devices_as(fault: Fault) -> Any:
    """Let devices pose as those of the fault."""

    def posing() -> list[Any]:
        return [replace(info, unified_memory=False) for info in list_devices()]

    return mock.patch(_LISTS, posing if fault.apart else list_devices)


def _draw(chance: Random) -> Fault:
    apart = chance.random() < 0.5
    memory = chance.choice((None, 12_000)) if apart else None
    return Fault(**asdict(draw_fault(chance)), apart=apart, memory=memory)


CAMPAIGN = campaign_of_faults("drivers", KINDS, Fault, _draw, trouble)
