"""The host's cores: arrays of one search and its levels, run by Numba."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.bfs import Found, Frontier
from hetero_bfs.build import SearchGraph
from hetero_bfs.memory import aligned_empty
from hetero_bfs.strategy import DeviceKind, Strategy

CACHE_LINE_COUNTERS = 8


class Allocator(Protocol):
    """Makes the arrays that a search writes: plain, or where an OpenCL device reaches them."""

    def __call__(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an uninitialised array of `size` items."""
        ...


class CPUSearcher:
    """Runs levels on the host's cores.

    The arrays are described in kernels/bfs.py. `allocate` lets an OpenCL device provide them, so
    that it can use them in place or copy them fast.
    """

    kind: DeviceKind = "cpu"

    def __init__(self, graph: SearchGraph, allocate: Allocator = aligned_empty) -> None:
        import numba

        n = graph.num_searched
        words = -(-n // 32)
        self.graph = graph
        self.threads = numba.get_num_threads()
        self.edge_bits = counter_edge_bits(graph)
        self.parent = allocate(n, np.uint32)
        self.visited = [allocate(words, np.uint32) for _ in range(2)]
        self.queue = [allocate(n, np.uint32) for _ in range(2)]
        self.offsets = [allocate(n, np.int64) for _ in range(2)]
        self._counter = np.zeros(1, np.uint64)
        self._totals = np.zeros((self.threads, CACHE_LINE_COUNTERS), np.int64)
        self._found: npt.NDArray[np.uint32] | None = None

    def start(self, root: int, frontier: Frontier) -> None:
        """Forget the last search and make `root` (a new id) the frontier."""
        from hetero_bfs.kernels.frontier import set_root

        self.clear(frontier)
        set_root(
            root,
            self.parent,
            self.visited[frontier.visited_index],
            self.queue[frontier.queue_index],
            self.offsets[frontier.queue_index],
        )

    def clear(self, frontier: Frontier) -> None:
        """Forget the last search."""
        from hetero_bfs.kernels.frontier import clear

        clear(self.parent, self.visited[frontier.visited_index])

    def to_queue(self, frontier: Frontier) -> None:
        """Turn a frontier that bottom-up left as a bitmap into a queue."""
        from hetero_bfs.kernels.frontier import bitmap_to_queue

        self._counter[0] = 0
        bitmap_to_queue(
            self.visited[frontier.visited_index],
            self.visited[1 - frontier.visited_index],
            self.graph.degree,
            self.edge_bits,
            self._counter,
            self.queue[frontier.queue_index],
            self.offsets[frontier.queue_index],
        )
        found = unpack_counter(int(self._counter[0]), self.edge_bits)
        frontier.became_queue(found)

    def run(self, strategy: Strategy, frontier: Frontier) -> Found:
        """Run one level and move `frontier` on to the next."""
        if strategy.direction == "top-down":
            found = self._top_down(frontier)
        else:
            found = self._bottom_up(frontier)
        frontier.advance(strategy.direction, found)
        return found

    def _top_down(self, frontier: Frontier) -> Found:
        from hetero_bfs.kernels.bfs import CHUNK_EDGES, top_down

        if self._found is None:
            self._found = np.empty((self.threads, CHUNK_EDGES), np.uint32)
        this, following = frontier.queue_index, 1 - frontier.queue_index
        self._counter[0] = 0
        top_down(
            self.queue[this],
            self.offsets[this],
            frontier.vertices,
            frontier.edges,
            self.graph.graph.indptr,
            self.graph.graph.indices,
            self.graph.degree,
            self.visited[frontier.visited_index],
            self.parent,
            self.queue[following],
            self.offsets[following],
            self.edge_bits,
            self._counter,
            self._found,
        )
        return unpack_counter(int(self._counter[0]), self.edge_bits)

    def _bottom_up(self, frontier: Frontier) -> Found:
        from hetero_bfs.kernels.bfs import bottom_up

        backward = self.graph.graph.transpose
        bottom_up(
            self.graph.first,
            backward.indptr,
            backward.indices,
            self.graph.degree,
            self.visited[frontier.visited_index],
            self.visited[1 - frontier.visited_index],
            self.parent,
            self._totals,
        )
        vertices, edges, examined = (int(x) for x in self._totals.sum(axis=0)[:3])
        return Found(vertices, edges, examined)


def counter_edge_bits(graph: SearchGraph) -> int:
    """Bits of the packed counter that hold edges; the rest hold vertices.

    40 unless the graph is too large for that, so that most graphs share one compiled kernel.
    """
    edge_bits = min(40, 64 - graph.num_searched.bit_length())
    assert graph.graph.num_stored_edges < 1 << edge_bits, "more edges than any memory holds"
    return edge_bits


def unpack_counter(packed: int, edge_bits: int) -> Found:
    """Split a counter into vertices and edges."""
    return Found(packed >> edge_bits, packed & ((1 << edge_bits) - 1))
