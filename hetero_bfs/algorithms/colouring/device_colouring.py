"""Colouring on an OpenCL device; jones_plassmann.cl has the kernels."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hetero_bfs.algorithms.colouring.host_colouring import finish_in_turn, sort_step
from hetero_bfs.algorithms.colouring.undirected_lists import Coloured, Step, UndirectedLists
from hetero_bfs.devices.opencl.driver import VARIES, DeviceInfo, OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.support.memory import format_bytes

_GROUP = 128  # work-items in a work-group
_GROUPS_PER_UNIT = 8
_HEAVY_EDGES = 1 << 10
_FILES = "devices/opencl/tiles.cl", "algorithms/colouring/kernels/jones_plassmann.cl"
_FIRST_ROUNDS, _MOST_ROUNDS = 8, 128  # that are launched without a look at what they did
_PATIENCE = 64  # rounds after which the host may take over
_LEAST_EDGES = 1 << 10
"""Entries of lists that the host reads in the time of a round without work. Where rounds read fewer
on average, the host colours the rest: chains of vertices that wait for each other are long."""


class DeviceColouring:
    """Colours on an OpenCL device, which keeps the lists.

    Parameters
    ----------
    lists : UndirectedLists
    info : DeviceInfo

    Raises
    ------
    DeviceError
        Lists that the device cannot hold, failures of its driver.
    """

    def __init__(self, lists: UndirectedLists, info: DeviceInfo) -> None:
        self._check_sizes(lists, info)
        self.device = OpenCLDevice(info)
        self.lists = lists
        n = lists.num_vertices
        self._narrow = lists.num_stored_edges < 2**31  # so that strides behind the end fit, too
        indptr = np.ascontiguousarray(lists.indptr, np.uint32 if self._narrow else np.uint64)
        self._kept = [indptr, lists.indices]  # a device may use them in place
        self._graph = [self.device.upload(array) for array in self._kept]
        self._words = (lists.num_stored_edges >> 5) + n
        self._rank, self._colour, self._waiting, self._heavy = (
            self.device.buffer(n, np.uint32) for _ in range(4)
        )
        self._queues = [self.device.buffer(n, np.uint32) for _ in range(2)]
        self._taken = self.device.buffer(self._words, np.uint32)
        self._host_sizes = np.zeros(2 * _MOST_ROUNDS + 4, np.uint32)
        self._sizes = self.device.buffer(self._host_sizes.size, np.uint32)
        self._global = _GROUP * _GROUPS_PER_UNIT * info.compute_units
        self._num_heavy = int(np.count_nonzero(lists.degree > _HEAVY_EDGES))
        self.colour = np.empty(n, np.int32)
        self._bind(self._build())
        self._warm_up()

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    @staticmethod
    def _check_sizes(lists: UndirectedLists, info: DeviceInfo) -> None:
        n, edges = lists.num_vertices, lists.num_stored_edges
        largest, needed = max(4 * edges, 8 * n), 4 * edges + edges // 8 + 36 * n
        if largest > info.max_alloc_bytes or needed > info.memory_bytes:
            raise DeviceError(
                f"colouring needs {format_bytes(needed)} on {info.name}, up to "
                f"{format_bytes(largest)} in one piece; {format_bytes(info.memory_bytes)} may be "
                f"used, in pieces of {format_bytes(info.max_alloc_bytes)}"
            )

    def _build(self) -> Any:
        options = [
            f"-DGROUP={_GROUP}",
            f"-DHEAVY_EDGES={_HEAVY_EDGES}",
            f"-DROUNDS={_MOST_ROUNDS}",
            f"-DOFFSET={'uint' if self._narrow else 'ulong'}",
        ]
        return self.device.build(options, "", _FILES)

    def _bind(self, program: Any) -> None:
        """Set the arguments of all kernels; those of rounds for either queue that is read."""
        bind, graph, queues = self.device.bind, self._graph, self._queues
        rank, heavy, sizes, n = self._rank, self._heavy, self._sizes, self.lists.num_vertices
        lists = *graph, rank
        sets = self._taken, self._waiting
        count = np.uint32(n)
        self._start = bind(program, "start", count, np.uint64(self._words), *sets)
        self._count = bind(program, "count_waiting", count, *lists, heavy, self._waiting, sizes)
        self._count_heavy = bind(program, "count_heavy", *lists, heavy, self._waiting, sizes)
        self._collect = bind(
            program, "collect", count, self._colour, self._waiting, queues[0], sizes
        )
        self._colour_queue = [
            bind(
                program, "colour_queue", VARIES, *lists,
                queues[q], queues[1 - q], heavy, self._colour, *sets, sizes,
            )
            for q in range(2)
        ]  # fmt: skip
        self._tell_heavy = [
            bind(
                program, "tell_heavy", VARIES, *lists,
                queues[1 - q], heavy, self._colour, *sets, sizes,
            )
            for q in range(2)
        ]  # fmt: skip

    def _warm_up(self) -> None:
        """Launch all kernels, those of rounds without work: some drivers compile them only then."""
        self._count_all()
        for queue in range(2):
            self._launch_round(1, queue, has_heavy=True)
        self.device.finish()
        finish_in_turn(self.lists, np.zeros(self.lists.num_vertices, np.int32))

    def prepare(self) -> None:
        """Do nothing: a device is ready once it is open."""

    def run(self) -> Coloured:
        """Colour all vertices."""
        steps = [sort_step(self.lists)]
        self._count_all()
        queue, rounds, left = 0, _FIRST_ROUNDS, self.lists.num_vertices
        heavy_left = self._num_heavy
        while left:
            began = time.perf_counter()
            for number in range(rounds):
                self._launch_round(number, queue, heavy_left > 0)
                queue = 1 - queue
            self.device.read(self._host_sizes, self._sizes)
            heavy_left -= int(self._host_sizes[_MOST_ROUNDS + 1 : 2 * _MOST_ROUNDS + 1].sum())
            vertices = int(self._host_sizes[:rounds].sum())
            edges = int(self._host_sizes[-2:].view(np.uint64)[0])
            steps.append(Step("device rounds", vertices, edges, time.perf_counter() - began))
            left -= vertices
            if rounds >= _PATIENCE and edges < rounds * _LEAST_EDGES:
                break
            self._reset_sizes(self._host_sizes[rounds])
            rounds = min(2 * rounds, _MOST_ROUNDS)
        self.device.read(self.colour, self._colour)
        if left:
            steps.append(finish_in_turn(self.lists, self.colour))
        return Coloured(self.colour, steps)

    def _count_all(self) -> None:
        """Count for how many neighbours each vertex waits, and fill the first queue."""
        device, n = self.device, self.lists.num_vertices
        device.write(self._rank, self.lists.rank)
        self._reset_sizes(0)
        self._start.launch(self._size(n), _GROUP)
        self._count.launch(self._size(n), _GROUP)
        if self._num_heavy:
            self._count_heavy.launch(self._global, _GROUP)
        self._collect.launch(self._size(n), _GROUP)

    def _launch_round(self, number: int, queue: int, has_heavy: bool) -> None:
        self._colour_queue[queue].launch(self._global, _GROUP, np.uint32(number))
        if has_heavy:
            self._tell_heavy[queue].launch(self._global, _GROUP, np.uint32(number))

    def _reset_sizes(self, queued: int) -> None:
        self._host_sizes[:] = 0
        self._host_sizes[0] = queued
        self.device.write(self._sizes, self._host_sizes)

    def _size(self, items: int) -> int:
        """Return the work-items for so many items: whole work-groups, at most the grid."""
        return min(-(-items // _GROUP) * _GROUP, self._global)
