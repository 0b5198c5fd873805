"""The refusals of several ranks, with their reasons: one table for commands and for Python.

A row names an argument of Python, which is also the name under which a command keeps its option. So
a message is the same for both, but for the name (`setting`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.errors import AgreedError
from hetero_bfs.support.messages import setting

Refusals = Mapping[str, tuple[Callable[[Any], bool], str]]
"""By argument: whether several ranks refuse a value, and their alternative."""


def _unless(*values: object) -> Callable[[Any], bool]:
    return lambda given: given not in values


_ON_CPU = "several ranks run programs on the CPU"

ENGINE: Refusals = {
    "selector": (
        lambda given: given in ("daga", "yasui", "zhang") or not isinstance(given, str),
        "daga, yasui, zhang and selectors of your own know no other ranks",
    ),
    "order": (_unless("auto", "degree"), "each rank orders its vertices by degree"),
    "decision_interval": (_unless(1), "ranks decide at each level"),
}
"""Settings of an engine."""

ON_CPU: Refusals = {
    "device": (_unless(None, NO_DEVICE), "on several ranks only breadth-first search uses devices")
}
"""Settings of an engine for all else than breadth-first search."""

GRAPH500: Refusals = {
    "power_log": (_unless(None), "energy is measured of one process"),
    **ENGINE,
}
"""Options of the benchmark and of its engine."""

GRAPH500_SSSP: Refusals = {**ON_CPU, **GRAPH500}

PROGRAMS: Refusals = {
    "mode": (_unless("synchronous"), 'several ranks run programs in mode "synchronous"'),
    "place": (_unless("auto", "cpu"), _ON_CPU),
    "schedule": (lambda names: any(name.startswith("device") for name in names or ()), _ON_CPU),
}
"""Options of a vertex program's run."""


def of_one_process(what: str) -> str:
    return f"a single process must run {what}; start without mpirun"


def refuse(rows: Refusals, given: Mapping[str, Any]) -> None:
    """Raise `AgreedError` for an argument that several ranks refuse; all ranks have the same."""
    for name, (refuses, why) in rows.items():
        if name in given and refuses(given[name]):
            raise AgreedError(
                f"{setting(name)} needs a single process: {why}; start without mpirun"
            )
