"""Reads matrices into CSR arrays, with the conventions of `scipy.sparse.csgraph`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import csgraph_from_dense, csgraph_from_masked

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.lists import Lists
from hetero_bfs.graph.matrix_checks import check_ids, convert_matrix, refuse_ids
from hetero_bfs.support.checks import as_array

NO_PREDECESSOR = -9999
"""SciPy's value for no predecessor or source."""

_MOST_ROWS = 2**31 - 1


class MatrixLists(NamedTuple):
    """The stored entries of a matrix by row, including explicit zeros.

    weights : float64, shape (num_entries,), optional
    """

    lists: Lists
    weights: npt.NDArray[np.float64] | None

    @property
    def num_vertices(self) -> int:
        return int(self.lists.indptr.size - 1)


@dataclass(frozen=True)
class Rows:
    """A checked matrix.

    csr : its offsets are valid; its ids may be out of range
    given : the matrix for calls that SciPy itself computes
    """

    csr: Any
    given: Any

    @property
    def has_negative(self) -> bool:
        values = self.csr.data
        # A minimum allocates no array, unlike a comparison. With a NaN the minimum is NaN.
        return values.size > 0 and not values.min() >= 0 and bool((values < 0).any())

    def for_scipy(self, weighted: bool = True) -> Any:
        """Return a matrix whose ids are in range.

        If `weighted`, entries whose weight is NaN are left out. Otherwise repeated entries are
        stored once: SciPy's search for strongly connected components would not end.
        """
        csr = self.csr
        check_ids(csr.indices, csr.shape[0])
        if self.given is not csr:
            return self.given
        kind = np.int32 if csr.indices.size <= _MOST_ROWS else np.int64
        indices, indptr = (ids.astype(kind, copy=False) for ids in (csr.indices, csr.indptr))
        data = csr.data.astype(np.float64, copy=False)  # SciPy does not convert all types itself
        lists = data, indices, indptr
        plain = scipy.sparse.csr_array(lists, shape=csr.shape)
        if not weighted:
            return _without_duplicates(plain)
        known = ~np.isnan(data)
        if known.all():
            return plain
        coo = plain.tocoo()
        ends = coo.row[known], coo.col[known]
        return scipy.sparse.coo_array((coo.data[known], ends), shape=csr.shape).tocsr()


def _without_duplicates(csr: Any) -> Any:
    """Return the same rows if no entry is repeated, else sorted rows."""
    if csr.has_canonical_format:
        return csr
    summed = csr.copy()
    summed.sum_duplicates()
    return csr if summed.nnz == csr.nnz else summed


def checked_rows(csgraph: Any, directed: bool) -> Rows:
    """Return the rows of a matrix; for an undirected CSC matrix its columns.

    Zeros that pad a BSR or DIA matrix are dropped. As in SciPy, infinity, NaN and numbers whose
    magnitude is at most 1e-8 are not edges of a dense matrix.
    """
    if isinstance(csgraph, Rows):
        return csgraph
    if not scipy.sparse.issparse(csgraph):
        return _dense_rows(csgraph)
    transposed = not directed and csgraph.format == "csc"  # its columns are stored already

    def convert(matrix: Any) -> Any:
        csr = (matrix.T if transposed else matrix).tocsr()
        if matrix.format in ("bsr", "dia"):
            csr.eliminate_zeros()
        return csr

    csr = convert_matrix(csgraph, convert, ids_of_rows_later=True)
    if csr.dtype.kind not in "biuf":
        raise GraphError(f"csgraph holds {csr.dtype}; give real numbers, such as float64")
    if csr.shape[0] > _MOST_ROWS:
        raise GraphError(
            f"the matrix has {csr.shape[0]} rows; results hold int32, so at most {_MOST_ROWS}: "
            "make a hetero_bfs.CSRGraph.from_scipy(matrix)"
        )
    return Rows(csr, csr)


def read_matrix(csgraph: Any, directed: bool, weighted: bool = False) -> MatrixLists:
    """Return the entries of a matrix or of its `Rows`; raises `GraphError` as `checked_rows`.

    If not `directed`, the neighbour list of vertex v holds row v and then column v.
    """
    matrix = checked_rows(csgraph, directed).csr
    if directed or matrix.indices.dtype != np.int32:  # _both_ways checks the others
        check_ids(matrix.indices, matrix.shape[0])
    indices = matrix.indices
    ids = (
        indices.view(np.uint32)
        if indices.dtype == np.int32
        else indices.astype(np.uint32, copy=False)
    )
    lists = Lists(matrix.indptr.astype(np.int64, copy=False), ids)
    weights = matrix.data.astype(np.float64, copy=False) if weighted else None
    rows = MatrixLists(lists, weights)
    return rows if directed else _both_ways(rows)


def _dense_rows(csgraph: Any) -> Rows:
    given = type(csgraph).__name__
    if not np.ma.isMaskedArray(csgraph):
        csgraph = as_array("csgraph", csgraph)
    shape = csgraph.shape
    if len(shape) == 2 and shape[0] != shape[1]:
        raise GraphError(f"csgraph has shape {shape}; a graph's matrix is of shape (N, N)")
    if len(shape) != 2 or csgraph.dtype.kind not in "biuf":
        raise GraphError(
            f"csgraph is {given!r}, not a matrix of numbers; give a sparse matrix, or an array of "
            "shape (N, N)"
        )
    if np.ma.isMaskedArray(csgraph):
        mask = np.ma.getmaskarray(csgraph)  # SciPy needs a mask of the full shape
        csgraph = np.ma.array(csgraph, mask=mask)
        csr = csgraph_from_masked(csgraph)
    else:
        csr = csgraph_from_dense(csgraph, null_value=0, nan_null=True, infinity_null=True)
    return Rows(csr, csgraph)


def _both_ways(rows: MatrixLists) -> MatrixLists:
    from hetero_bfs.graph.kernels.neighbour_lists import join_with_transpose

    indptr, indices = rows.lists
    weights = np.empty(0) if rows.weights is None else rows.weights
    joined = Lists(np.empty(indptr.size, np.int64), np.empty(2 * indices.size, np.uint32))
    joined_weights = np.empty(2 * weights.size)
    if not join_with_transpose(indptr, indices, weights, *joined, joined_weights):
        refuse_ids(indices, indptr.size - 1)
    return MatrixLists(joined, None if rows.weights is None else joined_weights)
