"""DIMACS files for shortest paths (.gr) and colouring (.col), plain or gzipped.

Format: the challenges of 2006 and 1993. `c` lines are comments. One line `p sp V E`, or
`p edge V E`, comes before the edges: `a u v weight` lines, or `e u v` lines. Ids start at 1.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import lines, opened
from hetero_bfs.graph.io.text_columns import (
    Ids,
    Numbers,
    ids_that_fit,
    is_comment,
    read_columns,
)

if TYPE_CHECKING:
    from io import BufferedIOBase

_PROBLEM = re.compile(r"p\s+(sp|edges?|col)\s+([0-9]{1,20})\s+([0-9]{1,20})", re.ASCII)

NOTE = "DIMACS's ids are 1-based: vertex 1 of the file is 0, also for --source"


class _Head(NamedTuple):
    """Sizes on the `p` line, the letter that marks edge lines, and the number of the `p` line."""

    num_vertices: int
    num_edges: int
    mark: str
    line: int


def read_dimacs(path: Path, directed: bool, weighted: bool) -> EdgeList:
    """Read a DIMACS file; vertex 1 becomes 0.

    The number after the ids is the weight, as in `read_edge_list`. In a `p edge` file E may count
    every edge twice, as in some well-known files.

    Raises `GraphFileError` for an unknown `p` line, lines that are neither edges nor comments, ids
    beyond V, a number of edges other than E, damaged gzip data, and, with `weighted`, a missing
    weight.
    """
    with opened(path) as handle:
        head = _read_head(handle, path)
        where = f"{path}:{head.line}"
        if head.num_vertices:
            ids_that_fit().check_count(head.num_vertices, where)
        ids = Ids(1, head.num_vertices, f"the size on line {head.line}; correct the id or the size")
        numbers: Numbers | None = "any" if weighted else None
        columns = read_columns(
            handle, path, head.line, ids, numbers, head.num_edges, mark=head.mark
        )
    half = head.mark == "e" and 2 * columns.num_lines == head.num_edges
    if columns.num_lines != head.num_edges and not half:
        raise GraphFileError(
            f"{where}: the p line says {head.num_edges} edges, but the file holds "
            f"{columns.num_lines}; fetch it again or correct the p line"
        )
    return EdgeList.trusted(columns.src, columns.dst, head.num_vertices, directed, columns.weights)


def dimacs_size(path: Path) -> int:
    """Return the number of vertices on the `p` line."""
    with opened(path) as handle:
        return _read_head(handle, path).num_vertices


def _read_head(handle: BufferedIOBase, path: Path) -> _Head:
    """Parse the `p` line, and leave the handle at the line after it."""
    reader, number = lines(handle, path), 0
    for line in reader:
        number, text = line.number, line.text.decode("utf-8", "replace").strip()
        if is_comment(line) or text.startswith("c"):
            continue
        match = _PROBLEM.fullmatch(text)
        if match is None:
            break
        for following in reader:
            handle.seek(following.start)
            break
        mark = "a" if match[1] == "sp" else "e"
        return _Head(int(match[2]), int(match[3]), mark, number)
    else:
        text = ""
    raise GraphFileError(
        f"{path}:{number or 1}: {text[:80]!r} comes where DIMACS has 'p sp V E' or 'p edge V E'; "
        "check format and file name"
    )
