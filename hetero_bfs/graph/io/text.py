"""Graphs as text: SNAP-style edge lists and Matrix Market coordinate files, plain or gzipped.

A file is parsed in blocks by compiled code (text_kernels.py). If a line is unusual, the file is
parsed again line by line. This finds the first bad line, and reads rare but valid forms such as a
sign before an id.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph, EdgeList
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.io.graph_files import opened
from hetero_bfs.graph.io.text_lines import LONGEST_LINE_BYTES, Line, lines
from hetero_bfs.graph.list_checks import MAX_VERTICES
from hetero_bfs.support.memory import GIB, free_bytes

if TYPE_CHECKING:
    from io import BufferedIOBase

_BYTES_PER_VERTEX = 40  # about the size of all arrays of a search
_BLOCK_BYTES = 1 << 22
_BYTES_PER_PAIR = 8
_PAIRS_PER_CHECK = 1 << 20
_INTEGER = re.compile(r"[+-]?[0-9]{1,99}")
_MTX_HEADER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+coordinate\s+(pattern|real|integer|double|complex)"
    rb"\s+(general|symmetric|skew-symmetric|hermitian)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Ids:
    """The range of a file's vertex ids, and the remedy for a larger one."""

    lowest: int
    highest: int
    remedy: str

    def check(self, value: int, where: str) -> None:
        if value < self.lowest:
            raise GraphFileError(f"{where}: vertex id {value}; ids start at {self.lowest}")
        if value > self.highest:
            raise GraphFileError(
                f"{where}: vertex id {value} is above {self.highest}, {self.remedy}"
            )

    def check_count(self, num_vertices: int, where: str) -> None:
        if num_vertices - 1 > self.highest:
            raise GraphFileError(
                f"{where}: {num_vertices} vertices; at most {self.highest + 1}, {self.remedy}"
            )


class _Pairs(NamedTuple):
    """The first two columns, less the lowest id, and the number of lines.

    The arrays are empty if there are more lines than wanted.
    """

    num_lines: int
    src: VertexArray
    dst: VertexArray


class _Head(NamedTuple):
    """The counts in the comments above the first edge; None for a missing one."""

    lines: int
    num_vertices: int | None
    num_edges: int | None
    vertices_line: int
    edges_line: int


def read_edge_list(path: Path, directed: bool) -> EdgeList:
    """Read lines of two vertex ids: the format of SNAP and of GAP's .el and .wel.

    Lines that begin with `#` or `%` are comments. Columns after the second are ignored. The number
    of vertices is the largest id plus 1, or V of a header `# Nodes: V Edges: E` if V is larger. V
    is only a minimum, since SNAP's files have gaps in their ids and count only used ones. E is the
    least number of edge lines. Ids that no line names are isolated vertices.

    Raises
    ------
    GraphFileError
        A line is not two ids; an id or V is above the 32-bit limit or too large for this machine's
        memory; there are fewer lines than E; the file is empty; or gzip data are damaged.
    """
    with opened(path) as handle:
        head = _read_head(handle, path)
        ids = _ids_that_fit()
        if head.num_vertices:
            ids.check_count(head.num_vertices, f"{path}:{head.vertices_line}")
        pairs = _fast_pairs(handle, path, ids)
    if pairs is None:
        pairs = _slow_pairs(path, head.lines, ids)
    num_lines = pairs.num_lines
    if head.num_edges is not None and num_lines < head.num_edges:
        raise GraphFileError(
            f"{path}:{head.edges_line}: the header says Edges: {head.num_edges}, but the file "
            f"holds {num_lines} edge lines; it is truncated: fetch it again or correct the header"
        )
    if num_lines == 0 and head.num_vertices is None:
        raise GraphFileError(
            f"{path}: holds no edges after {head.lines} lines; write 'source target' lines, or a "
            "header '# Nodes: V Edges: 0' for a graph without edges"
        )
    num_vertices = head.num_vertices or 0
    if num_lines > 0:
        num_vertices = max(num_vertices, int(max(pairs.src.max(), pairs.dst.max())) + 1)
    return EdgeList.trusted(pairs.src, pairs.dst, num_vertices, directed)


def read_matrix_market(path: Path, directed: bool) -> EdgeList:
    """Read a square Matrix Market coordinate file: entry (i, j) is the edge i - 1 -> j - 1.

    Only the structure counts: values, zeros too, are ignored. Each entry of a symmetric (or
    skew-symmetric, hermitian) file is one undirected edge, or with `directed=True` one edge each
    way. Format: Boisvert, Pozo, Remington, NISTIR 5935 (1996).

    Raises
    ------
    GraphFileError
        The header is another one, the matrix is not square, an index is outside it, the number of
        entries differs from the size line's, or gzip data are damaged.
    """
    with opened(path) as handle:
        symmetric, num_vertices, num_entries, size_line = _read_mtx_head(handle, path)
        remedy = f"the size on line {size_line}; correct the index or the size"
        ids = _Ids(1, num_vertices, remedy)
        pairs = _fast_pairs(handle, path, ids, num_entries)
    if pairs is None:
        pairs = _slow_pairs(path, size_line, ids, num_entries)
    count, src, dst = pairs
    if count != num_entries:
        raise GraphFileError(
            f"{path}:{size_line}: the size line says {num_entries} entries, but the file holds "
            f"{count}; fetch it again or correct the size line"
        )
    if symmetric and directed:
        off_diagonal = src != dst
        src, dst = (
            np.concatenate([src, dst[off_diagonal]]),
            np.concatenate([dst, src[off_diagonal]]),
        )
    return EdgeList.trusted(src, dst, num_vertices, directed)


def matrix_market_size(path: Path) -> int:
    """Return the number of vertices that a Matrix Market file's size line gives."""
    with opened(path) as handle:
        return _read_mtx_head(handle, path)[1]


def write_edge_list(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    """Write `src<TAB>dst` lines below a `# Nodes: V Edges: E` header, an undirected edge once."""
    kind = "Directed" if graph.directed else "Undirected"
    num_lines = sum(src.size for src, _ in _edges_once(graph))
    head = f"# {kind} graph\n# Nodes: {graph.num_vertices} Edges: {num_lines}\n"
    handle.write(f"{head}# FromNodeId\tToNodeId\n".encode())
    for src, dst in _edges_once(graph):
        _write_columns(handle, "\t", src, dst)


def write_matrix_market(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    """Write a pattern matrix: general if directed, else symmetric (the lower triangle)."""
    num_entries = sum(src.size for src, _ in _edges_once(graph))
    kind = "general" if graph.directed else "symmetric"
    size = f"{graph.num_vertices} {graph.num_vertices} {num_entries}"
    handle.write(f"%%MatrixMarket matrix coordinate pattern {kind}\n{size}\n".encode())
    for src, dst in _edges_once(graph):
        row, column = (src, dst) if graph.directed else (np.maximum(src, dst), np.minimum(src, dst))
        _write_columns(handle, " ", row.astype(np.int64) + 1, column.astype(np.int64) + 1)


def _is_comment(line: Line) -> bool:
    """Tell whether a line is blank or a comment."""
    return line.text.decode("utf-8", "replace").strip()[:1] in ("", "#", "%")


def _read_head(handle: BufferedIOBase, path: Path) -> _Head:
    """Read the comments above the first edge; leave the handle before that."""
    found: dict[str, tuple[int, int]] = {}
    count = 0
    for line in lines(handle, path):
        if not _is_comment(line):
            handle.seek(line.start)
            break
        count, text = line.number, line.text.lower()
        if count == 1 and text.startswith(b"%%matrixmarket"):
            raise GraphFileError(
                f"{path}:1: this is a Matrix Market file; rename it to end in .mtx"
            )
        for key in ("nodes", "edges"):
            match = re.search(rf"\b{key}:\s*(\d{{1,20}})".encode(), text)
            if match and key not in found:
                found[key] = int(match[1]), count
    num_vertices, vertices_line = found.get("nodes", (None, 0))
    num_edges, edges_line = found.get("edges", (None, 0))
    return _Head(count, num_vertices, num_edges, vertices_line, edges_line)


def _ids_that_fit() -> _Ids:
    """Limit the ids to 32 bits and to vertex arrays that fit into memory."""
    available = free_bytes()
    if available // _BYTES_PER_VERTEX < MAX_VERTICES:
        remedy = (
            f"as much as {available / GIB:.1f} GiB of available memory hold at "
            f"{_BYTES_PER_VERTEX} bytes per vertex: renumber the vertices without gaps"
        )
        return _Ids(0, available // _BYTES_PER_VERTEX - 1, remedy)
    return _Ids(0, MAX_VERTICES - 1, "the 32-bit limit: renumber the vertices without gaps")


def _read_mtx_header(line: bytes, path: Path) -> bool:
    """Check the first line; return whether each entry stands for both directions."""
    match = _MTX_HEADER.fullmatch(line)
    if match is None:
        shown = line[:80].decode("utf-8", "replace").strip()
        raise GraphFileError(
            f"{path}:1: the first line is {shown!r}; expected '%%MatrixMarket matrix coordinate' "
            "with pattern, real, integer or complex and general, symmetric, skew-symmetric or "
            "hermitian"
        )
    return match[2].lower() != b"general"


def _read_mtx_head(handle: BufferedIOBase, path: Path) -> tuple[bool, int, int, int]:
    """Read header and size line, and leave the handle behind them.

    Return whether entries stand for both directions, the number of vertices, the number of entries,
    and the line number of the size line.
    """
    reader = lines(handle, path)
    last = next(reader, Line(1, 0, b""))
    symmetric = _read_mtx_header(last.text, path)
    size = None
    for last in reader:
        if not _is_comment(last):
            size = last
            break
    if size is None:
        size = Line(last.number + 1, 0, b"")
    num_vertices, num_entries = _parse_mtx_size(size, path)
    for line in reader:
        handle.seek(line.start)
        break
    return symmetric, num_vertices, num_entries, size.number


def _parse_mtx_size(line: Line, path: Path) -> tuple[int, int]:
    """Return the numbers of vertices and entries."""
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
        _ids_that_fit().check_count(rows, where)
    return rows, entries


def _fast_pairs(
    handle: BufferedIOBase, path: Path, ids: _Ids, wanted: int | None = None
) -> _Pairs | None:
    """Parse by compiled code; return None at the first unusual line.

    If there are more pairs than `wanted`, none are kept: a small compressed file may hold very
    many.
    """
    from hetero_bfs.graph.io.text_kernels import SHORTEST_LINE, parse_pairs

    none = np.empty(0, np.uint32)
    parts, total = [(none, none)], 0
    for block in _blocks_of_lines(handle):
        text = np.frombuffer(block, np.uint8)
        src, dst = np.empty((2, text.size // SHORTEST_LINE), np.uint32)
        count = parse_pairs(text, LONGEST_LINE_BYTES, ids.lowest, ids.highest, src, dst)
        if count < 0:
            return None
        total += count
        if wanted is not None and total > wanted:
            parts = [(none, none)]
            continue
        _check_room(path, total)
        parts.append((src[:count].copy(), dst[:count].copy()))
    return _Pairs(total, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _check_room(path: Path, num_pairs: int) -> None:
    """Check that memory has room to join these pairs, which it already holds in parts."""
    free = free_bytes()
    if num_pairs * _BYTES_PER_PAIR > free:
        raise GraphFileError(
            f"{path}: holds {num_pairs} edges or more; to join them takes {_BYTES_PER_PAIR} bytes "
            f"each, and {free / GIB:.1f} GiB of memory are free: use a machine with more"
        )


def _blocks_of_lines(handle: BufferedIOBase) -> Iterator[bytes]:
    """Yield the rest of a file in blocks that end with a newline, up to a line that is too long."""
    rest = b""
    while len(rest) <= LONGEST_LINE_BYTES and (block := handle.read(_BLOCK_BYTES)):
        whole, newline, rest = (rest + block).rpartition(b"\n")
        yield whole + newline
    if rest:
        yield rest + b"\n"


def _slow_pairs(path: Path, skipped: int, ids: _Ids, wanted: int | None = None) -> _Pairs:
    """Parse line by line after `skipped` lines; raise for the first one that is not two ids.

    If there are more pairs than `wanted`, none are kept.
    """
    count, columns = 0, (array("I"), array("I"))
    with opened(path) as handle:
        for line in lines(handle, path):
            text = line.text.decode("utf-8", "replace")
            fields = re.split("[#%]", text, maxsplit=1)[0].split()
            if line.number <= skipped or not fields:
                continue
            pair = _parse_pair(fields, ids, f"{path}:{line.number}")
            count += 1
            if wanted is not None and count > wanted:
                columns = array("I"), array("I")
                continue
            for column, value in zip(columns, pair, strict=True):
                column.append(value)
            if count % _PAIRS_PER_CHECK == 0:
                _check_room(path, count)
    return _Pairs(count, *(np.array(column, dtype=np.uint32) for column in columns))


def _parse_pair(fields: list[str], ids: _Ids, where: str) -> tuple[int, int]:
    """Return the first two fields as ids, less the lowest."""
    if len(fields) == 1:
        raise GraphFileError(
            f"{where}: only one column, {fields[0][:80]!r}; expected two integers "
            "separated by white space"
        )
    for field in fields[:2]:
        if not _INTEGER.fullmatch(field):
            raise GraphFileError(
                f"{where}: {field[:80]!r} is not a vertex id; expected two integers"
            )
        ids.check(int(field), where)
    return int(fields[0]) - ids.lowest, int(fields[1]) - ids.lowest


def _edges_once(graph: EdgeList | CSRGraph) -> Iterator[tuple[VertexArray, VertexArray]]:
    for src, dst in graph.chunks():
        if graph.both_directions:
            keep = src <= dst
            yield src[keep], dst[keep]
        else:
            yield src, dst


def _write_columns(handle: BufferedIOBase, separator: str, *columns: npt.NDArray[Any]) -> None:
    import pandas

    frame = pandas.DataFrame(dict(enumerate(columns)))
    text = frame.to_csv(sep=separator, header=False, index=False, lineterminator="\n")
    handle.write(text.encode())
