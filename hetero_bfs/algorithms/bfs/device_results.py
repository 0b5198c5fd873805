"""Results on their way to the caller: restored on the device that finished a search, or saved.

The device sends 32 bits for each vertex, in parts. While a part is copied, the host converts the
part before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device_memory import SearchMemory
from hetero_bfs.devices.opencl.device_run import DeviceLists
from hetero_bfs.devices.opencl.header import SHARED, header
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import aligned_empty, format_bytes

_PART_VERTICES = 1 << 20
"""Vertices in a part. On the host it is 4 MiB, so that the copy may stay in the cache."""

_PARTS = 4
"""Parts in pinned memory at the same time."""

_GROUP = 256
_GROUPS_PER_UNIT = 32

Receive = Callable[[int, npt.NDArray[np.uint32]], None]
"""Takes the first vertex of a part, and the part; its memory is used again afterwards."""


class DeviceResults:
    """Restores results of searches that are complete on a device with its own memory.

    The queues' memory is scratch. Raises `BudgetError` if the arrays take more than `spare_bytes`,
    and `DeviceError` if the driver fails.
    """

    def __init__(
        self, device: OpenCLDevice, graph: SearchGraph, memory: SearchMemory, spare_bytes: int
    ) -> None:
        self._device, self._memory = device, memory
        self._size, self._searched = graph.num_vertices, graph.num_searched
        relabelling = graph.relabelling
        needed = 4 * (2 * self._size + self._searched)
        if needed > spare_bytes:
            raise BudgetError(
                f"the arrays need {format_bytes(needed)} on {device.info.name}, and "
                f"{format_bytes(max(spare_bytes, 0))} are free there"
            )
        self._lists = DeviceLists(device)
        self._new_of_old = self._lists.array(relabelling.new_of_old)
        self._old_of_new = self._lists.array(relabelling.old_of_new)
        self._result = device.buffer(self._size, np.uint32)
        room = min(self._size, _PARTS * _PART_VERTICES)
        self._parts: npt.NDArray[np.uint32] = device.host_array(room, np.uint32)
        files = ["algorithms/bfs/kernels/results.cl"]
        self._program = device.build([], header(SHARED), files)
        self._group = device.info.group_size(_GROUP)
        self._restore_parents = self._bind(
            "restore_parents", self._size, self._searched,
            self._new_of_old, self._old_of_new, memory.parent, self._result,
        )  # fmt: skip

    def _bind(self, name: str, items: int, *arguments: Any) -> Callable[[], Any]:
        """Return a function that queues a kernel; its first argument is the number of items."""
        given = [np.uint32(a) if isinstance(a, int) else a for a in (items, *arguments)]
        kernel = self._device.bind(self._program, name, *given)
        size, most = self._group, _GROUPS_PER_UNIT * self._device.info.compute_units
        groups = min(max(-(-items // size), 1), most)
        return lambda: kernel.launch(groups * size, size)  # without `self`: it would be a cycle

    @cached_property
    def _depth_kernels(self) -> tuple[Callable[[], Any], list[Callable[[], Any]], list[Any]]:
        """The kernels that begin depths, double them, and restore levels.

        The latter are pairs, by which of the two queues has the depths.
        """
        n, memory, bind = self._searched, self._memory, self._bind
        pairs = list(zip(memory.queue, memory.offsets, strict=True))
        begin = bind("begin_depths", n, memory.parent, *pairs[0])
        double = [bind("double_depths", n, *pairs[i], *pairs[1 - i]) for i in range(2)]
        restore = [
            bind("restore_levels", self._size, n, self._new_of_old, *pair, self._result)
            for pair in pairs
        ]
        return begin, double, restore

    def send_parents(self, receive: Receive) -> None:
        """Restore the parents of the device's last search, and send them in parts."""
        self._restore_parents()
        self._send(receive)

    def send_levels(self, deepest: int, receive: Receive) -> None:
        """Restore the levels, which are at most `deepest`, and send them in parts."""
        begin, double, restore = self._depth_kernels
        begin()
        doublings = max((deepest - 1).bit_length() - 1, 0)
        for number in range(doublings):
            double[number % 2]()
        restore[doublings % 2]()
        self._send(receive)

    def _send(self, receive: Receive) -> None:
        """Copy the result to the host in parts; call `receive` for each while later ones follow."""
        device, waiting = self._device, deque[tuple[Any, int, npt.NDArray[np.uint32]]]()
        for number, begin in enumerate(range(0, self._size, _PART_VERTICES)):
            if len(waiting) == _PARTS:
                self._receive_first(waiting, receive)
            slot = number % _PARTS * _PART_VERTICES
            part = self._parts[slot : slot + min(_PART_VERTICES, self._size - begin)]
            waiting.append((device.start_read(part, self._result, 4 * begin), begin, part))
            device.queue.flush()
        while waiting:
            self._receive_first(waiting, receive)

    def _receive_first(self, waiting: deque[Any], receive: Receive) -> None:
        event, begin, part = waiting.popleft()
        self._device.wait(event)
        receive(begin, part)


class SavedParents:
    """Memory for parents whose ids are restored later; reused between groups."""

    def __init__(self) -> None:
        self._memory: npt.NDArray[np.uint32] = np.empty(0, np.uint32)

    def room(self, count: int, n: int, device: OpenCLDevice | None) -> npt.NDArray[np.uint32]:
        """Return memory for the parents of `count` searches, uint32 (count, n).

        If a device is given, the memory is pinned for fast copies from it.
        """
        if self._memory.size < count * n:
            self.release()  # first, so that both never exist at the same time
            self._memory = _memory_for_copies(count * n, device)
        return self._memory[: count * n].reshape(count, n)

    def release(self) -> None:
        self._memory = np.empty(0, np.uint32)


def _memory_for_copies(size: int, device: OpenCLDevice | None) -> npt.NDArray[np.uint32]:
    """Return pinned memory for fast copies from the device; plain memory if that fails."""
    if device is not None:
        with suppress(DeviceError):
            return device.host_array(size, np.uint32)
    return aligned_empty(size, np.uint32)
