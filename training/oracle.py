"""The oracle: the best schedule of one search, from measurements of all strategies and migrations.

A schedule names a strategy for each level. The vertices of a level do not depend on the strategies,
so every strategy can be measured on every level of one search. The best schedule is the shortest
path over levels x (device, frontier representation), found exactly by dynamic programming. The cost
of an edge is the level by that strategy plus the migration before it: starting on a device,
converting a bitmap to a queue (also after a dense push on the host), switching to the other device.

Of a search with many levels a sample is measured; the others are interpolated by level. The host's
bottom-up is measured with the unvisited list, as in a search that has run bottom-up on the host
before. The shortest path has no state for whether a search did so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, product
from statistics import median

import numpy as np
import numpy.typing as npt

from hetero_bfs.engine.engine import Engine
from hetero_bfs.scheduling.columns import migrations_of
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, Strategy
from hetero_bfs.training.measure import (
    MOST_MEASURED,
    after_dense_push,
    levels_to_measure,
    measure_search,
)

REPEATS = 5

Table = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchCosts:
    """Measurements of one search, all in seconds.

    seconds : float64 (levels, strategies)
    start : float64 (2,); starting on each of `DEVICE_KINDS`
    switch : float64 (levels, 2); switching to each of `DEVICE_KINDS` before a level
    convert : float64 (levels, 2); converting a bitmap to a queue on each of them before a level
    dense_push : bool (levels,); whether the host's top-down may also leave a bitmap to a level
        (`schema.is_dense_push`)
    measured : int64; the measured levels, the others are interpolated
    """

    strategies: tuple[Strategy, ...]
    seconds: Table
    start: Table
    switch: Table
    convert: Table
    dense_push: npt.NDArray[np.bool_]
    measured: npt.NDArray[np.int64]

    @property
    def num_levels(self) -> int:
        return int(self.seconds.shape[0])

    def migrations(self) -> Table:
        """Return the seconds from one strategy to the next before each level.

        The shape is (levels, strategies, strategies), float64. At level 0 all rows have the seconds
        of the start.
        """
        count = len(self.strategies)
        migrations = np.zeros((self.num_levels, count, count))
        for (i, last), (j, strategy) in product(enumerate(self.strategies), repeat=2):
            for dense_push in (False, True):
                _, convert, switch = migrations_of(last, strategy, dense_push)
                levels = self.dense_push == dense_push
                if convert is not None:
                    migrations[levels, i, j] += self.convert[levels, DEVICE_KINDS.index(convert)]
                if switch is not None:
                    migrations[levels, i, j] += self.switch[levels, DEVICE_KINDS.index(switch)]
        for j, strategy in enumerate(self.strategies):
            start = migrations_of(None, strategy, False).start
            migrations[0, :, j] = 0.0 if start is None else self.start[DEVICE_KINDS.index(start)]
        return migrations

    def schedule_seconds(self, schedule: Sequence[str]) -> float:
        names = [s.name for s in self.strategies]
        numbers = [names.index(name) for name in schedule]
        total = float(self.seconds[np.arange(len(numbers)), numbers].sum())
        migrations = self.migrations()
        total += float(migrations[0, 0, numbers[0]])
        return total + sum(
            float(migrations[i + 1, a, b]) for i, (a, b) in enumerate(pairwise(numbers))
        )


@dataclass(frozen=True)
class Schedule:
    strategies: tuple[str, ...]
    seconds: float


def best_schedule(costs: SearchCosts, among: Collection[str] | None = None) -> Schedule:
    """Return the schedule of least seconds, exactly, of the strategies `among` (default: all)."""
    names = [s.name for s in costs.strategies]
    allowed = np.array([0.0 if among is None or s in among else np.inf for s in names])
    path, seconds = cheapest_path(costs.migrations() + costs.seconds[:, None] + allowed)
    return Schedule(tuple(names[i] for i in path), seconds)


def cheapest_path(costs: Table) -> tuple[list[int], float]:
    """Return the choices of least sum of `costs`, one for each step, and the sum.

    `costs` has a step, the choice of the step before, and the step's own choice. Any choice may
    come before the first step.
    """
    total, origins = np.zeros(costs.shape[1]), []
    for cost in costs:
        sums = total[:, None] + cost
        origins.append(sums.argmin(axis=0))
        total = sums.min(axis=0)
    choice = int(total.argmin())
    seconds, path = float(total[choice]), []
    for origin in reversed(origins):
        path.append(choice)
        choice = int(origin[choice])
    return path[::-1], seconds


def schedule_text(schedule: Sequence[str]) -> str:
    """As in "TC TG BG*3 TG"."""
    runs = [(name, len(list(levels))) for name, levels in groupby(schedule)]
    return " ".join(name if count == 1 else f"{name}*{count}" for name, count in runs)


def measure_costs(
    engine: Engine, source: int, repeats: int = REPEATS, most_measured: int = MOST_MEASURED
) -> SearchCosts:
    """Measure every strategy and migration on the levels of the search from `source` (a new id).

    The seconds are medians of the repeats. All arrays are empty if the source has no edge.
    """
    records, wanted = levels_to_measure(engine, source, most_measured)
    found: dict[str, dict[int, float]] = {}
    for features, measured, seconds, _ in measure_search(
        engine, source, repeats, median, frozenset(wanted), with_rivals=True
    ):
        # A migration that is measured after a level is part of the next level.
        after = measured.startswith("convert") or measured == "to_cpu"
        found.setdefault(measured, {})[features.level + after] = seconds

    def over_levels(name: str) -> Table:
        points = found.get(name) or {0: 0.0}
        # No conversion follows if bottom-up leaves a queue, as the host's does at the end.
        last = 0.0 if name.startswith("convert") else None
        return np.interp(np.arange(len(records)), list(points), list(points.values()), right=last)

    return SearchCosts(
        tuple(engine.candidates),
        np.column_stack([over_levels(s.name) for s in engine.candidates]),
        np.array([found.get(f"start_{kind}", {}).get(0, 0.0) for kind in DEVICE_KINDS]),
        np.column_stack([over_levels(f"to_{kind}") for kind in DEVICE_KINDS]),
        np.column_stack([over_levels(f"convert_{kind}") for kind in DEVICE_KINDS]),
        after_dense_push(records),
        np.array(wanted, np.int64),
    )
