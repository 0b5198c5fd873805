"""Chooses the direction of a vertex program's iteration, and the place, by predicted seconds.

Of both directions the faster one runs. If their predictions are near, the measured seconds correct
the costs. `arrays` is the head of a run's struct (programs/kernels/loop.py).

A run does not know how many iterations remain. Before each iteration it adds the seconds predicted
here, minus those at the other place, to a sum that never falls below 0. It migrates once the sum
exceeds the seconds of a migration (the ski-rental rule: Karlin et al. 1988, "Competitive snoopy
caching"). So a single large iteration moves a run to the device at once. Many small ones move it
back, a few do not.

`costs` has the seconds of iterations on two places, and of migrations: one float array, indexed as
below, on the host and on a device. loop.cl calls the same functions. `ProgramEstimates` learns the
costs on both places from whole runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.scheduling.columns import found_share
from hetero_bfs.scheduling.speed_model import ProgramCosts, SpeedModel
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind
from hetero_bfs.support.compiling import kernel

PUSH_EDGE, PULL_VERTEX, PULL_EDGE, PULL_MISS, PUSH_VERTEX, PUSH_CHANGE, ITERATION_COST = range(7)
"""Seconds of an iteration's parts (speed_model.py explains them), and its constant seconds."""

NUM_DIRECTION_COSTS = 6

OTHER = 7
"""First of the same seven costs for the other place."""

MIGRATION, CHANGED_VERTEX, ALL_STATES, LISTED_VERTEX, BITMAP = range(14, 19)
"""Seconds of a migration: its latency (infinite if the run cannot migrate), and the transfers
(device_stay.py): per vertex whose state changed, for all states, per active vertex in a list, for a
bitmap."""

LOST, NUM_CHANGED, CHANGES_PER_EDGE = range(19, 22)
"""Seconds lost here so far. Number of active vertices so far, whose states may differ. Vertices
that the latest iteration made active, per edge of its senders."""

NUM_COSTS = 22

OPENCL = {"MIGRATION": MIGRATION, "CHANGES_PER_EDGE": CHANGES_PER_EDGE}
"""For loop.cl."""

_LATENCY_SECONDS, _BYTE_SECONDS = 150e-6, 1 / 5e9
"""First guesses for a machine without a trained model."""


def lone_costs(of_directions: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return costs for a run that cannot migrate."""
    costs = np.zeros(NUM_COSTS)
    costs[: len(of_directions)] = of_directions
    costs[MIGRATION], costs[CHANGES_PER_EDGE] = np.inf, 1.0
    return costs


class RunSizes(NamedTuple):
    """Sizes of a run: of the graph, and bytes of a vertex's state.

    `num_searched` vertices have edges. `has_identity` tells whether `combine` has an identity,
    `all_active` whether all vertices are active in each iteration.
    """

    num_vertices: int
    num_searched: int
    num_stored_edges: int
    item_bytes: int
    has_identity: bool
    all_active: bool


@dataclass(frozen=True)
class MigrationCosts:
    """Seconds of a migration to a place: latency, and per byte."""

    seconds: float
    byte_seconds: float

    @classmethod
    def to(cls, place: DeviceKind, model: SpeedModel | None) -> MigrationCosts:
        """Return the model's costs for searches, whose frontier has 4 bytes per vertex."""
        if model is None or place not in model.switch:
            return cls(_LATENCY_SECONDS, _BYTE_SECONDS)
        weights = model.switch[place].to_json()
        return cls(weights.get("constant", 0.0), weights.get("frontier_vertices", 0.0) / 4)


_LEAST_LEARNED = 20e-6  # seconds; shorter iterations do not correct costs
_RIVAL = 8.0  # ratio of predicted times below which both directions are rivals


@njit(inline="always")
def push_seconds(costs, place, senders, edges):
    of_edge = costs[place + PUSH_EDGE] + costs[CHANGES_PER_EDGE] * costs[place + PUSH_CHANGE]
    return senders * costs[place + PUSH_VERTEX] + edges * of_edge


@njit(inline="always")
def pull_seconds(costs, place, edges, receivers, searched, stored, has_identity):
    """Return the predicted seconds of a pull.

    `place` is 0 or OTHER. `edges` counts the active vertices' edges, `receivers` the expected
    receivers, `searched` the vertices with edges, `stored` all edges. Without an identity a pull
    ends with a vertex's first message, as in a random graph.
    """
    entries = max(stored, 1.0)
    degree, share = entries / max(searched, 1.0), min(edges / entries, 1.0)
    scans = receivers * degree
    if not has_identity:
        hit = min(max(edges, 1.0) / entries, 1.0)  # probability that a neighbour is active
        scans = receivers * min(degree, found_share(hit, degree) / hit)
    misses = scans * share * (1.0 - share)
    return (
        searched * costs[place + PULL_VERTEX]
        + scans * costs[place + PULL_EDGE]
        + misses * costs[place + PULL_MISS]
    )


@njit(inline="always")
def touches(edges, searched, stored):
    """Tell whether it is quicker to collect messages only where active vertices send some.

    Going along their edges finds these receivers, which then read their own lists.
    """
    return edges * (stored / max(searched, 1.0) + 1.0) < stored


@njit(inline="always")
def iteration_seconds(
    costs, place, direction, senders, edges, receivers, searched, stored, has_identity
):
    pushed = push_seconds(costs, place, senders, edges)
    pulled = pull_seconds(costs, place, edges, receivers, searched, stored, has_identity)
    best = min(pushed, pulled)
    chosen = pushed if direction == 1 else (pulled if direction == 2 else best)
    return costs[place + ITERATION_COST] + chosen


@njit(inline="always")
def seconds_to_migrate(costs, active):
    states = min(costs[NUM_CHANGED] * costs[CHANGED_VERTEX], costs[ALL_STATES])
    return costs[MIGRATION] + states + min(active * costs[LISTED_VERTEX], costs[BITMAP])


@njit(inline="always")
def leaves(costs, direction, active, senders, edges, receivers, searched, stored, has_identity):
    """Add the next iteration's loss to LOST; tell whether to migrate before it."""
    here = iteration_seconds(
        costs, 0, direction, senders, edges, receivers, searched, stored, has_identity
    )
    there = iteration_seconds(
        costs, OTHER, direction, senders, edges, receivers, searched, stored, has_identity
    )
    costs[LOST] = max(costs[LOST] + here - there, 0.0)
    if costs[LOST] > seconds_to_migrate(costs, active):
        return True
    costs[NUM_CHANGED] += active
    return False


@njit(inline="always")
def choose(arrays, senders, edges, receivers):
    """Return whether to pull, and the expected seconds, or 0.0 if costs must not be corrected.

    Only iterations where both directions are rivals correct costs: only there costs matter.
    """
    costs, searched, stored = arrays.costs, arrays.searched, arrays.num_edges
    pushed = push_seconds(costs, 0, senders, edges)
    if pushed <= searched * costs[PULL_VERTEX]:  # less than any pull costs
        return False, 0.0
    pulled = pull_seconds(costs, 0, edges, receivers, searched, stored, arrays.has_identity != 0)
    expected = min(pulled, pushed)
    are_rivals = max(pulled, pushed) < _RIVAL * expected
    return pulled < pushed, expected if are_rivals else 0.0


@njit(inline="always")
def migrates(arrays, direction, active, senders, edges, receivers):
    direction = 2 if arrays.all_active != 0 else direction
    return leaves(
        arrays.costs, direction, active, senders, edges, receivers,
        arrays.searched, arrays.num_edges, arrays.has_identity != 0,
    )  # fmt: skip


@njit(inline="always")
def learn(arrays, pulls, expected, seconds):
    """Correct the costs of a direction by the fourth root of seconds / expected seconds.

    They do not change if `expected` is 0.0.
    """
    if expected == 0.0 or max(expected, seconds) < _LEAST_LEARNED:
        return
    factor = np.sqrt(np.sqrt(min(max(seconds / expected, 0.25), 4.0)))
    costs = arrays.costs
    if pulls:
        for cost in (PULL_VERTEX, PULL_EDGE, PULL_MISS):
            costs[cost] *= factor
    else:
        for cost in (PUSH_VERTEX, PUSH_EDGE, PUSH_CHANGE):
            costs[cost] *= factor


@kernel(counted=False)
def expect_iterations(costs, known, sizes, has_identity, seconds):
    """Write the predicted seconds of each iteration of a run; see `iteration_seconds`.

    Rows of `known` have senders, edges, receivers and changes per edge. `costs` keeps the last
    row's changes per edge.
    """
    for i in range(seconds.size):
        senders, edges, receivers, costs[CHANGES_PER_EDGE] = known[i]
        seconds[i] = iteration_seconds(
            costs, 0, 0, senders, edges, receivers, sizes[0], sizes[1], has_identity
        )


FUNCTIONS = (
    found_share, push_seconds, pull_seconds, touches, iteration_seconds, seconds_to_migrate, leaves
)  # fmt: skip
KINDS = {"costs": "__global float *", "has_identity": "bool"} | dict.fromkeys(
    ("place", "direction"), "int64"
)
"""Functions that loop.cl calls (device_code.py), and their parameters that are not floats."""


_ITERATION_SECONDS: dict[DeviceKind, float] = {"cpu": 5e-6, "device": 25e-6}
"""First guess for an iteration with almost no work; 23 us on an H200 in one launch."""

_MARGIN = 0.1
"""Share of a run's time that migrations must be expected to save before they are tried."""

LEARNING = 0.5
"""Weight of the latest measurement in an estimate."""


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
        self._known, self._latest = np.empty((0, 4)), np.empty(0)
        self._host_seconds = self._latest
        self._device_seconds = 0.0

    def costs(self, place: DeviceKind) -> npt.NDArray[np.float64]:
        """Return the costs of a stay on a place, and of the migration to the other one."""
        other: DeviceKind = "device" if place == "cpu" else "cpu"
        migration, words = self._migrations[other], -(-self._run.num_searched // 32)
        costs = lone_costs([*self._costs[place], *self._costs[other]])
        costs[MIGRATION] = migration.seconds
        costs[LISTED_VERTEX] = 4 * migration.byte_seconds
        costs[BITMAP] = 4 * words * migration.byte_seconds
        if other == "device":  # the host gets the states at the end of the run in any case
            costs[CHANGED_VERTEX] = (4 + self._run.item_bytes) * migration.byte_seconds
            costs[ALL_STATES] = (
                self._run.num_vertices * self._run.item_bytes * migration.byte_seconds
            )
        return costs

    def learn_host(
        self, directions: npt.NDArray[np.float64], known: npt.NDArray[np.float64],
        seconds: npt.NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Learn from a run on the host: its corrected costs, and its iterations.

        `known` has the numbers known before each iteration (`expect_iterations`). If the run before
        had the same iterations, each one's lesser seconds count: the other run may have been
        disturbed.
        """
        if not seconds.size:
            return
        own = self._costs["cpu"]
        own[:NUM_DIRECTION_COSTS] = directions[:NUM_DIRECTION_COSTS]
        own[ITERATION_COST] = seconds.min()
        is_again = np.array_equal(known, self._known)
        self._host_seconds = np.minimum(seconds, self._latest) if is_again else seconds.copy()
        self._known, self._latest = known.copy(), seconds.copy()

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
        own[ITERATION_COST] = 0.0
        expected = float(self._expected("device").sum())
        if expected > seconds:
            own *= seconds / expected
        own[ITERATION_COST] = max(seconds - expected, 0.0) / count

    def learn_migration(self, place: DeviceKind, num_bytes: int, seconds: float) -> None:
        """Learn from a migration to a place; the first one is ignored, as it compiles kernels."""
        self._num_migrations[place] += 1
        if self._num_migrations[place] > 1:
            migration = self._migrations[place]
            latency = max(seconds - num_bytes * migration.byte_seconds, 0.0)
            latency = migration.seconds + LEARNING * (latency - migration.seconds)
            self._migrations[place] = MigrationCosts(latency, migration.byte_seconds)

    def expected_run(self) -> dict[DeviceKind, float]:
        if not self._host_seconds.size:
            return {}
        return {place: float(self._expected(place).sum()) for place in DEVICE_KINDS}

    def _expected(self, place: DeviceKind) -> npt.NDArray[np.float64]:
        seconds = np.empty(self._host_seconds.size)
        expect_iterations(
            lone_costs(self._costs[place]), self._known,
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
