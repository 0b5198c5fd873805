"""A vertex program on an OpenCL device that cannot hold the lists: blocks of them are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.driver import VARIES
from hetero_bfs.devices.opencl.streaming.block_lists import Numbers, Part
from hetero_bfs.devices.opencl.streaming.pages import Slot
from hetero_bfs.errors import BudgetError
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.device import PULL, PUSH, DeviceProgram
from hetero_bfs.programs.in_blocks import InBlocks
from hetero_bfs.programs.lists import DeviceGraph
from hetero_bfs.programs.placed import PlacedGraph
from hetero_bfs.programs.plan import Plan
from hetero_bfs.scheduling.program_costs import ProgramCosts

_Kernels = tuple[BoundKernel, BoundKernel]
"""`expand` and `expand_long`, or the kernels that count in their place, for one part."""


class StreamedProgram(InBlocks):
    """As `DeviceProgram`; the device has arrays of the vertices, and some blocks of the lists.

    The device decides the next step, as there. In each iteration the host reads which blocks it
    needs (blocks.cl), sends those that are not resident, and launches the kernels for each part.

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks.
    DeviceError
        As `DeviceProgram` does.
    """

    _kernels: ClassVar[list[str]] = [
        *DeviceProgram._kernels,
        "devices/opencl/streaming/block_marks.cl",
        "programs/kernels/blocks.cl",
    ]
    _options: ClassVar[list[str]] = ["-DSTREAMED"]
    _keeps_order: ClassVar[bool] = False

    def _make_room(self, array_bytes: list[int]) -> None:
        """Choose the resident blocks beside arrays of these sizes."""
        searched = self.graph.num_searched
        firsts = np.append(np.arange(0, searched, self.group), searched)
        heavy = min(device_run._HEAVY_EDGES, device_run.long_pull(self.device.info))
        lists = self._ways()[-1:] if self.plan.all_active else self._ways()
        self._has_long = [np.maximum.reduceat(way.degree(), firsts[:-1]) > heavy for way in lists]
        self._marks = np.zeros(firsts.size, np.uint8)
        self._kernels_of: dict[int, _Kernels] = {}
        self._cut_lists(lists, firsts, [*array_bytes, self._marks.nbytes])
        self._make_slots(self.memory.layout.part_entries)
        self._marks_buffer = self.device.buffer(self._marks.size, np.uint8)
        self._nothing = self.device.buffer(1, np.int64)

    def forward(self) -> list[Any]:
        """Return the arguments GRAPH of kernels that read no lists."""
        return self._lists_of(self._nothing, self._nothing)

    def _lists_of(self, neighbours: Any, weights: Any) -> list[Any]:
        graph = self.graph
        sizes = np.uint32(graph.num_searched), np.uint32(graph.num_vertices)
        return [self.lists.offsets(graph.forward.indptr), neighbours, weights, *sizes]

    def _bind_expand(self, program: Any, rest: list[Any]) -> None:
        """Set the arguments of the kernels that choose blocks, and take memory for the lists."""
        self.program, self._rest = program, rest
        self._backward = self.lists.offsets(self.graph.backward.indptr)
        self._choose = self.device.bind(
            program, "choose_blocks", self._marks_buffer, np.uint32(self._marks.size - 1),
            *self.forward(), self._backward, *rest,
        )  # fmt: skip
        self._end_part = self.device.bind(program, "end_part", self.shared["counters"])
        self._batch = self._most_batch = 1
        self.memory.take()

    def _kernels_on(self, room: Part | Slot) -> _Kernels:
        """Return the kernels that read rows and lists in some buffers; they take the blocks."""
        if id(room) not in self._kernels_of:
            rows, neighbours, *weights = room.buffers
            weights = weights or [self._nothing]
            arguments = [
                *self._lists_of(neighbours, *weights), self._backward, neighbours, *weights, rows,
                VARIES, *self._slots, *self._rest,
            ]  # fmt: skip
            short, long = self._expand_names
            bind, program = self.device.bind, self.program
            kernels = bind(program, short, *arguments), bind(program, long, *arguments)
            self._kernels_of[id(room)] = kernels
        return self._kernels_of[id(room)]

    def _launch_iteration(self) -> None:
        """Run an iteration; after the end of the run it does nothing."""
        group, groups = self.group, self.groups
        self._choose.launch(groups * group, group)
        self.device.read(self._marks, self._marks_buffer)
        mode = self._marks[-1]
        if mode in (PUSH, PULL):
            self._expand_blocks(0 if mode == PUSH else -1)
        self._apply.launch(groups * group, group)
        self._advance.launch(group, group, np.int32(0))

    def _expand_blocks(self, direction: int) -> None:
        """Queue the kernels that send the messages along the marked blocks of a direction."""
        group, has_long = self.group, self._has_long[direction]

        def launch(room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
            count = room.end - room.begin if isinstance(room, Part) else blocks.size
            short, long = self._kernels_on(room)
            rows = np.uint32(count)
            event = short.launch(min(self.groups, count) * group, group, rows, after=after)
            if has_long[blocks].any():
                long.launch(self.groups * group, group, rows)
                event = self._end_part.launch(1, 1)
            return event

        self.memory.launch_along(direction, np.flatnonzero(self._marks[:-1]), launch)


def program_in_phases(
    plan: Plan, lists: DeviceGraph, graph: PlacedGraph, costs: ProgramCosts
) -> DeviceProgram:
    """Compile a program for a device, with a launch for each phase; lists stream if they must."""
    try:
        return DeviceProgram(plan, lists, graph, costs)
    except BudgetError:
        return StreamedProgram(plan, lists, graph, costs)
