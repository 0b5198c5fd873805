"""Edges of other packages' graphs: SciPy's sparse matrices and NetworkX's graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.matrix_checks import convert_matrix
from hetero_bfs.graph.weights import Duplicates, as_weights
from hetero_bfs.support.checks import check_flag

if TYPE_CHECKING:
    import networkx
    import scipy.sparse


_PADDED = ("bsr", "dia")
"""Formats whose arrays also hold zeros where the matrix has no entry."""


def edges_of_scipy(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
    directed: bool,
    weighted: bool,
    duplicates: Duplicates | None,
) -> EdgeList:
    """Return the entries of a square matrix as edges; see `CSRGraph.from_scipy`."""
    check_flag("weighted", weighted)
    if not hasattr(matrix, "tocoo"):
        raise ArgumentError(
            f"the matrix is of type {type(matrix).__name__}; give a SciPy sparse one, such as "
            "scipy.sparse.csr_array(matrix)"
        )

    def convert(checked: Any) -> Any:
        # SciPy's csgraph converts to rows, which sums the duplicates of some formats.
        return checked.tocsr().tocoo() if duplicates is None else checked.tocoo()

    coo = convert_matrix(matrix, convert)
    row, column, values = coo.row, coo.col, coo.data
    if not weighted or matrix.format in _PADDED:
        keep = values != 0
        row, column, values = row[keep], column[keep], values[keep]
    weights = values if weighted else None
    return EdgeList.from_arrays(row, column, coo.shape[0], directed, weights, duplicates or "min")


def edges_of_networkx(
    graph: networkx.Graph, directed: bool | None, weight: str | None, duplicates: Duplicates
) -> EdgeList:
    """Return the edges of a NetworkX graph; see `CSRGraph.from_networkx`."""
    if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
        raise ArgumentError(
            f"the graph is of type {type(graph).__name__}; give a networkx.Graph or DiGraph"
        )
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(
        -1, 2
    )
    weights = None
    if weight is not None:
        weights = np.empty(len(pairs), object)
        weights[:] = [value for _, _, value in graph.edges(data=weight, default=1)]
        weights = as_weights(weights, f"edge attribute {weight!r}")
    if directed is None:
        directed = bool(graph.is_directed())
    elif directed and not graph.is_directed():
        other = pairs[pairs[:, 0] != pairs[:, 1], ::-1]
        if weights is not None:
            weights = np.concatenate([weights, weights[pairs[:, 0] != pairs[:, 1]]])
        pairs = np.concatenate([pairs, other])
    ends = pairs[:, 0], pairs[:, 1]
    return EdgeList.from_arrays(*ends, len(number), directed, weights, duplicates)
