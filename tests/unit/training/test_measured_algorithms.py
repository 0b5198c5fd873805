"""Whole runs of algorithms, measured on the host: their rows, the formulas, and the regret."""

from __future__ import annotations

import pandas as pd
import pytest

from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.scheduling.speed_model import GraphSize
from hetero_bfs.training import measured_runs
from hetero_bfs.training.measured_runs import (
    fit_algorithms,
    measure_algorithms,
    regret_of_algorithms,
)

ALGORITHMS = ["PageRank", "colouring", "components", "shortest paths"]
GRAPHS = [named_graph("kronecker9"), named_graph("grid16")]


def test_each_algorithm_has_a_row_for_each_graph():
    samples = measure_algorithms(GRAPHS, None, 2, rounds=1)
    for name, rows in samples.groupby("graph"):
        assert sorted(rows["algorithm"]) == ALGORITHMS, name
    assert set(samples["place"]) == {"cpu"}
    assert (samples["seconds"] > 0).all()
    grid = samples[samples["graph"] == "grid16"]
    of_graph = grid[["vertices", "edges", "largest_degree"]].drop_duplicates()
    assert of_graph.to_numpy().tolist() == [[256, 960, 4]]
    assert sorted(fit_algorithms(samples)["cpu"]) == ALGORITHMS


def test_formulas_predict_what_they_were_fitted_to():
    sizes = [(5, 100, 1000, 9), (50, 400, 1600, 4), (9, 3000, 50_000, 800), (7, 900, 9000, 30)]
    rows = [dict(zip(GraphSize._fields, size, strict=True)) for size in sizes]
    both = {"family": "f", "algorithm": "a", "place": "device"}
    samples = pd.DataFrame(
        [
            {**both, **row, "seconds": 1e-3 + 2e-9 * row["edges"], "opening": 1e-2}
            for row in rows
        ]
    )  # fmt: skip
    costs = fit_algorithms(samples)["device"]["a"]
    for size in sizes:
        assert costs.run.seconds(GraphSize(*size)) == pytest.approx(1e-3 + 2e-9 * size[2], rel=1e-2)
        assert costs.opening.seconds(GraphSize(*size)) == pytest.approx(1e-2, rel=1e-2)


def test_opening_a_device_counts_once():
    seconds = {"cpu": 3.0, "device": 1.0}
    assert measured_runs._mean(["cpu", "device", "device", "device"], seconds, 2.0) == 2.0
    assert measured_runs._mean(["cpu", "cpu"], seconds, 2.0) == 3.0


def test_one_place_has_no_regret():
    found = list(regret_of_algorithms(GRAPHS[:1], None, 2, rounds=1))
    assert sorted(row["program"] for row in found) == ALGORITHMS
    assert {(row["place"], row["regret"], row["first_regret"]) for row in found} == {("cpu", 0, 0)}
