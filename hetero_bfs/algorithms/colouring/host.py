"""Colouring on the host's cores: the arrays of a run, and the thread pool."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.graph.edge_source import OffsetArray, VertexArray
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_empty


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
        self.degree: VertexArray = graph.degree
        if graph.graph.directed:
            from hetero_bfs.algorithms.colouring.kernels import unite_lists

            self.indptr, self.indices = unite_lists(graph.graph, graph.graph.transpose)
            self.degree = np.diff(self.indptr).astype(np.uint32)
        self.num_vertices, self.num_stored_edges = graph.num_searched, int(self.indices.size)
        self.order, self.rank = (aligned_empty(self.num_vertices, np.uint32) for _ in range(2))

    def sort_vertices(self) -> None:
        """Fill `order` and `rank`. Every run does this, since it is a part of the run's work."""
        from hetero_bfs.algorithms.colouring.kernels import rank_vertices

        new_of_old = self.graph.relabelling.new_of_old
        rank_vertices(self.degree, new_of_old, self.order, self.rank)

    def by_rank(self) -> tuple[OffsetArray, VertexArray]:
        """Return indptr and indices of the adjacency with each vertex numbered by its rank."""
        from hetero_bfs.algorithms.colouring.kernels import renumber_lists

        self.sort_vertices()
        if np.array_equal(self.order, np.arange(self.num_vertices)):
            return self.indptr, self.indices
        indptr = aligned_empty(self.num_vertices + 1, np.int64)
        indptr[0] = 0
        np.cumsum(self.degree[self.order], out=indptr[1:])
        indices = aligned_empty(self.num_stored_edges, np.uint32)
        renumber_lists(self.indptr, self.indices, self.order, self.rank, indptr, indices)
        return indptr, indices


_POOL_EDGES = 1 << 20
"""In graphs with fewer stored edges, no block is worth waking another thread."""

_MOST_RECORDS = 1 << 12
_STRATEGIES = ("greedy", "shared")  # by the numbers in kernels.py


class HostColouring(HostRun):
    """Colours on the host's cores. `threads` includes the caller's thread."""

    _name = "Colouring"
    _module = "hetero_bfs.algorithms.colouring.kernels"

    def __init__(self, lists: UndirectedLists, threads: int) -> None:
        super().__init__(threads if lists.num_stored_edges >= _POOL_EDGES else 1)
        self.lists = lists
        self.colour = aligned_empty(lists.num_vertices, np.int32)

    def _make_fields(self) -> dict[str, Any]:
        lists, n, kernels = self.lists, self.lists.num_vertices, self._kernels
        from hetero_bfs.devices.cpu.thread_pool import CHUNKS_PER_THREAD

        is_pool = self.threads > 1
        return {
            "threads": self.threads,
            "indptr": lists.indptr,
            "indices": lists.indices,
            "order": lists.order,
            "rank": lists.rank,
            "colour": self.colour,
            "by_rank": aligned_empty(n if is_pool else 0, np.int32),
            "notes": aligned_empty(kernels.MOST_NOTES if is_pool else 0, np.uint32),
            "noted": np.zeros(CHUNKS_PER_THREAD * self.threads, np.int64),
            "work": np.zeros(kernels.NUM_TASKS, np.int64),
        }

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        return [(self._kernels.colour_all, (self.control, self.shared, self._records))]

    @cached_property
    def _records(self) -> Any:
        return np.zeros((_MOST_RECORDS, self._kernels.RECORD_WIDTH))

    def run(self) -> Coloured:
        steps, (loop, arguments) = [sort_step(self.lists)], self._loops()[0]
        rows = loop(*arguments)
        steps += [
            Step(_STRATEGIES[int(strategy)], int(vertices), int(edges), seconds)
            for strategy, vertices, edges, seconds in self._records[:rows].tolist()
        ]
        return Coloured(self.colour, steps)

    def extend(self, start: npt.NDArray[np.int32]) -> Coloured:
        """Colour the vertices that have no colour in `start`, and those in conflict."""
        lists, self.colour[:] = self.lists, start
        steps = [sort_step(lists)]
        began = time.perf_counter()
        removed = self._kernels.remove_conflicts(
            lists.indptr, lists.indices, lists.order, lists.rank, self.colour
        )
        seconds = time.perf_counter() - began
        steps.append(Step("conflicts", int(removed), lists.num_stored_edges, seconds))
        steps.append(finish_serially(lists, self.colour, lists.num_vertices))
        return Coloured(self.colour, steps)


def sort_step(lists: UndirectedLists) -> Step:
    began = time.perf_counter()
    lists.sort_vertices()
    return Step("sort", lists.num_vertices, 0, time.perf_counter() - began)


def finish_serially(
    lists: UndirectedLists, colour: Any, limit: int = 0, end: int | None = None
) -> Step:
    """Colour the vertices without a colour, or the first `end` ranks, none of which has one.

    `limit` is as in `colour_serially`.
    """
    from hetero_bfs.algorithms.colouring.kernels import colour_serially

    began, indptr, indices = time.perf_counter(), lists.indptr, lists.indices
    left = int(np.count_nonzero(colour < 0)) if end is None else end
    end = lists.num_vertices if end is None else end
    edges, _ = colour_serially(indptr, indices, lists.order, colour, 0, end, limit)
    return Step("greedy", left, int(edges), time.perf_counter() - began)
