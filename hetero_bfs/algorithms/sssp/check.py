"""Check of shortest paths, as in Graph500's kernel 3. Its code shares nothing with the searches.

1. The source has distance 0 and is its own parent.
2. A vertex has a finite distance if and only if it has a parent.
3. The end of an edge is at most as far as the start plus the weight.
4. Each reached vertex has an edge from its parent whose weight is the difference of their
distances.
5. Following parents leads to the source.

Sums have the weights' type and no tolerance, as in Graph500's reference. If float32 does not hold
every distance of a search, its sums are in float64. A distance beyond float64 is infinite, so its
vertex counts as not reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import CheckOutcome, GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import CHUNK_EDGES, check_ends, check_vertex
from hetero_bfs.graph.weights import weight_dtype_of, weighted_chunks
from hetero_bfs.support import processes
from hetero_bfs.support.checks import numbers_of_vertices
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.messages import progress

MAX_SEARCHES = 16
"""Most searches of a group: their float32 distances at one vertex fill one cache line."""

BYTES_PER_VERTEX = 12
"""Most memory for each search of a group."""

_Distances = npt.NDArray[np.float64]
_Parents = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PathOutcome(CheckOutcome):
    """The outcome of the check of one search.

    `nedge` counts the input edges for TEPS, as for a breadth-first search: those that start at a
    reached vertex, with duplicates, without self-loops. `reached` counts the vertices with a finite
    distance. Both are 0 if check 1 or 2 failed.
    """

    nedge: int = 0
    reached: int = 0


@dataclass
class _Search:
    """The state of a search's check; `circle` is the result of check 5, which comes last."""

    source: int
    failure: str | None
    circle: str | None = None
    reached: int = 0
    nedge: int = 0

    def outcome(self) -> PathOutcome:
        failure = self.failure or self.circle
        said = f"valid; {self.reached} vertices reached" if failure is None else failure
        message = f"source {self.source}: {said}"
        return PathOutcome(failure is None, message, self.nedge, self.reached)


class _Columns:
    """Searches whose sums have one type, one column each; check_kernels.py has the encoding."""

    def __init__(self, num_vertices: int, capacity: int, dtype: np.dtype[Any]) -> None:
        from hetero_bfs.algorithms.sssp import check_kernels

        self._loops: Any = check_kernels
        size = num_vertices * capacity
        self.searches: list[_Search] = []
        self.distance = aligned_empty(size, dtype).reshape(num_vertices, capacity)
        self.parent = aligned_empty(size, np.dtype(np.uint32)).reshape(num_vertices, capacity)
        self.distance.fill(0)
        self.parent.fill(self._loops.MET)

    def take(self, search: _Search, far: _Distances, up: _Parents) -> bool:
        """Make check 2 and store a search; return False if the type does not hold its distances."""
        column, n, unknown = len(self.searches), far.size, self._loops.MET
        wrong, lossy, uncertain = self._loops.take(far, up, column, self.distance, self.parent)
        if wrong < n:
            search.failure = (
                f"check 2 (who is reached): vertex {wrong} has distance {far[wrong]} and parent "
                f"{up[wrong]}"
            )
        if wrong < n or lossy < n:
            self.distance[:, column] = 0
            self.parent[:, column] = unknown
            return bool(wrong < n)
        self.parent[search.source, column] = unknown
        search.circle = _check_tree(search.source, up) if uncertain < n else None
        self.searches.append(search)
        return True

    def scan(self, chunk: tuple[Any, Any, Any], one_way: bool) -> None:
        """Make check 3 with a chunk of edges, and note which parents they confirm."""
        fails = self._loops.scan(chunk, one_way, self.distance, self.parent)
        for column, search in enumerate(self.searches):
            if search.failure is None and fails[column] < chunk[0].size:
                edge = [array[fails[column]] for array in chunk]
                search.failure = shorter_way(edge, one_way, self.distance[:, column])

    def finish(self, ends: npt.NDArray[np.int64], directed: bool) -> None:
        """Make check 4, and count vertices and edges."""
        reached, sums, unmet = self._loops.summarise(self.distance, self.parent, ends)
        for column, search in enumerate(self.searches):
            search.reached = int(reached[column])
            search.nedge = int(sums[column]) if directed else int(sums[column]) // 2
            if search.failure is None and unmet[column] < ends.size:
                search.failure = no_tree_edge(
                    int(unmet[column]), self.distance[:, column], self.parent[:, column]
                )


class PathChecker:
    """Checks a group of searches of one graph in a single pass over its edges.

    `edges` is an `EdgeSource`. `capacity`, 1 to `MAX_SEARCHES`, is the most searches of a group.
    Raises `GraphError` if the graph has no weights.
    """

    def __init__(self, edges: Any, capacity: int = MAX_SEARCHES) -> None:
        weights = weight_dtype_of(edges)
        if weights is None:
            raise GraphError("the graph has no weights; paths of it cannot be checked")
        self.edges = edges
        self.capacity = capacity
        narrow = np.dtype(np.float32 if weights == np.float32 else np.float64)
        self._dtypes = list(dict.fromkeys((narrow, np.dtype(np.float64))))
        self._ends: npt.NDArray[np.int64] | None = None  # input edges at each vertex
        self._empty()

    def _empty(self) -> None:
        self._searches: list[_Search] = []
        self._columns: dict[np.dtype[Any], _Columns] = {}

    def __len__(self) -> int:
        return len(self._searches)

    def is_full(self) -> bool:
        return len(self) == self.capacity

    def add(
        self,
        source: int,
        distance: npt.NDArray[np.floating[Any]],
        parent: npt.NDArray[np.integer[Any]],
    ) -> None:
        """Make checks 1 and 2 of a search; see `check_paths` for the arrays and errors."""
        n = self.edges.num_vertices
        source = check_vertex(source, n)
        far = numbers_of_vertices("distance", distance, n, "biuf")
        far = np.ascontiguousarray(far, np.float64)
        up = np.ascontiguousarray(numbers_of_vertices("parent", parent, n), np.int64)
        failure = None
        if far[source] != 0 or up[source] != source:
            failure = (
                f"check 1 (the source): distance {far[source]} and parent {up[source]} instead of "
                "0 and itself"
            )
        search = _Search(source, failure)
        self._searches.append(search)
        processes.use_loops()
        for dtype in self._dtypes if search.failure is None else ():
            if dtype not in self._columns:
                self._columns[dtype] = _Columns(n, self.capacity, dtype)
            if self._columns[dtype].take(search, far, up):
                return

    def finish(self) -> list[PathOutcome]:
        """Make checks 3 and 4 in one pass; return the outcomes in the order of `add`.

        The group is empty afterwards and its memory free. If no search passed check 2, no pass is
        made. Raises `GraphError` if an end of an edge is not a vertex.
        """
        edges = self.edges
        columns = [group for group in self._columns.values() if group.searches]
        if columns:
            one_way = edges.directed or edges.both_directions
            for chunk in self._chunks(one_way):
                for group in columns:
                    group.scan(chunk, one_way)
            assert self._ends is not None
            for group in columns:
                group.finish(self._ends, edges.directed)
        outcomes = [search.outcome() for search in self._searches]
        self._empty()
        return outcomes

    def _chunks(self, one_way: bool) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the edges; the first pass also counts them at each vertex."""
        from hetero_bfs.algorithms.sssp.check_kernels import count_ends

        edges, counted = self.edges, self._ends is not None
        if isinstance(edges, CSRGraph):  # its adjacency has lost the duplicates
            self._ends, counted = edges.input_degree.astype(np.int64), True
        if self._ends is None:
            self._ends = np.zeros(edges.num_vertices, np.int64)
        stored = edges.num_input_edges * (2 if edges.both_directions else 1)
        chunks = weighted_chunks(edges)
        for src, dst, weights in progress(chunks, "validating", -(-stored // CHUNK_EDGES)):
            check_ends(src, dst, edges.num_vertices)
            if not counted:
                count_ends(src, dst, one_way, self._ends)
            yield src, dst, weights


def check_paths(
    edges: Any,
    source: int,
    distance: npt.NDArray[np.floating[Any]],
    parent: npt.NDArray[np.integer[Any]],
) -> PathOutcome:
    """Check distances and parents against all edges.

    Parameters
    ----------
    edges : EdgeSource with weights
    source : int
    distance : float array, shape (num_vertices,)
        Infinity where not reached.
    parent : integer array, shape (num_vertices,)
        -1 where not reached.

    Raises
    ------
    ArgumentError
        An array of a wrong shape, or one that does not hold numbers.
    GraphError
        A source that is not in the graph, or a graph without weights.
    """
    checker = PathChecker(edges, 1)
    checker.add(source, distance, parent)
    return checker.finish()[0]


def shorter_way(edge: list[Any], one_way: bool, distance: npt.NDArray[Any]) -> str:
    u, v, weight = edge
    if not (one_way or float(distance[u]) + float(weight) < distance[v]):
        u, v = v, u
    return (
        f"check 3 (no shorter way): edge ({u}, {v}) of weight {weight} leads from distance "
        f"{distance[u]} to {distance[v]}"
    )


def no_tree_edge(child: int, distance: npt.NDArray[Any], parent: npt.NDArray[np.uint32]) -> str:
    up = int(parent[child])
    return (
        f"check 4 (edges of the tree): no edge from parent {up} to vertex {child} makes up "
        f"the difference of distances {distance[up]} and {distance[child]}"
    )


def _check_tree(source: int, parent: _Parents) -> str | None:
    """Make check 5 by pointer jumping: each step doubles the length of all jumps.

    It is unnecessary if each parent is nearer than its child.
    """
    ahead = np.where(parent >= 0, parent, source)
    for _ in range(max(parent.size - 1, 1).bit_length()):
        ahead = ahead[ahead]
    wrong = ahead != source
    if wrong.any():
        v = int(wrong.argmax())
        return f"check 5 (paths lead to the source): that of vertex {v} does not"
    return None
