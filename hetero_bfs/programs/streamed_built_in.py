"""Runs of one built-in program on a device without room for the lists, which stream."""

from __future__ import annotations

from typing import Any

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs.device import DeviceProgram, open_device
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.placed import PlacedGraph, Run
from hetero_bfs.programs.plan import Parameters, Plan
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.streamed import program_in_phases
from hetero_bfs.scheduling.program_costs import first_guess


class StreamedBuiltIn:
    """Runs of one program on a device, compiled once for each set of types."""

    def __init__(self, graph: SearchGraph, info: DeviceInfo) -> None:
        self.graph = graph
        self.placed = PlacedGraph(graph)
        self._device = open_device(graph.num_vertices, info)
        self._programs: dict[Any, DeviceProgram] = {}

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self._device.device_name

    def run_program(
        self, program: Program, parameters: dict[str, Any], max_iterations: int | None
    ) -> Run:
        """Run the program with these parameters."""
        given = Parameters.of(parameters, self.graph.num_vertices)
        plan = Plan(program, given, self.placed.weight_type)
        key = tuple(given.sources.items())
        if key not in self._programs:
            costs = first_guess("device", 1)
            self._programs[key] = program_in_phases(plan, self._device, self.placed, costs)
        limits = RunOptions(max_iterations).limits(self.placed.usual_step)
        return self._programs[key].run(plan, limits)
