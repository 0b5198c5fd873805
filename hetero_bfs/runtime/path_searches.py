"""Shortest paths of a graph that is ready to search: which device runs a search, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.sssp.device_search import DeviceSearch
from hetero_bfs.algorithms.sssp.host_search import HostSearch
from hetero_bfs.algorithms.sssp.paths import ShortestPaths, WindowTrace
from hetero_bfs.algorithms.sssp.weighted_lists import WeightedLists, Windows
from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.runtime.analysis import Analysis
from hetero_bfs.runtime.places import Place
from hetero_bfs.runtime.streamed_runs import StreamedPaths

_STRATEGIES = "prefix", "full", "pull", "device prefix", "device full", "device pull"
"""As weighted_lists.py numbers them, then as DeviceSearch does."""


class PathSearches(Analysis):
    """Searches for shortest paths in one graph, with weights of at least 0; see `Analysis`."""

    what = "shortest paths"
    needs_weights = True

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.lists = WeightedLists.of(graph, self.what)
        self.lists.sort()
        super().__init__(graph, threads, device)

    def _make_host(self, threads: int) -> HostSearch:
        return HostSearch(self.lists, threads)

    def _make_device(self, info: DeviceInfo) -> DeviceSearch | StreamedPaths:
        if self.lists.weight_dtype not in self.lists.distance_dtypes:
            raise DeviceError(
                f"a weight is {np.iinfo(self.lists.weight_dtype).max}, which stands for infinity "
                "on a device; give weights as float64"
            )
        return self._whole_or_streamed(
            lambda: DeviceSearch(self.lists, info), lambda: StreamedPaths(self.lists, info)
        )

    def search(self, source: int, place: Place | None = None) -> ShortestPaths:
        """Search from one vertex (the caller's id), which is in the graph.

        Parameters
        ----------
        source : int
        place : {"cpu", "device"}, optional
            By default the one that has been faster.
        """
        new = self.graph.searched_id(source)
        if new is None:
            return self._alone(source)
        return self._restored(source, self._run(new, place, with_parents=False))

    def search_with_parents(self, sources: Sequence[int]) -> list[ShortestPaths]:
        """Search from several vertices back-to-back, each where searches have been faster.

        Parents belong to each search and its seconds. All searches run before the caller's ids of
        the first one are restored, which would evict the next search's data from the caches.
        """
        ran = []
        for source in sources:
            new = self.graph.searched_id(source)
            ran.append(None if new is None else self._run(new, None, with_parents=True))
        results = []
        for source, search in zip(sources, ran, strict=True):
            result = self._alone(source) if search is None else self._restored(source, search)
            _ = result.parent
            results.append(result)
        return results

    def _run(self, source: int, place: Place | None, with_parents: bool) -> _Ran:
        """Search from a vertex (the new id); note how long it took."""
        from hetero_bfs.algorithms.sssp.kernels.tree import tree_parents

        place = place or self.places.choose()
        if place == "cpu":
            self.host.prepare()
        began = time.perf_counter()
        found = None
        if place == "device" and self.device is not None:
            found = self.device.run(source, self.lists.plan)
        if found is None:  # the host was chosen, or a distance is beyond the device's type
            found = self.host.run(source, self.lists.plan)
        up = None
        if with_parents:
            up = tree_parents(self.lists, found.distance, found.infinity, source)
        seconds = time.perf_counter() - began
        self.places.note(place, seconds)
        return _Ran(source, found._replace(distance=found.distance.copy()), up, seconds)

    def _restored(self, source: int, search: _Ran) -> ShortestPaths:
        """Return the result of a search from `source` in the caller's ids."""
        began = time.perf_counter()
        graph, found = self.graph, search.found
        distance = np.full(graph.num_vertices, np.inf)
        distance[graph.relabelling.old_of_new] = _with_infinity(found)
        traces = [_trace(record) for record in found.records.tolist()]
        paths = ShortestPaths(
            source, distance, search.seconds, traces, graph.graph.directed,
            self._parents_of(search), streamed_bytes=found.streamed_bytes,
        )  # fmt: skip
        if search.parent is not None:
            _ = paths.parent
            paths.restore_seconds = time.perf_counter() - began
        return paths

    def _alone(self, source: int) -> ShortestPaths:
        """Return the result of a vertex without edges."""
        distance = np.full(self.graph.num_vertices, np.inf)
        distance[source] = 0.0

        def parents() -> npt.NDArray[np.int64]:
            parent = np.full(distance.size, -1, np.int64)
            parent[source] = source
            return parent

        return ShortestPaths(source, distance, 0.0, [], self.graph.graph.directed, parents)

    def _parents_of(self, search: _Ran) -> Callable[[], npt.NDArray[np.int64]]:
        lists, relabelling = self.lists, self.graph.relabelling

        def parents() -> npt.NDArray[np.int64]:
            from hetero_bfs.algorithms.sssp.kernels.tree import tree_parents

            found, up = search.found, search.parent
            if up is None:
                up = tree_parents(lists, found.distance, found.infinity, search.source)
            parent = np.full(relabelling.new_of_old.size, -1, np.int64)
            reached = np.flatnonzero(up != NO_VERTEX)
            old = relabelling.old_of_new
            parent[old[reached]] = old[up[reached]]
            return parent

        return parents


class _Ran(NamedTuple):
    """A search that ran, in new ids; `parent` is None if its parents were not asked for yet."""

    source: int
    found: Windows
    parent: npt.NDArray[np.uint32] | None
    seconds: float


def _with_infinity(found: Windows) -> npt.NDArray[np.float64]:
    distance = found.distance.astype(np.float64)
    if found.distance.dtype.kind == "i":
        distance[found.distance == found.infinity] = np.inf
    return distance


def _trace(record: list[Any]) -> WindowTrace:
    start, strategy, vertices, edges, rounds, seconds = record
    return WindowTrace(
        start, _STRATEGIES[int(strategy)], int(vertices), int(edges), int(rounds), seconds
    )
