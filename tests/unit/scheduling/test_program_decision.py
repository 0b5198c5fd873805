"""Seconds expected of iterations, by which runs of programs choose a direction and a place."""

from __future__ import annotations

import numpy as np
import pytest

from hetero_bfs.scheduling import program_decision
from hetero_bfs.scheduling.program_decision import (
    MigrationCosts,
    ProgramEstimates,
    RunSizes,
    expect_iterations,
    lone_costs,
)
from hetero_bfs.scheduling.speed_model import first_guess

PUSH_EDGE, PULL_VERTEX, PULL_EDGE, PULL_MISS, PUSH_VERTEX, PUSH_CHANGE, ITERATION = (
    3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0,
)  # fmt: skip
COSTS = (PUSH_EDGE, PULL_VERTEX, PULL_EDGE, PULL_MISS, PUSH_VERTEX, PUSH_CHANGE, ITERATION)
SEARCHED, STORED = 100, 800


def expected(*known: float) -> float:
    seconds = np.empty(1)
    expect_iterations(lone_costs(COSTS), np.array([known]), (SEARCHED, STORED), True, seconds)
    return float(seconds[0])


def test_pushes_cost_by_senders_edges_and_changes():
    senders, edges, changes_per_edge = 2.0, 6.0, 0.5
    pushed = PUSH_VERTEX * senders + (PUSH_EDGE + PUSH_CHANGE * changes_per_edge) * edges
    assert expected(senders, edges, 100.0, changes_per_edge) == pytest.approx(ITERATION + pushed)


def test_pulls_cost_by_vertices_edges_and_misses():
    edges, receivers = 700.0, 10.0
    scans, share = receivers * STORED / SEARCHED, edges / STORED
    pulled = PULL_VERTEX * SEARCHED + PULL_EDGE * scans
    pulled += PULL_MISS * scans * share * (1.0 - share)
    assert expected(90.0, edges, receivers, 1.0) == pytest.approx(ITERATION + pulled)


def test_costs_have_places_of_their_own():
    of_two_places = 2 * (program_decision.ITERATION_COST + 1)
    assert of_two_places == program_decision.MIGRATION == 2 * program_decision.OTHER
    assert sorted(program_decision.OPENCL.values()) == sorted(set(program_decision.OPENCL.values()))
    assert lone_costs(COSTS)[program_decision.CHANGES_PER_EDGE] == 1.0


def test_one_disturbed_iteration_makes_no_migration_pay():
    """The thread was not scheduled for 5 ms during one iteration of 10 us, once."""
    sizes = RunSizes(1000, 1000, 20_000, 4, has_identity=True, all_active=False)
    costs = {"cpu": first_guess("cpu", 1), "device": first_guess("device", 1)}
    known = np.tile([1.0, 20.0, 999.0, 1.0], (50, 1))
    usual = np.full(50, 10e-6)
    disturbed = usual.copy()
    disturbed[7] = 5e-3

    def pays(*runs):
        migrations = dict.fromkeys(costs, MigrationCosts(50e-6, 1e-10))
        estimates = ProgramEstimates(sizes, costs, migrations)
        for seconds in runs:
            estimates.learn_host(np.zeros(6), known, seconds)
        estimates.learn_device(50 * 30e-6)
        return estimates.may_pay()

    assert pays(disturbed)
    assert pays(disturbed, disturbed)
    assert not pays(usual)
    assert not pays(usual, disturbed)
    assert not pays(disturbed, usual)
