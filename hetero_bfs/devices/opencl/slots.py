"""Edges in transit to a device that cannot hold all of them.

The host gathers edges in a slot's pinned memory. A separate queue copies them to the slot's
buffers, and kernels read them there. There are several slots, so that gathering, copying and
reading overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice

NUM_SLOTS = 4


@dataclass
class Slot:
    """Room for edges: arrays in pinned host memory, and a device buffer for each of them.

    `copied` and `read` are the events of the last copies and of the last kernel. PyOpenCL waits for
    a copy when its event is deleted.
    """

    number: int
    staging: list[npt.NDArray[Any]]
    buffers: list[Any]
    copied: list[Any] = field(default_factory=list, repr=False)
    read: Any = field(default=None, repr=False)


Launch = Callable[[Slot, int, Any], Any]
"""Queues the kernels that read a number of items of a slot, after an event; returns the last event.
"""

Fill = Callable[[list[npt.NDArray[Any]]], tuple[int, list[npt.NDArray[Any]]]]
"""Fills a slot's arrays; returns the number of items, and the part of each array to send."""


class Slots:
    """Slots that are filled and sent in rotation; `sizes` has size and type of a slot's arrays."""

    def __init__(self, device: OpenCLDevice, sizes: Sequence[tuple[int, npt.DTypeLike]]) -> None:
        self._device = device
        self._queue = device.second_queue()
        self.slots = [
            Slot(
                number,
                [device.host_array(*size) for size in sizes],
                [device.buffer(*size) for size in sizes],
            )
            for number in range(NUM_SLOTS)
        ]
        self._turn = 0
        self.bytes_sent = 0

    def send_slot(self, fill: Fill, launch: Launch) -> None:
        """Fill the next slot, send it, and launch kernels on it."""
        slot = self.slots[self._turn]
        self._turn = (self._turn + 1) % len(self.slots)
        if slot.read is not None:
            self._device.wait(slot.read)  # the copies have then ended, too
        count, filled = fill(slot.staging)
        slot.copied = [
            self._device.send(self._queue, buffer, array)
            for buffer, array in zip(slot.buffers, filled, strict=True)
        ]
        self._queue.flush()
        slot.read = launch(slot, count, slot.copied[-1])
        self._device.queue.flush()  # otherwise a slot may wait for a kernel that never starts
        self.bytes_sent += sum(array.nbytes for array in filled)
