"""Columns of text files: two vertex ids, and a weight on request.

pandas parses a file in parts. If a part is unusual, the lines of the file are checked one by one:
the first wrong one is named.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.io.graph_files import LONGEST_LINE_BYTES, GraphFile, Line, lines
from hetero_bfs.graph.list_checks import MAX_VERTICES
from hetero_bfs.graph.weights import WeightArray, as_weights
from hetero_bfs.support.memory import GIB, free_bytes
from hetero_bfs.support.messages import setting

if TYPE_CHECKING:
    import pandas

Numbers = Literal["any", "integer", "real"]
"""The numbers that weights may be; "real" gives float64 even if all are integers."""

_LIMIT = "the 32-bit limit: renumber the vertices without gaps,"
_BYTES_PER_VERTEX = 40  # rough bytes per vertex of a search's arrays
_BLOCK_BYTES = 1 << 22
_BYTES_PER_PAIR = 8
_BYTES_PER_WEIGHT = 8
_LINES_AT_ONCE = 1 << 20
BLANK = r"\s+"
_BLANKS = bytes.maketrans(b"\v\f\x1c\x1d\x1e\x1f", b" " * 6)
_OTHER_BLANK = re.compile(r"[^\S \t\r\n]")  # such as a no-break space
_ID = re.compile(r"([+-]?)0*([0-9]{1,99})")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity)",
    re.ASCII | re.IGNORECASE,
)
_COMMENT = re.compile(rb"(?:^|(?<=\r))[ \t]*[#%][^\r\n]*(?:\r\n?|\n|$)", re.MULTILINE)
_COMMENT_AT_END = re.compile(r"[ \t][#%][^\r\n]*")
_BLOCK_COMMENT_AT_END = re.compile(_COMMENT_AT_END.pattern.encode())
_COMMENT_ANYWHERE = re.compile(rb"[#%][^\r\n]*")
_COMMENT_BY_C = re.compile(rb"(?:^|(?<=[\r\n]))[ \t]*c[^\r\n]*")

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


@dataclass(frozen=True)
class Layout:
    """The columns of a text file.

    columns : positions of source, target and, if wanted, weight
    ids : None if vertices have names
    skipped : lines before the first edge
    is_plain : fields have no quotes, and a comment may begin anywhere; only blanks separate fields
    mark : the letter in front of each edge, if any; lines that begin with `c` are comments then
    """

    separator: str
    columns: tuple[int, ...]
    ids: Ids | None
    numbers: Numbers | None
    skipped: int
    is_header: bool = False
    is_plain: bool = False
    mark: str = ""

    def fields(self, line: Line, where: str) -> list[str]:
        """Return a line's source, target and weight; none for a comment."""
        if not self.is_plain:
            row = split(text_of(line), self.separator)
            return [row[i].strip() for i in self.columns if i < len(row)]
        row = [
            field.decode("utf-8", "replace") for field in self.without_comments(line.text).split()
        ]
        if self.mark and row and (row[0] != self.mark or len(row) == 1):
            raise GraphFileError(
                f"{where}: {' '.join(row)[:80]!r} is not an edge; expected {self.mark!r} and two "
                "vertex ids, or a comment that begins with 'c'"
            )
        return row[len(self.mark) :]

    def without_comments(self, text: bytes) -> bytes:
        if self.is_plain:
            text = text.translate(_BLANKS)
            if not text.isascii():
                text = _OTHER_BLANK.sub(" ", text.decode("utf-8", "replace")).encode()
        if self.mark and b"c" in text:
            text = _COMMENT_BY_C.sub(b"", text)
        if b"#" in text or b"%" in text:
            text = (_COMMENT_ANYWHERE if self.is_plain else _COMMENT).sub(b"", text)
            if not self.is_plain and self.separator == BLANK:
                text = _BLOCK_COMMENT_AT_END.sub(b"", text)
        return text


@dataclass
class TextEdges:
    """A file whose edges are being read, and whether its lines were checked one by one."""

    file: GraphFile
    layout: Layout
    is_checked: bool = False

    def check(self) -> None:
        """Check all lines, which takes long, at the first call."""
        if not self.is_checked:
            self.is_checked = True
            check_lines(self.file, self.layout)

    def raise_first_wrong(self, reason: str = "an edge is not as expected") -> NoReturn:
        self.check()
        raise GraphFileError(f"{self.file}: {reason}; correct the file")

    def ids(self, column: Any) -> VertexArray:
        """Return a column of vertices, of a file without names."""
        ids, found = self.layout.ids, column.to_numpy()
        assert ids is not None
        if found.dtype.kind not in "iu" or found.min() < ids.lowest or found.max() > ids.highest:
            self.raise_first_wrong()
        return np.asarray(found - ids.lowest, np.uint32)

    def weights(self, column: Any) -> WeightArray:
        """Return numbers; lines are checked where pandas finds other forms or infinities."""
        kind, numbers = column.dtype.kind, self.layout.numbers
        if kind not in "iu" and (
            kind != "f" or numbers == "integer" or not np.isfinite(column.to_numpy()).all()
        ):
            self.check()
        return as_weights(column.to_numpy() if kind in "iuf" else column.to_numpy(np.float64))


def read_columns(
    handle: io.BufferedIOBase,
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
    first = len(mark)
    positions = (first, first + 1, first + 2)[: 2 if numbers is None else 3]
    layout = Layout(BLANK, positions, ids, numbers, skipped, is_plain=True, mark=mark)
    edges = TextEdges(file, layout)
    dtypes = (np.uint32, np.uint32, np.int32)[: len(positions)]
    parts: list[list[npt.NDArray[Any]]] = [[np.empty(0, dtype) for dtype in dtypes]]
    total = 0
    for frame in frames(handle, edges, {0: "category"} if mark else None):
        if mark and not (frame[0] == mark).all():
            edges.raise_first_wrong()
        columns = [edges.ids(frame[i]) for i in positions[:2]]
        columns += [edges.weights(frame[i]) for i in positions[2:]]
        total += len(frame)
        if wanted is not None and total > wanted:
            parts = parts[:1]
            continue
        check_room(file, total, numbers)
        parts.append(columns)
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if numbers == "real":
        joined[2] = joined[2].astype(np.float64)
    return Columns(total, *joined)


def frames(
    handle: io.BufferedIOBase, edges: TextEdges, dtype: dict[int, Any] | None = None
) -> Iterator[pandas.DataFrame]:
    """Yield the rest of a file in parts, after its header."""
    import pandas

    layout = edges.layout
    options: dict[str, Any] = {}
    if pandas.__version__ < "3":  # later it is the default
        options["float_precision"] = "round_trip"
    first = 0 if layout.mark else min(layout.columns)
    try:
        parts = pandas.read_csv(
            io.BufferedReader(_DataLines(handle, edges), 1 << 20),
            sep=layout.separator,
            header=None,
            names=range(max(layout.columns) + 1),
            usecols=[*{first, *layout.columns}],
            skiprows=int(layout.is_header),
            index_col=False,
            na_filter=False,
            skipinitialspace=True,
            quoting=csv.QUOTE_NONE if layout.is_plain else csv.QUOTE_MINIMAL,
            encoding_errors="replace",
            dtype=dtype,
            chunksize=_LINES_AT_ONCE,
            low_memory=False,
            **options,
        )
        yield from (frame for frame in parts if len(frame))
    except pandas.errors.EmptyDataError:
        return
    except (pandas.errors.ParserError, OverflowError) as error:
        edges.raise_first_wrong(" ".join(str(error).split()))


class _DataLines(io.RawIOBase):
    """The rest of a file without comments, in blocks of whole lines."""

    def __init__(self, handle: io.BufferedIOBase, edges: TextEdges) -> None:
        self._blocks = blocks_of_lines(handle)
        self._edges = edges
        layout = edges.layout
        # pandas drops a byte order mark before the first line that it reads.
        self._block = memoryview(b"\n" if layout.is_plain and layout.skipped else b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            half = LONGEST_LINE_BYTES // 2  # a line that is too long fills one of these pieces
            places = range(0, len(block) - half, half)
            is_long = any(block.find(b"\n", i, i + half) < 0 for i in places)
            if b"\0" in block or is_long:
                self._edges.check()
            self._block = memoryview(self._edges.layout.without_comments(block))
        count = min(len(buffer), len(self._block))
        buffer[:count] = self._block[:count]
        self._block = self._block[count:]
        return count


def _all_lines(file: GraphFile) -> Iterator[Line]:
    with file.opened() as handle:
        yield from (line for line in lines(handle, file) if not is_comment(line))


def check_lines(file: GraphFile, layout: Layout) -> None:
    """Raise `GraphFileError` for the first line that cannot be an edge."""
    for line in _all_lines(file):
        where = f"{file}:{line.number}"
        if line.number <= layout.skipped:
            continue
        fields = layout.fields(line, where)
        if layout.is_plain and not fields:
            continue
        if layout.ids is not None:
            _check_pair(fields, layout.ids, where)
        elif len(fields) < 2 or "" in fields[:2]:
            raise GraphFileError(
                f"{where}: {text_of(line)[:80]!r} names fewer than two vertices; write both"
            )
        if layout.numbers is not None:
            _check_weight(fields, layout.numbers, where)


def split(text: str, separator: str) -> list[str]:
    if separator == BLANK:
        return _COMMENT_AT_END.sub("", text).split()
    return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])


def text_of(line: Line) -> str:
    return line.text.decode("utf-8", "replace").strip("\r\n")


def write_columns(handle: io.BufferedIOBase, separator: str, *columns: npt.NDArray[Any]) -> None:
    """Write lines; a float gets the digits that reproduce its float64 exactly."""
    import pandas

    wide = (c.astype(np.float64) if c.dtype.kind == "f" else c for c in columns)
    frame = pandas.DataFrame(dict(enumerate(wide)))
    text = frame.to_csv(sep=separator, header=False, index=False, lineterminator="\n")
    handle.write(text.encode())


def check_room(file: GraphFile, num_lines: int, numbers: Numbers | None) -> None:
    """Raise `GraphFileError` if memory is too small for a joined copy of the edges."""
    free = free_bytes()
    each = _BYTES_PER_PAIR + (0 if numbers is None else _BYTES_PER_WEIGHT)
    if num_lines * each > free:
        raise GraphFileError(
            f"{file}: holds {num_lines} edges or more; to join them takes {each} bytes "
            f"each, and {free / GIB:.1f} GiB of memory are free: use a machine with more"
        )


def blocks_of_lines(handle: io.BufferedIOBase) -> Iterator[bytes]:
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


def _check_pair(fields: list[str], ids: Ids, where: str) -> None:
    if len(fields) < 2:
        raise GraphFileError(
            f"{where}: only one column, {''.join(fields)[:80]!r}; expected two integers "
            "separated by white space, or by commas in all lines"
        )
    for field in fields[:2]:
        match = _ID.fullmatch(field)
        if match is None:
            raise GraphFileError(
                f"{where}: {field[:80]!r} is not a vertex id; expected two integers, or "
                f"{setting('renumber')} for names"
            )
        ids.check(int(match[1] + match[2]), where)


def _check_weight(fields: list[str], numbers: Numbers, where: str) -> None:
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
    if math.isinf(float(field)) and "n" not in field.lower():
        raise GraphFileError(
            f"{where}: weight {field[:80]!r} is beyond float64, whose largest number is 1.8e308; "
            "write a smaller one, or inf"
        )
