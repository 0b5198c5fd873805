"""When a run leaves a device: its costs, and what it learns from runs."""

from __future__ import annotations

import numpy as np
import pytest

from hetero_bfs.scheduling.algorithm_decision import Leaving
from hetero_bfs.scheduling.speed_model import GraphSize, Linear, RunCosts

SIZE = GraphSize(8, 1000, 20_000)
HOST = RunCosts(Linear(("edges",), (3e-9,)), Linear((), ()))


def test_the_edge_of_the_host_comes_from_the_model():
    with_model = Leaving(SIZE, {"cpu": HOST}, one_launch=True).costs(may_leave=True)
    assert with_model[2] == pytest.approx(3.0)
    assert Leaving(SIZE, {}, one_launch=True).costs(may_leave=True)[2] > 0


def test_a_run_that_may_not_leave_has_an_infinite_cost():
    leaving = Leaving(SIZE, {}, one_launch=False)
    assert np.isinf(leaving.costs(may_leave=False)[3])
    assert np.isfinite(leaving.costs(may_leave=True)).all()


def test_costs_converge_to_those_of_runs():
    leaving = Leaving(SIZE, {"cpu": HOST}, one_launch=True)
    for _ in range(30):
        leaving.learn_device(np.array([0.0, 10.0, 4.0]), np.array([1.0, 90e-6, 28e-6]))
        leaving.learn_host(np.array([1000.0, 0.0]), np.array([5e-6, 4e-6]), 300e-6)
    step, window, edge, leave = leaving.costs(may_leave=True)
    assert step == pytest.approx(7000, rel=1e-3)
    assert window == pytest.approx((2000 + 4000) / 2, rel=1e-3)
    assert edge == pytest.approx(3.0)
    assert leave == pytest.approx(300_000, rel=1e-3)


def test_the_first_leave_does_not_count():
    leaving = Leaving(SIZE, {}, one_launch=True)
    before = leaving.costs(may_leave=True)
    leaving.learn_host(np.array([1.0]), np.array([9.0]), 9.0)
    np.testing.assert_array_equal(leaving.costs(may_leave=True), before)
    leaving.learn_host(np.empty(0), np.empty(0), 400e-6)
    assert leaving.costs(may_leave=True)[3] > before[3]
