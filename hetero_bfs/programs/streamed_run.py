"""A vertex program on an OpenCL device that has no room for the lists: blocks of them are sent."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from hetero_bfs.devices.opencl.driver import VARIES, BoundKernel
from hetero_bfs.devices.opencl.streaming.pages import Slot
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.programs import device_run
from hetero_bfs.programs.device_run import PULL, PUSH, DeviceGraph, DeviceProgram
from hetero_bfs.programs.placed import PlacedGraph
from hetero_bfs.programs.run_options import Limits
from hetero_bfs.programs.streamed_lists import (
    Blocks,
    BlockSlots,
    Layout,
    Part,
    lay_out,
    resident_parts,
)
from hetero_bfs.programs.typed_program import Plan
from hetero_bfs.selection.program_costs import ProgramCosts

_Kernels = tuple[BoundKernel, BoundKernel]
"""`expand` and `expand_long`, or the kernels that count in their place, for one part."""


class StreamedProgram(DeviceProgram):
    """As `DeviceProgram`; the device has arrays of the vertices, and some blocks of the lists.

    The device decides what comes next, as there. In each iteration the host reads which blocks it
    needs (blocks.cl), sends those that are not resident, and launches the kernels for each part.
    Only one program of a graph has lists on the device: its run takes the memory of another's.

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks.
    DeviceError
        As `DeviceProgram` does.
    """

    _kernels: ClassVar[list[str]] = [*DeviceProgram._kernels, "programs/kernels/blocks.cl"]
    _options: ClassVar[list[str]] = ["-DSTREAMED"]

    def _make_room(self, array_bytes: list[int]) -> None:
        """Choose the resident blocks beside arrays of these sizes."""
        heavy, group = device_run._HEAVY_EDGES, device_run._GROUP
        lists = self._ways()[-1:] if self.plan.all_active else self._ways()
        self._blocks = [Blocks(way, self.plan.uses_weights, group, heavy) for way in lists]
        self._marks = np.zeros(self._blocks[0].sizes.size + 1, np.uint8)
        self._info = self.device.info
        self._array_bytes = [*array_bytes, *self._offset_bytes(), self._marks.nbytes]
        self._layout = self._lay_out()
        self._make_slots(self._layout.part_entries)
        self._marks_buffer = self.device.buffer(self._marks.size, np.uint8)
        self._nothing = self.device.buffer(1, np.int64)

    def _lay_out(self) -> Layout:
        return lay_out(
            self._info, self._blocks, self._array_bytes, self._entry_bytes, self._slot_bytes
        )

    def forward(self) -> list[Any]:
        """Return the arguments GRAPH of kernels that read no lists."""
        return self._lists_of(self._nothing, self._nothing)

    def _lists_of(self, neighbours: Any, weights: Any) -> list[Any]:
        graph = self.graph
        sizes = np.uint32(graph.num_searched), np.uint32(graph.num_vertices)
        return [self.lists.offsets(graph.forward), neighbours, weights, *sizes]

    def _bind_expand(self, program: Any, rest: list[Any]) -> None:
        """Set the arguments of the kernels that choose blocks, and take memory for the lists."""
        self.program, self._rest = program, rest
        self._backward = self.lists.offsets(self.graph.backward)
        self._choose = self.device.bind(
            program, "choose_blocks", self._marks_buffer, np.uint32(self._marks.size - 1),
            *self.forward(), self._backward, *rest,
        )  # fmt: skip
        self._end_part = self.device.bind(program, "end_part", self.shared["counters"])
        self._give_memory()
        self._batch = self._most_batch = 1
        self._take_memory()

    def _take_memory(self) -> None:
        """Make resident parts and slots, fewer if the device refuses so many."""
        holder = None if self.lists.streams is None else self.lists.streams()
        if holder is self:
            return
        if holder is not None:
            holder._give_memory()
        self.lists.streams = refused = None
        self._info = self.device.info
        self._layout = self._lay_out()
        while not self._parts:
            try:
                self._fill_memory()
            except DeviceError as error:
                refused = refused or DeviceError(str(error))  # an error keeps what it met alive
                self._give_memory()
                self._use_less(refused)
        self.lists.streams = weakref.ref(self)

    def _use_less(self, refused: DeviceError) -> None:
        """Lay out with less memory; raise the device's error if it is too little."""
        self._info = replace(self._info, memory_bytes=self._info.memory_bytes * 3 // 4)
        try:
            self._layout = self._lay_out()
        except BudgetError:
            raise refused from None

    def _give_memory(self) -> None:
        """Have no lists on the device."""
        self.device.finish()  # an interrupted run may still read them
        self._parts: list[list[tuple[Part, _Kernels]]] = []
        self._slots_sent: BlockSlots | None = None
        self._of_slots: list[_Kernels] = []

    def _fill_memory(self) -> None:
        """Make the parts of each direction, and the slots."""
        parts = [resident_parts(self.device, blocks, self._layout) for blocks in self._blocks]
        if self._layout.slot_entries:
            self._slots_sent = BlockSlots(self.device, self._blocks, self._layout)
            self._of_slots = [self._bind_part(slot.buffers) for slot in self._slots_sent.slots]
        self._parts = [[(part, self._bind_part(part.buffers)) for part in way] for way in parts]

    def _bind_part(self, buffers: list[Any]) -> _Kernels:
        """Return the kernels that read rows and lists in some buffers; they take the blocks."""
        rows, neighbours, *weights = buffers
        weights = weights or [self._nothing]
        arguments = [
            *self._lists_of(neighbours, *weights), self._backward, neighbours, *weights, rows,
            VARIES, *self._slots, *self._rest,
        ]  # fmt: skip
        short, long = self._expand_names
        bind, program = self.device.bind, self.program
        return bind(program, short, *arguments), bind(program, long, *arguments)

    def start(self, plan: Plan, limits: Limits) -> int:
        """Write what is given to a run, as `DeviceProgram` does, with lists in the memory."""
        self._take_memory()
        return super().start(plan, limits)

    @property
    def bytes_sent(self) -> int:
        """Bytes of blocks that were sent since the program has memory for them."""
        return 0 if self._slots_sent is None else self._slots_sent.bytes_sent

    def _launch_iteration(self) -> None:
        """Run an iteration; after the end of the run it does nothing."""
        group, groups = device_run._GROUP, self.groups
        self._choose.launch(groups * group, group)
        self.device.read(self._marks, self._marks_buffer)
        mode = self._marks[-1]
        if mode in (PUSH, PULL):
            self._expand_blocks(0 if mode == PUSH else -1)
        self._apply.launch(groups * group, group)
        self._advance.launch(group, group, np.int32(0))

    def _expand_blocks(self, direction: int) -> None:
        """Queue what sends the messages along the marked blocks of a direction."""
        blocks, resident = self._blocks[direction], self._layout.resident
        for part, kernels in self._parts[direction]:
            if self._marks[part.begin : part.end].any():
                self._launch_part(kernels, part.end - part.begin, part.has_long)
        missing = np.flatnonzero(self._marks[resident:-1]) + resident
        if self._slots_sent is None or not missing.size:
            return
        has_long = bool(blocks.has_long[missing].any())

        def launch(slot: Slot, count: int, copied: Any) -> Any:
            return self._launch_part(self._of_slots[slot.number], count, has_long, [copied])

        self._slots_sent.send(blocks, missing, launch)

    def _launch_part(
        self, kernels: _Kernels, count: int, has_long: bool, after: Sequence[Any] = ()
    ) -> Any:
        """Queue the kernels of a part of so many blocks; return the last one's event."""
        group, (short, long) = device_run._GROUP, kernels
        blocks = np.uint32(count)
        event = short.launch(min(self.groups, count) * group, group, blocks, after=after)
        if has_long:
            long.launch(self.groups * group, group, blocks)
            event = self._end_part.launch(1, 1)
        return event


def program_in_phases(
    plan: Plan, lists: DeviceGraph, graph: PlacedGraph, costs: ProgramCosts
) -> DeviceProgram:
    """Compile a program for a device, with a launch for each phase; lists stream if they must."""
    try:
        return DeviceProgram(plan, lists, graph, costs)
    except BudgetError:
        return StreamedProgram(plan, lists, graph, costs)
