"""Colouring on an OpenCL device that cannot hold the lists: each list is sent once.

Colours depend on neighbours of lower rank only. So the lists are sent in the order of the ranks,
and the vertices of a buffer are coloured before the next lists are read (jones_plassmann.cl).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hetero_bfs.algorithms.colouring.device import NEED, DeviceColouring, _Kernels
from hetero_bfs.algorithms.colouring.host import finish_in_turn
from hetero_bfs.algorithms.colouring.lists import Coloured, Step
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import VARIES
from hetero_bfs.devices.opencl.streaming.block_lists import Blocks, Numbers, Part
from hetero_bfs.devices.opencl.streaming.block_memory import BlockMemory, Streams
from hetero_bfs.devices.opencl.streaming.pages import Slot

_ARRAYS = 5  # of a word for each vertex: colours, waiting, heavy, and two queues


class _Counted(NamedTuple):
    """A range of ranks whose waiting vertices were counted, and where its lists are."""

    kernels: _Kernels
    begin: int
    end: int
    skipped: np.uint64


class StreamedColouring(DeviceColouring):
    """As `DeviceColouring`; the device has arrays of the vertices, and some of the lists.

    The host keeps the lists by rank, unless vertices are numbered so.

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks of the lists.
    DeviceError
        Failures of its driver.
    """

    _options: ClassVar[list[str]] = ["-DSTREAMED"]

    def _check_sizes(self, info: DeviceInfo) -> None:
        """Do nothing: `BlockMemory` does it."""

    def _bind_lists(self, program: Any) -> None:
        """Upload `indptr`, and take memory for the lists."""
        self._program, n = program, self.lists.num_vertices
        indptr, indices = self.lists.by_rank()
        self._firsts = np.append(np.arange(0, n, self._group), n)
        self._kernels_of: dict[int, _Kernels] = {}
        sizes = (
            [4 * n] * _ARRAYS,
            [4 * self._words, self._offset.itemsize * (n + 1), self._host_sizes.nbytes],
        )
        self._memory = BlockMemory(
            self.device,
            Streams(),
            NEED,
            [Blocks(indptr, [indices], self._firsts)],
            [*sizes[0], *sizes[1]],
            [4],
            [],
            self._kernels_of.clear,
        )
        self._indptr = self._shared.offsets(indptr)
        self._memory.take()

    def _kernels_on(self, room: Part | Slot) -> _Kernels:
        """Return the kernels that read lists in a room's buffers."""
        if id(room) not in self._kernels_of:
            lists = self._indptr, room.buffers[1], VARIES
            self._kernels_of[id(room)] = self._bind_on(self._program, *lists)
        return self._kernels_of[id(room)]

    def run(self) -> Coloured:
        """Colour all vertices: the rounds of a buffer's lists run while the next ones are sent."""
        lists, group, before = self.lists, self._group, self._memory.bytes_sent
        self._steps: list[Step] = []
        self._counted: _Counted | None = None
        self._is_stuck = False
        self._start.launch(self._size(lists.num_vertices), group)
        for blocks in self._memory.batches(0):
            self._memory.launch_along(0, blocks, self._count)
            if self._is_stuck:
                break
        self._colour_counted()
        by_rank = np.empty_like(self.colour)
        self.device.read(by_rank, self._colour)
        self.colour[lists.order] = by_rank
        if self._is_stuck:
            self._steps.append(finish_in_turn(lists, self.colour))
        return Coloured(self.colour, self._steps, self._memory.bytes_sent - before)

    def _count(self, room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
        """Colour the range before, then queue the count of this one; return its event."""
        self._colour_counted()
        if self._is_stuck:
            return after[-1] if after else None
        begin, end = int(self._firsts[blocks[0]]), int(self._firsts[blocks[-1] + 1])
        skipped = np.uint64(self._memory.ways[0].bounds[blocks[0]])
        self._counted = _Counted(self._kernels_on(room), begin, end, skipped)
        return self._count_range(self._counted.kernels, begin, end, skipped, after=after)

    def _colour_counted(self) -> None:
        """Colour the range that was counted last, if there is one."""
        if self._counted is None:
            return
        kernels, begin, end, skipped = self._counted
        self._counted = None
        heavy = min(max(self._num_heavy - begin, 0), end - begin)  # they have the first ranks
        left = self._run_rounds(kernels, end - begin, heavy, self._steps, skipped)
        self._is_stuck = left > 0
