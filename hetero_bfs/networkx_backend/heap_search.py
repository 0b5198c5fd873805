"""Searches with weights in NetworkX's order, by one thread."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray
from hetero_bfs.networkx_backend.converted_graph import ConvertedGraph


class HeapSearch(NamedTuple):
    """What a search found.

    Parameters
    ----------
    distance : float64 array, shape (num_nodes,)
    parent : uint32 array, shape (num_nodes,)
        0xFFFFFFFF where not reached.
    order : uint32 array
        The nodes reached, in the order in which they were settled.
    """

    distance: npt.NDArray[np.float64]
    parent: VertexArray
    order: VertexArray


def search_by_weight(
    G: ConvertedGraph,
    start: int,
    end: int | None = None,
    cutoff: float | None = None,
    weighted: bool = True,
) -> HeapSearch:
    """Search from an id until `end` is reached, or for all; weights are 1 if not `weighted`."""
    from hetero_bfs.algorithms.sssp.kernels.heap_order import search_in_heap_order

    weights = G.weights
    if not weighted or weights is None:
        weights = np.ones(G.num_entries)
    distance = np.full(len(G), np.inf)
    parent, order = np.full(len(G), NO_VERTEX, np.uint32), np.empty(len(G), np.uint32)
    found = search_in_heap_order(
        *G.successors,
        weights,
        start,
        NO_VERTEX if end is None else end,
        math.inf if cutoff is None else float(cutoff),
        distance,
        parent,
        order,
    )
    return HeapSearch(distance, parent, order[:found])
