"""Seconds expected of iterations, by which runs of programs choose a direction and a place."""

from __future__ import annotations

import numpy as np
import pytest

from hetero_bfs.scheduling import program_decision
from hetero_bfs.scheduling.program_decision import expect_iterations, lone_costs

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
