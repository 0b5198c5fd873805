"""The arrays that a search writes on an OpenCL device, and the migration of its frontier.

On unified memory the arrays are the host's own, mapped and unmapped when the search migrates. Other
devices have their own arrays, and `receive` and `send` copy the frontier.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.devices.opencl.mapped_memory import MappedMemory, release_with


class SearchMemory:
    """Parents, two bitmaps of visited vertices, and two queues with offsets, of one search.

    Parameters
    ----------
    device : OpenCLDevice
    host : CPUExecutor
        Provides the arrays on unified memory.
    offset_type : dtype
        Type of an offset into the edges, uint32 or uint64.
    """

    def __init__(self, device: OpenCLDevice, host: CPUExecutor, offset_type: Any) -> None:
        self._device = device
        self._host = host
        self._offset_type = offset_type
        self.unified = device.info.unified_memory
        self._mappings: list[MappedMemory] = []
        release_with(self, self._mappings).atexit = False
        if self.unified:
            self.parent = device.share(host.parent)
            self.visited = [device.share(array) for array in host.visited]
            self.queue = [device.share(array) for array in host.queue]
            self.offsets = [device.share(array) for array in host.offsets]
        else:
            n = host.parent.size
            self.parent = device.buffer(n, np.uint32)
            self.visited = [device.buffer(bits.size, np.uint32) for bits in host.visited]
            self.queue = [device.buffer(n, np.uint32) for _ in range(2)]
            self.offsets = [device.buffer(n, offset_type) for _ in range(2)]

    @property
    def arguments(self) -> list[Any]:
        """The buffers, in the order in which kernels take them."""
        return [self.parent, *self.visited, *self.queue, *self.offsets]

    def clear(self, frontier: Frontier) -> None:
        """Reset the arrays after a search: no vertex is visited, none has a parent."""
        self.acquire()
        self._device.fill(self.parent, 0xFF)
        self._device.fill(self.visited[frontier.visited_index], 0)

    def acquire(self) -> None:
        """Give shared memory back to the device after the host used it."""
        while self._mappings:
            self._device.unmap(self._mappings.pop())

    def release(self) -> None:
        """Let the host use the shared memory."""
        host = self._host
        if self._mappings or not self.unified or host.parent.size == 0:
            return
        arrays = [host.parent, *host.visited, *host.queue, *host.offsets]
        pairs = zip(self.arguments, arrays, strict=True)
        self._mappings += [self._device.map(buffer, array) for buffer, array in pairs]
        self._device.finish()

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Receive the frontier from the host."""
        if self.unified:
            self.acquire()
            return
        index, count, visited = frontier.queue_index, frontier.vertices, frontier.visited_index
        write, host = self._device.write, self._host
        write(self.visited[visited], host.visited[visited])
        if with_queue:
            write(self.queue[index], host.queue[index][:count])
            write(self.offsets[index], host.offsets[index][:count].astype(self._offset_type))

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        """Send the frontier to the host."""
        if self.unified:
            self.release()
            return
        index, count, visited = frontier.queue_index, frontier.vertices, frontier.visited_index
        read, host = self._device.read, self._host
        read(host.visited[visited], self.visited[visited])
        if with_queue:
            offsets = np.empty(count, self._offset_type)
            read(host.queue[index][:count], self.queue[index])
            read(offsets, self.offsets[index])
            host.offsets[index][:count] = offsets

    def read_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy one of the two bitmaps of visited vertices to the host."""
        self._device.read(visited, self.visited[index])

    def has_visited(self, vertex: int, index: int) -> bool:
        """Tell whether a vertex is in one of the two bitmaps of visited vertices."""
        word = np.empty(1, np.uint32)
        self._device.read(word, self.visited[index], 4 * (vertex // 32))
        return bool(int(word[0]) >> vertex % 32 & 1)

    def read_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents that this device found to the host."""
        self._device.read(parent, self.parent)
