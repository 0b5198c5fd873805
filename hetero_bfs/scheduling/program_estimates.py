"""Estimated costs of a vertex program's iterations on both places, learned from its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling import program_costs
from hetero_bfs.scheduling.program_costs import NUM_DIRECTION_COSTS, MigrationCosts, RunSizes
from hetero_bfs.scheduling.speed_model import ProgramCosts
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind

_ITERATION_SECONDS: dict[DeviceKind, float] = {"cpu": 5e-6, "device": 25e-6}
"""First guess for an iteration with almost no work; 23 us on an H200 in one launch."""

_MARGIN = 0.1
"""Share of a run's time that migrations must be expected to save before they are tried."""

_LEARNING = 0.5
"""Weight of the latest migration in the estimated latency."""


class ProgramEstimates:
    """Costs of iterations on both places, and of the migrations between them.

    `migrations` has the costs of a migration to each place.
    """

    def __init__(
        self, run: RunSizes, costs: Mapping[DeviceKind, ProgramCosts],
        migrations: Mapping[DeviceKind, MigrationCosts],
    ) -> None:  # fmt: skip
        self._run, self._migrations = run, dict(migrations)
        self._num_migrations = dict.fromkeys(DEVICE_KINDS, 0)
        self._costs = {
            place: np.array([*astuple(costs[place]), _ITERATION_SECONDS[place]])
            for place in DEVICE_KINDS
        }
        self._known, self._host_seconds = np.empty((0, 4)), np.empty(0)
        self._device_seconds = 0.0

    def costs(self, place: DeviceKind) -> npt.NDArray[np.float64]:
        """Return the costs of a stay on a place, and of the migration to the other one."""
        other: DeviceKind = "device" if place == "cpu" else "cpu"
        migration, words = self._migrations[other], -(-self._run.num_searched // 32)
        costs = program_costs.lone_costs([*self._costs[place], *self._costs[other]])
        costs[program_costs.MIGRATION] = migration.seconds
        costs[program_costs.LISTED_VERTEX] = 4 * migration.byte_seconds
        costs[program_costs.BITMAP] = 4 * words * migration.byte_seconds
        if other == "device":  # the host gets the states at the end of the run in any case
            costs[program_costs.CHANGED_VERTEX] = (
                4 + self._run.item_bytes
            ) * migration.byte_seconds
            costs[program_costs.ALL_STATES] = (
                self._run.num_vertices * self._run.item_bytes * migration.byte_seconds
            )
        return costs

    def learn_host(
        self, directions: npt.NDArray[np.float64], known: npt.NDArray[np.float64],
        seconds: npt.NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Learn from a run on the host: its corrected costs, and its iterations.

        `known` has the numbers known before each iteration (`expect_iterations`).
        """
        if not seconds.size:
            return
        own = self._costs["cpu"]
        own[:NUM_DIRECTION_COSTS] = directions[:NUM_DIRECTION_COSTS]
        own[program_costs.ITERATION_COST] = seconds.min()
        self._known, self._host_seconds = known.copy(), seconds.copy()

    def learn_device(self, seconds: float) -> None:
        """Learn from a run on the device, with the same iterations as on the host.

        If it took longer than the formula predicts, the difference is divided equally among its
        iterations. If it took less, all costs of the formula are scaled down.
        """
        self._device_seconds = seconds
        count = self._host_seconds.size
        if not count:
            return
        own = self._costs["device"]
        own[program_costs.ITERATION_COST] = 0.0
        expected = float(self._expected("device").sum())
        if expected > seconds:
            own *= seconds / expected
        own[program_costs.ITERATION_COST] = max(seconds - expected, 0.0) / count

    def learn_migration(self, place: DeviceKind, num_bytes: int, seconds: float) -> None:
        """Learn from a migration to a place; the first one is ignored, as it compiles kernels."""
        self._num_migrations[place] += 1
        if self._num_migrations[place] > 1:
            migration = self._migrations[place]
            latency = max(seconds - num_bytes * migration.byte_seconds, 0.0)
            latency = migration.seconds + _LEARNING * (latency - migration.seconds)
            self._migrations[place] = MigrationCosts(latency, migration.byte_seconds)

    def expected_run(self) -> dict[DeviceKind, float]:
        """Return the seconds of the latest run of the host on each place; empty before it."""
        if not self._host_seconds.size:
            return {}
        return {place: float(self._expected(place).sum()) for place in DEVICE_KINDS}

    def _expected(self, place: DeviceKind) -> npt.NDArray[np.float64]:
        from hetero_bfs.scheduling.program_rule import expect_iterations

        seconds = np.empty(self._host_seconds.size)
        expect_iterations(
            program_costs.lone_costs(self._costs[place]), self._known,
            (self._run.num_searched, self._run.num_stored_edges), self._run.has_identity, seconds,
        )  # fmt: skip
        return seconds

    def may_pay(self) -> bool:
        """Tell whether a run may gain from taking the faster place in each iteration."""
        if not self._device_seconds or not self._host_seconds.size or self._run.all_active:
            return False
        here, there = self._host_seconds, self._expected("device")
        alone = min(here.sum(), there.sum())
        migrating = min(migration.seconds for migration in self._migrations.values())
        return bool(np.minimum(here, there).sum() + migrating < (1.0 - _MARGIN) * alone)
