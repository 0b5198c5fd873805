"""KONECT's header: the first two comments of an edge list (Kunegis, WWW Companion 2013)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.io.text_columns import Ids, ids_that_fit

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
        """Return src, dst and the number of vertices; the right set's ids follow the left set's.

        Raises `GraphFileError` for an id beyond the size of its set, or too many vertices.
        """
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

    def note(self, directed: bool) -> str:
        """Return a note for the user on the ids, and on dropped directions."""
        if self.form == "bip":
            after = "behind the left ones" if self.left is None else f"from {self.left} on"
            return (
                "a bipartite KONECT file: its left vertices are numbered from 0 on and its right "
                f"ones {after}, also for --source; in the file both start at 1"
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
