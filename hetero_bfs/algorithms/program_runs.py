"""Runs of vertex programs on a prepared graph. Each program is compiled once."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Prepared
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.colouring.check import check_colouring
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import ArgumentError, DeviceError, GridStalledError, ModelError
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.programs.codegen.host_code import code_key
from hetero_bfs.programs.device import DeviceProgram, open_device
from hetero_bfs.programs.device_forms import open_program, program_in_phases, sweeps_on
from hetero_bfs.programs.device_sweeps import heavy_edges
from hetero_bfs.programs.host import HostProgram, HostSweeps
from hetero_bfs.programs.migrating_run import MigratingProgram
from hetero_bfs.programs.options import MODES, ModeName, RunOptions, Where
from hetero_bfs.programs.parameters import Parameters, checked_edges
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.program import Program
from hetero_bfs.programs.renumbered import ArrangedGraph, PlacedGraph, Run, by_colour, by_level
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.program_decision import MigrationCosts, ProgramEstimates, RunSizes
from hetero_bfs.scheduling.run_chooser import RunChooser
from hetero_bfs.scheduling.speed_model import ProgramCosts, SpeedModel, first_guess
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.support.checks import check_type, numbers_of_vertices

_IDEMPOTENT = ("minimum", "maximum", "bitwise_or", "any_one")
"""Operations whose result stays the same if a message arrives twice."""

_MOST_ROOTS = 4
"""Most roots whose arranged graphs are kept."""


_Key = tuple[Any, ...]
"""Of programs, which share their compiled code if keys are equal, or of arranged graphs."""


class _Compiled:
    def __init__(
        self, host: HostProgram, device: DeviceProgram | None, both: MigratingProgram | None
    ) -> None:
        self.host, self.both = host, both
        forms: dict[Where, Any] = {"cpu": host, "device": device, "both": both}
        self.on = {place: one for place, one in forms.items() if one is not None}

    def places(self, options: RunOptions) -> list[Where]:
        """Return the places that the options allow; "both" by default only if it may pay."""
        wanted = options.where
        pays = self.both is not None and self.both.estimates.may_pay()
        allowed = [place for place in self.on if wanted in ("auto", place)]
        return [place for place in allowed if place != "both" or pays or wanted == "both"]

    def leave_device(self) -> None:
        self.both, self.on = None, {"cpu": self.host}


class _Mode:
    """The graph arranged for a mode, and the programs compiled for it."""

    def __init__(
        self, key: _Key, graph: PlacedGraph, colour: npt.NDArray[Any] | None = None
    ) -> None:
        self.key, self.graph = key, graph
        self.name: ModeName = key[0]
        self.colour: Any = colour
        """The caller's colouring."""
        self.programs: dict[Any, _Compiled] = {}
        self.forms: tuple[Any, Any] = HostProgram, open_program
        """The compilers of a program for the host, and for a device."""
        if isinstance(graph, ArrangedGraph):
            self.forms = HostSweeps, sweeps_on

    def close(self) -> None:
        while self.programs:
            self.programs.popitem()[1].host.close()


class _Threads:
    """The host's executor. It has no threads of its own: each program starts that many."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def close(self) -> None:
        """Do nothing: the modes end the threads of their programs."""


class ProgramRuns(Prepared[ProgramResult]):
    """Runs of vertex programs on one graph; see `Prepared`.

    If `clocked` is set, runs are clocked (`Limits`). `choosing_seconds` is the time that the latest
    run took to choose its place, and on the host its directions.
    """

    what = "vertex programs"

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.placed = PlacedGraph(graph)
        self._model: SpeedModel | None = None
        with suppress(ModelError):  # the engine's searches report the fault
            self._model = model_of(device)
        super().__init__(graph, threads, device)
        _ = self.device  # each program is compiled for both places
        self.clocked, self.choosing_seconds = False, 0.0
        self._modes: dict[_Key, _Mode] = {}
        self._trials: dict[_Key, RunChooser[tuple[ModeName, Where]]] = {}

    def _make_host(self, threads: int) -> _Threads:
        return _Threads(threads)

    def _make_device(self, info: DeviceInfo) -> OpenCLDevice:
        return open_device(self.graph.num_vertices, info)

    def _mode(self, mode: ModeName, options: RunOptions, plan: Plan) -> _Mode:
        """Return the graph arranged for a mode; arrange it at the first call."""
        placed = self.placed.along(plan.along)
        if plan.collects:
            placed = placed.whole
        root = options.root if mode == "layered" else None
        colour: Any = None if options.colour is None else np.asarray(options.colour)
        key = mode, root, placed.way, bool(plan.collects)
        kept = self._modes.get(key)
        if kept is not None and np.array_equal(kept.colour, colour):
            self._modes[key] = self._modes.pop(key)  # move to the end: the latest
            return kept
        if mode == "synchronous":
            self._modes[key] = _Mode(key, placed)
            return self._modes[key]
        heavy = 0 if self.device is None else heavy_edges(self.device.info)
        if root is not None:
            layered = [other for other in self._modes if other[0] == "layered"]
            if len(layered) == _MOST_ROOTS:
                self._forget(layered[0])
            graph = by_level(placed, root, heavy)
        else:
            colours = self._colours(colour)
            if kept is not None:  # with another colouring
                self._forget(key)
            graph = by_colour(placed, colours, heavy)
        self._modes[key] = _Mode(key, graph, None if colour is None else colour.copy())
        return self._modes[key]

    def _forget(self, kept: _Key) -> None:
        """Drop the graph of a root or a colouring, its programs and their trials."""
        self._modes.pop(kept).close()
        self._trials = {key: one for key, one in self._trials.items() if kept not in key[1]}

    def _colours(self, given: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Return the colour of each vertex, in the caller's ids."""
        if given is not None:
            given = numbers_of_vertices("colour", given, self.graph.num_vertices)
            searched = given[self.placed.names[: self.graph.num_searched]]
            if not check_colouring(self.graph.graph, searched).valid:
                raise ArgumentError(
                    "colour is not a colouring of this graph; hb.check_colouring says why, and "
                    "hb.colour(graph, start=colour) makes one of it"
                )
            return np.unique(given, return_inverse=True)[1]
        with Colourings(self.graph, self.host.threads) as colourings:
            return colourings.run(place="cpu").colour

    def _compiled(self, plan: Plan, key: _Key, mode: _Mode) -> _Compiled:
        if key not in mode.programs:
            on_host, on_device = mode.forms
            host = on_host(plan, mode.graph, self.host.threads, self._costs(plan, "cpu"))
            device: DeviceProgram | None = None
            try:
                if self.device is not None:
                    costs = self._costs(plan, "device")
                    device = on_device(plan, self.device, mode.graph, costs)
            except DeviceError as error:
                of_mode = "" if mode.name == "synchronous" else f" in mode {mode.name!r}"
                self.notes.append(f"{plan.name}{of_mode} runs on the CPU only: {error}")
            mode.programs[key] = _Compiled(host, device, self._migrating(plan, host, device))
        return mode.programs[key]

    def _migrating(
        self, plan: Plan, host: HostProgram, device: DeviceProgram | None
    ) -> MigratingProgram | None:
        """Return the program that can migrate between host and device, or None."""
        if device is None or plan.stays or isinstance(host, HostSweeps):
            return None
        costs = {place: self._costs(plan, place) for place in DEVICE_KINDS}
        migrations = {place: MigrationCosts.to(place, self._model) for place in DEVICE_KINDS}
        graph = host.graph
        sizes = RunSizes(
            graph.num_vertices, graph.num_searched, graph.num_stored_edges,
            sum(np.dtype(kind).itemsize for kind in plan.fields.values()),
            plan.identity is not None, plan.all_active,
        )  # fmt: skip
        return MigratingProgram(host, device, ProgramEstimates(sizes, costs, migrations))

    def _costs(self, plan: Plan, place: DeviceKind) -> ProgramCosts:
        """Return the costs that training measured for the plan's message kind, or a first guess."""
        return self._trained_costs(plan, place) or first_guess(place, self.host.threads)

    def _trained_costs(self, plan: Plan, place: DeviceKind) -> ProgramCosts | None:
        table = (self._model and self._model.programs) or {}
        return table.get(place, {}).get(plan.message_kind)

    def _is_trained(self, plan: Plan) -> bool:
        """Tell whether the costs of the plan's message kind were measured on both places."""
        return all(self._trained_costs(plan, place) is not None for place in DEVICE_KINDS)

    def close(self) -> None:
        while self._modes:
            self._modes.popitem()[1].close()
        super().close()

    def run(
        self, program: Program, parameters: dict[str, Any], options: RunOptions
    ) -> ProgramResult:
        check_type("program", program, Program, "an object of a class derived from hb.Program")
        check_type("options", options, RunOptions, "hb.RunOptions(...)")
        given = Parameters.of(parameters, self.placed.num_vertices, program.edges)
        plan = Plan.of(program, given, self.placed.weight_type)
        if plan.edge_kinds:
            entries = self.graph.graph.num_stored_edges
            given.edges.update(checked_edges(parameters, plan.edge_kinds, entries))
        plan.check_end(options.max_iterations, "RunOptions(max_iterations=...)")
        if plan.stays and (options.schedule or options.where == "both"):
            raise ArgumentError(
                f"{plan.name} {plan.stays}, and such runs stay on one place and take no schedule; "
                'leave out schedule and place="both"'
            )
        if options.root is not None:
            check_vertex(options.root, self.graph.num_vertices)
        key = plan.once(code_key)
        modes = [self._mode(mode, options, plan) for mode in _modes_for(plan, options)]
        programs = {mode.name: self._compiled(plan, key, mode) for mode in modes}
        choices: list[tuple[ModeName, Where]] = [
            (mode, place) for mode, one in programs.items() for place in one.places(options)
        ]
        if not choices:
            raise DeviceError(f"{plan.name}: no OpenCL device is in use that can run it")
        kept = (
            key, tuple(mode.key for mode in modes), options.max_iterations, options.schedule,
            options.num_classes,
        )  # fmt: skip
        if kept not in self._trials:
            self._trials[kept] = RunChooser(alone=self.no_device)
        trials = self._trials[kept]
        limits = options.limits(self.placed.usual_step)._replace(clocked=self.clocked)
        chooses = time.perf_counter()
        choice = trials.choose(choices)
        mode, place = choice.option
        self.choice = None if options.where != "auto" else choice
        ready = programs[mode].on[place]
        run: Run | None = None
        began = time.perf_counter()
        try:
            run = ready.run(plan, limits)
        except GridStalledError:
            pass
        except DeviceError as error:
            if place == "cpu" or options.where != "auto":
                raise
            programs[mode].leave_device()
            self.notes.append(f"{plan.name} runs on the CPU from now on: {error}")
            return self.run(program, parameters, options)
        seconds = time.perf_counter() - began
        if run is None:  # free the device's memory, then use one launch per phase
            (stalled,) = [one for one in modes if one.name == mode]
            stalled.forms = HostProgram, program_in_phases
            stalled.programs.pop(key).host.close()
            del ready, programs
            return self.run(program, parameters, options)
        trials.learn((mode, place), seconds)
        self.choosing_seconds = began - chooses + run.choosing_seconds
        both = programs[mode].both
        if both is not None and not limits.pulls and not self.clocked:
            both.learn(place, run)
            if place == "cpu" and self._is_trained(plan):
                expected = both.estimates.expected_run()
                trials.expect({(mode, where): value for where, value in expected.items()})
        return _result(ready.graph, mode, run, seconds, run.converged or plan.is_endless)


def _result(
    graph: PlacedGraph, mode: ModeName, run: Run, seconds: float, converged: bool
) -> ProgramResult:
    """Return a run's result, its arrays in the order of the caller's ids and entries."""
    from hetero_bfs.graph.kernels.old_ids import by_old_ids

    names = graph.names
    state = {name: by_old_ids(a, names, names.size) for name, a in run.state.items()}
    edges = {}
    for name, written in run.edges.items():
        edges[name] = np.empty_like(written)
        edges[name][graph.entries["backward_"]] = written
    traces = [IterationTrace(i, *record) for i, record in enumerate(run.records)]
    return ProgramResult(
        state, seconds, run.iterations, converged, run.totals, traces, run.streamed_bytes,
        mode, run.migrated_bytes, edges,
    )  # fmt: skip


def _modes_for(plan: Plan, options: RunOptions) -> list[ModeName]:
    """Return the modes to try: that of the options, or for "auto" all that suit the program.

    Raises `ArgumentError` if the options' mode does not suit it.
    """
    if options.mode != "auto":
        if options.mode != "synchronous" and (reason := _why_not(plan, options.mode)):
            raise ArgumentError(f'{reason}; take mode "synchronous"')
        return [options.mode]
    if not plan.any_order or options.max_iterations is not None:
        return ["synchronous"]
    modes = [mode for mode in MODES if mode != "layered" or options.root is not None]
    return [mode for mode in modes if mode == "synchronous" or not _why_not(plan, mode)]


def _why_not(plan: Plan, mode: ModeName) -> str:
    """Say why states are wrong in a mode where messages may arrive twice, or early; "" if not."""
    operation, layered = plan.monoid.operation, mode == "layered"
    if plan.only_synchronous:
        return f"{plan.name} has {plan.only_synchronous}, which mode {mode!r} lacks"
    allowed = operation in _IDEMPOTENT or (operation == "plus" and plan.all_active)
    if allowed and not (layered and plan.all_active):
        return ""
    with_all = " with all_active" if plan.all_active else ""
    also = "without all_active" if layered else "and plus with all_active"
    return (
        f"{plan.name} combines by {operation}{with_all}; mode {mode!r} is for "
        f"{', '.join(_IDEMPOTENT)} {also}"
    )
