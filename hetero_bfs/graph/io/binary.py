"""Edges in NumPy's and SciPy's files, and GAP's serialized graphs.

`.npy` files have arrays of columns, `.npz` files sparse matrices. `.sg` and `.wsg` are as in GAP's
reader.h, writer.h and graph.h, little-endian and unaligned: bool directed, int64 stored edges,
int64 vertices, int64 offsets, the neighbours. If directed, offsets and neighbours of the transpose
follow. A neighbour is an int32 vertex, in .wsg followed by the edge's int32 weight.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from hetero_bfs.errors import GraphError, GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.io.graph_files import (
    OF_DAMAGED_FILES,
    GraphFile,
    Place,
    Wanted,
    check_size,
    refuse,
)
from hetero_bfs.graph.list_checks import Fault, frozen, lists_faults, range_fault
from hetero_bfs.graph.tables import TableColumns, edges_of_scipy, edges_once
from hetero_bfs.graph.weights import WeightArray, needed_weights, symmetry_fault, weight_dtype_of
from hetero_bfs.support.files import write_array

if TYPE_CHECKING:
    from io import BufferedIOBase

_MOST_COLUMNS = 3


def errors_of_archives() -> tuple[type[Exception], ...]:
    """Return the errors that NumPy raises for damaged .npz files."""
    import zipfile
    import zlib

    return *OF_DAMAGED_FILES, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError


def read_npz(file: GraphFile, wanted: Wanted) -> EdgeList:
    from scipy.sparse import load_npz

    with file.opened() as handle:
        try:
            matrix = load_npz(handle)
        except errors_of_archives() as error:
            reason = " ".join(str(error).split())[:200]
            if "pickled data" in reason:  # NumPy's advice for files that are no archives
                reason = "not an archive of arrays"
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
    """Read an array of shape (edges, 2), or (edges, 3) with weights; or transposed if longer."""
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
    columns = TableColumns(
        1, 2, 3 if wanted.weighted else None, directed=wanted.directed, renumber=wanted.renumber
    )
    arrays = [ends[:, 0], ends[:, 1], *([array[:, 2]] if wanted.weighted else [])]
    try:
        return columns.edges(columns.arrays_of(arrays, "astype"))
    except GraphError as error:
        raise GraphFileError(f"{file}: {error}") from None


def write_npy(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    dtype = weight_dtype_of(graph)
    width = 2 if dtype is None else 3
    kind: Any = np.float64 if dtype is not None and dtype.kind == "f" else np.int64
    rows = [np.column_stack([c.astype(kind) for c in columns]) for columns in edges_once(graph)]
    np.lib.format.write_array(handle, np.concatenate([np.empty((0, width), kind), *rows]))


_HEADER = struct.Struct("<Bqq")
_MAX_VERTICES = 2**31
_VERTEX = np.dtype("<u4")
_WEIGHTED = np.dtype([("vertex", "<u4"), ("weight", "<i4")])


def read_serialized(file: GraphFile, wanted: Wanted) -> CSRGraph:
    """Read an .sg or a .wsg file; `weighted` keeps the weights of a .wsg file.

    If an edge occurs several times, its smallest weight counts, as in GAP.
    """
    directed, weighted = wanted.directed, wanted.weighted
    entry = _entry(file)
    if weighted and entry == _VERTEX:
        raise GraphFileError(
            f"{file}: .sg holds no weights; give a .wsg file, or read it without weights"
        )
    with file.opened() as handle:
        file_directed, num_vertices, num_stored = _read_header(handle, file)
        indptr = np.fromfile(handle, "<i8", num_vertices + 1)
        neighbours = np.fromfile(handle, entry, num_stored)
    first = _HEADER.size + indptr.nbytes
    weights = None
    places = {"indptr": Place(_HEADER.size, 8), "indices": Place(first, entry.itemsize)}
    if entry == _WEIGHTED:
        places["weights"] = Place(first + _VERTEX.itemsize, entry.itemsize)
        weights = frozen(np.ascontiguousarray(neighbours["weight"])) if weighted else None
        neighbours = np.ascontiguousarray(neighbours["vertex"])
    refuse(file, range_fault(indptr, neighbours), places)
    indptr, indices = frozen(indptr), frozen(neighbours)
    order, reverse = lists_faults(indptr, indices)
    if not file_directed:
        refuse(file, reverse, places)
    degree = frozen(np.diff(indptr).astype(np.uint32))
    if (directed or not file_directed) and order is None:
        if weights is not None and not file_directed:
            refuse(file, symmetry_fault(indptr, indices, weights), places)
        num_input_edges = num_stored if directed else num_stored // 2
        return CSRGraph.trusted(indptr, indices, directed, num_input_edges, degree, weights)
    rows = np.repeat(np.arange(num_vertices, dtype=np.uint32), degree)
    if weights is not None and not file_directed:
        refuse(file, _combined_fault(rows, indices, num_vertices, weights), places)
    if not (directed or file_directed):
        once = rows <= indices
        rows, indices = rows[once], indices[once]
        weights = None if weights is None else weights[once]
    return CSRGraph.from_edge_source(
        EdgeList.trusted(rows, indices, num_vertices, directed, weights)
    )


def serialized_size(file: GraphFile) -> int:
    with file.opened() as handle:
        return _read_header(handle, file)[1]


def write_serialized(graph: CSRGraph, handle: BufferedIOBase) -> None:
    """Write .sg, or .wsg if the graph has weights."""
    if graph.num_vertices > _MAX_VERTICES:
        raise GraphFileError(
            f"{graph.num_vertices} vertices; .sg has 31-bit ids and holds up to {_MAX_VERTICES}: "
            "write .hbg"
        )
    dtype = weight_dtype_of(graph)
    if dtype is not None and dtype != np.int32:
        raise GraphFileError(f"the weights are {dtype}; .wsg holds int32 alone: write .hbg or .wel")
    header = _HEADER.pack(graph.directed, graph.num_stored_edges, graph.num_vertices)
    handle.write(header)
    for lists in (graph, graph.transpose) if graph.directed else (graph,):
        write_array(handle, lists.indptr.astype("<i8", copy=False))
        if lists.weights is None:
            write_array(handle, lists.indices.astype("<u4", copy=False))
        else:
            neighbours = np.empty(lists.indices.size, _WEIGHTED)
            neighbours["vertex"], neighbours["weight"] = lists.indices, lists.weights
            write_array(handle, neighbours)


def _entry(file: GraphFile) -> np.dtype[Any]:
    return _WEIGHTED if file.suffix == ".wsg" else _VERTEX


def _combined_fault(
    rows: VertexArray, indices: VertexArray, num_vertices: int, weights: WeightArray
) -> Fault | None:
    """Find an edge whose two directions have different smallest weights."""
    both_ways = EdgeList.trusted(rows, indices, num_vertices, True, weights)
    graph = CSRGraph.from_edge_source(both_ways)
    fault = symmetry_fault(graph.indptr, graph.indices, needed_weights(graph))
    return None if fault is None else fault._replace(position=None)


def _read_header(handle: BufferedIOBase, file: GraphFile) -> tuple[bool, int, int]:
    """Return directed, number of vertices, number of stored edges."""
    num_bytes = os.fstat(handle.fileno()).st_size
    if num_bytes < _HEADER.size:
        raise GraphFileError(
            f"{file}: {num_bytes} bytes; the header has {_HEADER.size}: write the file again"
        )
    flag, num_stored, num_vertices = _HEADER.unpack(handle.read(_HEADER.size))
    if flag > 1 or num_stored < 0 or not 0 <= num_vertices <= _MAX_VERTICES:
        raise GraphFileError(
            f"{file}: byte 0: directed = {flag}, {num_stored} edges, {num_vertices} vertices; no "
            f"{file.suffix} file (GAP's converter writes one with -b)"
        )
    expected = 8 * (num_vertices + 1) + _entry(file).itemsize * num_stored
    check_size(file, num_bytes, _HEADER.size + (2 if flag else 1) * expected)
    return bool(flag), num_vertices, num_stored
