"""Matrices as neighbour lists, read as `scipy.sparse.csgraph` reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import csgraph_from_dense, csgraph_from_masked

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.unsorted_lists import Lists

NO_PREDECESSOR = -9999
"""SciPy's value for no predecessor or source."""


class MatrixLists(NamedTuple):
    """The stored entries of a matrix, row by row, explicit zeros among them.

    Parameters
    ----------
    lists : Lists
    weights : float64 array, shape (num_entries,), optional
    """

    lists: Lists
    weights: npt.NDArray[np.float64] | None

    @property
    def num_vertices(self) -> int:
        """Rows of the matrix."""
        return int(self.lists.indptr.size - 1)


def read_matrix(csgraph: Any, directed: bool, weighted: bool = False) -> MatrixLists:
    """Return the entries of a sparse, masked or dense matrix.

    In a dense matrix 0, infinity and NaN are no edges. If not `directed`, each entry also stands in
    its column's list, after the entries of that row.

    Raises
    ------
    GraphError
        There is no matrix of numbers, or it is not square.
    """
    matrix = _compressed(csgraph, directed)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"csgraph has shape {matrix.shape}; a graph's matrix is of shape (N, N)")
    indices = matrix.indices
    ids = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)
    lists = Lists(matrix.indptr.astype(np.int64, copy=False), ids)
    weights = matrix.data.astype(np.float64, copy=False) if weighted else None
    rows = MatrixLists(lists, weights)
    return rows if directed else _both_ways(rows)


def _compressed(csgraph: Any, directed: bool) -> Any:
    if scipy.sparse.issparse(csgraph):
        if not directed and csgraph.format == "csc":
            csgraph = csgraph.T  # the rows that are there already; SciPy's order
        return csgraph.tocsr()
    check_dense(csgraph)
    if np.ma.isMaskedArray(csgraph):
        return csgraph_from_masked(csgraph)
    return csgraph_from_dense(csgraph, null_value=0, nan_null=True, infinity_null=True)


def check_dense(csgraph: Any) -> None:
    """Raise `GraphError` unless what is no sparse matrix is an array of numbers."""
    if np.ndim(csgraph) != 2 or np.asarray(csgraph).dtype.kind not in "biuf":
        raise GraphError(
            f"csgraph is {type(csgraph).__name__!r}, no matrix of numbers; give a sparse one, or "
            "an array of shape (N, N)"
        )


def _both_ways(rows: MatrixLists) -> MatrixLists:
    """Return lists of a row's entries and then its column's."""
    from hetero_bfs.graph.kernels.both_directions import join_with_transpose

    indptr, indices = rows.lists
    weights = np.empty(0) if rows.weights is None else rows.weights
    joined = Lists(np.empty(indptr.size, np.int64), np.empty(2 * indices.size, np.uint32))
    joined_weights = np.empty(2 * weights.size)
    join_with_transpose(indptr, indices, weights, *joined, joined_weights)
    return MatrixLists(joined, None if rows.weights is None else joined_weights)
