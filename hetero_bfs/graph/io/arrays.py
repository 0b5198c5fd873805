"""Edges in NumPy's and SciPy's files: `.npy` arrays of columns, `.npz` sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hetero_bfs.errors import GraphError, GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import OF_DAMAGED_FILES, GraphFile, Wanted
from hetero_bfs.graph.tables import edges_of_scipy, edges_once
from hetero_bfs.graph.vertex_names import NameTable
from hetero_bfs.graph.weights import weight_dtype_of

if TYPE_CHECKING:
    from io import BufferedIOBase

_MOST_COLUMNS = 3


def errors_of_archives() -> tuple[type[Exception], ...]:
    """Return the errors that NumPy raises for damaged .npz files."""
    import zipfile
    import zlib

    return *OF_DAMAGED_FILES, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError


def read_npz(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read a matrix that `scipy.sparse.save_npz` wrote; see `CSRGraph.from_scipy`."""
    from scipy.sparse import load_npz

    with file.opened() as handle:
        try:
            matrix = load_npz(handle)
        except errors_of_archives() as error:
            reason = " ".join(str(error).split())[:200]
            raise GraphFileError(
                f"{file}: is not a sparse matrix of SciPy ({reason}); write one by "
                "scipy.sparse.save_npz"
            ) from None
    try:
        return edges_of_scipy(matrix, wanted.directed, wanted.weighted, None)
    except GraphError as error:
        raise GraphFileError(f"{file}: {error}") from None


def write_npz(graph: CSRGraph, handle: BufferedIOBase) -> None:
    """Write a `csr_array` of the weights, or of ones; an undirected edge has two entries."""
    from scipy.sparse import csr_array, save_npz

    values = np.ones(graph.indices.size, np.int8) if graph.weights is None else graph.weights
    shape = graph.num_vertices, graph.num_vertices
    index = np.int32 if max(graph.num_vertices, graph.indices.size) < 2**31 else np.int64
    lists = values, graph.indices.astype(index), graph.indptr.astype(index)
    save_npz(handle, csr_array(lists, shape=shape))


def read_npy(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read an array of shape (edges, 2), or (edges, 3) with weights; or transposed if longer.

    Raises `GraphFileError` for another shape, and for ids that are not integers.
    """
    with file.opened() as handle:
        try:
            array = np.lib.format.read_array(handle, allow_pickle=False)
        except OF_DAMAGED_FILES as error:
            reason = " ".join(str(error).split())[:200]
            raise GraphFileError(
                f"{file}: is not a NumPy array ({reason}); write it by numpy.save"
            ) from None
    if array.ndim == 2 and array.shape[0] in (2, 3) and array.shape[1] > _MOST_COLUMNS:
        array = array.T
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise GraphFileError(
            f"{file}: has the shape {array.shape}; expected (edges, 2), or (edges, 3) with "
            "weights: save a matrix by scipy.sparse.save_npz"
        )
    if wanted.weighted and array.shape[1] < _MOST_COLUMNS:
        raise GraphFileError(f"{file}: has no third column of weights; read it without weights")
    ends = array[:, :2]
    if ends.dtype.kind == "f" and array.shape[1] == _MOST_COLUMNS:
        whole = np.abs(ends) < 2**53
        if not (whole & (ends == np.trunc(ends))).all():
            raise GraphFileError(f"{file}: has an id that is not an integer; correct it")
        ends = ends.astype(np.int64)
    names = None
    try:
        if wanted.renumber and ends.dtype.kind in "iuU":
            table = NameTable()
            for i in (0, 1):
                table.add(ends[:, i] if ends.dtype.kind != "U" else ends[:, i].astype(object))
            names, parts = table.finish()
            ends = np.column_stack(parts)
        weights: Any = array[:, 2] if wanted.weighted else None
        num_vertices = None if names is None else names.size
        edges = EdgeList.from_arrays(ends[:, 0], ends[:, 1], num_vertices, wanted.directed, weights)
    except GraphError as error:
        raise GraphFileError(f"{file}: {error}") from None
    lists = edges.src, edges.dst
    return EdgeList.trusted(*lists, edges.num_vertices, wanted.directed, edges.weights, names=names)


def write_npy(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    """Write rows of source, target and weight; integers unless the weights are floats."""
    dtype = weight_dtype_of(graph)
    width = 2 if dtype is None else 3
    kind: Any = np.float64 if dtype is not None and dtype.kind == "f" else np.int64
    rows = [np.column_stack([c.astype(kind) for c in columns]) for columns in edges_once(graph)]
    np.lib.format.write_array(handle, np.concatenate([np.empty((0, width), kind), *rows]))
