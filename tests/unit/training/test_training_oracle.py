"""The best schedule: exact on any costs, and possible and no worse than others on real ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from graphs import core_with_tails, edge_list, nasty, path
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.rehearsal import sampled_levels
from hetero_bfs.scheduling.selectors import FixedSelector, Recording
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, STRATEGIES
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.training import measure
from hetero_bfs.training.measure import count_levels, measure_search, search_top_down
from hetero_bfs.training.oracle import SearchCosts, best_schedule, measure_costs, schedule_text

seconds = st.floats(0, 10, allow_nan=False)


@st.composite
def search_costs(draw):
    levels = draw(st.integers(1, 4))
    names = draw(st.lists(st.sampled_from(list(STRATEGIES)), min_size=1, max_size=5, unique=True))

    def table(*shape):
        return draw(arrays(np.float64, shape, elements=seconds))

    return SearchCosts(
        tuple(STRATEGIES[name] for name in names),
        table(levels, len(names)),
        table(2),
        table(levels, 2),
        table(levels, 2),
        draw(arrays(np.bool_, levels)),
        np.arange(levels),
    )


def walk(costs: SearchCosts, schedule) -> float:
    """Return the seconds of a schedule, migration by migration, as a search runs it."""
    names = [s.name for s in costs.strategies]
    total, kind, representation = 0.0, None, "queue"
    for level, name in enumerate(schedule):
        strategy = STRATEGIES[name]
        there = DEVICE_KINDS.index(strategy.device_kind)
        if kind is None:
            total += costs.start[there]
        else:
            if strategy.direction == "top-down" and representation == "bitmap":
                total += costs.convert[level, kind]
            if kind != there:
                total += costs.switch[level, there]
        total += costs.seconds[level, names.index(name)]
        dense_push = (
            strategy.name == "TC" and level + 1 < costs.num_levels and costs.dense_push[level + 1]
        )
        kind, representation = (
            there,
            "bitmap" if dense_push or strategy.direction == "bottom-up" else "queue",
        )
    return total


@given(search_costs())
def test_no_schedule_is_better(costs):
    names = [s.name for s in costs.strategies]
    least = min(walk(costs, schedule) for schedule in product(names, repeat=costs.num_levels))
    best = best_schedule(costs)
    assert best.seconds == pytest.approx(least)
    assert walk(costs, best.strategies) == pytest.approx(least)


@given(search_costs(), st.randoms(use_true_random=False))
def test_a_schedule_adds_up_to_its_levels_and_moves(costs, random):
    names = [s.name for s in costs.strategies]
    schedule = [random.choice(names) for _ in range(costs.num_levels)]
    assert costs.schedule_seconds(schedule) == pytest.approx(walk(costs, schedule))


@given(search_costs(), st.randoms(use_true_random=False))
def test_only_what_is_allowed_is_chosen(costs, random):
    names = [s.name for s in costs.strategies]
    among = random.sample(names, random.randint(1, len(names)))
    best = best_schedule(costs, among)
    assert set(best.strategies) <= set(among)
    assert best.seconds >= best_schedule(costs).seconds - 1e-12


def test_schedules_are_written_in_short():
    assert schedule_text(["TC", "TG", "BG", "BG", "BG", "TG"]) == "TC TG BG*3 TG"
    assert schedule_text([]) == ""


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=3000))
def test_levels_are_measured_from_the_first_to_the_last(edges):
    levels = sampled_levels(edges, 64)
    assert levels[0] == 0
    assert levels[-1] == len(edges) - 1
    assert len(levels) <= 64
    assert levels == sorted(set(levels))
    assert len(edges) > 64 or levels == list(range(len(edges)))


def test_levels_of_cores_are_measured():
    """A core, a chain of 900 levels, a second core, another chain."""
    core = [8, 900, 100_000, 9_000_000, 2_000_000, 10_000, 300]
    edges = [*core, *[16] * 900, *core, *[16] * 900]
    levels = sampled_levels(edges, 64)
    for begin in (0, 907):
        assert len(set(levels) & set(range(begin, begin + 8))) >= 6


@given(st.integers(0, 9000), st.integers(0, 9000), st.integers(1, 500))
def test_a_core_between_tails_is_measured_and_the_tails_are_too(before, after, width):
    core = [40.0, 9e4, 7e6, 3e6, 2e4, 300.0]
    sizes = np.array([2.0] * before + core + [float(width)] * after)
    levels = np.array(sampled_levels(sizes, 24))
    in_core = (levels >= before) & (levels < before + len(core))
    assert in_core.sum() >= 4
    assert np.diff(levels[in_core]).max() <= 2
    assert np.diff(levels).max() <= 1 + sizes.size / 6


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", ["Kronecker 10", "grid", "star", "two components"])
def test_on_real_searches(name):
    with Engine(nasty(name), "fixed:TC", device="cpu") as engine:
        source = int(engine.graph.degree.argmax())
        costs = measure_costs(engine, source, repeats=2, most_measured=16)
        best = best_schedule(costs)
        assert len(best.strategies) == costs.num_levels == count_levels(engine, source)[0]
        assert min(costs.num_levels, 13) <= costs.measured.size <= 16
        assert (costs.seconds > 0).all()
        for strategy in engine.candidates:
            alone = [strategy.name] * costs.num_levels
            assert best.seconds <= costs.schedule_seconds(alone) + 1e-12
        assert not costs.switch.any(), "there is no other device"


@pytest.mark.usefixtures("one_thread")
def test_a_level_between_measured_ones_lies_between_them():
    length = 400
    path = edge_list([(i, i + 1) for i in range(length - 1)], length)
    with Engine(path, "fixed:TC", device="cpu") as engine:
        source = int(engine.graph.relabelling.new_of_old[0])
        costs = measure_costs(engine, source, repeats=1, most_measured=20)
        first, second = costs.measured[-2:]
        ends = costs.seconds[[first, second]]
        between = costs.seconds[first : second + 1]
        assert (between >= ends.min(axis=0) - 1e-12).all()
        assert (between <= ends.max(axis=0) + 1e-12).all()


FIRST = LevelFeatures(0, 1, 4, 99, 396, 100, 400, 1.0, None, "queue")


def recorded(level_seconds, transfer_seconds):
    """Return what a search that took these seconds for its levels records."""
    records = np.zeros((len(level_seconds), schema.PREDICTED))
    records[:, schema.SECONDS] = level_seconds
    records[:, schema.TRANSFER_SECONDS] = transfer_seconds
    return Recording(records, FixedSelector(STRATEGIES["TC"]), 0, 0, 1)


def stand_in_for_searches(monkeypatch, level_seconds, seconds, transfer_seconds=0.0):
    """Let whole searches take so long, and their three levels what `level_seconds(names)` says.

    Returns a list of the strategies of each search that ran.
    """
    ran = []

    class Whole:
        def __init__(self, platform, source, selector):
            ran.append([s.name for s in selector.candidates])
            names = [ran[-1][i] for i in selector.policy.schedule]
            names += names[-1:] * (3 - len(names))
            self.recording = lambda: recorded(level_seconds(names), transfer_seconds)
            self.seconds = seconds

        def run(self):
            pass

    monkeypatch.setattr(measure, "Search", Whole)
    return ran


@pytest.mark.parametrize("clocked", [True, False])
def test_starting_is_what_whole_searches_take_beyond_their_levels(monkeypatch, clocked):
    """If a device times levels together, the time is divided in proportion to separate times."""
    walk = measure._Walk(FIRST)
    for level, (down, up) in enumerate(((1.0, 9.0), (9.0, 2.0), (3.0, 9.0))):
        for name, seconds in (("TC", down), ("BC", up)):
            walk.note(replace(FIRST, level=level), name, seconds, None)
    walk.note(replace(FIRST, level=1), "convert_cpu", 0.25, None)
    levels = (1.5, 2.5, 3.5) if clocked else (2.0, 2.0, 2.0)
    ran = stand_in_for_searches(monkeypatch, lambda names: levels, 10.0, 0.125)
    engine = SimpleNamespace(platform=None, candidates=[STRATEGIES["TC"], STRATEGIES["BC"]])
    walk.add_whole_searches(engine, 0, "cpu", 3)
    assert set(map(tuple, ran)) == {("TC", "BC")}
    assert walk.rows[-1][1] == "start_cpu"
    # Migrations before later levels are known; the first one's is the start itself.
    assert walk.rows[-1][2] == pytest.approx(10.0 - (7.5 if clocked else 6.0) - 2 * 0.125)
    alone = (1.0, 2.0, 3.0)  # and a conversion of 0.25, which is a row of its own
    levels = (1.5, 2.5, 3.5) if clocked else [6.0 * seconds / 6.25 for seconds in alone]
    assert walk.in_search == pytest.approx(
        {(0, "TC"): levels[0], (1, "BC"): levels[1], (2, "TC"): levels[2]}
    )


@pytest.mark.parametrize("with_rivals", [True, False])
def test_what_is_hardly_slower_is_measured_in_whole_searches_too(monkeypatch, with_rivals):
    """For an oracle. A level on which a strategy is far slower keeps its separate time."""
    walk = measure._Walk(FIRST, with_rivals)
    alone = {"TC": (1.0, 3.0, 3.0), "BC": (9.0, 4.0, 2.5)}
    in_search = {"TC": (1.5, 3.25, 5.0), "BC": (10.0, 6.0, 2.0)}
    for level in range(3):
        for name, seconds in alone.items():
            walk.note(replace(FIRST, level=level), name, seconds[level], None)

    def level_seconds(names):
        return [in_search[name][level] for level, name in enumerate(names)]

    stand_in_for_searches(monkeypatch, level_seconds, 20.0)
    engine = SimpleNamespace(platform=None, candidates=[STRATEGIES["TC"], STRATEGIES["BC"]])
    walk.add_whole_searches(engine, 0, "cpu", 3)
    fastest = {(0, "TC"): 1.5, (1, "TC"): 3.25, (2, "BC"): 2.0}
    rivals = {(1, "BC"): 6.0, (2, "TC"): 5.0}
    assert walk.in_search == (fastest | rivals if with_rivals else fastest)


@pytest.mark.usefixtures("many_threads")
def test_wide_levels_leave_bitmaps_top_down_too():
    """The oracle charges the conversion if top-down follows on the host."""
    with Engine(named_graph("uniform14").make(), "fixed:TC", device="cpu", threads=2) as engine:
        source = 0
        costs = measure_costs(engine, source, repeats=1)
        representations = [
            trace.features.representation for trace in search_top_down(engine, source).traces
        ]
    assert costs.dense_push.tolist() == [
        representation == "wide" for representation in representations
    ]
    assert costs.dense_push.any()
    level = int(costs.dense_push.argmax())
    assert costs.convert[level, 0] > 0
    assert costs.migrations()[level].tolist() == [[costs.convert[level, 0], 0.0]] * 2


@pytest.mark.parametrize("more", [0.75, -0.75])
@pytest.mark.parametrize("merging", [0.0, 0.5])
@pytest.mark.parametrize("clocked", [True, False])
def test_switches_bear_what_a_search_takes_beyond_its_parts(monkeypatch, clocked, merging, more):
    """The middle is the device's, TG and twice BG. A search has other times than levels apart."""
    walk = measure._Walk(FIRST)
    alone = {"TC": (1, 9, 9, 9, 1), "TG": (2, 2, 9, 9, 2), "BG": (9, 9, 3, 3, 9)}
    in_search = {"TC": (1.5, 8, 7, 6, 0.5), "TG": (4, 5, 9, 9, 2), "BG": (9, 9, 3, 2, 9)}
    crossing, conversion = {"cpu": 0.25, "device": 0.375}, 0.125
    for level in (0, 1, 2, 4):  # of a sample: the fourth one is taken for the third
        for name in STRATEGIES:
            seconds = float(alone[name][level]) if name in alone else 99.0
            walk.note(replace(FIRST, level=level), name, seconds, None)
        for kind, seconds in crossing.items():
            walk.note(replace(FIRST, level=level), f"to_{kind}", seconds, None)
        walk.note(replace(FIRST, level=level), "convert_device", conversion, None)

    class Whole:
        def __init__(self, platform, source, selector):
            names = [selector.candidates[i].name for i in selector.policy.schedule]
            names += names[-1:] * (5 - len(names))
            kinds = [STRATEGIES[name].device_kind for name in names]
            levels = [float(in_search[name][level]) for level, name in enumerate(names)]
            moved = [1e3, 0.0, 0.0, 0.0, 0.0]  # starting, which counts as that
            self.seconds = {"cpu": 0.5, "device": 50.0}[kinds[0]] + sum(levels)
            for level, (last, name) in enumerate(pairwise(names), 1):
                if last == "BG" and name != "BG":
                    moved[level] += conversion
                if kinds[level] != kinds[level - 1]:
                    moved[level] += crossing[kinds[level]]
                    self.seconds += {"cpu": 0.125, "device": more}[kinds[level]] + merging
                self.seconds += moved[level]
            if kinds.count("device") < 5 and kinds[0] == kinds[-1] == "cpu" != kinds[1]:
                self.seconds -= merging  # once for both crossings
            if not clocked:
                launch = [level for level, kind in enumerate(kinds) if kind == "device"]
                inside = [level for level in launch if level and kinds[level - 1] == "device"]
                took = sum(levels[level] for level in launch) + sum(moved[i] for i in inside)
                for level in launch:
                    levels[level] = took / len(launch)
                for level in inside:
                    moved[level] = 0.0
            self.recording = lambda: recorded(levels, moved)

        def run(self):
            pass

    monkeypatch.setattr(measure, "Search", Whole)
    engine = SimpleNamespace(platform=None, candidates=list(STRATEGIES.values()))
    for kind in ("cpu", "device"):
        walk.add_whole_searches(engine, 0, kind, 5)
    walk.charge_migrations(engine, 0, 5)
    apart = {"to_device": max(more + merging, 0.0), "to_cpu": 0.125 + merging}
    both = max(more + 0.125 + merging, 0.0)
    share = min(both / sum(apart.values()), 1.0)
    assert walk.beyond == pytest.approx({name: share * more for name, more in apart.items()})


@pytest.mark.usefixtures("one_thread")
def test_of_a_sample_every_level_has_its_own_seconds():
    """Each strategy once at each level that was asked for, and nothing at the others."""
    with Engine(path(40), selector="fixed:TC", device="cpu") as engine:
        source = int(engine.graph.relabelling.new_of_old[0])
        wanted = {0, 1, 2, 7, 20}
        rows = list(measure_search(engine, source, levels=wanted))
    for name in ("TC", "BC"):
        assert sorted(f.level for f, measured, *_ in rows if measured == name) == sorted(wanted)
    (start,) = [(f.level, seconds) for f, measured, seconds, _ in rows if measured == "start_cpu"]
    assert start[0] == 0
    assert start[1] > 0


@pytest.mark.usefixtures("many_threads")
def test_the_last_levels_of_bottom_up_are_measured_with_its_list():
    """As in a search: bottom-up scans the list's vertices, and leaves no bitmap to convert."""
    edges = core_with_tails()
    with Engine(edges, selector="fixed:BC", device="cpu", threads=2) as one:
        source = one.graph.searched_id(5)
        search = Search(one.platform, source, one.selector)
        search.run()
        rows = list(measure_search(one, source, repeats=1))
        costs = measure_costs(one, source, repeats=1)
    traces = search.traces
    edges_scanned = [row[3] for row in rows if row[1] == "BC"]
    assert edges_scanned == [
        int(record[schema.EDGES_SCANNED]) for record in search.recording().records
    ]
    leaves_list = [after.features.representation == "listed" for after in traces[1:]]
    assert any(leaves_list)
    converted = {row[0].level for row in rows if row[1] == "convert_cpu"}
    assert converted == {i for i, found_list in enumerate(leaves_list) if not found_list}
    assert (costs.convert[max(converted) + 2 :, 0] == 0).all()


@pytest.mark.usefixtures("many_threads")
def test_levels_after_a_wide_one_are_measured_from_a_queue():
    """As all others, though top-down searches have a bitmap as frontier there."""
    ends = np.random.default_rng(5).integers(0, 20_000, (2, 80_000))
    with Engine(EdgeList.from_arrays(*ends), selector="fixed:TC", device="cpu", threads=2) as one:
        source = 17
        search = Search(one.platform, source, one.selector)
        search.run()
        assert "wide" in {trace.features.representation for trace in search.traces}
        rows = list(measure_search(one, source, repeats=1))
    assert {features.representation for features, *_ in rows} == {"queue"}
    assert min(seconds for _, _, seconds, _ in rows) > 0
