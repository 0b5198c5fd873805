"""Which model a selector gets, and for which levels its choices hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_models import model_json, ship
from selector_levels import (
    ALL,
    DIRECTIONS,
    GPU,
    SPEEDS,
    START,
    beamer_levels,
    choose,
    model,
    names,
    selector_of,
)

from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling import model_files, schema
from hetero_bfs.scheduling.columns import NUM_COLUMNS
from hetero_bfs.scheduling.named_selectors import make_selector
from hetero_bfs.scheduling.policy import (
    CAUTION,
    LEAST_ALIKE,
    MODEL,
    MOST_ALIKE,
    make_policy,
    stays_within,
)
from hetero_bfs.scheduling.selectors import DirectionSelector, FixedSelector
from hetero_bfs.scheduling.strategies import STRATEGIES, available


@pytest.mark.parametrize("device", [GPU, None])
@pytest.mark.parametrize("wanted", ["auto", "learned", "thresholds", "zhang"])
def test_a_trained_machine(trained, device, wanted):
    trained(device)
    selector, notes = make_selector(wanted, device, available(device is not None))
    assert (selector.name, notes) == (wanted, [])
    level = replace(START, frontier_edges=2000, unvisited_edges=6000, unvisited_vertices=300)
    predicted = choose(selector, level).predicted_seconds
    start = 3e-6
    if wanted == "thresholds":
        assert predicted == {}, "a search by thresholds predicts nothing"
        return
    if wanted != "zhang":
        assert predicted["TC"] == pytest.approx(1e-6 + 2000e-9 + start)
        assert predicted["BC"] == pytest.approx(1e-6 + 300e-8 + start)
    else:  # e_frontier / speed and alpha x e_left / speed
        assert predicted["TC"] == pytest.approx(2000 / 1e9)
        assert predicted["BC"] == pytest.approx(0.1 * 6000 / 1e9)
        assert choose(selector, level).strategy.name == "BC"
    assert set(predicted) == {s.name for s in available(device is not None)}


@pytest.mark.parametrize("wanted", ["auto", "learned", "thresholds"])
def test_an_unknown_machine_has_beamers_rule(monkeypatch, tmp_path, wanted):
    """It says so, and names the command that makes a model. Another machine's is not taken."""
    monkeypatch.setenv(model_files.MODELS_VARIABLE, str(tmp_path / "none"))
    ship(monkeypatch, tmp_path / "shipped", model_json("other__card"))
    selector, (note,) = make_selector(wanted, GPU, ALL)
    for words in (machine_slug(GPU), "choose by Beamer's rule", "`hetero-bfs train --quick`"):
        assert words in note
    assert names(selector, beamer_levels()) == ["TG" if d == "D" else "BG" for d in DIRECTIONS]


def test_a_model_that_lacks_a_strategy(trained):
    trained(GPU, lambda data: data["learned"].pop("BGC"))
    with pytest.raises(ModelError, match="lacks BGC; train again with `hetero-bfs train`"):
        make_selector("learned", GPU, ALL)


def test_a_model_that_lacks_a_move(trained):
    trained(GPU, lambda data: data["switch"].pop("to_cpu"))
    with pytest.raises(ModelError, match="lacks switch to cpu; train again with"):
        make_selector("learned", GPU, ALL)


def test_a_model_without_a_speed(trained):
    trained(GPU, lambda data: data["zhang"]["edges_per_second"].pop("BGC"))
    with pytest.raises(ModelError, match=r"zhang of BGC; train again with `hetero-bfs train`"):
        make_selector("zhang", GPU, ALL)


def test_the_papers_model_needs_a_training_that_measured_its_speeds(trained, monkeypatch, tmp_path):
    """Models from before it have none, and another machine's speeds do not apply."""
    trained(GPU, lambda data: data.pop("zhang"))
    with pytest.raises(ModelError, match=r"lacks the speeds.*zhang of TC, TG, BC, BG, BGC; train"):
        make_selector("zhang", GPU, ALL)
    monkeypatch.setenv(model_files.MODELS_VARIABLE, str(tmp_path / "none"))
    ship(monkeypatch, tmp_path / "shipped", model_json("other__card"))
    with pytest.raises(ModelError, match=r"measured on this machine.*train first"):
        make_selector("zhang", GPU, ALL)


# For how long a choice holds.


@settings(max_examples=40, deadline=None)
@given(
    edges=st.integers(1, 20_000),
    alpha=st.sampled_from([0.0, 0.5, 15.0]),
)
def test_the_first_choice_is_that_of_a_root_much_alike(edges, alpha):
    """The first choice is stored, so that the next search begins without delay."""
    directions = {"top-down": STRATEGIES["TG"], "bottom-up": STRATEGIES["BG"]}
    for selector in (
        DirectionSelector("rule", directions, alpha=alpha),
        FixedSelector(STRATEGIES["TC"], STRATEGIES["BC"]),
        selector_of(model(**SPEEDS)),
    ):
        usual = selector.first_edges(edges, 20_000 - edges)
        assert selector.first_edges(usual, 20_000 - usual) == usual
        chosen = [
            choose(selector, replace(START, frontier_edges=e, unvisited_edges=20_000 - e)).strategy
            for e in (edges, usual)
        ]
        assert chosen[0] == chosen[1]
    assert edges / 1.5 < usual < edges * 1.5, "the last one is a model's"


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0.0, 300.0), st.booleans())
def test_a_clear_choice_is_right_for_all_levels_within_its_ratio(seed, count, most_to_go, early):
    """For any model, any levels and equal cost-to-go. Close choices are kept a little, too."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(1.0, (count, NUM_COLUMNS)) ** 3
    columns = rng.exponential(1.0, NUM_COLUMNS)
    cost_to_go = most_to_go * rng.random(count)
    policy = make_policy(MODEL, ALL[:count], caution=CAUTION)
    state = np.zeros(schema.STATE_SIZE)
    state[schema.FRONTIER_EDGES], state[schema.UNVISITED_EDGES] = (1, 16) if early else (2, 16)
    careful = np.array([CAUTION if early and s.name == "BC" else 1.0 for s in ALL[:count]])
    predicted = weights @ columns
    total = careful * predicted + cost_to_go
    best = int(total.argmin())
    ratio = stays_within.py_func(policy, state, predicted, total, best)
    assert LEAST_ALIKE <= ratio <= MOST_ALIKE
    if count == 1:
        assert ratio == MOST_ALIKE
    if ratio > LEAST_ALIKE:
        other = columns * ratio ** rng.choice([-1.0, 1.0], NUM_COLUMNS)
        totals = careful * (weights @ other) + cost_to_go
        assert totals[best] <= totals.min() * (1 + 1e-12)
