"""The OpenCL device of a rank: it runs bottom-up levels with the kernels of a single process.

The host's bitmap of all columns is what ranks complete for each other, so each level on the device
begins and ends there. On unified memory the device works on the host's own arrays. Another device
gets the bitmap before the level, and returns the words of the rank's own vertices. The parents that
it finds stay there until the search ends.
"""

from __future__ import annotations

import time

import numpy as np

from hetero_bfs.algorithms.bfs.executor import run_one_level
from hetero_bfs.algorithms.bfs.opencl_executor import OpenCLExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import (
    ALL_DEVICES,
    OpenCLDevice,
    choose_devices,
    usable_devices,
)
from hetero_bfs.devices.opencl.graph_buffers import bytes_in_memory
from hetero_bfs.distributed.partition import RankGraph
from hetero_bfs.distributed.rank_executor import RankExecutor
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.runtime.opening import trained_tuning
from hetero_bfs.runtime.options import EngineOptions
from hetero_bfs.selection import schema
from hetero_bfs.selection.policy import fixed_policy
from hetero_bfs.selection.strategies import plain
from hetero_bfs.support.memory import format_bytes

_FLOOR_REPEATS = 5


def choose_rank_device(options: EngineOptions, host_rank: int) -> DeviceInfo | None:
    """Return the device of a rank, given its number on its host; None for the host alone.

    The ranks of a host take the devices in turn: those that the options name; for "all" every
    device; by default every device that is not a CPU, since the ranks use the cores themselves.

    Raises
    ------
    DeviceError
        A named device is not there.
    """
    if options.devices == "cpu":
        return None
    if options.device is None or options.device == ALL_DEVICES:
        found = [d for d in usable_devices() if options.device or d.type != "CPU"]
    else:
        found = choose_devices(options.device, options.device.count(",") + 1)
    return found[host_rank % len(found)] if found else None


def open_rank_device(
    options: EngineOptions, host_rank: int, graph: RankGraph, threads: int | None
) -> tuple[RankDevice | None, str | None]:
    """Return a rank's device, and a note if it is left out.

    Raises
    ------
    DeviceError
        A device that the options name cannot be used.
    """
    info = choose_rank_device(options, host_rank)
    if info is None or graph.num_searched == 0:
        return None, None
    try:
        return RankDevice(info, graph, threads), None
    except DeviceError as error:
        if options.device is not None:
            raise
        return None, f"{info.name} is left out: {error}"


class RankDevice:
    """Runs bottom-up levels of a rank, beside its `host`.

    Parameters
    ----------
    info : DeviceInfo
    graph : RankGraph
    threads : int, optional
        Of the host.

    Raises
    ------
    BudgetError
        The rank's part does not fit in the device's memory.
    DeviceError
        The driver refuses the memory, or the compiler fails.
    """

    def __init__(self, info: DeviceInfo, graph: RankGraph, threads: int | None = None) -> None:
        needed = bytes_in_memory(info, graph) + 8 * graph.partition.bitmap_words
        if needed > info.memory_bytes:
            raise BudgetError(
                f"the rank's part needs {format_bytes(needed)} on {info.name}, which has "
                f"{format_bytes(info.memory_bytes)}; start more ranks"
            )
        device = OpenCLDevice(info)
        self.info = info
        self.host = RankExecutor(graph, threads, device.host_array)
        self._graph = graph
        tuning = trained_tuning(info, [])
        self._executor = OpenCLExecutor(device, graph, self.host, tuning=tuning)
        self._executor.build_kernels()
        self._policy = fixed_policy([0], [plain("bottom-up", "device")])
        self._used = False
        self.floor_seconds = self._measure_floor()
        """Seconds of a level without work."""

    def begin(self) -> None:
        """Begin a search: it has not used the device yet."""
        self._used = False

    def pull(self, frontier: Frontier) -> None:
        """Run a bottom-up level, and advance to the next one.

        The bitmap of visited vertices on the host is complete before, and has the own vertices'
        bits afterwards.
        """
        executor, own = self._executor, self._graph.partition.words
        if not (self._used or executor.unified):
            executor.clear(frontier)
        self._used = True
        executor.receive(frontier, with_queue=False)
        level = frontier.copy()
        # A rank without a frontier pulls from those of other ranks.
        level.state[schema.FRONTIER_EDGES] = max(frontier.edges, 1)
        found, _ = run_one_level(executor, self._policy, level)
        state = frontier.state
        schema.advance(state, schema.BITMAP, found.vertices, found.edges)
        state[schema.UNVISITED_LISTED] = -1
        if executor.unified:
            executor.release()
        else:
            now = frontier.visited_index
            words = int(own[self._graph.partition.rank])
            executor.read_visited(self.host.visited[now][:words], now)

    def complete(self, frontier: Frontier) -> None:
        """Copy the parents that the device found to the host."""
        if not self._used:
            return
        host = self.host
        host.note_foreign_parents()
        if not self._executor.unified:
            from hetero_bfs.algorithms.bfs.kernels.restore import merge_parents

            found = self._scratch()
            self._executor.read_parents(found)
            merge_parents(host.parent, found, host.visited[frontier.visited_index])

    def _scratch(self) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        if not hasattr(self, "_found"):
            self._found = self._executor.device.host_array(self.host.parent.size, np.uint32)
        return self._found

    def _measure_floor(self) -> float:
        """Return the seconds of a level of which all vertices but one are visited, the median."""
        host, n = self.host, self._graph.num_searched
        seconds = []
        for _ in range(_FLOOR_REPEATS):
            frontier = Frontier(1, n, self._graph.graph.num_stored_edges)
            frontier.place = schema.HOST
            frontier.state[schema.UNVISITED_VERTICES] = 1
            for bitmap in host.visited:
                bitmap[:] = 0xFFFFFFFF
            started = time.perf_counter()
            self.pull(frontier)
            seconds.append(time.perf_counter() - started)
        self._used = False
        return float(np.median(seconds))
