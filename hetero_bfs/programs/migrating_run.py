"""A vertex program whose run migrates between the host and a device, between iterations.

Each place runs iterations in compiled code or in launches, until its rule migrates the run
(program_rule.py) or a stay of a schedule ends. Then it packs the state that the other place needs
(handover.py).
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

from hetero_bfs.errors import GridStalledError
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.device_stay import DeviceStay, Packing
from hetero_bfs.programs.handover import Handover
from hetero_bfs.programs.host import HostProgram
from hetero_bfs.programs.host_stay import HostStay
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import Record, Run
from hetero_bfs.scheduling.program_costs import NUM_DIRECTION_COSTS, lone_costs
from hetero_bfs.scheduling.program_estimates import ProgramEstimates
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind


class _Stay(NamedTuple):
    """The place where a run continues, and the iteration before which it leaves."""

    place: DeviceKind
    end: int


class MigratingProgram:
    """A program compiled for both places, whose runs may migrate."""

    def __init__(
        self, host: HostProgram, device: DeviceProgram, estimates: ProgramEstimates
    ) -> None:
        self._host, self._device, self.estimates = host, device, estimates
        self.graph = host.graph
        self._packing: Packing | None = None

    def run(self, plan: Plan, limits: Limits) -> Run:
        try:
            return self._run(plan, limits)
        except GridStalledError:
            self._packing = None
            self._device.after_stall()
            return self._run(plan, limits)

    def learn(self, place: str, run: Run) -> None:
        if place == "device":
            self.estimates.learn_device(sum(record[3] for record in run.records))
        elif place == "cpu":
            self._learn_host(run)

    def _learn_host(self, run: Run) -> None:
        from hetero_bfs.programs.kernels import loop

        rows = self._host.records[: run.iterations]
        directions = self._host.fields["costs"]
        self.estimates.learn_host(directions, rows[:, loop.SENDERS :], rows[:, loop.SECONDS])

    def _run(self, plan: Plan, limits: Limits) -> Run:
        run = _MigratingRun(self, plan, limits)
        try:
            return run.run()
        finally:
            run.host.close()

    def make_stays(self, plan: Plan, limits: Limits) -> tuple[HostStay, DeviceStay]:
        device = self._device.current
        if self._packing is None:
            self._packing = Packing(device)
        costs = {place: self.estimates.costs(place) for place in DEVICE_KINDS}
        if limits.places:
            costs = {p: lone_costs(each[:NUM_DIRECTION_COSTS]) for p, each in costs.items()}
        host = HostStay(self._host, plan, limits, costs["cpu"])
        try:
            return host, DeviceStay(device, self._packing, plan, limits, costs["device"])
        except BaseException:
            host.close()
            raise


class _Place(Protocol):
    def run_on(self, max_iterations: int, first: int) -> tuple[int, bool, list[Record]]: ...
    def leave(self) -> Handover: ...
    def enter(self, handover: Handover) -> None: ...
    def state(self) -> dict[str, npt.NDArray[Any]]: ...
    def totals(self) -> dict[str, float]: ...


class _MigratingRun:
    def __init__(self, program: MigratingProgram, plan: Plan, limits: Limits) -> None:
        self._estimates, self._limits = program.estimates, limits
        self.host, self._device = program.make_stays(plan, limits)
        self._stays: dict[DeviceKind, _Place] = {"cpu": self.host, "device": self._device}
        self._records: list[Record] = []
        self._migrated_bytes = 0

    def _next_stay(self, iteration: int, left: DeviceKind | None) -> _Stay:
        """Return the next stay, from `iteration`; `left` is the place that the rule left."""
        limits = self._limits
        places, limit = limits.places, limits.max_iterations
        if not places:  # a run begins on the host
            return _Stay("device" if left == "cpu" else "cpu", limit)
        at = min(iteration, len(places) - 1)
        end = next((i for i in range(at, len(places)) if places[i] != places[at]), None)
        return _Stay(places[at], limit if end is None else min(end, limit))

    def run(self) -> Run:
        done = 0
        place: DeviceKind | None = None
        while True:
            stay = self._next_stay(done, place)
            migration = self._migrate(place, stay.place)
            place, here = stay.place, self._stays[stay.place]
            done, converged, records = here.run_on(stay.end, done)
            if migration and records:
                records[0] = (*records[0], *migration)
            self._records += records
            if converged or done >= self._limits.max_iterations:
                return Run(
                    here.state(), done, converged, here.totals(), self._records,
                    self._device.streamed_bytes, self._migrated_bytes,
                )  # fmt: skip

    def _migrate(self, place: DeviceKind | None, there: DeviceKind) -> tuple[int, float] | None:
        if place is None or place == there:
            return None
        began = time.perf_counter()
        handover = self._stays[place].leave()
        self._stays[there].enter(handover)
        num_bytes, seconds = handover.num_bytes, time.perf_counter() - began
        self._estimates.learn_migration(there, num_bytes, seconds)
        self._migrated_bytes += num_bytes
        return num_bytes, seconds
