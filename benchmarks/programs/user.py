"""A user's vertex programs beside the built-in algorithms that find the same.

Each answer of a program is checked once for each graph against the built-in one. A breadth-first
search of the engine uses all devices it has; the other algorithms run on each place by themselves.
"""

# ruff: noqa: RUF012 (programs as users write them)

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

import hetero_bfs as hb
from benchmarks.programs.contest import Contest
from hetero_bfs.algorithms.base import open_analysis
from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
from hetero_bfs.algorithms.pagerank.host import PageRankSettings
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import EngineOptions
from hetero_bfs.training.measured_runs import Distances, Parents

_ALPHA, _CHANGE, _MOST_ITERATIONS = 0.85, 1e-4, 100


class Paths(Distances):
    def priority(self, state):
        return state.distance


class MonotonePaths(Paths):
    """Shortest paths with the promise."""

    monotone = True


class Labels(hb.Program):
    state = {"label": np.int64}
    combine = hb.minimum

    def initial(self, vertex):
        return vertex

    def receives(self, state, message):
        return message < state.label

    def message(self, state):
        return state.label

    def apply(self, state, combined):
        return min(state.label, combined)


class OrderedLabels(Labels):
    """The same, the least label first."""

    def priority(self, state):
        return state.label


class Ranks(hb.Program):
    state = {"rank": np.float64}
    combine = hb.plus
    all_active = True
    totals = ("dangling", "change")

    def initial(self, num_vertices):
        return 1 / num_vertices

    def message(self, state, degree):
        return state.rank / max(degree, 1)

    def apply(self, combined, num_vertices, dangling, alpha):
        return (1 - alpha) / num_vertices + alpha * (combined + dangling / num_vertices)

    def measure(self, state, previous, degree):
        return (state.rank if degree == 0 else 0.0), abs(state.rank - previous.rank)

    def finished(self, change, tol):
        return change < tol


class _Pairs:
    """Programs and built-in algorithms on one place, which run from a source."""

    def __init__(self, contest: Contest, programs: ProgramRuns, place: Any, source: int) -> None:
        self.contest, self.programs, self.place, self.source = contest, programs, place, source

    def add(
        self, problem: str, built_in: Callable[[int], Any], *programs: hb.Program, **fixed: Any
    ) -> list[Any]:
        """Add a built-in algorithm and programs; return what they find from the source.

        Parameters
        ----------
        **fixed
            Parameters of the programs; without any they get the source.
        """
        options = hb.RunOptions(place=self.place)
        runs = {f"{problem}, built in, {self.place}": built_in}
        for program in programs:
            name = f"{problem}, {type(program).__name__}, {self.place}"
            runs[name] = lambda source, program=program: self.programs.run(
                program,
                fixed if fixed or isinstance(program, Labels) else {"source": source},
                options,
            )
        for name, run in runs.items():
            self.contest.runs[name] = partial(_timed, run)
        return [run(self.source) for run in runs.values()]


def _timed(run: Callable[[int], Any], source: int) -> tuple[float, None]:
    return run(source).seconds, None


def _confirm(problem: str, is_right: Any) -> None:
    if not is_right:
        sys.exit(f"{problem}: the program's answer is not the built-in one's")


@contextmanager
def user(edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace) -> Iterator[Contest]:
    contest = Contest(True, lambda one, other: True)  # answers are compared here
    settings = EngineOptions(device=options.device, threads=options.threads)
    source = int(np.argmax(np.diff(graph.indptr)))
    rank_settings = PageRankSettings(_ALPHA, _CHANGE, _MOST_ITERATIONS)
    with ExitStack() as stack:
        prepared = build_search_graph(edges)

        def ready(kind: Any) -> Any:
            return stack.enter_context(open_analysis(kind, prepared, settings))

        programs, paths, components, ranks = map(
            ready, (ProgramRuns, PathSearches, ComponentRuns, PageRanks)
        )
        for place in programs.places:
            pairs = _Pairs(contest, programs, place, source)
            device = "cpu" if place == "cpu" else options.device
            engine = hb.Engine(edges, device=device, threads=options.threads)
            search, user = pairs.add("BFS", stack.enter_context(engine).bfs, Parents())
            tree = validate(edges, source, user.parent.astype(np.int64), search.level)
            _confirm("BFS", tree.valid)
            tuned, *users = pairs.add(
                "SSSP", partial(paths.run, place=place), Paths(), MonotonePaths()
            )
            for user in users:
                _confirm("SSSP", np.allclose(user.distance, tuned.distance))
            tuned, *users = pairs.add(
                "components",
                lambda _, place=place: components.run(place=place),
                *(Labels(), OrderedLabels()),
            )
            for user in users:
                _confirm("components", np.array_equal(user.label, tuned.component))
            tuned, user = pairs.add(
                "PageRank",
                lambda _, place=place: ranks.run(rank_settings, place=place),
                Ranks(),
                alpha=_ALPHA,
                tol=_CHANGE,
            )
            error = float(np.abs(user.rank - tuned.rank).sum())
            _confirm("PageRank", error <= 2 * _CHANGE * _ALPHA / (1 - _ALPHA))
        yield contest
