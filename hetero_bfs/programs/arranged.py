"""A graph whose vertices are ordered part by part, for the modes that process one part at a time.

In mode "asynchronous" the parts are the classes of a hybrid colouring: a few colours, whose
vertices are not adjacent, and one class of all other vertices (Shi et al., 2018, "Frog:
asynchronous graph processing on GPU with hybrid coloring model").

In mode "layered" the parts are the levels of a breadth-first search (Zhu et al., 2020, "WolfPath:
accelerating iterative traversing-based graph processing algorithms on GPU"). Consecutive levels
with few edges are joined to one part. A sweep goes through that part once per level in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.programs.placed import PlacedGraph
from hetero_bfs.support.memory import aligned_empty

BEGIN, HEAVY, END, EXACT, TIMES = range(5)
"""Columns of `parts`. A part holds the vertices from BEGIN to END, the vertices before HEAVY have
long neighbour lists. EXACT: whether no two of its vertices are adjacent. TIMES: how often one sweep
goes through it."""

_PART_EDGES = 1 << 12

Order = npt.NDArray[np.uint32]


class ArrangedGraph(PlacedGraph):
    """A copy of a placed graph's CSR arrays, with vertices numbered part by part.

    All vertices are in parts, including isolated ones: `num_searched` is `num_vertices`. `order`,
    shape (num_vertices,), has the vertices of `placed` part by part, and `ends` the end of each
    part in it. `exact` and `times` have an item per part (see the columns of `parts`). Neighbour
    lists with more than `heavy_edges` entries are long.
    """

    def __init__(
        self, placed: PlacedGraph, mode: str, order: Order, ends: Sequence[int],
        exact: Sequence[int], times: Sequence[int], heavy_edges: int,
    ) -> None:  # fmt: skip
        super().__init__(placed.graph, placed.way)
        self.num_searched = self.num_vertices
        self.mode, self._placed = mode, placed
        bounds = np.array([0, *ends], np.int64)
        sizes = bounds[1:] - bounds[:-1]
        part_of = np.repeat(np.arange(sizes.size), sizes)
        light = ~_is_heavy(placed, heavy_edges)[order]
        self._order = order[np.argsort(2 * part_of + light, kind="stable")]
        heavy = np.bincount(part_of[~light], minlength=sizes.size)
        parts = np.column_stack([bounds[:-1], bounds[:-1] + heavy, bounds[1:], exact, times])
        self.parts: npt.NDArray[np.int64] = np.ascontiguousarray(parts[sizes > 0], np.int64)

    @cached_property
    def forward(self) -> CSRGraph:
        """Receivers of each vertex."""
        return self._arranged(self._placed.forward)

    @cached_property
    def backward(self) -> CSRGraph:
        """Senders to each vertex."""
        placed = self._placed
        is_one = placed.backward is placed.forward
        return self.forward if is_one else self._arranged(placed.backward)

    def _arranged(self, lists: CSRGraph) -> CSRGraph:
        from hetero_bfs.programs.kernels.arranging import arrange_lists

        n, edges = self.num_vertices, lists.num_stored_edges
        position = np.empty(n, np.uint32)
        position[self._order] = np.arange(n, dtype=np.uint32)
        given: Any = lists.weights
        if given is None:
            given = np.empty(0, np.int32)
        indptr, indices = aligned_empty(n + 1, np.int64), aligned_empty(edges, np.uint32)
        weights = aligned_empty(given.size, given.dtype)
        old = lists.indptr, lists.indices, given
        arrange_lists(old, self._order, position, (indptr, indices, weights))
        kept = None if lists.weights is None else weights
        return CSRGraph.trusted(indptr, indices, lists.directed, edges, self.degree, kept)

    @cached_property
    def names(self) -> Order:
        """The caller's id of each vertex, shape (num_vertices,)."""
        return self._placed.names[self._order]

    @cached_property
    def degree(self) -> Order:
        """Number of edges along which each vertex sends, shape (num_vertices,)."""
        return self._placed.degree[self._order]


def _is_heavy(placed: PlacedGraph, edges: int) -> npt.NDArray[np.bool_]:
    """Mark the vertices with a long neighbour list in either direction."""
    heavy = placed.degree > edges
    heavy[: placed.num_searched] |= np.diff(placed.backward.indptr) > edges
    return heavy


def by_class(
    placed: PlacedGraph, classes: npt.NDArray[np.uint8], num_exact: int, heavy_edges: int
) -> ArrangedGraph:
    """Arrange a graph for the mode "asynchronous".

    `classes` is a uint8 array of shape (num_vertices,), in the caller's ids. No edge joins two
    vertices of the same class below `num_exact`. All other vertices are in class `num_exact`.
    """
    of_vertex = classes[placed.names]
    order = np.argsort(of_vertex, kind="stable").astype(np.uint32)
    ends = np.cumsum(np.bincount(of_vertex, minlength=num_exact + 1)).tolist()
    exact = [1] * num_exact + [0]
    times = [1] * len(exact)
    return ArrangedGraph(placed, "asynchronous", order, ends, exact, times, heavy_edges)


def by_level(placed: PlacedGraph, root: int, heavy_edges: int) -> ArrangedGraph:
    """Arrange a graph for the mode "layered". `root` is in the caller's ids.

    Vertices that the root does not reach form one more part.
    """
    from hetero_bfs.programs.kernels.arranging import order_by_level

    n, lists = placed.num_vertices, placed.forward
    order, ends = np.empty(n, np.uint32), np.empty(n, np.int64)
    start = int(np.flatnonzero(placed.names == root)[0])
    levels = order_by_level(lists.indptr, lists.indices, start, order, ends)
    ends = ends[:levels]
    edges = np.zeros(n + 1, np.int64)
    np.cumsum(_longest_lists(placed)[order], out=edges[1:])
    part_ends, times = _join_levels(ends, edges)
    if part_ends[-1] < n:
        part_ends.append(n)
        times.append(1)
    exact = [0] * len(times)
    return ArrangedGraph(placed, "layered", order, part_ends, exact, times, heavy_edges)


def _longest_lists(placed: PlacedGraph) -> npt.NDArray[np.int64]:
    """Return the length of each vertex's longer list, of receivers or of senders."""
    entries = placed.degree.astype(np.int64)
    searched = entries[: placed.num_searched]
    np.maximum(searched, np.diff(placed.backward.indptr), out=searched)
    return entries


def _join_levels(
    ends: npt.NDArray[np.int64], edges: npt.NDArray[np.int64]
) -> tuple[list[int], list[int]]:
    """Join consecutive levels with few edges; return each part's end and its number of levels.

    `edges` holds prefix sums: vertex i of the order has edges[i + 1] - edges[i] edges.
    """
    part_ends: list[int] = []
    times: list[int] = []
    joined = before = 0  # edges of the current part; start of the current level
    for end in ends.tolist():
        size = int(edges[end] - edges[before])
        if times and joined < _PART_EDGES and size < _PART_EDGES:
            part_ends[-1] = end
            times[-1] += 1
            joined += size
        else:
            part_ends.append(end)
            times.append(1)
            joined = size
        before = end
    return part_ends, times
