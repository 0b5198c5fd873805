"""Colouring on an OpenCL device; jones_plassmann.cl has the kernels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.colouring.host import finish_serially, sort_step
from hetero_bfs.algorithms.colouring.lists import Coloured, Step, UndirectedLists
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun, Entries
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel

_HUB_EDGES = 1 << 10
"""Vertices with more edges are hubs, which have the first ranks. The host colours them before the
device begins: many of them are neighbours, so each waits for another one. Of the 847 rounds of
Kronecker 18 345 are left then, of 1,550 rounds of Kronecker 20 276 (counted)."""

_FIRST_ROUNDS, _MOST_ROUNDS = 8, 128  # rounds launched before the host reads their result
_PATIENCE = 64  # the host may take over after a batch of this number of rounds
_LEAST_EDGES = 1 << 10
"""Entries that the host reads in the time of a round without work. If rounds read fewer on average,
chains of waiting vertices are long, and the host colours the rest."""

OPENCL = {"ROUNDS": _MOST_ROUNDS, "EDGES": _MOST_ROUNDS + 2}
"""ROUNDS is the most rounds launched together; EDGES indexes `sizes` of jones_plassmann.cl."""

_NUM_SIZES = OPENCL["EDGES"] + 2


class Kernels(NamedTuple):
    """Kernels bound to buffers of the adjacency; `colour_queue` has one for each input queue."""

    count_waiting: BoundKernel
    colour_queue: list[BoundKernel]


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
    of_vertices: Sequence[str] = "colour", "waiting", "queue", "next", "rank"
    """Arrays with a number for each vertex."""

    def __init__(self, lists: UndirectedLists, info: DeviceInfo) -> None:
        hubs = int(np.count_nonzero(lists.degree > _HUB_EDGES))
        self._num_hubs = min(hubs, lists.num_vertices - 1)  # the device gets some lists
        super().__init__(info, [self._entries(lists)])
        self.lists, self._vertices = lists, lists.num_vertices
        words = (lists.num_stored_edges >> 5) + self._vertices
        arrays = self.make_arrays(
            dict.fromkeys(self.of_vertices, (self._vertices, np.uint32))
            | {"taken": (words, np.uint32), "sizes": (_NUM_SIZES, np.uint32)}
        )
        self._host_sizes = np.zeros(_NUM_SIZES, np.uint32)
        self.colour = np.empty(self._vertices, np.int32)
        self._arrays = arrays
        self._program = self.build()
        colour, waiting, taken = (arrays[name] for name in ("colour", "waiting", "taken"))
        bind, n = self.device.bind, np.uint32(self._vertices)
        self._start = bind(self._program, "start", n, np.uint64(words), taken, waiting, colour)
        self._collect = bind(
            self._program, "collect", VARIES, waiting, colour, arrays["queue"], arrays["sizes"]
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
            self._launch_round(self._kernels, 0, queue)
        self.device.finish()

    def _bind_on(self, *lists: Any) -> Kernels:
        """Return the kernels that read the adjacency, bound to `lists`, their arguments LISTS."""
        arrays, program, bind = self._arrays, self._program, self.device.bind
        colour, taken, hubs = arrays["colour"], arrays["taken"], np.uint32(self._num_hubs)
        rest = taken, arrays["waiting"], arrays["sizes"]
        queues = arrays["queue"], arrays["next"]
        return Kernels(
            bind(program, "count_waiting", VARIES, hubs, *lists, colour, *rest),
            [
                bind(program, "colour_queue", VARIES, *lists, *pair, colour, *rest)
                for pair in (queues, queues[::-1])
            ],
        )

    def run(self) -> Coloured:
        steps, n = [sort_step(self.lists)], self._vertices
        self.device.write(self._arrays["rank"], self.lists.rank)
        self._start_with_hubs(steps)
        self._count_range(self._kernels, 0, n)
        left = self._run_rounds(self._kernels, n - self._num_hubs, steps)
        self.device.read(self.colour, self._arrays["colour"])
        if left:
            steps.append(finish_serially(self.lists, self.colour))
        return Coloured(self.colour, steps)

    def _start_with_hubs(self, steps: list[Step]) -> None:
        """Reset the device's arrays, and colour the hubs on the host."""
        self.launch(self._start, self._vertices)
        if self._num_hubs:
            self.colour.fill(-1)
            steps.append(finish_serially(self.lists, self.colour, end=self._num_hubs))
            self.device.write(self._arrays["colour"], self._first_colours())

    def _first_colours(self) -> npt.NDArray[np.int32]:
        """Return the first colours, those of the hubs among them, in the device's order."""
        return self.colour[: int(self.lists.order[: self._num_hubs].max()) + 1]

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
        return self.launch(self._collect, count, between)

    def _run_rounds(self, kernels: Kernels, left: int, steps: list[Step], *skipped: Any) -> int:
        """Colour `left` vertices.

        Returns the number of vertices left uncoloured because chains of waiting vertices are long.
        """
        queue, rounds = 0, _FIRST_ROUNDS
        while left:
            began = time.perf_counter()
            for number in range(rounds):
                self._launch_round(kernels, number, queue, *skipped)
                queue = 1 - queue
            self.device.read(self._host_sizes, self._arrays["sizes"])
            vertices = int(self._host_sizes[:rounds].sum())
            edges = int(self._host_sizes[OPENCL["EDGES"] :].view(np.uint64)[0])
            steps.append(Step("device rounds", vertices, edges, time.perf_counter() - began))
            left -= vertices
            if rounds >= _PATIENCE and edges < rounds * _LEAST_EDGES:
                break
            self._reset_sizes(self._host_sizes[rounds])
            rounds = min(2 * rounds, _MOST_ROUNDS)
        return left

    def _launch_round(self, kernels: Kernels, number: int, queue: int, *skipped: Any) -> None:
        self.launch_all(kernels.colour_queue[queue], np.uint32(number), *skipped)

    def _reset_sizes(self, queued: int) -> None:
        self._host_sizes[:] = 0
        self._host_sizes[0] = queued
        self.device.write(self._arrays["sizes"], self._host_sizes)
