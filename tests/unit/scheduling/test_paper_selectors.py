"""The selectors of the papers against plain Python, on hundreds of levels."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from selector_levels import ALL, GPU, HOST_ONLY, START, choose, names

from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.model_selectors import ZhangSelector
from hetero_bfs.scheduling.named_selectors import make_selector
from hetero_bfs.scheduling.speed_model import ZhangSpeeds

LEVELS, VERTICES, EDGES = 600, 1000, 20_000


def some_levels(seed: int):
    """Levels that a search could have, all sizes; many are close to the rules' thresholds."""
    chance = Random(seed)
    for _ in range(LEVELS):
        unvisited = int(EDGES ** chance.random())
        near = chance.choice((unvisited / 15, unvisited, unvisited / 4, EDGES))
        frontier = min(max(int(near * chance.uniform(0.9, 1.1)), 1), EDGES)
        vertices = chance.choice((chance.randint(1, VERTICES), chance.randint(53, 58)))
        yield replace(
            START,
            level=chance.randint(1, 30),
            frontier_vertices=vertices,
            frontier_edges=frontier,
            unvisited_edges=unvisited,
            growth=chance.choice((0.5, 1.0, 2.0, 20.0)),
        )


def by_beamers_rule(levels, top_down: str, bottom_up: str) -> list[str]:
    """Daga and Yasui take this rule, with fixed thresholds; they differ in where they run."""
    chosen, going_up = [], False
    for level in levels:
        if going_up:
            going_up = level.frontier_vertices >= VERTICES / 18
        else:
            going_up = level.growth > 1 and level.frontier_edges > level.unvisited_edges / 15
        chosen.append(bottom_up if going_up else top_down)
    return chosen


@pytest.mark.parametrize(
    ("wanted", "device", "candidates", "strategies"),
    [
        ("yasui", GPU, ALL, ("TC", "BC")),
        ("yasui", None, HOST_ONLY, ("TC", "BC")),
        ("daga", GPU, ALL, ("TC", "BG")),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_fixed_rules(wanted, device, candidates, strategies, seed):
    levels = list(some_levels(seed))
    selector, notes = make_selector(wanted, device, candidates)
    assert (selector.name, notes) == (wanted, [])
    chosen = names(selector, levels)
    assert chosen == by_beamers_rule(levels, *strategies)
    assert set(chosen) == set(strategies)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("candidates", [ALL, HOST_ONLY], ids=["all", "host only"])
def test_the_papers_model_takes_the_least_predicted_seconds(candidates, seed):
    chance = Random(seed)
    speed = {s.name: chance.uniform(0.5, 4.0) for s in candidates}
    alpha = chance.uniform(0.1, 0.9)
    selector = ZhangSelector(ZhangSpeeds(alpha, speed, 80, 2000), candidates)
    seen = set()
    for level in some_levels(seed):
        seconds = {
            name: level.frontier_edges / v if name[0] == "T" else alpha * level.unvisited_edges / v
            for name, v in speed.items()
        }
        choice = choose(selector, level)
        assert choice.predicted_seconds == pytest.approx(seconds)
        assert choice.strategy.name == min(seconds, key=seconds.__getitem__)
        assert choice.reason.split(" before ")[1] in speed
        seen.add(choice.strategy.name)
    assert len(seen) == 2


def test_orders_of_vertices_belong_to_selectors():
    """The paper searches with Daga's without relabelling; the user's own order comes first."""
    assert EngineOptions(selector="daga").order == "given"
    assert EngineOptions(selector="yasui").order == "degree"
    assert EngineOptions(selector="zhang").order == "auto"
    assert EngineOptions(selector="daga", order="compact").order == "compact"
