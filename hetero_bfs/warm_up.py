"""`hetero-bfs warm-up`: compiles the code of searches beforehand.

Each job calls public functions on tiny graphs in a process of its own, whose compiled code is
stored for later processes. The jobs of devices are their self-tests, which build all OpenCL
programs. Where something is needed before it is compiled, support/cold.py starts this module with
the name of a job.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import hetero_bfs as hb
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.support import private_cache
from hetero_bfs.support.environment import COMPILING_VARIABLE, usable_cores
from hetero_bfs.support.processes import run_main, run_module, say

_SCALE = 10
_ROAD = 100  # vertices
_TIMEOUT_SECONDS = 1200.0
_NICENESS = 10  # of a process in the background
_WEIGHTS = ("int32", "float32", "float64")

_engine_options: dict[str, Any] = {}
"""Of the engines of this process's jobs."""


@dataclass(frozen=True)
class Outcome:
    """A job that ended: how long it took, functions that it compiled, and why it failed, if so."""

    job: str
    seconds: float
    functions: int
    problem: str | None


def _edges(directed: bool, dtype: str | None = None) -> dict[str, Any]:
    (source,) = hb.KroneckerEdges(_SCALE).chunks()
    weights = None if dtype is None else (source[0] % 90 + 1).astype(dtype)
    src, dst = source
    return {"src": src, "dst": dst, "directed": directed, "weights": weights}


def _graph(directed: bool = False, dtype: str | None = None) -> Any:
    return hb.CSRGraph.from_edges(**_edges(directed, dtype))


def _graphs(dtypes: Sequence[str | None] = (None,)) -> None:
    for dtype in dtypes:
        for directed in (False, True):
            graph = _graph(directed, dtype)
            given = graph.indptr, graph.indices, directed, graph.num_input_edges
            hb.CSRGraph(*given, graph.input_degree, graph.weights)
            graph.transpose  # noqa: B018
            list(graph.chunks())


def _searches() -> None:
    hb.bfs(_graph(), 0)
    hb.bfs(_graph(directed=True), [0, 1], mask=[5], target=9, reverse=True)


def _paths() -> None:
    for dtype in _WEIGHTS:
        hb.sssp(_graph(dtype=dtype), 0)


def _by_one_thread(name: str, **arguments: Any) -> None:
    for directed in (False, True):
        graph = _graph(directed, "float64" if arguments else None)
        getattr(hb, name)(graph, **arguments)


def _csgraph() -> None:
    import numpy as np
    from scipy.sparse import csr_array

    graph = _graph()
    arrays = np.ones(graph.indices.size), graph.indices.astype(np.int32), graph.indptr
    matrix = csr_array(arrays)
    hb.bfs(matrix, 0)
    for directed in (True, False):
        for unweighted in (True, False):
            hb.csgraph.dijkstra(matrix, directed, 0, True, unweighted)
        hb.csgraph.breadth_first_order(matrix, 0, directed)
    hb.csgraph.connected_components(matrix)


def _networkx() -> None:
    try:
        import networkx as nx
    except ImportError:  # an optional package
        return
    from hetero_bfs.networkx_backend.conversion import convert_from_nx
    from hetero_bfs.networkx_backend.traversal import bidirectional_shortest_path

    bidirectional_shortest_path(convert_from_nx(nx.path_graph(9)), 0, 8)


def _opening() -> None:
    with hb.Engine(_graph(), **_engine_options) as engine:
        engine.bfs(0)


def _engines() -> None:
    road = hb.CSRGraph.from_edges(range(_ROAD - 1), range(1, _ROAD))
    with hb.Engine(road, **_engine_options) as engine:  # other kernels number and search it
        engine.bfs_many(range(8))
    for directed in (False, True):
        with hb.Engine(_graph(directed), **_engine_options) as engine:
            engine.bfs(0)
            engine.bfs([0, 1], mask=[5], target=9, reverse=True, want="levels")
            for want in ("levels", "sums"):
                engine.bfs_many(range(8), want=want)
            engine.connected_components()
            engine.colour()
            engine.pagerank()


def _weighted_engines() -> None:
    for dtype in _WEIGHTS:
        with hb.Engine(_graph(dtype=dtype), **_engine_options) as engine:
            engine.sssp(0)
            engine.pagerank(weighted=True)


def _programs() -> None:
    from hetero_bfs.doctor.self_test import Labels

    with hb.Engine(_graph(directed=True), **_engine_options) as engine:
        for options in ({}, {"mode": "layered", "root": 0}, {"mode": "asynchronous"}):
            engine.run(Labels(), hb.RunOptions(**options))


def _checks() -> None:
    for directed in (False, True):
        graph = _graph(directed)
        with hb.Engine(graph, **_engine_options) as engine:
            found = engine.bfs(0)
            hb.validate(graph, 0, found.parent, found.level)
            hb.check_components(graph, engine.connected_components().component)
            hb.check_colouring(graph, engine.colour().colour)
            hb.check_pagerank(graph, engine.pagerank().rank)
    for dtype in _WEIGHTS:
        weighted = _graph(dtype=dtype)
        paths = hb.sssp(weighted, 0)
        hb.check_paths(weighted, 0, paths.distance, paths.parent)


def _files() -> None:
    from hetero_bfs.graph.io import registry

    with tempfile.TemporaryDirectory() as folder:
        for dtype in (None, "int32", "float64"):
            edges = hb.EdgeList.from_arrays(**_edges(False, dtype))
            path = Path(folder) / "graph.hbg"
            registry.write(edges, path)
            hb.load(path, weighted=dtype is not None)


def _graph500() -> None:
    from hetero_bfs.graph500.kernel import Graph500Options
    from hetero_bfs.graph500.protocol import run_graph500
    from hetero_bfs.options import EngineOptions

    for kernel in ("bfs", "sssp"):
        engine = EngineOptions(**_engine_options)
        run_graph500(Graph500Options(kernel, scale=_SCALE, sources=2, engine=engine))


_AT_FIRST_USE: dict[str, Callable[[], None]] = {
    "opening": _opening,
    "graphs": _graphs,
    "weighted graphs": partial(_graphs, _WEIGHTS),
    "searches": _searches,
    "components": partial(_by_one_thread, "connected_components"),
    "paths": _paths,
    "csgraph": _csgraph,
    "networkx": _networkx,
    "PageRanks": partial(_by_one_thread, "pagerank"),
    "Colourings": partial(_by_one_thread, "colour"),
    "WeightedPageRanks": partial(_by_one_thread, "pagerank", weighted=True),
    "Engine": _engines,
    "PathSearches": _weighted_engines,
}
JOBS: dict[str, Callable[[], None]] = {
    **_AT_FIRST_USE,
    "checks": _checks,
    "programs": _programs,
    "files": _files,
    "graph500": _graph500,
}
"""By name, in the order in which they run. A name with capitals is that of a class which notes that
it was compiled: see `scheduling/run_chooser.py`."""


def warm_up(
    jobs: Sequence[str] | None = None, devices: Sequence[DeviceInfo] = ()
) -> Iterator[Outcome]:
    """Run jobs, then test and build all kernels of devices; yield each outcome as it comes.

    The first job runs alone, since all others need its code. The others run two at a time.
    """
    where = str(devices[0].index) if devices else "cpu"
    work = [partial(_run_job, job, where) for job in jobs or JOBS]
    tests = product(devices, verdicts.FAMILIES)
    work += [partial(_run_device, info, family) for info, family in tests]
    if not work:
        return
    yield work[0]()
    with ThreadPoolExecutor(min(usable_cores(), 2)) as pool:
        yield from pool.map(lambda one: one(), work[1:])


def count_jobs(devices: Sequence[DeviceInfo]) -> int:
    """Return how many outcomes `warm_up` yields by default."""
    return len(JOBS) + len(verdicts.FAMILIES) * len(devices)


def _run_job(job: str, device: str) -> Outcome:
    began = time.monotonic()
    answer = run_module(
        __name__, _TIMEOUT_SECONDS, job, device, **{COMPILING_VARIABLE: "wait,quiet"}
    )
    functions = sum(line.get("functions", 0) for line in answer.lines)
    return Outcome(job, round(time.monotonic() - began, 1), functions, answer.problem)


def _run_device(info: DeviceInfo, family: verdicts.Family) -> Outcome:
    began = time.monotonic()
    verdict = verdicts.kept_verdict(info, family) or verdicts.test(info, family)
    problem = "no process could be started" if verdict is None else verdict.problem
    job = f"{info.name}: {family}"
    return Outcome(job, round(time.monotonic() - began, 1), 0, problem)


def main() -> None:
    """Run a job, in a process that `warm_up` starts."""
    from hetero_bfs.scheduling.first_model import leave_unmeasured
    from hetero_bfs.support import code_cache

    leave_unmeasured()
    job, _engine_options["device"] = sys.argv[2:]
    say(functions=_counted(JOBS[job]))
    code_cache.note_compiled(job)


def _counted(work: Callable[[], None]) -> int:
    """Return how many functions of this package were compiled while it worked."""
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        work()
    ends = [one for _, one in recorder.buffer if one.is_end]
    modules = [one.data["dispatcher"].py_func.__module__ or "" for one in ends]
    return sum(name.startswith("hetero_bfs.") for name in modules)


def compile_in_background(first: str) -> None:
    """Run one job and then the others of a first use, in the process that cold.py starts."""
    _engine_options["device"] = "cpu"  # the device is the caller's
    signal.alarm(int(_TIMEOUT_SECONDS))  # waiting for others included
    with suppress(OSError):
        os.nice(_NICENESS)
    with private_cache.one_at_a_time("compiling.lock"):
        # They load Numba: processes that wait stay small.
        from hetero_bfs.scheduling.first_model import leave_unmeasured
        from hetero_bfs.support import code_cache

        leave_unmeasured()
        for job in (first, *_AT_FIRST_USE):
            if job in JOBS and not code_cache.was_compiled(job):
                with suppress(Exception):  # the caller compiles it, and raises what is wrong
                    JOBS[job]()
                    if job == "Engine":
                        _test_devices()  # else the first engine would
                    code_cache.note_compiled(job)


def _test_devices() -> None:
    from hetero_bfs.options import EngineOptions

    for info in EngineOptions().find_devices()[0]:
        _run_device(info, "searches")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        compile_in_background(sys.argv[1])
    else:
        run_main(main)
