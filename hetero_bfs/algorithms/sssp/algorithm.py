"""Shortest paths of a prepared graph: where a search runs, and its result."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Analysis
from hetero_bfs.algorithms.sssp.chain_search import ChainSearch, search_on_host
from hetero_bfs.algorithms.sssp.device import DeviceSearch
from hetero_bfs.algorithms.sssp.host import HostSearch
from hetero_bfs.algorithms.sssp.result import ShortestPaths, WindowTrace
from hetero_bfs.algorithms.sssp.streamed import StreamedPaths
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph.weighted_lists import WeightedLists, Windows
from hetero_bfs.scheduling.trials import Place
from hetero_bfs.support import forks

_STRATEGIES = "prefix", "full", "pull", "device prefix", "device full", "device pull"
"""In the order of the numbers in weighted_lists.py, then of those of DeviceSearch."""


class PathSearches(Analysis):
    """Searches for shortest paths in one graph, with weights of at least 0; see `Analysis`."""

    what = "shortest paths"
    needs_weights = True

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.lists = WeightedLists.of(graph, self.what)
        self.lists.sort()
        super().__init__(graph, threads, device)

    def _make_host(self, threads: int) -> HostSearch | ChainSearch:
        return search_on_host(self.lists, threads)

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
        """Search from several vertices back-to-back, each on the place that has been faster.

        Each search finds its parents, within its seconds. The caller's ids are restored after all
        searches, since that would evict the next search's data from the caches.
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
        place = place or self.places.choose()
        if place == "cpu":
            self.host.prepare()
        began = time.perf_counter()
        found = None
        if place == "device" and self.device is not None:
            found = self.device.run(source, self.lists.plan)
        device = None if found is None else self.device
        if found is None:  # the host was chosen, or a distance is beyond the device's type
            found = self.host.run(source)
        up = _tree(self.lists, device, source, found, is_last=True) if with_parents else None
        seconds = time.perf_counter() - began
        self.places.note(place, seconds)
        found = found._replace(distance=found.distance.copy())
        return _Ran(source, found, None if device is None else weakref.ref(device), up, seconds)

    def _restored(self, source: int, search: _Ran) -> ShortestPaths:
        """Return the result of a search from `source` in the caller's ids."""
        from hetero_bfs.algorithms.sssp.kernels.callers_ids import restore_distances

        began = time.perf_counter()
        graph, found = self.graph, search.found
        distance = restore_distances(found.distance, found.infinity, graph.relabelling.new_of_old)
        traces = [_trace(record) for record in found.records.tolist()]
        paths = ShortestPaths(
            source, distance, search.seconds, traces, graph.graph.directed,
            partial(_restored_parents, self.lists, search), streamed_bytes=found.streamed_bytes,
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


class _Ran(NamedTuple):
    """A search that ran, in new ids; `parent` is None if its parents were not asked for yet.

    `device` refers to what ran it, so that a result does not keep a closed device.
    """

    source: int
    found: Windows
    device: weakref.ref[DeviceSearch | StreamedPaths] | None
    parent: npt.NDArray[np.uint32] | None
    seconds: float


def _tree(
    lists: WeightedLists,
    device: DeviceSearch | StreamedPaths | None,
    source: int,
    found: Windows,
    is_last: bool,
) -> npt.NDArray[np.uint32]:
    """Find the parents of a search, on the device if that has the lists, else on the host."""
    from hetero_bfs.algorithms.sssp.kernels.tree import tree_parents

    if isinstance(device, DeviceSearch) and not forks.lacks_opencl():
        with suppress(DeviceError):
            return device.parents(source, found.distance, is_last)
    return tree_parents(lists, found.distance, found.infinity, source)


def _restored_parents(lists: WeightedLists, search: _Ran) -> npt.NDArray[np.int64]:
    from hetero_bfs.algorithms.sssp.kernels.callers_ids import restore_parents

    up = search.parent
    if up is None:
        device = None if search.device is None else search.device()
        up = _tree(lists, device, search.source, search.found, is_last=False)
    return restore_parents(up, lists.graph.relabelling)


def _trace(record: list[Any]) -> WindowTrace:
    start, strategy, vertices, edges, rounds, seconds = record
    return WindowTrace(
        start, _STRATEGIES[int(strategy)], int(vertices), int(edges), int(rounds), seconds
    )
