"""Damaged graph files that are read: no kernel accesses memory out of bounds, none races.

The graphs are searched under oclgrind, an OpenCL device that checks each access. It interprets
kernels, which takes some seconds a graph. The files are those of the campaign `files` with the
same seed and number. Small constants let small graphs reach all parts of the kernels. Graphs with
even numbers are searched by a launch for each step. Those with odd ones are searched by one launch
where there is such a kernel. oclgrind does not know its barrier of all work-groups, so data races
are not counted there.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyopencl

import hetero_bfs as hb
from hetero_bfs.algorithms.colouring import device as device_colouring
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.components import device as device_components
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.pagerank import device as device_pagerank
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
from hetero_bfs.algorithms.pagerank.host import check_settings
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.sssp import device as device_search
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.device import DeviceSearch
from hetero_bfs.devices.machine import DeviceInfo, Tuning
from hetero_bfs.devices.opencl import driver, opencl_device
from hetero_bfs.devices.opencl.device_run import DeviceRun
from hetero_bfs.devices.opencl.driver import choose_device, list_devices
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import DeviceError, GraphError, GraphFileError, SplitError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device as device_programs
from hetero_bfs.programs.device_forms import OneLaunch
from tests.fuzz import files
from tests.fuzz.campaign import Attempt, Campaign

sys.path.append(str(Path(__file__).parents[1] / "support"))
from sample_programs import Labels
from under_oclgrind import OCLGRIND, ONE_LAUNCH, parse

_OPTIONS = (
    *("--max-errors", "1000000", "--compute-units", "2", "--num-threads", "2", "--data-races"),
    *ONE_LAUNCH,
)
_MOST_VERTICES = 300  # a damaged size may be large
_SCHEDULES = ("TG", "BG", "BGC", "TG,BG,TC,BGC,TG")
_SMALL: dict[Any, dict[str, int]] = {
    DeviceRun: {"GROUP": 32, "GROUPS_PER_UNIT": 1},
    device_search: {"_CHUNK_EDGES": 8, "_PULL_EDGES": 4},
    device_components: {"_HEAVY_EDGES": 8},
    device_colouring: {"_HEAVY_EDGES": 40},
    device_pagerank: {"_LANES": 4, "_LOW_EDGES": 3, "_MEDIUM_EDGES": 8},
    device_programs: {
        "_HEAVY_EDGES": 6, "_FIRST_BATCH": 2, "_LONG_PULL_OF_GPU": 6, "_PIECE_EDGES": 4,
    },
}  # fmt: skip


class _Case(NamedTuple):
    graph: EdgeList | CSRGraph
    device: DeviceInfo
    source: int
    one_launch: bool

    def opened(self, kind: Any) -> Any:
        """Return the runs of a kind, which have the device."""
        runs = kind(build_search_graph(self.graph), 1, self.device)
        if runs.device is None:
            raise RuntimeError(f"no device: {runs.notes}")
        return runs


def _levels(case: _Case) -> None:
    tuning = Tuning(
        group_size=32, vertices_per_item=4, edges_per_item=1, single_group_edges=64,
        cooperative_groups=2, groups_per_unit=1, one_launch=case.one_launch,
    )  # fmt: skip
    chosen = mock.patch("hetero_bfs.options.choose_devices", return_value=[case.device])
    for max_alloc in (None, 64):
        with contextlib.suppress(SplitError), chosen:  # a long list is larger than a part
            options = {"tuning": tuning, "max_alloc_bytes": max_alloc}
            with hb.Engine(case.graph, "fixed:TG", **options) as engine:
                _search(engine, case)


def _search(engine: hb.Engine, case: _Case) -> None:
    if engine.device_info is None:
        raise RuntimeError(f"no device: {engine.notes}")
    for schedule in _SCHEDULES:
        engine.set_selector(f"fixed:{schedule}")
        result = engine.bfs(case.source)
        hb.validate(case.graph, case.source, result.parent, result.level).raise_if_invalid()


def _paths(case: _Case) -> None:
    try:
        found = case.opened(PathSearches).run(case.source, place="device")
    except GraphError:  # weights below 0
        return
    hb.check_paths(case.graph, case.source, found.distance, found.parent).raise_if_invalid()


def _components(case: _Case) -> None:
    found = case.opened(ComponentRuns).run(place="device")
    hb.check_components(case.graph, found.component).raise_if_invalid()


def _colours(case: _Case) -> None:
    found = case.opened(Colourings).run(place="device")
    hb.check_colouring(case.graph, found.colour).raise_if_invalid()


def _ranks(case: _Case) -> None:
    settings = check_settings(case.graph.num_vertices, 0.5, 1e-6, 100)
    found = case.opened(PageRanks).run(settings, place="device")
    hb.check_pagerank(case.graph, found.rank, 0.5, 1e-6).raise_if_invalid()


def _program(case: _Case) -> None:
    runs = case.opened(ProgramRuns)
    way = ["device push", "device pull"]
    found = runs.run(Labels(), {}, hb.RunOptions(schedule=way)).state["label"]
    right = runs.run(Labels(), {}, hb.RunOptions(schedule=["push"])).state["label"]
    if not np.array_equal(found, right):
        raise RuntimeError(f"labels {found[:20]}, expected {right[:20]}")


_RUNS = (_levels, _paths, _components, _colours, _ranks, _program)


# oclgrind


def _start_under_oclgrind() -> None:
    """Start this command again under oclgrind, unless it is."""
    if any(info.name.startswith("Oclgrind") for info in list_devices()):
        return
    if OCLGRIND is None:
        raise FileNotFoundError("this campaign needs oclgrind; apt-get install oclgrind")
    os.environ["PYOPENCL_NO_CACHE"] = "1"  # it does not tell oclgrind's binaries from others
    command = [OCLGRIND, *_OPTIONS, sys.executable, "-m", "tests.fuzz", *sys.argv[1:]]
    sys.stdout.flush()
    os.execv(OCLGRIND, command)


@cache
def _prepared() -> DeviceInfo:
    """Return the device; contexts and programs are made once, since compiling takes most time."""
    for owner, constants in _SMALL.items():
        for name, value in constants.items():
            setattr(owner, name, value)
    vars(sys.modules["hetero_bfs.devices.opencl.device_run"])["_PROBE_PATIENCE"] = 1 << 22
    make_context, build = pyopencl.Context, OpenCLDevice.build
    context = cache(lambda number: make_context([driver.platform_devices()[number]]))
    programs: dict[Any, Any] = {}

    def build_once(device: OpenCLDevice, options: Any, header: str, sources: Any) -> Any:
        texts = map(opencl_device.kernel_source, sources)
        key = (device.context.int_ptr, *options, header, *texts)
        if key not in programs:
            programs[key] = build(device, options, header, sources)
        return programs[key]

    info = replace(choose_device("Oclgrind"), type="GPU")
    pyopencl.Context = lambda devices: context(info.index)
    OpenCLDevice.build = build_once
    return info


@contextlib.contextmanager
def _in_steps(one_launch: bool) -> Iterator[None]:
    """Let no algorithm use its kernel of one launch, unless it shall."""
    if one_launch:
        yield
        return
    not_now = mock.Mock(side_effect=DeviceError("not now"))
    with (
        mock.patch.object(DeviceSearch, "_find_one_launch", return_value=None),
        mock.patch.object(OneLaunch, "__init__", not_now),
    ):
        yield


def _said_of(run: Callable[[], None]) -> str:
    """Return what is written to standard error meanwhile, by whatever code."""
    with tempfile.TemporaryFile() as heard:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(heard.fileno(), 2)
        try:
            run()
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
        heard.seek(0)
        return heard.read().decode(errors="replace")


def search_problem(graph: EdgeList | CSRGraph, chance: Random, one_launch: bool) -> str | None:
    """Search on the device; return what is wrong with it, or with an access to memory."""
    case = _Case(graph, _prepared(), chance.randrange(graph.num_vertices), one_launch)
    for run in _RUNS:
        try:
            with _in_steps(one_launch):
                said = _said_of(lambda run=run: run(case))
        except Exception:
            return traceback.format_exc()
        for report in parse(said):
            if not (one_launch and "data race" in report.title):
                return f"{run.__name__}: {report.text}"
    return None


def _trouble(path: Path, form: str, directed: bool, one_launch: bool) -> tuple[str | None, int]:
    """Return what went wrong with a file, None if nothing did; and 1 if it was searched, else 0."""
    with contextlib.suppress(GraphFileError):
        graph = io.read(path, directed, form in files.WEIGHTED)
        if graph.num_vertices <= _MOST_VERTICES and build_search_graph(graph).num_searched:
            return search_problem(graph, Random(graph.num_vertices), one_launch), 1
    return None, 0


def attempt(form: str, number: int, seed: int, folder: Path) -> Attempt:
    """Search in the graph of a damaged file, if it is read; whether it is right tells `files`."""
    _start_under_oclgrind()
    chance = Random(f"{seed} {form} {number}")
    suffix, raw = files.make(form, chance)
    path = folder / f"{form}-{seed}-{number}{suffix}"
    path.write_bytes(raw)
    wrong, tried = _trouble(path, form, chance.random() < 0.5, number % 2 == 1)
    return Attempt(path, wrong, tried)


def replay(form: str, path: Path) -> list[str]:
    """Search in a kept file's graph, undirected and directed, in both ways."""
    _start_under_oclgrind()
    ways = [(directed, one_launch) for directed in (False, True) for one_launch in (False, True)]
    found = [_trouble(path, form, *way)[0] for way in ways]
    return [wrong for wrong in found if wrong is not None]


CAMPAIGN = Campaign("device-files", files.FORMATS, attempt, replay)
