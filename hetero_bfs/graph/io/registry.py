"""Graph files: `read`, `load` and `write` pick the format by the file name.

| name ends in | format | holds |
|---|---|---|
| .txt .el .tsv .wel, with or without .gz | two ids a line (SNAP, GAP) | edges |
| .mtx, with or without .gz | Matrix Market coordinate | edges |
| .sg | GAP's serialized graph | neighbour lists |
| .hbg | ours (hbg.py), mapped into memory | neighbour lists |

`.sg`, from GAP's reader.h, little-endian and unaligned: bool directed, int64 stored edges, int64
vertices, int64 offsets, int32 neighbours, and if directed the last two again for the transpose.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph, EdgeList
from hetero_bfs.graph.io import text as text_formats
from hetero_bfs.graph.io.graph_files import check_size, opened, refuse
from hetero_bfs.graph.io.hbg import hbg_size, read_hbg, write_hbg
from hetero_bfs.graph.list_checks import frozen, order_fault, range_fault, reverse_fault
from hetero_bfs.support.checks import check_flag, check_type
from hetero_bfs.support.files import replacing

if TYPE_CHECKING:
    from io import BufferedIOBase

_SG_HEADER = struct.Struct("<Bqq")
_SG_MAX_VERTICES = 2**31


def load(path: str | os.PathLike[str], directed: bool = False) -> CSRGraph:
    """Read a graph file of any format into sorted neighbour lists; see `read`."""
    graph = read(path, directed)
    return CSRGraph.from_edge_source(graph) if isinstance(graph, EdgeList) else graph


def read(path: str | os.PathLike[str], directed: bool = False) -> EdgeList | CSRGraph:
    """Read a graph file; the end of its name tells the format.

    Parameters
    ----------
    path : path
        See the table at the head of this module.
    directed : bool
        Whether edges are directed. For edge lists and general matrices this argument decides. An
        undirected file read as directed gives every edge both ways. A directed `.sg` or `.hbg`
        file read as undirected gets the reverse edges added.

    Returns
    -------
    EdgeList or CSRGraph
        Edges from text, with src and dst uint32 of shape (num_edges,); neighbour lists from `.sg`
        and `.hbg`. The arrays of an `.hbg` file are read-only. A file of 64 MiB or more is mapped:
        do not truncate it while the graph is in use (see `hbg.read_hbg`).

    Raises
    ------
    GraphFileError
        A file is missing, truncated or malformed; the message names file and line or byte offset.
    """
    check_type("path", path, (str, os.PathLike), "the name of a graph file")
    check_flag("directed", directed)
    path = Path(path)
    return _READERS[_suffix(path, list(_READERS), reading=True)](path, directed)


def vertices_by_header(path: Path) -> int | None:
    """Return the number of vertices in a file's header; None for a format without it.

    Raises
    ------
    GraphFileError
        As for `read`, for errors up to the end of the header.
    """
    suffix = _suffix(path, list(_READERS), reading=True)
    if suffix == ".mtx":
        return text_formats.matrix_market_size(path)
    if suffix == ".hbg":
        return hbg_size(path)
    if suffix != ".sg":
        return None
    with opened(path) as handle:
        return _read_sg_header(handle, path)[1]


def write(graph: EdgeList | CSRGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph in the format given by the end of the name; see `read`.

    Text formats hold the edges of an `EdgeList` in their order, those of a `CSRGraph` without loops
    and duplicates, and an undirected edge once. The file appears under its name only when complete.

    Raises
    ------
    GraphFileError
        Unknown ending, too many vertices for `.sg`, failures of the system. An existing file of
        that name then stays unchanged.
    """
    path = Path(path)
    suffix = _suffix(path, list(_WRITERS), reading=False)
    if suffix in (".sg", ".hbg") and isinstance(graph, EdgeList):
        graph = CSRGraph.from_edge_source(graph)
    if suffix == ".sg" and graph.num_vertices > _SG_MAX_VERTICES:
        raise GraphFileError(
            f"{path}: {graph.num_vertices} vertices; .sg has 31-bit ids and holds up to "
            f"{_SG_MAX_VERTICES}: write .hbg"
        )
    with replacing(path, "wb", GraphFileError) as stream:
        if path.suffix.lower() == ".gz":
            import gzip

            with gzip.GzipFile("", "wb", 6, stream, mtime=0) as handle:
                _WRITERS[suffix](graph, handle)
        else:
            _WRITERS[suffix](graph, stream)


def _suffix(path: Path, known: list[str], reading: bool) -> str:
    zipped = path.suffix.lower() == ".gz"
    suffix = (path.with_suffix("") if zipped else path).suffix.lower()
    if suffix in known and not (zipped and suffix in (".sg", ".hbg")):
        return suffix
    if reading:
        with opened(path):
            pass  # raises a better message for a missing file or a directory
    raise GraphFileError(
        f"{path}: unknown ending {suffix + '.gz' * zipped!r}; known are {', '.join(known)}, "
        "all but .sg and .hbg also with .gz: rename or convert the file"
    )


def _read_serialized(path: Path, directed: bool) -> CSRGraph:
    with opened(path) as handle:
        file_directed, num_vertices, num_stored = _read_sg_header(handle, path)
        indptr = np.fromfile(handle, "<i8", num_vertices + 1)
        indices = np.fromfile(handle, "<u4", num_stored)
    starts = {"indptr": _SG_HEADER.size, "indices": _SG_HEADER.size + indptr.nbytes}
    refuse(path, range_fault(indptr, indices), starts)
    indptr, indices = frozen(indptr), frozen(indices)
    if not file_directed:
        refuse(path, reverse_fault(indptr, indices), starts)
    degree = frozen(np.diff(indptr).astype(np.uint32))
    if (directed or not file_directed) and order_fault(indptr, indices) is None:
        num_input_edges = num_stored if directed else num_stored // 2
        return CSRGraph.trusted(indptr, indices, directed, num_input_edges, degree)
    rows = np.repeat(np.arange(num_vertices, dtype=np.uint32), degree)
    if not (directed or file_directed):
        once = rows <= indices
        rows, indices = rows[once], indices[once]
    return CSRGraph.from_edge_source(EdgeList.trusted(rows, indices, num_vertices, directed))


def _read_sg_header(handle: BufferedIOBase, path: Path) -> tuple[bool, int, int]:
    """Return directed, number of vertices, number of stored edges."""
    num_bytes = os.fstat(handle.fileno()).st_size
    if num_bytes < _SG_HEADER.size:
        raise GraphFileError(
            f"{path}: {num_bytes} bytes; an .sg header has {_SG_HEADER.size}: write the file again"
        )
    flag, num_stored, num_vertices = _SG_HEADER.unpack(handle.read(_SG_HEADER.size))
    if flag > 1 or num_stored < 0 or not 0 <= num_vertices <= _SG_MAX_VERTICES:
        raise GraphFileError(
            f"{path}: byte 0: directed = {flag}, {num_stored} edges, {num_vertices} vertices; not "
            "an .sg file (GAP's converter writes one with -b)"
        )
    expected = 8 * (num_vertices + 1) + 4 * num_stored
    check_size(path, num_bytes, _SG_HEADER.size + (2 if flag else 1) * expected)
    return bool(flag), num_vertices, num_stored


def _write_serialized(graph: CSRGraph, handle: BufferedIOBase) -> None:
    header = _SG_HEADER.pack(graph.directed, graph.num_stored_edges, graph.num_vertices)
    handle.write(header)
    for lists in (graph, graph.transpose) if graph.directed else (graph,):
        lists.indptr.astype("<i8", copy=False).tofile(handle)
        lists.indices.astype("<u4", copy=False).tofile(handle)


_TEXT = (".txt", ".el", ".tsv")
_READERS: dict[str, Callable[[Path, bool], EdgeList | CSRGraph]] = {
    **dict.fromkeys((*_TEXT, ".wel"), text_formats.read_edge_list),
    ".mtx": text_formats.read_matrix_market,
    ".sg": _read_serialized,
    ".hbg": read_hbg,
}
_WRITERS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(_TEXT, text_formats.write_edge_list),
    ".mtx": text_formats.write_matrix_market,
    ".sg": _write_serialized,
    ".hbg": write_hbg,
}
