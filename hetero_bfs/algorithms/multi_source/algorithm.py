"""Multi-source searches on a prepared graph, on the faster of host and device."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hetero_bfs.algorithms.base import Analysis, Ran
from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.multi_source.device import DevicePlanes
from hetero_bfs.algorithms.multi_source.host import HostPlanes
from hetero_bfs.algorithms.multi_source.result import ManySearches, Rows, Sums
from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.support.memory import Recycler

_WAYS = ("pull", "push", "push and pull")

_MOST_RECYCLED_BYTES = 1 << 28
"""Most bytes of discarded levels that are kept for reuse."""


class ManyRuns(Analysis[ManySearches]):
    """Runs multi-source searches on one graph, 64 sources at a time. A query is a `Query`."""

    what = "multi-source searches"

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        super().__init__(graph, threads, device)
        self._memory = Recycler(_MOST_RECYCLED_BYTES)

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
        """Return unfilled rows, or None if the query does not want levels, and zero sums."""
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
