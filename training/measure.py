"""Measures one search: every strategy on every level, from the same state, and all migrations.

`measured` names a strategy, or one of these:

    start_cpu, start_device       time beyond the levels of a search that stays on one device
    to_cpu, to_device             migration to the other device, with the later merge of parents
    convert_cpu, convert_device   bitmap to queue, after bottom-up has left a bitmap

The host's bottom-up uses the unvisited list that bottom-up leaves at the previous level, if the
vertices are few. Levels are timed by the device's own clock if it has one.

A repeated level finds its data in the caches, a level of a search does not. Therefore the fastest
strategy of a device at each level is measured again in whole searches that stay on the device. For
an oracle its close rivals are also measured again, since warm caches would let them win close
comparisons.

After a stay on the device the host's threads may sleep, and the parents of both must be merged.
Therefore `to_cpu` and `to_device` include the extra time of searches that migrate once. These are
their seconds beyond the start, the levels on the device, and the host's levels as in searches that
stay on the host. A search that migrates there and back merges only once. If it takes less extra
time than both migrations, their extra times are reduced in proportion.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.engine.engine import Engine
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import migrations_of
from hetero_bfs.scheduling.rehearsal import sampled_levels
from hetero_bfs.scheduling.selectors import FixedSelector
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, STRATEGIES, DeviceKind, Strategy, plain
from hetero_bfs.scheduling.trace import LevelFeatures

REPEATS = 3
"""Times a level is repeated for training."""

WHOLE_SEARCHES = 5
"""Most whole searches that are measured by one schedule."""

MOST_MEASURED = 64
"""Most levels of a search that are measured; longer searches are sampled."""

Table = npt.NDArray[np.float64]

Middle = Callable[[Sequence[float]], float]
"""Reduces repeated measurements to one: `min`, or the median."""

_RIVAL = 1.5  # strategies within this factor of the fastest are compared by whole searches
_ENOUGH_SECONDS = 0.2  # seconds of whole searches after which no more are run
_LEAST_SECONDS = 1e-7
"""Least seconds of a start or a migration, which are differences of measurements."""


def seconds_back_to_back(engine: Engine, keys: Sequence[int]) -> list[float]:
    """Return the seconds of back-to-back searches from the keys, after an untimed one.

    Work between searches would evict the next one's data, as in `Engine.bfs_back_to_back`.
    """
    engine.search(keys[-1])
    return [engine.search(key).seconds for key in keys]


def count_levels(engine: Engine, source: int) -> tuple[int, int]:
    """Return the levels of a search (`source` is a new id), and the other vertices reached."""
    records = search_top_down(engine, source).recording().records
    return len(records), int(records[:, schema.FOUND_VERTICES].sum())


def search_top_down(engine: Engine, source: int) -> Search:
    """Search on the host by one strategy; each level has its own record."""
    search = Search(engine.platform, source, FixedSelector(plain("top-down", "cpu")))
    search.run(max_levels=engine.graph.num_searched)  # with a limit no levels share a record
    return search


def levels_to_measure(
    engine: Engine, source: int, most: int = MOST_MEASURED
) -> tuple[Table, list[int]]:
    """Return a search's records (`source` is a new id), and the numbers of the levels to measure.

    This takes one search on the host, which is short compared with the measurements.
    """
    records = search_top_down(engine, source).recording().records
    return records, sampled_levels(records[:, schema.FRONTIER_EDGES], most)


def after_dense_push(records: Table) -> npt.NDArray[np.bool_]:
    """Tell for each level whether the host's top-down has left it a bitmap."""
    return records[:, schema.REPRESENTATION] == schema.DENSE_PUSH_BITMAP


def measure_search(
    engine: Engine,
    source: int,
    repeats: int = REPEATS,
    middle: Middle = min,
    levels: Container[int] | None = None,
    with_rivals: bool = False,
    whole_searches: int = WHOLE_SEARCHES,
) -> Iterator[tuple[LevelFeatures, str, float, int | None]]:
    """Run one search on the host, and measure all strategies and migrations at its levels.

    source : a new id
    repeats : runs of each level by each strategy
    middle : reduces the repeats; other work on the machine affects `min` least
    levels : the levels to measure, by default all
    with_rivals : whether whole searches also measure strategies that are hardly slower than the
        fastest
    whole_searches : most whole searches by one schedule

    Yields features, the measurement's name (see the head of this file), seconds, and the edges that
    bottom-up scanned, None if it does not count them.
    """
    graph, host = engine.graph, engine.platform.host
    num_edges = graph.graph.num_stored_edges
    frontier = Frontier(int(graph.degree[source]), graph.num_searched, num_edges)
    if not engine.platform.lists_host_finds:
        frontier.found_list = -1
    first = LevelFeatures.from_state(frontier.state, graph.num_searched, num_edges)
    walk = _Walk(first, with_rivals, whole_searches)
    host.begin(source, frontier)
    while not frontier.is_over:
        if levels is None or frontier.level in levels:
            features = LevelFeatures.from_state(frontier.state, graph.num_searched, num_edges)
            measurement = LevelMeasurement(engine, frontier, repeats, middle)
            for strategy in engine.candidates:
                seconds, edges_scanned = measurement.strategy(strategy)
                walk.note(features, strategy.name, seconds, edges_scanned)
            for name, seconds, found in measurement.migrations():
                walk.note(replace(features, frontier_vertices=found), name, seconds, None)
            measurement.restore()
            frontier.unvisited_list = measurement.unvisited_list
        host.run(plain("top-down", "cpu"), frontier)
        if not frontier.has_queue and not frontier.is_over:
            host.to_queue(frontier)  # all strategies start from a queue
    kinds = dict.fromkeys(s.device_kind for s in engine.candidates)
    for kind in kinds if walk.seconds else ():
        walk.add_whole_searches(engine, source, kind, frontier.level)
    if walk.seconds and len(kinds) > 1:
        walk.charge_migrations(engine, source, frontier.level)
    for features, name, seconds, edges_scanned in walk.rows:
        took = walk.in_search.get((features.level, name), seconds)
        if name not in STRATEGIES:
            took = max(took + walk.beyond.get(name, 0.0), _LEAST_SECONDS)
        yield features, name, took, edges_scanned


class LevelMeasurement:
    """Repeats work on one level, each time from the same state.

    frontier : the frontier of the level, in the state of a search on the host
    repeats : runs of the level by each strategy
    middle : reduces the repeats
    """

    def __init__(self, engine: Engine, frontier: Frontier, repeats: int, middle: Middle) -> None:
        self.engine = engine
        self.repeats, self.middle = repeats, middle
        self.frontier = frontier
        self.host: CPUExecutor = engine.platform.host
        self.snapshot = self.host.visited[frontier.visited_index].copy()
        arrays = self.host.queue, self.host.offsets
        self._frontier = [each[frontier.queue_index][: frontier.vertices] for each in arrays]
        self._kept = [each.copy() for each in self._frontier]
        self.unvisited_list = frontier.unvisited_list  # as the host's bottom-up left it
        self.times: dict[str, list[float]] = {}
        self.found: dict[str, int] = {}

    def restore(self) -> None:
        """Restore the host's state at the start of the level.

        A device that shares the host's memory uses the frontier's queue for other things when it
        goes bottom-up (`leave_lists` in bottom_up.cl); a search does not need it any more then.
        """
        self.host.visited[self.frontier.visited_index][:] = self.snapshot
        for each, kept in zip(self._frontier, self._kept, strict=True):
            each[:] = kept

    def strategy(self, strategy: Strategy) -> tuple[float, int | None]:
        """Return the seconds of one strategy, and the edges scanned if it counts them."""
        times = []
        edges_scanned = None
        on_device = strategy.device_kind == "device"
        for _ in range(self.repeats):
            self.restore()
            state = self.frontier.copy()
            if on_device:
                self._enter_device(state)
            executor = self.engine.platform.executor(strategy.place)
            found, seconds = executor.run(strategy, state)
            times.append(seconds)
            edges_scanned = found.edges_scanned
            self.unvisited_list = max(self.unvisited_list, state.unvisited_list)
            is_plain = strategy == plain("bottom-up", strategy.device_kind)
            if is_plain and not state.has_queue:
                self._convert(state, strategy.device_kind, found.vertices)
            if on_device:
                self._leave_device(state)
        return self.middle(times), edges_scanned

    def migrations(self) -> Iterator[tuple[str, float, int]]:
        """Yield (name, seconds, frontier vertices) of conversions and switches of the device."""
        for name, times in self.times.items():
            yield name, self.middle(times), self.found[name]

    def _convert(self, state: Frontier, kind: str, found: int) -> None:
        if found:
            state.queue_index ^= 1  # keep the level's own queue
            seconds = self.engine.platform.executor(DEVICE_KINDS.index(kind)).to_queue(state)
            self._note(f"convert_{kind}", seconds, found)

    def _enter_device(self, state: Frontier) -> None:
        accelerator = self.engine.accelerator
        assert accelerator is not None
        accelerator.launch_nothing(state)  # sends the policy to the device, untimed
        started = time.perf_counter()
        if not accelerator.unified:
            accelerator.clear(state)
            accelerator.add_parents(self._pairs(state))
        accelerator.receive(state, with_queue=True)
        accelerator.launch_nothing(state)
        self._note("to_device", time.perf_counter() - started, state.vertices)

    def _leave_device(self, state: Frontier) -> None:
        """Time the migration back after this level, then restore the host."""
        accelerator = self.engine.accelerator
        assert accelerator is not None
        if not state.has_queue or state.vertices == 0:
            accelerator.release()
            return
        started = time.perf_counter()
        accelerator.send(state, with_queue=True)
        if not accelerator.unified:  # vertices that the host finds later must be copied, too
            accelerator.add_parents(self._pairs(state))
        self._note("to_cpu", time.perf_counter() - started, state.vertices)

    def _pairs(self, state: Frontier) -> npt.NDArray[np.uint32]:
        """Return the frontier's vertices and their parents, at most as a found list has."""
        count = min(state.vertices, len(self.host.found_list))
        queue = self.host.queue[state.queue_index][:count]
        return np.column_stack((queue, self.host.parent[queue]))

    def _note(self, name: str, seconds: float, found: int) -> None:
        self.times.setdefault(name, []).append(seconds)
        self.found[name] = found


class _Walk:
    def __init__(
        self,
        first: LevelFeatures,
        with_rivals: bool = False,
        whole_searches: int = WHOLE_SEARCHES,
    ) -> None:
        self.first = first
        self.with_rivals = with_rivals
        self.whole_searches = whole_searches
        self.rows: list[tuple[LevelFeatures, str, float, int | None]] = []
        self.seconds: dict[int, dict[str, float]] = {}  # by level, then by `measured`
        self.in_search: dict[tuple[int, str], float] = {}
        # Of searches that stay on one device, by device: seconds of levels and conversions, and
        # the remaining seconds.
        self.spent: dict[str, Table] = {}
        self.starts: dict[str, float] = {}
        self.beyond: dict[str, float] = {}  # extra seconds of migrations beyond their timed ones

    def note(self, features: LevelFeatures, name: str, seconds: float, looked: int | None) -> None:
        self.rows.append((features, name, seconds, looked))
        self.seconds.setdefault(features.level, {})[name] = seconds

    def add_whole_searches(self, engine: Engine, source: int, kind: DeviceKind, count: int) -> None:
        """Measure whole searches of `count` levels by the fastest strategies of one device.

        Their median seconds replace the repeated measurements of levels. With `with_rivals`, close
        rivals are measured, too, if the device has a clock. The time of the fastest searches beyond
        their levels is the start. If the device does not time its levels, their total is divided in
        proportion to the separately measured levels.
        """
        schedule, *rivals = self._schedules(engine, kind, count)
        searches = _whole_searches(engine, source, schedule, self.whole_searches)
        taken = np.array([search.recording().seconds() for search in searches])
        taken[:, 0, 1] = 0.0  # migration before the first level is part of the start
        self.spent[kind] = np.median(taken, axis=0)
        self.starts[kind] = max(_beyond(searches, taken.sum(axis=(1, 2))), _LEAST_SECONDS)
        self.rows.append((self.first, f"start_{kind}", self.starts[kind], None))
        levels = _level_seconds(searches)
        one_record = len(searches[0].recording().records) == 1
        clocked = one_record or (levels != levels[0]).any()
        if not clocked:  # the host times the launch as a whole
            alone, conversions = self._repeated(schedule)
            levels = alone * (levels.sum() / (alone.sum() + conversions))
        for level in self.seconds:
            self.in_search[level, schedule[level]] = float(levels[level])
        for rival in rivals if clocked and self.with_rivals else ():
            others = [level for level in self.seconds if rival[level] != schedule[level]]
            if others:
                levels = _level_seconds(_whole_searches(engine, source, rival, self.whole_searches))
                for level in others:
                    self.in_search[level, rival[level]] = float(levels[level])

    def charge_migrations(self, engine: Engine, source: int, count: int) -> None:
        """Measure the extra time of searches that run small first or last levels on the host."""
        host, device = (self._schedules(engine, kind, count)[0] for kind in DEVICE_KINDS)
        known = [self._last_measured(level) for level in range(count)]
        gains = [i for i in range(count) if known[i][device[i]] < known[i][host[i]]]
        if not gains:
            return
        begin, end = gains[0], gains[-1] + 1
        if begin > 0:
            once = [*host[:begin], *device[begin:]]
            self.beyond["to_device"] = self._beyond_parts(engine, source, once)
        if end < count:
            once = [*device[:end], *host[end:]]
            self.beyond["to_cpu"] = self._beyond_parts(engine, source, once)
        if len(self.beyond) == 2:
            twice = [*host[:begin], *device[begin:end], *host[end:]]
            both = self._beyond_parts(engine, source, twice)
            share = min(both / max(sum(self.beyond.values()), _LEAST_SECONDS), 1.0)
            self.beyond = {place: share * more for place, more in self.beyond.items()}

    def _beyond_parts(self, engine: Engine, source: int, schedule: list[str]) -> float:
        """Return the seconds of a search that migrates, beyond its parts and timed migrations.

        The seconds of the device's levels are taken from this search, since the host's levels do
        not affect them.
        """
        used = [STRATEGIES[name] for name in schedule]
        switches = [
            level
            for level in range(1, len(used))
            if migrations_of(used[level - 1], used[level], False).switch is not None
        ]
        searches = _whole_searches(engine, source, schedule, self.whole_searches)
        taken = np.array([search.recording().seconds() for search in searches])
        host = self.spent["cpu"].copy()
        for part in (taken, host):
            part[..., [0, *switches], 1] = 0.0  # the start, and switches with their conversions
        there = np.array([strategy.device_kind == "device" for strategy in used])
        parts = taken[:, there].sum(axis=(1, 2)) + host[~there].sum()
        timed = self.starts[used[0].device_kind]
        records = searches[0].recording().records
        dense_pushes = records[after_dense_push(records), schema.LEVEL]
        for level in switches:
            last, dense_push = used[level - 1], level in dense_pushes
            kind = migrations_of(last, used[level], dense_push).switch
            # The migration from the device was measured after the previous level.
            timed += self._last_measured(level - (kind == "cpu")).get(f"to_{kind}", 0.0)
            timed += self._conversion(level, last, used[level], dense_push)
        return max(_beyond(searches, parts + timed), 0.0)

    def _schedules(self, engine: Engine, kind: DeviceKind, count: int) -> list[list[str]]:
        """Return schedules of a device: the fastest strategy at each level, then close rivals.

        In a rival schedule a level without a close rival has the fastest strategy again. A level
        that was not measured has the strategy of the last measured one.
        """
        here = [s.name for s in engine.candidates if s.device_kind == kind]
        schedules: list[list[str]] = [[] for _ in here]
        for level in range(count):
            seconds = self._last_measured(level)
            ranked = sorted(here, key=seconds.__getitem__)
            for schedule, name in zip(schedules, ranked, strict=True):
                is_rival = seconds[name] <= _RIVAL * seconds[ranked[0]]
                schedule.append(name if is_rival else ranked[0])
        return schedules

    def _repeated(self, schedule: Sequence[str]) -> tuple[Table, float]:
        """Return the separately measured seconds of a schedule's levels, and of all conversions.

        The schedule stays on one device. The first result is float64 (levels,); a level that was
        not measured has the seconds of the last measured one.
        """
        levels = [self._last_measured(level)[name] for level, name in enumerate(schedule)]
        pairs = pairwise(STRATEGIES[name] for name in schedule)
        conversions = sum(self._conversion(i, *pair) for i, pair in enumerate(pairs, 1))
        return np.array(levels), conversions

    def _conversion(
        self, level: int, last: Strategy, strategy: Strategy, dense_push: bool = False
    ) -> float:
        """Return the seconds of converting a bitmap to a queue before a level, 0 if not needed.

        A `dense_push` level may leave a bitmap though it was top-down (`Strategy.dense_pushes`).
        """
        convert = migrations_of(last, strategy, dense_push).convert
        if convert is None:
            return 0.0
        return self._last_measured(level - 1).get(f"convert_{convert}", 0.0)

    def _last_measured(self, level: int) -> dict[str, float]:
        """Return the measurements of a level, or of the last measured level before it."""
        measured = list(self.seconds)  # in ascending order
        return self.seconds[measured[bisect_right(measured, level) - 1]]


def _whole_searches(
    engine: Engine, source: int, schedule: Sequence[str], most: int
) -> list[Search]:
    """Search by a schedule several times; leave out the first, which also sends the policy."""
    selector = FixedSelector(*(STRATEGIES[name] for name in schedule))
    searches: list[Search] = []
    while len(searches) <= most:
        searches.append(Search(engine.platform, source, selector))
        searches[-1].run()
        if len(searches) > 1 and sum(one.seconds for one in searches) > _ENOUGH_SECONDS:
            break
    return searches[1:]


def _level_seconds(searches: Sequence[Search]) -> Table:
    """Median seconds of each level over searches by one schedule."""
    return np.median([search.recording().seconds()[:, 0] for search in searches], axis=0)


def _beyond(searches: Sequence[Search], parts: Table) -> float:
    """Median seconds of searches beyond their `parts`, float64 (searches,)."""
    return float(np.median(np.array([search.seconds for search in searches]) - parts))
