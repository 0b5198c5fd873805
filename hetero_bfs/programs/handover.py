"""The data that moves when a program's run migrates, and the costs of both places.

Both places use the same vertex numbers and compute the initial states themselves. During a run
each place marks the vertices whose states it writes, so the places differ only in marked vertices.
The migration transfers their states with their numbers, or all states if that is smaller. It
transfers the active vertices, and those that wait for their priority, as a list or as a bitmap,
whichever is smaller. `num_bytes` does not count about 100 bytes of counters.

GraphMat's hybrid also sends sparse vectors as pairs of index and value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.programs.placed import PlacedGraph
from hetero_bfs.programs.plan import Plan
from hetero_bfs.scheduling import place_costs
from hetero_bfs.scheduling.place_costs import NUM_DIRECTION_COSTS, MigrationCosts
from hetero_bfs.scheduling.program_costs import ProgramCosts
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind

_ID_BYTES = 4


def state_bytes(changed: int, num_vertices: int, item_bytes: int) -> int:
    """Return the bytes of transferred states: changed ones with vertex numbers, or all."""
    return min(changed * (_ID_BYTES + item_bytes), num_vertices * item_bytes)


def crosses_whole(changed: int, num_vertices: int, item_bytes: int) -> bool:
    """Tell whether all states are smaller than the changed ones with their vertex numbers."""
    return state_bytes(changed, num_vertices, item_bytes) < changed * (_ID_BYTES + item_bytes)


def bitmap_words(num_vertices: int) -> int:
    """Return the number of 32-bit words in a bitmap."""
    return -(-num_vertices // 32)


def is_listed(count: int, num_vertices: int) -> bool:
    """Tell whether a list of `count` vertices is at most as large as a bitmap."""
    return count <= bitmap_words(num_vertices)


class VertexSet(NamedTuple):
    """A set of vertices in transfer: uint32, either vertex numbers or words of a bitmap."""

    words: npt.NDArray[np.uint32]
    num_vertices: int
    is_list: bool

    def listed(self) -> npt.NDArray[np.uint32]:
        if self.is_list:
            return self.words
        bits = np.unpackbits(self.words.view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.uint32)

    @classmethod
    def of_list(cls, items: npt.NDArray[np.uint32], num_vertices: int) -> VertexSet:
        """Convert a list to the smaller representation."""
        if is_listed(items.size, num_vertices):
            return cls(items, items.size, True)
        bits = np.zeros(32 * bitmap_words(num_vertices), np.bool_)
        bits[items] = True
        return cls(np.packbits(bits, bitorder="little").view(np.uint32), items.size, False)

    @classmethod
    def of_bitmap(cls, words: npt.NDArray[np.uint32], count: int, num_vertices: int) -> VertexSet:
        """Convert a bitmap with `count` bits set to the smaller representation."""
        bitmap = cls(words, count, False)
        return cls(bitmap.listed(), count, True) if is_listed(count, num_vertices) else bitmap


@dataclass
class Handover:
    """State in transfer; its arrays belong to the sender, which may overwrite them later.

    `edges` counts the edges of the `num_active` active vertices; `receivers` is the expected number
    of receivers. place_costs.py explains `changes_per_edge`. `lowest` is the lowest priority that
    waits. `values` has arrays by field, for the vertices in `changed`, or for all vertices if that
    is None.
    """

    iteration: int
    num_active: int
    edges: int
    receivers: int
    changes_per_edge: float
    bucket_end: float
    lowest: float
    totals: npt.NDArray[np.float64]
    active: VertexSet
    waiting: VertexSet
    changed: npt.NDArray[np.uint32] | None
    values: dict[str, npt.NDArray[Any]]

    @property
    def num_bytes(self) -> int:
        arrays = [self.active.words, self.waiting.words, *self.values.values()]
        return sum(array.nbytes for array in arrays) + (
            0 if self.changed is None else self.changed.nbytes
        )


_ITERATION_SECONDS: dict[DeviceKind, float] = {"cpu": 5e-6, "device": 25e-6}
"""First guess for an iteration with almost no work; 23 us on an H200 in one launch."""

_MARGIN = 0.1
"""Share of a run's time that migrations must be expected to save before they are tried."""

_LEARNING = 0.5
"""Weight of the latest migration in the estimated latency."""


class PlaceEstimates:
    """Costs of iterations on both places, and of the migrations between them.

    `migrations` has the costs of a migration to each place.
    """

    def __init__(
        self, plan: Plan, graph: PlacedGraph, costs: Mapping[DeviceKind, ProgramCosts],
        migrations: Mapping[DeviceKind, MigrationCosts],
    ) -> None:  # fmt: skip
        self._has_identity, self._all_active = plan.identity is not None, plan.all_active
        self._item_bytes = sum(np.dtype(kind).itemsize for kind in plan.fields.values())
        self._sizes = graph.num_searched, graph.num_stored_edges
        self._num_vertices, self._migrations = graph.num_vertices, dict(migrations)
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
        migration, words = self._migrations[other], bitmap_words(self._sizes[0])
        costs = place_costs.lone_costs([*self._costs[place], *self._costs[other]])
        costs[place_costs.MIGRATION] = migration.seconds
        costs[place_costs.LISTED_VERTEX] = 4 * migration.byte_seconds
        costs[place_costs.BITMAP] = 4 * words * migration.byte_seconds
        if other == "device":  # the host gets the states at the end of the run in any case
            costs[place_costs.CHANGED_VERTEX] = (4 + self._item_bytes) * migration.byte_seconds
            costs[place_costs.ALL_STATES] = (
                self._num_vertices * self._item_bytes * migration.byte_seconds
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
        own[place_costs.ITERATION_COST] = seconds.min()
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
        own[place_costs.ITERATION_COST] = 0.0
        expected = float(self._expected("device").sum())
        if expected > seconds:
            own *= seconds / expected
        own[place_costs.ITERATION_COST] = max(seconds - expected, 0.0) / count

    def learn_migration(self, place: DeviceKind, num_bytes: int, seconds: float) -> None:
        """Learn from a migration to a place; the first one is ignored, as it compiles kernels."""
        self._num_migrations[place] += 1
        if self._num_migrations[place] > 1:
            migration = self._migrations[place]
            latency = max(seconds - num_bytes * migration.byte_seconds, 0.0)
            latency = migration.seconds + _LEARNING * (latency - migration.seconds)
            self._migrations[place] = MigrationCosts(latency, migration.byte_seconds)

    def _expected(self, place: DeviceKind) -> npt.NDArray[np.float64]:
        from hetero_bfs.scheduling.place_rule import expect_iterations

        seconds = np.empty(self._host_seconds.size)
        expect_iterations(
            place_costs.lone_costs(self._costs[place]), self._known, self._sizes,
            self._has_identity, seconds,
        )  # fmt: skip
        return seconds

    def may_pay(self) -> bool:
        """Tell whether a run may gain from taking the faster place in each iteration."""
        if not self._device_seconds or not self._host_seconds.size or self._all_active:
            return False
        here, there = self._host_seconds, self._expected("device")
        alone = min(here.sum(), there.sum())
        migrating = min(migration.seconds for migration in self._migrations.values())
        return bool(np.minimum(here, there).sum() + migrating < (1.0 - _MARGIN) * alone)
