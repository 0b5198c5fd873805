"""What runs on an OpenCL device that cannot hold the lists: blocks of them are sent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.device_run import DeviceRun
from hetero_bfs.devices.opencl.streaming.list_blocks import BlockMemory, Blocks, Numbers


class StreamedRun(DeviceRun):
    """As `DeviceRun`, with the lists' entries in a `BlockMemory`.

    A block is the lists of a work-group's vertices; `firsts[i]` is the first vertex of block i.
    Kernels mark blocks in `marks_buffer`, which has another byte behind those of the blocks.

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks.
    """

    flags: ClassVar = ("STREAMED",)
    memory: BlockMemory
    firsts: npt.NDArray[Any]

    kernels_of: dict[Any, Any]
    """Kernels whose arguments are buffers of the memory."""

    def _make_room(self, array_bytes: list[int], firsts: npt.NDArray[Any] | None = None) -> None:
        """Choose the blocks that are resident beside arrays of these sizes."""
        n = self.ways[0].indptr.size - 1
        self.firsts = np.append(np.arange(0, n, self.group), n) if firsts is None else firsts
        self.kernels_of = {}
        self.marks = np.zeros(self.firsts.size, np.uint8)
        self.memory = BlockMemory(
            self.device,
            self.need,
            [Blocks(*way, self.firsts) for way in self.ways],
            [*array_bytes, self.marks.nbytes],
            self._slot_bytes(),
            self.kernels_of.clear,
        )
        self.marks_buffer = self.device.buffer(self.marks.size, np.uint8)

    @property
    def launch_entries(self) -> int:
        """The most entries of lists that a launch reads."""
        return self.memory.layout.part_entries

    def blocks_with_lists_over(self, edges: int) -> list[npt.NDArray[np.bool_]]:
        """Tell for each direction which blocks have a list of more entries."""
        longest = [np.maximum.reduceat(np.diff(w.indptr), self.firsts[:-1]) for w in self.ways]
        return [sizes > edges for sizes in longest]

    def marked(self) -> Numbers:
        """Return the marked blocks, and read `marks`."""
        self.device.read(self.marks, self.marks_buffer)
        return np.flatnonzero(self.marks[:-1])

    @property
    def bytes_sent(self) -> int:
        """Bytes of blocks sent since the memory was taken."""
        return self.memory.bytes_sent
