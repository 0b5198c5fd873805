"""Searches side by side on an OpenCL device; phases.cl has the kernels.

The device computes the planes. The host reads them back, and makes rows and sums from them: that
transfers eight bytes per vertex and level, fewer than the levels would take.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.multi_source.host import NO_LIMIT, HostPlanes
from hetero_bfs.algorithms.multi_source.result import Rows, Sums
from hetero_bfs.devices.cpu.rows import LANES
from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.device_lists import DeviceLists, offset_dtype
from hetero_bfs.devices.opencl.driver import VARIES, OpenCLDevice
from hetero_bfs.devices.opencl.room import check_room
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph

_GROUP = 128
_GROUPS_PER_UNIT = 16
_SHORT_LIST = 256  # edges that one work-item reads
_FILES = ("devices/opencl/tiles.cl", "algorithms/multi_source/kernels/phases.cl")
_VERTICES, _EDGES, _LEFT, _ALIVE, _QUEUED, _NUM_COUNTS = range(6)


class LevelKernels(NamedTuple):
    """Kernels that compute a plane from the one before it, with the arguments for these two set."""

    clear: BoundKernel
    push: BoundKernel
    settle: BoundKernel
    pull: BoundKernel


class DevicePlanes:
    """Runs 64 searches at a time on an OpenCL device that holds the lists.

    Parameters
    ----------
    graph : SearchGraph
    info : DeviceInfo
    host : HostPlanes
        Makes rows and sums.

    Raises
    ------
    DeviceError
        Lists that the device cannot hold, failures of its driver.
    """

    def __init__(self, graph: SearchGraph, info: DeviceInfo, host: HostPlanes) -> None:
        from hetero_bfs.algorithms.multi_source.kernels.phases import PLANES

        lists = [graph.graph, graph.graph.transpose] if graph.graph.directed else [graph.graph]
        n = graph.num_searched
        self._check_sizes(info, n, [one.num_stored_edges for one in lists], PLANES)
        self.device, self._host, self._n = OpenCLDevice(info, "searches side by side"), host, n
        self._shared = DeviceLists(self.device)
        buffers = [self._shared.lists(one) for one in lists]
        make = self.device.buffer
        self._planes = [make(n, np.uint64) for _ in range(PLANES)]
        self._seen, self._queue = make(n, np.uint64), make(n, np.uint32)
        self._mask, self._sources = make(n, np.uint8), make(LANES, np.uint32)
        self._counts = make(_NUM_COUNTS, np.uint64)
        self._has_mask = np.uint32(0)
        self._group = info.group_size(_GROUP)
        most = _GROUPS_PER_UNIT * info.compute_units
        self._size = self._group * min(-(-n // self._group), most)
        options = [f"-DGROUP={self._group}", f"-DSHORT_LIST={_SHORT_LIST}"]
        narrow = offset_dtype(info, graph.graph.num_stored_edges) == np.uint32
        options.append(f"-DOFFSET={'uint' if narrow else 'ulong'}")
        program = self.device.build(options, "", _FILES)
        self._bind(program, buffers[0], buffers[-1])

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    @staticmethod
    def _check_sizes(info: DeviceInfo, n: int, edges: list[int], planes: int) -> None:
        largest = max(4 * max(edges), 8 * n)
        needed = 4 * sum(edges) + (8 * len(edges) + 8 * planes + 13) * n
        check_room(info, "searches side by side need", largest, needed)

    def _bind(self, program: Any, forward: list[Any], backward: list[Any]) -> None:
        """Set the arguments of all kernels, which do not keep them."""
        bind, n, first = self.device.bind, np.uint32(self._n), self._planes[0]
        self._start = bind(program, "start", n, VARIES, self._mask, self._seen, first)
        self._seed = bind(program, "seed", VARIES, self._sources, self._seen, first)
        self._levels = []
        for frontier, found in zip(self._planes, self._planes[1:] + self._planes[:1], strict=True):
            taken = [
                *[n, VARIES, forward[0], backward[0], found, self._seen, self._counts],
                self._queue,
            ]
            level = LevelKernels(
                bind(program, "clear_plane", n, found),
                bind(program, "push", VARIES, self._queue, *forward, frontier, found),
                bind(program, "settle", *taken),
                bind(program, "pull", *taken, backward[1], frontier),
            )
            self._levels.append(level)

    def prepare(self) -> None:
        """Prepare the host for rows and sums; the kernels are compiled."""
        self._host.prepare()

    def mask(self, mask: npt.NDArray[np.bool_] | None) -> None:
        """Ignore these vertices, by new ids, until the next call; None for none."""
        self._has_mask = np.uint32(mask is not None)
        if mask is not None:
            self.device.write(self._mask, mask.astype(np.uint8))

    def run(
        self,
        batch: int,
        sources: npt.NDArray[np.uint32],
        depth_limit: int | None,
        rows: Rows | None,
        sums: Sums,
    ) -> npt.NDArray[np.float64]:
        """Run a batch of at most 64 searches; see `HostPlanes.run`."""
        from hetero_bfs.algorithms.multi_source.kernels.phases import PLANES

        limit = NO_LIMIT if depth_limit is None else depth_limit
        counts = self._begin(sources)
        level, current, used, first = 0, 0, 1, 0
        records: list[tuple[float, ...]] = []
        while True:
            if counts[_VERTICES] == 0 or level >= limit:
                self._deliver(batch, first, used, rows, sums)
                return np.array(records).reshape(-1, 4)
            if used == PLANES:
                self._deliver(batch, first, used, rows, sums)
                first, used = first + used, 0
            began = time.perf_counter()
            pushes, scanned = self._run_level(current, counts)
            found = counts[_VERTICES]
            counts = self._read_counts()
            level, current = level + 1, (current + 1) % PLANES
            used += bool(counts[_VERTICES])
            seconds = time.perf_counter() - began
            records.append((pushes, float(found), float(scanned), seconds))

    def _begin(self, sources: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
        """Let search i have reached only sources[i]; return the counts of the first plane."""
        graph = self._host.graph
        known = np.flatnonzero(sources != NO_VERTEX)
        starts = np.unique(sources[known])
        places = np.zeros(LANES, np.uint32)
        places[: sources.size] = sources
        self._start.launch(self._size, self._group, self._has_mask)
        self.device.write(self._sources, places)
        active = sum(1 << int(i) for i in known)
        self._seed.launch(1, 1, np.uint64(active))
        if starts.size:
            self.device.write(self._queue, starts)
        counts = np.zeros(_NUM_COUNTS, np.uint64)
        counts[_VERTICES] = counts[_QUEUED] = starts.size
        counts[_EDGES] = graph.degree[starts].sum(dtype=np.int64)
        counts[_LEFT] = graph.graph.num_stored_edges
        counts[_ALIVE] = active
        return counts

    def _run_level(self, current: int, counts: npt.NDArray[np.uint64]) -> tuple[bool, int]:
        """Queue a level; return whether it is a push, and the edges of the lists it goes along."""
        from hetero_bfs.algorithms.multi_source.kernels.loop import PUSH_COST

        kernels = self._levels[current]
        edges, left, active = int(counts[_EDGES]), int(counts[_LEFT]), counts[_ALIVE]
        self.device.write(self._counts, np.zeros(_NUM_COUNTS, np.uint64))
        if edges * PUSH_COST + self._n >= left:
            kernels.pull.launch(self._size, self._group, active)
            return False, left
        queued = np.uint32(counts[_QUEUED])
        kernels.clear.launch(self._size, self._group)
        groups = min(-(-int(queued) // self._group) * self._group, self._size)
        kernels.push.launch(groups, self._group, queued)
        kernels.settle.launch(self._size, self._group, active)
        return True, edges

    def _read_counts(self) -> npt.NDArray[np.uint64]:
        counts = np.empty(_NUM_COUNTS, np.uint64)
        self.device.read(counts, self._counts)
        return counts

    def _deliver(self, batch: int, first: int, used: int, rows: Rows | None, sums: Sums) -> None:
        """Read the planes that are used, and have the host make rows and sums of them."""
        for plane in range(used):
            self.device.read(self._host.planes[plane], self._planes[plane])
        self._host.deliver(batch, first, used, rows, sums)
