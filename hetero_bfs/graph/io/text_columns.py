"""Columns of text files: two vertex ids, and a weight on request.

Compiled code parses a file in blocks (file_kernels.py). If a line is unusual, the file is parsed
again line by line. That finds the first bad line, or reads a rare valid form such as a sign before
an id.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.io.graph_files import LONGEST_LINE_BYTES, GraphFile, Line, lines
from hetero_bfs.graph.list_checks import MAX_VERTICES
from hetero_bfs.graph.weights import WeightArray
from hetero_bfs.support.memory import GIB, free_bytes
from hetero_bfs.support.messages import setting

if TYPE_CHECKING:
    from io import BufferedIOBase

Numbers = Literal["any", "integer", "real"]
"""The numbers that weights may be; "real" gives float64 even if all are integers."""

_LIMIT = "the 32-bit limit: renumber the vertices without gaps,"
_BYTES_PER_VERTEX = 40  # rough bytes per vertex of a search's arrays
_BLOCK_BYTES = 1 << 22
_BYTES_PER_PAIR = 8
_BYTES_PER_WEIGHT = 8
_LINES_PER_CHECK = 1 << 20
_ID = re.compile(r"[+-]?[0-9]{1,99}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity)",
    re.ASCII | re.IGNORECASE,
)
_INT32 = np.iinfo(np.int32)

Row = tuple[npt.NDArray[Any], ...]
"""Arrays of equal length: src, dst, and weights on request."""


@dataclass(frozen=True)
class Ids:
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


def ids_that_fit() -> Ids:
    """Limit ids to 32 bits, and to vertex arrays that fit into memory."""
    available = free_bytes()
    if available // _BYTES_PER_VERTEX < MAX_VERTICES:
        remedy = (
            f"as much as {available / GIB:.1f} GiB of available memory hold at "
            f"{_BYTES_PER_VERTEX} bytes per vertex: renumber the vertices without gaps, "
            f"by {setting('renumber')}"
        )
        return Ids(0, available // _BYTES_PER_VERTEX - 1, remedy)
    return Ids(0, MAX_VERTICES - 1, f"{_LIMIT} by {setting('renumber')}")


class Columns(NamedTuple):
    """The columns of a file, and the number of its lines that have them.

    The lowest id is subtracted from all ids. The arrays are empty if there are more lines than
    wanted.
    """

    num_lines: int
    src: VertexArray
    dst: VertexArray
    weights: WeightArray | None = None


def is_comment(line: Line) -> bool:
    return line.text.decode("utf-8", "replace").strip()[:1] in ("", "#", "%")


def read_columns(
    handle: BufferedIOBase,
    file: GraphFile,
    skipped: int,
    ids: Ids,
    numbers: Numbers | None,
    wanted: int | None = None,
    mark: str = "",
) -> Columns:
    """Read the edges of a file after its first `skipped` lines.

    With `mark`, a letter, it precedes each edge, and lines that begin with `c` are comments. If
    there are more lines than `wanted`, none is kept: a small compressed file may hold very many.
    The weights are int32 if each is written as an integer within int32, and float64 otherwise;
    without `numbers` there are none.
    """
    columns = _fast_columns(handle, file, ids, numbers, wanted, mark)
    if columns is None:
        columns = _slow_columns(file, skipped, ids, numbers, wanted, mark)
    if numbers == "real" and columns.weights is not None:
        return columns._replace(weights=columns.weights.astype(np.float64))
    return columns


def write_columns(handle: BufferedIOBase, separator: str, *columns: npt.NDArray[Any]) -> None:
    """Write lines; a float gets the digits that reproduce its float64 exactly."""
    import pandas

    wide = (c.astype(np.float64) if c.dtype.kind == "f" else c for c in columns)
    frame = pandas.DataFrame(dict(enumerate(wide)))
    text = frame.to_csv(sep=separator, header=False, index=False, lineterminator="\n")
    handle.write(text.encode())


def _fast_columns(
    handle: BufferedIOBase,
    file: GraphFile,
    ids: Ids,
    numbers: Numbers | None,
    wanted: int | None,
    mark: str,
) -> Columns | None:
    """Parse with compiled code; None at the first unusual line."""
    none: Row = (np.empty(0, np.uint32), np.empty(0, np.uint32))
    if numbers is not None:
        none = *none, np.empty(0, np.int32)
    parts, total = [none], 0
    for block in blocks_of_lines(handle):
        limits = LONGEST_LINE_BYTES, ord(mark or "\0"), ids.lowest, ids.highest
        rows = (
            _pairs_of(block, limits)
            if numbers is None
            else _weighted_rows_of(block, limits, numbers)
        )
        if rows is None:
            return None
        total += rows[0].size
        if wanted is not None and total > wanted:
            parts = [none]
            continue
        check_room(file, total, numbers)
        parts.append(tuple(column.copy() for column in rows))
    return Columns(total, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _pairs_of(block: bytes, limits: tuple[int, ...]) -> Row | None:
    from hetero_bfs.graph.io.file_kernels import SHORTEST_LINE, parse_pairs

    text = np.frombuffer(block, np.uint8)
    src, dst = np.empty((2, text.size // SHORTEST_LINE), np.uint32)
    count = parse_pairs(text, *limits, src, dst)
    return None if count < 0 else (src[:count], dst[:count])


def _weighted_rows_of(block: bytes, limits: tuple[int, ...], numbers: Numbers) -> Row | None:
    from hetero_bfs.graph.io.file_kernels import SHORTEST_WEIGHTED_LINE, parse_weighted

    text = np.frombuffer(block, np.uint8)
    most = text.size // SHORTEST_WEIGHTED_LINE
    src, dst = np.empty((2, most), np.uint32)
    weights, hard = np.empty(most), np.empty((most, 3), np.int64)
    count, num_hard, whole = parse_weighted(text, *limits, src, dst, weights, hard)
    if count < 0 or (numbers == "integer" and not whole):
        return None
    of_line, begin, end = hard[:num_hard].T.tolist()
    weights[of_line] = [float(block[i:j]) for i, j in zip(begin, end, strict=True)]
    src, dst, weights = src[:count], dst[:count], weights[:count]
    if np.isinf(weights).any():
        return None
    return src, dst, weights.astype(np.int32) if whole else weights


def check_room(file: GraphFile, num_lines: int, numbers: Numbers | None) -> None:
    """Raise `GraphFileError` if memory is too small for a joined copy of the edges."""
    free = free_bytes()
    each = _BYTES_PER_PAIR + (0 if numbers is None else _BYTES_PER_WEIGHT)
    if num_lines * each > free:
        raise GraphFileError(
            f"{file}: holds {num_lines} edges or more; to join them takes {each} bytes "
            f"each, and {free / GIB:.1f} GiB of memory are free: use a machine with more"
        )


def blocks_of_lines(handle: BufferedIOBase) -> Iterator[bytes]:
    """Yield the rest of a file in blocks of whole lines; stop at a line that is too long.

    Where only CR ends many lines, it is replaced by LF.
    """
    rest = b""
    while len(rest) <= LONGEST_LINE_BYTES and (block := handle.read(_BLOCK_BYTES)):
        while block.endswith(b"\r") and (more := handle.read(1)):
            block += more  # a newline may follow
        whole, newline, rest = (rest + block).rpartition(b"\n")
        yield whole + newline
        if len(rest) > LONGEST_LINE_BYTES and b"\r" in rest:
            whole, newline, rest = rest.replace(b"\r", b"\n").rpartition(b"\n")
            yield whole + newline
    if rest:
        yield rest + b"\n"


def _slow_columns(
    file: GraphFile,
    skipped: int,
    ids: Ids,
    numbers: Numbers | None,
    wanted: int | None,
    mark: str,
) -> Columns:
    """Parse line by line; raise for the first bad line."""
    codes = "II" if numbers is None else "IId"
    columns: list[array[Any]] = [array(code) for code in codes]
    count, whole = 0, True
    with file.opened() as handle:
        for line in lines(handle, file):
            text = line.text.decode("utf-8", "replace")
            fields = re.split("[#%]", text, maxsplit=1)[0].split()
            if line.number <= skipped or not fields:
                continue
            where = f"{file}:{line.number}"
            if mark:
                if fields[0].startswith("c"):
                    continue
                fields = _without_mark(fields, mark, where)
            row: tuple[float, ...] = parse_pair(fields, ids, where)
            if numbers is not None:
                row = *row, parse_weight(fields, numbers, where)
                whole = whole and _is_int32(fields[2], row[2])
            count += 1
            if wanted is not None and count > wanted:
                columns = [array(code) for code in codes]
                continue
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            if count % _LINES_PER_CHECK == 0:
                check_room(file, count, numbers)
    dtypes = np.uint32, np.uint32, np.int32 if whole else np.float64
    arrays: list[npt.NDArray[Any]] = [np.array(c, t) for c, t in zip(columns, dtypes, strict=False)]
    return Columns(count, *arrays)


def _without_mark(fields: list[str], mark: str, where: str) -> list[str]:
    if fields[0] != mark or len(fields) == 1:
        raise GraphFileError(
            f"{where}: {' '.join(fields)[:80]!r} is not an edge; expected {mark!r} and two vertex "
            "ids, or a comment that begins with 'c'"
        )
    return fields[1:]


def parse_pair(fields: list[str], ids: Ids, where: str) -> tuple[int, int]:
    if len(fields) < 2:
        raise GraphFileError(
            f"{where}: only one column, {''.join(fields)[:80]!r}; expected two integers "
            "separated by white space, or by commas in all lines"
        )
    for field in fields[:2]:
        if not _ID.fullmatch(field):
            raise GraphFileError(
                f"{where}: {field[:80]!r} is not a vertex id; expected two integers, or "
                f"{setting('renumber')} for names"
            )
        ids.check(int(field), where)
    return int(fields[0]) - ids.lowest, int(fields[1]) - ids.lowest


def parse_weight(fields: list[str], numbers: Numbers, where: str) -> float:
    if len(fields) == 2:
        raise GraphFileError(
            f"{where}: only two columns, {' '.join(fields)[:80]!r}; write the edge's weight as "
            f"the third, or read it without weights"
        )
    field = fields[2]
    if not _NUMBER.fullmatch(field):
        raise GraphFileError(
            f"{where}: {field[:80]!r} is not a weight; expected a number such as 3, -2.5 or 1e-9"
        )
    if numbers == "integer" and not _INTEGER.fullmatch(field):
        raise GraphFileError(
            f"{where}: weight {field[:80]!r} is not an integer, which line 1 says it is; correct "
            "the number, or write real into line 1"
        )
    value = float(field)
    if math.isinf(value) and "n" not in field.lower():
        raise GraphFileError(
            f"{where}: weight {field[:80]!r} is beyond float64, whose largest number is 1.8e308; "
            "write a smaller one, or inf"
        )
    return value


def _is_int32(field: str, value: float) -> bool:
    return _INTEGER.fullmatch(field) is not None and _INT32.min <= value <= _INT32.max
