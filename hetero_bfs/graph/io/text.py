"""Edge lists as text, in the style of SNAP and GAP, plain or gzipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import opened
from hetero_bfs.graph.io.text_columns import (
    edges_once,
    ids_that_fit,
    is_comment,
    read_columns,
    write_columns,
)
from hetero_bfs.graph.io.text_lines import lines
from hetero_bfs.graph.weights import weight_dtype_of

if TYPE_CHECKING:
    from io import BufferedIOBase


class _Head(NamedTuple):
    """The counts in the comments above the first edge; None for a missing one."""

    lines: int
    num_vertices: int | None
    num_edges: int | None
    vertices_line: int
    edges_line: int


def read_edge_list(path: Path, directed: bool, weighted: bool) -> EdgeList:
    """Read lines of two vertex ids: the format of SNAP and of GAP's .el and .wel.

    Lines that begin with `#` or `%` are comments. The number of vertices is the largest id plus 1,
    or V of a header `# Nodes: V Edges: E` if that is more: V is a minimum, since SNAP's files have
    gaps in their ids and count only used ones. E is the least number of edge lines. Ids without a
    line are isolated vertices.

    With `weighted` the third column is the weight. The weights are int32 if each is written as an
    integer within int32, and float64 otherwise. Other columns are ignored.

    Raises
    ------
    GraphFileError
        Lines that are not two ids, ids or a V above the 32-bit limit or this machine's memory,
        fewer lines than E, nothing in the file; damaged gzip data. With `weighted`, a line whose
        third column is no number.
    """
    with opened(path) as handle:
        head = _read_head(handle, path)
        ids = ids_that_fit()
        if head.num_vertices:
            ids.check_count(head.num_vertices, f"{path}:{head.vertices_line}")
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
    num_vertices = head.num_vertices or 0
    if num_lines > 0:
        num_vertices = max(num_vertices, int(max(src.max(), dst.max())) + 1)
    return EdgeList.trusted(src, dst, num_vertices, directed, weights)


def write_edge_list(graph: EdgeList | CSRGraph, handle: BufferedIOBase) -> None:
    """Write `src<TAB>dst` lines below a `# Nodes: V Edges: E` header, an undirected edge once.

    The weights of a graph that has some are the third column.
    """
    kind = "Directed" if graph.directed else "Undirected"
    num_lines = sum(columns[0].size for columns in edges_once(graph))
    head = f"# {kind} graph\n# Nodes: {graph.num_vertices} Edges: {num_lines}\n"
    names = "FromNodeId\tToNodeId" + ("" if weight_dtype_of(graph) is None else "\tWeight")
    handle.write(f"{head}# {names}\n".encode())
    for columns in edges_once(graph):
        write_columns(handle, "\t", *columns)


def _read_head(handle: BufferedIOBase, path: Path) -> _Head:
    """Read the comments above the first edge; leave the handle before that."""
    found: dict[str, tuple[int, int]] = {}
    count = 0
    for line in lines(handle, path):
        if not is_comment(line):
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
