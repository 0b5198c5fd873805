"""A vertex program in sweeps on an OpenCL device that cannot hold the lists: they stream in order.

The parts of the arranged graph, layers or colours, come one after another. For each part the host
reads which blocks have dirty vertices (sweep_blocks.cl), sends those that are not resident, and
launches the turn on what it sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.driver import VARIES, OpenCLDevice
from hetero_bfs.devices.opencl.streaming.block_lists import Numbers, Part
from hetero_bfs.devices.opencl.streaming.block_memory import Sent
from hetero_bfs.devices.opencl.streaming.pages import Slot
from hetero_bfs.errors import BudgetError
from hetero_bfs.programs.arranged import END, TIMES, ArrangedGraph
from hetero_bfs.programs.device_sweeps import DeviceSweeps, turn_of
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.schema import Phase, Word
from hetero_bfs.programs.streamed import InBlocks
from hetero_bfs.scheduling.program_costs import ProgramCosts

_EXACT, _STEP = 3, 5  # of a turn

Turn = npt.NDArray[np.uint32]


class _BlocksOfPart:
    """A part's turn, and the numbers of its blocks: those of long lists come before `others`."""

    def __init__(self, part: list[int], begin: int, others: int, end: int) -> None:
        self.turn = turn_of(*part)
        self.begin, self.others, self.end = begin, others, end
        self.is_joined = part[TIMES] > 1
        self.is_exact = bool(self.turn[_EXACT])


def _cut(
    parts: npt.NDArray[np.int64], group: int
) -> tuple[npt.NDArray[np.uint32], list[_BlocksOfPart]]:
    """Cut parts into blocks; return the first vertex of each, and of which blocks a part is.

    A block is a vertex with long lists, up to `group` other vertices, or joined levels as a whole.
    """
    firsts: list[npt.NDArray[np.int64]] = []
    of_parts, count = [], 0
    for part in parts.tolist():
        begin, heavy, end, _, times = part
        long = np.arange(begin, begin if times > 1 else heavy)
        others = np.arange(long.size + begin, end, end - begin if times > 1 else group)
        of_parts.append(
            _BlocksOfPart(part, count, count + long.size, count + long.size + others.size)
        )
        firsts += [long, others]
        count += long.size + others.size
    return np.concatenate([*firsts, [parts[-1, END]]]).astype(np.uint32), of_parts


class StreamedSweeps(InBlocks, DeviceSweeps):
    """As `DeviceSweeps`; the device has arrays of the vertices, and some blocks of the lists.

    In a directed graph a turn gathers along the lists of one direction, then applies along those
    of the other one, in exact parts, too.

    Raises
    ------
    BudgetError
        The device cannot hold the vertices' arrays and room for a few blocks.
    DeviceError
        As `DeviceProgram` does.
    """

    files = (
        *DeviceSweeps.files,
        "devices/opencl/streaming/block_marks.cl",
        "programs/kernels/sweep_blocks.cl",
    )

    def _make_room(self, array_bytes: list[int], firsts: npt.NDArray[Any] | None = None) -> None:
        """Choose the resident blocks beside arrays of these sizes."""
        blocks, self._parts = _cut(self.graph.parts, self.group)
        super()._make_room([*array_bytes, blocks.nbytes], blocks)
        self._firsts = self.device.buffer(blocks.size, np.uint32)
        self.device.write(self._firsts, blocks)

    def _bind_parts(self) -> None:
        """Set the arguments of the kernel that chooses blocks, and take memory for the lists."""
        self._choose = self.device.bind(
            self._program, "choose_in_sweep", VARIES, self._firsts, self.marks_buffer,
            *self._without_lists,
        )  # fmt: skip
        self._apply_all = self._bind_on("apply_part", None, None)
        self._batch = self._most_batch = 1
        self.memory.take()

    def _kernel_on(self, name: str, room: Part | Slot, backward: Part | Slot) -> BoundKernel:
        """Return a kernel that reads lists in the buffers of `room`, and others in `backward`."""
        key = name, id(room), id(backward)
        if key not in self.kernels_of:
            self.kernels_of[key] = self._bind_on(name, room.buffers, backward.buffers)
        found: BoundKernel = self.kernels_of[key]
        return found

    def _bind_on(
        self, name: str, forward: list[Any] | None, backward: list[Any] | None
    ) -> BoundKernel:
        """Set a kernel's arguments; None for lists that it does not read."""
        nothing = self._nothing

        def arrays(buffers: list[Any] | None) -> list[Any]:
            return [*(buffers or [nothing] * 3), nothing][:3]

        rows, *lists = arrays(forward)
        backward_rows, *backward_lists = arrays(backward)
        arguments = [self._firsts, rows, backward_rows, VARIES]
        arguments += [self.offsets(0), *lists, np.uint32(self._n)]
        if name in ("gather_part", "run_part"):
            arguments += [self.offsets(-1), *backward_lists]
        turn = [] if name == "spread" else [VARIES]
        return self.device.bind(self._program, name, *turn, *arguments, *self.arrays())

    def _launch_spread(self) -> None:
        """Run the kernels that mark the neighbours of initially active vertices."""
        if self.plan.all_active:
            return
        chosen = self._chosen(Phase.STARTS, 0, self.marks.size - 1)
        self._launch_along(0, "spread", chosen, None, 0)

    def _launch_iteration(self) -> None:
        """Run a sweep; after the end of the run it does nothing."""
        if not self.read(self.shared["loop"], len(Word), np.int64)[Word.MODE]:
            return
        for part in self._parts:
            self._number(part.turn)
            self._run_turn(part)
        self.launch(self._end, 1, np.int32(0))

    def _run_turn(self, part: _BlocksOfPart) -> None:
        """Queue a turn through a part, or all turns of joined levels."""
        turn, all_active = part.turn, self.plan.all_active
        blocks = part.begin, part.end
        dirty = np.arange(*blocks) if all_active else self._chosen(Phase.GATHERS, *blocks)
        if not dirty.size:
            return
        if part.is_joined:
            self._run_joined(part.begin, turn)
            return
        turn[_EXACT] = part.is_exact and not len(self.ways) > 1
        sent = self._launch_along(-1, "gather_part", dirty, turn, part.others)
        if turn[_EXACT]:
            return
        if all_active:
            self.launch_all(self._apply_all, turn, self._rows(0, 0, 0))
        elif len(self.ways) > 1 or not self._launch_again(sent, turn, part.others):
            gathered = self._chosen(Phase.APPLIES, *blocks, int(turn[_STEP]))
            self._launch_along(0, "apply_part", gathered, turn, part.others)

    def _chosen(self, phase: int, begin: int, end: int, step: int = 0) -> Numbers:
        """Return the blocks, of some in sequence, whose lists a phase reads."""
        numbers = np.array([phase, begin, end, step], np.uint32)
        self.launch(self._choose, (end - begin) * self.group, numbers)
        marks = self.marks[begin:end]
        self.device.read(marks, self.marks_buffer, begin)
        return np.flatnonzero(marks) + begin

    def _launch_along(
        self, way: int, name: str, blocks: Numbers, turn: Turn | None, others: int
    ) -> Sent:
        """Queue a kernel on blocks of a direction; those before `others` are of long lists."""
        return self.memory.launch_along(way, blocks, self._launching(name, turn, others))

    def _launch_again(self, sent: Sent, turn: Turn, others: int) -> bool:
        """Queue the applies on the blocks of the gathers, if they are still on the device."""
        return self.memory.launch_again(sent, self._launching("apply_part", turn, others))

    def _launching(self, name: str, turn: Turn | None, others: int) -> Any:
        given = [] if turn is None else [turn]

        def launch(room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
            first, end, count = 0, int(np.searchsorted(blocks, others)), blocks.size
            if isinstance(room, Part):  # it has rows of all its blocks
                first, count = blocks[0] - room.begin, blocks[-1] + 1 - room.begin
                end = np.clip(others - room.begin, first, count)
            rows = self._rows(first, end, count)
            kernel = self._kernel_on(name, room, room)
            return self.launch(kernel, int(count - first) * self.group, *given, rows, after=after)

        return launch

    def _rows(self, *numbers: int) -> npt.NDArray[np.uint32]:
        """Return `rows` of sweep.cl: three numbers, and the number of all blocks."""
        return np.array([*numbers, self.marks.size - 1], np.uint32)

    def _run_joined(self, block: int, turn: Turn) -> None:
        """Queue all turns through joined levels, which are a block."""

        def launch(rooms: list[Part | Slot], after: Sequence[Any]) -> Any:
            at = [block - room.begin if isinstance(room, Part) else 0 for room in rooms]
            kernel = self._kernel_on("run_part", rooms[0], rooms[-1])
            rows = self._rows(at[0], at[-1], 0)
            return self.launch(kernel, 1, turn, rows, after=after)

        self.memory.launch_on_all(block, launch)


def sweeps_on(
    plan: Plan, device: OpenCLDevice, graph: ArrangedGraph, costs: ProgramCosts
) -> DeviceSweeps:
    """Compile a program for a device, in sweeps; lists stream if they must."""
    try:
        return DeviceSweeps(plan, device, graph, costs)
    except BudgetError:
        return StreamedSweeps(plan, device, graph, costs)
