"""benchmarks/scaling_model.py: simulated ranks, and the prediction for a network."""

from __future__ import annotations

import sys

import pytest
from checkout import TOP

sys.path.append(str(TOP / "benchmarks"))

from scaling_model import Network, simulate


@pytest.mark.parametrize("ranks", [1, 4])
def test_simulated_ranks(ranks):
    row = simulate(10, ranks, num_keys=2, rounds=2, network=Network())
    assert (row["scale"], row["ranks"]) == (10, ranks)
    assert 0 < row["mean_work_seconds"] <= row["work_seconds"]
    assert row["teps"] > 0
    assert row["levels"] >= row["dense_levels"]
    assert (row["exchange_seconds"] > 0) == (ranks > 1)
