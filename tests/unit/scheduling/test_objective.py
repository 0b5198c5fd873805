"""Watts in a model's file, and what an objective makes of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_models import model_json, power_json

from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_files import read_model
from hetero_bfs.scheduling.objective import Objective, make_objective, read_power
from hetero_bfs.scheduling.strategies import STRATEGIES, available
from hetero_bfs.scheduling.trace import LevelFeatures, LevelTrace

ALL = available(True)
BOTH = {
    "TC": {"cpu": 90.0, "device": 60.0},
    "BC": {"cpu": 80.0, "device": 60.0},
    "TG": {"cpu": 40.0, "device": 200.0},
    "BG": {"cpu": 40.0, "device": 300.0},
}


def read(power):
    return read_model(json.dumps(model_json("m") | {"power": power}), "m.json")


def test_round_trip():
    data = power_json(BOTH, cpu=30.0, device=60.0)
    data["remarks"] = {"BGC": "too small"}
    model = read(data)
    assert model.to_json()["power"] == data
    assert read_model(json.dumps(model.to_json()), "m.json") == model
    assert model.power.watts["BG"] == {"cpu": 40.0, "device": 300.0}


def test_the_auto_of_an_old_model_is_left_out():
    """Models from before 2026-11-26 name a selector for each objective; auto asks the model now."""
    old = {"auto": {"energy": {"shallow": {"selector": "learned"}}}}
    data = power_json(BOTH, cpu=30.0, device=60.0)
    assert read(data | old) == read(data)
    text = json.dumps(model_json("m") | {"auto": {"deep": {"selector": "learned"}}})
    assert read_model(text, "m.json").to_json() == model_json("m")


def test_a_model_without_power_stays_as_it_was():
    model = read_model(json.dumps(model_json("m")), "m.json")
    assert model.power is None
    assert model.to_json() == model_json("m")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"watts": {"TX": {"cpu": 1.0}}}, "unknown strategy 'TX'"),
        ({"watts": {"TC": {"gpu": 1.0}}}, "unknown domain 'gpu'; domains are cpu, device, system"),
        ({"watts": {"TC": {"cpu": 0.0}}}, "watts of TC is 0.0; it must be above zero"),
        ({"watts": {"TC": {"cpu": -5}}}, "watts of TC is -5"),
        ({"watts": {"TC": {"cpu": "90"}}}, "watts of TC: '90' is not a number"),
        ({"watts": {"TC": {"cpu": True}}}, "watts of TC: True is not a number"),
        ({"watts": {"TC": {"cpu": float("nan")}}}, "watts of TC is nan"),
        ({"watts": {"TC": 90}}, "not a usable speed model"),
        ({"watts": {"TC": {"system": 90}}}, "watts of TC and idle_watts have different domains"),
        ({"error_watts": {}}, "watts and error_watts have different strategies"),
        ({"idle_watts": {"cpu": 30.0}}, "idle_watts have different domains"),
        ({"meters": {}}, "meters and idle_watts have different domains"),
        ({"resolution_seconds": {"cpu": 0.1}}, "resolution_seconds and idle_watts have"),
        ({"remarks": {"XX": "why"}}, "unknown strategy 'XX'"),
    ],
)
def test_bad_watts_are_refused(change, words):
    with pytest.raises(ModelError, match=words) as caught:
        read(power_json(BOTH, cpu=30.0, device=60.0) | change)
    assert str(caught.value).startswith("m.json")


@pytest.mark.parametrize("key", ["watts", "error_watts", "idle_watts", "meters", "method"])
def test_missing_parts_are_refused(key):
    data = power_json(BOTH, cpu=30.0, device=60.0)
    del data[key]
    with pytest.raises(ModelError, match=key):
        read(data)


# Which domains, and which strategies.


def objective_of(
    watts, shared=False, objective_name="energy", **idle
) -> tuple[Objective, list[str]]:
    objective, fit = make_objective(
        objective_name, read_power(power_json(watts, **idle)), ALL, shared
    )
    return objective, [s.name for s in fit]


def test_processor_and_device_are_added_and_the_unmeasured_left_out():
    objective, names = objective_of(BOTH, cpu=30.0, device=60.0)
    assert objective.domains == ("cpu", "device")
    assert objective.watts == {"TC": 150.0, "TG": 240.0, "BC": 140.0, "BG": 340.0}
    assert objective.error_watts["TC"] == pytest.approx(0.5 * 2**0.5)
    assert objective.idle_watts == 90.0
    assert names == ["TC", "TG", "BC", "BG"]


def test_the_whole_system_contains_the_others():
    watts = {name: of | {"system": 500.0} for name, of in BOTH.items()}
    objective, names = objective_of(watts, cpu=30.0, device=60.0, system=150.0)
    assert (objective.domains, objective.idle_watts) == (("system",), 150.0)
    assert set(objective.watts.values()) == {500.0}
    assert names == ["TC", "TG", "BC", "BG"]


@pytest.mark.parametrize(
    ("domain", "shared", "expected"),
    [
        ("device", False, ["TG", "BG"]),
        ("cpu", False, ["TC", "BC"]),
        ("cpu", True, ["TC", "TG", "BC", "BG"]),  # a device that is the processor
        ("device", True, ["TG", "BG"]),
        ("system", False, ["TC", "TG", "BC", "BG"]),
    ],
)
def test_only_strategies_whose_work_is_seen_are_compared(domain, shared, expected):
    watts = {name: {domain: 100.0} for name in BOTH}
    _, names = objective_of(watts, shared, **{domain: 50.0})
    assert names == expected


def test_a_strategy_needs_watts_in_every_domain():
    watts = BOTH | {"TC": {"cpu": 90.0}}
    assert objective_of(watts, cpu=30.0, device=60.0)[1] == ["TG", "BC", "BG"]


def test_nothing_measured_names_the_remedy():
    power = power_json({"TC": {"device": 60.0}}, device=60.0)
    power["remarks"] = {"TG": "too small a part"}
    with pytest.raises(ModelError, match=r"TG: too small a part.*--power-log FILE"):
        make_objective("energy", read_power(power), ALL, False)


# What a second costs.


def test_energy_costs_watts():
    objective, _ = objective_of(BOTH, cpu=30.0, device=60.0)
    assert objective.per_second(STRATEGIES["BG"]) == 340.0
    assert objective.per_second_of_migration("cpu") == (150.0 + 140.0) / 2
    assert objective.per_second_of_migration("device") == (240.0 + 340.0) / 2


@given(
    rest=st.tuples(st.floats(1, 100), st.floats(10, 1000)),
    level=st.tuples(st.floats(0.01, 1), st.floats(10, 1000)),
    other=st.tuples(st.floats(0.01, 1), st.floats(10, 1000)),
)
def test_the_product_is_linear_in_small_levels(rest, level, other):
    """Of two ways to do a small level, the cheaper one gives the smaller energy times seconds.

    Unless both come out alike but for second-order terms; the search's mean power is the
    strategies' here, as the objective assumes.
    """
    (t0, w0), (t1, w1), (t2, w2) = rest, level, other
    small = 1e-6 * t0
    t1, t2 = small * t1, small * t2
    watts = {"TC": w1, "BC": w2, "TG": max(3 * w0 - w1 - w2, 0.0)}
    objective = Objective("edp", ("system",), watts, {}, 1.0)
    if objective.mean_watts != pytest.approx(w0):
        return
    cost1, cost2 = (
        t * objective.per_second(STRATEGIES[name]) for t, name in ((t1, "TC"), (t2, "BC"))
    )
    if abs(cost1 - cost2) < 1e-3 * max(cost1, cost2):
        return
    product1, product2 = (
        t * w * t0 + w0 * t0 * t + t * t * w for t, w in ((t1, w1), (t2, w2))
    )  # (E + w t)(T + t) - E T
    assert (cost1 < cost2) == (product1 < product2)


def test_a_second_at_mean_power_is_a_second_of_the_product():
    objective = Objective("edp", ("system",), {"TC": 50.0, "BC": 150.0, "TG": 100.0}, {}, 20.0)
    costs = [objective.per_second(STRATEGIES[name]) for name in ("TC", "TG", "BC")]
    assert costs == [0.75, 1.0, 1.25]


def trace(strategy: str, seconds: float, moving: float = 0.0) -> LevelTrace:
    features = LevelFeatures(0, 1, 1, 1, 1, 2, 2, 1.0, None, "queue")
    return LevelTrace(features, strategy, seconds, moving, 0.0, 1)


def test_joules_with_and_without_idle():
    objective = Objective("energy", ("device",), {"TG": 200.0, "BG": 300.0}, {}, 50.0)
    traces = [trace("TG", 0.5, 0.5), trace("BG", 2.0)]
    assert objective.joules(traces) == pytest.approx(200 + 600)
    assert objective.net_joules(traces) == pytest.approx(800 - 3 * 50)
