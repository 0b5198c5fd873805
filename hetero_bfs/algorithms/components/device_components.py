"""Connected components on an OpenCL device; hook.cl has the kernels."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hetero_bfs.algorithms.components.host_components import Labels
from hetero_bfs.devices.opencl.driver import VARIES, DeviceInfo, OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.support.memory import format_bytes

_GROUP = 128  # work-items in a work-group, and vertices of a sample
_GROUPS_PER_UNIT = 8
_HEAVY_EDGES = 1 << 13
_FILES = ("devices/opencl/tiles.cl", "algorithms/components/kernels/hook.cl")
_TREES, _HOOKS, _COMPRESSED, _EDGES, _COUNTERS = 0, 1, 2, 5, 12
_NEVER = 2**64 - 1
_ON_DEVICE = 4
"""The phase of a record (host_components.py): all of them, on the device."""


class DeviceComponents:
    """Finds components on an OpenCL device, which keeps the lists.

    Parameters
    ----------
    graph : SearchGraph
    info : DeviceInfo

    Raises
    ------
    DeviceError
        Lists that the device cannot hold, failures of its driver.
    """

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        lists = [graph.graph, graph.graph.transpose] if graph.graph.directed else [graph.graph]
        self._check_sizes(lists, info)
        self.device = OpenCLDevice(info)
        self._vertices = n = graph.num_searched
        self._edges = sum(one.num_stored_edges for one in lists)
        narrow = all(one.num_stored_edges < 2**32 for one in lists)
        offset = np.uint32 if narrow else np.uint64
        self._kept = [graph.first] + [
            array
            for one in lists
            for array in (np.ascontiguousarray(one.indptr, offset), one.indices)
        ]  # a device may use them in place
        self._graph = [self.device.upload(array) for array in self._kept]
        self._label, self._heavy = (self.device.buffer(n, np.uint32) for _ in range(2))
        self._found = self.device.host_array(n, np.uint32)
        self._counters = self.device.buffer(_COUNTERS, np.uint64)
        self._grid = _GROUP * _GROUPS_PER_UNIT * info.compute_units
        options = [f"-DGROUP={_GROUP}", f"-DHEAVY_EDGES={_HEAVY_EDGES}"]
        options.append(f"-DOFFSET={'uint' if narrow else 'ulong'}")
        program = self.device.build(options, "", _FILES)
        self._bind(program)

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    @staticmethod
    def _check_sizes(lists: list[CSRGraph], info: DeviceInfo) -> None:
        n, edges = lists[0].num_vertices, [one.num_stored_edges for one in lists]
        largest, needed = max(4 * max(edges), 8 * n), 4 * sum(edges) + (8 * len(edges) + 12) * n
        if largest > info.max_alloc_bytes or needed > info.memory_bytes:
            raise DeviceError(
                f"components need {format_bytes(needed)} on {info.name}, up to "
                f"{format_bytes(largest)} in one piece; {format_bytes(info.memory_bytes)} may be "
                f"used, in pieces of {format_bytes(info.max_alloc_bytes)}"
            )

    def _bind(self, program: Any) -> None:
        """Set the arguments of all kernels, which do not keep them."""
        first, *lists = self._graph
        ways = [lists[i : i + 2] for i in range(0, len(lists), 2)]
        bind, n = self.device.bind, np.uint32(self._vertices)
        label, heavy, counters = self._label, self._heavy, self._counters
        self._hook = bind(program, "hook_first", n, first, label, counters)
        self._compress = bind(program, "compress", n, label, counters)
        self._sample = bind(program, "sample", n, np.uint64(self._edges), label, counters)
        self._link_lists = [
            bind(program, "link_lists", n, VARIES, VARIES, *way, heavy, label, counters)
            for way in ways
        ]
        self._link_heavy = [
            bind(program, "link_heavy", VARIES, *way, heavy, label, counters) for way in ways
        ]

    def prepare(self) -> None:
        """Do nothing: all is compiled."""

    def run(self) -> Labels:
        """Find the components; the searched range has vertices. The next run overwrites them."""
        began = time.perf_counter()
        device, n = self.device, self._vertices
        counters = np.zeros(_COUNTERS, np.uint64)
        counters[_COMPRESSED] = _NEVER
        device.write(self._counters, counters)
        size = min(-(-n // _GROUP) * _GROUP, self._grid)
        self._hook.launch(size, _GROUP)
        passes = 0
        for rest in (False, True):
            self._compress.launch(size, _GROUP)
            self._sample.launch(_GROUP, _GROUP)
            for link_lists, link_heavy in zip(self._link_lists, self._link_heavy, strict=True):
                link_lists.launch(size, _GROUP, np.uint32(rest), np.uint32(passes))
                link_heavy.launch(self._grid, _GROUP, np.uint32(passes))
                passes += 1
        self._compress.launch(size, _GROUP)
        device.read(self._found, self._label)
        device.read(counters, self._counters)
        records = [(_ON_DEVICE, n, int(counters[_EDGES]), time.perf_counter() - began)]
        return Labels(self._found, int(counters[_TREES] - counters[_HOOKS]), np.array(records))
