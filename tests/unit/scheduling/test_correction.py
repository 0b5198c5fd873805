"""Corrected predictions: simulated level times, so that what a correction does is exact."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_models import model_json
from selector_levels import choose, reference_of, states_of

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.correction import Correction, factors_of
from hetero_bfs.scheduling.correction_kernels import (
    BOUND,
    DEAD_BAND,
    PATIENCE,
    RATIO,
    WINDOW,
)
from hetero_bfs.scheduling.model_files import read_model
from hetero_bfs.scheduling.model_selectors import ModelSelector, migration_names, model_selector
from hetero_bfs.scheduling.selectors import FixedSelector, Recording
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES, available
from hetero_bfs.scheduling.trace import LevelFeatures

ALL = available(True)
N, M = 100_000, 3_200_000
LEVELS = (
    (1, 20),
    (20, 40_000),
    (15_000, 1_500_000),
    (60_000, 1_500_000),
    (20_000, 150_000),
    (9, 9),
)
"""Vertices and edges of the frontiers of a search like that of a Kronecker graph."""

CORE_AND_TAIL = (*LEVELS, *[(8, 16)] * 300)
"""The same with chains."""

CORE_AND_LONG_TAIL = (*LEVELS, *[(2, 4)] * 1000)
"""The chains take about as long as the core."""


def truth() -> SpeedModel:
    """The machine: top-down 1 ns an edge on the host, bottom-up 10 ns a vertex, the device 2x."""
    return read_model(json.dumps(model_json("machine")), "made")


def spoiled(factors) -> ModelSelector:
    """A selector by a model that is off by these factors, of strategies and migrations."""
    return model_selector("learned", spoil(truth(), factors), ALL)


def spoil(model: SpeedModel, factors) -> SpeedModel:
    data = model.to_json()
    for name, columns in data["learned"].items():
        data["learned"][name] = {k: v * factors.get(name, 1.0) for k, v in columns.items()}
    for migration in migration_names(ALL):
        what, place = migration.split(" ", 1)
        key = place.replace(" ", "_")
        columns = data[what][key]
        data[what][key] = {k: v * factors.get(migration, 1.0) for k, v in columns.items()}
    return read_model(json.dumps(data), "spoiled")


def search(
    selector, clocked=True, slower=lambda level, name: 1.0, levels=LEVELS
) -> tuple[Recording, float]:
    """Search as the selector chooses, on the machine as `truth` has it; levels' times are exact.

    Without a clock on the device, levels back to back there show the same mean time.
    """
    real = truth()
    records = np.zeros((len(levels), schema.record_width(len(selector.candidates))))
    records[:, schema.PREDICTED :] = np.nan
    kind, representation, previous = None, "queue", M / N
    unvisited = [N, M]
    for number, (vertices, edges) in enumerate(levels):
        unvisited = [unvisited[0] - vertices, unvisited[1] - edges]
        features = LevelFeatures(
            number, vertices, edges, *unvisited, N, M, edges / previous, kind, representation
        )
        previous = edges
        record = records[number]
        features.write_state(record)
        record[schema.CHOSEN_AT] = number
        choice = choose(selector, features)
        strategy = choice.strategy
        record[schema.STRATEGY] = selector.candidates.index(strategy)
        moving = 0.0
        if kind is None:
            moving = real.start[strategy.device_kind].seconds(features)
        else:
            if strategy.direction == "top-down" and representation == "bitmap":
                moving += real.convert[kind].seconds(features)
            if strategy.device_kind != kind:
                moving += real.switch[strategy.device_kind].seconds(features)
        seconds = real.learned_seconds(features, strategy) * slower(number, strategy.name)
        record[schema.SECONDS], record[schema.TRANSFER_SECONDS] = seconds, moving
        kind = strategy.device_kind
        representation = "queue" if strategy.direction == "top-down" else "bitmap"
    if not clocked:
        forget_the_clock(selector, records)
    total = float(records[:, [schema.SECONDS, schema.TRANSFER_SECONDS]].sum())
    return Recording(records, selector, N, M, 1), total


def forget_the_clock(selector, records) -> None:
    """Divide the time of a stay on the device among its levels, migration there included."""
    places = [selector.candidates[int(r)].device_kind for r in records[:, schema.STRATEGY]]
    begin = 0
    for i in range(1, len(places) + 1):
        if i == len(places) or places[i] != places[begin]:
            if places[begin] == "device":
                stay = records[begin:i]
                both = [schema.SECONDS, schema.TRANSFER_SECONDS]
                stay[:, schema.SECONDS] = stay[:, both].sum() / len(stay)
                stay[:, schema.TRANSFER_SECONDS] = 0.0
            begin = i


def informed(base) -> Correction:
    """Return a correction that has learned from searches by all strategies."""
    correction = Correction(base)
    for schedule in ("TC,TC,BC,BC,TC,TC", "TG,TG,BG,BG,TG,TG", "TC,TC,BGC,BGC,TC,TC") * WINDOW:
        fixed = FixedSelector(*(STRATEGIES[name] for name in schedule.split(",")))
        correction.learn(*search(fixed))
    return correction


def cost(selector) -> float:
    return search(selector)[1]


BEST = cost(model_selector("learned", truth(), ALL))
RULE = cost(FixedSelector(*(STRATEGIES[name] for name in ("TC", "TC", "BC", "BC", "BC", "BC"))))
THINGS = [s.name for s in ALL] + migration_names(ALL)
FACTORS = [f"{s.name} (small levels)" for s in ALL] + THINGS
"""The names of all factors, in order; the small levels come first."""
ANY_FACTORS = st.fixed_dictionaries({name: st.sampled_from([0.1, 1.0, 10.0]) for name in THINGS})


def run(factors, searches=32, clocked=True, is_informed=True):
    """Search again and again by a spoiled model; return the correction and all seconds."""
    correction = (informed if is_informed else Correction)(spoiled(factors))
    seconds = []
    for _ in range(searches):
        recording, took = search(correction.selector, clocked)
        seconds.append(took)
        correction.learn(recording, took)
    return correction, seconds


@pytest.mark.parametrize("clocked", [True, False])
@settings(max_examples=60)
@given(factors=ANY_FACTORS)
def test_no_mistake_by_ten_costs_more_than_twice_beamers_rule(clocked, factors):
    _, seconds = run(factors, clocked=clocked)
    assert sum(seconds) <= 2 * len(seconds) * RULE
    if clocked:  # else levels of one stay on the device are told apart only by what is expected
        assert seconds[-1] <= DEAD_BAND * BEST


def test_that_is_no_matter_of_course():
    """Uncorrected, such a model costs more."""
    worst = max(cost(spoiled({name: f})) for name in ("TC", "BC", "BG", "BGC") for f in (0.1, 10))
    assert worst > 2 * RULE


@settings(max_examples=60)
@given(factors=ANY_FACTORS)
def test_predictions_come_true(factors):
    """What a spoiled model predicts of the strategies it chooses is in the end what they take."""
    correction, _ = run(factors, searches=PATIENCE // 2)
    recording, _ = search(correction.selector)
    for trace in recording.traces():
        taken = trace.seconds + trace.transfer_seconds
        if taken > 0.1 * BEST:
            ratio = trace.predicted_seconds[trace.strategy] / taken
            assert 1 / DEAD_BAND <= ratio <= DEAD_BAND


def test_what_looks_too_cheap_is_found_out():
    """Each wrong choice is made once, and costs what it costs."""
    correction, seconds = run({"BGC": 0.1, "TG": 0.1}, is_informed=False)
    assert seconds[0] > seconds[-1]
    assert seconds[-1] <= DEAD_BAND * BEST
    assert factors_of(correction.selector).keys() >= {"TG", "BGC"}


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_factors_are_bounded(factor):
    correction, _ = run(dict.fromkeys(THINGS, factor))
    found = factors_of(correction.selector)
    assert set(found.values()) == {1 / BOUND if factor > 1 else BOUND}


def test_a_model_that_is_right_or_nearly_so_is_left_alone():
    base = spoiled({"TC": 1.1, "BC": 0.95, "BG": 1.1, "BGC": 1.05, "switch to cpu": 1.4})
    correction = informed(base)
    for _ in range(20):
        assert correction.learn(*search(correction.selector)) is base
    assert factors_of(base) == {}
    assert "corrected" not in search(base)[0].traces()[0].reason


@pytest.mark.parametrize("slower", [1.8, 6.0])
def test_only_clear_errors_are_corrected(slower):
    """Below that only the host as a whole counts as slower. BC ran at large levels alone."""
    found = factors_of(informed(spoiled({"BC": 1 / slower})).selector)
    beside_others = found["BC"] / found.get("TC", 1.0)
    assert beside_others == pytest.approx(slower if slower > DEAD_BAND else 1.0, rel=0.01)
    assert "BC (small levels)" not in found


def test_a_single_search_corrects_nothing():
    correction = Correction(spoiled({"BC": 0.1}))
    host = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BC", "BC", "TC", "TC")))
    assert factors_of(correction.learn(*search(host))) == {}


def test_a_machine_that_is_slower_in_all_keeps_its_choices():
    base = spoiled({})
    correction = informed(base)
    for _ in range(64):
        recording, took = search(correction.selector, slower=lambda level, name: 3.0)
        correction.learn(recording, took)
    factors = correction.selector.factors
    before = [t.strategy for t in search(base)[0].traces()]
    assert [t.strategy for t in search(correction.selector)[0].traces()] == before
    assert factors[FACTORS.index("TC")] == pytest.approx(3.0, rel=0.3)


@pytest.mark.parametrize("small", [True, False], ids=["small levels", "large levels"])
def test_what_is_learned_at_levels_of_one_size_says_nothing_about_the_other(small):
    """The host's formulas of one size are ten times too high; in the end all predictions hold."""
    wrong = spoil(truth(), {"TC": 10.0, "BC": 10.0}).learned
    model = replace(truth(), **{"learned_small" if small else "learned": wrong})
    if not small:
        model = replace(model, learned_small=truth().learned)
    correction = Correction(model_selector("learned", model, ALL))
    schedules = "TC,TC,BC,BC,TC,TC", "TC,TC,BC,BC,BC,TC,BC", "TG,TG,BG,BG,TG,TG"
    for schedule in schedules * WINDOW:
        fixed = FixedSelector(*(STRATEGIES[name] for name in schedule.split(",")))
        correction.learn(*search(fixed, levels=CORE_AND_TAIL))
    factors = dict(zip(FACTORS, correction.selector.factors.tolist(), strict=True))
    for name in ("TC", "BC"):
        here, there = f"{name} (small levels)", name
        here, there = (here, there) if small else (there, here)
        assert factors[here] == pytest.approx(0.1, rel=0.01)
        assert factors[there] == 1.0
    records = search(correction.selector, levels=CORE_AND_TAIL)[0]
    for trace in records.traces():
        taken = trace.seconds + trace.transfer_seconds
        assert trace.predicted_seconds[trace.strategy] == pytest.approx(taken, rel=0.01)


def test_a_disturbed_search_changes_nothing():
    base = spoiled({})
    correction = informed(base)
    for number in range(30):
        disturbed = number % WINDOW < WINDOW // 2
        recording, took = search(
            correction.selector, slower=lambda level, name, d=disturbed: 50.0 if d else 1.0
        )
        correction.learn(recording, took)
        assert correction.selector is base


def test_levels_that_take_no_time_say_nothing():
    """The first level takes a microsecond and is 20 times as slow as predicted: it is noise."""
    base = spoiled({})
    correction = informed(base)
    for _ in range(10):
        recording, took = search(base, slower=lambda level, name: 20.0 if level == 0 else 1.0)
        assert correction.learn(recording, took) is base


@pytest.mark.parametrize("small", [True, False], ids=["small levels", "large levels"])
def test_a_place_that_is_a_little_slower_is_so_for_all_its_strategies(small):
    """The host is slower by less than a strategy's factor needs, at levels of one size."""
    base = model_selector("learned", truth(), ALL)
    correction = Correction(base)
    schedule = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BC", "BC", "TC", "TC")))
    size = schema.SMALL if small else schema.LARGE

    def slower(level, name):
        return 1.4 if schema.size_of(CORE_AND_LONG_TAIL[level][1]) == size else 1.0

    selectors = [
        correction.learn(*search(schedule, slower=slower, levels=CORE_AND_LONG_TAIL))
        for _ in range(WINDOW)
    ]
    assert selectors[WINDOW // 2 - 1] is base, "four of six searches must agree"
    suffix = " (small levels)" if small else ""
    assert factors_of(correction.selector) == {
        f"TC{suffix}": pytest.approx(1.4),
        f"BC{suffix}": pytest.approx(1.4),
    }


def test_no_factor_exceeds_what_was_measured_if_all_is_slower():
    correction = Correction(model_selector("learned", truth(), ALL))
    for _ in range(40):
        recording, took = search(correction.selector, slower=lambda level, name: 3.0)
        correction.learn(recording, took)
    assert max(correction.selector.factors) < 3.1


def test_a_place_begins_anew_without_a_strategy_that_gets_a_factor_of_its_own():
    """BC alone is slower, at first by less than a factor of its own needs."""
    base = model_selector("learned", truth(), ALL)
    correction = Correction(base)
    schedule = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BC", "BC", "BC", "BC")))
    for slow in (0.75 * DEAD_BAND, 1.5 * DEAD_BAND):
        for _ in range(2 * WINDOW):
            recording, took = search(
                schedule, slower=lambda level, name, s=slow: s if name == "BC" else 1.0
            )
            correction.learn(recording, took)
    assert factors_of(correction.selector) == {"BC": pytest.approx(1.5 * DEAD_BAND)}


def test_a_place_that_is_tried_again_needs_most_of_six_searches():
    base = model_selector("learned", truth(), ALL)
    correction = Correction(base)
    host = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BC", "BC", "BC", "BC")))
    device = FixedSelector(*(STRATEGIES[n] for n in ("TG", "TG", "BG", "BG", "BG", "BG")))
    for _ in range(WINDOW):
        correction.learn(*search(host, slower=lambda level, name: 1.4))
    assert factors_of(correction.selector)["BC"] == pytest.approx(1.4)
    for _ in range(PATIENCE):
        correction.learn(*search(device))
    assert factors_of(correction.selector) == {}
    correction.learn(*search(host, slower=lambda level, name: 3.0))
    assert factors_of(correction.selector) == {}


def test_migrations_include_what_lies_beyond_levels(monkeypatch):
    """A tenth of their time is timed. No search stays at one place, so the start is the model's."""
    made = model_json("machine")
    made["switch"] = {"to_cpu": {"constant": 5e-4}, "to_device": {"constant": 5e-4}}
    model = read_model(json.dumps(made), "made")
    monkeypatch.setitem(globals(), "truth", lambda: model)
    correction = Correction(model_selector("learned", model, ALL))
    crossing = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BG", "BG", "TC", "TC")))
    for _ in range(2 * WINDOW):
        recording, took = search(crossing)
        recording.records[1:, schema.TRANSFER_SECONDS] /= 10
        recording.records[0, schema.TRANSFER_SECONDS] = 0.0  # the start lies beyond, too
        correction.learn(recording, took)
    names = migration_names(ALL)
    ratios = dict(zip(names, correction._memory[2 * len(ALL) :, RATIO].tolist(), strict=False))
    assert ratios["switch to device"] == pytest.approx(1.0, rel=0.02)
    assert ratios["switch to cpu"] == pytest.approx(1.0, rel=0.02)


def test_levels_that_share_a_record_are_expected_to_be_steady(monkeypatch):
    """Only the first of them has a much smaller frontier than the level before."""
    made = model_json("machine")
    made["learned"]["TC"] |= {"unsteadiness": 2e-5}
    model = read_model(json.dumps(made), "made")
    monkeypatch.setitem(globals(), "truth", lambda: model)
    base = model_selector("learned", model, ALL)
    correction = informed(base)
    schedule = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BC", "BC", "TC", "TC")))
    recording, took = search(schedule, levels=CORE_AND_LONG_TAIL)
    records, tail = recording.records, len(LEVELS)
    rest = records[tail + 1 :]
    assert records[tail, schema.SECONDS] > 5 * rest[:, schema.SECONDS].max()
    records[tail, schema.SECONDS] += rest[:, schema.SECONDS].sum()
    records[tail, schema.FURTHER_LEVELS] = len(rest)
    merged = replace(recording, records=records[: tail + 1])
    for _ in range(WINDOW):
        assert correction.learn(merged, took) is base


def test_what_a_busy_machine_made_look_slow_is_tried_again():
    base = spoiled({})
    correction = informed(base)
    chosen = search(base)[0].traces()[2].strategy
    for _ in range(WINDOW):
        recording, took = search(base, slower=lambda level, name: 20.0 if name == chosen else 1.0)
        correction.learn(recording, took)
    assert factors_of(correction.selector)[chosen] > 10
    assert search(correction.selector)[0].traces()[2].strategy != chosen
    for _ in range(PATIENCE * 8):
        correction.learn(*search(correction.selector))
    assert search(correction.selector)[0].traces()[2].strategy == chosen


def test_what_is_slow_indeed_is_tried_again_ever_more_rarely():
    """BC is as predicted at first. Each retry costs four searches, which most of six decide."""
    correction = informed(spoiled({"BC": 0.5}))
    tried = []
    for number in range(2000):
        recording, took = search(
            correction.selector, slower=lambda level, name: 30.0 if name == "BC" else 1.0
        )
        correction.learn(recording, took)
        if any(t.strategy == "BC" for t in recording.traces()):
            tried.append(number)
    starts = tried[::4]
    assert tried == [start + more for start in starts for more in range(4)]
    pauses = np.diff(starts)
    assert len(pauses) >= 4
    assert (pauses >= PATIENCE).all()
    assert (pauses[1:] >= 1.85 * pauses[:-1]).all()


def test_switches_bear_what_a_search_takes_beyond_its_levels():
    """Such as merging parents, which no level's time shows."""
    base = spoiled({})
    correction = informed(base)
    crossing = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BG", "BG", "TC", "TC")))
    for _ in range(WINDOW):
        correction.learn(*search(FixedSelector(STRATEGIES["TC"])))
        recording, took = search(crossing)
        correction.learn(recording, took + 1e-3)
    factors = factors_of(correction.selector)
    assert factors["switch to device"] > 10
    assert not factors.keys() & {s.name for s in ALL}


def test_starts_bear_what_a_search_takes_beyond_its_levels():
    """Not the migration to a device: that is a microsecond of it."""
    base = spoiled({})
    correction = informed(base)
    for _ in range(WINDOW):
        recording, took = search(FixedSelector(STRATEGIES["TG"], STRATEGIES["BG"]))
        entering = float(recording.records[0, schema.TRANSFER_SECONDS])
        recording.records[0, schema.TRANSFER_SECONDS] = 1e-9
        correction.learn(recording, took)
    assert "start on device" not in factors_of(correction.selector)
    for _ in range(WINDOW):
        correction.learn(recording, 2 * took)
    expected = min((entering + took) / entering, BOUND)
    assert expected > 2
    assert factors_of(correction.selector) == pytest.approx({"start on device": expected}, rel=0.01)


def test_factors_that_waver_about_the_band_are_not_replaced_each_time():
    """BC takes 3.5 to 4.8 times what it should, by turns of as many searches as are remembered."""
    base = spoiled({}).on_graph(N, M, reference_of(states_of(LEVELS, N, M)))
    correction = informed(base)
    schedule = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BC", "BC", "BC", "BC")))
    selectors = []
    for number in range(20 * WINDOW):
        slow = 4.8 if number // WINDOW % 2 else 3.5
        recording, took = search(
            schedule, slower=lambda level, name, s=slow: s if name == "BC" else 1.0
        )
        selectors.append(correction.learn(recording, took))
    replaced = sum(one is not other for one, other in pairwise(selectors))
    assert 1 <= replaced <= 3, "it soon has a factor of its own, and keeps it"
    assert 3.4 < factors_of(selectors[-1])["BC"] < 4.9


def test_what_is_slow_every_second_time_replaces_nothing():
    """All takes three times as long after a pause, and there is one before every other search."""
    correction = informed(spoiled({}))
    schedule = FixedSelector(*(STRATEGIES[n] for n in ("TC", "TC", "BC", "BC", "BC", "BC")))
    selectors = []
    for number in range(8 * WINDOW):
        slow = 1.0 if number % 2 else 3.0
        recording, took = search(schedule, slower=lambda level, name, s=slow: s)
        selectors.append(correction.learn(recording, took))
    assert len({id(one) for one in selectors[WINDOW:]}) == 1


def test_the_trace_says_what_was_corrected():
    correction, _ = run({"BC": 10.0})
    recording, _ = search(correction.selector)
    reasons = {t.strategy: t.reason for t in recording.traces()}
    assert "corrected x0.1" in reasons["BC"]


def test_predictions_shown_are_those_that_were_made():
    """They stay when the selector is corrected later, though the device records only choices."""
    base = spoiled({"TC": 0.1, "BC": 0.1})
    recording, took = search(base)
    recording.records[:, schema.PREDICTED :] = np.nan
    correction = Correction(base)
    for _ in range(WINDOW):
        correction.learn(recording, took)
    assert correction.selector is not base
    for trace in recording.traces():
        expected = choose(base, trace.features)
        assert trace.predicted_seconds == pytest.approx(expected.predicted_seconds)
        now = choose(correction.selector, trace.features).predicted_seconds
        if schema.size_of(trace.features.frontier_edges) == schema.LARGE:  # BC ran at these alone
            assert now["BC"] > 5 * trace.predicted_seconds["BC"]


def correction_that_just_replaced() -> tuple[Correction, ModelSelector, set[str]]:
    """Return it, the selector before, and that one's strategies, which took too long."""
    reference = reference_of(states_of(LEVELS, N, M))
    base = model_selector("learned", truth(), ALL).on_graph(N, M, reference)
    correction = Correction(base)
    used = {t.strategy for t in search(base)[0].traces()}
    for _ in range(2 * WINDOW):
        before = correction.selector
        recording, took = search(before, slower=lambda level, name: 20.0 if name in used else 1.0)
        if correction.learn(recording, took) is not before:
            return correction, before, used
    raise AssertionError("nothing was replaced")


def test_a_selector_that_makes_searches_slower_is_taken_back():
    """The other strategies are even slower, which the model could not know."""
    correction, before, used = correction_that_just_replaced()
    for number in range(2):
        assert correction.selector is not before, number
        recording, took = search(correction.selector, slower=lambda level, name: 400.0)
        assert not {t.strategy for t in recording.traces()} <= used
        correction.learn(recording, took)
    assert correction.selector is before
    for number in range(2 * WINDOW):  # the next comparison comes after 32 searches
        recording, took = search(before, slower=lambda level, name: 20.0 if name in used else 1.0)
        assert correction.learn(recording, took) is before, number


@pytest.mark.parametrize("slow", [0, 1])
def test_a_selector_that_makes_most_searches_faster_stays(slow):
    """Other work may disturb a search by it."""
    correction, before, _ = correction_that_just_replaced()
    other = correction.selector
    for number in range(4 * WINDOW):
        times = 400.0 if number < slow else 1.0
        correction.learn(*search(correction.selector, slower=lambda level, name, t=times: t))
        assert correction.selector is not before
    assert slow or correction.selector is other
