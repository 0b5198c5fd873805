"""Connected components on an OpenCL device; kernels.cl has the kernels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.components.host import Labels
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun, both_ways
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.devices.opencl.streamed_lists import StreamedRun
from hetero_bfs.graph.search_graph import SearchGraph

Counter = IntEnum("Counter", "TREES HOOKS COMPRESSED LARGEST ROOTS_FIRST EDGES HEAVY", start=0)
"""Counters of a run.

TREES is the number of trees at first. HOOKS counts trees removed by linking, and COMPRESSED has
its value at the last compression. LARGEST is the root of the largest component. ROOTS_FIRST is 1 if
roots link before the rest. EDGES counts edges scanned. HEAVY and the counters after it have the
length of the list of heavy vertices, one for each pass over the adjacency.
"""

_COUNTERS = Counter.HEAVY + 4
_HEAVY_EDGES = 1 << 13
_NEVER = 2**64 - 1
_ON_DEVICE = 4
"""The phase of a record (host.py): all phases, on the device."""


class DeviceComponents(DeviceRun):
    """Finds components on an OpenCL device that holds the adjacency."""

    family = "components"
    need = "components need"
    files: Sequence[str] = ("devices/opencl/tiles.cl", "algorithms/components/kernels.cl")
    constants = (Counter,)

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        super().__init__(info, both_ways(graph))
        self._vertices = n = graph.num_searched
        sizes = {
            "heavy": (n, np.uint32),
            "label": (n, np.uint32),
            "counters": (_COUNTERS, np.uint64),
        }
        self._arrays = self.make_arrays(sizes, graph.first)
        self._found = self.device.host_array(n, np.uint32)
        first = self.read_only.array(graph.first)
        self._program = self.build(HEAVY_EDGES=_HEAVY_EDGES)
        bind, (_, *arrays) = self.device.bind, self._arrays.values()
        edges = np.uint64(sum(way.arrays[0].size for way in self.ways))
        self._hook = bind(self._program, "hook_first", np.uint32(n), first, *arrays)
        self._compress = bind(self._program, "compress", np.uint32(n), *arrays)
        self._sample = bind(self._program, "sample", np.uint32(n), edges, *arrays)
        self._bind_links()

    def _bind_links(self) -> None:
        self._links = [self._bind_on(*self.buffers(way)) for way in range(len(self.ways))]

    def _bind_on(self, *lists: Any) -> tuple[BoundKernel, BoundKernel]:
        arguments = [VARIES, np.uint32(self._vertices), *lists, *self._arrays.values()]
        bind, program = self.device.bind, self._program
        return bind(program, "link_lists", *arguments), bind(program, "link_heavy", *arguments)

    def run(self) -> Labels:
        began = time.perf_counter()
        n, label, buffer = self._vertices, self._arrays["label"], self._arrays["counters"]
        counters = np.zeros(_COUNTERS, np.uint64)
        counters[Counter.COMPRESSED] = _NEVER
        self.device.write(buffer, counters)
        self.launch(self._hook, n)
        for rest in (False, True):
            self.launch(self._compress, n)
            self.launch(self._sample, 1)
            self._link(rest)
        self.launch(self._compress, n)
        self.device.read(self._found, label)
        self.device.read(counters, buffer)
        edges, trees = int(counters[Counter.EDGES]), counters[Counter.TREES]
        records = [(_ON_DEVICE, n, edges, time.perf_counter() - began)]
        return Labels(self._found, int(trees - counters[Counter.HOOKS]), np.array(records))

    def _link(self, rest: bool) -> None:
        for way, (link_lists, link_heavy) in enumerate(self._links):
            one_pass = self._pass(rest, way, -(-self._vertices // self.group))
            self.launch(link_lists, self._vertices, one_pass)
            self.launch_all(link_heavy, one_pass)

    def _pass(self, rest: bool, way: int, rows: int) -> npt.NDArray[np.uint32]:
        """Return a pass in the kernels' form: kind, number, and rows of tiles."""
        return np.array([rest, len(self.ways) * rest + way, rows, 0], np.uint32)


class StreamedComponents(StreamedRun, DeviceComponents):
    """Like `DeviceComponents`; the device has the vertices' arrays and some tiles of the adjacency.

    Most neighbour lists are never read. Before a pass, the device marks the tiles that the pass
    reads, and the host sends those that are not resident.
    """

    def _bind_links(self) -> None:
        n, (_, *arrays) = np.uint32(self._vertices), self._arrays.values()
        self.note_long_lists(_HEAVY_EDGES)
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
        for way, choose in enumerate(self._choose):
            self.launch(choose, self._vertices, self._pass(rest, way, self.marks.size - 1))
            one_pass = partial(self._pass, rest, way)
            self.launch_blocks(way, self.marked(), one_pass, self._end_heavy)
