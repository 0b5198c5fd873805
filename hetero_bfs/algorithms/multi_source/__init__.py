"""Breadth-first searches from many vertices, each separately."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from hetero_bfs.algorithms.multi_source.result import ManySearches


def bfs_many(
    num_vertices: int,
    sources: Iterable[int],
    depth_limit: int | None = None,
    mask: Any = None,
    reverse: bool = False,
    want: Literal["levels", "sums"] = "levels",
) -> Request[ManySearches]:
    """Search from many vertices, each separately, 64 at a time (MS-BFS, Then et al., 2014).

    One pass over the edges serves 64 searches. In graphs where searches take many levels, such as
    road networks, few vertices belong to the same level of several searches; there each thread
    searches from one vertex after the other.

    Parameters
    ----------
    sources : iterable of int
        Each source gets its own row, duplicates too.
    depth_limit, mask, reverse : optional
        As for `bfs`.
    want : {"levels", "sums"}
        "levels" takes 1 to 4 bytes per vertex and search. "sums" stores no levels, for
        eccentricities or closeness of all vertices of a large graph.

    Raises
    ------
    ArgumentError, GraphError
        As for `bfs`; or the levels do not fit in memory.
    """
    from hetero_bfs.algorithms.multi_source.algorithm import requested

    return requested(num_vertices, sources, depth_limit, mask, reverse, want)
