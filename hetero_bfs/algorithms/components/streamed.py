"""Connected components on an OpenCL device that has no room for the lists: tiles of them are sent.

Most lists are never read (hook.py). Before a pass the device marks the tiles with lists that the
pass reads, and the host sends those that are not resident.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from hetero_bfs.algorithms.components import device as device_components
from hetero_bfs.algorithms.components.device import _COUNTERS, NEED, DeviceComponents
from hetero_bfs.algorithms.components.host import Labels
from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import VARIES
from hetero_bfs.devices.opencl.streaming.block_lists import Blocks, Numbers, Part
from hetero_bfs.devices.opencl.streaming.block_memory import BlockMemory, Streams
from hetero_bfs.devices.opencl.streaming.pages import Slot
from hetero_bfs.graph.csr import CSRGraph

_ARRAYS = 3  # of a word for each vertex: `first`, `label` and `heavy`


class StreamedComponents(DeviceComponents):
    """As `DeviceComponents`; the device has arrays of the vertices, and some tiles of the lists.

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few tiles.
    DeviceError
        Failures of its driver.
    """

    _files: ClassVar[list[str]] = [
        *DeviceComponents._files[:-1],
        "devices/opencl/streaming/block_marks.cl",
        DeviceComponents._files[-1],
    ]
    _options: ClassVar[list[str]] = ["-DSTREAMED"]

    def _check_sizes(self, info: DeviceInfo) -> None:
        """Do nothing: `BlockMemory` does it."""

    def _upload(self, lists: CSRGraph) -> list[Any]:
        """Return the buffer of `indptr`: tiles hold the neighbours."""
        return [self._shared.offsets(lists.indptr)]

    def _bind_links(self, program: Any) -> None:
        """Set the arguments of the kernel that chooses tiles, and take memory for the lists."""
        n, group = self._vertices, self._group
        firsts = np.append(np.arange(0, n, group), n)
        self._program = program
        self._has_long = [
            np.maximum.reduceat(one.degree(), firsts[:-1]) > device_components._HEAVY_EDGES
            for one in self._lists
        ]
        self._marks = np.zeros(self._tiles, np.uint8)
        self._kernels_of: dict[tuple[int, int], tuple[BoundKernel, BoundKernel]] = {}
        offset_bytes = [self._offset.itemsize * (n + 1)] * len(self._lists)
        self._memory = BlockMemory(
            self.device,
            Streams(),
            NEED,
            [Blocks(one.indptr, [one.indices], firsts) for one in self._lists],
            [*[4 * n] * _ARRAYS, *offset_bytes, self._marks.nbytes, 8 * _COUNTERS],
            [4],
            [],
            self._kernels_of.clear,
        )
        self._chosen = self.device.buffer(self._tiles, np.uint8)
        rest = self._chosen, self._label, self._counters
        self._choose = [
            self.device.bind(program, "choose_tiles", VARIES, np.uint32(n), indptr, *rest)
            for indptr in self._graph[1:]
        ]
        self._end_heavy = self.device.bind(program, "end_heavy", VARIES, self._counters)
        self._memory.take()

    def run(self) -> Labels:
        """Find the components, as `DeviceComponents` does."""
        before = self._memory.bytes_sent
        found = super().run()
        return found._replace(streamed_bytes=self._memory.bytes_sent - before)

    def _link(self, rest: bool) -> None:
        """Queue a pass over the lists of each direction, where they are or are sent."""
        for way, choose in enumerate(self._choose):
            size = min(self._tiles * self._group, self._grid)
            choose.launch(size, self._group, self._turn(rest, way, self._tiles))
            self.device.read(self._marks, self._chosen)
            self._link_tiles(rest, way, np.flatnonzero(self._marks))

    def _link_tiles(self, rest: bool, way: int, chosen: Numbers) -> None:
        """Queue a pass over chosen tiles of a direction."""
        group, has_long = self._group, self._has_long[way]

        def launch(room: Part | Slot, tiles: Numbers, after: Sequence[Any]) -> Any:
            rows = room.end - room.begin if isinstance(room, Part) else tiles.size
            turn = self._turn(rest, way, rows)
            link_lists, link_heavy = self._kernels_on(room, way)
            event = link_lists.launch(min(rows * group, self._grid), group, turn, after=after)
            if has_long[tiles].any():
                link_heavy.launch(self._grid, group, turn)
                event = self._end_heavy.launch(1, 1, turn)
            return event

        self._memory.launch_along(way, chosen, launch)

    def _kernels_on(self, room: Part | Slot, way: int) -> tuple[BoundKernel, BoundKernel]:
        """Return the kernels that read lists of a direction in some buffers."""
        key = id(room), way
        if key not in self._kernels_of:
            rows, neighbours = room.buffers
            indptr = self._graph[1 + way]
            self._kernels_of[key] = self._bind_on(self._program, indptr, neighbours, rows)
        return self._kernels_of[key]
