"""Each level is judged by its own size and by what is left, on any graph in any order."""

from __future__ import annotations

import pytest
from graphs import core_with_tails, grid, path, star
from oracle import check_search

from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.scheduling.model_selectors import PLAN, THRESHOLDS
from hetero_bfs.scheduling.policy import DIRECTION, MODEL
from hetero_bfs.scheduling.schema import SMALL, size_of

pytestmark = pytest.mark.usefixtures("one_thread")

GRAPHS = {
    "grid": (grid(60, 60), True),
    "Kronecker": (KroneckerEdges(9).materialise(), False),
    "star": (star(1000), False),
    "core with tails": (core_with_tails(), False),
}


def two_sizes(data) -> None:
    """Small levels take 1 ms."""
    data["learned_small"] = {name: {"constant": 1e-3} for name in data["learned"]}


@pytest.mark.parametrize("order", ["given", "degree", "compact", "locality", "auto"])
@pytest.mark.parametrize("name", GRAPHS)
def test_each_level_is_predicted_by_the_formula_of_its_size(trained, name, order):
    trained(None, two_sizes)
    edges, many_levels = GRAPHS[name]
    with Engine(edges, "auto", device="cpu", order=order, correction=False) as engine:
        assert (engine.reference_levels >= HIGH_DIAMETER_LEVELS) == many_levels
        assert (engine.selector.name, engine.selector.rules) == ("auto", (PLAN, THRESHOLDS))
        for selector in ("auto", "learned", "thresholds"):
            engine.set_selector(selector)
            traces = check_search(engine, edges, 0).traces
            for trace in traces:
                is_small = size_of(trace.features.frontier_edges) == SMALL
                assert (trace.predicted_seconds["TC"] >= 1e-3) == is_small


@pytest.mark.parametrize("name", GRAPHS)
def test_auto_is_the_rule_that_is_predicted_to_be_faster(trained, name):
    """If choosing costs nothing compared with a level, the plan is never slower."""
    edges, _ = GRAPHS[name]

    def bottom_up_late(data):
        """Bottom-up is cheap at small levels alone, which no thresholds of edges can tell."""
        data["learned_small"] = {"TC": {"constant": 1e-2}, "BC": {"constant": 1e-4}}
        data["learned"] |= {"TC": {"constant": 1e-4}, "BC": {"constant": 1e-2}}

    def top_down(data):
        data["learned"] |= {"TC": {"constant": 1e-4}, "BC": {"constant": 1e-2}}

    for change, plans in ((bottom_up_late, True), (top_down, False)):
        trained(None, change)
        with Engine(edges, "auto", device="cpu", correction=False) as engine:
            assert engine.selector.policy.rule == (MODEL if plans else DIRECTION)


def test_the_reference_search_begins_inside_a_path():
    """All its vertices but two have the highest degree. A search from an end is not typical."""
    with Engine(path(1001), "fixed:TC", device="cpu", order="given") as engine:
        assert len(engine.bfs(0).traces) == 1000
        assert 500 < engine.reference_levels < 700


@pytest.mark.parametrize("edges", [0, 1])
def test_a_graph_with_nothing_to_search_has_few_levels(edges):
    with Engine(path(1 + edges), device="cpu") as engine:
        assert engine.reference_levels <= edges
