"""Colouring on an OpenCL device; jones_plassmann.cl has the kernels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hetero_bfs.algorithms.colouring.host import finish_serially, sort_step
from hetero_bfs.algorithms.colouring.lists import Coloured, Step, UndirectedLists
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun, Entries
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel

_HEAVY_EDGES = 1 << 10
_FIRST_ROUNDS, _MOST_ROUNDS = 8, 128  # rounds launched before the host reads their result
_PATIENCE = 64  # the host may take over after a batch of this number of rounds
_LEAST_EDGES = 1 << 10
"""Entries that the host reads in the time of a round without work. If rounds read fewer on average,
chains of waiting vertices are long, and the host colours the rest."""

OPENCL = {
    "ROUNDS": _MOST_ROUNDS,
    "HEAVY": _MOST_ROUNDS + 1,
    "HEAVY_TO_COUNT": 2 * _MOST_ROUNDS + 1,
    "EDGES": 2 * _MOST_ROUNDS + 2,
}
"""ROUNDS is the most rounds launched together; the others index `sizes` of jones_plassmann.cl."""

_NUM_SIZES = OPENCL["EDGES"] + 2


class Kernels(NamedTuple):
    """Kernels bound to buffers of the adjacency. A list has a kernel for each input queue."""

    count_waiting: BoundKernel
    count_heavy: BoundKernel
    colour_queue: list[BoundKernel]
    notify_heavy: list[BoundKernel]


class DeviceColouring(DeviceRun):
    """Colours on an OpenCL device that holds the adjacency.

    Raises `BudgetError` if the device cannot hold it, and `DeviceError` if its driver fails.
    """

    family = "colouring"
    need = "colouring needs"
    files: Sequence[str] = (
        "devices/opencl/tiles.cl",
        "algorithms/colouring/kernels/jones_plassmann.cl",
    )
    constants = (OPENCL,)
    of_vertices: Sequence[str] = "colour", "waiting", "heavy", "queue", "next", "rank"
    """Arrays with a number for each vertex."""

    def __init__(self, lists: UndirectedLists, info: DeviceInfo) -> None:
        super().__init__(info, [self._entries(lists)])
        self.lists, self._vertices = lists, lists.num_vertices
        words = (lists.num_stored_edges >> 5) + self._vertices
        arrays = self.make_arrays(
            dict.fromkeys(self.of_vertices, (self._vertices, np.uint32))
            | {"taken": (words, np.uint32), "sizes": (_NUM_SIZES, np.uint32)}
        )
        self._host_sizes = np.zeros(_NUM_SIZES, np.uint32)
        self._num_heavy = int(np.count_nonzero(lists.degree > _HEAVY_EDGES))
        self.colour = np.empty(self._vertices, np.int32)
        self._arrays = arrays
        self._program = self.build(HEAVY_EDGES=_HEAVY_EDGES)
        colour, waiting, taken = (arrays[name] for name in ("colour", "waiting", "taken"))
        bind, n = self.device.bind, np.uint32(self._vertices)
        self._start = bind(self._program, "start", n, np.uint64(words), taken, waiting, colour)
        self._collect = bind(
            self._program, "collect", VARIES, waiting, arrays["queue"], arrays["sizes"]
        )
        self._bind_lists()
        finish_serially(lists, np.zeros(self._vertices, np.int32))  # compiles it

    def _entries(self, lists: UndirectedLists) -> Entries:
        """Return the adjacency that kernels read."""
        return Entries(lists.indptr, [lists.indices])

    def _bind_lists(self) -> None:
        """Bind the kernels that read the adjacency, and launch them once without work.

        Some drivers compile kernels only then.
        """
        self._kernels = self._bind_on(*self.buffers(0), self._arrays["rank"])
        self._count_range(self._kernels, 0, 0)
        for queue in range(2):
            self._launch_round(self._kernels, 0, queue, has_heavy=True)
        self.device.finish()

    def _bind_on(self, *lists: Any) -> Kernels:
        """Return the kernels that read the adjacency, bound to `lists`, their arguments LISTS."""
        arrays, program = self._arrays, self._program
        bind, n = self.device.bind, np.uint32(self._vertices)
        heavy, waiting, sizes = arrays["heavy"], arrays["waiting"], arrays["sizes"]
        queues = arrays["queue"], arrays["next"]
        rest = arrays["colour"], arrays["taken"], waiting, sizes
        return Kernels(
            bind(program, "count_waiting", VARIES, *lists, heavy, waiting, sizes),
            bind(program, "count_heavy", n, *lists, heavy, waiting, sizes),
            [
                bind(program, "colour_queue", VARIES, *lists, *pair, heavy, *rest)
                for pair in (queues, queues[::-1])
            ],
            [
                bind(program, "notify_heavy", VARIES, n, *lists, following, heavy, *rest)
                for following in queues[::-1]
            ],
        )

    def run(self) -> Coloured:
        steps, n = [sort_step(self.lists)], self._vertices
        self.device.write(self._arrays["rank"], self.lists.rank)
        self.launch(self._start, n)
        self._count_range(self._kernels, 0, n)
        left = self._run_rounds(self._kernels, n, self._num_heavy, steps)
        self.device.read(self.colour, self._arrays["colour"])
        if left:
            steps.append(finish_serially(self.lists, self.colour))
        return Coloured(self.colour, steps)

    def _count_range(
        self, kernels: Kernels, begin: int, end: int, *skipped: Any, after: Sequence[Any] = ()
    ) -> Any:
        """Count for how many neighbours each vertex of a range waits, and fill the first queue.

        Returns the last kernel's event. `skipped` is set if only a part of the adjacency is
        present.
        """
        count, between = end - begin, np.array([begin, end], np.uint32)
        self._reset_sizes(0)
        self.launch(kernels.count_waiting, count, between, *skipped, after=after)
        if self._num_heavy:
            self.launch_all(kernels.count_heavy, *skipped)
        return self.launch(self._collect, count, between)

    def _run_rounds(
        self, kernels: Kernels, left: int, heavy_left: int, steps: list[Step], *skipped: Any
    ) -> int:
        """Colour `left` vertices, `heavy_left` of which have more than _HEAVY_EDGES edges.

        Returns the number of vertices left uncoloured because chains of waiting vertices are long.
        """
        queue, rounds = 0, _FIRST_ROUNDS
        heavy = slice(OPENCL["HEAVY"], OPENCL["HEAVY_TO_COUNT"])
        while left:
            began = time.perf_counter()
            for number in range(rounds):
                self._launch_round(kernels, number, queue, heavy_left > 0, *skipped)
                queue = 1 - queue
            self.device.read(self._host_sizes, self._arrays["sizes"])
            heavy_left -= int(self._host_sizes[heavy].sum())
            vertices = int(self._host_sizes[:rounds].sum())
            edges = int(self._host_sizes[OPENCL["EDGES"] :].view(np.uint64)[0])
            steps.append(Step("device rounds", vertices, edges, time.perf_counter() - began))
            left -= vertices
            if rounds >= _PATIENCE and edges < rounds * _LEAST_EDGES:
                break
            self._reset_sizes(self._host_sizes[rounds])
            rounds = min(2 * rounds, _MOST_ROUNDS)
        return left

    def _launch_round(
        self, kernels: Kernels, number: int, queue: int, has_heavy: bool, *skipped: Any
    ) -> None:
        number_of_round = np.uint32(number)
        self.launch_all(kernels.colour_queue[queue], number_of_round, *skipped)
        if has_heavy:
            self.launch_all(kernels.notify_heavy[queue], number_of_round, *skipped)

    def _reset_sizes(self, queued: int) -> None:
        self._host_sizes[:] = 0
        self._host_sizes[0] = queued
        self.device.write(self._arrays["sizes"], self._host_sizes)
