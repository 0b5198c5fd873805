"""Multi-source searches on a prepared graph, on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Prepared, Request
from hetero_bfs.algorithms.bfs.query import Query, check_many
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.serial import answer_serially
from hetero_bfs.algorithms.multi_source.host import NO_LIMIT, HostPlanes
from hetero_bfs.algorithms.multi_source.result import LevelRows, ManySearches, Sums
from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling.algorithm_decision import is_faster_by_thread, is_searched_apart
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.support.memory import Recycler, check_free_memory

_STRATEGIES = ("pull", "push", "push and pull")


class ManyRuns(Prepared[ManySearches]):
    """Runs multi-source searches on one graph, 64 sources at a time."""

    what = "multi-source searches"
    needs_engine = True
    runs_on_devices = False
    executors = (HostPlanes,)

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        super().__init__(graph, threads)  # a device was slower
        self._memory = Recycler()

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, *query: Any) -> ManySearches:
        """Search by one thread, from one vertex after the other."""
        (asked,) = query
        each, (sums, level) = replace(asked, want="levels"), _make_room(asked, graph.num_vertices)
        began = time.perf_counter()
        numbers = range(len(asked.sources))
        _answer_each(each, numbers, lambda one: answer_serially(graph, one), sums, level)
        return _result(asked, sums, level, time.perf_counter() - began)

    def run(self, *query: Any) -> ManySearches:
        (asked,) = query
        if self.search is None or not asked.sources or not is_searched_apart(self.levels):
            return self._together(asked)
        return _search_apart(asked, self.graph, self.host.threads, self.search)

    def _together(self, query: Query) -> ManySearches:
        has_levels = bool(self.graph.num_searched and query.sources)
        if has_levels:
            self.host.prepare()
        began = time.perf_counter()
        sources, rows = np.array(query.sources, np.int64), None
        if query.want == "levels":
            rows = LevelRows(self.graph.num_vertices, sources.size, self._memory)
        sums, traces = Sums(sources.size), list[IterationTrace]()
        if has_levels:
            traces = self._search(query, rows, sums)
        elif rows is not None:
            rows.items.fill(-1)
        isolated = np.flatnonzero(sums.reached == 0)
        sums.reached[isolated] = 1
        if rows is not None:
            rows.items[sources[isolated], isolated] = 0
        level = None if rows is None else rows.levels()
        found = sums.reached, sums.eccentricity, sums.distance_sum
        return ManySearches(sources, *found, time.perf_counter() - began, traces, level)

    def _search(self, query: Query, rows: LevelRows | None, sums: Sums) -> list[IterationTrace]:
        numbers = self.graph.relabelling
        sources = numbers.new_of_old[np.array(query.sources, np.int64)]
        self.host.mask(None if query.mask is None else query.mask[numbers.old_of_new])
        return [
            IterationTrace(
                level, _STRATEGIES[int(strategy)], int(vertices), int(edges), float(seconds)
            )
            for i in range(0, sources.size, LANES)
            for level, (strategy, vertices, edges, seconds) in enumerate(
                self.host.run(i // LANES, sources[i : i + LANES], query.depth_limit, rows, sums)
            )
        ]


def requested(num_vertices: int, *given: Any) -> Request[ManySearches]:
    query = check_many(num_vertices, *given)
    return Request(ManyRuns, (query,), query.reverse, len(query.sources))


def _search_apart(
    query: Query, graph: SearchGraph, threads: int, search: Callable[[Query], BFSResult]
) -> ManySearches:
    """Search from one vertex after the other, and keep the results that the query wants.

    Each thread searches from a vertex of its own, or `search` uses all threads of the engine. One
    search of each kind is timed. There are no traces: they can be larger than the levels.
    Raises `GraphError` if there is not enough memory.
    """
    from hetero_bfs.algorithms.multi_source.kernels.loop import search_apart
    from hetero_bfs.support.parallel import in_parallel

    sums, level = _make_room(query, graph.num_vertices, 8 * graph.num_searched * threads)
    count = len(query.sources)
    began = time.perf_counter()
    given = _given(query, graph, threads, sums, level)

    def search_from(begin: int, end: int) -> None:
        given["next_number"][0] = begin
        if parts := min(threads, end - begin):
            in_parallel(search_apart, parts, stop=end, **given)

    in_parallel(search_apart, 1, stop=0, **given)  # compiles
    done = min(count, 2)
    each = replace(query, want="levels")
    seconds = _timed(lambda: search_from(0, 1))
    by_engine = _timed(lambda: _answer_each(each, range(1, done), search, sums, level))
    if is_faster_by_thread(count - done, threads, seconds, by_engine):
        search_from(done, count)
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


def _given(
    query: Query, graph: SearchGraph, threads: int, sums: Sums, level: npt.NDArray[np.int32]
) -> dict[str, Any]:
    """Return the fields of `search_apart`: arrays of searches by one thread each."""
    numbers, n = graph.relabelling, graph.num_searched
    sources = np.array(query.sources, np.int64)
    return {
        "indptr": graph.graph.indptr,
        "indices": graph.graph.indices,
        "new_of_old": numbers.new_of_old,
        "sources": numbers.new_of_old[sources],
        "old_sources": sources,
        "mask": np.empty(0, np.bool_) if query.mask is None else query.mask[numbers.old_of_new],
        "limit": NO_LIMIT if query.depth_limit is None else query.depth_limit,
        "queue": np.empty((threads, n), np.uint32),
        "level": np.empty((threads, n), np.int32),
        "rows": level,
        "reached": sums.reached,
        "distance_sum": sums.distance_sum,
        "eccentricity": sums.eccentricity,
        "next_number": np.zeros(1, np.int64),
    }


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
