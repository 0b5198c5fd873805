"""Busy neighbours of a prepared graph."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hetero_bfs.algorithms.base import Analysis, Ran, RankedGraph, Request
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.scheduling.trace import numbered
from hetero_bfs.support.checks import check_integer
from toy_algorithm.device import DeviceCount
from toy_algorithm.host import HostCount
from toy_algorithm.result import BusyNeighbours, BusyReport
from toy_algorithm.streamed import Busy, StreamedCount


class BusyRuns(Analysis[BusyNeighbours]):
    """Counts on one graph; a query is the least number of edges."""

    what = "busy neighbours"
    report: ClassVar = BusyReport
    executors = HostCount, DeviceCount, StreamedCount

    def _known(self, least: int) -> BusyNeighbours | None:
        if self.graph.num_searched:
            return None
        return BusyNeighbours(np.zeros(self.graph.num_vertices, np.int32), 0.0, [])

    def _result(self, ran: Ran, least: int) -> BusyNeighbours:
        found, graph = ran.found, self.graph
        count = np.zeros(graph.num_vertices, np.int32)
        count[graph.relabelling.old_of_new] = found.count
        work = graph.num_searched, graph.graph.num_stored_edges
        traces = numbered([(found.strategy, *work, ran.seconds)])
        return BusyNeighbours(count, ran.seconds, traces, found.streamed_bytes)

    @classmethod
    def by_ranks(cls, engine: RankedGraph, least: int) -> BusyNeighbours:
        result = engine.run(Busy(), RunOptions(max_iterations=1), least=least)
        return BusyNeighbours(result.gathered("count"), result.seconds, result.traces)


def requested(least: int) -> Request[BusyNeighbours]:
    return Request(BusyRuns, (check_integer("least", least, 0, 2**31 - 1),))
