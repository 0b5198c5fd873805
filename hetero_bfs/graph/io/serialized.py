"""GAP's serialized graphs, .sg and .wsg.

From GAP's reader.h, writer.h and graph.h, little-endian and unaligned: bool directed, int64 stored
edges, int64 vertices, int64 offsets, the neighbours. If directed, offsets and neighbours of the
transpose follow. A neighbour is an int32 vertex, in .wsg followed by the edge's int32 weight.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.io.graph_files import GraphFile, Place, Wanted, check_size, refuse
from hetero_bfs.graph.list_checks import Fault, frozen, lists_faults, range_fault
from hetero_bfs.graph.weights import WeightArray, needed_weights, symmetry_fault, weight_dtype_of
from hetero_bfs.support.files import write_array

if TYPE_CHECKING:
    from io import BufferedIOBase

_HEADER = struct.Struct("<Bqq")
_MAX_VERTICES = 2**31
_VERTEX = np.dtype("<u4")
_WEIGHTED = np.dtype([("vertex", "<u4"), ("weight", "<i4")])


def read_serialized(file: GraphFile, wanted: Wanted) -> CSRGraph:
    """Read an .sg or a .wsg file; `weighted` keeps the weights of a .wsg file.

    If an edge occurs several times, its smallest weight counts, as in GAP.

    Raises `GraphFileError` for a missing or damaged file, and with `weighted` for an .sg file.
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
    """Return the number of vertices in the header."""
    with file.opened() as handle:
        return _read_header(handle, file)[1]


def write_serialized(graph: CSRGraph, handle: BufferedIOBase) -> None:
    """Write .sg, or .wsg if the graph has weights.

    Raises `GraphFileError` for too many vertices, or weights other than int32.
    """
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
    """Return the type of a stored neighbour."""
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
