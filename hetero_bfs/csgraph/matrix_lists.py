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
    weights : float64 array, shape (num_entries,)
    """

    lists: Lists
    weights: npt.NDArray[np.float64]

    @property
    def num_vertices(self) -> int:
        """Rows of the matrix."""
        return int(self.lists.indptr.size - 1)

    @property
    def num_entries(self) -> int:
        """Stored entries."""
        return int(self.lists.indices.size)


def read_matrix(csgraph: Any, directed: bool) -> MatrixLists:
    """Return the entries of a sparse, masked or dense matrix.

    In a dense matrix 0, infinity and NaN are no edges. If not `directed`, each entry also stands in
    its column's list, after the entries of that row.

    Raises
    ------
    GraphError
        The matrix is not square.
    """
    matrix = _compressed(csgraph, directed)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"csgraph has shape {matrix.shape}; a graph's matrix is of shape (N, N)")
    rows = _lists_of(matrix)
    return rows if directed else _joined(rows, _lists_of(matrix.T.tocsr()))


def _compressed(csgraph: Any, directed: bool) -> Any:
    if scipy.sparse.issparse(csgraph):
        if not directed and csgraph.format == "csc":
            csgraph = csgraph.T  # the rows that are there already; SciPy's order
        return csgraph.tocsr()
    if np.ma.isMaskedArray(csgraph):
        return csgraph_from_masked(csgraph)
    return csgraph_from_dense(csgraph, null_value=0, nan_null=True, infinity_null=True)


def _lists_of(matrix: Any) -> MatrixLists:
    indices = matrix.indices
    ids = indices.view(np.uint32) if indices.dtype == np.int32 else indices.astype(np.uint32)
    lists = Lists(matrix.indptr.astype(np.int64, copy=False), ids)
    return MatrixLists(lists, matrix.data.astype(np.float64, copy=False))


def _joined(rows: MatrixLists, columns: MatrixLists) -> MatrixLists:
    """Return lists of a row's entries and then its column's."""
    after, before = rows.lists.indptr, columns.lists.indptr
    places = np.arange(rows.num_entries)
    of_rows = places + np.repeat(before[:-1], np.diff(after))
    of_columns = places + np.repeat(after[1:], np.diff(before))
    indices = np.empty(2 * places.size, np.uint32)
    weights = np.empty(2 * places.size)
    for where, part in ((of_rows, rows), (of_columns, columns)):
        indices[where] = part.lists.indices
        weights[where] = part.weights
    return MatrixLists(Lists(after + before, indices), weights)
