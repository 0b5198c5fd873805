"""Shortest paths beside GAP, SciPy, NetworKit, python-graphblas and cuGraph.

"call" is a whole call of ours, with distances in the caller's ids; "with parents" makes parents of
them, too, on the host. GAP runs with that
delta of --deltas that is the fastest from the first source. Our distances are checked once for each
graph, and compared with those of the other libraries where the graph is small enough for that.
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
import scipy.sparse.csgraph

import hetero_bfs as hb
from benchmarks.programs.contest import Contest, Gap, call, opened
from benchmarks.programs.peers import add_peers
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.weights import needed_weights

_SCIPY_EDGES = 1 << 25  # stored edges up to which SciPy takes part


@contextmanager
def make_contest(
    edges: EdgeSource, graph: CSRGraph, options: argparse.Namespace
) -> Iterator[Contest]:
    """Return who takes part."""
    contest = Contest(True, partial(np.allclose, rtol=1e-6))
    width = needed_weights(graph).dtype.itemsize
    contest.least_bytes = (4 + width) * graph.num_stored_edges + 2 * width * graph.num_vertices
    with opened(PathSearches, edges, options) as searches:
        source = int(np.argmax(np.diff(graph.indptr)))
        for place in searches.places:
            result = searches.run(source, place=place)
            hb.check_paths(edges, source, result.distance, result.parent).raise_if_invalid()
            contest.runs[f"hetero_bfs {place}"] = partial(_ours, searches, place)
            contest.runs[f"hetero_bfs {place}, call"] = partial(_our_call, searches, place)
            contest.runs[f"hetero_bfs {place}, with parents"] = partial(_our_tree, searches, place)
        if options.gap is not None:
            gap = Gap(options.gap, "sssp", graph, options.threads)
            delta = min(options.deltas, key=lambda d: gap.seconds("-r", source, "-d", d, trials=3))
            contest.runs[f"GAP, delta {delta}"] = lambda source: (
                gap.seconds("-r", source, "-d", delta, trials=3),
                None,
            )
        if graph.num_stored_edges <= _SCIPY_EDGES:
            lists = graph.weights.astype(np.float64), graph.indices.astype(np.int32), graph.indptr
            matrix = scipy.sparse.csr_array(lists, (graph.num_vertices,) * 2)
            contest.runs["SciPy dijkstra"] = partial(_scipy, matrix)
        add_peers(contest.runs, graph, options, lambda library: library.paths())
        yield contest


def _ours(searches: PathSearches, place: Any, source: int) -> tuple[float, Any]:
    result = searches.run(source, place=place)
    return result.seconds, result.distance


def _our_call(searches: PathSearches, place: Any, source: int) -> tuple[float, Any]:
    return call(partial(searches.run, place=place), "distance", source)


def _our_tree(searches: PathSearches, place: Any, source: int) -> tuple[float, Any]:
    started = time.perf_counter()
    result = searches.run(source, place=place)
    _ = result.parent
    return time.perf_counter() - started, result.distance


def _scipy(matrix: Any, source: int) -> tuple[float, npt.NDArray[np.float64]]:
    started = time.perf_counter()
    distance = scipy.sparse.csgraph.dijkstra(matrix, indices=source)
    return time.perf_counter() - started, distance
