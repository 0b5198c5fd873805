"""Validated search arguments, and the start of a search with several sources or a mask."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.edge_source import check_sources, check_vertex
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.checks import as_array, check_choice, check_flag, check_integer
from hetero_bfs.support.messages import shown

Want = Literal["parents", "levels"]
"""Result of a search: parents, from which levels are computed when read; or only levels."""

ManyWant = Literal["levels", "sums"]
"""Result of a multi-source search: levels and sums of them, or only the sums."""

Vertices = int | Iterable[int]

_PARENT_DTYPES = ("int64", "int32")


@dataclass(frozen=True, eq=False)
class Query:
    """Validated search arguments, in the caller's ids.

    `sources` are in the caller's order. `mask` has shape (num_vertices,).
    """

    sources: tuple[int, ...]
    depth_limit: int | None = None
    target: int | None = None
    mask: npt.NDArray[np.bool_] | None = None
    reverse: bool = False
    want: Want | ManyWant = "parents"
    dtype: str = "int64"
    """Name of the parents' type."""

    @property
    def is_whole(self) -> bool:
        """Whether this is a single-source search without limits, from which the selector learns."""
        only = len(self.sources) == 1 and self.mask is None
        return only and self.target is None and self.depth_limit is None

    @property
    def max_levels(self) -> int | None:
        return 0 if self.target in self.sources else self.depth_limit

    def start(self, graph: SearchGraph) -> tuple[int | None, Seeds | None]:
        """Return the new id of the first source, and seeds if there are several sources or a mask.

        The source is None if no source has edges.
        """
        if len(self.sources) == 1 and self.mask is None:
            return graph.searched_id(self.sources[0]), None
        seeds = self.seeds(graph)
        if seeds.sources.size == 0:
            return None, None
        return int(seeds.sources[0]), seeds

    def seeds(self, graph: SearchGraph) -> Seeds:
        """Return all sources that have edges, and the mask; on ranks only a rank's own sources."""
        mask = None if self.mask is None else graph.bitmap_of(self.mask)
        return Seeds(graph.searched_ids(self.sources), mask)

    def searched_target(self, graph: SearchGraph) -> int | None:
        """Return the target's new id; None without a target, or if no search can reach it."""
        if self.target is None or (self.mask is not None and self.mask[self.target]):
            return None  # masked vertices count as visited
        return graph.searched_id(self.target)


def check_query(
    num_vertices: int,
    source: Vertices,
    depth_limit: int | None = None,
    target: int | None = None,
    mask: npt.ArrayLike | None = None,
    reverse: bool = False,
    want: Want = "parents",
    dtype: npt.DTypeLike = "int64",
) -> Query:
    """Validate the arguments of `Engine.bfs`; duplicate sources are removed.

    Raises `ArgumentError` if there is no source, or for a wrong `depth_limit`, `mask`, `reverse`,
    `want` or `dtype`. Raises `GraphError` if a vertex is not in the graph, or a source is masked.
    """
    sources = _sources(source, num_vertices)
    limit = None if depth_limit is None else check_integer("depth_limit", depth_limit, 0)
    end = None if target is None else check_vertex(target, num_vertices)
    check_flag("reverse", reverse)
    check_choice("want", want, ("parents", "levels"))
    flags, kind = _flags(mask, sources, num_vertices), _parent_dtype(dtype, num_vertices)
    return Query(sources, limit, end, flags, bool(reverse), want, kind)


def _parent_dtype(dtype: Any, num_vertices: int) -> str:
    """Return the name of the parents' type: int64 or int32, in the machine's byte order."""
    name = dtype if isinstance(dtype, str) else ""
    if name not in _PARENT_DTYPES:
        with suppress(TypeError):
            name = str(np.dtype(dtype))  # this takes microseconds
    if name not in _PARENT_DTYPES:
        raise ArgumentError(f"dtype is {shown(dtype)}; give 'int64' or 'int32'")
    if name == "int32" and num_vertices > 2**31:
        raise ArgumentError(
            f"dtype is int32, which numbers {2**31} vertices, and the graph has {num_vertices}; "
            "give 'int64'"
        )
    return name


def check_many(
    num_vertices: int,
    sources: Iterable[int],
    depth_limit: int | None = None,
    mask: npt.ArrayLike | None = None,
    reverse: bool = False,
    want: ManyWant = "levels",
) -> Query:
    """Validate the arguments of `Engine.bfs_many`; duplicate sources stay.

    Raises as `check_query` does, and `ArgumentError` if `sources` is not a sequence.
    """
    starts = tuple(check_sources(sources, num_vertices))
    limit = None if depth_limit is None else check_integer("depth_limit", depth_limit, 0)
    check_flag("reverse", reverse)
    check_choice("want", want, ("levels", "sums"))
    return Query(starts, limit, None, _flags(mask, starts, num_vertices), bool(reverse), want)


def _flags(
    mask: npt.ArrayLike | None, sources: tuple[int, ...], num_vertices: int
) -> npt.NDArray[np.bool_] | None:
    if mask is None:
        return None
    flags = as_mask(mask, num_vertices)
    for vertex in sources:
        if flags[vertex]:
            raise GraphError(
                f"source {vertex} is masked; take it out of the mask, or search from another"
            )
    return flags


def _sources(source: Any, num_vertices: int) -> tuple[int, ...]:
    if not isinstance(source, Iterable) or getattr(source, "ndim", 1) == 0:
        return (check_vertex(source, num_vertices),)
    if isinstance(source, (str, bytes)):
        check_vertex(source, num_vertices)
    sources = tuple(dict.fromkeys(check_sources(source, num_vertices)))
    if not sources:
        raise ArgumentError("source is an empty sequence; give one vertex id at least")
    return sources


def as_mask(mask: npt.ArrayLike, num_vertices: int) -> npt.NDArray[np.bool_]:
    """Return flags of the vertices to ignore, bool (num_vertices,), from flags or ids.

    Raises `ArgumentError` if the argument is neither flags of all vertices nor a sequence of ids.
    Raises `GraphError` if an id is not in the graph.
    """
    if not isinstance(mask, Iterable):
        raise ArgumentError(f"mask is {shown(mask)}; give a bool array or a sequence of vertex ids")
    given = as_array("mask", mask if hasattr(mask, "__len__") else list(mask))
    if given.dtype == np.bool_ and given.shape == (num_vertices,):
        return given
    flags = np.zeros(num_vertices, np.bool_)
    if given.size == 0 and given.ndim == 1:
        return flags
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ArgumentError(
            f"mask holds {given.dtype} in shape {given.shape}; give a bool array of shape "
            f"({num_vertices},), True where to pass over, or a sequence of vertex ids"
        )
    for vertex in (given.min(), given.max()):
        check_vertex(vertex, num_vertices)
    flags[given] = True
    return flags


class Seeds(NamedTuple):
    """Several vertices from which one search starts, and vertices that it ignores.

    `sources` are new ids, without duplicates, not masked. `mask` is a bitmap (level.py). A rank may
    have no source, and its `mask` has all columns. The search starts on the host and may migrate
    like any other.
    """

    sources: npt.NDArray[np.uint32]
    mask: npt.NDArray[np.uint32] | None = None
