"""Busy neighbours on an OpenCL device that holds the lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import VARIES, OpenCLDevice
from hetero_bfs.devices.opencl.room import check_room
from hetero_bfs.graph.search_graph import SearchGraph
from toy_algorithm.host import Counted

_GROUP = 64
_FILE = Path(__file__).parent / "kernels" / "count.cl"


class DeviceCount:
    """Counts on a device. The next run overwrites what `run` returns."""

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        backward = graph.graph.transpose if graph.graph.directed else graph.graph
        n, edges = graph.num_searched, backward.num_stored_edges
        check_room(info, "busy neighbours need", max(4 * edges, 8 * n + 8), 4 * edges + 16 * n + 8)
        self.device = OpenCLDevice(info)
        degree = np.diff(graph.graph.indptr).astype(np.uint32)
        self._kept = [backward.indptr.astype(np.uint64), backward.indices, degree]
        self._lists = [self.device.upload(array) for array in self._kept]
        self._count, self._buffer = np.empty(n, np.int32), self.device.buffer(n, np.int32)
        program = self.device.build([], "", [str(_FILE)])
        self._group = info.group_size(_GROUP)
        self._size = self._group * -(-n // self._group)
        self._kernel = self.device.bind(
            program, "count_busy", np.uint32(n), VARIES, *self._lists, self._buffer
        )

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    def run(self, least: int) -> Counted:
        self._kernel.launch(self._size, self._group, np.uint32(least))
        self.device.read(self._count, self._buffer)
        return Counted(self._count, "device count")
