"""Colourings of a prepared graph, on the faster of host and device."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Analysis, Ran, Request
from hetero_bfs.algorithms.bfs.serial import as_matrix
from hetero_bfs.algorithms.colouring.device import DeviceColouring, StreamedColouring
from hetero_bfs.algorithms.colouring.host import HostColouring, UndirectedLists
from hetero_bfs.algorithms.colouring.result import Colouring, ColouringReport
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.lists import Lists
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.scheduling.trace import SERIAL, numbered
from hetero_bfs.support.checks import as_array
from hetero_bfs.support.cold import is_cold


def colour_in_python(graph: CSRGraph) -> Colouring:
    """Give each vertex, by falling degree, the first colour that no coloured neighbour has."""
    began = time.perf_counter()
    matrix = as_matrix(Lists(graph.indptr, graph.indices))
    if graph.directed:
        matrix = (matrix + matrix.T).tocsr()
    degree = np.diff(matrix.indptr)
    ends, neighbours = matrix.indptr.tolist(), matrix.indices.tolist()
    colour = [-1] * graph.num_vertices
    for v in np.argsort(-degree.astype(np.int64), kind="stable").tolist():
        taken = {colour[u] for u in neighbours[ends[v] : ends[v + 1]]}
        first = 0
        while first in taken:
            first += 1
        colour[v] = first
    seconds = time.perf_counter() - began
    traces = numbered([(SERIAL, graph.num_vertices, len(neighbours), seconds)])
    return Colouring(np.array(colour, np.int32), seconds, traces)


_SECONDS_PER_ENTRY = 2e-7  # in Python; a guess


class Colourings(Analysis[Colouring]):
    """Colourings of one graph. A query may have colours to start from, in the caller's ids."""

    what = "colouring"
    report: ClassVar = ColouringReport
    executors = HostColouring, DeviceColouring, StreamedColouring

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, *start: Any) -> Colouring:
        seconds = _SECONDS_PER_ENTRY * (graph.num_stored_edges + graph.num_vertices)
        if not start and is_cold(cls.__name__, seconds):
            return colour_in_python(graph)
        return super().by_one_thread(graph, *start)

    def _make_lists(self) -> UndirectedLists:
        if self.graph.graph.directed:
            self.shared_lists = 0.0
        return UndirectedLists(self.graph)

    def _on(self, executor: Any, *start: Any) -> Any:
        """Colour; the host alone starts from colours."""
        if not start:
            return executor.run()
        if executor is not self.host:
            return None
        return self.host.extend(self._padded(*start)[self.graph.relabelling.old_of_new])

    def _padded(self, start: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        return np.pad(start, (0, self.graph.num_vertices - start.size), constant_values=-1)

    def _without_edges(self, *start: Any) -> Any:
        """Return the values of vertices without edges: 0, or their colours."""
        return np.maximum(self._padded(*start), 0) if start else 0

    def _note(self, place: DeviceKind, seconds: float, *start: Any) -> None:
        if not start:
            super()._note(place, seconds)

    def _known(self, *start: Any) -> Colouring | None:
        if self.graph.num_searched:
            return None
        colour = np.full(self.graph.num_vertices, self._without_edges(*start), np.int32)
        return Colouring(colour, 0.0, [])

    def _result(self, ran: Ran, *start: Any) -> Colouring:
        from hetero_bfs.graph.kernels.old_ids import by_old_ids

        numbers = self.graph.relabelling
        size, outside = self.graph.num_vertices, self._without_edges(*start)
        colour = by_old_ids(ran.found.colour, numbers.old_of_new, size, outside)
        traces = numbered(ran.found.steps)
        return Colouring(colour, ran.seconds, traces, ran.found.streamed_bytes)


def requested(num_vertices: int, start: Any) -> Request[Colouring]:
    """Return the request for a colouring that starts from colours; None if it starts from none."""
    if start is None:
        return Request(Colourings, ())
    return Request(Colourings, (_checked(num_vertices, start),))


def _checked(num_vertices: int, start: Any) -> npt.NDArray[np.int32]:
    array = as_array("start", start)
    if array.ndim != 1 or array.size > num_vertices:
        raise ArgumentError(
            f"start has shape {array.shape}; give at most one colour for each of {num_vertices} "
            "vertices"
        )
    if array.size and array.dtype.kind not in "iu":
        raise ArgumentError(f"start holds {array.dtype}; give integers")
    if array.size and not (array.min() >= -1 and array.max() < num_vertices):
        raise ArgumentError(
            f"start has colours from {array.min()} to {array.max()}; give -1 for none, or numbers "
            f"below {num_vertices}, the number of vertices"
        )
    return array.astype(np.int32)
