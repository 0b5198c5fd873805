"""Connected components on an OpenCL device that cannot hold the adjacency: tiles of it are sent.

Most neighbour lists are never read (hook.py). Before a pass, the device marks the tiles that the
pass reads. The host sends those that are not resident.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hetero_bfs.algorithms.components import device as device_components
from hetero_bfs.algorithms.components.device import DeviceComponents
from hetero_bfs.algorithms.components.host import Labels
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.devices.opencl.streamed_lists import StreamedRun


class StreamedComponents(StreamedRun, DeviceComponents):
    """Like `DeviceComponents`; the device has the vertices' arrays and some tiles of the adjacency.

    Raises `BudgetError` if the device cannot hold these arrays and a few tiles, and `DeviceError`
    if its driver fails.
    """

    def _bind_links(self) -> None:
        """Bind the kernels that choose tiles, and allocate memory for the adjacency."""
        n, (_, *arrays) = np.uint32(self._vertices), self._arrays.values()
        self.note_long_lists(device_components._HEAVY_EDGES)
        bind, program = self.device.bind, self._program
        self._choose = [
            bind(program, "choose_tiles", VARIES, n, self.offsets(way), self.marks_buffer, *arrays)
            for way in range(len(self.ways))
        ]
        self._end_heavy = bind(program, "end_heavy", VARIES, self._arrays["counters"])
        self.memory.take()

    def _bind_room(self, way: int, buffers: list[Any]) -> tuple[BoundKernel, BoundKernel]:
        rows, neighbours = buffers
        return self._bind_on(self.offsets(way), neighbours, rows)

    def run(self) -> Labels:
        before = self.bytes_sent
        found = super().run()
        return found._replace(streamed_bytes=self.bytes_sent - before)

    def _link(self, rest: bool) -> None:
        """Queue a pass over the needed tiles of each direction."""
        for way, choose in enumerate(self._choose):
            self.launch(choose, self._vertices, self._pass(rest, way, self.marks.size - 1))
            one_pass = partial(self._pass, rest, way)
            self.launch_blocks(way, self.marked(), one_pass, self._end_heavy)
