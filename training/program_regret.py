"""Regret of vertex programs: how much slower the chosen schedule is than the best one known.

A schedule has a strategy for each iteration: a direction on a place. The active vertices of each
iteration are the same in all schedules of a program on one graph. Therefore any schedule can be
replayed.

For each place the oracle measures four schedules: all push, all pull, and the two that alternate.
They contain each direction of an iteration after each direction of the previous iteration.
Transitions are therefore included: a pull after a push marks the active vertices, a push after a
pull lists them. The best schedule is a shortest path. On a device the host waits for each iteration
to time it. The oracle's schedules stay on one place. Schedules that the scheduler chose may
migrate; they are replayed, too.

The scheduler first runs the program from another source until it has tried all places. Then it runs
it from the source, several times. These schedules, the oracle's, and the schedules that only push
or only pull are then replayed alternately. `best_seconds` is the least of their medians. `seconds`
is the geometric mean over the runs, each with the median of its schedule's replays. Equal schedules
therefore have equal seconds, and noise adds no regret. `regret` is seconds / best_seconds - 1.
`place_regret` is the regret of the fastest schedule on the chosen place. `first_regret` is the
regret of the schedule of the first run on that place, which uses only the model's costs. The place
of a schedule that migrates is "both", and its first run is the one on the CPU.

A schedule whose iterations take more than `SLOWEST` times as long as the oracle's is not replayed.
Its seconds are the sum of its iterations, without migrations. If all schedules of a place are that
slow, its iterations are measured once.

Seconds cover a whole run, from the initial states to the states on the host. `choosing` is the
share of that time spent on choosing, beyond the time to read a schedule. On the host clocks measure
it. If the device chooses, it is the time of the run minus the time of the replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.families import StudyGraph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs.options import STRATEGIES, RunOptions, Where
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.training.measured_runs import (
    MEASURED,
    drawn_sources,
    regret_of_algorithms,
    run_measured,
    weighted,
)
from hetero_bfs.training.oracle import cheapest_path, schedule_text
from hetero_bfs.training.regret import ROUNDS, SLOWEST, TIMED, in_turns

Schedule = tuple[str, ...]
"""The strategy of each iteration; at least one."""

COLUMNS = (
    "program", "source", "place", "seconds", "best_seconds", "regret", "place_regret",
    "first_regret", "choosing", "iterations", "schedule", "best_schedule",
)  # fmt: skip

_ORACLE_ROUNDS = 3
_LEARNING_RUNS = 6
_CHOSEN_RUNS = 5
_SPOILED = (1.0, 0.85, 1.15)  # factors of pulls, which give rival schedules to replay


def regret_of_programs(
    edges: EdgeSource, info: DeviceInfo | None, threads: int, rounds: int = ROUNDS
) -> Iterator[dict[str, Any]]:
    placed = build_search_graph(weighted(edges))
    other, source = drawn_sources(placed, 2)
    for kind in MEASURED:
        with ProgramRuns(placed, threads, info) as runs:
            yield _Replays(runs, kind, other, source, rounds).row()


def measure_program_regret(
    graphs: Iterable[StudyGraph], info: DeviceInfo | None, threads: int, rounds: int = ROUNDS
) -> pd.DataFrame:
    """Return a row of family, graph and `COLUMNS` for each program and each other algorithm.

    A graph is measured before the next one is taken, so that a budget may end them.
    """
    rows: list[dict[str, Any]] = []
    for graph in graphs:
        named = {"family": graph.family, "graph": graph.name}
        programs = regret_of_programs(graph.make(), info, threads, rounds)
        rows += [{**named, **row} for row in programs]
        rows += regret_of_algorithms([graph], info, threads, rounds)
    return pd.DataFrame(rows, columns=["family", "graph", *COLUMNS])


def summarise_programs(table: pd.DataFrame) -> dict[str, Any]:
    """Return regret as geometric means of 1 + regret, minus 1.

    `families` and `programs` map names to means. `all` is the mean over families with equal
    weights, `worst` the largest mean of a family, and `choosing` the mean share of choosing.
    """
    logs = np.log1p(table["regret"])
    of_families, of_programs = (logs.groupby(table[by]).mean() for by in ("family", "program"))
    return {
        "families": np.expm1(of_families).to_dict(),
        "programs": np.expm1(of_programs).to_dict(),
        "all": float(np.expm1(of_families.mean())),
        "worst": float(np.expm1(of_families.max())),
        "choosing": float(table["choosing"].mean()),
    }


class _Replays:
    def __init__(self, runs: ProgramRuns, kind: str, other: int, source: int, rounds: int) -> None:
        self.runs, self.kind, self.source = runs, kind, source
        self.firsts: dict[DeviceKind, Schedule] = {}
        self._learn(other)
        self.lives = [schedule_of(self._run(RunOptions(), source)) for _ in range(_CHOSEN_RUNS)]
        self.costs: dict[DeviceKind, npt.NDArray[np.float64]] = {}
        for place in runs.places:
            self.costs[place] = self._measure(place)
        best = [
            schedule_on(place, best_schedule(costs * [1.0, factor]))
            for place, costs in self.costs.items()
            for factor in _SPOILED
        ]
        n = len(self.lives[0])
        pure = [
            schedule_on(place, (pulls,) * n) for place in runs.places for pulls in (False, True)
        ]
        firsts = self.firsts.values()
        sums = {one: self._sum(one) for one in [*best, *pure, *self.lives, *firsts]}
        limit = SLOWEST * min(sums[one] for one in best)
        self.seconds = {one: total for one, total in sums.items() if total > limit}
        self._replay([one for one in sums if one not in self.seconds], rounds, sums)

    def _run(self, options: RunOptions, source: int) -> ProgramResult:
        return run_measured(self.runs, self.kind, options, source)

    def _learn(self, source: int) -> None:
        for place in self.runs.places:
            result = self._run(RunOptions(place=place), self.source)
            self.firsts[place] = schedule_of(result)
        for _ in range(_LEARNING_RUNS):
            self._run(RunOptions(), source)

    def _measure(self, place: DeviceKind) -> npt.NDArray[np.float64]:
        """Return seconds by iteration, previous direction, and direction."""
        least = min((_least_sum(costs) for costs in self.costs.values()), default=np.inf)
        n = len(self.lives[0])
        odd = np.arange(n) % 2 == 1
        plans = [np.zeros(n, bool), ~odd, odd, np.ones(n, bool)]
        self.runs.clocked = True
        rounds: list[npt.NDArray[np.float64]] = []
        for _ in range(1 + _ORACLE_ROUNDS):
            costs = np.zeros((n, 2, 2))
            for plan in plans:
                result = self._run(options_of(schedule_on(place, plan)), self.source)
                before = np.concatenate([plan[:1], plan[:-1]]).astype(int)
                seconds = [trace.seconds for trace in result.traces]
                costs[np.arange(n), before, plan.astype(int)] = seconds
            costs[:1, [1, 0], [0, 1]] = costs[:1, [0, 1], [0, 1]]
            rounds.append(costs)
            if _least_sum(costs) > SLOWEST * least:
                break
        self.runs.clocked = False
        return np.median(rounds[1:] or rounds, axis=0)  # type: ignore[no-any-return]

    def _sum(self, schedule: Schedule) -> float:
        """Return the sum of the iterations' seconds, as the oracle measured them."""
        total, before = 0.0, schedule[0]
        for number, name in enumerate(schedule):
            (place, pulls), (place_before, pulled) = STRATEGIES[name], STRATEGIES[before]
            came_of = pulled if place == place_before else pulls
            total += self.costs[place][number, int(came_of), int(pulls)]
            before = name
        return float(total)

    def _replay(
        self, schedules: Sequence[Schedule], rounds: int, sums: dict[Schedule, float]
    ) -> None:
        """Replay schedules in random order, with runs in which the scheduler chooses."""
        times: dict[Schedule | None, list[float]] = {one: [] for one in [None, *schedules]}
        expected = (1 + TIMED) * sum(sums[one] for one in schedules)
        for one in in_turns(list(times), rounds, expected):
            options = RunOptions() if one is None else options_of(one)
            self._run(options, self.source)
            times[one] += [self._run(options, self.source).seconds for _ in range(TIMED)]
        self.live_seconds = median(times.pop(None))
        self.seconds |= {one: median(seconds) for one, seconds in times.items() if one is not None}

    def row(self) -> dict[str, Any]:
        best = min(self.seconds, key=lambda one: self.seconds[one])
        place = place_of(self.lives[-1])
        logs = np.log([self.seconds[one] for one in self.lives])
        seconds, least = float(np.exp(logs.mean())), self.seconds[best]
        there = min(value for one, value in self.seconds.items() if place_of(one) == place)
        first = self.firsts["device" if place == "device" else "cpu"]
        regret = max(seconds / least - 1.0, 0.0)  # rounding may put a mean below its least term
        values = (
            MEASURED[self.kind].__name__, self.source, place, seconds, least, regret,
            there / least - 1.0, max(self.seconds[first] / there - 1.0, 0.0),
            self._choosing(), len(self.lives[-1]),
            schedule_text(self.lives[-1]), schedule_text(best),
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))

    def _choosing(self) -> float:
        schedule = self.lives[-1]
        if place_of(schedule) != "cpu":
            return max(self.live_seconds - self.seconds[schedule], 0.0) / self.live_seconds
        choosing, reading = (
            median(self._choosing_seconds(options) for _ in range(_CHOSEN_RUNS))
            for options in (RunOptions(), options_of(schedule))
        )
        return max(choosing - reading, 0.0) / self.seconds[schedule]

    def _choosing_seconds(self, options: RunOptions) -> float:
        self.runs.clocked = True
        self._run(options, self.source)
        self.runs.clocked = False
        return self.runs.choosing_seconds


def _least_sum(costs: npt.NDArray[np.float64]) -> float:
    """Return the seconds of the faster direction in each iteration, after either direction."""
    return float(costs.min(axis=(1, 2)).sum())


def best_schedule(costs: npt.NDArray[np.float64]) -> tuple[bool, ...]:
    """Return the schedule of least sum of `costs`: by iteration, previous direction, direction."""
    path, _ = cheapest_path(costs)
    return tuple(bool(pulls) for pulls in path)


def schedule_of(result: ProgramResult) -> Schedule:
    return tuple(trace.strategy for trace in result.traces)


def schedule_on(place: DeviceKind, pulls: Iterable[bool]) -> Schedule:
    """Return the schedule on one place whose iterations pull where `pulls` is true."""
    names = {strategy: name for name, strategy in STRATEGIES.items()}
    return tuple(names[place, bool(pull)] for pull in pulls)


def options_of(schedule: Schedule) -> RunOptions:
    return RunOptions(schedule=schedule)


def place_of(schedule: Schedule) -> Where:
    places = {STRATEGIES[name][0] for name in schedule}
    return "both" if len(places) == 2 else places.pop()
