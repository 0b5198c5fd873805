"""The graph for a colouring: its undirected adjacency, and the ranks of vertices."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import OffsetArray, VertexArray
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import in_parallel


class Step(NamedTuple):
    """A record of an iteration; see `IterationTrace`."""

    strategy: str
    vertices: int
    edges_scanned: int
    seconds: float


class Coloured(NamedTuple):
    """The result of an executor: colours in new ids, and a record for each iteration.

    The next run may overwrite `colour`. `streamed_bytes` are the bytes of the adjacency sent to a
    device that does not hold it.
    """

    colour: npt.NDArray[np.int32]
    steps: list[Step]
    streamed_bytes: int = 0


class UndirectedLists:
    """A graph's undirected adjacency in new ids. A directed graph's edges count in both directions.

    Once `sort_vertices` was called, `order` and `rank`, uint32 (num_vertices,), have the order in
    which vertices are coloured: by falling degree, then by the caller's id. `order` has the
    vertices by rank, and `rank` is the inverse.
    """

    def __init__(self, graph: SearchGraph) -> None:
        self.graph = graph
        self.indptr: OffsetArray = graph.graph.indptr
        self.indices: VertexArray = graph.graph.indices
        if graph.graph.directed:
            from hetero_bfs.algorithms.colouring.kernels.greedy import unite_lists

            self.indptr, self.indices = unite_lists(graph.graph, graph.graph.transpose)
        self.order, self.rank = (aligned_empty(graph.num_searched, np.uint32) for _ in range(2))

    @property
    def num_vertices(self) -> int:
        """Vertices in the searched range."""
        return self.graph.num_searched

    @property
    def num_stored_edges(self) -> int:
        return int(self.indices.size)

    @cached_property
    def degree(self) -> VertexArray:
        """Degree of every vertex, uint32 (num_vertices,)."""
        if self.graph.graph.directed:
            return np.diff(self.indptr).astype(np.uint32)
        return self.graph.degree

    def sort_vertices(self) -> None:
        """Fill `order` and `rank`. Every run does this, since it is a part of the run's work."""
        from hetero_bfs.algorithms.colouring.kernels.greedy import rank_vertices

        new_of_old = self.graph.relabelling.new_of_old
        rank_vertices(self.degree, new_of_old, self.order, self.rank)

    def by_rank(self) -> tuple[OffsetArray, VertexArray]:
        """Return indptr and indices of the adjacency with each vertex numbered by its rank."""
        from hetero_bfs.algorithms.colouring.kernels.greedy import renumber_lists

        self.sort_vertices()
        if np.array_equal(self.order, np.arange(self.num_vertices)):
            return self.indptr, self.indices
        indptr = aligned_empty(self.num_vertices + 1, np.int64)
        indptr[0] = 0
        np.cumsum(self.degree[self.order], out=indptr[1:])
        indices = aligned_empty(self.num_stored_edges, np.uint32)
        lists = {"indptr": self.indptr, "indices": self.indices}
        ranks = {"order": self.order, "rank": self.rank}
        in_parallel(renumber_lists, **lists, **ranks, new_indptr=indptr, new_indices=indices)
        return indptr, indices
