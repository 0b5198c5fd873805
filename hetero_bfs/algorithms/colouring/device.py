"""Colouring on an OpenCL device; jones_plassmann.cl has the kernels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hetero_bfs.algorithms.colouring.host import finish_in_turn, sort_step
from hetero_bfs.algorithms.colouring.lists import Coloured, Step, UndirectedLists
from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.device_lists import DeviceLists, offset_dtype
from hetero_bfs.devices.opencl.driver import VARIES, OpenCLDevice
from hetero_bfs.devices.opencl.room import check_room

NEED = "colouring needs"

_GROUP = 128  # work-items in a work-group
_GROUPS_PER_UNIT = 8
_HEAVY_EDGES = 1 << 10
_FILES = "devices/opencl/tiles.cl", "algorithms/colouring/kernels/jones_plassmann.cl"
_FIRST_ROUNDS, _MOST_ROUNDS = 8, 128  # rounds launched before the host reads the result
_PATIENCE = 64  # rounds after which the host may take over
_LEAST_EDGES = 1 << 10
"""Entries of lists that the host reads in the time of a round without work. If rounds read fewer on
average, the host colours the rest: chains of waiting vertices are long."""


class _Kernels(NamedTuple):
    """Kernels that read lists in some buffers; those of rounds, for either queue that is read."""

    count_waiting: BoundKernel
    count_heavy: BoundKernel
    colour_queue: list[BoundKernel]
    tell_heavy: list[BoundKernel]


class DeviceColouring:
    """Colours on an OpenCL device that holds the lists.

    Parameters
    ----------
    lists : UndirectedLists
    info : DeviceInfo

    Raises
    ------
    BudgetError
        Lists that the device cannot hold.
    DeviceError
        Failures of its driver.
    """

    _options: ClassVar[list[str]] = []

    def __init__(self, lists: UndirectedLists, info: DeviceInfo) -> None:
        self.lists = lists
        n = lists.num_vertices
        self._offset = offset_dtype(info, lists.num_stored_edges)
        self._words = (lists.num_stored_edges >> 5) + n
        self._host_sizes = np.zeros(2 * _MOST_ROUNDS + 4, np.uint32)
        self._check_sizes(info)
        self.device = OpenCLDevice(info, "colouring")
        self._shared = DeviceLists(self.device)
        self._colour, self._waiting, self._heavy = (
            self.device.buffer(n, np.uint32) for _ in range(3)
        )
        self._queues = [self.device.buffer(n, np.uint32) for _ in range(2)]
        self._taken = self.device.buffer(self._words, np.uint32)
        self._sizes = self.device.buffer(self._host_sizes.size, np.uint32)
        self._group = info.group_size(_GROUP)
        self._global = self._group * _GROUPS_PER_UNIT * info.compute_units
        self._num_heavy = int(np.count_nonzero(lists.degree > _HEAVY_EDGES))
        self.colour = np.empty(n, np.int32)
        self._bind(self._build())
        finish_in_turn(lists, np.zeros(n, np.int32))  # it compiles

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    def _check_sizes(self, info: DeviceInfo) -> None:
        """Raise `BudgetError` if the device has no room."""
        n, edges = self.lists.num_vertices, self.lists.num_stored_edges
        largest, needed = max(4 * edges, 8 * n), 4 * edges + edges // 8 + 36 * n
        check_room(info, NEED, largest, needed)

    def _build(self) -> Any:
        options = [
            *self._options,
            f"-DGROUP={self._group}",
            f"-DHEAVY_EDGES={_HEAVY_EDGES}",
            f"-DROUNDS={_MOST_ROUNDS}",
            f"-DOFFSET={'uint' if self._offset.itemsize == 4 else 'ulong'}",
        ]
        return self.device.build(options, "", _FILES)

    def _bind(self, program: Any) -> None:
        """Set the arguments of all kernels."""
        bind, sets = self.device.bind, (self._taken, self._waiting)
        n, words = np.uint32(self.lists.num_vertices), np.uint64(self._words)
        self._start = bind(program, "start", n, words, *sets, self._colour)
        self._collect = bind(
            program, "collect", VARIES, self._waiting, self._queues[0], self._sizes
        )
        self._bind_lists(program)

    def _bind_lists(self, program: Any) -> None:
        """Set the arguments of the kernels that read lists, and launch them without work.

        Some drivers compile them only then.
        """
        lists, shared = self.lists, self._shared
        self._rank = self.device.buffer(lists.num_vertices, np.uint32)
        graph = shared.offsets(lists.indptr), shared.array(lists.indices)
        self._kernels = self._bind_on(program, *graph, self._rank)
        self._count_range(self._kernels, 0, 0)
        for queue in range(2):
            self._launch_round(self._kernels, 0, queue, has_heavy=True)
        self.device.finish()

    def _bind_on(self, program: Any, *lists: Any) -> _Kernels:
        """Return the kernels that read lists in some buffers, the arguments LISTS."""
        bind, queues, heavy, sizes = self.device.bind, self._queues, self._heavy, self._sizes
        n = np.uint32(self.lists.num_vertices)
        rest = self._colour, self._taken, self._waiting, sizes
        return _Kernels(
            bind(program, "count_waiting", VARIES, *lists, heavy, self._waiting, sizes),
            bind(program, "count_heavy", n, *lists, heavy, self._waiting, sizes),
            [
                bind(program, "colour_queue", VARIES, *lists, *pair, heavy, *rest)
                for pair in (queues, queues[::-1])
            ],
            [
                bind(program, "tell_heavy", VARIES, n, *lists, following, heavy, *rest)
                for following in queues[::-1]
            ],
        )

    def prepare(self) -> None:
        """Do nothing: a device is ready once it is open."""

    def run(self) -> Coloured:
        """Colour all vertices."""
        steps, n = [sort_step(self.lists)], self.lists.num_vertices
        self.device.write(self._rank, self.lists.rank)
        self._start.launch(self._size(n), self._group)
        self._count_range(self._kernels, 0, n)
        left = self._run_rounds(self._kernels, n, self._num_heavy, steps)
        self.device.read(self.colour, self._colour)
        if left:
            steps.append(finish_in_turn(self.lists, self.colour))
        return Coloured(self.colour, steps)

    def _count_range(
        self, kernels: _Kernels, begin: int, end: int, *skipped: Any, after: Sequence[Any] = ()
    ) -> Any:
        """Count for how many neighbours each vertex of a range waits, and fill the first queue.

        Return the last kernel's event. `skipped` is for lists of which only a part is present.
        """
        size, between = self._size(end - begin), np.array([begin, end], np.uint32)
        self._reset_sizes(0)
        kernels.count_waiting.launch(size, self._group, between, *skipped, after=after)
        if self._num_heavy:
            kernels.count_heavy.launch(self._global, self._group, *skipped)
        return self._collect.launch(size, self._group, between)

    def _run_rounds(
        self, kernels: _Kernels, left: int, heavy_left: int, steps: list[Step], *skipped: Any
    ) -> int:
        """Colour so many vertices, some of them with long lists.

        Return how many are left uncoloured, because chains of waiting vertices are long.
        """
        queue, rounds = 0, _FIRST_ROUNDS
        while left:
            began = time.perf_counter()
            for number in range(rounds):
                self._launch_round(kernels, number, queue, heavy_left > 0, *skipped)
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
        return left

    def _launch_round(
        self, kernels: _Kernels, number: int, queue: int, has_heavy: bool, *skipped: Any
    ) -> None:
        rounds = np.uint32(number), *skipped
        kernels.colour_queue[queue].launch(self._global, self._group, *rounds)
        if has_heavy:
            kernels.tell_heavy[queue].launch(self._global, self._group, *rounds)

    def _reset_sizes(self, queued: int) -> None:
        self._host_sizes[:] = 0
        self._host_sizes[0] = queued
        self.device.write(self._sizes, self._host_sizes)

    def _size(self, items: int) -> int:
        """Return the work-items for so many items: whole work-groups, at most the grid."""
        return min(max(-(-items // self._group), 1) * self._group, self._global)
