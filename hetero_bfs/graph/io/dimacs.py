"""DIMACS files for shortest paths (.gr), colouring (.col) and maximum flow (.max).

Format: the challenges of 2006, 1993 and 1991. `c` lines are comments. One line `p sp V E`,
`p edge V E` or `p max V E` comes before the edges: `a u v weight` lines, or `e u v` lines. The `n`
lines of a flow, which name source and sink, are ignored. Ids start at 1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import GraphFile, Wanted, lines
from hetero_bfs.graph.io.text_columns import (
    Ids,
    Numbers,
    Row,
    ids_that_fit,
    is_comment,
    read_columns,
    write_columns,
)
from hetero_bfs.graph.tables import edges_once
from hetero_bfs.graph.weights import weight_dtype_of

if TYPE_CHECKING:
    from io import BufferedIOBase

_PROBLEM = re.compile(r"p\s+(sp|max|edges?|col)\s+([0-9]{1,20})\s+([0-9]{1,20})", re.ASCII)


class _Head(NamedTuple):
    """Sizes on the `p` line, the letter that marks edge lines, and the number of the `p` line."""

    num_vertices: int
    num_edges: int
    mark: str
    line: int


def read_dimacs(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read a DIMACS file; vertex 1 becomes 0.

    The number after the ids is the weight, as in `read_edge_list`. In a `p edge` file E may count
    every edge twice, as in some well-known files.
    """
    with file.opened() as handle:
        head = _read_head(handle, file)
        where = f"{file}:{head.line}"
        if head.num_vertices:
            ids_that_fit().check_count(head.num_vertices, where)
        ids = Ids(1, head.num_vertices, f"the size on line {head.line}; correct the id or the size")
        numbers: Numbers | None = "any" if wanted.weighted else None
        columns = read_columns(
            handle, file, head.line, ids, numbers, head.num_edges, mark=head.mark
        )
    half = head.mark == "e" and 2 * columns.num_lines == head.num_edges
    if columns.num_lines != head.num_edges and not half:
        raise GraphFileError(
            f"{where}: the p line says {head.num_edges} edges, but the file holds "
            f"{columns.num_lines}; fetch it again or correct the p line"
        )
    return EdgeList.trusted(
        columns.src, columns.dst, head.num_vertices, wanted.directed, columns.weights
    )


def dimacs_note(file: GraphFile, directed: bool) -> str:
    return "DIMACS's ids are 1-based: vertex 1 of the file is 0, also for --source"


def write_dimacs(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    """Write `a` lines if the graph has weights, an undirected edge in both directions, else `e`."""
    weighted = weight_dtype_of(graph) is not None
    both = weighted and not graph.directed
    count = sum(_stored(columns, both)[0].size for columns in edges_once(graph))
    kind, mark = ("sp", "a") if weighted else ("edge", "e")
    handle.write(f"p {kind} {graph.num_vertices} {count}\n".encode())
    for columns in edges_once(graph):
        src, dst, *weights = _stored(columns, both)
        ends = src.astype(np.int64) + 1, dst.astype(np.int64) + 1
        write_columns(handle, " ", np.full(src.size, mark), *ends, *weights)


def _stored(columns: Row, both: bool) -> Row:
    if not both:
        return columns
    src, dst, *rest = columns
    other = src != dst
    reverse = dst[other], src[other], *(column[other] for column in rest)
    return tuple(np.concatenate(pair) for pair in zip(columns, reverse, strict=True))


def dimacs_size(file: GraphFile) -> int:
    with file.opened() as handle:
        return _read_head(handle, file).num_vertices


def _read_head(handle: BufferedIOBase, file: GraphFile) -> _Head:
    """Parse the `p` line, and leave the handle at the line after it."""
    reader, number = lines(handle, file), 0
    for line in reader:
        number, text = line.number, line.text.decode("utf-8", "replace").strip()
        if is_comment(line) or text.startswith("c"):
            continue
        match = _PROBLEM.fullmatch(text)
        if match is None:
            break
        for following in reader:
            if match[1] == "max" and (following.text.split() or [b""])[0] in (b"n", b"c"):
                number = following.number
                continue
            handle.seek(following.start)
            break
        mark = "a" if match[1] in ("sp", "max") else "e"
        return _Head(int(match[2]), int(match[3]), mark, number)
    else:
        text = ""
    raise GraphFileError(
        f"{file}:{number or 1}: {text[:80]!r} comes where DIMACS has 'p sp V E', "
        "'p edge V E' or 'p max V E'; check format and file name"
    )
