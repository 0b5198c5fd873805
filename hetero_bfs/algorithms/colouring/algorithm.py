"""Colourings of a prepared graph: where one runs, and its result."""

from __future__ import annotations

import time

import numpy as np

from hetero_bfs.algorithms.base import Analysis
from hetero_bfs.algorithms.colouring.device import DeviceColouring
from hetero_bfs.algorithms.colouring.host import HostColouring
from hetero_bfs.algorithms.colouring.lists import UndirectedLists
from hetero_bfs.algorithms.colouring.result import Colouring
from hetero_bfs.algorithms.colouring.streamed import StreamedColouring
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling.iterations import IterationTrace
from hetero_bfs.scheduling.trials import Place


class Colourings(Analysis):
    """Colourings of one graph; see `Analysis`."""

    what = "colouring"

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.lists = UndirectedLists(graph)
        super().__init__(graph, threads, device)

    def _make_host(self, threads: int) -> HostColouring:
        return HostColouring(self.lists, threads)

    def _make_device(self, info: DeviceInfo) -> DeviceColouring:
        return self._whole_or_streamed(
            lambda: DeviceColouring(self.lists, info), lambda: StreamedColouring(self.lists, info)
        )

    def colour(self, place: Place | None = None) -> Colouring:
        """Colour the graph.

        Parameters
        ----------
        place : {"cpu", "device"}, optional
            By default the one that has been faster.
        """
        graph = self.graph
        colour = np.zeros(graph.num_vertices, np.int32)
        if not graph.num_searched:
            return Colouring(colour, 0.0, [])
        place = place or self.places.choose()
        executor = self.device if place == "device" and self.device is not None else self.host
        executor.prepare()
        began = time.perf_counter()
        found = executor.run()
        seconds = time.perf_counter() - began
        self.places.note(place, seconds)
        colour[graph.relabelling.old_of_new] = found.colour
        traces = [IterationTrace(number, *step) for number, step in enumerate(found.steps)]
        return Colouring(colour, seconds, traces, found.streamed_bytes)
