"""The comparisons: for each algorithm, who takes part on a graph, and how answers are compared.

"hetero_bfs" is a run until its answer is complete where it ran; "call" a whole call of ours, with
the answer in the caller's ids. Our answers are checked once for each graph, and compared with those
of the other libraries where the graph is small enough for that. GAP's answers are in its own ids.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.csgraph

import hetero_bfs as hb
from benchmarks.libraries import timed
from benchmarks.programs.contest import Contest, Gap, opened
from benchmarks.programs.cugraph import CuGraph
from benchmarks.programs.peers import add_peers, least_members
from hetero_bfs.algorithms.base import Analysis
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
from hetero_bfs.algorithms.pagerank.host import PageRankSettings
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.weights import needed_weights

_ALPHA, _CHANGE, _MOST_ITERATIONS = 0.85, 1e-4, 100
_SCIPY_EDGES = 1 << 25  # stored edges up to which SciPy and NetworkX take part


def _add_ours(
    contest: Contest, runs: Analysis[Any], answer: str, query: Callable[[int], tuple[Any, ...]]
) -> None:
    """Add runs on each place, and whole calls; `query` is that of a run from a source."""

    def alone(place: Any, source: int) -> tuple[float, Any]:
        result = runs.run(*query(source), place=place)
        return result.seconds, getattr(result, answer)

    def call(place: Any, source: int) -> tuple[float, Any]:
        seconds, result = timed(partial(runs.run, *query(source), place=place))
        return seconds, getattr(result, answer)

    for place in runs.places:
        contest.runs[f"hetero_bfs {place}"] = partial(alone, place)
        contest.runs[f"hetero_bfs {place}, call"] = partial(call, place)


def _matrix(graph: CSRGraph, values: npt.NDArray[Any]) -> Any:
    lists = values, graph.indices.astype(np.int32), graph.indptr
    return scipy.sparse.csr_array(lists, (graph.num_vertices,) * 2)


@contextmanager
def bfs(edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace) -> Iterator[Contest]:
    """Compare levels with cuGraph's; benchmarks/cpu_peers.py has the peers on a CPU."""
    contest = Contest(True, np.array_equal)
    contest.least_bytes = 4 * (graph.num_stored_edges + 2 * graph.num_vertices)
    with hb.Engine(edges, device=options.device, threads=options.threads) as engine:

        def call(source: int) -> tuple[float, Any]:
            seconds, result = timed(engine.bfs, source)
            return seconds, result.level

        contest.runs["hetero_bfs, call"] = call
        contest.runs["hetero_bfs"] = lambda source: (engine.search(source).seconds, None)
        add_peers(contest.runs, graph, options, lambda library: library.levels(), (CuGraph,))
        yield contest


@contextmanager
def colouring(edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace) -> Iterator[Contest]:
    """Compare colours with those of NetworkX's `greedy_color(strategy="largest_first")`."""
    contest = Contest(False, np.array_equal)
    with opened(Colourings, edges, options) as colourings:
        for place in colourings.places:
            result = colourings.run(place=place)
            hb.check_colouring(edges, result.colour).raise_if_invalid()
            print(f"hetero_bfs {place}: {result.num_colours} colours")
        _add_ours(contest, colourings, "colour", lambda _: ())
        if graph.num_stored_edges <= _SCIPY_EDGES:
            contest.runs["NetworkX largest_first"] = partial(_networkx_colours, graph.to_networkx())
        yield contest


def _networkx_colours(graph: nx.Graph, _: int) -> tuple[float, npt.NDArray[np.int32]]:
    seconds, colours = timed(nx.greedy_color, graph, "largest_first")
    return seconds, np.fromiter((colours[v] for v in range(len(colours))), np.int32)


@contextmanager
def components(
    edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace
) -> Iterator[Contest]:
    contest = Contest(False, np.array_equal)
    contest.least_bytes = 4 * (graph.num_stored_edges + 2 * graph.num_vertices)
    with opened(ComponentRuns, edges, options) as runs:
        for place in runs.places:
            hb.check_components(edges, runs.run(place=place).component).raise_if_invalid()
        _add_ours(contest, runs, "component", lambda _: ())
        if options.gap is not None:
            gap = Gap(options.gap, "cc", graph, options.threads)
            contest.runs["GAP"] = lambda _: (gap.seconds(trials=5), None)
        if graph.num_stored_edges <= 2 * _SCIPY_EDGES:
            matrix = _matrix(graph, np.ones(graph.num_stored_edges, np.int8))
            contest.runs["SciPy connected_components"] = partial(_scipy_components, matrix)
        add_peers(contest.runs, graph, options, lambda library: library.components())
        yield contest


def _scipy_components(matrix: Any, _: int) -> tuple[float, Any]:
    search = partial(scipy.sparse.csgraph.connected_components, directed=False)
    seconds, (_, label) = timed(search, matrix)
    return seconds, least_members(label)


@contextmanager
def pagerank(edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace) -> Iterator[Contest]:
    """Compare ranks that change by the same total in the last iteration.

    GAP's `pr` stops once ranks change by less than 1e-4 in all, so our `tol` is 1e-4 over the
    number of vertices. Its ranks are float32, and it lets the mass of dangling vertices go.
    `pr_spmv` is its power method, if it was built, too.
    """
    error = 2 * _CHANGE * _ALPHA / (1 - _ALPHA)
    contest = Contest(False, lambda one, other: float(np.abs(one - other).sum()) <= error)
    settings = PageRankSettings(_ALPHA, _CHANGE, _MOST_ITERATIONS)
    with opened(PageRanks, edges, options) as ranks:
        for place in ranks.places:
            result = ranks.run(settings, place=place)
            tol = _CHANGE / graph.num_vertices
            hb.check_pagerank(graph, result.rank, _ALPHA, tol).raise_if_invalid()
            print(f"hetero_bfs {place}: {result.iterations} iterations")
            each = 4 * (graph.num_stored_edges + 2 * graph.num_vertices)
            contest.least_bytes = result.iterations * each  # float32, of our last place
        _add_ours(contest, ranks, "rank", lambda _: (settings,))
        for program in ("pr", "pr_spmv"):
            if options.gap is not None and (options.gap / program).exists():
                gap = Gap(options.gap, program, graph, options.threads)
                contest.runs[f"GAP {program}"] = partial(_gap_ranks, gap)
        if graph.num_stored_edges <= _SCIPY_EDGES:
            matrix = _matrix(graph, np.ones(graph.num_stored_edges))
            contest.runs["SciPy as NetworkX"] = partial(_networkx_ranks, matrix)
        add_peers(contest.runs, graph, options, lambda library: library.ranks(settings))
        yield contest


def _gap_ranks(gap: Gap, _: int) -> tuple[float, None]:
    return gap.seconds("-t", _CHANGE, "-i", _MOST_ITERATIONS, trials=3), None


def _networkx_ranks(matrix: Any, _: int) -> tuple[float, npt.NDArray[np.float64]]:
    """Normalise the rows and iterate, as NetworkX's `pagerank` does with its matrix."""
    started = time.perf_counter()
    n = matrix.shape[0]
    total = matrix.sum(axis=1)
    inverse = np.divide(1.0, total, out=np.zeros(n), where=total != 0)
    passing = scipy.sparse.dia_array((inverse, 0), shape=(n, n)).tocsr() @ matrix
    dangling = np.flatnonzero(total == 0)
    rank = equal = np.full(n, 1.0 / n)
    for _ in range(_MOST_ITERATIONS):
        last = rank
        rank = _ALPHA * (last @ passing + last[dangling].sum() * equal) + (1 - _ALPHA) * equal
        if np.abs(rank - last).sum() < _CHANGE:
            break
    return time.perf_counter() - started, rank


@contextmanager
def sssp(edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace) -> Iterator[Contest]:
    """Compare distances; "with parents" makes parents of them, too, on the host.

    GAP runs with that delta of --deltas that is the fastest from the first source.
    """
    contest = Contest(True, partial(np.allclose, rtol=1e-6))
    width = needed_weights(graph).dtype.itemsize
    contest.least_bytes = (4 + width) * graph.num_stored_edges + 2 * width * graph.num_vertices
    with opened(PathSearches, edges, options) as searches:

        def with_parents(place: Any, source: int) -> tuple[float, Any]:
            started = time.perf_counter()
            result = searches.run(source, place=place)
            _ = result.parent
            return time.perf_counter() - started, result.distance

        source = int(np.argmax(np.diff(graph.indptr)))
        _add_ours(contest, searches, "distance", lambda source: (source,))
        for place in searches.places:
            result = searches.run(source, place=place)
            hb.check_paths(edges, source, result.distance, result.parent).raise_if_invalid()
            contest.runs[f"hetero_bfs {place}, with parents"] = partial(with_parents, place)
        if options.gap is not None:
            gap = Gap(options.gap, "sssp", graph, options.threads)
            delta = min(options.deltas, key=lambda d: gap.seconds("-r", source, "-d", d, trials=3))
            contest.runs[f"GAP, delta {delta}"] = lambda source: (
                gap.seconds("-r", source, "-d", delta, trials=3),
                None,
            )
        if graph.num_stored_edges <= _SCIPY_EDGES:
            matrix = _matrix(graph, needed_weights(graph).astype(np.float64))
            contest.runs["SciPy dijkstra"] = lambda source: timed(
                partial(scipy.sparse.csgraph.dijkstra, matrix, indices=source)
            )
        add_peers(contest.runs, graph, options, lambda library: library.paths())
        yield contest
