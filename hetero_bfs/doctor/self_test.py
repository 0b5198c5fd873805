"""Tests a family of kernels on one OpenCL device, on small graphs, against answers in plain Python.

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

from hetero_bfs.errors import DeviceError
from hetero_bfs.programs.built_in import LeastLabels
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
        self.lists: list[list[int]] = [[] for _ in range(self.num_vertices)]
        for u, v in self.edges:
            self.lists[u].append(v)
            if not directed:
                self.lists[v].append(u)
        self.lists = [sorted(set(near)) for near in self.lists]

    def graph(self, weights: npt.NDArray[Any] | None = None) -> Any:
        from hetero_bfs.graph.edge_list import EdgeList
        from hetero_bfs.graph.search_graph import build_search_graph

        src, dst = np.array(self.edges).T
        return build_search_graph(
            EdgeList.from_arrays(src, dst, self.num_vertices, self.directed, weights)
        )

    def levels(self, source: int) -> list[int]:
        """-1 where not reached."""
        level = [-1] * self.num_vertices
        level[source], waiting = 0, [source]
        for u in waiting:
            new = [v for v in self.lists[u] if level[v] < 0]
            for v in new:
                level[v] = level[u] + 1
            waiting += new
        return level

    def least(self, both_ways: bool) -> list[int]:
        """Return the least vertex that leads to each one, or that is connected with it."""
        lists = [list(near) for near in self.lists]
        for u, v in self.edges if both_ways else ():
            lists[v].append(u)
        least = list(range(self.num_vertices))
        for first in range(self.num_vertices):
            waiting = [first] if least[first] == first else []
            for u in waiting:
                new = [v for v in lists[u] if least[v] > first]
                for v in new:
                    least[v] = first
                waiting += new
        return least

    def distances(self, source: int, weights: npt.NDArray[Any]) -> list[float]:
        """inf where not reached."""
        weight_of: dict[tuple[int, int], float] = {}
        for (u, v), weight in zip(self.edges, weights.tolist(), strict=True):
            for pair in ((u, v),) if self.directed else ((u, v), (v, u)):
                weight_of[pair] = min(weight, weight_of.get(pair, weight))
        found = [float("inf")] * self.num_vertices
        found[source], waiting = 0.0, [source]
        for u in waiting:
            for v in self.lists[u]:
                if found[u] + weight_of[u, v] < found[v]:
                    found[v] = found[u] + weight_of[u, v]
                    waiting.append(v)
        return found

    def ranks(self) -> npt.NDArray[np.float64]:
        n = self.num_vertices
        links = np.zeros((n, n))
        for u, near in enumerate(self.lists):
            links[near or slice(None), u] = 1 / (len(near) or n)
        return np.linalg.solve(np.eye(n) - _ALPHA * links, np.full(n, (1 - _ALPHA) / n))


def _differ(what: str, found: Any, right: Any) -> str | None:
    for v, (one, other) in enumerate(zip(found.tolist(), right, strict=True)):
        if one != other:
            return f"{what} of vertex {v} is {one}, right is {other}"
    return None


def _tree_problem(sample: Sample, level: list[int], parent: list[int]) -> str | None:
    for v, (depth, above) in enumerate(zip(level, parent, strict=True)):
        if depth <= 0:
            right = above == (v if depth == 0 else -1)
        else:
            right = level[above] == depth - 1 and v in sample.lists[above]
        if not right:
            return f"parent of vertex {v} is {above}"
    return None


Problems = Iterator[str | None]
"""One entry per answer: what is wrong with it, None if it is right."""


def _searches(info: Any, directed: bool = False, **options: Any) -> Problems:
    from hetero_bfs.engine.engine import Engine

    sample = Sample(directed)
    with Engine(sample.graph(), device=str(info.index), correction=False, **options) as engine:
        for selector in ("auto", "fixed:TG", "fixed:BG", "fixed:TG,BGC"):
            say(step=selector)
            engine.set_selector(selector)
            for source in (0, _HUB_EDGES + _PATH, 7):
                result, level = engine.bfs(source), sample.levels(source)
                yield _differ("level", result.level, level)
                yield _tree_problem(sample, level, result.parent.tolist())


def _paths(info: Any, kind: str) -> Problems:
    from hetero_bfs.algorithms.sssp.algorithm import PathSearches

    sample = Sample(False)
    weights = (np.arange(len(sample.edges)) * 37 % 101 + 1).astype(kind)
    with PathSearches(sample.graph(weights), 1, info) as runs:
        yield from runs.notes
        for source in (0, 9):
            found = runs.run(source, place="device").distance
            yield _differ("distance", found, sample.distances(source, weights))


def _components(info: Any) -> Problems:
    from hetero_bfs.algorithms.components.algorithm import ComponentRuns

    for sample in (Sample(False), Sample(True)):
        with ComponentRuns(sample.graph(), 1, info) as runs:
            yield from runs.notes
            yield _differ("component", runs.run(place="device").component, sample.least(True))


def _colouring(info: Any) -> Problems:
    from hetero_bfs.algorithms.colouring.algorithm import Colourings

    sample = Sample(False)
    with Colourings(sample.graph(), 1, info) as runs:
        yield from runs.notes
        colour = runs.run(place="device").colour.tolist()
    clash = [edge for edge in sample.edges if colour[edge[0]] == colour[edge[1]]]
    yield f"adjacent vertices {clash[0]} have the same colour" if clash else None


def _ranks(info: Any) -> Problems:
    from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
    from hetero_bfs.algorithms.pagerank.host import check_settings

    sample = Sample(True)
    with PageRanks(sample.graph(), 1, info) as runs:
        yield from runs.notes
        settings = check_settings(sample.num_vertices, _ALPHA, _TOLERANCE, 1000)
        wrong = float(np.abs(runs.run(settings, place="device").rank - sample.ranks()).sum())
    bound = sample.num_vertices * _TOLERANCE / (1 - _ALPHA)
    yield None if wrong <= bound else f"ranks are off by {wrong}, more than {bound:.2g}"


def _programs(info: Any) -> Problems:
    from hetero_bfs.algorithms.program_runs import ProgramRuns
    from hetero_bfs.programs.options import RunOptions

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
    from hetero_bfs.devices.opencl.driver import choose_device

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
