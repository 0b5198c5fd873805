"""Shortest paths on all ranks, window by window of distances.

Each rank relaxes the edges of its own vertices (kernels/ranks_relax.py) until none of their
distances is left in the window. Then it sends the distances that it found for vertices of other
ranks. This is a round. A window ends when no rank has a vertex left in it. A round communicates
counts, vertex numbers and distances, and then a reduction of the values by which ranks decide.

The search pulls once: when the settled vertices of some rank have more edges left than the
unsettled vertices of every rank. All ranks then exchange all distances in one call, and each
unsettled vertex looks for its best settled neighbour. Parents are found at the end, after another
exchange of all distances.

A rank searches with one thread, and finds parents with all its threads.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import NO_VERTEX, check_vertex
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.exchange import mail
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.scheduling.window_plan import WindowPlan, WindowStrategy, plan_windows
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import Struct

_EXACT = 2.0**52
"""Above this, float64 does not hold every integer, so the rest of a search is one window."""


@dataclass(frozen=True)
class RankWindow:
    """A window on one rank.

    `start` is the smallest distance in it, `strategy` is "prefix", "full" or "pull", and `rounds`
    counts exchanges of distances. `seconds` are those of the rank's own work; `exchange_seconds`
    include waiting for other ranks. `bytes_sent` counts bytes to other ranks. `vertices` are own
    vertices that relaxed or scanned edges, and `edges` these edges.
    """

    start: float
    strategy: str
    rounds: int
    seconds: float
    exchange_seconds: float
    bytes_sent: int
    vertices: int
    edges: int


@dataclass(eq=False)
class RankPaths:
    """Shortest paths on one rank; `source` is the caller's id.

    `distance` and `parent` have shape (own old ids,): infinity and NO_VERTEX where not reached;
    parents are old ids. `seconds` are of the slowest rank, until both are complete.
    """

    source: int
    distance: npt.NDArray[np.float64]
    parent: npt.NDArray[np.uint32]
    seconds: float
    windows: list[RankWindow]


class RankPathSearch:
    """Searches a weighted graph whose parts the ranks hold. All ranks make the same calls.

    Raises `AgreedError` on all ranks if the graph has no weights, or a negative one.
    """

    def __init__(self, communicator: Communicator, graph: RankGraph) -> None:
        self.communicator, self.graph = communicator, graph
        self._lists = agreed(communicator, lambda: WeightedLists(graph))
        began = time.perf_counter()
        self._lists.sort()
        self.sort_seconds = time.perf_counter() - began
        sums = np.array(self._lists.sums, np.float64)
        communicator.reduce_to_all(sums, "sum")
        weights = self._lists.weight_dtype
        self._plan = plan_windows(weights, *sums.tolist())
        wide = np.dtype(np.int64 if weights.kind == "i" else np.float64)
        dtypes = [wide] if weights.kind == "i" else dict.fromkeys((weights, wide))
        self._runs = [_Run(communicator, graph, self._lists, dtype) for dtype in dtypes]
        for first in (True, False):  # one rank of each host compiles; the others load its code
            if (communicator.host_rank == 0) == first:
                self._runs[0].compile()
            communicator.barrier()

    @property
    def weight_dtype(self) -> np.dtype[Any]:
        return self._lists.weight_dtype

    def search(self, source: int) -> RankPaths:
        """Search from a vertex (the caller's id). Raises `GraphError` if it is not in the graph."""
        source = check_vertex(source, self.graph.num_vertices)
        own = self.graph.searched_id(source)
        self.communicator.barrier()
        started = time.perf_counter()
        for run in self._runs:
            windows = run.search(own, self._plan)
            if windows is not None:
                break
        assert windows is not None
        parent = run.find_parents(own)
        seconds = np.array([time.perf_counter() - started])
        self.communicator.reduce_to_all(seconds, "max")
        return self._restored(source, run.distances(), parent, float(seconds[0]), windows)

    def _restored(
        self,
        source: int,
        found: npt.NDArray[np.float64],
        up: npt.NDArray[np.uint32],
        seconds: float,
        windows: list[RankWindow],
    ) -> RankPaths:
        from hetero_bfs.graph.kernels.old_ids import distances_by_old_ids, parents_by_old_ids

        numbers, part = self.graph.relabelling, self.graph.partition
        distance = distances_by_old_ids(found, np.inf, numbers.new_of_old)
        parent = parents_by_old_ids(up, numbers, np.uint32)
        if part.owner(source) == part.rank:  # sets the source even if it is isolated
            distance[source // part.ranks], parent[source // part.ranks] = 0.0, source
        return RankPaths(source, distance, parent, seconds, windows)


class _Run:
    """A rank's arrays of searches whose distances have one type."""

    def __init__(
        self, communicator: Communicator, graph: RankGraph, lists: WeightedLists, dtype: Any
    ) -> None:
        self._communicator, self._part, self._lists = communicator, graph.partition, lists
        self._dtype = np.dtype(dtype)
        self._infinity = np.inf if self._dtype.kind == "f" else np.iinfo(self._dtype).max
        self._agreed = np.zeros(5)
        self._bytes_sent = 0

    @cached_property
    def _fields(self) -> dict[str, Any]:
        from hetero_bfs.algorithms.sssp.kernels.ranks_relax import INFINITY

        own, columns = max(self._lists.num_vertices, 1), max(self._part.num_columns, 1)
        window = np.zeros(2, self._dtype)
        window[INFINITY] = self._infinity
        lists, is_directed = self._lists, self._lists.graph.graph.directed
        indptr, neighbours, weights = lists.forward
        return {
            "is_directed": int(is_directed),
            "searched": lists.num_vertices,
            "indptr": indptr,
            "neighbours": neighbours,
            "weights": weights,
            **{f"backward_{name}": array for name, array in lists.backward._asdict().items()},
            "backward_order": lists.backward_order,
            "distance": aligned_empty(columns, self._dtype),
            "relaxed": aligned_empty(own, self._dtype),
            "position": aligned_empty(own, np.uint32),
            "queue": aligned_empty(own, np.uint32),
            "queued": aligned_empty(own, np.uint8),
            "active": aligned_empty(own, np.uint32),
            "listed": aligned_empty(own, np.uint8),
            "outbox": aligned_empty(columns, np.uint32),
            "noted": aligned_empty(columns, np.uint8),
            "window": window,
            "lowest": np.zeros(1, self._dtype),
            "counts": np.zeros(8, np.int64),
        }

    @cached_property
    def _arrays(self) -> Struct:
        return Struct("RankPaths", self._fields)

    def compile(self) -> None:
        """Compile all phases by running a search that has no source and does not communicate."""
        from hetero_bfs.algorithms.sssp.kernels import ranks_relax as loops

        arrays, words = self._arrays, np.empty(1, np.uint32)
        none, counts = words[:0], np.zeros(1, np.int64)
        loops.begin(arrays, -1)
        loops.relax_active(arrays, self._infinity, False)
        loops.relax_queue(arrays, False)
        loops.take_outbox(arrays, self._fields["lowest"])
        loops.take_in(arrays, none, self._fields["lowest"][:0])
        loops.pull(arrays)
        loops.adopt(arrays, words, words, 0)
        loops.take_parents(arrays, words, none, none, counts, counts)

    def search(self, source: int | None, plan: WindowPlan) -> list[RankWindow] | None:
        """Search; `source` is a number of this rank, or None if another rank owns the source.

        Returns None on all ranks if the type has 32 bits and a distance exceeds it. Distances
        beyond float64 are infinite.
        """
        from hetero_bfs.algorithms.sssp.kernels import ranks_relax as loops

        loops.begin(self._arrays, -1 if source is None else source)
        windows: list[RankWindow] = []
        strategy = plan.strategy
        lowest, _, left, unsettled, is_beyond = self._agree()
        while lowest < self._infinity and not is_beyond:
            start = lowest
            is_full = strategy is WindowStrategy.FULL
            end = self._end_of(start, plan.full_width if is_full else plan.prefix_width)
            clock = _Clock()
            vertices, edges = loops.relax_active(self._arrays, end, is_full)
            rounds, waiting = 0, 1.0
            while waiting:
                clock.work_ended()
                self._send()
                rounds += 1
                lowest, waiting, left, unsettled, is_beyond = self._agree()
                clock.exchange_ended()
                if waiting:
                    more = loops.relax_queue(self._arrays, is_full)
                    vertices, edges = vertices + more[0], edges + more[1]
            windows.append(self._window(start, strategy.label, rounds, clock, vertices, edges))
            if strategy is WindowStrategy.PREFIX and left > unsettled:
                strategy, clock = WindowStrategy.FULL, _Clock()
                self._give_distances()
                clock.exchange_ended()
                vertices, edges = loops.pull(self._arrays)
                clock.work_ended()
                lowest, *_, is_beyond = self._agree()
                clock.exchange_ended()
                windows.append(
                    self._window(start, WindowStrategy.PULL.label, 1, clock, vertices, edges)
                )
        return None if is_beyond else windows

    def _window(
        self, start: float, name: str, rounds: int, clock: _Clock, vertices: int, edges: int
    ) -> RankWindow:
        sent, self._bytes_sent = self._bytes_sent, 0
        times = clock.work_seconds, clock.exchange_seconds
        return RankWindow(start, name, rounds, *times, sent, int(vertices), int(edges))

    def _end_of(self, start: float, width: float) -> Any:
        if self._dtype.kind == "i":
            return int(start + width) if start < _EXACT else self._infinity
        with np.errstate(over="ignore"):
            end = self._dtype.type(start + width)
        return end if end > start else self._dtype.type(np.inf)

    def _agree(self) -> list[float]:
        """Reduce the values by which ranks decide.

        Returns the smallest distance that waits on any rank. Then come four maxima over ranks: of
        vertices queued in the window, of edges left, of unsettled edges, and of a flag that is 1 if
        a distance exceeds a type of 32 bits.
        """
        from hetero_bfs.algorithms.sssp.kernels.ranks_relax import LEFT, OVERFLOW, QUEUED, UNSETTLED

        counts, agreed_on = self._fields["counts"], self._agreed
        agreed_on[0] = -float(self._fields["lowest"][0])
        agreed_on[1:] = counts[[QUEUED, LEFT, UNSETTLED, OVERFLOW]]
        agreed_on[4] *= self._dtype.itemsize < 8
        self._communicator.reduce_to_all(agreed_on, "max")
        lowest, *most = agreed_on.tolist()
        return [-lowest, *most]

    def _send(self) -> None:
        from hetero_bfs.algorithms.sssp.kernels import ranks_relax as loops

        if self._part.ranks == 1:
            return
        outbox = self._fields["outbox"]
        messages = np.empty(int(self._fields["counts"][loops.OUTBOX]), self._dtype)
        columns = outbox[: loops.take_outbox(self._arrays, messages)]
        self._bytes_sent += columns.nbytes + messages.nbytes
        numbers, distances, _ = mail(self._communicator, self._part, columns, messages)
        loops.take_in(self._arrays, numbers, distances)

    def _give_distances(self) -> None:
        part, distance = self._part, self._fields["distance"]
        mine = distance[: int(part.sizes[part.rank])]
        self._communicator.gather_to_all(mine, distance, part.sizes, part.first_column)
        self._bytes_sent += mine.nbytes if part.ranks > 1 else 0

    def find_parents(self, source: int | None) -> npt.NDArray[np.uint32]:
        """Return the parent of each own vertex as a column; NO_VERTEX where not reached."""
        from hetero_bfs.algorithms.sssp.kernels import ranks_relax as loops
        from hetero_bfs.algorithms.sssp.kernels.tree import nearer_parents

        self._give_distances()
        communicator, part, fields = self._communicator, self._part, self._fields
        parent, orphans = nearer_parents(self._lists, fields["distance"], self._infinity)
        if source is not None:
            parent[source] = source
            orphans -= 1
        waiting = np.array([orphans])
        communicator.reduce_to_all(waiting, "max")
        if not waiting[0]:
            return parent
        reached = np.flatnonzero(parent != NO_VERTEX)
        fields["queue"][: reached.size] = reached
        count, numbers = reached.size, np.empty(part.num_columns, np.uint32)
        while waiting[0]:
            outbox = loops.adopt(self._arrays, parent, numbers, count)
            columns, parents = fields["outbox"][:outbox], numbers[:outbox]
            own, up, received = mail(communicator, part, columns, parents)
            count = loops.take_parents(self._arrays, parent, own, up, received, part.first_column)
            waiting[0] = count
            communicator.reduce_to_all(waiting, "max")
        return parent

    def distances(self) -> npt.NDArray[np.float64]:
        mine = self._fields["distance"][: self._lists.num_vertices]
        found: npt.NDArray[np.float64] = mine.astype(np.float64)
        found[mine == self._infinity] = np.inf
        return found


class _Clock:
    def __init__(self) -> None:
        self.work_seconds = self.exchange_seconds = 0.0
        self._last = time.perf_counter()

    def _lap(self) -> float:
        before, self._last = self._last, time.perf_counter()
        return self._last - before

    def work_ended(self) -> None:
        self.work_seconds += self._lap()

    def exchange_ended(self) -> None:
        self.exchange_seconds += self._lap()
