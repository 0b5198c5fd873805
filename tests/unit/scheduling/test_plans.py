"""What `auto` plans for whole searches, against exact solutions in plain Python.

Cores and tails, made by hand; the seconds that Zhang et al. (2018, Table 5) measured on an
A10-7850K, a processor with a GPU of its own; and machines of stated speeds.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from selector_levels import (
    ALL,
    CORE,
    M,
    N,
    alone_seconds,
    bound,
    core_and_tail_levels,
    costs_of,
    linear,
    model,
    reference_of,
    states_of,
    walk,
    with_ratio,
)

from hetero_bfs.scheduling import model_selectors, schema
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.policy import DIRECTION, LEAST_ALIKE, MODEL, MOST_COST_TO_GO_ROWS
from hetero_bfs.scheduling.rehearsal import (
    ASKING_SECONDS,
    KEEPING_SECONDS,
    find_rule,
    rehearse,
    with_alike,
    with_cost_to_go,
)
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.training.oracle import SearchCosts, best_schedule


def machine(switch: float = 20e-6) -> SpeedModel:
    """Small levels take 0.1 us on the host and 3 us on the device; large ones run 20 times as fast
    on the device. Migrations take `switch` seconds.
    """
    large = {
        "TC": linear(1e-6, frontier_edges=2e-9),
        "BC": linear(1e-6, expected_examined=2e-9),
        "TG": linear(5e-6, frontier_edges=1e-10),
        "BG": linear(5e-6, expected_examined=1e-10),
        "BGC": linear(6e-6, expected_examined=1e-10),
    }
    small = dict.fromkeys(STRATEGIES, linear(3e-6))
    small |= {"TC": linear(1e-7, frontier_edges=1e-9), "BC": linear(5e-6)}
    return replace(
        model(start_cpu=2e-6, start_device=8e-6, on_cpu=1e-6, on_device=1e-6),
        learned=large,
        learned_small=small,
        switch={kind: linear(switch) for kind in ("cpu", "device")},
    )


def is_alike(now: LevelFeatures, before: LevelFeatures) -> bool:
    """Whether a search very likely keeps its choice, so that it asks no model."""
    sizes = {
        edges >= schema.LEAST_SHARED_EDGES for edges in (now.frontier_edges, before.frontier_edges)
    }
    return len(sizes) == 1 and all(
        max(one, other) <= LEAST_ALIKE * min(one, other)
        for one, other in (
            (now.frontier_vertices, before.frontier_vertices),
            (now.frontier_edges, before.frontier_edges),
            (now.unvisited_edges, before.unvisited_edges),
        )
    )


def least_seconds(costs: SearchCosts, states=None) -> float:
    """Return the least seconds of any schedule, backwards, level by level.

    With `states` asking the model counts, at the place where the search is.
    """
    migrations = costs.migrations()
    numbers = range(len(costs.strategies))
    after = [0.0] * len(costs.strategies)
    for level in reversed(range(costs.num_levels)):
        before = []
        for last in numbers:
            least = min(
                migrations[level, last, s] + costs.seconds[level, s] + after[s] for s in numbers
            )
            if states is not None:
                keeps = level > 0 and is_alike(states[level], states[level - 1])
                on_device = level > 0 and costs.strategies[last].device_kind == "device"
                least += (KEEPING_SECONDS if keeps else ASKING_SECONDS)[on_device]
            before.append(least)
        after = before
    return after[0]


def places(schedule: list[str]) -> str:
    """The place of each level: c, or g for the device; equal ones in a row count once."""
    each = [STRATEGIES[name].device_kind for name in schedule]
    kept = [each[0], *(now for before, now in pairwise(each) if now != before)]
    return " ".join(kept)


@pytest.mark.parametrize("tail", [12, 24])
@pytest.mark.parametrize("switch", [1e-6, 20e-6, 200e-6, 5e-3])
def test_a_plan_takes_what_an_exact_solver_says(tail, switch):
    made, states = machine(switch), states_of(core_and_tail_levels(tail), N, M)
    assert len(states) <= MOST_COST_TO_GO_ROWS
    costs, reference = costs_of(made, states), reference_of(states)
    unbound = model_selector("auto", made, ALL)
    plan = with_cost_to_go(unbound.by_model, N, M, reference)
    _, seconds = rehearse(plan, unbound.by_model, N, M, with_alike(reference)[0])
    assert seconds == pytest.approx(least_seconds(costs, states), rel=1e-9)
    least = least_seconds(costs)
    assert least == pytest.approx(best_schedule(costs).seconds)
    chosen = walk(bound(made, states, "learned"), states)
    asking = len(states) * ASKING_SECONDS[1]
    assert costs.schedule_seconds(chosen) == pytest.approx(least, abs=asking)


@pytest.mark.parametrize("tail", [24, 1000])
def test_cores_run_on_the_device_and_tails_on_the_host(tail):
    """Back on the device for the second core, too; also if the table has a sample of the levels."""
    made, states = machine(), states_of(core_and_tail_levels(tail), N, M)
    selector = bound(made, states)
    assert selector.policy.rule == MODEL, "no thresholds know where a core ends"
    chosen = walk(selector, states)
    second = len(CORE) + tail
    for begin in (2, second + 1):  # the levels of 9,000 and of 50,000 vertices
        assert {STRATEGIES[name].device_kind for name in chosen[begin : begin + 2]} == {"device"}
    for begin in (len(CORE) + 1, second + len(CORE) + 1):
        assert set(chosen[begin : begin + tail - 4]) == {"TC"}
    costs = costs_of(made, states)
    assert costs.schedule_seconds(chosen) <= 1.02 * least_seconds(costs)
    for place in ("cpu", "device"):
        alone = best_schedule(costs, {s.name for s in ALL if s.device_kind == place})
        assert alone.seconds > 1.2 * costs.schedule_seconds(chosen)


def test_a_search_with_larger_frontiers_than_the_reference_does_not_put_its_migration_off():
    """Its migration costs more now than the reference expects of a later one, at every level."""
    made = machine()
    made = replace(
        made,
        learned={**made.learned, "TG": linear(2e-6, frontier_edges=1e-10)},
        switch=dict.fromkeys(made.switch, linear(100e-6, frontier_vertices=3e-8)),
    )
    narrow, wide = (
        states_of([(step * level, 4 * step * level) for level in range(1, 400)], N, M)
        for step in (1, 2)
    )
    selector = bound(made, narrow, "learned")
    chosen = walk(selector, wide)
    best = least_seconds(costs_of(made, wide))
    assert costs_of(made, wide).schedule_seconds(chosen) <= 1.05 * best


def test_a_search_without_the_number_of_its_levels_is_not_rehearsed():
    """Compiled code would read beyond its rows."""
    states = states_of(core_and_tail_levels(24), N, M)
    reference, selector = reference_of(states), bound(machine(), states)
    with pytest.raises(AssertionError, match="column COUNT"):
        rehearse(selector.policy, selector.by_model, N, M, reference)
    with pytest.raises(AssertionError, match="column COUNT"):
        find_rule(selector.by_model, N, [reference], [(0, 1)])


def test_where_migration_costs_more_than_it_saves_a_search_stays():
    made, states = machine(1.0), states_of(core_and_tail_levels(24), N, M)
    chosen = walk(bound(made, states), states)
    assert places(chosen) in ("cpu", "device")


def test_where_one_place_is_best_thresholds_apply():
    """As on a Kronecker graph: asking a model would take time at each level."""
    vertices, edges = (sum(level[i] for level in CORE) + 500 for i in (0, 1))
    made, states = machine(), states_of(CORE, vertices, edges)
    selector = bound(made, states)
    assert selector.policy.rule == DIRECTION
    down, up = (ALL[i] for i in selector.policy.schedule)
    assert (down.name, up.name) == ("TG", "BG")
    reference = reference_of(states)
    plan = with_cost_to_go(selector.by_model, vertices, edges, reference)
    where = vertices, edges, with_alike(reference)[0]
    _, by_rule = rehearse(selector.policy, selector.by_model, *where)
    _, by_plan = rehearse(plan, selector.by_model, *where)
    assert by_rule <= by_plan
    assert by_rule == pytest.approx(least_seconds(costs_of(made, states)), rel=0.02)
    assert bound(made, states, "learned").policy.rule == MODEL


def test_corrections_may_change_the_rule():
    """If the device turns out to be as slow as the host at large levels, a search stays."""
    states = states_of(core_and_tail_levels(24), N, M)
    selector = bound(machine(), states)
    factors = np.ones(selector.factors.size)
    for name in ("TG", "BG", "BGC"):
        factors[len(ALL) + [s.name for s in ALL].index(name)] = 20.0
    assert places(walk(selector, states)) == "device cpu device cpu"
    assert places(walk(selector.corrected(factors), states)) == "cpu"


# The paper's machine.

FRONTIERS = (1, 1, 5_198, 55_391_290, 126_205_388, 414_288, 1_132, 4)
DEGREES = (3, 40, 50, 9, 5, 4, 3, 2)  # made up; other columns than the frontier must differ, too
PAPER = {
    "TC": (0.02, 0.02, 1.81, 9.76, 0.30, 0.03, 0.02, 0.02),
    "TG": (0.03, 0.05, 3.44, 17.35, 0.97, 0.08, 0.02, 0.02),
    "BC": (4.37, 4.34, 3.16, 2.66, 2.84, 2.82, 2.83, 0.03),
    "BG": (9.42, 8.53, 0.29, 0.08, 0.06, 0.05, 0.05, 0.05),
    "BGC": (9.44, 8.47, 0.27, 0.07, 0.06, 0.05, 0.05, 0.05),
}
"""Seconds of each strategy at each level of a Kronecker graph of scale 26."""


def paper_states() -> list[LevelFeatures]:
    levels = [(v, v * degree) for v, degree in zip(FRONTIERS, DEGREES, strict=True)]
    vertices, edges = (sum(level[i] for level in levels) for i in (0, 1))
    return states_of(levels, vertices + 1000, edges + 2000)


def paper_costs(switch: float) -> SearchCosts:
    levels = len(FRONTIERS)
    return SearchCosts(
        tuple(ALL),
        np.column_stack([PAPER[s.name] for s in ALL]),
        np.zeros(2),
        np.full((levels, 2), switch),
        np.zeros((levels, 2)),
        np.zeros(levels, np.bool_),
        np.arange(levels),
    )


def fitted(states: list[LevelFeatures], seconds) -> dict[str, Linear]:
    """Return formulas that give exactly these seconds at these levels, by strategy."""
    used = [name for name in schema.COLUMNS if name not in ("constant", "num_vertices")]
    columns = np.array([[1.0, *(f.columns[name] for name in used)] for f in states])
    scale = np.maximum(columns.max(axis=0), 1.0)
    found = {}
    for name, wanted in seconds.items():
        weights = np.linalg.lstsq(columns / scale, np.array(wanted), rcond=None)[0] / scale
        assert columns @ weights == pytest.approx(np.array(wanted), abs=1e-6)
        found[name] = Linear(("constant", *used), tuple(weights.tolist()))
    return found


def paper_machine(switch: float) -> SpeedModel:
    """A model that predicts exactly what the paper measured."""
    states = paper_states()
    sizes = [schema.size_of(f.frontier_edges) for f in states]
    tables = []
    for size in (schema.SMALL, schema.LARGE):
        levels = [i for i, other in enumerate(sizes) if other == size]
        seconds = {name: [values[i] for i in levels] for name, values in PAPER.items()}
        tables.append(fitted([states[i] for i in levels], seconds))
    made = model(to_cpu=switch, to_device=switch)
    return replace(made, learned_small=tables[0], learned=tables[1])


def exhaustive(switch: float) -> tuple[float, int]:
    """Return the least seconds, and the least moves that they take, of all orders of places."""
    least = {
        kind: [min(PAPER[s.name][i] for s in ALL if s.device_kind == kind) for i in range(8)]
        for kind in ("cpu", "device")
    }
    totals = []
    for order in product(("cpu", "device"), repeat=8):
        moves = sum(one != other for one, other in pairwise(order))
        seconds = sum(least[kind][i] for i, kind in enumerate(order)) + switch * moves
        totals.append((round(seconds, 9), moves))
    return min(totals)


@pytest.fixture
def one_search(monkeypatch):
    """The paper has seconds for the levels of one search only."""
    monkeypatch.setattr(model_selectors, "with_alike", lambda reference: with_alike(reference)[:1])


@pytest.mark.usefixtures("one_search")
def test_on_the_papers_machine_the_best_schedule_is_found():
    states, costs = paper_states(), paper_costs(0.0)
    assert best_schedule(costs).seconds == pytest.approx(0.51)
    of_gpu = best_schedule(costs, {s.name for s in ALL if s.device_kind == "device"})
    assert of_gpu.seconds == pytest.approx(0.57)
    assert exhaustive(0.0)[0] == pytest.approx(0.51)
    for name in ("auto", "learned"):
        chosen = walk(bound(paper_machine(0.0), states, name), states)
        assert costs.schedule_seconds(chosen) == pytest.approx(0.51)
        assert (chosen[:2], chosen[5]) == (["TC", "TC"], "TC")
        assert {STRATEGIES[s].device_kind for s in chosen[2:5]} == {"device"}


@pytest.mark.usefixtures("one_search")
@pytest.mark.parametrize("switch", [0.0, 0.004, 0.008, 0.012, 0.016, 0.03, 0.06, 0.1])
def test_on_the_papers_machine_a_search_moves_as_an_exact_solver(switch):
    states, costs = paper_states(), paper_costs(switch)
    least, moves = exhaustive(switch)
    assert best_schedule(costs).seconds == pytest.approx(least)
    for name in ("auto", "learned"):
        chosen = walk(bound(paper_machine(switch), states, name), states)
        assert costs.schedule_seconds(chosen) == pytest.approx(least, abs=2e-5)
        if switch:
            kinds = [STRATEGIES[s].device_kind for s in chosen]
            assert sum(one != other for one, other in pairwise(kinds)) == moves


# Machines of stated speeds.

RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("levels", [CORE, core_and_tail_levels(20)], ids=["core", "tails"])
def test_whatever_the_ratio_of_speeds_the_schedule_is_the_best(ratio, levels):
    made, states = with_ratio(ratio), states_of(levels, N, M)
    costs = costs_of(made, states)
    chosen = walk(bound(made, states), states)
    asking = len(states) * ASKING_SECONDS[1]
    assert costs.schedule_seconds(chosen) == pytest.approx(least_seconds(costs), abs=asking)


def test_mixed_schedules_win_between_the_extremes():
    """With tails they win if the GPU is faster at all; a core alone they help less."""
    gains = {}
    for ratio in RATIOS:
        made, states = with_ratio(ratio), states_of(core_and_tail_levels(20), N, M)
        costs = costs_of(made, states)
        alone = alone_seconds(costs).values()
        gains[ratio] = min(alone) / best_schedule(costs).seconds
    assert gains[10.0] == pytest.approx(1.0) == gains[5.0], "the CPU is faster at all levels"
    assert max(gains.values()) > 1.2
    assert all(gain >= 1.0 - 1e-12 for gain in gains.values())
