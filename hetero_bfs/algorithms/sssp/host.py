"""Shortest paths on the host's cores: contracted chains, arrays of a search, and threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.host import narrow_offsets
from hetero_bfs.algorithms.sssp.result import MOST_RECORDS, Unfinished, Windows
from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.weighted_lists import ByWeight, WeightedLists
from hetero_bfs.scheduling.algorithm_decision import WindowPlan, WindowStrategy, plan_windows
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import in_parallel, parts_for

# Contracts the chains of a graph: paths of vertices with one or two edges; kernels/chains.py.
#
# Most vertices of a road network are in chains. Weights are integers, so the sum of a chain does
# not depend on the order of its additions.

_LEAST_EDGES = 1 << 15  # stored edges below which the passes before and after cost too much
_LEAST_CHAIN_SHARE = 0.5  # of the vertices have one edge or two


@dataclass
class Core:
    """The adjacency of a core, and of an extra last vertex from which a search starts.

    That vertex has an edge to each end of the source's chain. No edge leads to it, so the adjacency
    is directed. Searches relax all edges of a vertex and need no transpose.

    `numbers`, `ends` and `along` are the arrays `core`, `ends` and `along` of kernels/chains.py.
    """

    numbers: npt.NDArray[np.uint32]
    ends: npt.NDArray[np.uint32]
    along: npt.NDArray[np.int32]
    forward: ByWeight
    plan: WindowPlan
    distance_dtypes: list[np.dtype[Any]]

    def __post_init__(self) -> None:
        self.backward, self.backward_order = ByWeight(*self.forward), np.zeros(1, np.uint32)
        self.num_vertices = self.forward.indptr.size - 1
        self.num_stored_edges = self.forward.neighbours.size

    def start_from(self, starts: npt.NDArray[np.int64]) -> int:
        """Give the last vertex edges to two core vertices; `starts` has rows (vertex, distance)."""
        nearest_first = starts[np.argsort(starts[:, 1])]
        self.forward.neighbours[-2:], self.forward.weights[-2:] = nearest_first.T
        return self.num_vertices - 1


def contracted(lists: WeightedLists) -> Core | None:
    """Return the core of a graph; None if chains are few, or a chain's weight exceeds int32."""
    if not _is_of_chains(lists):
        return None
    from hetero_bfs.algorithms.sssp.kernels.chains import contract
    from hetero_bfs.graph.kernels.sorting import sort_by_weight

    n, degree = lists.num_vertices, np.diff(lists.forward.indptr)
    most = int(degree[degree > 2].sum()) + 2
    numbers, ends = np.full(n, NO_VERTEX, np.uint32), np.full((n, 2), NO_VERTEX, np.uint32)
    along, indptr = np.zeros((n, 2), np.int32), np.zeros(n + 2, np.int64)
    made = indptr, np.zeros(most, np.uint32), np.zeros(most, np.int32)
    vertices, entries, heaviest = contract(tuple(lists.forward), numbers, ends, along, made)
    total = float(made[2].sum(dtype=np.float64))
    plan = plan_windows(lists.weight_dtype, total, entries, entries, vertices)
    if heaviest >= np.iinfo(np.int32).max or plan.strategy is not WindowStrategy.FULL:
        return None
    indptr = indptr[: vertices + 2].copy()
    indptr[-1] = entries + 2
    forward = sort_by_weight(indptr, made[1][: entries + 2], made[2][: entries + 2])
    core = ByWeight(indptr, *forward)
    return Core(numbers, ends, along, core, plan, lists.distance_dtypes)


def _is_of_chains(lists: WeightedLists) -> bool:
    graph = lists.graph.graph
    if graph.directed or graph.num_stored_edges < _LEAST_EDGES:
        return False
    few = int(np.count_nonzero(np.diff(graph.indptr) <= 2))
    is_int32 = bool(lists.distance_dtypes[0] == np.int32)
    return is_int32 and few >= _LEAST_CHAIN_SHARE * lists.num_vertices


_POOL_EDGES = 1 << 14
"""In graphs with fewer stored edges, no window is worth waking another thread."""

_NONE = np.empty(0, np.uint32)


class HostSearch:
    """Searches on the host's cores. `threads` includes the caller's thread."""

    def __init__(self, lists: WeightedLists | Core, threads: int, plan: WindowPlan) -> None:
        self.lists, self.plan = lists, plan
        self.threads = 1 if lists.num_stored_edges < _POOL_EDGES else threads
        self._runs: dict[np.dtype[Any], _Run] = {}

    def run(self, source: int) -> Windows:
        """Search from `source` (a new id); see loop.py.

        If a distance exceeds the weights' type, the search runs again with 64 bits.
        """
        for dtype in self.lists.distance_dtypes:
            found = self.run_as(dtype, source)
            if found is not None:
                return found
        raise AssertionError("a distance exceeds 64 bits")

    def run_as(self, dtype: np.dtype[Any], source: int) -> Windows | None:
        """Search with distances of one type; None if it has 32 bits and a distance exceeds it.

        Distances beyond float64 are infinite. Sums of int32 weights never exceed int64.
        """
        return self._run_of(dtype).search(source)

    def go_on(self, source: int, left: Unfinished) -> Windows | None:
        """Continue a search; None if its type has 32 bits and a distance exceeds it."""
        return self._run_of(left.distance.dtype).go_on(source, left)

    def prepare(self) -> None:
        self._run_of(self.lists.distance_dtypes[0])

    def _run_of(self, dtype: np.dtype[Any]) -> _Run:
        if dtype not in self._runs:
            self._runs[dtype] = _Run(self.lists, dtype, self.threads, self.plan)
            self._runs[dtype].prepare()
        return self._runs[dtype]

    def close(self) -> None:
        for run in self._runs.values():
            run.close()


class _Run(HostRun):
    """The arrays of searches whose distances have one type."""

    _name = "WeightedSearch"
    _module = "hetero_bfs.algorithms.sssp.kernels.loop"

    def __init__(
        self, lists: WeightedLists | Core, dtype: np.dtype[Any], threads: int, plan: WindowPlan
    ) -> None:
        super().__init__(threads)
        self.infinity = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
        n = lists.num_vertices
        self.distance = aligned_empty(n, dtype)
        self.records = np.zeros((MOST_RECORDS, self._kernels.RECORD_WIDTH))
        self._lists, self._plan = lists, plan

    def _make_fields(self) -> dict[str, Any]:
        from hetero_bfs.devices.cpu.thread_pool import BLOCK, most_blocks

        phases, n, dtype = self._kernels.phases, self.distance.size, self.distance.dtype
        integer = np.dtype(f"i{dtype.itemsize}")
        window = np.zeros(8, dtype)
        window[phases.INFINITY] = self.infinity
        forward, backward = self._lists.forward, self._lists.backward
        line, blocks = (self.threads, 8), most_blocks(n, self.threads)
        blocks_of_pool = phases.pool_blocks(n, self.threads)
        of_queue, of_pool = blocks * BLOCK, blocks_of_pool * phases.POOL_BLOCK
        items = aligned_empty(max(2 * of_queue, of_pool), np.uint32)  # no phase needs both
        indptr = narrow_offsets(forward.indptr)
        return {
            "threads": self.threads,
            "is_directed": int(forward is not backward),
            "indptr": indptr,
            "neighbours": forward.neighbours,
            "weights": forward.weights,
            "backward_indptr": indptr if forward is backward else narrow_offsets(backward.indptr),
            "backward_neighbours": backward.neighbours,
            "backward_weights": backward.weights,
            "backward_order": self._lists.backward_order,
            "distance": self.distance,
            "bits": self.distance.view(integer),
            "relaxed": aligned_empty(n, integer),
            "position": aligned_empty(n, np.uint32),
            "active": tuple(aligned_empty(blocks * BLOCK, np.uint32) for _ in range(2)),
            "queue": (items[:of_queue], items[of_queue : 2 * of_queue]),
            "active_blocks": np.zeros((2, blocks), np.int32),
            "queue_blocks": np.zeros((2, blocks), np.int32),
            "owners": np.zeros((2, blocks), np.int32),
            "cursor": np.zeros(line, np.int64),
            "place": np.zeros(self.threads, np.int64),
            "queued": aligned_empty(n, np.int32),
            "listed": aligned_empty(n, np.int8),
            "pool": items[:of_pool],
            "link": np.zeros(blocks_of_pool, np.int32),
            "top": np.zeros((self.threads, phases.MOST_BUCKETS), np.int64),
            "found": np.zeros((self.threads, phases.ENDS), np.uint32),
            "reached": np.zeros((self.threads, phases.ENDS), dtype),
            "free": np.zeros(line, np.int64),
            "offer": np.zeros(line, np.int64),
            "window": window,
            "lowest": np.zeros(line, dtype),
            "counters": np.zeros((phases.NUM_COUNTERS, 8), np.int64),
            "work": np.zeros(self._kernels.NUM_TASKS, np.int64),
        }

    def _arguments(
        self, source: int, waiting: npt.NDArray[np.uint32] = _NONE, start: Any = 0
    ) -> tuple[Any, ...]:
        plan, least = self._plan, 0.0 if self.distance.dtype.kind == "f" else 1.0
        bucket = plan.full_width / self._kernels.PLANNED_BUCKETS
        widths = np.maximum((plan.prefix_width, bucket), least)
        start = self.distance.dtype.type(start)
        strategy = int(WindowStrategy.FULL if waiting.size else plan.strategy)
        return self.control, self.shared, source, waiting, start, widths, strategy, self.records

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        return [(self._kernels.search, self._arguments(0))]

    def search(
        self, source: int, waiting: npt.NDArray[np.uint32] = _NONE, start: Any = 0
    ) -> Windows | None:
        """Search from a new id, or continue a search; None if a distance exceeds this type."""
        rows = self._kernels.search(*self._arguments(source, waiting, start))
        if rows < 0:
            return None
        return Windows(self.distance, self.infinity, self.records[:rows].copy())

    def go_on(self, source: int, left: Unfinished) -> Windows | None:
        names = "distance", "bits", "relaxed", "listed"
        arrays = {name: self.fields[name] for name in names}
        parts = min(self.threads, parts_for(left.distance.size))
        in_parallel(self._kernels.phases.adopt, parts, found=left.distance, **arrays)
        return self.search(source, left.waiting, left.start)


# Shortest paths in graphs of chains, such as road networks, by a search of the contracted graph.
#
# The search runs in the core (host.py). Then a vertex of a chain gets the smaller of its two
# distances, one by each end of the chain.


def search_on_host(lists: WeightedLists, threads: int) -> HostSearch:
    """Return the host's executor. It contracts chains if they have most of the vertices.

    A search with PREFIX pulls, which a core's adjacency does not allow.
    """
    plan = plan_windows(lists.weight_dtype, *lists.sums)
    core = contracted(lists) if plan.strategy is WindowStrategy.FULL else None
    return HostSearch(lists, threads, plan) if core is None else ChainSearch(lists, core, threads)


class ChainSearch(HostSearch):
    """Searches the core, then fills in the chains; the recorded windows are the core's."""

    def __init__(self, lists: WeightedLists, core: Core, threads: int) -> None:
        super().__init__(core, threads, core.plan)
        self._whole, self._core, self._all_threads = lists, core, threads
        self._distances: dict[np.dtype[Any], npt.NDArray[Any]] = {}

    def run_as(self, dtype: np.dtype[Any], source: int) -> Windows | None:
        distance = self._distance(dtype)
        starts = self._walk(source, distance)
        found = super().run_as(dtype, self._core.start_from(starts))
        if found is None or not self._fill_in(found, distance):
            return None
        self._walk(source, distance)
        return found._replace(distance=distance)

    def prepare(self) -> None:
        super().prepare()
        dtype = self.lists.distance_dtypes[0]
        distance = self._distance(dtype)
        self._walk(0, distance)
        nothing = np.zeros(self._core.num_vertices, dtype)
        self._fill_in(Windows(nothing, np.iinfo(dtype).max, np.empty((0, 0))), distance)

    def _distance(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        if dtype not in self._distances:
            self._distances[dtype] = aligned_empty(self._whole.num_vertices, dtype)
        return self._distances[dtype]

    def _walk(self, source: int, distance: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        from hetero_bfs.algorithms.sssp.kernels.chains import walk_from

        starts = np.zeros((2, 2), np.int64)
        walk_from(tuple(self._whole.forward), self._core.numbers, source, distance, starts)
        return starts

    def _fill_in(self, found: Windows, distance: npt.NDArray[Any]) -> bool:
        """Set all distances from the core's; return whether their type holds them."""
        from hetero_bfs.algorithms.sssp.kernels.chains import fill_in

        parts = min(self._all_threads, parts_for(distance.size))
        too_far, infinity = np.zeros(parts, np.int64), np.array([found.infinity], distance.dtype)
        core = self._core
        fill_in(core.ends, core.along, found.distance, infinity, distance, too_far, parts=parts)
        return not too_far.any()
