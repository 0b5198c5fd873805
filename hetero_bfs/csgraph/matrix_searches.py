"""SciPy's `breadth_first_order` and `connected_components`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components as scipy_components

from hetero_bfs.algorithms.bfs.serial import search_from
from hetero_bfs.csgraph.matrix_lists import NO_PREDECESSOR, checked_rows, read_matrix
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.support.checks import check_choice

Order = npt.NDArray[np.int32]


def breadth_first_order(
    csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True
) -> Order | tuple[Order, Order]:
    """Return the vertices in the order in which SciPy's search finds them, and their predecessors.

    Parameters
    ----------
    csgraph : array or sparse array, shape (N, N)
    i_start : int
    directed : bool
        If False, edges are followed in both directions.
    return_predecessors : bool

    Returns
    -------
    node_array : int32 array
        The vertices reached, the start first.
    predecessors : int32 array, shape (N,)
        -9999 for the start and where not reached.

    Raises
    ------
    GraphError
        The matrix is not square or damaged; the start is not a vertex.
    """
    matrix = read_matrix(csgraph, directed)
    start = check_vertex(i_start, matrix.num_vertices)
    predecessors = np.full(matrix.num_vertices, NO_PREDECESSOR, np.int32)
    parent = predecessors.view(np.uint32)
    search = search_from(matrix.lists, start, parent=parent)
    order = search.queue.view(np.int32)
    return (order, predecessors) if return_predecessors else order


def connected_components(
    csgraph: Any, directed: bool = True, connection: str = "weak", return_labels: bool = True
) -> int | tuple[int, Order]:
    """Return the number of components, and each vertex's component.

    Parameters
    ----------
    csgraph : array or sparse array, shape (N, N)
    directed : bool
    connection : {"weak", "strong"}
        Strongly connected components of a directed graph are found by SciPy itself.
    return_labels : bool

    Returns
    -------
    n_components : int
    labels : int32 array, shape (N,)
        Components are numbered by their first vertices.

    Raises
    ------
    ArgumentError
        Another `connection`.
    GraphError
        The matrix is not square, or damaged.
    """
    from hetero_bfs.algorithms.components.kernels.ids_of_components import number_components

    kind = connection.lower() if isinstance(connection, str) else connection
    check_choice("connection", kind, ("weak", "strong"))
    if directed and kind == "strong":
        given = checked_rows(csgraph, directed).for_scipy(weighted=False)
        result: tuple[int, Order] = scipy_components(given, True, "strong", return_labels)
        return result
    matrix = read_matrix(csgraph, directed=True)  # reversed edges join the same components
    label = np.empty(matrix.num_vertices, np.uint32)
    count = int(number_components(*matrix.lists, label))
    return (count, label.view(np.int32)) if return_labels else count
