"""PageRank beside GAP, SciPy, NetworKit, python-graphblas and cuGraph.

All run to the same total change of ranks in an iteration. "call" is a whole call of ours.
GAP's `pr` stops once ranks change by less than 1e-4 in all, so our `tol` is 1e-4 over the number of
vertices. Its ranks are float32, and it lets the mass of dangling vertices go. `pr_spmv` is its
power method, if it was built, too. "SciPy as NetworkX" does what NetworkX's `pagerank` does, on a
matrix that is there already; a run is the normalisation of the rows and the iterations.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

import hetero_bfs as hb
from benchmarks.programs.contest import Contest, Gap, call, opened
from benchmarks.programs.peers import add_peers
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks
from hetero_bfs.algorithms.pagerank.host import RankSettings
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource

_ALPHA, _CHANGE, _MOST_ITERATIONS = 0.85, 1e-4, 100
_SCIPY_EDGES = 1 << 25  # stored edges up to which SciPy takes part


@contextmanager
def make_contest(
    edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace
) -> Iterator[Contest]:
    """Return who takes part; answers agree if they differ by no more than the tolerance allows."""
    error = 2 * _CHANGE * _ALPHA / (1 - _ALPHA)
    contest = Contest(False, lambda one, other: float(np.abs(one - other).sum()) <= error)
    settings = RankSettings(_ALPHA, _CHANGE, _MOST_ITERATIONS)
    with opened(PageRanks, edges, options) as ranks:
        for place in ranks.places:
            result = ranks.run(settings, place=place)
            tol = _CHANGE / graph.num_vertices
            hb.check_pagerank(graph, result.rank, _ALPHA, tol).raise_if_invalid()
            print(f"hetero_bfs {place}: {result.iterations} iterations")
            each = 4 * (graph.num_stored_edges + 2 * graph.num_vertices)
            contest.least_bytes = result.iterations * each  # float32, of our last place
            contest.runs[f"hetero_bfs {place}"] = partial(_ours, ranks, settings, place)
            contest.runs[f"hetero_bfs {place}, call"] = partial(_our_call, ranks, settings, place)
        if options.gap is not None:
            for program in ("pr", "pr_spmv"):
                if (options.gap / program).exists():
                    gap = Gap(options.gap, program, graph, options.threads)
                    contest.runs[f"GAP {program}"] = partial(_gap, gap)
        if graph.num_stored_edges <= _SCIPY_EDGES:
            values = np.ones(graph.num_stored_edges), graph.indices.astype(np.int32), graph.indptr
            matrix = scipy.sparse.csr_array(values, (graph.num_vertices,) * 2)
            contest.runs["SciPy as NetworkX"] = partial(_networkx, matrix)
        add_peers(contest.runs, graph, options, lambda library: library.ranks(settings))
        yield contest


def _ours(ranks: PageRanks, settings: RankSettings, place: Any, _: int) -> tuple[float, Any]:
    result = ranks.run(settings, place=place)
    return result.seconds, result.rank


def _our_call(ranks: PageRanks, settings: RankSettings, place: Any, _: int) -> tuple[float, Any]:
    return call(partial(ranks.run, place=place), "rank", settings)


def _gap(gap: Gap, _: int) -> tuple[float, None]:
    return gap.seconds("-t", _CHANGE, "-i", _MOST_ITERATIONS, trials=3), None


def _networkx(matrix: Any, _: int) -> tuple[float, npt.NDArray[np.float64]]:
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
