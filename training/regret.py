"""Regret: how much slower a selector's schedule is than the best one known.

A configuration is a single strategy (`fixed:TC`), a selector, or `none`. `none` stands for no
selector: the strategy that, in hindsight, was the best single one for this search. Selectors are as
in the first search of an engine without corrections. `auto-settled` is `auto` as an engine has
corrected it after `SETTLING` searches from other sources.

For each graph and source every configuration searches once, which gives its schedule. The oracle
(oracle.py) finds the best schedule from measured levels and migrations. All distinct schedules are
then replayed alternately as fixed ones, in one run of several rounds. The oracle's best schedules
that stay on one device are replayed, too, since measured migrations are its least certain part.

A configuration's `seconds` are the median of its schedule's replays. Equal schedules therefore have
equal seconds, and noise adds no regret. `oracle_seconds` is the least median of all replays.
`regret` is seconds / oracle_seconds - 1.

`seconds` exclude the time of choosing. `selection_share` is the share of that time in the search's
time, beyond the time to read a fixed schedule. On the host its clock measures it. If the device
chooses within a launch, it is the search's time beyond that of the replay.

A schedule whose levels add up to more than `SLOWEST` times the oracle's is not replayed. Its
seconds are that sum, and `estimated` is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import cycle
from statistics import median
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo, machine_slug
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import ModelError
from hetero_bfs.graph.generators.families import StudyGraph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.model_selectors import ModelSelector
from hetero_bfs.scheduling.selectors import FixedSelector, Selector
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, MODEL_SELECTORS, STRATEGIES, host_only
from hetero_bfs.training.measure import count_levels
from hetero_bfs.training.oracle import best_schedule, measure_costs, schedule_text

SELECTORS = ("alpha-beta", "daga", *MODEL_SELECTORS, "auto")
ORACLE, NONE, SETTLED = "oracle", "none", "auto-settled"
SETTLING = 8
SLOWEST = 8.0
ROUNDS = 7
COLUMNS = (
    "machine",
    "family",
    "graph",
    "root",
    "selector",
    "seconds",
    "oracle_seconds",
    "regret",
    "selection_share",
    "estimated",
    "schedule",
)

REPLAY_SECONDS = 1.0
"""Least time of replays; it may take more rounds than `rounds`."""

TIMED = 2
"""Timed runs of a schedule in a round, after an untimed one."""

_MOST_ROUNDS = 51
_KEYS_DRAWN = 16
_OTHER_SOURCES = 4
_LEAST_REACHED = 0.1  # share of the searched vertices; excludes searches of small components

_Names = tuple[str, ...]
T = TypeVar("T")


def measure_regret(
    graphs: Iterable[StudyGraph],
    info: DeviceInfo | None,
    sources: int = 2,
    rounds: int = ROUNDS,
) -> pd.DataFrame:
    """Measure the regret of every configuration on graphs.

    info : the OpenCL device to use with the host, None for the host only
    sources : searches of each graph, from different sources
    rounds : least number of rounds; each replays every schedule twice

    Of `SELECTORS`, those that cannot run on this machine are left out. Returns a row for each
    graph, source and configuration, with the columns `COLUMNS`; the head of this file explains
    them. `root` is the source in the caller's ids.
    """
    rows: list[dict[str, Any]] = []
    for graph in graphs:
        lists, settings = build_search_graph(graph.make()), device_settings(info)
        *_, (_, last) = settle(lists, "auto", sources, SETTLING, settings)
        settled = {SETTLED: last} if isinstance(last, ModelSelector) else {}
        with Engine(lists, host_only(), correction=False, **settings) as engine:
            made = dict(_make_selectors(engine)) | settled
            rows += measure_graph(engine, graph, sources, rounds, made)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def measure_graph(
    engine: Engine,
    graph: StudyGraph,
    sources: int = 2,
    rounds: int = ROUNDS,
    selectors: dict[str, Selector] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the engine's graph; see `measure_regret`.

    `selectors` are by name, by default all of `SELECTORS`. This changes the engine's selector.
    """
    made = dict(_make_selectors(engine)) if selectors is None else selectors
    machine = machine_slug(engine.device_info)
    for key in sources_of(engine, sources):
        for row in _Replays(engine, key, made, rounds).rows():
            yield {"machine": machine, "family": graph.family, "graph": graph.name, "root": key} | (
                row
            )


def sources_of(engine: Engine, count: int) -> list[int]:
    """Draw sources (the caller's ids) whose searches reach much of the graph.

    They are Graph500's keys that reach at least a tenth of the searched vertices. In a graph of
    many small components there may be too few. Then the rest is drawn from the component with the
    most edges: of 16 drawn vertices the sources that reach the most.
    """
    graph: SearchGraph = engine.graph
    keys = search_keys(graph.num_vertices, graph.is_isolated, _KEYS_DRAWN)
    new, old = graph.relabelling.new_of_old, graph.relabelling.old_of_new
    found: list[int] = []
    for key in keys:
        levels, reached = count_levels(engine, int(new[key]))
        if levels and reached >= _LEAST_REACHED * graph.num_searched:
            found.append(key)
        if len(found) == count:
            return found
    drawn = [int(new) for new in draw_from_largest_component(graph) if old[new] not in found]
    drawn.sort(key=lambda source: count_levels(engine, source)[1], reverse=True)
    return found + [int(old[source]) for source in drawn[: count - len(found)]]


def draw_from_largest_component(graph: SearchGraph) -> npt.NDArray[np.int64]:
    """Draw vertices with edges (new ids) from the weak component with the most edges."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    lists = graph.graph
    if lists.num_stored_edges == 0:
        return np.empty(0, np.int64)
    ones = np.ones(lists.num_stored_edges, np.int8)
    shape = (lists.num_vertices, lists.num_vertices)
    matrix = csr_array((ones, lists.indices, lists.indptr), shape)
    _, component = connected_components(matrix, directed=lists.directed, connection="weak")
    edges = np.bincount(component, weights=lists.degree())
    members = np.flatnonzero((component == edges.argmax()) & (lists.degree() > 0))
    size = min(_KEYS_DRAWN, members.size)
    return np.asarray(np.random.default_rng(0).choice(members, size, replace=False))


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Return regret by selector: geometric means of 1 + regret, minus 1.

    Columns: one for each family; `all`, the mean over families with equal weights; `worst`, the
    largest mean of a family; `selection`, the mean of `selection_share`. Sorted by `all`.
    """
    logarithm = np.log1p(table["regret"]).groupby([table["selector"], table["family"]]).mean()
    families = logarithm.unstack()
    summary = np.expm1(families)
    summary["all"] = np.expm1(families.mean(axis=1))
    summary["worst"] = np.expm1(families.max(axis=1))
    summary["selection"] = table.groupby("selector")["selection_share"].mean()
    return summary.sort_values("all")


def in_percent(summary: pd.DataFrame) -> pd.DataFrame:
    shown = summary.map(lambda value: "-" if np.isnan(value) else f"{100 * value:.1f} %")
    shown.insert(0, "selector", shown.index)
    return shown.reset_index(drop=True)


def _make_selectors(engine: Engine) -> Iterator[tuple[str, Selector]]:
    """Make the selectors that can run; without a model no other selector replaces a model's."""
    for name in SELECTORS:
        try:
            engine.set_selector(name)
        except ModelError:
            continue
        if name in MODEL_SELECTORS and engine.selector.name != name:
            continue
        yield name, engine.selector


def settle(
    graph: SearchGraph,
    selector: str | Selector,
    sources: int,
    searches: int,
    settings: dict[str, Any],
) -> Iterator[tuple[int, Selector]]:
    """Yield a new engine's selector, and each one by which corrections replace it.

    The engine searches `searches` times, from other sources than the first `sources` ones of
    `sources_of`. The number is that of the searches before the selector. Each selector stays as it
    is in other engines.
    """
    with Engine(graph, selector, **settings) as engine:
        drawn = sources_of(engine, sources + _OTHER_SOURCES)
        others = drawn[sources:] or drawn
        used = None
        for number, key in zip(range(1 + searches), cycle(others), strict=False):
            if number:
                engine.search(key)
            if engine.selector is not used:
                used = engine.selector
                found = copy(used)
                found.uncorrected = found
                yield number, found


def in_turns(turns: Sequence[T], rounds: int, round_seconds: float) -> Iterator[T]:
    """Yield all turns in each round, in random order; short rounds take `REPLAY_SECONDS`."""
    count = max(rounds, min(int(REPLAY_SECONDS / max(round_seconds, 1e-9)), _MOST_ROUNDS))
    order = np.random.default_rng(0)
    for _ in range(count):
        for number in order.permutation(len(turns)):
            yield turns[number]


class _Replays:
    def __init__(
        self, engine: Engine, key: int, selectors: dict[str, Selector], rounds: int
    ) -> None:
        self.engine, self.key, self.selectors = engine, key, selectors
        source = int(engine.graph.relabelling.new_of_old[key])
        self.costs = measure_costs(engine, source)
        self.schedules = self._schedules()
        sums = {names: self.costs.schedule_seconds(names) for names in self.schedules.values()}
        limit = SLOWEST * sums[self.schedules[ORACLE]]
        self.estimates = {names: total for names, total in sums.items() if total > limit}
        self.fixed = {
            names: FixedSelector(*(STRATEGIES[name] for name in names))
            for names in sums
            if names not in self.estimates
        }
        self.replays: dict[_Names, list[float]] = {names: [] for names in self.fixed}
        self.lives: dict[str, list[float]] = {
            config: [] for config in selectors if self.schedules[config] in self.fixed
        }
        self.selects: dict[Any, list[float]] = {
            config: [] for config in (*self.lives, *self.replays)
        }
        self._replay(rounds, sum(sums[names] for names in self.fixed))

    def rows(self) -> Iterator[dict[str, Any]]:
        seconds = {names: median(times) for names, times in self.replays.items()}
        oracle_seconds = min(seconds.values())
        seconds |= self.estimates
        alone = [config for config in self.schedules if config.startswith("fixed:")]
        configs = {config: names for config, names in self.schedules.items() if "," not in config}
        configs[NONE] = configs[min(alone, key=lambda config: seconds[configs[config]])]
        for config, names in configs.items():
            yield {
                "selector": config,
                "seconds": seconds[names],
                "oracle_seconds": oracle_seconds,
                "regret": seconds[names] / oracle_seconds - 1.0,
                "selection_share": self._selection_share(config, names, seconds[names]),
                "estimated": names in self.estimates,
                "schedule": schedule_text(names),
            }

    def _schedules(self) -> dict[str, _Names]:
        """Return the schedule of each configuration, and the oracle's on each single device."""
        costs, candidates = self.costs, self.engine.candidates
        found = {f"fixed:{s.name}": (s.name,) * costs.num_levels for s in candidates}
        for config, selector in self.selectors.items():
            self.engine.set_selector(selector)
            traces = self.engine.search(self.key).traces
            found[config] = tuple(trace.strategy for trace in traces)
        for kind in DEVICE_KINDS:
            names = [s.name for s in candidates if s.device_kind == kind]
            if names:
                found[f"{ORACLE},{kind}"] = best_schedule(costs, names).strategies
        found[ORACLE] = best_schedule(costs).strategies
        return found

    def _replay(self, rounds: int, round_seconds: float) -> None:
        """Replay all schedules and the selectors' own searches, in random order in each round."""
        turns: list[tuple[Selector, list[float], list[float]]] = []
        turns += [(self.fixed[n], times, self.selects[n]) for n, times in self.replays.items()]
        turns += [(self.selectors[w], times, self.selects[w]) for w, times in self.lives.items()]
        expected = round_seconds * (1 + TIMED) * len(turns) / len(self.fixed)
        for selector, times, selects in in_turns(turns, rounds, expected):
            self.engine.set_selector(selector)
            self.engine.search(self.key)
            for _ in range(TIMED):
                search = self.engine.search(self.key)
                times.append(search.seconds)
                records = search.recording().records
                selects.append(float(records[:, schema.SELECT_SECONDS].sum()))

    def _selection_share(self, config: str, names: _Names, seconds: float) -> float:
        """NaN if the search was not repeated."""
        if config not in self.selectors:
            return 0.0
        if config not in self.lives:
            return float("nan")
        live = median(self.lives[config])
        if all(STRATEGIES[name].device_kind == "cpu" for name in names):
            more = median(self.selects[config]) - median(self.selects[names])
            return max(more, 0.0) / live
        return max(live - seconds, 0.0) / live
