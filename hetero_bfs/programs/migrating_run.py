"""A vertex program whose run migrates between the host and a device, between iterations.

Each place runs iterations in compiled code or in launches, until it migrates (program_decision.py)
or a stay of a schedule ends. Then it packs the state that the other place needs (device_stay.py).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.thread_pool import BLOCK, BLOCK_ORDER, BLOCK_SIZES
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.device_stay import (
    DeviceStay,
    Handover,
    Packing,
    VertexSet,
    bitmap_words,
    crosses_whole,
)
from hetero_bfs.programs.host import HostProgram
from hetero_bfs.programs.kernels import loop
from hetero_bfs.programs.options import Limits
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import Record, Run
from hetero_bfs.scheduling.program_decision import (
    CHANGES_PER_EDGE,
    LOST,
    MIGRATION,
    NUM_CHANGED,
    NUM_DIRECTION_COSTS,
    ProgramEstimates,
    lone_costs,
)
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind

_NO_ITEMS = np.empty(0, np.uint32)


class HostStay:
    """One run's stays on the host.

    `program` is neither monotone nor in sweeps. `costs` is a float64 array in the layout of
    program_decision.py, with the costs on the host first, then those on the device.
    """

    def __init__(
        self, program: HostProgram, plan: Plan, limits: Limits, costs: npt.NDArray[np.float64]
    ) -> None:
        self._program, self._plan = program, plan
        self._fields, self._searched = program.fields, program.graph.num_searched
        self._words = self._fields["loop"]
        program.start(plan, limits)
        self._words[loop.TRACKS] = not plan.all_active
        self._fields["changed"][:] = 0
        self._fields["costs"][:] = costs
        self._has_begun = False

    def run_on(self, max_iterations: int, first: int) -> tuple[int, bool, list[Record]]:
        self._words[loop.RESUMES] = self._has_begun
        self._has_begun = True
        return self._program.run_on(max_iterations, first)

    def leave(self) -> Handover:
        words, fields = self._words, self._fields
        changed, values = self._changed()
        return Handover(
            int(words[loop.ITERATION]), int(words[loop.NUM_ACTIVE]),
            int(words[loop.LISTED_EDGES]), int(words[loop.EXPECTED_RECEIVERS]),
            float(fields["costs"][CHANGES_PER_EDGE]),
            float(fields["limits"][loop.END]), float(fields["lowest"][:, 0].min()),
            fields["totals"], self._active(), self._waiting(), changed, values,
        )  # fmt: skip

    def _side(self, which: int) -> int:
        """Return which array of a double-buffered pair is read next."""
        return int(self._program.control[loop.SIDES]) >> which & 1

    def _active(self) -> VertexSet:
        words, fields = self._words, self._fields
        if self._plan.all_active:
            return VertexSet.of_list(_NO_ITEMS, self._searched)
        if words[loop.IS_MARKED]:
            bitmap = fields["active"][self._side(loop.ACTIVE)].view(np.uint32)
            return VertexSet.of_bitmap(
                bitmap[: bitmap_words(self._searched)], int(words[loop.LISTED]), self._searched
            )
        listed = fields["next"][self._side(loop.NEXT)]
        items = _of_blocks(listed, fields["next_blocks"], int(words[loop.BLOCKS]))
        return VertexSet.of_list(items, self._searched)

    def _waiting(self) -> VertexSet:
        if "priority" not in self._plan.methods:
            return VertexSet.of_list(_NO_ITEMS, self._searched)
        waiting = self._fields["waiting"] == loop.WAITING
        return VertexSet.of_list(np.flatnonzero(waiting).astype(np.uint32), self._searched)

    def _changed(self) -> tuple[npt.NDArray[np.uint32] | None, dict[str, npt.NDArray[Any]]]:
        state, n = self._program.read_states(), self._program.graph.num_vertices
        item_bytes = sum(array.itemsize for array in state.values())
        if self._plan.all_active:
            return None, state
        changed = np.flatnonzero(self._fields["changed"].view(np.bool_))
        self._fields["changed"][changed] = 0
        if crosses_whole(changed.size, n, item_bytes):
            return None, state
        return changed.astype(np.uint32), {name: a[changed] for name, a in state.items()}

    def enter(self, handover: Handover) -> None:
        if not self._has_begun:
            self.run_on(0, 0)  # only makes the initial states
        for name, array in self._program.read_states().items():
            where = slice(None) if handover.changed is None else handover.changed
            array[where] = handover.values[name]
        words, fields = self._words, self._fields
        words[loop.ITERATION], words[loop.NUM_ACTIVE] = handover.iteration, handover.num_active
        words[loop.LISTED_EDGES] = handover.edges
        words[loop.EXPECTED_RECEIVERS], words[loop.IS_MARKED] = handover.receivers, 0
        fields["limits"][loop.END] = handover.bucket_end
        fields["lowest"][:, 0] = np.inf
        fields["lowest"][0, 0] = handover.lowest
        fields["totals"][: handover.totals.size] = handover.totals
        self._enter_lists(handover)
        fields["costs"][[LOST, NUM_CHANGED]] = 0.0
        fields["costs"][CHANGES_PER_EDGE] = handover.changes_per_edge

    def _enter_lists(self, handover: Handover) -> None:
        words, fields = self._words, self._fields
        self._program.control[loop.SIDES] = 0
        fields["counters"][:], fields["cursor"][:] = 0, 0
        items = handover.active.listed()
        fields["next"][0][: items.size] = items
        words[loop.BLOCKS] = _write_blocks(fields["next_blocks"], items.size)
        words[loop.LISTED] = items.size
        if "priority" not in self._plan.methods:
            return
        items = handover.waiting.listed()
        fields["far"][1][: items.size] = items
        fields["waiting"][:] = loop.NOT_LISTED
        fields["waiting"][items] = loop.WAITING
        blocks = -(-items.size // BLOCK)
        fields["counters"][loop.FAR, 0] = blocks  # the first thread owns all of them
        fields["owners"][loop.FAR, :blocks] = 0
        fields["cursor"][0, loop.FAR] = items.size

    def close(self) -> None:
        """Reset the program for runs that stay on the host."""
        self._words[:] = 0
        self._fields["costs"][MIGRATION] = np.inf


def _write_blocks(blocks: npt.NDArray[np.int32], items: int) -> int:
    """Write sizes and order of consecutive blocks that hold `items`; return their number."""
    count = -(-items // BLOCK)
    blocks[BLOCK_SIZES, :count] = BLOCK
    if items % BLOCK:
        blocks[BLOCK_SIZES, count - 1] = items % BLOCK
    blocks[BLOCK_ORDER, :count] = np.arange(count)
    return count


def _of_blocks(
    items: npt.NDArray[np.uint32], blocks: npt.NDArray[np.int32], count: int
) -> npt.NDArray[np.uint32]:
    """Concatenate the items of the first `count` blocks."""
    used = np.arange(BLOCK) < blocks[BLOCK_SIZES, :count, None]
    found: npt.NDArray[np.uint32] = items[: count * BLOCK].reshape(count, BLOCK)[used]
    return found


class MigratingProgram:
    """A program compiled for both places, whose runs may migrate."""

    def __init__(
        self, host: HostProgram, device: DeviceProgram, estimates: ProgramEstimates
    ) -> None:
        self._host, self._device, self.estimates = host, device, estimates
        self.graph = host.graph
        self._packing: Packing | None = None

    def learn(self, place: str, run: Run) -> None:
        if place == "device":
            self.estimates.learn_device(sum(record[3] for record in run.records))
        elif place == "cpu":
            rows, costs = self._host.records[: run.iterations], self._host.fields["costs"]
            self.estimates.learn_host(costs, rows[:, loop.SENDERS :], rows[:, loop.SECONDS])

    def run(self, plan: Plan, limits: Limits) -> Run:
        if self._packing is None:
            self._packing = Packing(self._device)
        costs = {place: self.estimates.costs(place) for place in DEVICE_KINDS}
        if limits.places:
            costs = {p: lone_costs(each[:NUM_DIRECTION_COSTS]) for p, each in costs.items()}
        host = HostStay(self._host, plan, limits, costs["cpu"])
        try:
            device = DeviceStay(self._device, self._packing, plan, limits, costs["device"])
            return self._run_stays(host, device, limits)
        finally:
            host.close()

    def _run_stays(self, host: HostStay, device: DeviceStay, limits: Limits) -> Run:
        stays: dict[DeviceKind, HostStay | DeviceStay] = {"cpu": host, "device": device}
        records: list[Record] = []
        done, migrated_bytes = 0, 0
        left: DeviceKind | None = None
        while True:
            place, end = _next_stay(limits, done, left)
            here, migration = stays[place], None
            if left is not None:  # it is the other place
                migration = self._migrate(stays[left], here, place)
                migrated_bytes += migration[0]
            done, converged, more = here.run_on(end, done)
            if migration and more:
                more[0] = (*more[0], *migration)
            records += more
            if converged or done >= limits.max_iterations:
                program = self._host if place == "cpu" else self._device
                return Run(
                    program.read_states(), done, converged, program.read_totals(), records,
                    device.streamed_bytes, migrated_bytes,
                )  # fmt: skip
            left = place

    def _migrate(
        self, here: HostStay | DeviceStay, there: HostStay | DeviceStay, place: DeviceKind
    ) -> tuple[int, float]:
        """Move a run to another place; return the bytes moved and the seconds."""
        began = time.perf_counter()
        handover = here.leave()
        there.enter(handover)
        seconds = time.perf_counter() - began
        self.estimates.learn_migration(place, handover.num_bytes, seconds)
        return handover.num_bytes, seconds


def _next_stay(limits: Limits, iteration: int, left: DeviceKind | None) -> tuple[DeviceKind, int]:
    """Return the place where a run continues, and the iteration before which it leaves.

    `left` is the place that the run left.
    """
    places, limit = limits.places, limits.max_iterations
    if not places:  # a run begins on the host
        return "device" if left == "cpu" else "cpu", limit
    at = min(iteration, len(places) - 1)
    end = next((i for i in range(at, len(places)) if places[i] != places[at]), None)
    return places[at], limit if end is None else min(end, limit)
