"""Edges of other packages' graphs: SciPy's sparse matrices and NetworkX's graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.matrix_checks import convert_matrix
from hetero_bfs.graph.weights import Duplicates
from hetero_bfs.support.checks import check_flag

if TYPE_CHECKING:
    import networkx
    import scipy.sparse


def edges_of_scipy(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
    directed: bool,
    weighted: bool,
    duplicates: Duplicates,
) -> EdgeList:
    """Return the entries of a square matrix as edges; see `CSRGraph.from_scipy`."""
    check_flag("weighted", weighted)
    if not hasattr(matrix, "tocoo"):
        raise ArgumentError(
            f"the matrix is of type {type(matrix).__name__}; give a SciPy sparse one, such as "
            "scipy.sparse.csr_array(matrix)"
        )
    coo: Any = convert_matrix(matrix, lambda checked: checked.tocoo())
    keep = coo.data != 0
    weights = coo.data[keep] if weighted else None
    row, column = coo.row[keep], coo.col[keep]
    return EdgeList.from_arrays(row, column, coo.shape[0], directed, weights, duplicates)


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
    if directed is None:
        directed = bool(graph.is_directed())
    weights = None
    if weight is not None:
        weights = np.array([value for _, _, value in graph.edges(data=weight, default=1)])
    ends = pairs[:, 0], pairs[:, 1]
    return EdgeList.from_arrays(*ends, len(number), directed, weights, duplicates)
