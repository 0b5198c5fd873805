"""Multi-source searches on a prepared graph, on the faster of host and device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Analysis, Ran, Request
from hetero_bfs.algorithms.bfs.query import Query, check_many
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.serial import answer_serially
from hetero_bfs.algorithms.multi_source.device import DevicePlanes
from hetero_bfs.algorithms.multi_source.host import NO_LIMIT, HostPlanes
from hetero_bfs.algorithms.multi_source.result import ManySearches, Rows, Sums
from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.support.memory import Recycler, check_free_memory

_WAYS = ("pull", "push", "push and pull")

_MOST_RECYCLED_BYTES = 1 << 28
"""Most bytes of discarded levels that are kept for reuse."""


class ManyRuns(Analysis[ManySearches]):
    """Runs multi-source searches on one graph, 64 sources at a time. A query is a `Query`."""

    what = "multi-source searches"
    needs_engine = True

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        super().__init__(graph, threads, device)
        self._memory = Recycler(_MOST_RECYCLED_BYTES)

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, *query: Any) -> ManySearches:
        """Search by one thread, from one vertex after the other."""
        (asked,) = query
        each, (sums, level) = replace(asked, want="levels"), _make_room(asked, graph.num_vertices)
        began = time.perf_counter()
        numbers = range(len(asked.sources))
        _answer_each(each, numbers, lambda one: answer_serially(graph, one), sums, level)
        return _result(asked, sums, level, time.perf_counter() - began)

    def run(self, *query: Any, place: DeviceKind | None = None) -> ManySearches:
        (asked,) = query
        if self.search is None or not asked.sources or self.levels < HIGH_DIAMETER_LEVELS:
            return super().run(asked, place=place)
        return _search_apart(asked, self.graph, self.host.threads, self.search)

    def _make_host(self, threads: int) -> HostPlanes:
        return HostPlanes(self.graph, threads)

    def _make_device(self, info: DeviceInfo) -> DevicePlanes:
        return DevicePlanes(self.graph, info, self.host)

    def _known(self, query: Query) -> ManySearches | None:
        if self.graph.num_searched and query.sources:
            return None
        rows, sums = self._empty(query)
        if rows is not None:
            rows.items.fill(-1)
        return self._result(Ran((rows, sums, []), 0.0, self.host), query)

    def _empty(self, query: Query) -> tuple[Rows | None, Sums]:
        count, rows = len(query.sources), None
        if query.want == "levels":
            rows = Rows(self.graph.num_vertices, count, self._memory)
        return rows, Sums(count)

    def _on(self, executor: Any, query: Query) -> tuple[Rows | None, Sums, list[IterationTrace]]:
        rows, sums = self._empty(query)
        numbers = self.graph.relabelling
        sources = numbers.new_of_old[np.array(query.sources, np.int64)]
        executor.mask(None if query.mask is None else query.mask[numbers.old_of_new])
        records = [
            executor.run(i // LANES, sources[i : i + LANES], query.depth_limit, rows, sums)
            for i in range(0, sources.size, LANES)
        ]
        where = "" if executor is self.host else "device "
        traces = [
            IterationTrace(
                level, where + _WAYS[int(row[0])], int(row[1]), int(row[2]), float(row[3])
            )
            for batch in records
            for level, row in enumerate(batch.tolist())
        ]
        return rows, sums, traces

    def _note(self, place: DeviceKind, seconds: float, query: Query) -> None:
        if query.mask is None and query.depth_limit is None:  # only such queries predict each other
            self.places.learn(place, seconds / -(-len(query.sources) // LANES))

    def _result(self, ran: Ran, query: Query) -> ManySearches:
        rows, sums, traces = ran.found
        sources, began = np.array(query.sources, np.int64), time.perf_counter()
        isolated = np.flatnonzero(sums.reached == 0)
        sums.reached[isolated] = 1
        if rows is not None:
            rows.items[sources[isolated], isolated] = 0
        seconds = ran.seconds + time.perf_counter() - began
        found = sums.reached, sums.eccentricity, sums.distance_sum
        level = None if rows is None else rows.levels()
        return ManySearches(sources, *found, seconds, traces, level)


def requested(num_vertices: int, *given: Any) -> Request[ManySearches]:
    query = check_many(num_vertices, *given)
    return Request(ManyRuns, (query,), query.reverse, len(query.sources))


def _search_apart(
    query: Query, graph: SearchGraph, threads: int, search: Callable[[Query], BFSResult]
) -> ManySearches:
    """Search from one vertex after the other, and keep the results that the query wants.

    `search` uses all threads of the engine. On high-diameter graphs threads that share a search
    mostly wait for each other, so each thread searches from a vertex of its own. With few sources,
    many threads or a fast device the engine may be faster: one search of each kind is timed, and
    the rest is done in the faster way. There are no traces: they can be larger than the levels.
    Raises `GraphError` if there is not enough memory.
    """
    sums, level = _make_room(query, graph.num_vertices, 8 * graph.num_searched * threads)
    count = len(query.sources)
    began = time.perf_counter()
    apart = _Apart(query, graph, threads, sums, level)
    done = min(count, 2)
    apart.compile()
    seconds = _timed(lambda: apart.run(1))
    each = replace(query, want="levels")
    by_engine = _timed(lambda: _answer_each(each, range(1, done), search, sums, level))
    rest = count - done
    if -(-rest // threads) * seconds <= rest * by_engine:
        apart.next_number[0] = done
        apart.run(count)
    else:
        _answer_each(each, range(done, count), search, sums, level)
    return _result(query, sums, level, time.perf_counter() - began)


def _make_room(
    query: Query, num_vertices: int, further_bytes: int = 0
) -> tuple[Sums, npt.NDArray[np.int32]]:
    """Return zero sums, and unfilled levels: an empty array if the query does not want them."""
    count, wanted = len(query.sources), query.want == "levels"
    of_levels = 4 * num_vertices * count * wanted
    what = f"the levels of {count} searches"
    remedy = "search fewer at once, or ask for sums"
    check_free_memory(of_levels + further_bytes, what, remedy)
    return Sums(count), np.empty((count, num_vertices) if wanted else (0, 0), np.int32)


def _result(query: Query, sums: Sums, level: npt.NDArray[np.int32], seconds: float) -> ManySearches:
    totals = sums.reached, sums.eccentricity, sums.distance_sum
    sources, kept = np.array(query.sources, np.int64), level if query.want == "levels" else None
    return ManySearches(sources, *totals, seconds, [], kept)


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class _Apart:
    """The arrays of searches by one thread each; kernels/loop.py reads them."""

    def __init__(
        self,
        query: Query,
        graph: SearchGraph,
        threads: int,
        sums: Sums,
        level: npt.NDArray[np.int32],
    ) -> None:
        numbers, n = graph.relabelling, graph.num_searched
        sources = np.array(query.sources, np.int64)
        mask = np.empty(0, np.bool_) if query.mask is None else query.mask[numbers.old_of_new]
        self.threads = threads
        self.next_number = np.zeros(1, np.int64)
        self._given: dict[str, Any] = {
            "indptr": graph.graph.indptr,
            "indices": graph.graph.indices,
            "new_of_old": numbers.new_of_old,
            "sources": numbers.new_of_old[sources],
            "old_sources": sources,
            "mask": mask,
            "limit": NO_LIMIT if query.depth_limit is None else query.depth_limit,
            "queue": np.empty((threads, n), np.uint32),
            "level": np.empty((threads, n), np.int32),
            "rows": level,
            "reached": sums.reached,
            "distance_sum": sums.distance_sum,
            "eccentricity": sums.eccentricity,
            "next_number": self.next_number,
        }

    def compile(self) -> None:
        """Compile, or load what is stored, by a call without sources."""
        self._call(1, 0)
        self.next_number[0] = 0

    def run(self, stop: int) -> None:
        """Search from the next sources, before source number `stop`."""
        parts = min(self.threads, stop - int(self.next_number[0]))
        if parts > 0:
            self._call(parts, stop)

    def _call(self, parts: int, stop: int) -> None:
        from hetero_bfs.algorithms.multi_source.kernels.loop import search_apart
        from hetero_bfs.support.parallel import in_parallel

        in_parallel(search_apart, parts, stop=stop, **self._given)


def _answer_each(
    query: Query,
    numbers: range,
    answer: Callable[[Query], BFSResult],
    sums: Sums,
    level: npt.NDArray[np.int32],
) -> None:
    for number in numbers:
        found = answer(replace(query, sources=(query.sources[number],))).level
        sums.reached[number] = np.count_nonzero(found >= 0)
        sums.eccentricity[number] = found.max()
        sums.distance_sum[number] = found.sum(where=found > 0, dtype=np.int64)
        if level.size:
            level[number] = found
