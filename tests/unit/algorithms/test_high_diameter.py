"""Whether searches take many levels is measured, whatever order the vertices have."""

from __future__ import annotations

import pandas as pd
import pytest
from graphs import grid, path, star

from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.families import StudyGraph
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.training.collect import measure_graph

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPHS = {
    "grid": (grid(60, 60), True),
    "Kronecker": (KroneckerEdges(9).materialise(), False),
    "star": (star(100), False),
}


def two_kinds(data) -> None:
    """On graphs of many levels top-down takes 1 ms, and another selector was the fastest."""
    data["learned_deep"] = {name: {"constant": 1e-3} for name in data["learned"]}
    data["auto"] = {
        "shallow": {"selector": "learned"},
        "deep": {"selector": "alpha-beta", "where": "cpu", "alpha": 7, "beta": 18},
    }


@pytest.mark.parametrize("order", ["given", "degree", "compact", "locality", "auto"])
@pytest.mark.parametrize("name", GRAPHS)
def test_it_is_the_same_in_any_order(trained, name, order):
    trained(None, two_kinds)
    edges, expected = GRAPHS[name]
    with Engine(edges, "auto", device="cpu", order=order, correction=False) as engine:
        assert engine.high_diameter == expected
        assert engine.selector.name == ("alpha-beta(7,18,cpu)" if expected else "learned")
        engine.set_selector("learned")
        predicted = engine.bfs(0).traces[0].predicted_seconds["TC"]
        assert (predicted > 1e-3) == expected
        engine.set_selector("auto")
        assert engine.selector.name == ("alpha-beta(7,18,cpu)" if expected else "learned")


@pytest.mark.parametrize("more", [-1, 0])
def test_how_many_levels_are_many(more):
    """The reference search begins at a path's end, beside the first vertex of highest degree."""
    with Engine(
        path(HIGH_DIAMETER_LEVELS + 1 + more), "fixed:TC", device="cpu", order="given"
    ) as engine:
        levels = len(engine.bfs(0).traces)
        assert levels == HIGH_DIAMETER_LEVELS + more
        assert engine.high_diameter == (levels >= HIGH_DIAMETER_LEVELS)


@pytest.mark.parametrize("order", ["given", "locality"])
@pytest.mark.parametrize("name", ["grid", "Kronecker"])
def test_samples_say_so(name, order):
    edges, expected = GRAPHS[name]
    about = StudyGraph("family", name, lambda: edges, 9)
    with Engine(build_search_graph(edges, order), "fixed:TC", device="cpu") as engine:
        samples = pd.DataFrame(measure_graph(engine, 0, about, sources=1))
    assert set(samples["deep"]) == {int(expected)}


@pytest.mark.parametrize("edges", [0, 1])
def test_a_graph_with_nothing_to_search_has_few_levels(edges):
    with Engine(path(1 + edges), device="cpu") as engine:
        assert not engine.high_diameter
