"""How a rank predicts its levels, and what it learns from measured ones."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from made_models import model_json

from hetero_bfs.scheduling import rank_decision as module
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.model_files import read_model
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.rank_decision import DEVICE_PULL, ExchangeCosts, RankDecision
from hetero_bfs.scheduling.strategies import available

# Level 2 of a Kronecker graph of scale 26, half of it: a pull takes 0.3 ms on an H100.
LARGE = {
    schema.FRONTIER_VERTICES: 8.4e4,
    schema.FRONTIER_EDGES: 2.95e8,
    schema.UNVISITED_VERTICES: 1.64e7,
    schema.UNVISITED_EDGES: 7.57e8,
    schema.PREVIOUS_EDGES: 8.8e4,
    schema.LEVEL: 2,
    schema.PLACE: schema.DEVICE,
}


def state_of(values) -> np.ndarray:
    state = np.zeros(schema.STATE_SIZE)
    for item, value in values.items():
        state[item] = value
    return state


@pytest.fixture
def decision(monkeypatch):
    """A decision of one rank on a GPU that has no model, which has predicted the large level."""
    monkeypatch.setattr(module, "model_of", lambda device: None)
    device = SimpleNamespace(
        info=SimpleNamespace(type="GPU", name="NVIDIA", compute_units=132),
        floor_seconds=np.full(2, 1e-4),
        move_seconds=1e-4,
    )
    costs = ExchangeCosts(dense=1e-4, latency=2e-5, per_byte=1e-10)

    made = RankDecision(lambda numbers: None, "auto", 0.5, 1 << 24, costs, device)
    assert made.agree(state_of(LARGE))
    return made


def test_the_first_large_frontier_is_pulled_also_without_a_model_of_the_machine(decision):
    push, pull = decision.seconds()
    assert pull < 2e-3
    assert push > 1e-2
    assert decision.choose(2, "top-down") == "bottom-up"


def test_a_first_model_that_was_kept_comes_before_that_of_another_machine(decision, monkeypatch):
    made = read_model(json.dumps(model_json("first")), "made")
    asked = []

    def first(device, measures):
        asked.append(measures)
        return made

    monkeypatch.setattr(module, "first_model", first)
    found = module._weights("bottom-up", None)
    assert asked == [False], "ranks measure nothing"
    expected = model_selector("learned", made, available(False)).by_model.weights
    np.testing.assert_array_equal(found, expected[:, 1])


def test_a_level_much_faster_than_predicted_corrects_by_all_its_error(decision):
    raw = decision._raw[DEVICE_PULL]
    decision.factors[DEVICE_PULL] = 100.0
    decision.learn("bottom-up", True, raw + 1e-4)
    assert decision.factors[DEVICE_PULL] == pytest.approx(1.0)


def test_a_slow_level_may_have_been_disturbed_so_it_corrects_by_a_part(decision):
    raw = decision._raw[DEVICE_PULL]
    decision.learn("bottom-up", True, 16 * raw + 1e-4)
    assert decision.factors[DEVICE_PULL] == pytest.approx(2.0)


def test_without_correction_nothing_is_learned_and_no_move_is_a_trial(decision):
    made = RankDecision(
        lambda numbers: None, "auto", 0.5, 1 << 24, decision._costs, decision._device, False
    )
    made.agree(state_of(LARGE))
    assert (decision._tries, made._tries) == (2, 0)
    for _ in range(3):
        made.learn("bottom-up", True, 16 * made._raw[DEVICE_PULL])
        made.learn_start(1.0, 1)
    assert made.factors.tolist() == [1.0] * 4
    assert not made.begins_on_device()


def test_by_beamers_rule_bottom_up_begins_only_while_the_frontier_grows():
    costs = ExchangeCosts(dense=1e-4, latency=2e-5, per_byte=1e-10)
    made = RankDecision(lambda numbers: None, "alpha-beta", 0.5, 1 << 10, costs)
    chosen = []
    for level, edges in enumerate([8.0, 7.0, 7.0, 9.0]):
        few = {schema.FRONTIER_EDGES: edges, schema.UNVISITED_EDGES: 10.0}
        assert made.agree(state_of(LARGE | few | {schema.PLACE: schema.HOST}))
        chosen.append(made.choose(level, "top-down"))
    assert chosen == ["top-down", "top-down", "top-down", "bottom-up"]
