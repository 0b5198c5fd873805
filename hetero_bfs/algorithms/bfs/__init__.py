"""Breadth-first search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from hetero_bfs.algorithms.bfs.result import BFSResult


def bfs(
    num_vertices: int,
    source: int | Iterable[int],
    depth_limit: int | None = None,
    target: int | None = None,
    mask: Any = None,
    reverse: bool = False,
    want: Literal["parents", "levels"] = "parents",
    dtype: Any = "int64",
) -> Request[BFSResult]:
    """Search from one vertex or several; all ids, here and in the result, are the caller's.

    Searches of several Python threads run one after another on an engine. Several ranks make the
    same call, with the same arguments.

    Parameters
    ----------
    source : int or iterable of int
        With several sources, each vertex belongs to the tree of its nearest source. Duplicates
        count once.
    depth_limit : int, optional
        Maximum depth: vertices farther than this many edges are not reached.
    target : int, optional
        End after the level that reaches this vertex. All vertices at its distance are reached,
        farther ones are not.
    mask : array, optional
        Vertices to ignore, as if they were not in the graph: bool, shape (num_vertices,), or their
        ids.
    reverse : bool
        Follow the edges of a directed graph from their ends to their starts. The first reverse
        search opens an engine on the transposed graph, which keeps its own arrays.
    want : {"parents", "levels"}
        "parents" returns parents, and computes levels when they are first read. "levels" returns
        levels and no parents.
    dtype : {"int64", "int32"}
        Type of the parents. "int32" takes half the memory, and less time. Levels are int32.

    Raises
    ------
    ArgumentError
        An argument of the wrong type or out of range; an empty sequence of sources.
    GraphError
        A vertex is not in the graph, or a source is masked.
    """
    from hetero_bfs.algorithms.bfs.algorithm import requested

    return requested(num_vertices, source, depth_limit, target, mask, reverse, want, dtype)
