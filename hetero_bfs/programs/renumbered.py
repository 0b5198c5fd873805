"""Graphs for programs: all vertices in new ids, isolated vertices last, and ordered in parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.relabel import inverse
from hetero_bfs.graph.search_graph import SearchGraph, layers_of
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.graph.weights import needed_weights
from hetero_bfs.programs.parameters import Entries, caller_entries
from hetero_bfs.programs.program import Along
from hetero_bfs.support.memory import aligned_empty

_LONG_LISTS = 8.0
"""Mean degree from which a monotone program sends along parts of neighbour lists."""

_NARROWER, WIDER_AFTER_PULL = 4.0, 16.0
"""Factors of bucket widths if vertices send along parts of their lists: buckets are narrower at
first, and wider after the pull than before it (weighted_lists.py)."""

Record = tuple[Any, ...]
"""An iteration: strategy, vertices, edges scanned, seconds. Bytes and seconds of a migration follow
if the run migrated before it."""


class Run(NamedTuple):
    """Result of a run: states in new ids, which the next run overwrites, a record per iteration,
    and fields of edges that the program has written, in the order of `PlacedGraph.backward`.

    `streamed_bytes` counts CSR arrays sent to a device that does not hold them; `migrated_bytes`
    counts state sent between places. `choosing_seconds` is the time of choosing directions on the
    host, if the run is clocked and stays there.
    """

    state: dict[str, npt.NDArray[Any]]
    iterations: int
    converged: bool
    totals: dict[str, float]
    records: list[Record]
    streamed_bytes: int = 0
    migrated_bytes: int = 0
    choosing_seconds: float = 0.0
    edges: Mapping[str, npt.NDArray[Any]] = MappingProxyType({})


def weight_sums(weights: npt.NDArray[Any] | None, num_searched: int) -> npt.NDArray[np.float64]:
    """Return the sums from which `usual_step` follows; ranks' sums may be added."""
    if weights is None:
        return np.zeros(4)
    finite = np.abs(weights[np.isfinite(weights)], dtype=np.float64)
    with np.errstate(over="ignore"):  # an infinite sum: all vertices share one bucket
        return np.array([finite.sum(), finite.size, weights.size, num_searched], np.float64)


def usual_step(sums: npt.NDArray[np.float64]) -> float:
    """Return a bucket width for sums of weights: a vertex has a few edges within it.

    Wider buckets send messages twice, narrower ones leave threads without work.
    """
    total, count, entries, searched = sums.tolist()
    if count == 0:
        return 1.0
    degree = max(entries / max(searched, 1), 1.0)
    return float(max(total / count * 16.0 / degree, 1e-300))


class PlacedGraph:
    """A graph's CSR arrays, and arrays for all of its vertices.

    Isolated vertices are outside the searched range; here they follow it.
    """

    def __init__(self, graph: SearchGraph, along: Along = "out") -> None:
        self.graph, self.way = graph, along
        self.num_vertices, self.num_searched = graph.num_vertices, graph.num_searched
        self._others: dict[Along, PlacedGraph] = {}

    def along(self, way: Along) -> PlacedGraph:
        """Return this graph for messages in another direction, and keep it for later calls.

        In undirected graphs all directions are the same.
        """
        if way == self.way or not self.graph.graph.directed:
            return self
        if way not in self._others:
            self._others[way] = PlacedGraph(self.graph, way)
        return self._others[way]

    @cached_property
    def whole(self) -> PlacedGraph:
        """This graph with isolated vertices in the searched range, too."""
        return WholeGraph(self)

    @property
    def num_stored_edges(self) -> int:
        return self.graph.graph.num_stored_edges * (2 if self.way == "both" else 1)

    @property
    def forward(self) -> CSRGraph:
        """Receivers of each vertex."""
        graph = self.graph.graph
        if self.way == "both":
            return self._joined
        return graph if self.way == "out" else graph.transpose

    @property
    def backward(self) -> CSRGraph:
        """Senders to each vertex."""
        graph = self.graph.graph
        if self.way == "both":
            return self._joined
        return graph.transpose if self.way == "out" else graph

    @cached_property
    def _joined(self) -> CSRGraph:
        return join_lists(self.graph.graph, self.graph.graph.transpose)

    @cached_property
    def names(self) -> npt.NDArray[np.uint32]:
        """The caller's id of each vertex, shape (num_vertices,)."""
        relabelling = self.graph.relabelling
        alone = np.flatnonzero(relabelling.new_of_old == NO_VERTEX).astype(np.uint32)
        return np.concatenate([relabelling.old_of_new, alone])

    @cached_property
    def degree(self) -> npt.NDArray[np.uint32]:
        """Number of edges along which each vertex sends, shape (num_vertices,)."""
        degree = np.zeros(self.num_vertices, np.uint32)
        degree[: self.num_searched] = self.forward.degree()
        return degree

    @cached_property
    def first(self) -> npt.NDArray[np.uint32]:
        """The first sender to each vertex, or itself if there is none, shape (num_searched,)."""
        if self.way == "out":
            return self.graph.first
        lists, first = self.backward, np.arange(self.num_searched, dtype=np.uint32)
        some = np.flatnonzero(np.diff(lists.indptr))
        first[some] = lists.indices[lists.indptr[some]]
        return first

    @cached_property
    def by_weight(self) -> WeightedLists:
        """Neighbour lists by rising weight, which this graph shares with shortest-path searches.

        Raises `GraphError` if a weight is negative.
        """
        return WeightedLists.of(self.graph, "monotone programs")

    def monotone_widths(self, width: float) -> tuple[bool, float, float]:
        """Return whether a monotone program sends along whole lists, and two bucket widths.

        The first width is for the buckets before the pull, or for all buckets of whole lists. The
        second one is for buckets after the pull.
        """
        if self.num_stored_edges < _LONG_LISTS * self.num_searched:
            return True, width, width
        return False, width / _NARROWER, width * WIDER_AFTER_PULL / _NARROWER

    @cached_property
    def entries(self) -> dict[str, Entries]:
        """The caller's entry for each entry of `forward`, by the name "", and "backward_"."""
        return caller_entries(self.graph.graph, self.names, self.way, self.forward, self.backward)

    @property
    def weight_type(self) -> str | None:
        weights = self.forward.weights
        return None if weights is None else weights.dtype.name

    @cached_property
    def usual_step(self) -> float:
        return usual_step(weight_sums(self.forward.weights, self.num_searched))


class WholeGraph(PlacedGraph):
    """A placed graph whose searched range has all vertices, for programs that collect messages."""

    def __init__(self, placed: PlacedGraph) -> None:
        super().__init__(placed.graph, placed.way)
        self.num_searched, self._placed = self.num_vertices, placed

    @cached_property
    def forward(self) -> CSRGraph:
        return self._whole(self._placed.forward)

    @cached_property
    def backward(self) -> CSRGraph:
        is_one = self._placed.backward is self._placed.forward
        return self.forward if is_one else self._whole(self._placed.backward)

    def _whole(self, lists: CSRGraph) -> CSRGraph:
        """Return lists of all vertices; those without edges come last."""
        more = self.num_vertices + 1 - lists.indptr.size
        indptr = np.pad(lists.indptr, (0, more), "edge")
        degree = np.diff(indptr).astype(np.uint32)
        return CSRGraph.trusted(
            indptr, lists.indices, lists.directed, lists.num_input_edges, degree, lists.weights
        )


def join_lists(first: CSRGraph, second: CSRGraph) -> CSRGraph:
    """Return CSR arrays with the neighbours of both graphs: `first`, then `second`, with weights.

    A neighbour in both graphs appears twice. Neighbour lists are not sorted.
    """
    indptr = first.indptr + second.indptr
    total = first.num_stored_edges + second.num_stored_edges
    indices = np.empty(total, np.uint32)
    weights = None if first.weights is None else np.empty(total, first.weights.dtype)
    for begin, graph in ((indptr[:-1], first), (indptr[:-1] + first.degree(), second)):
        shift = np.repeat(begin - graph.indptr[:-1], graph.degree())
        places = shift + np.arange(graph.num_stored_edges)
        indices[places] = graph.indices
        if weights is not None:
            weights[places] = graph.weights
    degree = np.diff(indptr).astype(np.uint32)
    return CSRGraph.trusted(indptr, indices, True, first.num_input_edges, degree, weights)


def weights_of(graph: CSRGraph, used: bool) -> npt.NDArray[Any]:
    """Return the weights; a single zero if they are not used, or there are no edges."""
    if not used or graph.num_stored_edges == 0:
        kind = graph.weights.dtype if used and graph.weights is not None else np.int32
        return np.zeros(1, kind)
    return needed_weights(graph)


# A graph whose vertices are ordered part by part, for the modes that process one part at a time.
#
# In mode "asynchronous" the parts are the colours of a colouring, whose vertices are not adjacent
# (Shi et al., 2018, "Frog: asynchronous graph processing on GPU with hybrid coloring model"). So a
# sweep changes states as if vertices took turns in the order of their colours. Frog runs all but a
# few colours as one class, with atomics. That would not take fewer steps: in any order of turns
# some path of adjacent vertices, each of which waits for the one before it, has as many vertices as
# a colouring needs colours (Gallai, Hasse, Roy, Vitaver).
#
# In mode "layered" the parts are the levels of a breadth-first search (Zhu et al., 2017, "WolfPath:
# accelerating iterative traversing-based graph processing algorithms on GPU"). Consecutive levels
# with few edges are joined to one part. A sweep goes through that part once per level in it.

BEGIN, HEAVY, END, EXACT, TIMES = range(5)
"""Columns of `parts`. A part holds the vertices from BEGIN to END, the vertices before HEAVY have
long neighbour lists. EXACT: whether no two of its vertices are adjacent. TIMES: how often one sweep
goes through it."""

_PART_EDGES = 1 << 12

Order = npt.NDArray[np.uint32]


class ArrangedGraph(WholeGraph):
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
        super().__init__(placed)
        self.mode = mode
        bounds = np.array([0, *ends], np.int64)
        sizes = bounds[1:] - bounds[:-1]
        part_of = np.repeat(np.arange(sizes.size), sizes)
        light = (_longest_lists(placed) <= heavy_edges)[order]
        self.order = order[np.argsort(2 * part_of + light, kind="stable")]
        self.levels: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int] | None = None
        heavy = np.bincount(part_of[~light], minlength=sizes.size)
        parts = np.column_stack([bounds[:-1], bounds[:-1] + heavy, bounds[1:], exact, times])
        self.parts: npt.NDArray[np.int64] = np.ascontiguousarray(parts[sizes > 0], np.int64)

    def joined(self, least_edges: int) -> npt.NDArray[np.int64]:
        """Return the parts with levels joined anew, to at least this number of edges.

        In mode "asynchronous" they are `parts`.
        """
        if self.levels is None:
            return self.parts
        rows, edges, count = self.levels
        return np.concatenate([join_levels(rows[:count], edges, least_edges), rows[count:]])

    def _whole(self, lists: CSRGraph) -> CSRGraph:
        from hetero_bfs.graph.kernels.locality import permute_lists

        n, edges, order = self.num_vertices, lists.num_stored_edges, self.order
        if lists.num_vertices == n and (order[1:] > order[:-1]).all():
            return lists
        position = inverse(order, n)
        given: Any = np.empty(0, np.int32) if lists.weights is None else lists.weights
        indptr, indices = aligned_empty(n + 1, np.int64), aligned_empty(edges, np.uint32)
        weights = aligned_empty(given.size, given.dtype)
        degree = np.zeros(n, np.int64)
        degree[: lists.num_vertices] = np.diff(lists.indptr)
        indptr[0] = 0
        np.cumsum(degree[order], out=indptr[1:])
        permute_lists(lists.indptr, lists.indices, given, order, position, indptr, indices, weights)
        kept = None if lists.weights is None else weights
        return CSRGraph.trusted(indptr, indices, lists.directed, edges, self.degree, kept)

    @cached_property
    def names(self) -> Order:
        return self._placed.names[self.order]

    @cached_property
    def degree(self) -> Order:
        return self._placed.degree[self.order]


def by_colour(placed: PlacedGraph, colour: npt.NDArray[Any], heavy_edges: int) -> ArrangedGraph:
    """Arrange a graph for the mode "asynchronous".

    `colour` is a colouring, an integer array of shape (num_vertices,), in the caller's ids. Each
    colour up to the largest occurs.
    """
    of_vertex = colour[placed.names]
    order = np.argsort(of_vertex, kind="stable").astype(np.uint32)
    ends = np.cumsum(np.bincount(of_vertex)).tolist()
    once = [1] * len(ends)
    return ArrangedGraph(placed, "asynchronous", order, ends, once, once, heavy_edges)


def by_level(placed: PlacedGraph, root: int, heavy_edges: int) -> ArrangedGraph:
    """Arrange a graph for the mode "layered". `root` is in the caller's ids.

    Vertices that the root does not reach form one more part. A graph that is numbered layer by
    layer from the root has the order already, for messages along its edges.
    """
    n, lengths = placed.num_vertices, _longest_lists(placed)
    stored = placed.graph.graph.layers if placed.way == "out" else None
    if stored is not None and placed.graph.relabelling.order == "given" and root == 0:
        order, ends = np.arange(n, dtype=np.uint32), stored
    else:
        start = int(np.flatnonzero(placed.names == root)[0])
        order, ends = layers_of(placed.forward.indptr, placed.forward.indices, start, lengths)
    bounds = [*ends.tolist(), *[n][: int(ends[-1] < n)]]
    single = [0] * len(bounds), [1] * len(bounds)
    graph = ArrangedGraph(placed, "layered", order, bounds, *single, heavy_edges)
    edges = np.add.reduceat(lengths[graph.order], [0, *bounds[:-1]])
    graph.levels = graph.parts, edges, ends.size
    graph.parts = graph.joined(_PART_EDGES)
    return graph


def _longest_lists(placed: PlacedGraph) -> npt.NDArray[np.int64]:
    """Return the length of each vertex's longer list, of receivers or of senders."""
    entries = placed.degree.astype(np.int64)
    searched = entries[: placed.num_searched]
    np.maximum(searched, np.diff(placed.backward.indptr), out=searched)
    return entries


def join_levels(
    levels: npt.NDArray[np.int64], edges: npt.NDArray[np.int64], least_edges: int
) -> npt.NDArray[np.int64]:
    """Join consecutive levels until they have `least_edges` edges (WolfPath's combined lists).

    `levels` has a row for each level, as `parts`. Levels of `_PART_EDGES` with long lists stay
    apart, since each of those lists needs a work-group.
    """
    joined: list[list[int]] = []
    count = 0  # edges of the last part
    for row, size in zip(levels.tolist(), edges.tolist(), strict=False):
        may_join = size < least_edges and (size < _PART_EDGES or row[HEAVY] == row[BEGIN])
        if joined and may_join and count < least_edges:
            joined[-1][END] = row[END]
            joined[-1][TIMES] += 1
            count += size
        else:
            joined.append(row)
            count = size if may_join else least_edges
    return np.array(joined, np.int64).reshape(-1, len(levels[0]))
