"""Which strategy each selector takes, on levels made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_levels import FEATURES, models, searches
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from selector_levels import (
    ALL,
    DIRECTIONS,
    GPU,
    HOST_ONLY,
    SPEEDS,
    START,
    beamer_levels,
    choose,
    costs_of,
    model,
    names,
    reference_of,
    selector_of,
    walk,
)

from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.named_selectors import SELECTORS, make_selector
from hetero_bfs.scheduling.policy import (
    MOST_COST_TO_GO_ROWS,
    _find_row,
)
from hetero_bfs.scheduling.rehearsal import ASKING_SECONDS
from hetero_bfs.scheduling.selectors import DirectionSelector, FixedSelector
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.training.oracle import best_schedule

# Fixed.


def test_fixed_takes_one_per_level_and_repeats_the_last():
    selector, notes = make_selector("fixed:TC,BG,BGC,TG", GPU, ALL)
    levels = [replace(START, level=i) for i in range(7)]
    assert names(selector, levels) == ["TC", "BG", "BGC", "TG", "TG", "TG", "TG"]
    assert selector.name == "fixed:TC,BG,BGC,TG"
    assert notes == []
    assert names(selector, levels[:2]) == ["TC", "BG"], "a second search begins anew"
    choice = choose(selector, START)
    assert (choice.predicted_seconds, choice.reason) == ({}, "fixed")


@pytest.mark.parametrize("name", STRATEGIES)
def test_fixed_alone(name):
    selector, _ = make_selector(f"fixed:{name}", GPU, ALL)
    assert names(selector, [START, replace(START, level=9)]) == [name, name]
    assert isinstance(selector, FixedSelector)


@pytest.mark.parametrize("wanted", ["fixed:", "fixed:XX", "fixed:TC,", "fixed:TC;BG", "fixed:B C"])
def test_fixed_names_what_there_is(wanted):
    with pytest.raises(ModelError, match="those there are: TC, TG, BC, BG, BGC"):
        make_selector(wanted, GPU, ALL)


@pytest.mark.parametrize("wanted", ["fixed:TG", "fixed:TC,BGC"])
def test_fixed_needs_its_device(wanted):
    with pytest.raises(ModelError, match=r"strategies that can run are TC, BC$"):
        make_selector(wanted, None, HOST_ONLY)


@pytest.mark.parametrize("wanted", ["", "best", "TC", "alphabeta", "Fixed:TC", "oracle"])
def test_unknown_names(wanted):
    with pytest.raises(ModelError, match="unknown selector") as caught:
        make_selector(wanted, GPU, ALL)
    for name in SELECTORS:
        assert name in str(caught.value)


# Beamer's rule. Bottom-up once the frontier grows and 15 x its edges > unvisited edges, top-down
# again once 18 x frontier vertices < vertices.


@pytest.mark.parametrize(
    ("wanted", "device", "down", "up"),
    [("alpha-beta", GPU, "TG", "BG"), ("alpha-beta", None, "TC", "BC"), ("daga", GPU, "TC", "BG")],
)
def test_beamers_rule_and_where_it_runs(wanted, device, down, up):
    selector, notes = make_selector(wanted, device, ALL if device else HOST_ONLY)
    expected = [down if d == "D" else up for d in DIRECTIONS]
    assert names(selector, beamer_levels()) == expected
    assert (selector.name, notes) == (wanted, [])
    assert isinstance(selector, DirectionSelector)
    after_bottom_up = choose(selector, replace(START, representation="bitmap"))
    assert after_bottom_up.reason == "frontier < vertices / 18"
    assert choose(selector, START).reason == "its edges <= unvisited edges / 15"
    assert choose(selector, replace(START, growth=1.0)).reason == "the frontier does not grow"


def test_the_direction_stays_between_the_thresholds():
    selector, _ = make_selector("alpha-beta", GPU, ALL)
    between = replace(START, frontier_vertices=900, frontier_edges=1)
    assert choose(selector, replace(between, representation="bitmap")).strategy.name == "BG"
    assert choose(selector, replace(between, representation="queue")).strategy.name == "TG"


def test_daga_needs_a_device():
    with pytest.raises(
        ModelError, match="selector='daga' runs bottom-up on an OpenCL device; there is none"
    ):
        make_selector("daga", None, HOST_ONLY)


# By a model.


ON_DEVICE = replace(START, level=1, device_kind="device", representation="queue")
LATE_ON_HOST = replace(ON_DEVICE, unvisited_edges=100, device_kind="cpu", representation="bitmap")


@pytest.mark.parametrize(
    ("features", "migrations", "expected"),
    [
        (START, {}, "TC"),
        (START, {"to_cpu": 9}, "TC"),  # before the first level nothing moves
        (START, {"start_cpu": 2}, "TG"),
        (ON_DEVICE, {"start_cpu": 2}, "TC"),  # it has begun
        (ON_DEVICE, {"to_cpu": 0.5}, "TC"),
        (ON_DEVICE, {"to_cpu": 1.5}, "TG"),
        (ON_DEVICE, {"to_device": 9}, "TC"),
        (replace(ON_DEVICE, representation="bitmap"), {"on_device": 1.5}, "TC"),
        (replace(ON_DEVICE, representation="bitmap"), {"on_device": 2.5}, "BC"),
        (replace(ON_DEVICE, representation="bitmap"), {"on_device": 9, "to_cpu": 2}, "BG"),
        (replace(ON_DEVICE, representation="bitmap"), {"on_cpu": 9}, "TC"),  # converted where it is
        (LATE_ON_HOST, {"on_cpu": 3}, "BC"),
    ],
)
def test_the_cheapest_moving_included(features, migrations, expected):
    choice = choose(selector_of(model(**SPEEDS, **migrations)), features)
    assert choice.strategy.name == expected


@pytest.mark.parametrize(
    ("frontier_edges", "bottom_up_seconds", "expected"),
    [(999, 3.0, "TC"), (999, 2.8, "BC"), (1000, 3.0, "BC"), (1000, 4.1, "TC")],
)
def test_early_bottom_up_must_be_clearly_faster(frontier_edges, bottom_up_seconds, expected):
    """Until the frontier has a fifteenth of the unvisited edges; what is predicted stays."""
    features = replace(
        ON_DEVICE, device_kind="cpu", frontier_edges=frontier_edges, unvisited_edges=15000
    )
    host = [STRATEGIES["TC"], STRATEGIES["BC"]]
    made = model(TC=4.0, BC=bottom_up_seconds)
    choice = choose(selector_of(made, host, "learned"), features)
    assert choice.strategy.name == expected
    assert choose(selector_of(made, host), features).strategy.name == (
        "BC" if bottom_up_seconds < 4.0 else "TC"
    ), "the paper's model is taken as it is"
    assert choice.predicted_seconds == {"TC": 4.0, "BC": bottom_up_seconds}


def test_predictions_are_the_levels_with_moving():
    made = model(**SPEEDS, to_cpu=10, on_device=100, start_cpu=1000, start_device=2000)
    bitmap = replace(ON_DEVICE, representation="bitmap")
    predicted = choose(selector_of(made), bitmap).predicted_seconds
    assert predicted == {"TC": 114, "TG": 105, "BC": 16, "BG": 7, "BGC": 8}
    predicted = choose(selector_of(made), START).predicted_seconds
    assert predicted == {"TC": 1004, "TG": 2005, "BC": 1006, "BG": 2007, "BGC": 2008}


def test_reason_names_the_next_best():
    choice = choose(selector_of(model(TC=1e-6, TG=6e-6, BC=1, BG=1, BGC=1)), START)
    assert "5 us" in choice.reason
    assert "TG" in choice.reason
    alone = choose(selector_of(model(), candidates=[STRATEGIES["TC"]]), START)
    assert alone.reason == "only candidate"


def seconds_by_hand(made: SpeedModel, features: LevelFeatures, strategy) -> float:
    """Seconds of level and migration, by the plain formulas of the model."""
    seconds = made.learned_seconds(features, strategy)
    if features.device_kind is None:
        return seconds + made.start[strategy.device_kind].seconds(features)
    if strategy.direction == "top-down" and features.representation == "bitmap":
        seconds += made.convert[features.device_kind].seconds(features)
    if strategy.device_kind != features.device_kind:
        seconds += made.switch[strategy.device_kind].seconds(features)
    return seconds


@settings(max_examples=200)
@given(made=models(), features=FEATURES)
def test_the_compiled_policy_is_the_models_formula(made, features):
    choice = choose(selector_of(made), features)
    expected = {s.name: seconds_by_hand(made, features, s) for s in ALL}
    assert choice.predicted_seconds == pytest.approx(expected)
    assert expected[choice.strategy.name] <= min(expected.values()) * (1 + 1e-9)
    cost_to_go = choose(selector_of(made, name="learned"), features)
    assert cost_to_go.predicted_seconds == choice.predicted_seconds, (
        "the cost-to-go is no prediction"
    )


@settings(max_examples=100)
@given(made=models(), states=searches())
def test_with_such_a_reference_search_the_best_schedule_is_chosen(made, states):
    """A later migration counts 1 / 32 more, so that share of the best one's may be lost."""
    assume(len(states) <= MOST_COST_TO_GO_ROWS)
    cost_to_go = selector_of(made, name="learned").on_graph(
        states[0].num_vertices, states[0].num_edges, reference_of(states)
    )
    costs = costs_of(made, states)
    best = best_schedule(costs)
    at_levels = sum(
        costs.seconds[level, ALL.index(STRATEGIES[name])]
        for level, name in enumerate(best.strategies)
    )
    lost = costs.schedule_seconds(walk(cost_to_go, states)) - best.seconds
    most = (best.seconds - at_levels) / 32 + len(states) * max(ASKING_SECONDS)
    assert -1e-9 * best.seconds <= lost <= most + 1e-6 * best.seconds
    total = costs.schedule_seconds(walk(selector_of(made), states))
    assert total >= best.seconds * (1 - 1e-9)


@settings(max_examples=100)
@given(made=models(), features=FEATURES, states=searches())
def test_when_migration_is_free_the_cost_to_go_changes_nothing(made, features, states):
    free = {kind: Linear(("constant",), (0.0,)) for kind in ("cpu", "device")}
    greedy = selector_of(replace(made, switch=free, convert=free), name="learned")
    cost_to_go = greedy.on_graph(states[0].num_vertices, states[0].num_edges, reference_of(states))
    choice = choose(greedy, features)
    predicted = choice.predicted_seconds
    least = predicted[choice.strategy.name]
    assert predicted[choose(cost_to_go, features).strategy.name] == pytest.approx(least, rel=1e-6)


def test_by_cost_to_go_a_search_stays_where_the_rest_is_cheap():
    """The host wins this level by a little, but the big levels run faster on the device."""
    made = model(BC=1.0, to_device=0.01, to_cpu=0.01)
    made = replace(
        made,
        learned=made.learned
        | {
            "TC": Linear(("constant", "frontier_edges"), (1e-6, 1e-5)),
            "TG": Linear(("constant", "frontier_edges"), (1e-3, 0.0)),
            "BG": Linear(("num_vertices",), (1e-6,)),
            "BGC": Linear(("num_vertices",), (1e-6,)),
        },
    )
    big = replace(
        START, level=1, frontier_edges=START.num_edges // 2, unvisited_edges=START.num_edges // 4
    )
    cost_to_go = selector_of(made, name="learned")
    assert choose(selector_of(made), START).strategy.name == "TC"
    assert choose(cost_to_go, START).strategy.name == "TC", "it knows no graph yet"
    on_graph = cost_to_go.on_graph(START.num_vertices, START.num_edges, reference_of([START, big]))
    assert choose(on_graph, START).strategy.name != "TC"
    assert on_graph.on_graph(0, 0, on_graph._graph[2]) is on_graph


def test_small_levels_are_predicted_by_formulas_of_their_own():
    small, seconds = Linear(("constant",), (1e-12,)), {"TG": 7.0, "TC": 5.0}
    made = replace(model(**seconds), learned_small={"TG": small})
    selector = model_selector("learned", made, ALL)
    here = selector.candidates.index(STRATEGIES["TG"])
    weights = selector.policy.weights
    assert weights[schema.SMALL, here].tolist() == small.weights()
    assert weights[schema.LARGE, here, 0] == 7.0
    for size in (schema.SMALL, schema.LARGE):
        assert weights[size, selector.candidates.index(STRATEGIES["TC"]), 0] == 5.0
    for edges, expected in ((schema.LEAST_SHARED_EDGES - 1, 1e-12), (schema.LEAST_SHARED_EDGES, 7)):
        choice = choose(selector, replace(START, frontier_edges=edges))
        assert choice.predicted_seconds["TG"] == expected


def test_a_selector_is_bound_to_a_graph_once():
    unbound = model_selector("learned", model(**SPEEDS), ALL)
    reference = reference_of([START])
    bound = unbound.on_graph(START.num_vertices, START.num_edges, reference)
    assert bound.uncorrected is bound is not unbound
    assert bound.on_graph(START.num_vertices, START.num_edges, reference) is bound
    other = bound.on_graph(START.num_vertices, START.num_edges, reference.copy())
    assert other is not bound
    assert other.policy.weights.tolist() == unbound.policy.weights.tolist()
    doubled = bound.corrected(np.full(bound.factors.size, 2.0))
    assert doubled.policy.weights.tolist() == (2 * bound.policy.weights).tolist()


@given(
    left=st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=70).map(
        lambda values: sorted(values, reverse=True)
    ),
    now=st.floats(0, 1e9),
)
def test_the_level_that_is_as_far_is_looked_up(left, now):
    cost_to_go = np.column_stack((left, np.zeros((len(left), 2))))
    found = left[_find_row.py_func(cost_to_go, now)]
    ratio = max(found, now) / min(found, now) if now else float("inf")
    nearest = min((max(x, now) / min(x, now) for x in left), default=1.0) if now else ratio
    assert ratio == pytest.approx(nearest)
    if not now:
        assert found == left[-1]


def test_of_a_deep_search_a_sample_is_kept():
    states = [
        replace(START, level=level, unvisited_edges=100_000 - 20 * level) for level in range(5000)
    ]
    cost_to_go = selector_of(model(), name="learned").on_graph(1000, 100_001, reference_of(states))
    cost_to_go_rows = cost_to_go.policy.cost_to_go
    assert cost_to_go_rows.shape[1] == 1 + len(ALL)
    assert 0.9 * MOST_COST_TO_GO_ROWS < len(cost_to_go_rows) <= MOST_COST_TO_GO_ROWS
    assert (np.diff(cost_to_go_rows[:, 0]) < 0).all()
    assert (np.diff(cost_to_go_rows[:, 1:], axis=0) <= ASKING_SECONDS[1]).all()
    assert not cost_to_go_rows[-1, 1:].any(), "nothing follows the last level"
