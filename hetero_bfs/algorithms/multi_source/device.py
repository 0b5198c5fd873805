"""Multi-source searches on an OpenCL device; phases.cl has the kernels.

The device computes the planes. The host reads them and makes rows and sums from them. That
transfers eight bytes per vertex and level, less than the levels would take.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.multi_source.host import NO_LIMIT, HostPlanes
from hetero_bfs.algorithms.multi_source.result import Rows, Sums
from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun, both_ways
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph

Count = IntEnum("Count", "VERTICES EDGES LEFT ALIVE QUEUED", start=0)
"""Counts of a level: vertices found and their edges; edges of vertices that lack a search; bits of
the searches that found a vertex; vertices in the queue."""

_SHORT_LIST = 256  # neighbours that one work-item reads


class LevelKernels(NamedTuple):
    """Kernels that compute a plane from the one before it, bound to these two."""

    clear: BoundKernel
    push: BoundKernel
    settle: BoundKernel
    pull: BoundKernel


class DevicePlanes(DeviceRun):
    """Runs 64 searches at a time on an OpenCL device that holds the adjacency.

    `host` makes rows and sums from the planes. Raises `DeviceError` if the device cannot hold the
    adjacency or its driver fails.
    """

    family = "multi-source searches"
    need = "multi-source searches need"
    files: Sequence[str] = ("devices/opencl/tiles.cl", "algorithms/multi_source/kernels/phases.cl")
    constants = (Count, {"SEARCHES": LANES})
    GROUPS_PER_UNIT = 16

    def __init__(self, graph: SearchGraph, info: DeviceInfo, host: HostPlanes) -> None:
        from hetero_bfs.algorithms.multi_source.kernels.phases import PLANES

        super().__init__(info, both_ways(graph))
        self._host, self._n = host, graph.num_searched
        words, numbers = (self._n, np.uint64), (self._n, np.uint32)
        arrays = self.make_arrays(
            {f"plane {i}": words for i in range(PLANES)}
            | {"seen": words, "queue": numbers, "mask": (self._n, np.uint8)}
            | {"sources": (LANES, np.uint32), "counts": (len(Count), np.uint64)}
        )
        self._planes = [arrays[f"plane {i}"] for i in range(PLANES)]
        self._seen, self._queue, self._mask = (arrays[name] for name in ("seen", "queue", "mask"))
        self._sources, self._counts = arrays["sources"], arrays["counts"]
        self._has_mask = np.uint32(0)
        self._bind(self.build(SHORT_LIST=_SHORT_LIST), self.buffers(0), self.buffers(-1))

    def _bind(self, program: Any, forward: list[Any], backward: list[Any]) -> None:
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
        """Prepare the host for rows and sums; the kernels are compiled already."""
        self._host.prepare()

    def mask(self, mask: npt.NDArray[np.bool_] | None) -> None:
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
        from hetero_bfs.algorithms.multi_source.kernels.phases import PLANES

        limit = NO_LIMIT if depth_limit is None else depth_limit
        counts = self._begin(sources)
        level, current, used, first = 0, 0, 1, 0
        records: list[tuple[float, ...]] = []
        while True:
            if counts[Count.VERTICES] == 0 or level >= limit:
                self._deliver(batch, first, used, rows, sums)
                return np.array(records).reshape(-1, 4)
            if used == PLANES:
                self._deliver(batch, first, used, rows, sums)
                first, used = first + used, 0
            began = time.perf_counter()
            pushes, scanned = self._run_level(current, counts)
            found = counts[Count.VERTICES]
            counts = self.read(self._counts, len(Count), np.uint64)
            level, current = level + 1, (current + 1) % PLANES
            used += bool(counts[Count.VERTICES])
            seconds = time.perf_counter() - began
            records.append((pushes, float(found), float(scanned), seconds))

    def _begin(self, sources: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
        """Start search i at sources[i]; return the counts of the first plane."""
        graph = self._host.graph
        known = np.flatnonzero(sources != NO_VERTEX)
        starts = np.unique(sources[known])
        places = np.zeros(LANES, np.uint32)
        places[: sources.size] = sources
        self.launch(self._start, self._n, self._has_mask)
        self.device.write(self._sources, places)
        active = sum(1 << int(i) for i in known)
        self._seed.launch(1, 1, np.uint64(active))
        if starts.size:
            self.device.write(self._queue, starts)
        counts = np.zeros(len(Count), np.uint64)
        counts[Count.VERTICES] = counts[Count.QUEUED] = starts.size
        counts[Count.EDGES] = graph.degree[starts].sum(dtype=np.int64)
        counts[Count.LEFT] = graph.graph.num_stored_edges
        counts[Count.ALIVE] = active
        return counts

    def _run_level(self, current: int, counts: npt.NDArray[np.uint64]) -> tuple[bool, int]:
        """Queue a level; return whether it is a push, and the edges that it may read."""
        from hetero_bfs.algorithms.multi_source.kernels.loop import PUSH_COST

        kernels = self._levels[current]
        edges, left, active = int(counts[Count.EDGES]), int(counts[Count.LEFT]), counts[Count.ALIVE]
        self.device.write(self._counts, np.zeros(len(Count), np.uint64))
        if edges * PUSH_COST + self._n >= left:
            self.launch(kernels.pull, self._n, active)
            return False, left
        queued = counts[Count.QUEUED]
        self.launch(kernels.clear, self._n)
        self.launch(kernels.push, int(queued), np.uint32(queued))
        self.launch(kernels.settle, self._n, active)
        return True, edges

    def _deliver(self, batch: int, first: int, used: int, rows: Rows | None, sums: Sums) -> None:
        """Read the used planes, and let the host make rows and sums of them."""
        for plane in range(used):
            self.device.read(self._host.planes[plane], self._planes[plane])
        self._host.deliver(batch, first, used, rows, sums)
