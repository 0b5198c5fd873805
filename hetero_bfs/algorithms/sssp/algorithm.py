"""Shortest paths on a prepared graph, on the faster of host and device."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Analysis, Ran, RankedGraph, Request
from hetero_bfs.algorithms.sssp.device import DeviceSearch, StreamedPaths
from hetero_bfs.algorithms.sssp.host import ChainSearch, search_on_host
from hetero_bfs.algorithms.sssp.result import (
    PathReport,
    ShortestPaths,
    Unfinished,
    Windows,
    WindowTrace,
)
from hetero_bfs.algorithms.sssp.serial import answer_serially, may_round
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.graph.weights import refuse_negative
from hetero_bfs.scheduling.algorithm_decision import WindowStrategy
from hetero_bfs.support import processes

_STRATEGIES = (
    *(one.label for one in WindowStrategy),
    *(f"device {one.label}" for one in WindowStrategy),
)
"""By strategy number, and by the same plus `ON_DEVICE`."""


class PathSearches(Analysis[ShortestPaths]):
    """Searches for shortest paths in one graph. A query is a source in the caller's ids."""

    what = "shortest paths"
    report: ClassVar = PathReport
    executors = search_on_host, DeviceSearch, StreamedPaths
    needs_weights = True
    shared_lists = 0.0  # they are sorted by weight

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, source: int) -> ShortestPaths:
        refuse_negative(graph, np.arange(graph.num_vertices, dtype=np.uint32), cls.what)
        if may_round(graph):
            return answer_serially(graph, source)
        return super().by_one_thread(graph, source)

    def _make_lists(self) -> WeightedLists:
        lists = WeightedLists.of(self.graph, self.what)
        lists.sort()
        return lists

    def _make_device(self, info: DeviceInfo) -> Any:
        if self.lists.weight_dtype not in self.lists.distance_dtypes:
            raise DeviceError(
                f"a weight is {np.iinfo(self.lists.weight_dtype).max}, which stands for infinity "
                "on a device; give weights as float64"
            )
        return super()._make_device(info)

    def _known(self, source: int, with_parents: bool = False) -> ShortestPaths | None:
        """Return the result of an isolated source."""
        if self.graph.searched_id(source) is not None:
            return None
        distance = np.full(self.graph.num_vertices, np.inf)
        distance[source] = 0.0

        def parents() -> npt.NDArray[np.int64]:
            parent = np.full(distance.size, -1, np.int64)
            parent[source] = source
            return parent

        return ShortestPaths(source, distance, 0.0, [], self.graph.graph.directed, parents)

    def _on(self, executor: Any, source: int, with_parents: bool = False) -> _Found | None:
        new: Any = self.graph.searched_id(source)
        found, whole = self._search(executor, new)
        if found is None:
            return None
        device = None if executor is self.host else executor
        up = _tree(self.lists, device, new, found, is_last=whole) if with_parents else None
        return _Found(new, found, None if device is None else weakref.ref(device), up)

    def _search(self, executor: Any, source: int) -> tuple[Windows | None, bool]:
        """Search from a new id; the second value tells whether it ended where it began."""
        if not isinstance(executor, DeviceSearch):
            return executor.run(source), True
        # A run stays on a place that the caller named.
        may_leave = self.choice is not None and not isinstance(self.host, ChainSearch)
        found = executor.run(source, may_leave)
        if isinstance(found, Unfinished):
            return self._go_on(executor, source, found), False
        return found, True

    def _go_on(self, device: DeviceSearch, source: int, left: Unfinished) -> Windows | None:
        """Continue on the host; None if a distance exceeds the weights' type."""
        self.host.prepare()
        began = time.perf_counter()
        found: Windows | None = self.host.go_on(source, left)
        if found is None:
            return None
        *_, edges, _, seconds = found.records.T
        moving = time.perf_counter() - began - float(seconds.sum()) + left.seconds
        device.leaving.learn_host(edges, seconds, moving)
        return found._replace(records=np.concatenate([left.records, found.records]))

    def _kept(self, found: _Found, executor: Any) -> _Found:
        windows = found.windows
        return found._replace(windows=windows._replace(distance=windows.distance.copy()))

    def _result(self, ran: Ran, source: int, with_parents: bool = False) -> ShortestPaths:
        from hetero_bfs.graph.kernels.old_ids import distances_by_old_ids

        began = time.perf_counter()
        graph, found = self.graph, ran.found.windows
        new_of_old = graph.relabelling.new_of_old
        distance = distances_by_old_ids(found.distance, found.infinity, new_of_old)
        traces = [
            WindowTrace(start, _STRATEGIES[int(kind)], int(n), int(m), int(rounds), seconds)
            for start, kind, n, m, rounds, seconds in found.records.tolist()
        ]
        paths = ShortestPaths(
            source, distance, ran.seconds, traces, graph.graph.directed,
            partial(_restored_parents, self.lists, ran.found), streamed_bytes=found.streamed_bytes,
        )  # fmt: skip
        if with_parents:
            _ = paths.parent
            paths.restore_seconds = time.perf_counter() - began
        return paths

    def complete(self, result: ShortestPaths) -> ShortestPaths:
        _ = result.parent
        return result

    def run_with_parents(self, sources: Sequence[int]) -> list[ShortestPaths]:
        """Search from several vertices back-to-back, each on the faster place.

        Each search finds its parents, and its seconds include that. The caller's ids are restored
        after all searches: in between, that would evict the next search's data from the caches.
        """
        self.expected_runs = max(self.expected_runs, len(sources))
        ran = [self._known(source) or self._timed((source, True), None) for source in sources]
        return [
            self._result(one, source, True) if isinstance(one, Ran) else self.complete(one)
            for source, one in zip(sources, ran, strict=True)
        ]

    @classmethod
    def by_ranks(cls, engine: RankedGraph, source: int) -> ShortestPaths:
        """Search on all ranks, each on its host."""
        from hetero_bfs.algorithms.bfs.serial import as_parents
        from hetero_bfs.algorithms.sssp.ranks import RankPathSearch
        from hetero_bfs.ranks.partition import gathered
        from hetero_bfs.ranks.rank_run import of_all_ranks

        communicator, n = engine.communicator, engine.num_vertices
        search = engine.keep(cls, lambda: RankPathSearch(communicator, engine.graph))
        found = search.search(source)
        distance = gathered(communicator, found.distance, n)
        parent = as_parents(gathered(communicator, found.parent, n))
        traces: Any = of_all_ranks(communicator, found.windows, "edges_scanned", "vertices")
        directed = engine.graph.graph.directed
        return ShortestPaths(source, distance, found.seconds, traces, directed, lambda: parent)


def requested(num_vertices: int, source: int) -> Request[ShortestPaths]:
    return Request(PathSearches, (check_vertex(source, num_vertices),))


class _Found(NamedTuple):
    """The result of a search, in new ids. `parent` is None if the parents are not found yet.

    `device` is weak, so that a result does not keep a closed device.
    """

    source: int
    windows: Windows
    device: weakref.ref[DeviceSearch | StreamedPaths] | None
    parent: npt.NDArray[np.uint32] | None


def _tree(
    lists: WeightedLists,
    device: DeviceSearch | StreamedPaths | None,
    source: int,
    found: Windows,
    is_last: bool,
) -> npt.NDArray[np.uint32]:
    """Find the parents: on a device that holds the adjacency, otherwise on the host."""
    from hetero_bfs.algorithms.sssp.kernels.tree import tree_parents

    if isinstance(device, DeviceSearch) and not processes.lacks_opencl():
        with suppress(DeviceError):
            return device.parents(source, found.distance, is_last)
    return tree_parents(lists, found.distance, found.infinity, source)


def _restored_parents(lists: WeightedLists, search: _Found) -> npt.NDArray[np.int64]:
    from hetero_bfs.graph.kernels.old_ids import parents_by_old_ids

    up = search.parent
    if up is None:
        device = None if search.device is None else search.device()
        up = _tree(lists, device, search.source, search.windows, is_last=False)
    return parents_by_old_ids(up, lists.graph.relabelling)
