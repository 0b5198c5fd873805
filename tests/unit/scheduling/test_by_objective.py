"""What each objective chooses on levels made by hand, and what has no objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_models import model_json, power_json, ship
from selector_levels import ALL, GPU, HOST_ONLY, START, choose

from hetero_bfs.algorithms.bfs.search import Recording
from hetero_bfs.algorithms.bfs.selection import Correction, Probe
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.model_selectors import PLAN, THRESHOLDS
from hetero_bfs.scheduling.named_selectors import make_objective_selector, make_selector
from hetero_bfs.scheduling.strategies import OBJECTIVES

# By the made model: TC 1 us + 1 ns an edge, BC 1 us + 10 ns an unvisited vertex; the device twice.
LEVEL = replace(START, level=1, device_kind="cpu", frontier_edges=6000, unvisited_vertices=1000)
"""TC 7 us, BC 11 us, TG 15 us, BG 23 us with migration."""


def system(**watts: float) -> dict:
    return power_json({name: {"system": w} for name, w in watts.items()}, system=10.0)


@pytest.fixture
def by_objective(trained):
    """Return a function that makes a selector with a model that has this power."""

    def make(power, objective_name, wanted="learned", device=None):
        def change(data):
            if power is not None:
                data["power"] = power

        trained(device, change)
        return make_objective_selector(
            wanted, device, HOST_ONLY if device is None else ALL, objective_name
        )

    return make


def chosen(by_objective, power, objective_name, **more) -> str:
    selector, _ = by_objective(power, objective_name, **more)
    return choose(selector, LEVEL).strategy.name


@pytest.mark.parametrize(
    ("watts", "expected"),
    [  # TC 7 us, BC 11 us: energy turns at 1.57 times the watts
        ({"TC": 50.0, "BC": 50.0}, ["TC", "TC", "TC"]),
        ({"TC": 100.0, "BC": 50.0}, ["TC", "BC", "TC"]),
        ({"TC": 200.0, "BC": 40.0}, ["TC", "BC", "BC"]),
        ({"TC": 40.0, "BC": 200.0}, ["TC", "TC", "TC"]),
    ],
)
def test_each_objective_chooses_by_itself(by_objective, watts, expected):
    assert [
        chosen(by_objective, system(**watts), objective_name) for objective_name in OBJECTIVES
    ] == expected


def test_the_product_is_least_where_it_is_the_objective(by_objective):
    """One level alone is the whole search: joules times seconds of either strategy."""
    seconds = {"TC": 7e-6, "BC": 11e-6}
    for tc_watts in (60, 90, 120, 150, 180, 400):
        watts = {"TC": float(tc_watts), "BC": 50.0}
        by_hand = {name: watts[name] * seconds[name] ** 2 for name in watts}
        if by_hand["TC"] < 0.7 * by_hand["BC"] or by_hand["BC"] < 0.7 * by_hand["TC"]:
            assert chosen(by_objective, system(**watts), "edp") == min(by_hand, key=by_hand.get)


def test_predictions_stay_seconds(by_objective):
    watts = {"TC": 100.0, "TG": 300.0, "BC": 50.0, "BG": 350.0, "BGC": 340.0}
    in_seconds, _ = by_objective(system(**watts), "time", device=GPU)
    for objective_name in ("energy", "edp"):
        selector, notes = by_objective(system(**watts), objective_name, device=GPU)
        assert notes == []
        for level in (START, LEVEL, replace(LEVEL, device_kind="device", representation="bitmap")):
            expected = choose(in_seconds, level).predicted_seconds
            assert choose(selector, level).predicted_seconds == pytest.approx(expected)


def test_reasons_are_in_units_of_the_objective(by_objective):
    watts = system(TC=100.0, BC=50.0)
    reasons = [
        choose(by_objective(watts, objective_name)[0], LEVEL).reason
        for objective_name in OBJECTIVES
    ]
    assert reasons == ["4 us before BC", "0.15 mJ before TC", "1 us (edp) before BC"]


def test_migrations_cost_too(by_objective):
    """If migration costs many joules, the search stays though the level elsewhere is cheaper."""
    level = replace(LEVEL, device_kind="device")
    for device_watts, expected in ((10.0, "TG"), (100.0, "TC")):
        watts = system(TC=50.0, BC=50.0, TG=device_watts, BG=device_watts, BGC=device_watts)
        selector, _ = by_objective(watts, "energy", device=GPU)
        assert choose(selector, level).strategy.name == expected


def test_what_no_meter_sees_is_left_out_with_a_note(by_objective):
    watts = {name: {"device": 200.0} for name in ("TC", "TG", "BG")}
    selector, notes = by_objective(power_json(watts, device=80.0), "energy", device=GPU)
    assert [s.name for s in selector.candidates] == ["TG", "BG"]
    (note,) = notes
    assert "leaves out TC, BC, BGC" in note
    assert "what the device draws" in note
    assert selector.objective.idle_watts == 80.0


@pytest.mark.parametrize("objective_name", ["energy", "edp"])
def test_without_watts_the_remedy_is_named(
    by_objective, trained, monkeypatch, tmp_path, objective_name
):
    with pytest.raises(ModelError, match=r"has none; .*train --power-only`.*--power-log FILE"):
        by_objective(None, objective_name)
    monkeypatch.setenv("HETERO_BFS_MODELS", str(tmp_path / "none"))
    ship(monkeypatch, tmp_path / "shipped")
    with pytest.raises(ModelError, match=r"no speed model of this machine.*hetero-bfs train"):
        make_objective_selector("learned", None, HOST_ONLY, objective_name)


def test_watts_of_another_machine_are_never_taken(monkeypatch, tmp_path):
    """Seconds of a similar machine may do for a start; its watts say nothing here."""
    data = model_json("another__card") | {"power": system(TC=50.0, BC=50.0)}
    monkeypatch.setenv("HETERO_BFS_MODELS", str(tmp_path))
    ship(monkeypatch, tmp_path / "shipped", data)
    assert make_objective_selector("auto", None, HOST_ONLY, "time")[0].name == "auto"
    with pytest.raises(ModelError, match="no speed model of this machine"):
        make_objective_selector("auto", None, HOST_ONLY, "energy")


@pytest.mark.parametrize("wanted", ["alpha-beta", "daga", "fixed:TC"])
def test_rules_that_compare_nothing_know_no_objective(by_objective, wanted):
    power = system(TC=50.0, BC=50.0, TG=1.0, BG=1.0, BGC=1.0)
    with pytest.raises(
        ModelError, match=f"goes with selector auto, learned, .*; {wanted} knows no objective"
    ):
        by_objective(power, "energy", wanted=wanted, device=GPU)
    assert by_objective(power, "time", wanted=wanted, device=GPU)[0].objective is None


def test_an_unknown_objective(by_objective):
    with pytest.raises(
        ModelError, match="unknown objective 'power'; choose one of time, energy, edp"
    ):
        by_objective(system(TC=50.0, BC=50.0), "power")


def test_auto_compares_costs_too(by_objective):
    """It has the watts, and both rules; before it knows a graph it looks at single levels."""
    watts = system(TC=200.0, BC=40.0)
    selector, notes = by_objective(watts, "energy", wanted="auto")
    assert (selector.name, selector.rules, notes) == ("auto", (PLAN, THRESHOLDS), [])
    assert selector.objective.watts == {"TC": 200.0, "BC": 40.0}
    assert choose(selector, LEVEL).strategy.name == "BC"
    assert choose(by_objective(watts, "time", wanted="auto")[0], LEVEL).strategy.name == "TC"


@pytest.mark.parametrize("wanted", ["auto", "learned"])
def test_strategies_that_lost_their_watts_are_left_out(by_objective, wanted):
    selector, notes = by_objective(system(TC=50.0), "energy", wanted=wanted)
    assert (selector.name, [s.name for s in selector.candidates]) == (wanted, ["TC"])
    assert "leaves out BC" in notes[0]


def test_time_is_as_it_was(trained):
    trained(GPU)
    mine, _ = make_objective_selector("learned", GPU, ALL, "time")
    theirs, _ = make_selector("learned", GPU, ALL)
    assert choose(mine, LEVEL) == choose(theirs, LEVEL)


# With corrections: what is learned is about seconds, whatever the objective.


def test_what_was_measured_corrects_seconds_and_costs_alike(by_objective):
    watts = system(TC=100.0, BC=50.0)
    for objective_name in OBJECTIVES:
        selector, _ = by_objective(watts, objective_name)
        factors = np.ones(selector.factors.size)
        factors[len(selector.candidates)] = 3.0  # TC at large levels
        corrected = selector.corrected(factors)
        assert corrected.objective == selector.objective
        before, after = (choose(s, LEVEL).predicted_seconds for s in (selector, corrected))
        assert after["TC"] == pytest.approx(3 * before["TC"])
        assert after["BC"] == pytest.approx(before["BC"])
        assert choose(corrected, LEVEL).strategy.name == "BC"


@pytest.mark.parametrize("objective_name", OBJECTIVES)
def test_levels_as_long_as_predicted_correct_nothing(by_objective, objective_name):
    """Whatever the objective: its costs are no seconds, and are not taken for them."""
    selector, _ = by_objective(system(TC=1000.0, BC=0.001), objective_name)
    correction = Correction(selector)
    features = [replace(LEVEL, level=i, frontier_edges=6000 + i) for i in range(4)]
    records = np.full((4, schema.record_width(2)), np.nan)
    for record, level in zip(records, features, strict=True):
        level.write_state(record)
        choice = choose(selector, level)
        record[schema.STRATEGY] = selector.candidates.index(choice.strategy)
        record[schema.CHOSEN_AT], record[schema.FURTHER_LEVELS] = level.level, 0
        record[schema.SECONDS] = choice.predicted_seconds[choice.strategy.name]
        record[schema.TRANSFER_SECONDS] = record[schema.SELECT_SECONDS] = 0.0
    recording = Recording(records, selector, START.num_vertices, START.num_edges, 1)
    for _ in range(8):
        assert correction.learn(recording, float(records[:, schema.SECONDS].sum())) is selector
    records[:, schema.SECONDS] *= 5
    for _ in range(8):
        corrected = correction.learn(recording, float(records[:, schema.SECONDS].sum()))
    chosen = int(records[0, schema.STRATEGY])
    assert corrected.factors[len(selector.candidates) + chosen] == pytest.approx(5, rel=0.3)


def test_probes_of_strategies_that_are_left_out_are_not_learned_from(by_objective):
    watts = {name: {"device": 200.0} for name in ("TG", "BG", "BGC")}
    selector, _ = by_objective(power_json(watts, device=80.0), "energy", device=GPU)
    everyone, _ = by_objective(power_json(watts, device=80.0), "time", device=GPU)
    record = np.full((1, schema.record_width(len(ALL))), np.nan)
    LEVEL.write_state(record[0])
    record[0, schema.STRATEGY] = record[0, schema.TRANSFER_SECONDS] = 0
    record[0, schema.SECONDS], record[0, schema.SELECT_SECONDS] = 1.0, 0.0
    recording = Recording(record, everyone, START.num_vertices, START.num_edges, 1)
    assert Correction(selector, [Probe(recording, 1.0)]).selector is selector
