"""Connected components on an OpenCL device; hook.cl has the kernels."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.components.host import Labels
from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.device_lists import DeviceLists, offset_dtype
from hetero_bfs.devices.opencl.driver import VARIES, OpenCLDevice
from hetero_bfs.devices.opencl.room import check_room
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.search_graph import SearchGraph

NEED = "components need"

_GROUP = 128  # work-items in a work-group, and vertices of a sample
_GROUPS_PER_UNIT = 8
_HEAVY_EDGES = 1 << 13
_TREES, _HOOKS, _COMPRESSED, _EDGES, _COUNTERS = 0, 1, 2, 5, 12
_NEVER = 2**64 - 1
_ON_DEVICE = 4
"""The phase of a record (host.py): all of them, on the device."""


class DeviceComponents:
    """Finds components on an OpenCL device that holds the lists.

    Parameters
    ----------
    graph : SearchGraph
    info : DeviceInfo

    Raises
    ------
    BudgetError
        Lists that the device cannot hold.
    DeviceError
        Failures of its driver.
    """

    _files: ClassVar[list[str]] = [
        "devices/opencl/tiles.cl",
        "algorithms/components/kernels/hook.cl",
    ]
    _options: ClassVar[list[str]] = []

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        self._lists = [graph.graph]
        if graph.graph.directed:
            self._lists.append(graph.graph.transpose)
        self._vertices = n = graph.num_searched
        self._group = info.group_size(_GROUP)
        self._tiles = -(-n // self._group)
        self._offset = offset_dtype(info, graph.graph.num_stored_edges)
        self._check_sizes(info)
        self.device = OpenCLDevice(info, "components")
        self._shared = DeviceLists(self.device)
        self._graph = [self._shared.array(graph.first)]
        self._graph += [buffer for one in self._lists for buffer in self._upload(one)]
        self._label, self._heavy = (self.device.buffer(n, np.uint32) for _ in range(2))
        self._found = self.device.host_array(n, np.uint32)
        self._counters = self.device.buffer(_COUNTERS, np.uint64)
        self._grid = self._group * _GROUPS_PER_UNIT * info.compute_units
        options = [*self._options, f"-DGROUP={self._group}", f"-DHEAVY_EDGES={_HEAVY_EDGES}"]
        options.append(f"-DOFFSET={'uint' if self._offset.itemsize == 4 else 'ulong'}")
        self._bind(self.device.build(options, "", self._files))

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    def _check_sizes(self, info: DeviceInfo) -> None:
        """Raise `BudgetError` if the device has no room."""
        n, edges = self._vertices, [one.num_stored_edges for one in self._lists]
        largest, needed = max(4 * max(edges), 8 * n), 4 * sum(edges) + (8 * len(edges) + 12) * n
        check_room(info, NEED, largest, needed)

    def _upload(self, lists: CSRGraph) -> list[Any]:
        """Return the buffers of lists."""
        return self._shared.lists(lists)

    def _bind(self, program: Any) -> None:
        """Set the arguments of all kernels, which do not keep them."""
        bind, n = self.device.bind, np.uint32(self._vertices)
        label, counters = self._label, self._counters
        edges = np.uint64(sum(one.num_stored_edges for one in self._lists))
        self._hook = bind(program, "hook_first", n, self._graph[0], label, counters)
        self._compress = bind(program, "compress", n, label, counters)
        self._sample = bind(program, "sample", n, edges, label, counters)
        self._bind_links(program)

    def _bind_links(self, program: Any) -> None:
        """Set the arguments of the kernels that read lists."""
        lists = self._graph[1:]
        self._links = [self._bind_on(program, *lists[i : i + 2]) for i in range(0, len(lists), 2)]

    def _bind_on(self, program: Any, *lists: Any) -> tuple[BoundKernel, BoundKernel]:
        """Return `link_lists` and `link_heavy` on some buffers."""
        bind, rest = self.device.bind, (self._heavy, self._label, self._counters)
        n = np.uint32(self._vertices)
        return (
            bind(program, "link_lists", VARIES, n, *lists, *rest),
            bind(program, "link_heavy", VARIES, n, *lists, *rest),
        )

    def prepare(self) -> None:
        """Do nothing: all is compiled."""

    def run(self) -> Labels:
        """Find the components of a non-empty searched range. The next run overwrites them."""
        began = time.perf_counter()
        device, n = self.device, self._vertices
        counters = np.zeros(_COUNTERS, np.uint64)
        counters[_COMPRESSED] = _NEVER
        device.write(self._counters, counters)
        size = min(self._tiles * self._group, self._grid)
        self._hook.launch(size, self._group)
        for rest in (False, True):
            self._compress.launch(size, self._group)
            self._sample.launch(self._group, self._group)
            self._link(rest)
        self._compress.launch(size, self._group)
        device.read(self._found, self._label)
        device.read(counters, self._counters)
        records = [(_ON_DEVICE, n, int(counters[_EDGES]), time.perf_counter() - began)]
        return Labels(self._found, int(counters[_TREES] - counters[_HOOKS]), np.array(records))

    def _link(self, rest: bool) -> None:
        """Queue a pass over the lists of each direction."""
        for way, (link_lists, link_heavy) in enumerate(self._links):
            turn = self._turn(rest, way, self._tiles)
            link_lists.launch(min(self._tiles * self._group, self._grid), self._group, turn)
            link_heavy.launch(self._grid, self._group, turn)

    def _turn(self, rest: bool, way: int, rows: int) -> npt.NDArray[np.uint32]:
        """Return a pass in the kernels' form: kind, number, and rows of tiles."""
        return np.array([rest, len(self._lists) * rest + way, rows, 0], np.uint32)
