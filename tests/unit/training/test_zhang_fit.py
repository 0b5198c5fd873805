"""The paper's model: its fit against equations 1 to 4 worked out by hand (Zhang et al. 2018)."""

from __future__ import annotations

import pandas as pd
import pytest

from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.training.fit import fit_zhang

# A search of two levels of one Kronecker graph, and a level of another one: frontier's edges,
# unvisited edges, edges that bottom-up scanned, seconds by strategy.
LEVELS = [
    (0, 0, 10, 990, 495, {"TC": 1.0, "TG": 5.0, "BC": 99.0}),
    (0, 1, 600, 390, 39, {"TC": 20.0, "TG": 10.0, "BC": 3.0}),
    (2, 0, 40, 100, 60, {"TC": 2.0, "TG": 8.0, "BC": 5.0}),
]


def samples(family: str = "kronecker", factor: float = 1.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "graph": graph,
            "family": family,
            "root": 7,
            "level": level,
            "frontier_edges": frontier,
            "unvisited_edges": left,
            "measured": strategy,
            "seconds": factor * seconds,
            "examined": scanned if strategy == "BC" else None,
        }
        for graph, level, frontier, left, scanned, measured in LEVELS
        for strategy, seconds in measured.items()
    )


def test_speeds_are_means_of_the_levels_speeds():
    """Not sums over sums: 650 edges in 23 s would be 28.3 edges a second for TC."""
    speeds = fit_zhang(samples())
    assert speeds.edges_per_second["TC"] == pytest.approx((10 / 1 + 600 / 20 + 40 / 2) / 3)
    assert speeds.edges_per_second["TG"] == pytest.approx((10 / 5 + 600 / 10 + 40 / 8) / 3, 1e-5)
    alpha = (495 / 990 + 39 / 390 + 60 / 100) / 3
    assert speeds.alpha == pytest.approx(alpha) == 0.4
    bottom_up = alpha * (990 / 99 + 390 / 3 + 100 / 5) / 3
    assert speeds.edges_per_second["BC"] == pytest.approx(bottom_up, 1e-5)
    assert set(speeds.edges_per_second) == {"TC", "TG", "BC"}
    assert (speeds.graphs, speeds.levels) == (2, 3)


def test_only_kronecker_graphs_and_levels_count():
    """Other families, starts, migrations and conversions change nothing."""
    others = samples("grid", 1e-3)
    moves = samples().assign(measured="to_device", seconds=1e-9)
    assert fit_zhang(pd.concat([others, samples(), moves])) == fit_zhang(samples())
    assert fit_zhang(others) is None


def test_the_last_level_counts_for_speeds_but_has_no_share():
    """Nothing is left for bottom-up there: its speed is 0, and the share 0 / 0 is no number."""
    last = samples().iloc[:3].assign(level=2, unvisited_edges=0, examined=0)
    with_it, without = fit_zhang(pd.concat([samples(), last])), fit_zhang(samples())
    assert with_it.alpha == without.alpha
    assert with_it.edges_per_second["BC"] == pytest.approx(
        3 / 4 * without.edges_per_second["BC"], 1e-5
    )


@pytest.mark.parametrize("strategy", ["TC", "BC"])
def test_a_level_of_the_mean_speed_takes_its_seconds(strategy):
    """All levels of one speed: then the model is exact."""
    rows = samples()
    edges = rows["frontier_edges"].where(rows["measured"] != "BC", rows["unvisited_edges"])
    model = fit_zhang(rows.assign(seconds=edges / 8.0))

    class Level:
        frontier_edges, unvisited_edges = 160, 240

    seconds = model.seconds(Level, STRATEGIES[strategy])
    assert seconds == pytest.approx({"TC": 160, "BC": 240}[strategy] / 8.0, 1e-5)
