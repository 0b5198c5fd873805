"""The graph for shortest-path searches: neighbour lists by rising weight, and sums of weights."""

from __future__ import annotations

import time
import weakref
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph.weights import needed_weights, refuse_negative


class ByWeight(NamedTuple):
    """Neighbour lists by rising weight; `indptr` as in `CSRGraph`."""

    indptr: npt.NDArray[Any]
    neighbours: npt.NDArray[np.uint32]
    weights: npt.NDArray[Any]


class WeightedLists:
    """A graph's neighbour lists by rising weight, in new ids.

    Raises `GraphError` if the graph has no weights, or a negative one.
    """

    def __init__(self, graph: SearchGraph, what: str = "shortest paths") -> None:
        self.graph = graph
        self.weight_dtype = needed_weights(graph.graph).dtype
        refuse_negative(graph.graph, graph.relabelling.old_of_new, what)
        self.sort_seconds = 0.0

    @classmethod
    def of(cls, graph: SearchGraph, what: str) -> WeightedLists:
        """Return a graph's lists, shared as long as they are in use.

        `what` names the user of the lists in error messages.
        """
        made = _MADE[graph]() if graph in _MADE else None
        if made is None:
            made = cls(graph, what)
            _MADE[graph] = weakref.ref(made)
        return made

    def sort(self) -> None:
        began = time.perf_counter()
        _ = self.forward, self.backward_order
        self.sort_seconds += time.perf_counter() - began

    @property
    def num_vertices(self) -> int:
        return self.graph.num_searched

    @property
    def num_stored_edges(self) -> int:
        return self.graph.graph.num_stored_edges

    @cached_property
    def forward(self) -> ByWeight:
        return _sorted(self.graph.graph)

    @property
    def backward(self) -> ByWeight:
        """The transpose's lists; of an undirected graph, `forward`.

        For a directed graph they are not sorted: `backward_order` gives the order in which to read
        a list. With 4-byte weights this takes 12 bytes per stored edge besides the graph, instead
        of 16.
        """
        if not self.graph.graph.directed:
            return self.forward
        transpose = self.graph.graph.transpose
        return ByWeight(transpose.indptr, transpose.indices, needed_weights(transpose))

    @cached_property
    def backward_order(self) -> npt.NDArray[np.uint32]:
        """Positions of each list's entries by rising weight, for directed graphs."""
        from hetero_bfs.graph.kernels.sorting import sort_by_weight

        if not self.graph.graph.directed:
            return np.zeros(1, np.uint32)
        indptr, _, weights = self.backward
        places = np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr))
        return sort_by_weight(indptr, places.astype(np.uint32), weights)[0]

    @cached_property
    def distance_dtypes(self) -> list[np.dtype[Any]]:
        """Types of distances to try in this order: the weights' own, then a 64-bit type.

        The largest integer of a type means infinity, so it cannot be a weight of a search.
        """
        if self.weight_dtype.kind == "f":
            return list(dict.fromkeys((self.weight_dtype, np.dtype(np.float64))))
        weights, wide = needed_weights(self.graph.graph), np.dtype(np.int64)
        is_taken = weights.size and weights.max() == np.iinfo(self.weight_dtype).max
        return [wide] if is_taken else [self.weight_dtype, wide]

    @cached_property
    def may_overflow(self) -> bool:
        weights = needed_weights(self.graph.graph)
        largest = weights.max(where=np.isfinite(weights), initial=0).item()
        limits = np.iinfo if self.weight_dtype.kind == "i" else np.finfo
        return bool(largest > float(limits(self.weight_dtype).max) / max(self.num_vertices, 1))

    @cached_property
    def sums(self) -> tuple[float, int, int, int]:
        """Return sum and number of the finite weights, number of stored edges and of vertices."""
        weights = needed_weights(self.graph.graph)
        finite = weights[np.isfinite(weights)]
        with np.errstate(over="ignore"):  # an infinite sum gives a single window
            total = float(finite.sum(dtype=np.float64))
        return total, finite.size, self.num_stored_edges, self.num_vertices


_MADE: weakref.WeakKeyDictionary[SearchGraph, weakref.ref[WeightedLists]]
_MADE = weakref.WeakKeyDictionary()


def _sorted(graph: CSRGraph) -> ByWeight:
    from hetero_bfs.graph.kernels.sorting import sort_by_weight

    weights = needed_weights(graph) + needed_weights(graph).dtype.type(0)  # -0.0 becomes 0.0
    return ByWeight(graph.indptr, *sort_by_weight(graph.indptr, graph.indices, weights))
