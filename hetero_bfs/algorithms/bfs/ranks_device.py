"""The OpenCL device of a rank: it runs levels with the kernels of a single process.

A rank's part of a search starts here or on the host, and may migrate. Its bitmap of all columns is
in the same place; the ranks complete it for each other before each bottom-up level. In a top-down
level only the messages to and from other ranks pass through the host. On unified memory the device
works on the host's own arrays.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import within_limits
from hetero_bfs.algorithms.bfs.device import OpenCLExecutor
from hetero_bfs.algorithms.bfs.device_memory import bytes_in_memory
from hetero_bfs.algorithms.bfs.host import unpack_counter
from hetero_bfs.algorithms.bfs.platform import trained_tuning
from hetero_bfs.algorithms.bfs.query import Seeds
from hetero_bfs.algorithms.bfs.ranks_host import RankExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.devices.machine import DeviceInfo, Tuning
from hetero_bfs.devices.opencl.driver import ALL_DEVICES, choose_devices, usable_devices
from hetero_bfs.devices.opencl.opencl_device import VARIES, OpenCLDevice
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Counts
from hetero_bfs.ranks.exchange import Words
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import fixed_policy
from hetero_bfs.scheduling.strategies import DIRECTIONS, Direction, plain
from hetero_bfs.support.memory import aligned_copy, format_bytes

_FLOOR_REPEATS = 5
_LEAST_ROOM_BITS = 3


def choose_rank_device(options: EngineOptions, host_rank: int) -> DeviceInfo | None:
    """Return the device of a rank, given its number on its host; None if it only uses the host.

    The ranks of a host take the devices round-robin: the devices that the options name; for "all"
    every device; by default every device except CPUs, since the ranks use the cores themselves.

    Raises `DeviceError` if a named device is missing.
    """
    if options.device is None or options.device == ALL_DEVICES:
        found = [d for d in usable_devices() if options.device or d.type != "CPU"]
    else:
        found = choose_devices(options.device, options.device.count(",") + 1)
    return found[host_rank % len(found)] if found else None


def open_rank_device(
    options: EngineOptions, host_rank: int, graph: RankGraph, threads: int | None
) -> tuple[RankDevice | None, str | None]:
    """Return a rank's device, and a note if the device is not used.

    Raises `DeviceError` if a device that the options name cannot be used.
    """
    info = choose_rank_device(options, host_rank)
    if info is None or graph.num_searched == 0:
        return None, None
    try:
        info = within_limits(info, options)
        return RankDevice(info, graph, threads, options.tuning), None
    except DeviceError as error:
        if options.device is not None:
            raise
        return None, f"{info.name} is left out: {error}"


class RankDevice:
    """Runs levels of a rank on its device, with the methods of `RankExecutor`.

    `host` is the rank's executor on the host, with the given `threads`. The default tuning is that
    of the speed model.

    Raises `BudgetError` if the rank's part does not fit in the device's memory. Raises
    `DeviceError` if the driver refuses the memory, or the compiler fails.
    """

    def __init__(
        self,
        info: DeviceInfo,
        graph: RankGraph,
        threads: int | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        part = graph.partition
        needed = bytes_in_memory(info, graph) + 8 * part.bitmap_words + 8 * part.num_columns
        if needed > info.memory_bytes:
            raise BudgetError(
                f"the rank's part needs {format_bytes(needed)} on {info.name}, which has "
                f"{format_bytes(info.memory_bytes)}; start more ranks"
            )
        device = self.device = OpenCLDevice(info, "searches")
        self.info = info
        self.host = RankExecutor(graph, threads, device.host_array)
        self.sent = self.host.sent
        self._graph, self._partition = graph, part
        self._words = device.buffer(part.num_columns, np.uint64)
        room = 1 << max(_LEAST_ROOM_BITS, (part.ranks - 1).bit_length())  # for fewer programs
        self._counts = device.buffer(room, np.uint32)
        self._counted = device.host_array(part.ranks, np.uint32)
        first = part.first_column.astype(np.uint32)
        sent = [device.upload(aligned_copy(each)) for each in (part.owner_of_line, first)]
        sent += [self._words, self._counts]
        tuning = tuning or trained_tuning(info, [])
        self._executor = OpenCLExecutor(
            device, graph, self.host, tuning=tuning, sent=sent, ranks=room
        )
        self._executor.build_kernels()
        self._memory, self._unified = self._executor.memory, self._executor.unified
        self._records = np.zeros((1, schema.record_width(len(DIRECTIONS))))
        self._counter = device.buffer(1, np.uint64)
        self._added = device.host_array(1, np.uint64)
        memory, degree = self._memory, self._executor.lists.degree
        self._receivers = [
            [
                self._executor.program.bind(
                    "receive_words", VARIES, VARIES, VARIES, self._words, degree, visited,
                    memory.parent, queue, offsets, self._counter,
                )
                for queue, offsets in zip(memory.queue, memory.offsets, strict=True)
            ]
            for visited in memory.visited
        ]  # fmt: skip
        self._policy = fixed_policy([0], [plain(direction, "device") for direction in DIRECTIONS])
        self._copies: list[Any] = []  # events; without them pyopencl would wait for the copies
        self._used = self._is_complete_here = False
        self.floor_seconds, self.move_seconds = self._measure()
        """Seconds of a push and a pull without work, float64 (2,), and of a move to the device."""

    def clear(self) -> None:
        """Reset the arrays for a search; the host does not wait."""
        self._used = False
        if self._unified:
            self._executor.release()
        else:
            self.device.fill(self._memory.parent, 0xFF)
            for bitmap in self._memory.visited:
                self.device.fill(bitmap, 0)

    def start(self, seeds: Seeds) -> Frontier:
        """Start a search here, after `clear`. The host writes several sources, and a mask."""
        own, graph = seeds.sources, self._graph
        if self._unified or own.size > 1 or seeds.mask is not None:
            frontier = self.host.start(seeds, lists_found=True)
            self.enter(frontier, "top-down")
            return frontier
        n, m = graph.num_searched, graph.graph.num_stored_edges
        frontier = Frontier(int(graph.degree[own].sum()), n, m)
        frontier.vertices, frontier.state[schema.UNVISITED_VERTICES] = own.size, n - own.size
        frontier.place, frontier.found_list = schema.DEVICE, 0  # the host finds nothing
        self._used = True
        if own.size:
            self._executor.receive_policy(self._policy, 1)
            self._executor.program.run(self._policy, int(own[0]), 0, 0, frontier)
        return frontier

    def receive_mask(self, mask: npt.NDArray[np.uint32]) -> None:
        """Ignore the vertices of a bitmap of all columns until `end_mask`."""
        self._executor.receive_mask(mask)

    def end_mask(self) -> None:
        self._executor.end_mask()

    def has_visited(self, vertex: int, index: int) -> bool:
        self._executor.acquire()
        return self._executor.has_visited(vertex, index)

    def enter(self, frontier: Frontier, direction: Direction) -> None:
        with_queue = direction == "top-down"
        if with_queue and not frontier.has_queue:
            self.host.to_queue(frontier)
        if with_queue or self._unified:
            self._executor.receive(frontier, with_queue)
        else:  # the other ranks' parts of the bitmap arrive before the level
            index, own = frontier.visited_index, int(self._partition.words[self._partition.rank])
            self.device.write(self._memory.visited[index], self.host.visited[index][:own])
        frontier.state[schema.UNVISITED_LISTED] = -1
        frontier.place = schema.DEVICE
        self._used = True

    def leave(self, frontier: Frontier, direction: Direction) -> None:
        with_queue = direction == "top-down"
        if with_queue and not frontier.has_queue:
            self._executor.to_queue(frontier)
        self._executor.send(frontier, with_queue)
        if not self._unified:
            self.host.visited[1 - frontier.visited_index][:] = 0
        frontier.found_list = -1
        frontier.place = schema.HOST

    def push(self, frontier: Frontier, counts: Counts) -> tuple[int, int]:
        counts[:] = 0
        if frontier.edges == 0:
            return 0, 0
        device = self.device
        device.fill(self._counts, 0)
        level = frontier.copy()
        # A rank without unvisited vertices may still find other ranks' vertices.
        level.state[schema.UNVISITED_VERTICES] = max(level.state[schema.UNVISITED_VERTICES], 1)
        self._run(level, "top-down")
        device.read(self._counted, self._counts)
        counts[:] = self._counted
        return level.vertices, level.edges

    def copy_words(self, rank: int, into: Words) -> None:
        self.device.read(into, self._words, 8 * int(self._partition.first_column[rank]))

    def fill_sent(self, ranks: Iterable[int], counts: Counts) -> None:
        for rank in ranks:
            first = int(self._partition.first_column[rank])
            self.copy_words(rank, self.sent[first : first + int(counts[rank])])

    def receive(
        self, frontier: Frontier, sent: list[tuple[int, Words]], found: tuple[int, int]
    ) -> None:
        in_all = np.array(found)
        if sent:
            device, bits = self.device, self.host.edge_bits
            receive = self._receivers[frontier.visited_index][1 - frontier.queue_index]
            self._executor.acquire()
            device.fill(self._counter, 0)
            before = np.uint64(found[0] << bits | found[1])
            for rank, words in sent:
                device.write(self._words, words)
                first, size = np.uint32(self._partition.first_column[rank]), words.size
                self._executor.launch(receive, size, np.uint32(size), first, before)
            device.read(self._added, self._counter)
            added = unpack_counter(int(self._added[0]), bits)
            in_all += added.vertices, added.edges
        schema.advance(frontier.state, schema.QUEUE, *in_all.tolist())

    def pull(self, frontier: Frontier) -> None:
        state = frontier.state
        if state[schema.UNVISITED_VERTICES] == 0:  # copies may still run, but nothing reads them
            schema.advance(state, schema.QUEUE, 0, 0)
            return
        level = frontier.copy()
        # A rank without a frontier pulls from the frontiers of other ranks.
        level.state[schema.FRONTIER_EDGES] = max(frontier.edges, 1)
        self._run(level, "bottom-up")
        schema.advance(state, schema.BITMAP, level.vertices, level.edges)

    def _run(self, frontier: Frontier, direction: Direction) -> None:
        frontier.state[schema.LEVEL] = 0  # there is only one row of records
        frontier.state[schema.CHOSEN] = DIRECTIONS.index(direction)
        self._executor.run_levels(
            self._policy, 1, None, frontier, self._records, 1, invalidate=False
        )

    def copy_others(self, source: int, target: int) -> None:
        part = self._partition
        own = int(part.words[part.rank])
        if self._unified:
            self._executor.release()
            self.host.copy_others(source, target)
        elif own < part.bitmap_words:
            self.device.copy(self._memory.visited[target], self._memory.visited[source], 4 * own)

    def give(self, index: int, bits: npt.NDArray[np.uint32]) -> None:
        if self._unified:
            self._executor.release()
            self.host.give(index, bits)
        elif bits.size:
            self._executor.read_visited(bits, index)
        self._copies.clear()  # the copies of the last exchange are done

    def take(self, index: int, first: int, bits: npt.NDArray[np.uint32]) -> None:
        if self._unified:
            self.host.take(index, first, bits)
        else:
            device, bitmap = self.device, self._memory.visited[index]
            self._copies.append(device.send(device.queue, bitmap, bits, 4 * first))

    def complete(self, frontier: Frontier) -> None:
        """Make the parents complete in one memory."""
        host, executor = self.host, self._executor
        self._is_complete_here = self._used and not self._unified
        if self._is_complete_here:
            executor.add_host_finds(host, frontier)
            host.note_finds(frontier)
            return
        if self._used:
            executor.release()
            host.note_foreign_parents()
        host.invalidate_stale_parents(frontier)

    def gather(self) -> None:
        """Copy the parents to the host, unless they are complete there."""
        if self._is_complete_here:
            self.host.note_foreign_parents()
            self._executor.read_parents(self.host.parent)

    def _measure(self) -> tuple[npt.NDArray[np.float64], float]:
        """Return the median seconds of levels without work, float64 (2,), and of a move.

        All vertices are visited. The frontier is the last vertex with edges, which has the fewest.
        """
        host, graph = self.host, self._graph
        last = int(np.flatnonzero(graph.degree)[-1]) if graph.degree.any() else 0
        counts, nowhere = np.zeros(self._partition.ranks, np.int64), Seeds(np.empty(0, np.uint32))
        seconds = []
        self._executor.release()
        for _ in range(_FLOOR_REPEATS):
            host.start(nowhere)
            frontier = Frontier(
                int(graph.degree[last]), graph.num_searched, graph.graph.num_stored_edges
            )
            frontier.place = schema.HOST
            frontier.state[schema.UNVISITED_VERTICES] = 1
            for bitmap in host.visited:
                bitmap[:] = 0xFFFFFFFF
            host.queue[0][0], host.offsets[0][0] = last, 0
            clock = [time.perf_counter()]
            self.enter(frontier, "top-down")
            self.device.finish()
            clock.append(time.perf_counter())
            self.receive(frontier, [], self.push(frontier, counts))
            clock.append(time.perf_counter())
            self.pull(frontier)
            clock.append(time.perf_counter())
            self._executor.release()
            seconds.append(np.diff(clock))
        move, push, pull = np.median(seconds, axis=0)
        return np.array([push, pull]), float(move)
