"""The forms of a vertex program on an OpenCL device, and which of them fits.

`DeviceProgram` has one launch for each phase of an iteration, and the graph is on the device. A GPU
whose work-groups make progress at the same time runs `OneLaunch`. Blocks of the graph are sent to a
device that cannot hold it. Then the device decides the next step, as otherwise. In each iteration
or part of a sweep (layer or colour) the host reads which blocks are needed, sends those that are
not resident, and launches the kernels on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.device_run import PATIENCE, Grid
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl.streamed_lists import Numbers, Part, Slot, StreamedRun
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.device import DeviceProgram, open_device
from hetero_bfs.programs.device_sweeps import EXACT, STEP, DeviceSweeps, Visit, visit_of
from hetero_bfs.programs.options import Limits, RunOptions
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.renumbered import END, TIMES, ArrangedGraph, PlacedGraph, Run
from hetero_bfs.programs.schema import Mode, Phase, Word
from hetero_bfs.scheduling.speed_model import ProgramCosts, first_guess

_ITERATIONS = np.uint32(1 << 10)
"""Most iterations of a launch; between launches the host may end a run."""

_NO, _YES = np.uint32(0), np.uint32(1)


class OneLaunch(DeviceProgram):
    """A `DeviceProgram` with one launch for up to 1,024 iterations.

    Raises `DeviceError` also if work-groups do not make progress at the same time. If that happens
    later, a run raises `GridStalledError`; then `program_in_phases` makes a program that works.
    """

    files = ("devices/opencl/grid.cl", *DeviceProgram.files)
    flags: ClassVar = ("ONE_LAUNCH",)

    def _bind(self) -> None:
        """Bind the kernel, and find the largest grid that makes progress."""
        self._grid = Grid(self.device, self.GROUPS_PER_UNIT)
        self._iterate = self._bind_own(
            "run_iterations", self._records, np.uint32(device_run._MOST_RECORDS),
            *self._grid.arguments, VARIES, VARIES, VARIES, VARIES, *self._lists(-1),
        )  # fmt: skip
        self._batch = self._most_batch = 1
        groups = self._grid.largest(self._probe)
        if groups is None:
            raise DeviceError(f"{self.device_name} does not run its work-groups together")
        self.groups = groups

    def _probe(self, groups: int, patience: np.uint32) -> bool:
        """Launch the probe of grid.cl; return whether all work-groups met."""
        group = self.group
        self._iterate.launch(groups * group, group, patience, _YES, _NO, _ITERATIONS)
        loop = self.read(self.shared["loop"], len(Word), np.int64)
        return bool(loop[Word.CONVERGED] == 0)

    def start(self, plan: Plan, limits: Limits) -> int:
        self._iterations = np.uint32(1) if limits.clocked else _ITERATIONS
        return super().start(plan, limits)

    def launch_entry(self) -> None:
        """Make the next launch begin with the decision."""
        self._begins = _YES

    def _launch_iteration(self) -> None:
        self.launch_all(self._iterate, PATIENCE, _NO, self._begins, self._iterations)
        self._begins = _NO


class InBlocks(StreamedRun, DeviceProgram):
    """A `DeviceProgram` with CSR arrays in a `BlockMemory`."""

    keeps_order: ClassVar = False

    def _bind(self) -> None:
        super()._bind()
        self._batch = self._most_batch = 1  # the host chooses the blocks of each iteration
        self.memory.take()

    def start(self, plan: Plan, limits: Limits) -> int:
        self.memory.take()
        return super().start(plan, limits)

    def forward(self) -> list[Any]:
        """Return the same arguments for kernels that do not read neighbour lists."""
        return [self.offsets(0), self._nothing, self._nothing, *self.sizes()]


class StreamedProgram(InBlocks):
    """A `DeviceProgram` whose vertex arrays and a few blocks of CSR arrays fit on the device.

    Raises `BudgetError` if vertex arrays and a few blocks do not fit.
    """

    def _bind_expand(self) -> None:
        """Bind the kernels that choose blocks."""
        heavy = min(device_run._HEAVY_EDGES, device_run.long_pull(self.device.info))
        self.note_long_lists(heavy)
        self._slots = self.make_slots()
        blocks = np.uint32(self.marks.size - 1)
        self._choose = self._bind_own("choose_blocks", self.marks_buffer, blocks, self.offsets(-1))
        self._end_part = self.device.bind(
            self._program, "end_part", VARIES, self.shared["counters"]
        )

    def _bind_room(self, way: int, buffers: list[Any]) -> tuple[BoundKernel, BoundKernel]:
        rows, *lists = buffers
        lists = [*lists, self._nothing][:2]
        arguments = [
            *self._slots, self.offsets(-1), *lists, rows, VARIES,
            self.offsets(0), *lists, *self.sizes(), *self.arrays(),
        ]  # fmt: skip
        short, long = self._expand_names
        bind, program = self.device.bind, self._program
        return bind(program, short, *arguments), bind(program, long, *arguments)

    def _launch_iteration(self) -> None:
        """Run an iteration; after the end of the run it does nothing."""
        self.launch_all(self._choose)
        chosen, mode = self.marked(), self.marks[-1]
        if mode in (Mode.PUSH, Mode.PULL):
            way = 0 if mode == Mode.PUSH else len(self.ways) - 1
            self.launch_blocks(way, chosen, np.uint32, self._end_part)
        self.launch_all(self._apply)
        self.launch(self._advance, 1, np.int32(0))


class _BlocksOfPart:
    """A part's visit and its range of blocks; blocks of long lists come before block `others`."""

    def __init__(self, part: list[int], begin: int, others: int, end: int) -> None:
        self.visit = visit_of(*part)
        self.begin, self.others, self.end = begin, others, end
        self.is_joined = part[TIMES] > 1
        self.is_exact = bool(self.visit[EXACT])


def _cut(
    parts: npt.NDArray[np.int64], group: int
) -> tuple[npt.NDArray[np.uint32], list[_BlocksOfPart]]:
    """Cut parts into blocks; return the first vertex of each block, and the blocks of each part.

    A block is one vertex with a long list, up to `group` other vertices, or a whole joined part.
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
    """`DeviceSweeps` whose vertex arrays and a few blocks of CSR arrays fit on the device.

    In a directed graph every visit, even of an exact part, gathers along one direction and then
    applies along the other. Raises `BudgetError` if vertex arrays and a few blocks do not fit.
    """

    files = ("devices/opencl/tiles.cl", *DeviceSweeps.files)

    def _make_room(self, array_bytes: list[int], firsts: npt.NDArray[Any] | None = None) -> None:
        """Choose the resident blocks that fit with arrays of these sizes."""
        blocks, self._parts = _cut(self.graph.parts, self.group)
        super()._make_room([*array_bytes, blocks.nbytes], blocks)
        self._firsts = self.device.buffer(blocks.size, np.uint32)
        self.device.write(self._firsts, blocks)

    def _bind_parts(self) -> None:
        self._choose = self._bind_own("choose_in_sweep", VARIES, self._firsts, self.marks_buffer)
        self._apply_all = self._bind_on("apply_part", None, None)

    def _plan_launches(self, num_classes: int) -> None:
        """Do nothing: the host chooses the launches of each part."""

    def _kernel_on(self, name: str, room: Part | Slot, backward: Part | Slot) -> BoundKernel:
        """Return a kernel bound to the buffers of `room`, and of `backward` if it reads both."""
        return self.bound_once(
            (name, id(room), id(backward)),
            lambda: self._bind_on(name, room.buffers, backward.buffers),
        )

    def _bind_on(
        self, name: str, forward: list[Any] | None, backward: list[Any] | None
    ) -> BoundKernel:
        """Bind a kernel to buffers; None for a direction that it does not read."""
        nothing = self._nothing

        def arrays(buffers: list[Any] | None) -> list[Any]:
            return [*(buffers or [nothing] * 3), nothing][:3]

        rows, *lists = arrays(forward)
        backward_rows, *backward_lists = arrays(backward)
        arguments = [] if name == "spread" else [VARIES]
        arguments += [self._firsts, rows, backward_rows, VARIES]
        if name in ("gather_part", "run_part"):
            arguments += [self.offsets(-1), *backward_lists]
        arguments += [self.offsets(0), *lists, *self.sizes(), *self.arrays()]
        return self.device.bind(self._program, name, *arguments)

    def _launch_spread(self) -> None:
        if self.plan.all_active:
            return
        chosen = self._chosen(Phase.STARTS, 0, self.marks.size - 1)
        self.memory.launch_along(0, chosen, self._launching("spread", None, 0))

    def _launch_iteration(self) -> None:
        """Run a sweep; after the end of the run it does nothing."""
        if not self.read(self.shared["loop"], len(Word), np.int64)[Word.MODE]:
            return
        for part in self._parts:
            self._number(part.visit)
            self._run_turn(part)
        self.launch(self._end, 1, np.int32(0))

    def _run_turn(self, part: _BlocksOfPart) -> None:
        """Queue a pass through a part, or all passes through joined levels."""
        visit, all_active = part.visit, self.plan.all_active
        blocks = part.begin, part.end
        dirty = np.arange(*blocks) if all_active else self._chosen(Phase.GATHERS, *blocks)
        if not dirty.size:
            return
        if part.is_joined:
            self._run_joined(part.begin, visit)
            return
        visit[EXACT] = part.is_exact and not len(self.ways) > 1
        gather = self._launching("gather_part", visit, part.others)
        sent = self.memory.launch_along(-1, dirty, gather)
        if visit[EXACT]:
            return
        if all_active:
            self.launch_all(self._apply_all, visit, self._rows(0, 0, 0))
            return
        apply = self._launching("apply_part", visit, part.others)
        if len(self.ways) > 1 or not self.memory.launch_again(sent, apply):
            gathered = self._chosen(Phase.APPLIES, *blocks, int(visit[STEP]))
            self.memory.launch_along(0, gathered, apply)

    def _chosen(self, phase: int, begin: int, end: int, step: int = 0) -> Numbers:
        """Return the blocks from `begin` to `end` whose neighbour lists a phase reads."""
        numbers = np.array([phase, begin, end, step], np.uint32)
        self.launch(self._choose, (end - begin) * self.group, numbers)
        marks = self.marks[begin:end]
        self.device.read(marks, self.marks_buffer, begin)
        return np.flatnonzero(marks) + begin

    def _launching(self, name: str, visit: Visit | None, others: int) -> Any:
        """Return a function that queues kernels on blocks; until `others` they have long lists."""
        given = [] if visit is None else [visit]

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

    def _run_joined(self, block: int, visit: Visit) -> None:
        """Queue all passes through joined levels, which are one block."""

        def launch(rooms: list[Part | Slot], after: Sequence[Any]) -> Any:
            at = [block - room.begin if isinstance(room, Part) else 0 for room in rooms]
            kernel = self._kernel_on("run_part", rooms[0], rooms[-1])
            rows = self._rows(at[0], at[-1], 0)
            return self.launch(kernel, 1, visit, rows, after=after)

        self.memory.launch_on_all(block, launch)


def open_program(
    plan: Plan, device: OpenCLDevice, graph: PlacedGraph, costs: ProgramCosts
) -> DeviceProgram:
    """Compile a program with one launch for many iterations, or else with one per phase."""
    if device.info.may_run_in_one_launch and not plan.counts:
        with suppress(DeviceError):
            return OneLaunch(plan, device, graph, costs)
    return program_in_phases(plan, device, graph, costs)


def program_in_phases(
    plan: Plan, device: OpenCLDevice, graph: PlacedGraph, costs: ProgramCosts
) -> DeviceProgram:
    """Compile a program with one launch per phase; stream the graph if it does not fit."""
    try:
        return DeviceProgram(plan, device, graph, costs)
    except BudgetError as error:
        if plan.collects:
            what = f"{plan.name} has {plan.collects}, and such programs do not stream"
            raise BudgetError(f"{error}; {what}") from None
        return StreamedProgram(plan, device, graph, costs)


def sweeps_on(
    plan: Plan, device: OpenCLDevice, graph: ArrangedGraph, costs: ProgramCosts
) -> DeviceSweeps:
    """Compile a program for sweeps on a device; stream the graph if it does not fit."""
    try:
        return DeviceSweeps(plan, device, graph, costs)
    except BudgetError:
        return StreamedSweeps(plan, device, graph, costs)


class StreamedBuiltIn:
    """Runs of one program on a device, compiled once for each set of types."""

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        self.graph = graph
        self.placed = PlacedGraph(graph)
        self._device = open_device(graph.num_vertices, info)
        self._programs: dict[Any, DeviceProgram] = {}

    @property
    def device_name(self) -> str:
        return self._device.device_name

    def run_program(
        self, program: Program, parameters: dict[str, Any], max_iterations: int | None
    ) -> Run:
        given = Parameters.of(parameters, self.graph.num_vertices)
        plan = Plan.of(program, given, self.placed.weight_type)
        key = tuple(given.sources.items())
        if key not in self._programs:
            costs = first_guess("device", 1)
            self._programs[key] = program_in_phases(plan, self._device, self.placed, costs)
        limits = RunOptions(max_iterations).limits(self.placed.usual_step)
        return self._programs[key].run(plan, limits)
