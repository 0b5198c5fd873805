"""Matrix Market files.

Format: Boisvert, Pozo, Remington, NISTIR 5935 (1996). SciPy reads files of kind `array`, which have
every entry. Files of networkrepository.com may begin with one `%`, or lack the first line or the
size line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import GraphFile, Line, Wanted, lines
from hetero_bfs.graph.io.text_columns import (
    Columns,
    Ids,
    Numbers,
    ids_that_fit,
    is_comment,
    read_columns,
    write_columns,
)
from hetero_bfs.graph.tables import edges_once
from hetero_bfs.graph.weights import WeightArray, as_weights, weight_dtype_of
from hetero_bfs.support.messages import setting

if TYPE_CHECKING:
    from io import BufferedIOBase

_HEADER = re.compile(
    rb"%%?MatrixMarket\s+matrix\s+(coordinate|array)"
    rb"\s+(pattern|real|integer|unsigned-integer|double|complex)"
    rb"\s+(general|symmetric|skew-symmetric|hermitian)\s*",
    re.IGNORECASE,
)
_INT32_MIN = np.iinfo(np.int32).min


class _Head(NamedTuple):
    """Values of the first line and of the size line; `size_line` is the last line before entries.

    The sizes are None if there is no size line.
    """

    kind: str
    field: str
    symmetry: str
    num_vertices: int | None
    num_entries: int | None
    size_line: int


def read_matrix_market(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read a square Matrix Market file: entry (i, j) is the edge i - 1 -> j - 1.

    Each entry of a symmetric, skew-symmetric or hermitian file is one undirected edge. With
    `directed=True` it is one edge in each direction. An entry of value zero is an edge too, except
    in an array, which has all entries. Without a size line the largest index is the number of
    vertices. In a skew-symmetric matrix the weight of j -> i is the negative weight of i -> j.
    """
    directed, weighted = wanted.directed, wanted.weighted
    with file.opened() as handle:
        head = _read_head(handle, file)
        numbers = _numbers_of(head, file, directed) if weighted else None
        if head.kind == "array":
            columns = _entries_of_array(file, head, numbers)
        else:
            ids = _ids_of(head)
            columns = read_columns(handle, file, head.size_line, ids, numbers, head.num_entries)
    count, src, dst, weights = columns
    if head.num_entries is not None and count != head.num_entries:
        raise GraphFileError(
            f"{file}:{head.size_line}: the size line says {head.num_entries} entries, but the file "
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
    num_vertices = head.num_vertices
    if num_vertices is None:
        num_vertices = int(max(src.max(), dst.max())) + 1 if src.size else 0
    return EdgeList.trusted(src, dst, num_vertices, directed, weights)


def _ids_of(head: _Head) -> Ids:
    if head.num_vertices is None:
        fit = ids_that_fit()
        return Ids(1, fit.highest + 1, fit.remedy)
    remedy = f"the size on line {head.size_line}; correct the index or the size"
    return Ids(1, head.num_vertices, remedy)


def _entries_of_array(file: GraphFile, head: _Head, numbers: Numbers | None) -> Columns:
    """Return the entries other than zero; of a symmetric matrix those on and below the diagonal."""
    from scipy.io import mmread

    with file.opened() as handle:
        try:
            matrix = np.asarray(mmread(handle))
        except (ValueError, OverflowError, EOFError, TypeError, IndexError) as error:
            reason = " ".join(str(error).split())[:200]
            raise GraphFileError(
                f"{file}:{head.size_line}: is not an array that SciPy reads ({reason}); "
                "correct the file"
            ) from None
    src, dst = np.nonzero(matrix if head.symmetry == "general" else np.tril(matrix))
    weights = None
    if numbers is not None:
        weights = as_weights(matrix[src, dst])
        if np.isnan(weights).any():
            raise GraphFileError(f"{file}:{head.size_line}: the array has a NaN; give numbers")
    return Columns(src.size, src.astype(np.uint32), dst.astype(np.uint32), weights)


def matrix_market_size(file: GraphFile) -> int | None:
    with file.opened() as handle:
        return _read_head(handle, file).num_vertices


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


def _numbers_of(head: _Head, file: GraphFile, directed: bool) -> Numbers:
    """Return the kind of the weights; raise `GraphFileError` if the matrix has no usable ones."""
    without = "read it without weights"
    if head.field == "values":
        return "any"
    if head.field in ("pattern", "complex"):
        held = {
            "pattern": "no values to be weights",
            "complex": "complex values, which are not weights",
        }[head.field]
        raise GraphFileError(
            f"{file}:1: a {head.field} matrix has {held}; give a real or integer one, or {without}"
        )
    if head.symmetry == "skew-symmetric" and not directed:
        raise GraphFileError(
            f"{file}:1: in a skew-symmetric matrix the two directions of an edge have weights of "
            f"unlike sign; read it with {setting('directed')}, or {without}"
        )
    return "integer" if head.field.endswith("integer") else "real"


def _mirrored(weights: WeightArray, symmetry: str) -> WeightArray:
    if symmetry != "skew-symmetric":
        return weights
    if weights.dtype == np.int32 and (weights == _INT32_MIN).any():
        weights = weights.astype(np.float64)  # int32 cannot hold its negative
    return -weights


def _read_first(line: bytes, file: GraphFile) -> list[str]:
    match = _HEADER.fullmatch(line)
    if match is None:
        shown = line[:80].decode("utf-8", "replace").strip()
        raise GraphFileError(
            f"{file}:1: the first line is {shown!r}; expected '%%MatrixMarket matrix coordinate' "
            "(or array) with pattern, real, integer, unsigned-integer or complex and general, "
            "symmetric, skew-symmetric or hermitian"
        )
    return [word.decode().lower() for word in match.groups()]


def _read_head(handle: BufferedIOBase, file: GraphFile) -> _Head:
    """Parse first line and size line, and leave the handle at the line after them."""
    reader = lines(handle, file)
    last = next(reader, Line(1, 0, b""))
    if b"matrix" in last.text.lower() or not re.match(rb"\s*[%0-9]", last.text):
        kind, field, symmetry = _read_first(last.text, file)
        last = next(reader, Line(2, 0, b""))
    else:
        kind, field, symmetry = "coordinate", "values", "general"
    while is_comment(last) and (following := next(reader, None)) is not None:
        last = following
    if is_comment(last):
        last = Line(last.number + bool(last.text), 0, b"")
    entry = last.text.split()
    if kind == "coordinate" and len(entry) == 2 and all(word.isdigit() for word in entry):
        handle.seek(last.start)
        return _Head(kind, field, symmetry, None, None, last.number - 1)
    num_vertices, num_entries = _parse_size(last, kind, file)
    for line in reader:
        handle.seek(line.start)
        break
    return _Head(kind, field, symmetry, num_vertices, num_entries, last.number)


def _parse_size(line: Line, kind: str, file: GraphFile) -> tuple[int, int | None]:
    """Return the numbers of vertices and of entries; that of an array is None."""
    where = f"{file}:{line.number}"
    text = line.text.decode("utf-8", "replace").strip()
    expected = "rows columns" + " entries" * (kind == "coordinate")
    words = text.split()
    if len(words) != len(expected.split()) or not all(
        re.fullmatch("[0-9]{1,20}", w) for w in words
    ):
        raise GraphFileError(f"{where}: the size line is {text[:80]!r}; expected '{expected}'")
    rows, columns, *entries = map(int, words)
    if rows != columns:
        raise GraphFileError(
            f"{where}: the matrix is {rows} x {columns}; an adjacency matrix must be square"
        )
    if rows > 0:
        ids_that_fit().check_count(rows, where)
    return rows, entries[0] if entries else None
