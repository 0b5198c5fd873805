"""Graphs ready to search: relabelled neighbour lists, and further arrays for the kernels.

A graph may be numbered layer by layer from a root, prepared once and kept in .hbg files. A layer is
a level of a breadth-first search (Zhu et al., 2017, "WolfPath: accelerating iterative
traversing-based graph processing algorithms on GPU"). Programs in mode "layered" read the lists of
such a graph as they are, without another copy in the layers' order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.csr import CSRGraph, replace_weights
from hetero_bfs.graph.edge_source import (
    NO_VERTEX,
    EdgeSource,
    OffsetArray,
    VertexArray,
    check_edge_source,
    check_vertex,
)
from hetero_bfs.graph.list_checks import refuse_changed
from hetero_bfs.graph.lists import (
    COUNTING,
    PLACING,
    Steps,
    check_memory,
    count_ends,
    cut_into_buckets,
    input_degree_of,
    place_and_sort,
)
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS, ORDERS, Relabelling, inverse, relabel
from hetero_bfs.graph.vertex_names import NameArray
from hetero_bfs.graph.weights import NO_WEIGHTS
from hetero_bfs.support.checks import check_choice, check_type
from hetero_bfs.support.memory import aligned_empty, free_bytes, shrink

if TYPE_CHECKING:
    from hetero_bfs.graph.kernels.buckets import Buckets

RELABELLING, LOCALITY = "relabelling", "ordering by locality"
"""Steps of the construction that the graph's order needs and the given order does not."""

_REGULAR_SHARE = 0.8  # of the vertices have the same degree; see expand.py
_MOST_REGULAR_DEGREE = 64


@dataclass(frozen=True, eq=False)
class SearchGraph:
    """A graph ready to search: relabelled neighbour lists, and further arrays for the kernels.

    Parameters
    ----------
    graph : CSRGraph
        In new ids. Top-down reads its neighbour lists, bottom-up the transpose's. Its
        `input_degree` is the length of each list, without duplicates.
    relabelling : Relabelling
    num_input_edges : int
    input_degree : uint32 array, shape (num_vertices,)
        In the caller's ids; see `CSRGraph`.
    degree : uint32 array, shape (num_searched,)
        Length of every neighbour list of `graph`.
    first : uint32 array, shape (num_searched,)
        First neighbour in the transpose, the vertex itself if it has none. A contiguous read of
        this array resolves most vertices of a large bottom-up level.
    names : array, shape (num_vertices,), optional
        See `CSRGraph`.
    step_seconds : mapping from step to seconds
        The steps of the construction in their order; empty for a graph that was not built from
        edges. Reading edges in a pass counts for its step.
    """

    graph: CSRGraph
    relabelling: Relabelling
    num_input_edges: int
    input_degree: VertexArray
    degree: VertexArray
    first: VertexArray
    names: NameArray | None = field(default=None, kw_only=True)
    step_seconds: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    @property
    def num_vertices(self) -> int:
        return int(self.relabelling.new_of_old.size)

    @property
    def num_searched(self) -> int:
        return self.relabelling.num_searched

    @property
    def is_local(self) -> bool:
        """True if vertices are numbered by locality, which partitions need."""
        return self.relabelling.order == "locality"

    @property
    def is_regular(self) -> bool:
        """True if most vertices with edges have the same degree, as in a grid."""
        degree = self.degree[self.degree > 0]
        counts = np.bincount(degree[degree <= _MOST_REGULAR_DEGREE], minlength=1)
        return bool(counts.max() >= _REGULAR_SHARE * degree.size)

    def reversed(self) -> Self:
        """Return the graph with all edges transposed, sharing the arrays; itself if undirected.

        Its `input_degree` does not count duplicates.
        """
        if not self.graph.directed:
            return self
        backward = replace_weights(self.graph.transpose, self.graph.transpose.weights)  # a copy,
        backward.__dict__["_transposed"] = self.graph  # so that the two do not form a cycle
        return replace(
            self,
            graph=backward,
            input_degree=self._by_old_id(backward.input_degree),
            degree=backward.input_degree,
            first=first_neighbours_of(self.graph),
        )

    def _by_old_id(self, degree: VertexArray) -> VertexArray:
        placed = np.zeros(self.num_vertices, np.uint32)
        placed[self.relabelling.old_of_new] = degree
        return placed

    def searched_id(self, vertex: int) -> int | None:
        """Return the new id of one of the caller's ids, None if it left the searched range."""
        new = int(self.relabelling.new_of_old[vertex])
        return None if new == NO_VERTEX else new

    def searched_ids(self, vertices: Sequence[int]) -> VertexArray:
        """Return new ids of the caller's ids, without those that left the searched range."""
        new = self.relabelling.new_of_old[list(vertices)]
        return np.ascontiguousarray(new[new != NO_VERTEX])

    def bitmap_of(self, flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
        """Return the bitmap by new ids (level.py) of flags by the caller's ids."""
        return packed_words(flags[self.relabelling.old_of_new])

    def is_isolated(self, vertex: int) -> bool:
        """Return whether a vertex (the caller's id) has no edges except self-loops."""
        new = int(self.relabelling.new_of_old[vertex])
        if new >= self.num_searched:
            return True
        backward = self.graph.transpose
        return bool(self.degree[new] == 0 and backward.indptr[new] == backward.indptr[new + 1])


def packed_words(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """Return a bitmap: flag i is bit i % 32 of word i // 32."""
    words = np.zeros(-(-flags.size // 32), "<u4")
    bits = np.packbits(flags, bitorder="little")
    words.view(np.uint8)[: bits.size] = bits
    return words.astype(np.uint32, copy=False)


def build_search_graph(edges: EdgeSource, order: str = "auto") -> SearchGraph:
    """Relabel and build a graph from edges: Graph500's kernel 1.

    `order` is one of `relabel.ORDERS`. Degree order counts duplicate edges, so that one pass over
    the edges suffices. With duplicates it may differ slightly from the order of the final degrees.
    """
    check_edge_source(edges)
    check_choice("order", order, ORDERS)
    if order in ("auto", "given") and isinstance(edges, CSRGraph) and edges.layers is not None:
        return as_given(edges)  # without another copy
    check_memory(edges)
    steps = Steps()
    counts: list[VertexArray] | None = None
    if isinstance(edges, CSRGraph) and not edges.directed:
        degree = edges.degree()
    else:
        counts = count_ends(edges, transpose=edges.directed)
        degree = counts[0][0] + counts[1][0] if edges.directed else counts[0][0]
    steps.end(COUNTING)
    relabelling = relabel(degree, order)
    steps.end(RELABELLING)
    raw_degree = degree if counts is None else counts[0][0]
    if isinstance(edges, CSRGraph) and relabelling.order != "degree":
        graphs = _in_their_order(edges, relabelling)
        steps.end(PLACING)
    else:
        counts = counts or count_ends(edges, transpose=False)
        buckets = [cut_into_buckets(rows, relabelling) for rows in counts]
        raw_degree, *_ = [shrink(rows, edges.num_vertices) for rows in counts]
        steps.end("cutting buckets")
        graphs = [
            _sorted_lists(edges, relabelling, way, i == 1, steps) for i, way in enumerate(buckets)
        ]
    del counts, degree
    if order in ("auto", "locality") and relabelling.order == "compact":
        relabelling, graphs = _order_by_locality(graphs, relabelling, order == "locality")
        steps.end(LOCALITY)
    if edges.directed:
        graphs[0].__dict__["_transposed"] = graphs[1]
    first = first_neighbours_of(graphs[-1])
    steps.end("first neighbours")
    return SearchGraph(
        graphs[0],
        relabelling,
        edges.num_input_edges,
        input_degree_of(edges, raw_degree),
        graphs[0].input_degree,
        first,
        step_seconds=steps.seconds,
        names=getattr(edges, "names", None),
    )


def _sorted_lists(
    edges: EdgeSource, relabelling: Relabelling, buckets: Buckets, transposed: bool, steps: Steps
) -> CSRGraph:
    indptr, indices, degree, weights = place_and_sort(
        edges, relabelling, buckets, transposed, steps
    )
    counts = edges.directed, edges.num_input_edges, degree
    return CSRGraph.trusted(indptr, indices, *counts, weights)


def _in_their_order(graph: CSRGraph, relabelling: Relabelling) -> list[CSRGraph]:
    """Copy the lists, and the transpose's if directed, in an order that keeps them sorted.

    Vertices that leave have empty lists, so all entries stay where they are.
    """
    old_of_new = relabelling.old_of_new
    indptr = aligned_empty(old_of_new.size + 1, np.int64)
    np.take(graph.indptr, old_of_new, out=indptr[:-1], mode="clip")
    indptr[-1] = graph.num_stored_edges
    indices = _copy(graph.indices)  # the caller's arrays may change, so the copies are checked
    refuse_changed(indptr, indices, graph.num_vertices)
    if old_of_new.size < graph.num_vertices:
        np.take(relabelling.new_of_old, indices, out=indices, mode="clip")
        refuse_changed(indptr, indices, old_of_new.size)
    degree = np.diff(indptr).astype(np.uint32)
    weights = None if graph.weights is None else _copy(graph.weights)
    counts = graph.directed, graph.num_input_edges, degree
    copied = CSRGraph.trusted(indptr, indices, *counts, weights)
    return [copied, copied.transpose] if graph.directed else [copied]


def _copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copied = aligned_empty(array.size, array.dtype)
    copied[:] = array
    return copied


def as_given(graph: CSRGraph) -> SearchGraph:
    """Return a graph in its own order, sharing the arrays; this is faster than to relabel it."""
    degree, backward = graph.degree(), graph.transpose
    first = np.arange(graph.num_vertices, dtype=np.uint32)
    has_any = backward.indptr[1:] > backward.indptr[:-1]
    first[has_any] = backward.indices[backward.indptr[:-1][has_any]]
    identity = relabel(degree, "given")
    counts = graph.num_input_edges, graph.input_degree
    return SearchGraph(graph, identity, *counts, degree, first, names=graph.names)


def _order_by_locality(
    graphs: list[CSRGraph], relabelling: Relabelling, always: bool
) -> tuple[Relabelling, list[CSRGraph]]:
    """Renumber by locality if searches take many levels, or `always`.

    This needs memory for a second copy of the neighbour lists; without it the order is kept.
    """
    weights = graphs[0].weights
    of_entry = 8 if weights is None else 8 + 2 * weights.itemsize
    if not always and free_bytes() < of_entry * graphs[0].num_stored_edges * len(graphs):
        return relabelling, graphs
    found = by_locality(graphs[0], always)
    if found is None:
        return relabelling, graphs
    old_of_new, new_of_old = order, position = found
    if relabelling.num_searched < relabelling.new_of_old.size:
        old_of_new = relabelling.old_of_new[order]
        new_of_old = inverse(old_of_new, relabelling.new_of_old.size)
    renumbered = Relabelling(new_of_old, old_of_new, "locality")
    return renumbered, [permute(graph, order, position) for graph in graphs]


def by_locality(graph: CSRGraph, always: bool) -> tuple[VertexArray, VertexArray] | None:
    """Order vertices by locality if searches take many levels, or `always`.

    Returns the vertex at each position, and the position of each vertex; None to keep the order.
    """
    from hetero_bfs.graph.kernels.locality import order_by_locality, order_by_partitions

    indptr, indices = graph.indptr, graph.indices
    order, position, distance = (np.empty(graph.num_vertices, np.uint32) for _ in range(3))
    levels = order_by_locality(indptr, indices, graph.directed, order, position, distance)
    if levels < HIGH_DIAMETER_LEVELS and not always:
        return None
    if not graph.directed:
        order_by_partitions(indptr, indices, order, position, distance)
    return order, position


def permute(graph: CSRGraph, order: VertexArray, position: VertexArray) -> CSRGraph:
    """Renumber vertices: order[v] becomes v; `position` inverts `order` (both uint32).

    The new graph's `input_degree` is the length of its neighbour lists.
    """
    from hetero_bfs.graph.kernels.locality import permute_lists
    from hetero_bfs.graph.kernels.sorting import sort_lists

    degree = aligned_empty(graph.num_vertices, np.uint32)
    np.take(graph.degree(), order, out=degree, mode="clip")  # "raise" copies
    indptr = aligned_empty(graph.num_vertices + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    indices = aligned_empty(graph.num_stored_edges, np.uint32)
    given = NO_WEIGHTS if graph.weights is None else graph.weights
    weights = aligned_empty(given.size, given.dtype)
    permute_lists(graph.indptr, graph.indices, given, order, position, indptr, indices, weights)
    sort_lists(indptr, weights, indices)
    return CSRGraph.trusted(
        indptr,
        indices,
        graph.directed,
        graph.num_input_edges,
        degree,
        None if graph.weights is None else weights,
    )


def first_neighbours_of(graph: CSRGraph) -> VertexArray:
    from hetero_bfs.graph.kernels.sorting import first_neighbours

    first = aligned_empty(graph.num_vertices, np.uint32)
    first_neighbours(graph.indptr, graph.indices, first)
    return first


def layered(graph: CSRGraph, root: int) -> CSRGraph:
    """Return a graph whose vertices are numbered layer by layer from a root, which becomes 0.

    Parameters
    ----------
    graph : CSRGraph
    root : int

    Returns
    -------
    CSRGraph
        `layers` has the end of each layer. Vertices that the root does not reach come last. `names`
        has the vertices' names, or their ids in `graph`. In a layer the longest lists come first.
        An engine keeps this order for all algorithms, unless it is given another `order`.

    Raises
    ------
    ArgumentError, GraphError
        The graph is not a CSRGraph, or the root is not a vertex of it.
    """
    check_type("graph", graph, CSRGraph, "a CSRGraph")
    check_vertex(root, graph.num_vertices)
    lengths = np.diff(graph.indptr)
    if graph.directed:  # the longer list, of receivers or of senders
        lengths = np.maximum(lengths, np.diff(graph.transpose.indptr))
    order, ends = layers_of(graph.indptr, graph.indices, root, lengths)
    made = permute(graph, order, inverse(order, order.size))
    names = order.astype(np.int64) if graph.names is None else graph.names[order]
    counts = graph.directed, graph.num_input_edges, graph.input_degree[order]
    found = CSRGraph.trusted(made.indptr, made.indices, *counts, made.weights, names)
    found.__dict__["layers"] = ends
    return found


def layers_of(
    indptr: OffsetArray, indices: VertexArray, root: int, lengths: npt.NDArray[Any]
) -> tuple[VertexArray, OffsetArray]:
    """Return the vertices layer by layer, the longest lists of a layer first, and the layers' ends.

    Vertices that the root does not reach come after the last end.
    """
    from hetero_bfs.graph.kernels.locality import order_by_level

    order, distance = np.empty(lengths.size, np.uint32), np.full(lengths.size, NO_VERTEX, np.uint32)
    reached = order_by_level(indptr, indices, root, order, distance)
    order[reached:] = np.flatnonzero(distance == NO_VERTEX)
    ends = np.cumsum(np.bincount(distance[order[:reached]]))
    return order[np.lexsort((-lengths[order], distance[order]))], ends
