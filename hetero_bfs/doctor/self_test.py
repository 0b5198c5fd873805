"""Tests a family of kernels on one OpenCL device, on small graphs, against answers of SciPy.

`devices/opencl/verdicts.py` runs this in a separate process, since a driver may crash or hang. Each
step is announced before it runs. The kernels are built as for users and stay in the disk cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
from hetero_bfs.algorithms.pagerank.host import check_settings
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs.built_in import LeastLabels
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.support.processes import run_main, say

_HUB_EDGES = 700
_PATH = 40
_ALPHA = 0.85
_TOLERANCE = 1e-9

Edges = list[tuple[int, int]]


class Labels(LeastLabels):
    state = {"label": np.int64}  # noqa: RUF012
    along = "out"  # type: ignore[assignment]

    def receives(self, state, message):  # type: ignore[no-untyped-def]
        return message < state.label


class Sample:
    """A small graph: two hubs, short lists from a fixed formula, a path, and isolated vertices."""

    def __init__(self, directed: bool) -> None:
        self.directed, self.num_vertices = directed, _HUB_EDGES + _PATH + 60
        hubs = [(hub, 2 + (hub + 1) * v % _HUB_EDGES) for hub in (0, 1) for v in range(_HUB_EDGES)]
        short = [(v * v * 31 % _HUB_EDGES, v * 97 % _HUB_EDGES) for v in range(2 * _HUB_EDGES)]
        path = [(_HUB_EDGES + i, _HUB_EDGES + i + 1) for i in range(1, _PATH)]
        apart = [(v, v + 1) for v in range(_HUB_EDGES + _PATH + 10, self.num_vertices - 20, 3)]
        drawn = [*hubs, *short, (5, _HUB_EDGES + 1), *path, *apart]
        self.edges: Edges = sorted({(u, v) for u, v in drawn if u != v})
        self.src, self.dst = np.array(self.edges).T
        self.linked = self.matrix(np.ones(self.src.size, bool))
        if not directed:
            self.linked |= self.linked.T

    def matrix(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        made = np.zeros((self.num_vertices, self.num_vertices), values.dtype)
        made[self.src, self.dst] = values
        return made

    def graph(self, weights: npt.NDArray[Any] | None = None) -> Any:
        ends = self.src, self.dst
        return build_search_graph(
            EdgeList.from_arrays(*ends, self.num_vertices, self.directed, weights)
        )

    def levels(self, source: int) -> npt.NDArray[Any]:
        """-1 where not reached."""
        found = dijkstra(self.linked, indices=source, unweighted=True)
        return np.where(np.isinf(found), -1, found).astype(np.int64)

    def least(self, both_ways: bool) -> npt.NDArray[Any]:
        """Return the least vertex that leads to each one, or that is connected with it."""
        found = dijkstra(self.linked, directed=not both_ways, unweighted=True)
        return np.asarray(np.isfinite(found).argmax(axis=0))

    def distances(self, source: int, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """inf where not reached."""
        return np.asarray(dijkstra(self.matrix(weights), directed=self.directed, indices=source))

    def ranks(self) -> npt.NDArray[np.float64]:
        n, degree = self.num_vertices, self.linked.sum(axis=1)
        links = np.where(degree > 0, self.linked.T / np.maximum(degree, 1), 1 / n)
        return np.linalg.solve(np.eye(n) - _ALPHA * links, np.full(n, (1 - _ALPHA) / n))


def _differ(what: str, found: npt.NDArray[Any], right: npt.NDArray[Any]) -> str | None:
    for v in np.flatnonzero(found != right):
        return f"{what} of vertex {v} is {found[v]}, right is {right[v]}"
    return None


def _tree_problem(sample: Sample, level: npt.NDArray[Any], parent: npt.NDArray[Any]) -> str | None:
    v = np.arange(level.size)
    is_above = sample.linked[parent, v] & (level[parent] == level - 1)
    for wrong in np.flatnonzero(~np.where(level > 0, is_above, parent == np.where(level, -1, v))):
        return f"parent of vertex {wrong} is {parent[wrong]}"
    return None


Problems = Iterator[str | None]
"""One entry per answer: its fault, None if it is right."""


def _searches(info: Any, directed: bool = False, **options: Any) -> Problems:
    sample = Sample(directed)
    with Engine(sample.graph(), device=str(info.index), correction=False, **options) as engine:
        for selector in ("auto", "fixed:TG", "fixed:BG", "fixed:TG,BGC"):
            say(step=selector)
            engine.set_selector(selector)
            for source in (0, _HUB_EDGES + _PATH, 7):
                result, level = engine.bfs(source), sample.levels(source)
                yield _differ("level", result.level, level)
                yield _tree_problem(sample, level, result.parent)


def _paths(info: Any, kind: str) -> Problems:
    sample = Sample(False)
    weights = (np.arange(len(sample.edges)) * 37 % 101 + 1).astype(kind)
    with PathSearches(sample.graph(weights), 1, info) as runs:
        yield from runs.notes
        for source in (0, 9):
            found = runs.run(source, place="device").distance
            yield _differ("distance", found, sample.distances(source, weights))


def _components(info: Any) -> Problems:
    for sample in (Sample(False), Sample(True)):
        with ComponentRuns(sample.graph(), 1, info) as runs:
            yield from runs.notes
            yield _differ("component", runs.run(place="device").component, sample.least(True))


def _colouring(info: Any) -> Problems:
    sample = Sample(False)
    with Colourings(sample.graph(), 1, info) as runs:
        yield from runs.notes
        colour = runs.run(place="device").colour.tolist()
    clash = [edge for edge in sample.edges if colour[edge[0]] == colour[edge[1]]]
    yield f"adjacent vertices {clash[0]} have the same colour" if clash else None


def _ranks(info: Any) -> Problems:
    sample = Sample(True)
    with PageRanks(sample.graph(), 1, info) as runs:
        yield from runs.notes
        settings = check_settings(sample.num_vertices, _ALPHA, _TOLERANCE, 1000)
        wrong = float(np.abs(runs.run(settings, place="device").rank - sample.ranks()).sum())
    bound = sample.num_vertices * _TOLERANCE / (1 - _ALPHA)
    yield None if wrong <= bound else f"ranks are off by {wrong}, more than {bound:.2g}"


def _programs(info: Any) -> Problems:
    sample = Sample(True)
    right = sample.least(False)
    with ProgramRuns(sample.graph(), 1, info) as runs:
        settings = RunOptions(), RunOptions(mode="layered", root=0), RunOptions(mode="asynchronous")
        for options in settings:
            say(step=options.mode)
            try:
                found = runs.run(Labels(), {}, replace(options, place="device"))
            except DeviceError:
                yield from runs.notes  # they give the reason
                raise
            yield _differ("label", found.label, right)


TESTS: dict[str, Callable[[Any], Problems]] = {
    "searches": _searches,
    "directed searches": partial(_searches, directed=True),
    "searches in parts": partial(_searches, max_alloc_bytes=4096),
    "int32 paths": partial(_paths, kind="int32"),
    "float32 paths": partial(_paths, kind="float32"),
    "float64 paths": partial(_paths, kind="float64"),
    "components": _components,
    "colouring": _colouring,
    "PageRank": _ranks,
    "vertex programs": _programs,
}
"""The keys are `verdicts.FAMILIES`."""


def main() -> None:
    index, family = sys.argv[2:]
    say(step="opening")
    try:
        for problem in TESTS[family](choose_device(index)):
            if problem is not None:
                say(wrong=problem)
                return
    except Exception as error:  # wrong answers of a driver may cause any error
        say(wrong=f"{type(error).__name__}: {error}")
    else:
        say(passed=True)


if __name__ == "__main__":
    run_main(main)
