"""Edge lists as text, in the style of SNAP and GAP, plain or gzipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import opened
from hetero_bfs.graph.io.konect import Konect, konect_of
from hetero_bfs.graph.io.text_columns import (
    edges_once,
    ids_that_fit,
    is_comment,
    read_columns,
    write_columns,
)
from hetero_bfs.graph.io.text_lines import Line, lines
from hetero_bfs.graph.weights import weight_dtype_of

if TYPE_CHECKING:
    from io import BufferedIOBase


class _Head(NamedTuple):
    """Counts in the comments above the first edge, None if missing, and their line numbers."""

    lines: int
    num_vertices: int | None
    num_edges: int | None
    vertices_line: int
    edges_line: int
    konect: Konect | None = None


def read_edge_list(path: Path, directed: bool, weighted: bool) -> EdgeList:
    """Read lines of two vertex ids: the format of SNAP and of GAP's .el and .wel.

    Lines that begin with `#` or `%` are comments. The number of vertices is the largest id plus 1,
    or V of a header `# Nodes: V Edges: E` if V is larger. V is a minimum, since SNAP's files have
    gaps in their ids and count only used ids. E is the least number of edge lines.

    Below KONECT's header, such as `% bip unweighted` and `% edges left right`, ids start at 1, and
    vertex 1 becomes 0. The sizes give the number of vertices. The right vertices of a bipartite
    file are numbered after its left vertices.

    With `weighted` the third column is the weight. The weights are int32 if each is written as an
    integer within int32, and float64 otherwise. Other columns are ignored.

    Raises `GraphFileError` for lines that are not two ids, ids or a V above the 32-bit limit or
    this machine's memory, fewer lines than E, an empty file, and damaged gzip data. With `weighted`
    also for a line whose third column is not a number.
    """
    with opened(path) as handle:
        head = _read_head(handle, path)
        ids = ids_that_fit()
        where = f"{path}:{head.vertices_line}"
        if head.konect is not None:
            ids = head.konect.ids(where)
        elif head.num_vertices:
            ids.check_count(head.num_vertices, where)
        columns = read_columns(handle, path, head.lines, ids, "any" if weighted else None)
    num_lines, src, dst, weights = columns
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
    if head.konect is not None:
        src, dst, num_vertices = head.konect.numbered(src, dst, where)
        return EdgeList.trusted(src, dst, num_vertices, directed, weights)
    num_vertices = head.num_vertices or 0
    if num_lines > 0:
        num_vertices = max(num_vertices, int(max(src.max(), dst.max())) + 1)
    return EdgeList.trusted(src, dst, num_vertices, directed, weights)


def edge_list_note(path: Path, directed: bool) -> str | None:
    """Return a note for the user if the ids of a file are renumbered."""
    with opened(path) as handle:
        konect = _read_head(handle, path).konect
    return None if konect is None else konect.note(directed)


def write_edge_list(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    """Write `src<TAB>dst` lines below a `# Nodes: V Edges: E` header, an undirected edge once.

    Weights are the third column.
    """
    kind = "Directed" if graph.directed else "Undirected"
    num_lines = sum(columns[0].size for columns in edges_once(graph))
    head = f"# {kind} graph\n# Nodes: {graph.num_vertices} Edges: {num_lines}\n"
    names = "FromNodeId\tToNodeId" + ("" if weight_dtype_of(graph) is None else "\tWeight")
    handle.write(f"{head}# {names}\n".encode())
    for columns in edges_once(graph):
        write_columns(handle, "\t", *columns)


def _read_head(handle: BufferedIOBase, path: Path) -> _Head:
    """Parse the comments above the first edge; leave the handle at that edge."""
    found: dict[str, tuple[int, int]] = {}
    comments: list[str] = []  # the first two
    count = 0
    for line in lines(handle, path):
        if not is_comment(line):
            _refuse_dimacs(line, path)
            handle.seek(line.start)
            break
        count, text = line.number, line.text.lower()
        if count == 1 and text.startswith(b"%%matrixmarket"):
            raise GraphFileError(
                f"{path}:1: this is a Matrix Market file; rename it to end in .mtx"
            )
        if count <= 2:
            comments.append(line.text.decode("utf-8", "replace"))
        for key in ("nodes", "edges"):
            match = re.search(rf"\b{key}:\s*(\d{{1,20}})".encode(), text)
            if match and key not in found:
                found[key] = int(match[1]), count
    konect = konect_of(comments)
    if konect is not None:
        last = min(count, 2)
        return _Head(count, konect.num_vertices, konect.num_edges, last, last, konect)
    num_vertices, vertices_line = found.get("nodes", (None, 0))
    num_edges, edges_line = found.get("edges", (None, 0))
    return _Head(count, num_vertices, num_edges, vertices_line, edges_line)


def _refuse_dimacs(line: Line, path: Path) -> None:
    """Raise `GraphFileError` if the first line that is not a comment begins a DIMACS file."""
    if line.text.split()[0] in (b"c", b"p"):
        raise GraphFileError(
            f"{path}:{line.number}: {line.text[:80].decode('utf-8', 'replace')!r} begins a DIMACS "
            "file; rename it to end in .gr (arcs, 'a' lines) or .col (edges, 'e' lines)"
        )
