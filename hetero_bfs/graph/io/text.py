"""Edge lists as text in the style of SNAP and GAP, and DIMACS files.

KONECT's files begin with a header of two comments (Kunegis, WWW Companion 2013).

DIMACS files are for shortest paths (.gr), colouring (.col) and maximum flow (.max), of the
challenges of 2006, 1993 and 1991. `c` lines are comments. One line `p sp V E`, `p edge V E` or
`p max V E` comes before the edges: `a u v weight` lines, or `e u v` lines. The `n` lines of a flow,
which name source and sink, are ignored. Ids start at 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.io.graph_files import GraphFile, Line, Wanted, lines
from hetero_bfs.graph.io.table_files import (
    has_known_header,
    has_separators,
    read_text_table,
    vertex_file_of,
)
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
from hetero_bfs.support.messages import setting

if TYPE_CHECKING:
    from io import BufferedIOBase


class _Head(NamedTuple):
    """Counts in the comments above the first edge, None if missing, their lines, and that edge."""

    lines: int
    num_vertices: int | None
    num_edges: int | None
    vertices_line: int
    edges_line: int
    first: str = ""
    konect: Konect | None = None


def read_edge_list(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read lines of two vertex ids, and weights; docs/guide/file-formats.md has the rules.

    V of a header `# Nodes: V Edges: E` is a minimum, since SNAP's files have gaps in their ids and
    count only used ids. E is the least number of edge lines. Below KONECT's header ids start at 1,
    and the right vertices of a bipartite file are numbered after its left vertices.

    Lines with commas or a header line, named columns, and vertices to be renumbered are read by
    `table_files.read_text_table`.
    """
    with file.opened() as handle:
        head = _read_head(handle, file)
        if head.konect is None and _is_table(head.first, file, wanted):
            return read_text_table(file, wanted)
        if head.konect is None and head.first.split()[:1] in (["c"], ["p"]):
            raise GraphFileError(
                f"{file}:{head.lines + 1}: {head.first[:80]!r} is an edge of vertices with names, "
                f"which need {setting('renumber')}, or begins a DIMACS file, which needs a line "
                "'p sp V E' or 'p edge V E' before its edges, and a name that ends in .gr or .col"
            )
        ids = ids_that_fit()
        where = f"{file}:{head.vertices_line}"
        if head.konect is not None:
            if wanted.renumber and head.konect.form == "bip":
                raise GraphFileError(
                    f"{file}:1: both sides of a bipartite KONECT file have ids from 1 on, which "
                    "cannot name vertices; read it without --renumber (renumber=True): "
                    f"{head.konect.sides()}"
                )
            ids = head.konect.ids(where)
        elif head.num_vertices:
            ids.check_count(head.num_vertices, where)
        columns = read_columns(handle, file, head.lines, ids, "any" if wanted.weighted else None)
    num_lines, src, dst, weights = columns
    if head.num_edges is not None and num_lines < head.num_edges:
        raise GraphFileError(
            f"{file}:{head.edges_line}: the header says Edges: {head.num_edges}, but the file "
            f"holds {num_lines} edge lines; it is truncated: fetch it again or correct the header"
        )
    if num_lines == 0 and head.num_vertices is None:
        raise GraphFileError(
            f"{file}: holds no edges after {head.lines} lines; write 'source target' lines, or a "
            "header '# Nodes: V Edges: 0' for a graph without edges"
        )
    if head.konect is not None:
        src, dst, num_vertices = head.konect.numbered(src, dst, where)
        names = np.arange(1, num_vertices + 1) if wanted.renumber else None
        return EdgeList.trusted(src, dst, num_vertices, wanted.directed, weights, names=names)
    num_vertices = head.num_vertices or 0
    if num_lines > 0:
        num_vertices = max(num_vertices, int(max(src.max(), dst.max())) + 1)
    return EdgeList.trusted(src, dst, num_vertices, wanted.directed, weights)


def _is_table(first: str, file: GraphFile, wanted: Wanted) -> bool:
    if not first:
        return False
    asked = wanted.renumber or wanted.columns is not None or vertex_file_of(file) is not None
    return asked or has_separators(first) or has_known_header(first)


def edge_list_note(file: GraphFile, directed: bool) -> str | None:
    with file.opened() as handle:
        konect = _read_head(handle, file).konect
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


def _read_head(handle: BufferedIOBase, file: GraphFile) -> _Head:
    """Parse the comments above the first edge; leave the handle at that edge."""
    found: dict[str, tuple[int, int]] = {}
    comments: list[str] = []  # the first two
    count, first = 0, ""
    reader = lines(handle, file)
    for line in reader:
        if not is_comment(line):
            _refuse_dimacs(line, reader, file)
            first = line.text.decode("utf-8", "replace").strip("\r\n")
            handle.seek(line.start)
            break
        count, text = line.number, line.text.lower()
        if count == 1 and text.startswith(b"%%matrixmarket"):
            raise GraphFileError(
                f"{file}:1: this is a Matrix Market file; rename it to end in .mtx"
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
        return _Head(count, konect.num_vertices, konect.num_edges, last, last, first, konect)
    num_vertices, vertices_line = found.get("nodes", (None, 0))
    num_edges, edges_line = found.get("edges", (None, 0))
    return _Head(count, num_vertices, num_edges, vertices_line, edges_line, first)


def _refuse_dimacs(line: Line, following: Iterator[Line], file: GraphFile) -> None:
    """Raise `GraphFileError` if a `p` line comes first, or after comments of DIMACS."""
    rest = (one for one in chain([line], following) if not is_comment(one))
    problem = next((one for one in rest if one.text.split()[0] != b"c"), line)
    if _PROBLEM.fullmatch(problem.text.decode("utf-8", "replace").strip()):
        raise GraphFileError(
            f"{file}:{line.number}: {line.text[:80].decode('utf-8', 'replace')!r} begins a DIMACS "
            "file; rename it to end in .gr (arcs, 'a' lines) or .col (edges, 'e' lines)"
        )


_FORM = re.compile(
    r"%\s*(sym|asym|bip)\s+(unweighted|positive|posweighted|signed|multisigned|weighted"
    r"|multiweighted|dynamic|multiposweighted)\s*",
    re.ASCII,
)
_SIZES = re.compile(r"%\s*(\d{1,20})\s+(\d{1,20})\s+(\d{1,20})\s*", re.ASCII)
_ONE_LINE_AN_EDGE = ("unweighted", "posweighted", "signed", "weighted")


@dataclass(frozen=True)
class Konect:
    """A header; the numbers are None if it has no second line.

    form : "sym" (undirected), "asym" (directed) or "bip" (bipartite, ids start at 1 in both sets)
    num_edges : least number of edge lines
    left, right : vertices of each set; if not bipartite, both are the number of vertices
    """

    form: str
    num_edges: int | None = None
    left: int | None = None
    right: int | None = None

    @property
    def num_vertices(self) -> int | None:
        if self.left is None or self.right is None:
            return None
        return self.left + self.right if self.form == "bip" else max(self.left, self.right)

    def ids(self, where: str) -> Ids:
        """Return the valid ids of a line; `where` is the position of the header's sizes."""
        fit = ids_that_fit()
        if self.left is None or self.right is None or self.num_vertices is None:
            return Ids(1, fit.highest + 1, fit.remedy)
        if self.num_vertices:
            fit.check_count(self.num_vertices, where)
        remedy = f"the size in {where}; correct the id or the size"
        return Ids(1, max(self.left, self.right), remedy)

    def numbered(
        self, src: VertexArray, dst: VertexArray, where: str
    ) -> tuple[VertexArray, VertexArray, int]:
        """Return src, dst and the number of vertices; the right set's ids follow the left set's."""
        largest = [int(ends.max()) + 1 if ends.size else 0 for ends in (src, dst)]
        if self.form != "bip":
            return src, dst, max(*largest, self.num_vertices or 0)
        sizes = [self.left, self.right]
        for side, size, most in zip(("left", "right"), sizes, largest, strict=True):
            if size is not None and most > size:
                raise GraphFileError(
                    f"{where}: the header says {size} {side} vertices, and a line names {side} "
                    f"vertex {most}; correct the id or the size"
                )
        left, right = (most if n is None else n for n, most in zip(sizes, largest, strict=True))
        if left + right:
            ids_that_fit().check_count(left + right, where)
        return src, dst + dst.dtype.type(left), left + right

    def sides(self) -> str:
        after = "behind the left ones" if self.left is None else f"from {self.left} on"
        return f"its left vertices are numbered from 0 on and its right ones {after}"

    def note(self, directed: bool) -> str:
        if self.form == "bip":
            return (
                f"a bipartite KONECT file: {self.sides()}, also for --source; in the file both "
                "start at 1"
            )
        text = "KONECT's ids are 1-based: vertex 1 of the file is 0, also for --source"
        if self.form == "asym" and not directed:
            text += "; its header says that edges are directed: to keep this, give --directed"
        return text


def konect_of(comments: list[str]) -> Konect | None:
    """Parse the comments above the first edge; None if they are not KONECT's."""
    form = _FORM.fullmatch(comments[0]) if comments else None
    if form is None:
        return None
    sizes = _SIZES.fullmatch(comments[1]) if len(comments) > 1 else None
    if sizes is None:
        return Konect(form[1])
    num_edges, left, right = map(int, sizes.groups())
    return Konect(form[1], num_edges if form[2] in _ONE_LINE_AN_EDGE else None, left, right)


_PROBLEM = re.compile(r"p\s+(sp|max|edges?|col)\s+([0-9]{1,20})\s+([0-9]{1,20})", re.ASCII)


class _DimacsHead(NamedTuple):
    """Sizes on the `p` line, the letter that marks edge lines, and the number of the `p` line."""

    num_vertices: int
    num_edges: int
    mark: str
    line: int


def read_dimacs(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read a DIMACS file; vertex 1 becomes 0.

    In a `p edge` file E may count every edge twice, as in some well-known files.
    """
    with file.opened() as handle:
        head = _read_dimacs_head(handle, file)
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
        return _read_dimacs_head(handle, file).num_vertices


def _read_dimacs_head(handle: BufferedIOBase, file: GraphFile) -> _DimacsHead:
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
        return _DimacsHead(int(match[2]), int(match[3]), mark, number)
    else:
        text = ""
    raise GraphFileError(
        f"{file}:{number or 1}: {text[:80]!r} comes where DIMACS has 'p sp V E', "
        "'p edge V E' or 'p max V E'; check format and file name"
    )
