"""Searches from many vertices of a high-diameter graph, where two rarely reach a vertex together.

A level has so few vertices that threads which share a search mostly wait for each other. So each
thread searches from a vertex of its own. With few sources, many threads or a fast device an engine
may be faster: one search of each kind is timed, and the rest is done in the faster way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.multi_source.result import ManySearches, Sums
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import check_free_memory

_NO_LIMIT = 2**62


def search_many_apart(
    query: Query,
    graph: SearchGraph,
    threads: int,
    lock: Lock,
    answer: Callable[[int], BFSResult],
) -> ManySearches:
    """Search from one vertex after the other, and keep the results that the query wants.

    `answer` searches by the engine, from one of the caller's ids, and takes the engine's `lock`
    itself. There are no traces: they can be larger than the levels. Raises `GraphError` if there
    is not enough memory.
    """
    sums, level = _make_room(query, graph.num_vertices, 8 * graph.num_searched * threads)
    count = len(query.sources)
    began = time.perf_counter()
    apart = _Apart(query, graph, threads, sums, level)
    done = min(count, 2)
    seconds = _timed(lambda: apart.run(1, lock))
    by_engine = _timed(lambda: _answer_each(query, range(1, done), answer, sums, level))
    rest = count - done
    if -(-rest // threads) * seconds <= rest * by_engine:
        apart.next_number[0] = done
        apart.run(count, lock)
    else:
        _answer_each(query, range(done, count), answer, sums, level)
    return _result(query, sums, level, time.perf_counter() - began)


def search_many_serially(
    query: Query, num_vertices: int, answer: Callable[[int], BFSResult]
) -> ManySearches:
    """Search by `answer` only, from one vertex after the other; see `search_many_apart`."""
    sums, level = _make_room(query, num_vertices)
    began = time.perf_counter()
    _answer_each(query, range(len(query.sources)), answer, sums, level)
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
    """The arrays of searches side by side; kernels/apart.py reads them."""

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
            "limit": _NO_LIMIT if query.depth_limit is None else query.depth_limit,
            "queue": np.empty((threads, n), np.uint32),
            "level": np.empty((threads, n), np.int32),
            "rows": level,
            "reached": sums.reached,
            "distance_sum": sums.distance_sum,
            "eccentricity": sums.eccentricity,
            "next_number": self.next_number,
        }

    def run(self, stop: int, lock: Lock) -> None:
        """Search from the next sources, before source number `stop`."""
        from hetero_bfs.algorithms.multi_source.kernels.apart import search_apart
        from hetero_bfs.support.parallel import in_parallel

        parts = min(self.threads, stop - int(self.next_number[0]))
        if parts > 0:
            with lock:
                in_parallel(search_apart, parts, stop=stop, **self._given)


def _answer_each(
    query: Query,
    numbers: range,
    answer: Callable[[int], BFSResult],
    sums: Sums,
    level: npt.NDArray[np.int32],
) -> None:
    for number in numbers:
        found = answer(query.sources[number]).level
        sums.reached[number] = np.count_nonzero(found >= 0)
        sums.eccentricity[number] = found.max()
        sums.distance_sum[number] = found.sum(where=found > 0, dtype=np.int64)
        if level.size:
            level[number] = found
