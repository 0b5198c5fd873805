"""Colouring on an OpenCL device; kernels.cl has the kernels."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.colouring.host import (
    Coloured,
    Step,
    UndirectedLists,
    finish_serially,
    sort_step,
)
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import DeviceRun, Entries
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel
from hetero_bfs.devices.opencl.streamed_lists import Numbers, Part, Slot, StreamedRun
from hetero_bfs.scheduling.algorithm_decision import has_long_chains

_HUB_EDGES = 1 << 10
"""Vertices with more edges are hubs, which have the first ranks. The host colours them before the
device begins: many of them are neighbours, so each waits for another one. Of the 847 rounds of
Kronecker 18 345 are left then, of 1,550 rounds of Kronecker 20 276 (counted)."""

_FIRST_ROUNDS, _MOST_ROUNDS = 8, 128  # rounds launched before the host reads their result

OPENCL = {"ROUNDS": _MOST_ROUNDS, "EDGES": _MOST_ROUNDS + 2}
"""ROUNDS is the most rounds launched together; EDGES indexes `sizes` of kernels.cl."""

_NUM_SIZES = OPENCL["EDGES"] + 2


class Kernels(NamedTuple):
    """Kernels bound to buffers of the adjacency; `colour_queue` has one for each input queue."""

    count_waiting: BoundKernel
    colour_queue: list[BoundKernel]


class DeviceColouring(DeviceRun):
    """Colours on an OpenCL device that holds the adjacency."""

    family = "colouring"
    need = "colouring needs"
    files: Sequence[str] = (
        "devices/opencl/tiles.cl",
        "algorithms/colouring/kernels.cl",
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
        self.launch(self._start, self._vertices)
        if self._num_hubs:
            self.colour.fill(-1)
            steps.append(finish_serially(self.lists, self.colour, end=self._num_hubs))
            self.device.write(self._arrays["colour"], self._first_colours())

    def _first_colours(self) -> npt.NDArray[np.int32]:
        """Return the first colours, including the hubs', in the device's order."""
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
            if has_long_chains(rounds, edges):
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


class _Counted(NamedTuple):
    """A range of ranks whose waiting vertices were counted, and the kernels that read it."""

    kernels: Kernels
    begin: int
    end: int
    skipped: np.uint64


class StreamedColouring(StreamedRun, DeviceColouring):
    """Like `DeviceColouring`; the device has the vertices' arrays and a part of the adjacency.

    Colours depend only on neighbours of lower rank. So each part of the adjacency is sent once, by
    rising rank, and the vertices of a buffer are coloured before the next buffer is read. The lists
    of hubs are not sent. The host keeps a copy of the adjacency by rank, unless ids already are
    ranks.
    """

    of_vertices = DeviceColouring.of_vertices[:-1]  # no ranks, which are the numbers of vertices

    def _entries(self, lists: UndirectedLists) -> Entries:
        indptr, indices = lists.by_rank()
        first = indptr[self._num_hubs]
        return Entries(np.maximum(indptr, first) - first, [indices[first:]])

    def _bind_lists(self) -> None:
        """Allocate memory for the adjacency; kernels are bound when a room is first used."""
        self.memory.take()

    def run(self) -> Coloured:
        """Colour all vertices. The rounds of a buffer run while the next buffer is sent."""
        before = self.bytes_sent
        self._steps: list[Step] = []
        self._counted: _Counted | None = None
        self._is_stuck = False
        self._start_with_hubs(self._steps)
        self.memory.launch_along(0, np.arange(self.marks.size - 1), self._count)
        self._colour_counted()
        by_rank = np.empty_like(self.colour)
        self.device.read(by_rank, self._arrays["colour"])
        self.colour[self.lists.order] = by_rank
        if self._is_stuck:
            self._steps.append(finish_serially(self.lists, self.colour))
        return Coloured(self.colour, self._steps, self.bytes_sent - before)

    def _first_colours(self) -> npt.NDArray[np.int32]:
        return np.take(self.colour, self.lists.order[: self._num_hubs])

    def _count(self, room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
        """Colour the previous range, then queue the count of this one; return its event.

        Returns None if the device is stuck.
        """
        self._colour_counted()
        if self._is_stuck:
            return None
        begin = max(int(self.firsts[blocks[0]]), self._num_hubs)
        end = max(int(self.firsts[blocks[-1] + 1]), begin)
        skipped = np.uint64(self.memory.ways[0].bounds[blocks[0]])
        kernels = self.bound_once(
            id(room), lambda: self._bind_on(self.offsets(0), room.buffers[1], VARIES)
        )
        self._counted = _Counted(kernels, begin, end, skipped)
        return self._count_range(kernels, begin, end, skipped, after=after)

    def _colour_counted(self) -> None:
        if self._counted is None:
            return
        kernels, begin, end, skipped = self._counted
        self._counted = None
        left = self._run_rounds(kernels, end - begin, self._steps, skipped)
        self._is_stuck = left > 0
