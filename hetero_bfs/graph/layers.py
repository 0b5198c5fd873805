"""Graphs numbered layer by layer from a root, prepared once and kept in .hbg files.

A layer is a level of a breadth-first search (Zhu et al., 2017, "WolfPath: accelerating iterative
traversing-based graph processing algorithms on GPU"). Programs in mode "layered" read the lists of
such a graph as they are, without another copy in the layers' order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import OffsetArray, VertexArray, check_vertex
from hetero_bfs.graph.relabel import inverse
from hetero_bfs.graph.search_graph import permute
from hetero_bfs.support.checks import check_type


def layered(graph: CSRGraph, root: int) -> CSRGraph:
    """Return a graph whose vertices are numbered layer by layer from a root, which becomes 0.

    Parameters
    ----------
    graph : CSRGraph
    root : int

    Returns
    -------
    CSRGraph
        `layers` has the end of each layer. Vertices that the root does not reach come last. `names`
        has the vertices' names, or their ids in `graph`. In a layer the longest lists come first.
        An engine keeps this order for all algorithms, unless it is given another `order`.

    Raises
    ------
    ArgumentError, GraphError
        The graph is not a CSRGraph, or the root is not a vertex of it.
    """
    check_type("graph", graph, CSRGraph, "a CSRGraph")
    check_vertex(root, graph.num_vertices)
    order, ends = layers_of(graph.indptr, graph.indices, root, longest_lists(graph))
    made = permute(graph, order, inverse(order, order.size))
    names = order.astype(np.int64) if graph.names is None else graph.names[order]
    counts = graph.directed, graph.num_input_edges, graph.input_degree[order]
    found = CSRGraph.trusted(made.indptr, made.indices, *counts, made.weights, names)
    found.__dict__["layers"] = ends
    return found


def longest_lists(graph: CSRGraph) -> npt.NDArray[np.int64]:
    """Return the length of each vertex's longer list, of receivers or of senders."""
    found: npt.NDArray[np.int64] = np.diff(graph.indptr)
    return np.maximum(found, np.diff(graph.transpose.indptr)) if graph.directed else found


def layers_of(
    indptr: OffsetArray, indices: VertexArray, root: int, lengths: npt.NDArray[Any]
) -> tuple[VertexArray, OffsetArray]:
    """Return the vertices layer by layer, the longest lists of a layer first, and the layers' ends.

    Vertices that the root does not reach come after the last end.
    """
    from hetero_bfs.graph.kernels.locality import order_by_level

    n = lengths.size
    order, ends = np.empty(n, np.uint32), np.empty(n, np.int64)
    count = order_by_level(indptr, indices, root, order, ends)
    ends = ends[:count].copy()
    layer = np.searchsorted(ends, np.arange(n), side="right")
    return order[np.lexsort((-lengths[order], layer))], ends
