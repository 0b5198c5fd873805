"""Matrix Market coordinate files, plain or gzipped.

Format: Boisvert, Pozo, Remington, NISTIR 5935 (1996).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import Line, lines, opened
from hetero_bfs.graph.io.text_columns import (
    Ids,
    Numbers,
    edges_once,
    ids_that_fit,
    is_comment,
    read_columns,
    write_columns,
)
from hetero_bfs.graph.weights import WeightArray, weight_dtype_of
from hetero_bfs.support.messages import setting

if TYPE_CHECKING:
    from io import BufferedIOBase

_HEADER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+coordinate\s+(pattern|real|integer|double|complex)"
    rb"\s+(general|symmetric|skew-symmetric|hermitian)\s*",
    re.IGNORECASE,
)
_INT32_MIN = np.iinfo(np.int32).min


class _Head(NamedTuple):
    """Values of the first line and of the size line."""

    field: str
    symmetry: str
    num_vertices: int
    num_entries: int
    size_line: int


def read_matrix_market(path: Path, directed: bool, weighted: bool) -> EdgeList:
    """Read a square Matrix Market coordinate file: entry (i, j) is the edge i - 1 -> j - 1.

    Each entry of a symmetric, skew-symmetric or hermitian file is one undirected edge. With
    `directed=True` it is one edge in each direction. An entry of value zero is an edge too.

    With `weighted` the values are the weights. A `real` or `double` matrix has float64 weights. An
    `integer` matrix has int32 weights, or float64 if one is beyond int32. In a skew-symmetric
    matrix the weight of j -> i is the negative weight of i -> j.

    Raises `GraphFileError` for an unknown header, a matrix that is not square, indices outside it,
    a number of entries other than the size line's, and damaged gzip data. With `weighted` also for
    a pattern or complex matrix, a skew-symmetric matrix read as undirected, and a value that is not
    a number.
    """
    with opened(path) as handle:
        head = _read_head(handle, path)
        numbers = _numbers_of(head, path, directed) if weighted else None
        remedy = f"the size on line {head.size_line}; correct the index or the size"
        ids = Ids(1, head.num_vertices, remedy)
        columns = read_columns(handle, path, head.size_line, ids, numbers, head.num_entries)
    count, src, dst, weights = columns
    if count != head.num_entries:
        raise GraphFileError(
            f"{path}:{head.size_line}: the size line says {head.num_entries} entries, but the file "
            f"holds {count}; fetch it again or correct the size line"
        )
    if head.symmetry != "general" and directed:
        off_diagonal = src != dst
        if weights is not None:
            mirrored = _mirrored(weights[off_diagonal], head.symmetry)
            weights = np.concatenate([weights, mirrored])
        src, dst = (
            np.concatenate([src, dst[off_diagonal]]),
            np.concatenate([dst, src[off_diagonal]]),
        )
    return EdgeList.trusted(src, dst, head.num_vertices, directed, weights)


def matrix_market_size(path: Path) -> int:
    """Return the number of vertices on the size line."""
    with opened(path) as handle:
        return _read_head(handle, path).num_vertices


def write_matrix_market(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    """Write a general matrix if directed, else a symmetric one (the lower triangle).

    Its field is integer for int32 weights, real for other weights, pattern without weights.
    """
    dtype, field = weight_dtype_of(graph), "pattern"
    if dtype is not None:
        field = "integer" if dtype == np.int32 else "real"
    num_entries = sum(columns[0].size for columns in edges_once(graph))
    kind = "general" if graph.directed else "symmetric"
    size = f"{graph.num_vertices} {graph.num_vertices} {num_entries}"
    handle.write(f"%%MatrixMarket matrix coordinate {field} {kind}\n{size}\n".encode())
    for src, dst, *weights in edges_once(graph):
        row, column = (src, dst) if graph.directed else (np.maximum(src, dst), np.minimum(src, dst))
        ends = row.astype(np.int64) + 1, column.astype(np.int64) + 1
        write_columns(handle, " ", *ends, *weights)


def _numbers_of(head: _Head, path: Path, directed: bool) -> Numbers:
    """Return the kind of the weights; raise `GraphFileError` if the matrix has no usable ones."""
    without = "read it without weights"
    if head.field in ("pattern", "complex"):
        held = {
            "pattern": "no values to be weights",
            "complex": "complex values, which are not weights",
        }[head.field]
        raise GraphFileError(
            f"{path}:1: a {head.field} matrix has {held}; give a real or integer one, or {without}"
        )
    if head.symmetry == "skew-symmetric" and not directed:
        raise GraphFileError(
            f"{path}:1: in a skew-symmetric matrix the two directions of an edge have weights of "
            f"unlike sign; read it with {setting('directed')}, or {without}"
        )
    return "integer" if head.field == "integer" else "real"


def _mirrored(weights: WeightArray, symmetry: str) -> WeightArray:
    """Return the weights of the entries on the other side of the diagonal."""
    if symmetry != "skew-symmetric":
        return weights
    if weights.dtype == np.int32 and (weights == _INT32_MIN).any():
        weights = weights.astype(np.float64)  # int32 cannot hold its negative
    return -weights


def _read_field_and_symmetry(line: bytes, path: Path) -> tuple[str, str]:
    """Check the first line; return its last two words."""
    match = _HEADER.fullmatch(line)
    if match is None:
        shown = line[:80].decode("utf-8", "replace").strip()
        raise GraphFileError(
            f"{path}:1: the first line is {shown!r}; expected '%%MatrixMarket matrix coordinate' "
            "with pattern, real, integer or complex and general, symmetric, skew-symmetric or "
            "hermitian"
        )
    return match[1].decode().lower(), match[2].decode().lower()


def _read_head(handle: BufferedIOBase, path: Path) -> _Head:
    """Parse first line and size line, and leave the handle at the line after them."""
    reader = lines(handle, path)
    last = next(reader, Line(1, 0, b""))
    field, symmetry = _read_field_and_symmetry(last.text, path)
    size = None
    for last in reader:
        if not is_comment(last):
            size = last
            break
    if size is None:
        size = Line(last.number + 1, 0, b"")
    num_vertices, num_entries = _parse_size(size, path)
    for line in reader:
        handle.seek(line.start)
        break
    return _Head(field, symmetry, num_vertices, num_entries, size.number)


def _parse_size(line: Line, path: Path) -> tuple[int, int]:
    """Return the numbers of vertices and of entries."""
    where = f"{path}:{line.number}"
    text = line.text.decode("utf-8", "replace").strip()
    if not re.fullmatch(r"[0-9]{1,20}\s+[0-9]{1,20}\s+[0-9]{1,20}", text):
        raise GraphFileError(
            f"{where}: the size line is {text[:80]!r}; expected 'rows columns entries'"
        )
    rows, columns, entries = map(int, text.split())
    if rows != columns:
        raise GraphFileError(
            f"{where}: the matrix is {rows} x {columns}; an adjacency matrix must be square"
        )
    if rows > 0:
        ids_that_fit().check_count(rows, where)
    return rows, entries
