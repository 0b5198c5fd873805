"""Shortest paths of a graph that is ready to search: which device runs a search, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.sssp.device_search import DeviceSearch
from hetero_bfs.algorithms.sssp.host_search import HostSearch
from hetero_bfs.algorithms.sssp.paths import ShortestPaths, WindowTrace
from hetero_bfs.algorithms.sssp.weighted_lists import WeightedLists, Windows
from hetero_bfs.devices.opencl.driver import DeviceInfo, choose_device
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import NO_VERTEX, EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.weights import needed_weights, weight_dtype_of
from hetero_bfs.runtime.options import EngineOptions

_WAYS = ("prefix", "full", "pull", "device full")  # as windows.py and device_search.py number them
_TRIALS = 2  # runs of a place before it is compared

Place = Literal["cpu", "device"]
"""Where a search runs."""


class PathSearches:
    """Searches for shortest paths in one graph.

    Parameters
    ----------
    graph : SearchGraph
        With weights of at least 0.
    threads : int
    device : DeviceInfo, optional
        An OpenCL device to use beside the host. If it cannot hold the graph, `notes` says so.

    Raises
    ------
    GraphError
        The graph has no weights, or a negative one.
    """

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.graph = graph
        self.lists = WeightedLists(graph)
        self.host = HostSearch(self.lists, threads)
        self.notes: list[str] = []
        self.device: DeviceSearch | None = None
        self._seconds: dict[Place, list[float]] = {"cpu": []}
        if device is not None and graph.num_searched:
            try:
                self.device = DeviceSearch(self.lists, device)
                self._seconds["device"] = []
            except DeviceError as error:
                self.notes.append(f"{device.name} is left out of shortest paths: {error}")

    @property
    def places(self) -> list[Place]:
        """Where searches can run."""
        return list(self._seconds)

    def choose(self) -> Place:
        """Return where the next search runs: each place once or twice, then the fastest so far.

        The second run counts, since the first one compiles.
        """
        for place, seconds in self._seconds.items():
            if len(seconds) < _TRIALS:
                return place
        return min(self._seconds, key=lambda place: min(self._seconds[place][1:]))

    def search(self, source: int, place: Place | None = None) -> ShortestPaths:
        """Search from one vertex (the caller's id), which is in the graph.

        Parameters
        ----------
        source : int
        place : {"cpu", "device"}, optional
            By default what `choose` says.
        """
        graph = self.graph
        new = graph.searched_id(source)
        if new is None:
            return self._alone(source)
        place = place or self.choose()
        found, seconds = self._run(place, new)
        distance = np.full(graph.num_vertices, np.inf)
        distance[graph.relabelling.old_of_new] = _with_infinity(found)
        traces = [_trace(record) for record in found.records.tolist()]
        parents = self._parents_of(found, new)
        return ShortestPaths(source, distance, seconds, traces, graph.graph.directed, parents)

    def _run(self, place: Place, source: int) -> tuple[Windows, float]:
        if place == "cpu":
            self.host.prepare()
        began = time.perf_counter()
        found = None
        if place == "device" and self.device is not None:
            found = self.device.run(source, self.lists.plan)
        if found is None:  # the host was chosen, or a distance is beyond the device's type
            found = self.host.run(source, self.lists.plan)
        seconds = time.perf_counter() - began
        self._seconds[place].append(seconds)
        return found, seconds

    @property
    def device_name(self) -> str | None:
        """Name of the OpenCL device in use, if any."""
        return None if self.device is None else self.device.device.info.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads, and let go of the device."""
        self.host.close()
        self.device = None

    def _alone(self, source: int) -> ShortestPaths:
        """Return the result of a vertex without edges."""
        distance = np.full(self.graph.num_vertices, np.inf)
        distance[source] = 0.0

        def parents() -> npt.NDArray[np.int64]:
            parent = np.full(distance.size, -1, np.int64)
            parent[source] = source
            return parent

        return ShortestPaths(source, distance, 0.0, [], self.graph.graph.directed, parents)

    def _parents_of(self, found: Windows, source: int) -> Callable[[], npt.NDArray[np.int64]]:
        kept, lists, relabelling = found.distance.copy(), self.lists, self.graph.relabelling

        def parents() -> npt.NDArray[np.int64]:
            from hetero_bfs.algorithms.sssp.kernels.tree import tree_parents

            up = tree_parents(lists, kept, found.infinity, source)
            parent = np.full(relabelling.new_of_old.size, -1, np.int64)
            reached = np.flatnonzero(up != NO_VERTEX)
            old = relabelling.old_of_new
            parent[old[reached]] = old[up[reached]]
            return parent

        return parents


def _with_infinity(found: Windows) -> npt.NDArray[np.float64]:
    distance = found.distance.astype(np.float64)
    if found.distance.dtype.kind == "i":
        distance[found.distance == found.infinity] = np.inf
    return distance


def _trace(record: list[Any]) -> WindowTrace:
    start, way, vertices, edges, rounds, seconds = record
    return WindowTrace(start, _WAYS[int(way)], int(vertices), int(edges), int(rounds), seconds)


def within_limits(info: DeviceInfo | None, options: EngineOptions) -> DeviceInfo | None:
    """Return a device as if it had no more memory than the options allow it."""
    if info is None:
        return None
    return replace(
        info,
        memory_bytes=min(info.memory_bytes, options.device_memory_bytes or info.memory_bytes),
        max_alloc_bytes=min(info.max_alloc_bytes, options.max_alloc_bytes or info.max_alloc_bytes),
    )


def open_paths(
    graph: CSRGraph | EdgeSource | SearchGraph,
    device: str | None = None,
    devices: str = "all",
    threads: int | None = None,
    order: str = "auto",
) -> PathSearches:
    """Make a graph ready for shortest paths; the settings are those of `EngineOptions`.

    Raises
    ------
    ArgumentError, GraphError, DeviceError
        As `Engine` does; the graph has no weights, or a negative one.
    """
    import numba

    options = EngineOptions(device=device, devices=devices, threads=threads, order=order)
    info, notes = None, []
    if options.devices != "cpu":
        try:
            info = choose_device(options.device)
        except DeviceError as error:
            if device is not None:
                raise
            notes.append(f"searching on the CPU only: {error}")
    if not isinstance(graph, SearchGraph):
        if weight_dtype_of(graph) is None:
            needed_weights(graph)
        graph = build_search_graph(graph, options.order)
    searches = PathSearches(graph, options.threads or numba.get_num_threads(), info)
    if device is not None and searches.device is None and searches.notes:
        raise DeviceError(searches.notes[0])
    searches.notes[:0] = notes
    return searches
