"""benchmarks/scaling_model.py: simulated ranks, and the prediction for a network."""

from __future__ import annotations

import sys

import pytest
from checkout import TOP

sys.path.append(str(TOP / "benchmarks"))

from scaling_model import Network, extrapolate, simulate


@pytest.mark.parametrize("ranks", [1, 4])
def test_simulated_ranks(ranks):
    row = simulate(10, ranks, num_keys=2, rounds=2, network=Network())
    assert (row["scale"], row["ranks"]) == (10, ranks)
    assert 0 < row["mean_work_seconds"] <= row["work_seconds"]
    assert row["teps"] > 0
    assert row["levels"] >= row["dense_levels"]
    assert (row["exchange_seconds"] > 0) == (ranks > 1)


def test_more_latency_takes_longer():
    near, far = Network(), Network(latency=1e-3)
    base = simulate(10, 4, num_keys=1, rounds=1, network=near)
    seconds = [
        extrapolate(30, 64, 1, 4, base, 16, network)["exchange_seconds"] for network in (near, far)
    ]
    assert seconds[1] > seconds[0] + (base["levels"] + 1) * 6 * (far.latency - near.latency) * 0.99
