"""Colourings of a prepared graph, on the faster of host and device."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hetero_bfs.algorithms.base import Analysis, Ran, Request
from hetero_bfs.algorithms.colouring.device import DeviceColouring
from hetero_bfs.algorithms.colouring.host import HostColouring
from hetero_bfs.algorithms.colouring.lists import UndirectedLists
from hetero_bfs.algorithms.colouring.result import Colouring, ColouringReport
from hetero_bfs.algorithms.colouring.serial import colour_in_python
from hetero_bfs.algorithms.colouring.streamed import StreamedColouring
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.scheduling.trace import numbered
from hetero_bfs.support.cold import is_cold

_SECONDS_PER_ENTRY = 2e-7  # in Python; a guess


class Colourings(Analysis[Colouring]):
    """Colourings of one graph. A query has no arguments."""

    what = "colouring"
    report: ClassVar = ColouringReport
    executors = HostColouring, DeviceColouring, StreamedColouring

    @classmethod
    def by_one_thread(cls, graph: CSRGraph) -> Colouring:
        """See `Analysis`, and serial.py."""
        seconds = _SECONDS_PER_ENTRY * (graph.num_stored_edges + graph.num_vertices)
        if is_cold(cls.__name__, seconds):
            return colour_in_python(graph)
        return super().by_one_thread(graph)

    def _make_lists(self) -> UndirectedLists:
        return UndirectedLists(self.graph)

    def _known(self) -> Colouring | None:
        if self.graph.num_searched:
            return None
        return Colouring(np.zeros(self.graph.num_vertices, np.int32), 0.0, [])

    def _result(self, ran: Ran) -> Colouring:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        numbers = self.graph.relabelling
        colour = by_old_ids(ran.found.colour, numbers.old_of_new, self.graph.num_vertices)
        traces = numbered(ran.found.steps)
        return Colouring(colour, ran.seconds, traces, ran.found.streamed_bytes)


REQUEST = Request(Colourings, ())
