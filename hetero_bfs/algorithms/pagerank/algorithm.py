"""PageRank of a prepared graph: where it runs, and the result."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from hetero_bfs.algorithms.base import Analysis
from hetero_bfs.algorithms.pagerank.device import DeviceRanks
from hetero_bfs.algorithms.pagerank.host import HostRanks
from hetero_bfs.algorithms.pagerank.lists import RankLists, Ranks, RankSettings
from hetero_bfs.algorithms.pagerank.result import PageRank
from hetero_bfs.algorithms.pagerank.streamed import StreamedRanks
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling.iterations import IterationTrace
from hetero_bfs.scheduling.trials import Place
from hetero_bfs.support.checks import check_flag

_NEGLIGIBLE = 1e-30  # share of restarts


class PageRanks(Analysis):
    """Runs of PageRank on one graph; see `Analysis`."""

    what = "PageRank"
    weighted: ClassVar[bool] = False

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.lists = RankLists(graph, self.weighted)
        super().__init__(graph, threads, device)

    def _make_host(self, threads: int) -> HostRanks:
        return HostRanks(self.lists, threads)

    def _make_device(self, info: DeviceInfo) -> DeviceRanks | StreamedRanks:
        return self._whole_or_streamed(
            lambda: DeviceRanks(self.lists, info), lambda: StreamedRanks(self.lists, info)
        )

    def rank(self, settings: RankSettings, place: Place | None = None) -> PageRank:
        """Find the ranks.

        Parameters
        ----------
        settings : RankSettings
        place : {"cpu", "device"}, optional
            By default the one that has been faster.
        """
        if self.lists.shares(settings.personalization)[0] < _NEGLIGIBLE:
            return self._restarts_alone(settings)
        place = place or self.places.choose()
        found, seconds = self._run(place, settings)
        edges, n = self.lists.num_stored_edges, self.graph.num_searched
        traces = [
            IterationTrace(number, strategy, n, edges, taken)
            for number, (strategy, taken) in enumerate(found.records)
        ]
        converged = found.change < settings.change
        return PageRank(found.rank, seconds, found.change, converged, traces, found.streamed_bytes)

    def _run(self, place: Place, settings: RankSettings) -> tuple[Ranks, float]:
        if place == "cpu":
            self.host.prepare()
        began = time.perf_counter()
        found = of_device = None
        if place == "device" and self.device is not None:
            found = of_device = self.device.run(settings)
        if found is None:  # the host was chosen, or the device is not exact enough
            found = self.host.run(settings)
        seconds = time.perf_counter() - began
        self.places.note(place, seconds)
        if of_device is not None:
            found = of_device._replace(rank=of_device.rank.copy())
        return found, seconds

    def _restarts_alone(self, settings: RankSettings) -> PageRank:
        """Return the result if restarts lead only to vertices without edges."""
        n, rank = self.graph.num_vertices, settings.personalization
        if rank is None:
            rank = np.full(n, 1.0 / max(n, 1))
        return PageRank(rank, 0.0, 0.0, True, [])


class WeightedPageRanks(PageRanks):
    """Runs in which a vertex divides its rank by its edges' weights, of at least 0."""

    needs_weights = True
    weighted = True


def ranks_kind(weighted: Any) -> type[PageRanks]:
    """Return the kind of runs; raise `ArgumentError` unless `weighted` is True or False."""
    check_flag("weighted", weighted)
    return WeightedPageRanks if weighted else PageRanks
