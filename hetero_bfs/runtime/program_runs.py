"""Vertex programs on a graph that is ready to search: compiled once, run often."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import numpy as np

from hetero_bfs.algorithms.iterations import IterationTrace
from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.errors import ArgumentError, DeviceError, ModelError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs.device_run import DeviceGraph, DeviceProgram
from hetero_bfs.programs.host_code import host_text
from hetero_bfs.programs.host_run import HostProgram
from hetero_bfs.programs.placed import PlacedGraph
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.program_result import ProgramResult
from hetero_bfs.programs.run_options import RunOptions
from hetero_bfs.programs.typed_program import Parameters, Plan
from hetero_bfs.runtime.analysis import Analysis
from hetero_bfs.runtime.places import Place, Places
from hetero_bfs.selection.named_selectors import model_of
from hetero_bfs.selection.program_costs import ProgramCosts, first_guess
from hetero_bfs.selection.speed_model import SpeedModel
from hetero_bfs.support.checks import check_type


class _Compiled:
    """A program compiled for the places where it can run."""

    def __init__(self, plan: Plan, host: HostProgram, device: DeviceProgram | None) -> None:
        self.plan = plan
        self.on: dict[Place, HostProgram | DeviceProgram] = {"cpu": host}
        if device is not None:
            self.on["device"] = device
        self.places = Places(list(self.on))


class _Threads:
    """What runs programs on the host: it starts threads for each program."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.programs: list[HostProgram] = []

    def compile(self, plan: Plan, graph: PlacedGraph, costs: ProgramCosts) -> HostProgram:
        """Compile a program."""
        self.programs.append(HostProgram(plan, graph, self.threads, costs))
        return self.programs[-1]

    def close(self) -> None:
        """End the threads."""
        while self.programs:
            self.programs.pop().close()


class ProgramRuns(Analysis):
    """Runs of vertex programs on one graph; see `Analysis`."""

    what = "vertex programs"

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.placed = PlacedGraph(graph)
        self._programs: dict[Any, _Compiled] = {}
        self._model: SpeedModel | None = None
        with suppress(ModelError):  # the engine's searches say what is wrong with it
            self._model = model_of(device)
        super().__init__(graph, threads, device)

    def _make_host(self, threads: int) -> _Threads:
        return _Threads(threads)

    def _make_device(self, info: DeviceInfo) -> DeviceGraph:
        return DeviceGraph(self.placed, info)

    def _compiled(self, plan: Plan) -> _Compiled:
        key = host_text(plan), plan.along, tuple(plan.parameters.sources.items())
        if key not in self._programs:
            graph = self.placed.along(plan.along)
            host = self.host.compile(plan, graph, self._costs(plan, "cpu"))
            device = None
            if self.device is not None:
                try:
                    costs = self._costs(plan, "device")
                    device = DeviceProgram(plan, self.device, graph, costs)
                except DeviceError as error:
                    self.notes.append(f"{plan.name} runs on the CPU only: {error}")
            self._programs[key] = _Compiled(plan, host, device)
        return self._programs[key]

    def _costs(self, plan: Plan, place: Place) -> ProgramCosts:
        """Return what training found for such programs, or a first guess."""
        table = (self._model and self._model.programs) or {}
        costs = table.get(place, {}).get(plan.message_kind)
        return costs or first_guess(place, self.host.threads)

    def close(self) -> None:
        """End the threads, and let go of the device."""
        self._programs.clear()
        super().close()

    def run(
        self, program: Program, parameters: dict[str, Any], options: RunOptions
    ) -> ProgramResult:
        """Run a program; see `Engine.run`."""
        check_type("program", program, Program, "an object of a class derived from hb.Program")
        check_type("options", options, RunOptions, "hb.RunOptions(...)")
        given = Parameters.of(parameters, self.graph.num_vertices)
        plan = Plan(program, given, self.placed.weight_type)
        endless = plan.all_active and "finished" not in plan.methods
        if endless and options.max_iterations is None:
            raise ArgumentError(
                f"{plan.name} has all vertices active and no method finished; give "
                "RunOptions(max_iterations=...)"
            )
        compiled = self._compiled(plan)
        place = compiled.places.choose() if options.place == "auto" else options.place
        if place not in compiled.on:
            raise DeviceError(f"{plan.name}: no OpenCL device is in use that can run it")
        began = time.perf_counter()
        run = compiled.on[place].run(plan, options.limits(self.placed.usual_step))
        seconds = time.perf_counter() - began
        compiled.places.note(place, seconds)
        names, state = self.placed.names, {}
        for name, array in run.state.items():
            state[name] = np.empty_like(array)
            state[name][names] = array
        traces = [IterationTrace(i, *record) for i, record in enumerate(run.records)]
        converged = run.converged or endless
        return ProgramResult(state, seconds, run.iterations, converged, run.totals, traces)
