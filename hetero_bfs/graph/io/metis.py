"""METIS's graph files: a line of sizes, then the neighbours of one vertex a line, from 1 on.

Format: Karypis, METIS 5.1 manual (2013). The first line is `V E [fmt [ncon]]`. The digits of `fmt`
say whether there are vertex sizes, vertex weights (`ncon` of them) and edge weights. `%` begins a
comment line; an empty line is a vertex without neighbours.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import GraphFile, Wanted
from hetero_bfs.graph.io.text_columns import check_room, ids_that_fit, write_columns
from hetero_bfs.graph.weights import as_weights

if TYPE_CHECKING:
    from io import BufferedIOBase

_BLOCK_BYTES = 1 << 22
_HEAD = re.compile(rb"\s*([0-9]{1,18})\s+([0-9]{1,18})(?:\s+([01]{1,3})(?:\s+([0-9]{1,3}))?)?\s*")
_COMMENT = re.compile(rb"^[ \t]*%[^\n]*(?:\n|$)", re.MULTILINE)
_NO_INTEGER = re.compile(rb"[^0-9\s-]|-(?![0-9])|[0-9]-|[0-9]{19}")
_NEWLINE, _SPACE = (np.uint8(ord(c)) for c in "\n ")

IntArray = npt.NDArray[np.int64]


class _Head(NamedTuple):
    """The sizes; how many numbers come before the neighbours; whether these have weights."""

    num_vertices: int
    num_edges: int
    skipped: int
    weighted: bool
    line: int


def read_metis(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read a METIS file; vertex 1 becomes 0. Every edge is in the lists of both its ends."""
    with file.opened() as handle:
        head = _read_head(handle, file)
        where = f"{file}:{head.line}"
        if head.num_vertices:
            ids_that_fit().check_count(head.num_vertices, where)
        if wanted.weighted and not head.weighted:
            raise GraphFileError(
                f"{where}: the file has no edge weights (fmt is not 1); read it without weights"
            )
        counts, numbers = _numbers(handle, file, head)
    rows, others, weights = _entries(file, head, counts, numbers)
    if others.size and not 1 <= others.min() <= others.max() <= head.num_vertices:
        first = int(((others < 1) | (others > head.num_vertices)).argmax())
        raise GraphFileError(
            f"{_where(file, head, rows[first])}: vertex id {others[first]}; ids are 1 to "
            f"{head.num_vertices}, the size on line {head.line}; correct the id or the size"
        )
    src, dst = rows.astype(np.uint32), (others - 1).astype(np.uint32)
    once = _once(file, src, dst, weights if wanted.weighted else None)
    loops = int(np.count_nonzero(src == dst))
    if once.size + loops != head.num_edges and once.size + loops // 2 != head.num_edges:
        raise GraphFileError(
            f"{where}: the first line says {head.num_edges} edges, and the lists hold {once.size} "
            f"in both directions; fetch the file again or correct the line"
        )
    ends, held = (src[once], dst[once]), None
    if wanted.weighted:
        held = as_weights(weights[once])
    if wanted.directed:
        ends = np.concatenate(ends), np.concatenate(ends[::-1])
        held = None if held is None else np.concatenate([held, held])
    return EdgeList.trusted(*ends, head.num_vertices, wanted.directed, held)


def metis_size(file: GraphFile) -> int:
    with file.opened() as handle:
        return _read_head(handle, file).num_vertices


def metis_note(file: GraphFile, directed: bool) -> str:
    return "METIS's ids are 1-based: vertex 1 of the file is 0, also for --source"


def write_metis(graph: CSRGraph, handle: BufferedIOBase) -> None:
    """Write the neighbour lists, with weights (integers of at least 1) as fmt 1."""
    weights = graph.weights
    if (
        weights is not None
        and weights.size
        and not (weights.dtype.kind == "i" and weights.min() > 0)
    ):
        raise GraphFileError("METIS holds edge weights that are integers of at least 1; write .hbg")
    end = "" if weights is None else " 001"
    handle.write(f"{graph.num_vertices} {graph.num_stored_edges // 2}{end}\n".encode())
    for start in range(0, graph.num_vertices, 1 << 16):
        handle.write(_lines_of(graph, start, min(start + (1 << 16), graph.num_vertices)))


def _lines_of(graph: CSRGraph, start: int, stop: int) -> bytes:
    """Return the lines of some vertices: words, each with a space or a newline behind it."""
    import io

    first, last = int(graph.indptr[start]), int(graph.indptr[stop])
    columns = [graph.indices[first:last].astype(np.int64) + 1]
    if graph.weights is not None:
        columns.append(graph.weights[first:last])
    stream = io.BytesIO()
    write_columns(stream, " ", *columns)
    words = stream.getvalue().split(b"\n")
    offsets = (graph.indptr[start : stop + 1] - first).tolist()
    pairs = pairwise(offsets)
    return b"".join(b" ".join(words[i:j]) + b"\n" for i, j in pairs)


def _read_head(handle: BufferedIOBase, file: GraphFile) -> _Head:
    """Parse the first line, and leave the handle behind it."""
    number, text = 1, handle.readline(_BLOCK_BYTES)
    while text and (not text.strip() or text.lstrip().startswith(b"%")):
        number, text = number + 1, handle.readline(_BLOCK_BYTES)
    match = _HEAD.fullmatch(text)
    if match is None:
        shown = text[:80].decode("utf-8", "replace").strip()
        raise GraphFileError(
            f"{file}:{number}: {shown!r} comes where METIS has 'V E', 'V E fmt' or 'V E fmt ncon'; "
            "check format and file name"
        )
    digits = (match[3] or b"").rjust(3, b"0")
    has_sizes, has_weights, weighted = (digit == ord("1") for digit in digits)
    skipped = has_sizes + (int(match[4] or 1) if has_weights else 0)
    return _Head(int(match[1]), int(match[2]), skipped, weighted, number)


def _numbers(handle: BufferedIOBase, file: GraphFile, head: _Head) -> tuple[IntArray, IntArray]:
    counts, parts, total, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0, 0
    rest = b""
    while True:
        block = handle.read(_BLOCK_BYTES)
        text, newline, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
        text = _COMMENT.sub(b"", (text + newline).replace(b"\r\n", b"\n"))
        if text:
            text += b"" if text.endswith(b"\n") else b"\n"
            count, numbers = _parsed(text, file, head, rows)
            counts.append(count)
            parts.append(numbers)
            rows, total = rows + count.size, total + numbers.size
            check_room(file, total, None)
        if not block:
            break
    lengths = np.concatenate(counts)
    if lengths.size > head.num_vertices and not lengths[head.num_vertices :].any():
        lengths = lengths[: head.num_vertices]  # empty lines at the end
    if head.num_vertices - 1 <= lengths.size < head.num_vertices and head.skipped == 0:
        lengths = np.append(lengths, 0)  # the last vertex has none, and its line no end
    if lengths.size != head.num_vertices:
        raise GraphFileError(
            f"{file}:{head.line}: the first line says {head.num_vertices} vertices, and "
            f"{lengths.size} lines follow; fetch the file again or correct the line"
        )
    return lengths, np.concatenate(parts)


def _parsed(text: bytes, file: GraphFile, head: _Head, rows: int) -> tuple[IntArray, IntArray]:
    wrong = _NO_INTEGER.search(text)
    if wrong is not None:
        line = text.count(b"\n", 0, wrong.start())
        word = text[: wrong.end()].split()[-1][:80].decode("utf-8", "replace")
        raise GraphFileError(
            f"{_where(file, head, rows + line)}: {word!r} begins no integer below 10**18; METIS "
            "has integers alone: correct it"
        )
    letters = np.frombuffer(text, np.uint8)
    starts = letters > _SPACE
    starts[1:] &= letters[:-1] <= _SPACE
    before = np.cumsum(starts)[letters == _NEWLINE]
    numbers = np.empty(0, np.int64)
    if before[-1]:
        numbers = np.fromstring(text.decode("ascii"), np.int64, sep=" ")
    return np.diff(before, prepend=0), numbers


def _where(file: GraphFile, head: _Head, vertex: int) -> str:
    """Return file and line of a vertex; only for messages, since it reads line by line."""
    number, found = head.line, -1
    with file.opened() as handle:
        for number, text in enumerate(handle, 1):
            found += number > head.line and not text.lstrip().startswith(b"%")
            if found == vertex:
                break
    return f"{file}:{number}"


def _entries(
    file: GraphFile, head: _Head, counts: IntArray, numbers: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    step = 2 if head.weighted else 1
    entries = counts - head.skipped
    bad = (entries < 0) | (entries % step != 0)
    if bad.any():
        vertex = int(bad.argmax())
        raise GraphFileError(
            f"{_where(file, head, vertex)}: has {counts[vertex]} numbers; line {head.line} asks "
            f"for {head.skipped} and then {step} for each neighbour: correct one of them"
        )
    if head.skipped:
        begins = np.cumsum(counts) - counts
        keep = np.ones(numbers.size, np.bool_)
        for k in range(head.skipped):
            keep[begins + k] = False
        numbers = numbers[keep]
    rows = np.repeat(np.arange(head.num_vertices), entries // step)
    if head.weighted:
        return rows, numbers[::2], numbers[1::2]
    return rows, numbers, np.empty(0, np.int64)


def _once(
    file: GraphFile,
    src: npt.NDArray[np.uint32],
    dst: npt.NDArray[np.uint32],
    weights: IntArray | None,
) -> npt.NDArray[np.intp]:
    """Return where each edge occurs first, from its smaller end; raise if the other lacks it."""
    keys = np.minimum(src, dst).astype(np.uint64) << np.uint64(32) | np.maximum(src, dst)
    values = np.zeros(keys.size, np.int64) if weights is None else weights
    there, back = np.flatnonzero(src < dst), np.flatnonzero(src > dst)
    orders = [where[np.lexsort((values[where], keys[where]))] for where in (there, back)]
    size = min(there.size, back.size)
    left, right = (order[:size] for order in orders)
    unlike = (keys[left] != keys[right]) | (values[left] != values[right])
    if there.size == back.size and not unlike.any():
        return there
    i = int(unlike.argmax()) if unlike.any() else size
    found = {int(keys[order[i]]) for order in orders if i < order.size}
    key = min(found)
    is_there = i < size and len(found) == 1
    what = "has two weights" if is_there else "is in the list of one end only"
    raise GraphFileError(
        f"{file}: the edge of vertices {(key >> 32) + 1} and {(key & 0xFFFFFFFF) + 1} {what}; "
        "METIS has it in both lists with the same weight: write the file again"
    )
