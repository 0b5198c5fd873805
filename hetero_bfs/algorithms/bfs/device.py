"""Runs levels of searches on a device: the base class, and a device that holds the whole graph.

The host has its own executor (host.py). streamed.py has the executor of a device through which
edges stream. A search migrates between executors by `receive` and `send`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device_memory import DeviceGraph, DeviceResults, SearchMemory
from hetero_bfs.algorithms.bfs.device_program import LOG_ROWS, SearchProgram
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.kernels import steps
from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.machine import Tuning, default_tuning
from hetero_bfs.devices.opencl.device_run import DeviceRun, both_ways
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import Policy, fixed_policy
from hetero_bfs.scheduling.strategies import Strategy, plain


class DeviceExecutor(DeviceRun):
    """The common part of the executors that search a graph on a device.

    A subclass creates the buffers `parent` and `visited` (the two bitmaps of visited vertices). The
    default tuning depends on the type of the device.
    """

    place: int = schema.DEVICE
    """Number of this device on its platform, starting at 1."""

    ended_at: float | None = None
    """Clock reading when `run_levels` learned that the device was done; None if unknown."""

    parent: Any
    visited: list[Any]

    def __init__(self, device: OpenCLDevice, graph: SearchGraph, tuning: Tuning | None) -> None:
        super().__init__(device, both_ways(graph))
        self.graph = graph
        tuning = (tuning or default_tuning(device.info.type)).fitting(device.info)
        self.tuning = tuning.for_graph(graph.num_searched)
        self.group = self.tuning.group_size
        self.groups = self.tuning.groups_per_unit * device.info.compute_units
        self.unified = device.info.unified_memory
        """Whether the search's arrays are the host's arrays."""
        self.notes: list[str] = []
        """Lines for the user."""

    def clear(self, frontier: Frontier) -> None:
        """Reset the arrays after a search: no vertex is visited, none has a parent."""
        self.acquire()
        self.device.fill(self.parent, 0xFF)
        self.device.fill(self.visited[frontier.visited_index], 0)

    def run_levels(
        self,
        policy: Policy,
        interval: int,
        source: int | None,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
        invalidate: bool = True,
    ) -> bool:
        """Run levels while the policy keeps the search here; return true if it is over.

        The first level's strategy is already chosen. `source` (a new id) is given if the search has
        not started. With `invalidate` no stale parents remain. If the next level is chosen for
        another place, its record has begun. Raises `GridStalledError` if the search must restart.
        """
        raise NotImplementedError

    def run(self, strategy: Strategy, frontier: Frontier) -> tuple[Found, float]:
        """Run one level and advance `frontier`; return the vertices found and the seconds.

        For measurements; stale parents may remain.
        """
        record = np.zeros((1, schema.record_width(1)))
        level = float(frontier.level)
        frontier.state[schema.LEVEL] = frontier.state[schema.CHOSEN] = 0
        policy = self._policy_of(strategy)
        self.run_levels(policy, 1, None, frontier, record, 1, invalidate=False)
        frontier.state[schema.LEVEL] += level
        return Found(frontier.vertices, frontier.edges), float(record[0, schema.SECONDS])

    def _policy_of(self, strategy: Strategy) -> Policy:
        return fixed_policy([0], [strategy.on(self.place)])

    def acquire(self) -> None:
        """Return shared memory, if any, to the device after the host used it."""

    def release(self) -> None:
        """Let the host use the shared memory."""

    def add_host_finds(self, host: CPUExecutor, frontier: Frontier) -> None:
        """Complete the parents here: the host sends a list of its finds, or all that it has."""
        if frontier.found_list >= 0:
            self.add_parents(host.found_list[: frontier.found_list])
            return
        index = frontier.visited_index
        if frontier.place == schema.HOST:
            self.write_visited(host.visited[index], index)
        self.merge_parents(host.parent, index)

    def bind_parents(self, bind: Callable[..., BoundKernel], scratch: Any, room: int) -> None:
        """Bind the kernels that take parents from the host, through `scratch`, uint32 (room,)."""
        self._scratch, self._room = scratch, room
        self._scatter = bind("scatter_parents", VARIES, scratch, self.parent)
        self._merge = [
            bind("merge_parents", VARIES, VARIES, visited, scratch, self.parent)
            for visited in self.visited
        ]

    def add_parents(self, pairs: npt.NDArray[np.uint32]) -> None:
        """Add vertices that the host found and their parents, shape (pairs, 2)."""
        for part in self._sent(pairs, self._room // 2):
            self.launch(self._scatter, len(part), np.uint32(len(part)))

    def merge_parents(self, parent: npt.NDArray[np.uint32], index: int) -> None:
        """Add the parents of all vertices that only the host found, from the host's `parent`.

        Bitmap number `index` has all visited vertices.
        """
        begin = 0
        for part in self._sent(parent, self._room):
            self.launch(self._merge[index], len(part), np.uint32(len(part)), np.uint32(begin))
            begin += len(part)

    def _sent(self, found: npt.NDArray[np.uint32], room: int) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield parts of what the host found, of at most `room` items, while each is in scratch."""
        for begin in range(0, len(found), room):
            part = found[begin : begin + room]
            event = self.device.send(self.device.queue, self._scratch, part)
            yield part
            self.device.finish()
            del event  # PyOpenCL waits for a copy when its event is deleted

    def read_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy bitmap number `index` to the host."""
        self.device.read(visited, self.visited[index])

    def write_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy the host's bitmap to bitmap number `index`."""
        self.device.write(self.visited[index], visited)

    def has_visited(self, vertex: int, index: int) -> bool:
        """Tell whether a vertex (a new id) is set in bitmap number `index`."""
        word = np.empty(1, np.uint32)
        self.device.read(word, self.visited[index], 4 * (vertex // 32))
        return bool(int(word[0]) >> vertex % 32 & 1)

    def read_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents that this device found to the host."""
        self.device.read(parent, self.parent)


class OpenCLExecutor(DeviceExecutor):
    """Runs levels on an OpenCL device.

    On unified memory the arrays of `host` are also the device's. `max_alloc_bytes` limits one part
    of the edge array; the default is the device's own limit. `spare_bytes` of the device's memory
    may be used to restore results. `SearchProgram` describes `sent` and `ranks`.
    """

    def __init__(
        self,
        device: OpenCLDevice,
        graph: SearchGraph,
        host: CPUExecutor,
        max_alloc_bytes: int | None = None,
        tuning: Tuning | None = None,
        sent: Sequence[Any] = (),
        ranks: int = 0,
        spare_bytes: int = 0,
    ) -> None:
        super().__init__(device, graph, tuning)
        self._spare_bytes = spare_bytes
        self.lists = DeviceGraph(self, graph, max_alloc_bytes)
        self.num_parts = len(self.lists.partition.parts)
        """Parts of the edge array."""
        self.memory = SearchMemory(device, host, self.offset_type)
        self.parent, self.visited = self.memory.parent, self.memory.visited
        self._edge_bits = host.edge_bits
        made_for = device, graph, self.tuning, host.edge_bits, self.lists, self.memory
        self._make_program = partial(SearchProgram, *made_for, sent=sent, ranks=ranks)
        self._by_master: dict[Strategy, Policy] = {}
        self._plain: SearchProgram | None = None  # set while `program` is the masked one
        self._masked: tuple[SearchProgram, Any] | None = None  # and the buffer of the mask

    def build_kernels(self) -> None:
        """Compile the kernels for this graph's offsets and parts; drivers cache them on disk."""
        self.program = self._make_program()
        self.groups = self.program.groups
        room = max(self.graph.num_searched, 2)
        self.bind_parents(self.program.bind, self.memory.queue[0], room)

    def receive_mask(self, mask: npt.NDArray[np.uint32]) -> None:
        """Ignore the vertices of a bitmap until `end_mask`.

        The search started on the host, whose bitmap of visited vertices already includes them.
        """
        if self._masked is None:
            buffer = self.device.buffer(mask.size, np.uint32)
            self._masked = self._make_program(mask=buffer), buffer
        self.program.discard_launches()
        masked, buffer = self._masked
        self.device.write(buffer, mask)
        self._plain, self.program = self.program, masked

    def end_mask(self) -> None:
        if self._plain is not None:
            self.program, self._plain = self._plain, None

    @cached_property
    def results(self) -> DeviceResults | None:
        """Restores results on the device; None if the host must do it."""
        if self.unified:
            return None
        try:
            return DeviceResults(self.device, self.graph, self.memory, self._spare_bytes)
        except DeviceError as error:
            self.notes.append(f"the host restores results: {error}")
            return None

    def begin(self, source: int, frontier: Frontier) -> None:
        """Make `source` (a new id) the only visited vertex and the frontier."""
        self.acquire()
        self.program.run(self._policy_of(plain("top-down", "device")), source, 0, 0, frontier)

    def to_queue(self, frontier: Frontier) -> float:
        """Convert a frontier from a bitmap to a queue; return the seconds.

        If the device has a clock, they exclude launch and read-back.
        """
        started = time.perf_counter()
        frontier.state[schema.CHOSEN] = 0
        policy = self._policy_of(plain("top-down", "device"))
        limit = frontier.level + 1
        state = self.program.run(policy, NO_VERTEX, limit, steps.CONVERTS, frontier)
        frontier.state[schema.CHOSEN] = -1
        frontier.became_queue(
            Found(int(state[schema.FRONTIER_VERTICES]), int(state[schema.FRONTIER_EDGES]))
        )
        if state[steps.BEGAN]:
            return 1e-9 * int(state[steps.BEGAN] - state[steps.DECIDED])
        return time.perf_counter() - started

    def launch_nothing(self, frontier: Frontier) -> None:
        """Launch and read back without running a level: the fixed cost of a stay on the device."""
        frontier.state[schema.CHOSEN] = 0
        policy = self._policy_of(plain("top-down", "device"))
        self.program.run(policy, NO_VERTEX, frontier.level, 0, frontier)
        frontier.state[schema.CHOSEN] = -1

    def _policy_of(self, strategy: Strategy) -> Policy:
        if strategy not in self._by_master:
            self._by_master[strategy] = fixed_policy([0], [strategy.on(self.place)])
        self.program.load_policy(self._by_master[strategy], 1, self.place)
        return self._by_master[strategy]

    def receive_policy(self, policy: Policy, interval: int) -> None:
        """Receive the policy of the next searches in advance."""
        self.program.load_policy(policy, interval, self.place)

    def start_early(
        self,
        policy: Policy,
        interval: int,
        source: int,
        chosen: int,
        frontier: Frontier,
        limit: int,
    ) -> None:
        """Launch a search before `run_levels` is called for it, if one launch runs all levels."""
        if self.program.one_launch:
            self.program.load_policy(policy, interval, self.place)
            self.program.start_early(source, chosen, frontier, limit)

    def run_levels(
        self,
        policy: Policy,
        interval: int,
        source: int | None,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
        invalidate: bool = True,
    ) -> bool:
        program = self.program
        self.acquire()
        program.load_policy(policy, interval, self.place)
        started = time.perf_counter()
        first = frontier.level
        limit = min(limit, first + min(records.shape[0] - frontier.row, LOG_ROWS))
        start = NO_VERTEX if source is None else source
        flags = steps.INVALIDATES if invalidate else 0
        state = program.run(policy, start, limit, flags, frontier)
        self.ended_at = time.perf_counter()
        levels = int(state[schema.LEVEL]) - first
        seconds = self.ended_at - started
        rows = program.rows(first, levels)
        leaves = state[steps.STATUS] == steps.LEAVES
        if leaves:  # perhaps after a conversion to a queue, which belongs to the next level
            seconds -= 1e-9 * int(state[steps.BEGAN] - state[steps.DECIDED])
        steps.read_rows(rows, self._edge_bits, policy.top_down, seconds, frontier.state, records)
        if leaves:
            steps.begin_next(frontier.state, state, records)
        return bool(state[steps.STATUS] == steps.ENDED and first + levels < limit)

    def acquire(self) -> None:
        self.memory.acquire()

    def release(self) -> None:
        self.memory.release()

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        self.memory.receive(frontier, with_queue)

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        self.memory.send(frontier, with_queue)
