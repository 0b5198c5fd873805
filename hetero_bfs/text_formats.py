"""Graphs as text: SNAP-style edge lists and Matrix Market coordinate files, plain or gzipped.

A file is parsed twice at worst: first in blocks, by compiled code (kernels/text.py); if anything at
all is out of the ordinary, once more line by line, which finds the first bad line (or, for a rare
but valid form such as a sign before an id, simply reads on).
"""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph import CSRGraph, EdgeList, VertexArray
from hetero_bfs.graph_checks import MAX_VERTICES

_BYTES_PER_VERTEX = 40  # of all arrays a search keeps, roughly
_BLOCK_BYTES = 1 << 24
_LONGEST_LINE_BYTES = 1 << 16
_INTEGER = re.compile(r"[+-]?[0-9]{1,99}")
_MTX_HEADER = re.compile(
    rb"%%MatrixMarket\s+matrix\s+coordinate\s+(pattern|real|integer|double|complex)"
    rb"\s+(general|symmetric|skew-symmetric|hermitian)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Ids:
    """The vertex ids a file may name, and what to do about a larger one."""

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
    """The first two columns, less the lowest id."""

    src: VertexArray
    dst: VertexArray


class _Head(NamedTuple):
    """What the comments above the first edge say; None where they do not."""

    lines: int
    num_vertices: int | None
    num_edges: int | None
    vertices_line: int
    edges_line: int


def read_edge_list(path: Path, directed: bool) -> EdgeList:
    """Read lines of two vertex ids: the format of SNAP and of GAP's .el and .wel.

    Lines that begin with `#` or `%` are comments, columns after the second are ignored. There are
    as many vertices as the largest id asks for, or as a header `# Nodes: V Edges: E` says if that
    is more: V is a minimum, since the files of SNAP have gaps in their ids and count used ones
    only. E is the least number of edge lines. Ids that no line names are isolated vertices.

    Raises
    ------
    GraphFileError
        Lines that are not two ids, ids or a V above the 32-bit limit or this machine's memory,
        fewer lines than E, nothing in the file; damaged gzip data.
    """
    with opened(path) as handle:
        head = _read_head(handle, path)
        ids = _ids_that_fit()
        if head.num_vertices:
            ids.check_count(head.num_vertices, f"{path}:{head.vertices_line}")
        pairs = _fast_pairs(handle, ids)
    if pairs is None:
        pairs = _slow_pairs(path, head.lines, ids)
    num_lines = pairs.src.size
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
        Another header, a matrix that is not square, indices outside it, more or fewer entries
        than the size line says; damaged gzip data.
    """
    with opened(path) as handle:
        symmetric = _read_mtx_header(handle, path)
        num_vertices, num_entries, size_line = _read_mtx_size(handle, path)
        remedy = f"the size on line {size_line}; correct the index or the size"
        ids = _Ids(1, num_vertices, remedy)
        pairs = _fast_pairs(handle, ids)
    if pairs is None:
        pairs = _slow_pairs(path, size_line, ids)
    src, dst = pairs
    if src.size != num_entries:
        raise GraphFileError(
            f"{path}:{size_line}: the size line says {num_entries} entries, but the file holds "
            f"{src.size}; fetch it again or correct the size line"
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
        _read_mtx_header(handle, path)
        return _read_mtx_size(handle, path)[0]


def write_edge_list(graph: EdgeList | CSRGraph, handle: io.BufferedIOBase) -> None:
    """Write `src<TAB>dst` lines below a `# Nodes: V Edges: E` header, an undirected edge once."""
    kind = "Directed" if graph.directed else "Undirected"
    num_lines = sum(src.size for src, _ in _edges_once(graph))
    head = f"# {kind} graph\n# Nodes: {graph.num_vertices} Edges: {num_lines}\n"
    handle.write(f"{head}# FromNodeId\tToNodeId\n".encode())
    for src, dst in _edges_once(graph):
        _write_columns(handle, "\t", src, dst)


def write_matrix_market(graph: EdgeList | CSRGraph, handle: io.BufferedIOBase) -> None:
    """Write a pattern matrix: general if directed, else symmetric (the lower triangle)."""
    num_entries = sum(src.size for src, _ in _edges_once(graph))
    kind = "general" if graph.directed else "symmetric"
    size = f"{graph.num_vertices} {graph.num_vertices} {num_entries}"
    handle.write(f"%%MatrixMarket matrix coordinate pattern {kind}\n{size}\n".encode())
    for src, dst in _edges_once(graph):
        row, column = (src, dst) if graph.directed else (np.maximum(src, dst), np.minimum(src, dst))
        _write_columns(handle, " ", row.astype(np.int64) + 1, column.astype(np.int64) + 1)


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading, through gzip if its name ends in .gz.

    Failures of the system and of gzip become `GraphFileError`, here and nowhere else.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise GraphFileError(f"{path}: is no regular file, which it must be: save it as one")
        with open(path, "rb") as raw:
            if path.suffix.lower() == ".gz":
                with _unzipped(raw, path) as handle:
                    yield handle
            else:
                yield raw
    except FileNotFoundError:
        raise GraphFileError(f"{path}: no such file; check the name and the directory") from None
    except IsADirectoryError:
        raise GraphFileError(f"{path}: is a directory; name a file in it") from None
    except OSError as error:
        raise GraphFileError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def _unzipped(raw: io.BufferedIOBase, path: Path) -> Iterator[io.BufferedIOBase]:
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=raw, mode="rb") as handle:
            yield handle
    except EOFError:
        raise GraphFileError(
            f"{path}: the gzip data stop at byte {raw.tell()} without their end marker; "
            "the file is truncated: fetch it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise GraphFileError(
            f"{path}: bad gzip data before byte {raw.tell()} ({error}); fetch it again, or take "
            ".gz off its name if it is not compressed"
        ) from error


def _lines_to_first_edge(handle: io.BufferedIOBase, path: Path) -> Iterator[bytes]:
    """Yield blank lines and comments; leave the handle before the first other line."""
    position, number = handle.tell(), 1
    while line := handle.readline(_LONGEST_LINE_BYTES):
        if b"\0" in line or len(line) == _LONGEST_LINE_BYTES:
            raise GraphFileError(
                f"{path}:{number}: holds binary data or a line of over {_LONGEST_LINE_BYTES} bytes "
                f"after byte {position}; a text file is expected: check format and file name"
            )
        text = line.removeprefix(b"\xef\xbb\xbf").strip()  # Windows editors' byte order mark
        if text and not text.startswith((b"#", b"%")):
            handle.seek(position)
            return
        yield text
        position, number = handle.tell(), number + 1


def _read_head(handle: io.BufferedIOBase, path: Path) -> _Head:
    lines = list(_lines_to_first_edge(handle, path))
    if lines and lines[0].lower().startswith(b"%%matrixmarket"):
        raise GraphFileError(f"{path}:1: this is a Matrix Market file; rename it to end in .mtx")
    found: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(lines, 1):
        for key in ("nodes", "edges"):
            match = re.search(rf"\b{key}:\s*(\d{{1,20}})".encode(), line.lower())
            if match and key not in found:
                found[key] = int(match[1]), number
    num_vertices, vertices_line = found.get("nodes", (None, 0))
    num_edges, edges_line = found.get("edges", (None, 0))
    return _Head(len(lines), num_vertices, num_edges, vertices_line, edges_line)


def _ids_that_fit() -> _Ids:
    """Limit the ids to 32 bits and to vertex arrays that fit into memory."""
    import psutil

    available = int(psutil.virtual_memory().available)
    if available // _BYTES_PER_VERTEX < MAX_VERTICES:
        remedy = (
            f"as much as {available / 2**30:.1f} GiB of available memory hold at "
            f"{_BYTES_PER_VERTEX} bytes per vertex: renumber the vertices without gaps"
        )
        return _Ids(0, available // _BYTES_PER_VERTEX - 1, remedy)
    return _Ids(0, MAX_VERTICES - 1, "the 32-bit limit: renumber the vertices without gaps")


def _read_mtx_header(handle: io.BufferedIOBase, path: Path) -> bool:
    """Check the first line; return whether each entry stands for both directions."""
    line = handle.readline(_LONGEST_LINE_BYTES).removeprefix(b"\xef\xbb\xbf")
    match = _MTX_HEADER.fullmatch(line)
    if match is None:
        shown = line[:80].decode("utf-8", "replace").strip()
        raise GraphFileError(
            f"{path}:1: the first line is {shown!r}; expected '%%MatrixMarket matrix coordinate' "
            "with pattern, real, integer or complex and general, symmetric, skew-symmetric or "
            "hermitian"
        )
    return match[2].lower() != b"general"


def _read_mtx_size(handle: io.BufferedIOBase, path: Path) -> tuple[int, int, int]:
    """Return the number of vertices, that of entries and the number of the size line."""
    size_line = 2 + sum(1 for _ in _lines_to_first_edge(handle, path))
    where = f"{path}:{size_line}"
    line = handle.readline(_LONGEST_LINE_BYTES).decode("utf-8", "replace").strip()
    if not re.fullmatch(r"[0-9]{1,20}\s+[0-9]{1,20}\s+[0-9]{1,20}", line):
        raise GraphFileError(
            f"{where}: the size line is {line[:80]!r}; expected 'rows columns entries'"
        )
    rows, columns, entries = map(int, line.split())
    if rows != columns:
        raise GraphFileError(
            f"{where}: the matrix is {rows} x {columns}; an adjacency matrix must be square"
        )
    if rows > 0:
        _ids_that_fit().check_count(rows, where)
    return rows, entries, size_line


def _fast_pairs(handle: io.BufferedIOBase, ids: _Ids) -> _Pairs | None:
    """Parse by compiled code; None as soon as a line is out of the ordinary."""
    from hetero_bfs.kernels.text import SHORTEST_LINE, parse_pairs

    none = np.empty(0, np.uint32)
    parts = [_Pairs(none, none)]
    for block in _blocks_of_lines(handle):
        text = np.frombuffer(block, np.uint8)
        src, dst = np.empty((2, text.size // SHORTEST_LINE), np.uint32)
        count = parse_pairs(text, ids.lowest, ids.highest, src, dst)
        if count < 0:
            return None
        parts.append(_Pairs(src[:count].copy(), dst[:count].copy()))
    return _Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _blocks_of_lines(handle: io.BufferedIOBase) -> Iterator[bytes]:
    """Yield the rest of a file in blocks that end with a newline."""
    rest = b""
    while block := handle.read(_BLOCK_BYTES):
        lines, newline, rest = (rest + block).rpartition(b"\n")
        yield lines + newline
    if rest:
        yield rest + b"\n"


def _slow_pairs(path: Path, skipped: int, ids: _Ids) -> _Pairs:
    """Parse line by line after `skipped` lines; raise for the first that is not two ids."""
    columns = array("I"), array("I")
    with opened(path) as handle:
        text = io.TextIOWrapper(cast("IO[bytes]", handle), encoding="utf-8-sig", errors="replace")
        for number, line in enumerate(text, 1):
            fields = re.split("[#%]", line, maxsplit=1)[0].split()
            if number <= skipped or not fields:
                continue
            where = f"{path}:{number}"
            if len(fields) == 1:
                raise GraphFileError(
                    f"{where}: only one column, {fields[0][:80]!r}; expected two integers "
                    "separated by white space"
                )
            for column, field in zip(columns, fields, strict=False):
                if not _INTEGER.fullmatch(field):
                    raise GraphFileError(
                        f"{where}: {field[:80]!r} is not a vertex id; expected two integers"
                    )
                ids.check(int(field), where)
                column.append(int(field) - ids.lowest)
    return _Pairs(*(np.array(column, dtype=np.uint32) for column in columns))


def _edges_once(graph: EdgeList | CSRGraph) -> Iterator[tuple[VertexArray, VertexArray]]:
    for src, dst in graph.chunks():
        if graph.both_directions:
            keep = src <= dst
            yield src[keep], dst[keep]
        else:
            yield src, dst


def _write_columns(handle: io.BufferedIOBase, separator: str, *columns: npt.NDArray[Any]) -> None:
    import pandas

    frame = pandas.DataFrame(dict(enumerate(columns)))
    text = frame.to_csv(sep=separator, header=False, index=False, lineterminator="\n")
    handle.write(text.encode())
