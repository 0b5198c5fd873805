"""A graph as programs see it: all vertices in new ids, those without edges last."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph.weights import needed_weights


class Run(NamedTuple):
    """What a run did: states in new ids, which the next run overwrites, and a record an iteration.

    A record has the strategy, vertices, edges scanned and seconds.
    """

    state: dict[str, npt.NDArray[Any]]
    iterations: int
    converged: bool
    totals: dict[str, float]
    records: list[tuple[str, int, int, float]]


class PlacedGraph:
    """A graph's lists, and arrays for all of its vertices.

    Vertices without edges left the searched range; here they follow it.
    """

    def __init__(self, graph: SearchGraph) -> None:
        self.graph = graph
        self.num_vertices, self.num_searched = graph.num_vertices, graph.num_searched

    @property
    def directed(self) -> bool:
        """Whether edges lead one way."""
        return self.graph.graph.directed

    @property
    def num_stored_edges(self) -> int:
        """Entries of the lists."""
        return self.graph.graph.num_stored_edges

    @property
    def forward(self) -> CSRGraph:
        """Lists of edges that leave a vertex."""
        return self.graph.graph

    @property
    def backward(self) -> CSRGraph:
        """Lists of edges that lead to a vertex."""
        return self.graph.graph.transpose

    @cached_property
    def names(self) -> npt.NDArray[np.uint32]:
        """The caller's id of each vertex, uint32 (num_vertices,)."""
        relabelling = self.graph.relabelling
        alone = np.flatnonzero(relabelling.new_of_old == NO_VERTEX).astype(np.uint32)
        return np.concatenate([relabelling.old_of_new, alone])

    @cached_property
    def degree(self) -> npt.NDArray[np.uint32]:
        """Edges that leave each vertex, uint32 (num_vertices,)."""
        degree = np.zeros(self.num_vertices, np.uint32)
        degree[: self.num_searched] = self.graph.degree
        return degree

    def forward_weights(self, used: bool) -> npt.NDArray[Any]:
        """Return the weights of `forward`; one zero if they are not used, or there are none."""
        return _weights(self.forward, used)

    def backward_weights(self, used: bool) -> npt.NDArray[Any]:
        """Return the weights of `backward`, likewise."""
        return _weights(self.backward, used)

    @property
    def weight_type(self) -> str | None:
        """Type of the weights, if there are some."""
        weights = self.forward.weights
        return None if weights is None else weights.dtype.name

    @cached_property
    def usual_step(self) -> float:
        """A width for buckets of sums of weights: what a vertex of mean degree finds some edges in.

        Wider buckets send messages twice, narrower ones leave threads without work.
        """
        weights = self.forward.weights
        if weights is None or weights.size == 0:
            return 1.0
        finite = np.abs(weights[np.isfinite(weights)], dtype=np.float64)
        degree = max(weights.size / max(self.num_searched, 1), 1.0)
        return max(float(finite.mean()) * 16.0 / degree, 1e-300) if finite.size else 1.0


def _weights(graph: CSRGraph, used: bool) -> npt.NDArray[Any]:
    if not used or graph.num_stored_edges == 0:
        kind = graph.weights.dtype if used and graph.weights is not None else np.int32
        return np.zeros(1, kind)
    return needed_weights(graph)
