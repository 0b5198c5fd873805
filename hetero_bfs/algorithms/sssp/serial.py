"""Weighted searches by one thread: for distances only, or in the order of NetworkX's heap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray
from hetero_bfs.graph.lists import Lists


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
    weights: npt.NDArray[np.float64],
    sources: Sequence[int],
    limit: float,
    distance: npt.NDArray[np.float64],
    parent: VertexArray,
) -> None:
    """Fill distances from the nearest source, and the parents of the vertices reached.

    Distances must be infinite at first, and stay so above `limit`. The parents of sources and of
    vertices not reached are not written. It is faster than `search_by_weight`, but gives no order.
    """
    from hetero_bfs.algorithms.sssp.kernels.serial import search_in_log_buckets

    starts = np.asarray(sources, np.int64)
    search_in_log_buckets(*lists, weights, starts, float(limit), distance, parent)
