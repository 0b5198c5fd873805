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
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.sssp.ranks_host import RankPathHost
from hetero_bfs.algorithms.sssp.result import RankWindow
from hetero_bfs.graph.edge_source import NO_VERTEX, check_vertex
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.exchange import mail
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.ranks.rank_run import RankRun, prepare_on_all
from hetero_bfs.scheduling.algorithm_decision import WindowStrategy, plan_windows

_EXACT = 2.0**52
"""Above this, float64 does not hold every integer, so the rest of a search is one window."""


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


class RankPathSearch(RankRun[RankPathHost]):
    """Searches a weighted graph whose parts the ranks hold. All ranks make the same calls.

    `host` has the distances' type of the latest search. The wider type, for distances beyond
    float32, is prepared before a search that needs it, which is not timed.

    Raises `AgreedError` on all ranks if the graph has no weights, or a negative one.
    """

    def __init__(self, communicator: Communicator, graph: RankGraph) -> None:
        self._lists = lists = agreed(communicator, lambda: WeightedLists(graph))
        began = time.perf_counter()
        lists.sort()
        self.sort_seconds = time.perf_counter() - began
        sums = np.array(lists.sums, np.float64)
        communicator.reduce_to_all(sums, "sum")
        self.weight_dtype = weights = lists.weight_dtype
        self._plan = plan_windows(weights, *sums.tolist())
        wide = np.dtype(np.int64 if weights.kind == "i" else np.float64)
        dtypes = [wide] if weights.kind == "i" else dict.fromkeys((weights, wide))
        self._hosts = [RankPathHost(lists, graph.partition, dtype) for dtype in dtypes]
        super().__init__(communicator, graph, lambda: self._hosts[0])
        self._agreed = np.zeros(5)
        self._bytes_sent = 0

    def search(self, source: int) -> RankPaths:
        """Search from a vertex (the caller's id). Raises `GraphError` if it is not in the graph."""
        source, seconds = check_vertex(source, self.graph.num_vertices), 0.0
        own = self.graph.searched_id(source)
        for host in self._hosts:
            if host is not self._hosts[0]:
                prepare_on_all(self.communicator, host.prepare)
            self.host = host
            found, more = self.timed(self._search, own)
            seconds += more
            if found is not None:
                windows, parent = found
                return self._restored(source, parent, seconds, windows)
        raise AssertionError("a distance exceeds 64 bits")

    def _restored(
        self,
        source: int,
        up: npt.NDArray[np.uint32],
        seconds: float,
        windows: list[RankWindow],
    ) -> RankPaths:
        from hetero_bfs.graph.kernels.old_ids import distances_by_old_ids, parents_by_old_ids

        numbers, part = self.graph.relabelling, self.graph.partition
        distance = distances_by_old_ids(self.host.own_distances(), np.inf, numbers.new_of_old)
        parent = parents_by_old_ids(up, numbers, np.uint32)
        if part.owner(source) == part.rank:  # sets the source even if it is isolated
            distance[source // part.ranks], parent[source // part.ranks] = 0.0, source
        return RankPaths(source, distance, parent, seconds, windows)

    def _search(self, source: int | None) -> tuple[list[RankWindow], npt.NDArray[np.uint32]] | None:
        """Return windows and parents.

        None on all ranks if the host's type has 32 bits and a distance exceeds it. `source` is None
        if another rank owns the source. Distances beyond float64 are infinite.
        """
        from hetero_bfs.algorithms.sssp.kernels import ranks_relax as loops

        host, plan = self.host, self._plan
        loops.begin(host.struct, -1 if source is None else source)
        windows: list[RankWindow] = []
        strategy = plan.strategy
        lowest, _, left, unsettled, is_beyond = self._agree()
        while lowest < host.infinity and not is_beyond:
            start = lowest
            is_full = strategy is WindowStrategy.FULL
            end = self._end_of(start, plan.full_width if is_full else plan.prefix_width)
            clock = _Clock()
            vertices, edges = loops.relax_active(host.struct, end, is_full)
            rounds, waiting = 0, 1.0
            while waiting:
                clock.work_ended()
                self._send()
                rounds += 1
                lowest, waiting, left, unsettled, is_beyond = self._agree()
                clock.exchange_ended()
                if waiting:
                    more = loops.relax_queue(host.struct, is_full)
                    vertices, edges = vertices + more[0], edges + more[1]
            windows.append(self._window(start, strategy.label, rounds, clock, vertices, edges))
            if strategy is WindowStrategy.PREFIX and left > unsettled:
                strategy, clock = WindowStrategy.FULL, _Clock()
                self._give_distances()
                clock.exchange_ended()
                vertices, edges = loops.pull(host.struct)
                clock.work_ended()
                lowest, *_, is_beyond = self._agree()
                clock.exchange_ended()
                windows.append(
                    self._window(start, WindowStrategy.PULL.label, 1, clock, vertices, edges)
                )
        return None if is_beyond else (windows, self._find_parents(source))

    def _window(
        self, start: float, name: str, rounds: int, clock: _Clock, vertices: int, edges: int
    ) -> RankWindow:
        sent, self._bytes_sent = self._bytes_sent, 0
        times = clock.work_seconds, clock.exchange_seconds
        return RankWindow(start, name, int(vertices), int(edges), rounds, *times, sent)

    def _end_of(self, start: float, width: float) -> Any:
        dtype = self.host.dtype
        if dtype.kind == "i":
            return int(start + width) if start < _EXACT else self.host.infinity
        with np.errstate(over="ignore"):
            end = dtype.type(start + width)
        return end if end > start else dtype.type(np.inf)

    def _agree(self) -> list[float]:
        """Reduce the values by which ranks decide.

        Returns the smallest distance that waits on any rank. Then come four maxima over ranks: of
        vertices queued in the window, of edges left, of unsettled edges, and of a flag that is 1 if
        a distance exceeds a type of 32 bits.
        """
        from hetero_bfs.algorithms.sssp.kernels.ranks_relax import LEFT, OVERFLOW, QUEUED, UNSETTLED

        host, agreed_on = self.host, self._agreed
        agreed_on[0] = -float(host.fields["lowest"][0])
        agreed_on[1:] = host.fields["counts"][[QUEUED, LEFT, UNSETTLED, OVERFLOW]]
        agreed_on[4] *= host.dtype.itemsize < 8
        self.communicator.reduce_to_all(agreed_on, "max")
        lowest, *most = agreed_on.tolist()
        return [-lowest, *most]

    def _send(self) -> None:
        from hetero_bfs.algorithms.sssp.kernels import ranks_relax as loops

        host, part = self.host, self.graph.partition
        if part.ranks == 1:
            return
        messages = np.empty(int(host.fields["counts"][loops.OUTBOX]), host.dtype)
        columns = host.fields["outbox"][: loops.take_outbox(host.struct, messages)]
        self._bytes_sent += columns.nbytes + messages.nbytes
        numbers, distances, _ = mail(self.communicator, part, columns, messages)
        loops.take_in(host.struct, numbers, distances)

    def _give_distances(self) -> None:
        part, distance = self.graph.partition, self.host.fields["distance"]
        mine = distance[: int(part.sizes[part.rank])]
        self.communicator.gather_to_all(mine, distance, part.sizes, part.first_column)
        self._bytes_sent += mine.nbytes if part.ranks > 1 else 0

    def _find_parents(self, source: int | None) -> npt.NDArray[np.uint32]:
        """Return the parent of each own vertex as a column; NO_VERTEX where not reached."""
        from hetero_bfs.algorithms.sssp.kernels import ranks_relax as loops
        from hetero_bfs.algorithms.sssp.kernels.tree import nearer_parents

        self._give_distances()
        communicator, part, host = self.communicator, self.graph.partition, self.host
        fields, arrays = host.fields, host.struct
        parent, orphans = nearer_parents(self._lists, fields["distance"], host.infinity)
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
            outbox = loops.adopt(arrays, parent, numbers, count)
            columns, parents = fields["outbox"][:outbox], numbers[:outbox]
            own, up, received = mail(communicator, part, columns, parents)
            count = loops.take_parents(arrays, parent, own, up, received, part.first_column)
            waiting[0] = count
            communicator.reduce_to_all(waiting, "max")
        return parent


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
