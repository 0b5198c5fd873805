"""A vertex program on an OpenCL device that cannot hold the graph: blocks of it are sent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.opencl_device import VARIES, BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl.streamed_lists import StreamedRun
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs.device import DeviceProgram, open_device
from hetero_bfs.programs.options import Limits, RunOptions
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.renumbered import PlacedGraph, Run
from hetero_bfs.programs.schema import Mode
from hetero_bfs.scheduling.speed_model import ProgramCosts, first_guess


class InBlocks(StreamedRun, DeviceProgram):
    """A `DeviceProgram` with CSR arrays in a `BlockMemory`."""

    keeps_order: ClassVar = False

    def start(self, plan: Plan, limits: Limits) -> int:
        self.memory.take()
        return super().start(plan, limits)

    def forward(self) -> list[Any]:
        """Return the arguments GRAPH of kernels that do not read neighbour lists."""
        return [self.offsets(0), self._nothing, self._nothing, *self.sizes()]


class StreamedProgram(InBlocks):
    """A `DeviceProgram` whose vertex arrays and a few blocks of CSR arrays fit on the device.

    The device decides the next step, as in `DeviceProgram`. In each iteration the host reads which
    blocks it needs, sends those that are not resident, and launches the kernels for
    each part. Raises `BudgetError` if vertex arrays and a few blocks do not fit.
    """

    def _bind_expand(self) -> None:
        """Bind the kernels that choose blocks, and allocate memory for the blocks."""
        heavy = min(device_run._HEAVY_EDGES, device_run.long_pull(self.device.info))
        self.note_long_lists(heavy)
        self._slots = self.make_slots()
        bind, program = self.device.bind, self._program
        self._choose = bind(
            program, "choose_blocks", self.marks_buffer, np.uint32(self.marks.size - 1),
            *self.forward(), self.offsets(-1), *self.arrays(),
        )  # fmt: skip
        self._end_part = bind(program, "end_part", VARIES, self.shared["counters"])
        self._batch = self._most_batch = 1
        self.memory.take()

    def _bind_room(self, way: int, buffers: list[Any]) -> tuple[BoundKernel, BoundKernel]:
        rows, *lists = buffers
        lists = [*lists, self._nothing][:2]
        arguments = [
            self.offsets(0), *lists, *self.sizes(), self.offsets(-1), *lists, rows, VARIES,
            *self._slots, *self.arrays(),
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
