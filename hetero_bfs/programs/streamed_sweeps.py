"""A vertex program in sweeps on an OpenCL device that cannot hold the lists: they stream in order.

The parts of the arranged graph, layers or colours, come one after another. For each part the host
reads which blocks have dirty vertices (sweep_blocks.cl), sends those that are not resident, and
launches the turn on what it sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.bound_kernel import BoundKernel
from hetero_bfs.devices.opencl.driver import VARIES
from hetero_bfs.devices.opencl.streaming.block_lists import Numbers, Part
from hetero_bfs.devices.opencl.streaming.block_memory import Sent
from hetero_bfs.devices.opencl.streaming.pages import Slot
from hetero_bfs.errors import BudgetError
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.arranged import END, TIMES, ArrangedGraph
from hetero_bfs.programs.device_sweeps import DeviceSweeps, turn_of
from hetero_bfs.programs.in_blocks import InBlocks
from hetero_bfs.programs.lists import DeviceGraph
from hetero_bfs.programs.plan import Plan
from hetero_bfs.scheduling.program_costs import ProgramCosts

_STARTS, _GATHERS, _APPLIES = range(3)  # phases, as in sweep_blocks.cl
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

    _kernels: ClassVar[list[str]] = [
        *DeviceSweeps._kernels,
        "devices/opencl/streaming/block_marks.cl",
        "programs/kernels/sweep_blocks.cl",
    ]
    _options: ClassVar[list[str]] = ["-DSTREAMED"]

    def _make_room(self, array_bytes: list[int]) -> None:
        """Choose the resident blocks beside arrays of these sizes."""
        firsts, self._parts = _cut(self.graph.parts, self.group)
        lists = self._ways()[-1:] if self.plan.all_active else self._ways()
        self._reads_both = len(lists) > 1
        self._marks = np.zeros(firsts.size, np.uint8)
        self._kernels_of: dict[tuple[str, int, int], BoundKernel] = {}
        self._cut_lists(lists, firsts, [*array_bytes, firsts.nbytes, self._marks.nbytes])
        self._make_slots(0)
        self._marks_buffer = self.device.buffer(self._marks.size, np.uint8)
        self._firsts = self.device.buffer(firsts.size, np.uint32)
        self.device.write(self._firsts, firsts)

    def _bind_parts(self, program: Any) -> None:
        """Set the arguments of the kernel that chooses blocks, and take memory for the lists."""
        self.program = program
        self._choose = self.device.bind(
            program, "choose_in_sweep", VARIES, self._firsts, self._marks_buffer,
            *self._without_lists,
        )  # fmt: skip
        self._apply_all = self._bind_on("apply_part", None, None)
        self._batch = self._most_batch = 1
        self.memory.take()

    def _kernel_on(self, name: str, room: Part | Slot, backward: Part | Slot) -> BoundKernel:
        """Return a kernel that reads lists in the buffers of `room`, and others in `backward`."""
        key = name, id(room), id(backward)
        if key not in self._kernels_of:
            self._kernels_of[key] = self._bind_on(name, room.buffers, backward.buffers)
        return self._kernels_of[key]

    def _bind_on(
        self, name: str, forward: list[Any] | None, backward: list[Any] | None
    ) -> BoundKernel:
        """Set a kernel's arguments; None for lists that it does not read."""
        graph, nothing = self.graph, self._without_lists[1]

        def arrays(buffers: list[Any] | None) -> list[Any]:
            return [*(buffers or [nothing] * 3), nothing][:3]

        rows, *lists = arrays(forward)
        backward_rows, *backward_lists = arrays(backward)
        arguments = [self._firsts, rows, backward_rows, VARIES]
        arguments += [self.lists.offsets(graph.forward.indptr), *lists, np.uint32(self._n)]
        if name in ("gather_part", "run_part"):
            arguments += [self.lists.offsets(graph.backward.indptr), *backward_lists]
        turn = [] if name == "spread" else [VARIES]
        return self.device.bind(self.program, name, *turn, *arguments, *self._rest)

    def _launch_spread(self) -> None:
        """Run the kernels that mark the neighbours of initially active vertices."""
        if self.plan.all_active:
            return
        chosen = self._chosen(_STARTS, 0, self._marks.size - 1)
        self._launch_along(0, "spread", chosen, None, 0)

    def _launch_iteration(self) -> None:
        """Run a sweep; after the end of the run it does nothing."""
        loop = np.empty(device_run._LOOP_WORDS, np.int64)
        self.device.read(loop, self.shared["loop"])
        if not loop[device_run._MODE]:
            return
        for part in self._parts:
            self._number(part.turn)
            self._run_turn(part)
        self._end.launch(self.group, self.group, np.int32(0))

    def _run_turn(self, part: _BlocksOfPart) -> None:
        """Queue a turn through a part, or all turns of joined levels."""
        turn, all_active = part.turn, self.plan.all_active
        blocks = part.begin, part.end
        dirty = np.arange(*blocks) if all_active else self._chosen(_GATHERS, *blocks)
        if not dirty.size:
            return
        if part.is_joined:
            self._run_joined(part.begin, turn)
            return
        turn[_EXACT] = part.is_exact and not self._reads_both
        sent = self._launch_along(-1, "gather_part", dirty, turn, part.others)
        if turn[_EXACT]:
            return
        if all_active:
            group = self.group
            no_rows = self._rows(0, 0, 0)
            self._apply_all.launch(self.groups * group, group, turn, no_rows)
        elif self._reads_both or not self._launch_again(sent, turn, part.others):
            gathered = self._chosen(_APPLIES, *blocks, int(turn[_STEP]))
            self._launch_along(0, "apply_part", gathered, turn, part.others)

    def _chosen(self, phase: int, begin: int, end: int, step: int = 0) -> Numbers:
        """Return the blocks, of some in sequence, whose lists a phase reads."""
        group, numbers = self.group, np.array([phase, begin, end, step], np.uint32)
        self._choose.launch(min(self.groups, end - begin) * group, group, numbers)
        marks = self._marks[begin:end]
        self.device.read(marks, self._marks_buffer, begin)
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
        group = self.group

        def launch(room: Part | Slot, blocks: Numbers, after: Sequence[Any]) -> Any:
            first, end, count = 0, int(np.searchsorted(blocks, others)), blocks.size
            if isinstance(room, Part):  # it has rows of all its blocks
                first, count = blocks[0] - room.begin, blocks[-1] + 1 - room.begin
                end = np.clip(others - room.begin, first, count)
            rows = self._rows(first, end, count)
            kernel = self._kernel_on(name, room, room)
            groups = min(self.groups, int(count - first))
            return kernel.launch(groups * group, group, *given, rows, after=after)

        return launch

    def _rows(self, *numbers: int) -> npt.NDArray[np.uint32]:
        """Return `rows` of sweep.cl: three numbers, and the number of all blocks."""
        return np.array([*numbers, self._marks.size - 1], np.uint32)

    def _run_joined(self, block: int, turn: Turn) -> None:
        """Queue all turns through joined levels, which are a block."""
        group = self.group

        def launch(rooms: list[Part | Slot], after: Sequence[Any]) -> Any:
            at = [block - room.begin if isinstance(room, Part) else 0 for room in rooms]
            kernel = self._kernel_on("run_part", rooms[0], rooms[-1])
            rows = self._rows(at[0], at[-1], 0)
            return kernel.launch(group, group, turn, rows, after=after)

        self.memory.launch_on_all(block, launch)


def sweeps_on(
    plan: Plan, lists: DeviceGraph, graph: ArrangedGraph, costs: ProgramCosts
) -> DeviceSweeps:
    """Compile a program for a device, in sweeps; lists stream if they must."""
    try:
        return DeviceSweeps(plan, lists, graph, costs)
    except BudgetError:
        return StreamedSweeps(plan, lists, graph, costs)
