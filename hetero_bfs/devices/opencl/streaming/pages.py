"""Pages of edges in transit to a device that has no room for all of them.

The host gathers pages in pinned memory of a slot. A separate queue copies them to the slot's
buffer, and kernels read them there. There are several slots, so that gathering, copying and reading
overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.devices.opencl.streaming.paged_graph import NUM_SLOTS, StreamPlan


@dataclass
class Slot:
    """Room for pages: pinned memory of the host, and a buffer of the device.

    `copied` and `read` are the events of the last copy and of the last kernel. PyOpenCL waits for
    a copy when its event is deleted.
    """

    number: int
    staging: npt.NDArray[np.uint32]
    buffer: Any
    copied: Any = field(default=None, repr=False)
    read: Any = field(default=None, repr=False)


Launch = Callable[[Slot, int, Any], Any]
"""Queues the kernel that reads a number of pages in a slot, after an event; returns its event."""


class PageSlots:
    """The slots through which pages are sent.

    Parameters
    ----------
    device : OpenCLDevice
    edges : sequence of uint32 arrays
        The edges of each direction, on the host.
    plan : StreamPlan
    """

    def __init__(
        self, device: OpenCLDevice, edges: Sequence[npt.NDArray[np.uint32]], plan: StreamPlan
    ) -> None:
        self._device = device
        self._edges = edges
        self._plan = plan
        self._queue = device.second_queue()
        self.slots = [
            Slot(
                number,
                device.host_array(plan.slot_edges, np.uint32),
                device.buffer(plan.slot_edges, np.uint32),
            )
            for number in range(NUM_SLOTS)
        ]
        self._turn = 0
        self.bytes_sent = 0

    def send(self, direction: int, pages: npt.NDArray[np.uint32], launch: Launch) -> None:
        """Send pages of one direction, and launch a kernel on every slot that they fill."""
        for begin in range(0, pages.size, self._plan.slot_pages):
            self._send_some(direction, pages[begin : begin + self._plan.slot_pages], launch)

    def _send_some(self, direction: int, pages: npt.NDArray[np.uint32], launch: Launch) -> None:
        from hetero_bfs.devices.opencl.streaming.page_kernels import gather_pages

        slot = self.slots[self._turn]
        self._turn = (self._turn + 1) % len(self.slots)
        if slot.read is not None:
            self._device.wait(slot.read)  # the copy has then ended, too
        shift = self._plan.page_shift
        gather_pages(pages, shift, self._edges[direction], slot.staging)
        sent = slot.staging[: (pages.size << shift) + pages.size]
        slot.copied = self._device.send(self._queue, slot.buffer, sent)
        self._queue.flush()
        slot.read = launch(slot, pages.size, slot.copied)
        self._device.queue.flush()  # otherwise a slot may wait for a kernel that never starts
        self.bytes_sent += sent.nbytes
