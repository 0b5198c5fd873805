"""Busy neighbours on an OpenCL device that holds the lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun, Entries
from hetero_bfs.devices.opencl.opencl_device import VARIES
from hetero_bfs.graph.search_graph import SearchGraph
from toy_algorithm.host import Counted


class DeviceCount(DeviceRun):
    """Counts on a device."""

    need = "busy neighbours need"
    files: Sequence[str] = (str(Path(__file__).parent / "kernels" / "count.cl"),)

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        backward = graph.graph.transpose if graph.graph.directed else graph.graph
        super().__init__(info, [Entries(backward.indptr, [backward.indices])])
        self._vertices = n = graph.num_searched
        degree = np.diff(graph.graph.indptr).astype(np.uint32)
        self._arrays = self.make_arrays({"count": (n, np.int32)}, degree)
        arguments = [*self.buffers(0), self.read_only.array(degree), self._arrays["count"]]
        program = self.build()
        self._kernel = self.device.bind(program, "count_busy", np.uint32(n), VARIES, *arguments)

    def run(self, least: int) -> Counted:
        self.launch(self._kernel, self._vertices, np.uint32(least))
        return Counted(self.read(self._arrays["count"], self._vertices, np.int32), "device count")
