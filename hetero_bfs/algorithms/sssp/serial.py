"""Shortest paths by one thread, without an engine, or in the order of NetworkX's heap."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.serial import as_matrix, as_parents, fits_scipy
from hetero_bfs.algorithms.sssp.result import ShortestPaths, WindowTrace
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray
from hetero_bfs.graph.lists import Lists
from hetero_bfs.graph.weights import needed_weights
from hetero_bfs.scheduling.trace import SERIAL
from hetero_bfs.support.cold import is_cold, scipy_seconds


class HeapSearch(NamedTuple):
    """The result of a search.

    `parent` has shape (num_vertices,) and is `NO_VERTEX` where not reached. `order` has the reached
    vertices in the order in which they were settled.
    """

    distance: npt.NDArray[np.float64]
    parent: VertexArray
    order: VertexArray


def search_by_weight(
    lists: Lists,
    weights: npt.NDArray[np.float64],
    source: int,
    target: int | None = None,
    limit: float = math.inf,
) -> HeapSearch:
    """Search until `target` is settled, or all vertices up to distance `limit` are."""
    from hetero_bfs.algorithms.sssp.kernels.serial import search_in_heap_order

    n = lists.indptr.size - 1
    distance, parent = np.full(n, np.inf), np.full(n, NO_VERTEX, np.uint32)
    order = np.empty(n, np.uint32)
    end = NO_VERTEX if target is None else target
    found = search_in_heap_order(
        *lists, weights, source, end, float(limit), distance, parent, order
    )
    return HeapSearch(distance, parent, order[:found])


def distances_by_weight(
    lists: Lists,
    weights: npt.NDArray[Any],
    sources: Sequence[int],
    limit: float,
    distance: npt.NDArray[Any],
    parent: VertexArray,
) -> None:
    """Fill distances from the nearest source, and the parents of the vertices reached.

    Distances, float64 or float32, must be infinite at first, and stay so above `limit`. The parents
    of sources and of vertices not reached are not written. It is faster than `search_by_weight`,
    but gives no order.
    """
    seconds = scipy_seconds(lists[1].size, reads_weights=True)
    if distance.dtype == np.float64 and fits_scipy(lists) and is_cold("paths", seconds):
        from scipy.sparse.csgraph import dijkstra

        distance[:], before, _ = dijkstra(
            as_matrix(lists, weights),
            indices=list(sources),
            limit=limit,
            min_only=True,
            return_predecessors=True,
        )
        known = (before >= 0) & (distance < np.inf)
        parent[known] = before[known]
        return
    from hetero_bfs.algorithms.sssp.kernels.serial import search_in_log_buckets

    starts = np.asarray(sources, np.int64)
    search_in_log_buckets(*lists, weights, starts, float(limit), distance, parent)


def may_round(graph: CSRGraph) -> bool:
    """Whether no distance exceeds the type to which sums of the graph's weights are rounded."""
    weights = needed_weights(graph)
    if weights.dtype != np.float32:
        return True
    largest = float(weights.max(initial=0))
    return largest * graph.num_vertices < float(np.finfo(np.float32).max)


def answer_serially(graph: CSRGraph, source: int) -> ShortestPaths:
    """Search a graph for which `may_round` is true, without negative weights.

    The trace has one record, of the strategy "serial".
    """
    began = time.perf_counter()
    weights, n = needed_weights(graph), graph.num_vertices
    distance = np.full(n, np.inf, np.float32 if weights.dtype == np.float32 else np.float64)
    parent = np.full(n, NO_VERTEX, np.uint32)
    parent[source] = source
    lists = Lists(graph.indptr, graph.indices)
    distances_by_weight(lists, weights, [source], math.inf, distance, parent)
    searched = time.perf_counter()
    result_parent, reached = as_parents(parent), parent != NO_VERTEX
    edges = int(np.diff(graph.indptr).sum(where=reached))
    vertices = int(np.count_nonzero(reached))
    trace = WindowTrace(0.0, SERIAL, vertices, edges, 1, searched - began)
    return ShortestPaths(
        source,
        distance.astype(np.float64, copy=False),
        trace.seconds,
        [trace],
        graph.directed,
        lambda: result_parent,
        time.perf_counter() - searched,
    )
