"""Thresholds that a model finds best for a graph."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selector_levels import choose, is_dense_push, reference_of, states_of

import hetero_bfs as hb
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling import model_selectors, schema
from hetero_bfs.scheduling.correction import Correction
from hetero_bfs.scheduling.model_selectors import THRESHOLDS, ModelSelector, model_selector
from hetero_bfs.scheduling.policy import DIRECTION, MODEL
from hetero_bfs.scheduling.rehearsal import _ALPHAS, _BETAS, _NEGLIGIBLE, COUNT, with_alike
from hetero_bfs.scheduling.selectors import DirectionSelector, FixedSelector, Selector
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES, available
from hetero_bfs.scheduling.trace import LevelFeatures

ALL, HOST_ONLY = available(True), available(False)
N, M = 100_000, 1_600_000
LEVELS = ((1, 20), (30, 9_000), (9_000, 700_000), (50_000, 800_000), (5_000, 60_000), (40, 100))
PAIRS = (("TC", "BC"), ("TG", "BG"), ("TG", "BGC"))
UNITS = ("TC", "TG", "BC", "BG", "BGC", "start", "convert")


def model(start=1.0, convert=1.0, **units: float) -> SpeedModel:
    """Nanoseconds per frontier edge of top-down, and per edge that bottom-up scans."""
    learned = {
        name: Linear(
            ("constant", "frontier_edges" if s.direction == "top-down" else "expected_examined"),
            (1e-6, 1e-9 * units.get(name, 1.0)),
        )
        for name, s in STRATEGIES.items()
    }

    def migrations(seconds: float, column: str = "constant") -> dict[str, Linear]:
        return {
            "cpu": Linear((column,), (seconds,)),
            "device": Linear((column,), (3 * seconds,)),
        }

    return SpeedModel(
        "m",
        learned=learned,
        start=migrations(1e-6 * start),
        switch=migrations(1e-3),
        convert=migrations(1e-9 * convert, "frontier_vertices"),
        about={},
    )


def levels() -> list[LevelFeatures]:
    return states_of(LEVELS, N, M)


def bound(made: SpeedModel, candidates=ALL) -> ModelSelector:
    selector = model_selector("thresholds", made, candidates).on_graph(N, M, reference_of(levels()))
    assert selector.policy.rule == DIRECTION
    return selector


def searches() -> list[list[LevelFeatures]]:
    """Return the levels of the reference search, and of those like it."""
    return [
        [LevelFeatures.from_state(state, N, M) for state in search]
        for search in with_alike(reference_of(levels()))
    ]


def predicted(made: SpeedModel, selector: Selector, search: list[LevelFeatures]) -> float:
    """Add up what the model expects of the schedule that a rule chooses."""
    representation, total, before = "queue", 0.0, None
    for features in search:
        strategy = choose(selector, replace(features, representation=representation)).strategy
        total += made.learned[strategy.name].seconds(features)
        if before is None:
            total += made.start[strategy.device_kind].seconds(features)
        elif representation != "queue" and strategy.direction == "top-down":
            total += made.convert[strategy.device_kind].seconds(features)
        dense_push = strategy.name == "TC" and is_dense_push(features)
        top_down_left = "wide" if dense_push else "queue"
        representation = top_down_left if strategy.direction == "top-down" else "bitmap"
        before = strategy
    return total


@settings(max_examples=6, deadline=None)
@given(st.fixed_dictionaries({name: st.floats(0.05, 20.0) for name in UNITS}))
def test_no_other_thresholds_are_expected_to_take_less(units):
    made = model(**units)
    rules = [
        DirectionSelector(
            "rule", {"top-down": STRATEGIES[down], "bottom-up": STRATEGIES[up]}, alpha, beta
        )
        for down, up in PAIRS
        for alpha in _ALPHAS
        for beta in _BETAS
    ]

    def in_all(rule: Selector) -> float:
        return sum(predicted(made, rule, search) for search in searches())

    assert in_all(bound(made)) <= (1 + 1.01 * _NEGLIGIBLE) * min(map(in_all, rules))


def test_searches_like_the_reference_have_frontiers_between_its_levels():
    whole, *others = searches()
    assert whole == levels()
    assert len(others) >= 2
    for search in others:
        assert search[0] == whole[0]
        for one, between, next_one in zip(whole[1:], search[1:-1], whole[2:], strict=False):
            assert next_one.unvisited_edges <= between.unvisited_edges <= one.unvisited_edges
        for before, after in pairwise(search):
            found = before.unvisited_edges - after.unvisited_edges
            assert after.frontier_edges == pytest.approx(max(found, 1), abs=2)
    assert len({search[1].frontier_edges for search in (whole, *others)}) == 1 + len(others)


def test_each_level_of_a_long_search_to_rehearse_stands_for_several():
    long = np.ones((1000, schema.RECORD_STATE))
    long[:, schema.UNVISITED_EDGES] = long[:, schema.UNVISITED_VERTICES] = np.arange(1000, 0, -1)
    for search in with_alike(long):
        assert 50 < len(search) <= 64
        assert search[:, COUNT].sum() == 1000
        assert (search[:, COUNT] >= 1).all()
        assert search[-1, COUNT] == 1
    for search in with_alike(long[:40]):
        np.testing.assert_array_equal(search[:, COUNT], np.ones(40))


def test_thresholds_suit_searches_whose_frontiers_have_other_sizes(monkeypatch):
    """The reference grows from 3,000 to 900,000 edges at once, so the usual alpha of 8 suits it.

    A search that has 34,000 edges at that level would stay top-down, which takes longer.
    """
    where = (1, 20), (30, 3_000), (20_000, 900_000), (50_000, 600_000), (5_000, 60_000), (40, 100)
    monkeypatch.setattr(sys.modules[__name__], "LEVELS", where)
    made = model(TC=10.0, BC=0.01, BG=1e3, BGC=1e3)
    (between,) = [one[1] for one in searches() if 30_000 < one[1].frontier_edges < 60_000]
    assert choose(bound(made, HOST_ONLY), between).strategy.name == "BC"
    monkeypatch.setattr(model_selectors, "with_alike", lambda reference: with_alike(reference)[:1])
    assert choose(bound(made, HOST_ONLY), between).strategy.name == "TC"


def test_wide_levels_leave_bitmaps_that_top_down_must_turn():
    """The host's top-down alone would, after the level of 60,000 edges: so it is not the best."""
    dear = {kind: Linear(("constant",), (1.0,)) for kind in ("cpu", "device")}
    made = replace(model(TC=0.01, BC=1.0), convert=dear)
    assert [is_dense_push(features) for features in levels()].index(True) < len(LEVELS) - 1
    found = bound(made, HOST_ONLY)
    alone = FixedSelector(STRATEGIES["TC"])
    assert predicted(made, found, levels()) < 1.0 < predicted(made, alone, levels())


def test_where_bottom_up_is_dear_it_comes_late_or_never():
    cheap = bound(model(BC=0.01, BG=1e3, BGC=1e3))
    dear = bound(model(BC=100, BG=1e3, BGC=1e3, TG=2))
    assert {s.name for s in (cheap.candidates[i] for i in cheap.policy.schedule)} == {"TC", "BC"}
    names = [choose(dear, features).strategy.name for features in levels()]
    assert set(names) == {"TC"}
    record = np.zeros(schema.record_width(len(ALL)))
    assert "always top-down" in dear.read_choice(levels()[0], record).reason
    assert dear.rule == "TC alone"
    assert cheap.rule.startswith("TC and BC, alpha ")
    assert "BC" in [choose(cheap, features).strategy.name for features in levels()]


def test_before_it_knows_a_graph_it_is_beamers_rule():
    policy = model_selector("thresholds", model(), ALL).policy
    assert (policy.alpha, policy.beta) == (15.0, 18.0)


def test_predictions_are_shown_though_it_needs_none():
    selector = bound(model())
    features = levels()[2]
    record = np.full(schema.record_width(len(ALL)), np.nan)
    features.write_state(record)
    record[schema.STRATEGY] = selector.policy.schedule[0]
    selector.complete(features, record)
    choice = selector.read_choice(features, record)
    expected = choose(model_selector("learned", model(), ALL), features).predicted_seconds
    assert choice.predicted_seconds == pytest.approx(expected)
    assert "by the model" in choice.reason


def test_the_first_level_names_the_seconds_that_were_compared():
    made = model(TC=0.05, BC=0.1, BG=50, BGC=60, TG=50)
    selector = model_selector("auto", made, ALL).on_graph(N, M, reference_of(levels()))
    assert selector.policy.rule == DIRECTION
    first, second = (choose(selector, features).reason for features in levels()[:2])
    assert second.endswith("TC and BC for the whole search, by the model")
    named = re.fullmatch(
        r".*by the model: (\d+) us; choosing at each level (\d+) us, TG and BG (\d+) us", first
    )
    own, plan, device = map(int, named.groups())
    expected = [predicted(made, selector, search) for search in searches()]
    assert own == pytest.approx(1e6 * sum(expected) / len(expected), abs=1)
    assert own <= plan < device


def test_a_plan_that_wins_is_the_rule_and_the_first_level_names_the_seconds(monkeypatch):
    seconds = {DIRECTION: 3e-6, MODEL: 1e-6}
    monkeypatch.setattr(ModelSelector, "_expected", lambda _, policy: seconds[policy.rule])
    made = model(TC=0.05, BC=0.1, BG=50, BGC=60, TG=50)
    selector = model_selector("auto", made, ALL).on_graph(N, M, reference_of(levels()))
    assert selector.rule == "choosing at each level"
    first, second = (choose(selector, features).reason for features in levels()[:2])
    assert re.search(r"; choosing at each level: 0 us; TC and BC 0 us, TG and BG \d+ us$", first)
    assert "choosing" not in second


def test_corrected_it_looks_for_other_thresholds():
    base = bound(model(TC=1, BC=1, BG=50, BGC=50, TG=50))
    factors = np.ones(base.factors.size)
    for size in (schema.SMALL, schema.LARGE):
        factors[size * len(ALL) + [s.name for s in ALL].index("BC")] = 1e4
        factors[size * len(ALL) + [s.name for s in ALL].index("TC")] = 1e2
    other = base.corrected(factors)
    assert {ALL[i].device_kind for i in base.policy.schedule} == {"cpu"}
    assert {ALL[i].device_kind for i in other.policy.schedule} == {"device"}
    assert Correction(base).is_of(base)
    assert not Correction(base).is_of(bound(model(TC=2, BC=1, BG=50, BGC=50, TG=50)))


def test_one_direction_alone_is_refused():
    with pytest.raises(ModelError, match="bottom-up strategy on one device; there are TC, BG"):
        model_selector("thresholds", model(), [STRATEGIES["TC"], STRATEGIES["BG"]])


def test_an_engine_searches_by_them(trained, one_thread):
    trained(None)
    with hb.Engine(hb.KroneckerEdges(8), selector="thresholds", device="cpu") as engine:
        assert engine.selector.rules == (THRESHOLDS,)
        assert engine.selector.policy.rule == DIRECTION
        source = int(np.flatnonzero(engine.graph.input_degree)[0])
        result = engine.bfs(source)
        assert result.traces[0].predicted_seconds.keys() == {"TC", "BC"}
        with hb.Engine(engine.graph, selector="fixed:TC", device="cpu") as other:
            assert np.array_equal(result.parent < 0, other.bfs(source).parent < 0)
