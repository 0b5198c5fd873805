"""Colouring on an OpenCL device that cannot hold the adjacency: each part of it is sent once.

Colours depend only on neighbours of lower rank. So the adjacency is sent by rising rank, and the
vertices of a buffer are coloured before the next buffer is read (jones_plassmann.cl). The lists of
hubs are not sent, since the host colours them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.colouring.device import DeviceColouring, Kernels
from hetero_bfs.algorithms.colouring.host import finish_serially
from hetero_bfs.algorithms.colouring.lists import Coloured, Step, UndirectedLists
from hetero_bfs.devices.opencl.device_run import Entries
from hetero_bfs.devices.opencl.opencl_device import VARIES
from hetero_bfs.devices.opencl.streamed_lists import Numbers, Part, Slot, StreamedRun


class _Counted(NamedTuple):
    """A range of ranks whose waiting vertices were counted, and the kernels that read it."""

    kernels: Kernels
    begin: int
    end: int
    skipped: np.uint64


class StreamedColouring(StreamedRun, DeviceColouring):
    """Like `DeviceColouring`; the device has the vertices' arrays and a part of the adjacency.

    The host keeps a copy of the adjacency by rank, unless ids already are ranks.

    Raises `BudgetError` if the device cannot hold these arrays and a few blocks of the adjacency,
    and `DeviceError` if its driver fails.
    """

    of_vertices = DeviceColouring.of_vertices[:-1]  # no ranks, which are the numbers of vertices

    def _entries(self, lists: UndirectedLists) -> Entries:
        indptr, indices = lists.by_rank()
        first = indptr[self._num_hubs]
        return Entries(np.maximum(indptr, first) - first, [indices[first:]])

    def _bind_lists(self) -> None:
        """Allocate memory for the adjacency; kernels are bound when a room is first used."""
        self.memory.take()

    def _kernels_on(self, room: Part | Slot) -> Kernels:
        return self.bound_once(
            id(room), lambda: self._bind_on(self.offsets(0), room.buffers[1], VARIES)
        )

    def run(self) -> Coloured:
        """Colour all vertices. The rounds of a buffer run while the next buffer is sent."""
        before = self.bytes_sent
        self._steps: list[Step] = []
        self._counted: _Counted | None = None
        self._is_stuck = False
        self._start_with_hubs(self._steps)
        self.memory.launch_along(0, np.arange(self.marks.size - 1), self._count)
        self._colour_counted()
        by_rank = np.empty_like(self.colour)
        self.device.read(by_rank, self._arrays["colour"])
        self.colour[self.lists.order] = by_rank
        if self._is_stuck:
            self._steps.append(finish_serially(self.lists, self.colour))
        return Coloured(self.colour, self._steps, self.bytes_sent - before)

    def _first_colours(self) -> npt.NDArray[np.int32]:
        return np.take(self.colour, self.lists.order[: self._num_hubs])

    def _count(self, room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
        """Colour the previous range, then queue the count of this one; return its event.

        Returns None if the device is stuck.
        """
        self._colour_counted()
        if self._is_stuck:
            return None
        begin = max(int(self.firsts[blocks[0]]), self._num_hubs)
        end = max(int(self.firsts[blocks[-1] + 1]), begin)
        skipped = np.uint64(self.memory.ways[0].bounds[blocks[0]])
        self._counted = _Counted(self._kernels_on(room), begin, end, skipped)
        return self._count_range(self._counted.kernels, begin, end, skipped, after=after)

    def _colour_counted(self) -> None:
        """Colour the range that was counted last, if any."""
        if self._counted is None:
            return
        kernels, begin, end, skipped = self._counted
        self._counted = None
        left = self._run_rounds(kernels, end - begin, self._steps, skipped)
        self._is_stuck = left > 0
