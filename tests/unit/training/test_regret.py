"""Regret of configurations on small graphs, searched on the host and on every device."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.families import StudyGraph, named_graph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.training import regret
from hetero_bfs.training.oracle import best_schedule
from hetero_bfs.training.regret import (
    COLUMNS,
    SETTLED,
    SETTLING,
    measure_regret,
    sources_of,
    summarise,
)


def levels(schedule: str) -> int:
    return sum(int(run.partition("*")[2] or 1) for run in schedule.split())


@pytest.fixture(scope="module")
def table(place):
    """Measured there: engines that are opened by the device's index get this one."""
    graphs = [named_graph("kronecker9"), named_graph("grid20")]
    with mock.patch("hetero_bfs.options.choose_devices", return_value=[place] if place else []):
        return measure_regret(graphs, place, sources=2, rounds=2)


def test_every_way_has_a_row_for_every_search(table, place):
    assert tuple(table.columns) == COLUMNS
    wanted = {"fixed:TC", "fixed:BC", "alpha-beta", "auto", SETTLED, "oracle", "none"}
    if place is not None:
        wanted |= {"daga", "fixed:TG", "fixed:BG", "fixed:BGC"}
    for _, rows in table.groupby(["graph", "root"]):
        assert wanted <= set(rows["selector"])
        assert rows["selector"].is_unique
    assert table["machine"].nunique() == 1
    assert set(table["family"]) == {"kronecker", "grid"}
    assert (table.groupby("graph")["root"].nunique() == 2).all()


def test_the_settled_selector_has_learned_from_other_sources_than_those_measured(monkeypatch):
    searched = []
    search = Engine.search

    def noted(engine, key):
        searched.append(key)
        return search(engine, key)

    monkeypatch.setattr(Engine, "search", noted)
    graph = build_search_graph(named_graph("kronecker9").make())
    trail = list(regret.settle(graph, "auto", 2, SETTLING, {"device": "cpu"}))
    assert len(searched) == SETTLING
    assert trail[0][0] == 0
    factors = [selector.factors.tolist() for _, selector in trail]
    assert all(one != other for one, other in pairwise(factors)), "each is another selector"
    found = trail[-1][1]
    with Engine(graph, device="cpu", correction=False) as engine:
        assert not set(searched) & set(sources_of(engine, 2))
        engine.set_selector(found)
        np.testing.assert_array_equal(engine.selector.by_model.weights, found.by_model.weights)


def test_equal_schedules_take_equal_time(table):
    for _, rows in table.groupby(["graph", "root", "schedule"]):
        assert rows["seconds"].nunique() == 1
        assert rows["regret"].nunique() == 1
    for _, rows in table.groupby(["graph", "root"]):
        assert rows["oracle_seconds"].nunique() == 1
        assert rows["schedule"].map(levels).nunique() == 1


def test_regret_is_over_the_least_replay(table):
    replayed = table[~table["estimated"]]
    assert (replayed["regret"] >= 0).all()
    np.testing.assert_allclose(table["regret"], table["seconds"] / table["oracle_seconds"] - 1)
    assert not table.loc[table["selector"] == "oracle", "estimated"].any()
    shares = replayed["selection_share"]
    assert ((shares >= 0) & (shares < 1)).all()


def test_no_selector_is_the_best_strategy_alone(table):
    for _, rows in table.groupby(["graph", "root"]):
        alone = rows[rows["selector"].str.startswith("fixed:")]
        none = rows[rows["selector"] == "none"].iloc[0]
        assert none["seconds"] == alone["seconds"].min()
        assert len(set(none["schedule"].replace("*", " ").split()) & set(STRATEGIES)) == 1


def test_what_would_take_too_long_is_estimated(monkeypatch):
    monkeypatch.setattr(regret, "SLOWEST", 1.0)
    with Engine(named_graph("kronecker9").make(), device="cpu") as engine:
        (rows,) = [
            list(regret.measure_graph(engine, named_graph("kronecker9"), sources=1, rounds=1))
        ]
    by_way = {row["selector"]: row for row in rows}
    best = by_way["oracle"]["schedule"]
    for row in rows:
        assert row["estimated"] == (row["schedule"] != best)
    other = next(row for row in rows if row["selector"] in ("fixed:TC", "fixed:BC"))
    assert other["seconds"] > 0


def test_a_slower_schedule_is_seen_to_be_slower(monkeypatch):
    """An oracle that picks the worst strategy everywhere is told apart from the best replay."""

    def worst(costs, among=tuple(STRATEGIES)):
        negative = replace(costs, seconds=-costs.seconds)
        found = best_schedule(negative, among)
        return type(found)(found.strategies, costs.schedule_seconds(found.strategies))

    monkeypatch.setattr(regret, "best_schedule", worst)
    with Engine(named_graph("grid200").make(), device="cpu") as engine:
        rows = list(regret.measure_graph(engine, named_graph("grid200"), sources=1, rounds=2))
    by_way = {row["selector"]: row for row in rows}
    assert by_way["oracle"]["schedule"].startswith("BC")
    assert by_way["oracle"]["regret"] > by_way["fixed:TC"]["regret"]


def many_small_components(directed: bool) -> EdgeList:
    """400 triangles, a ring of 40 vertices and a star of 30.

    The ring has the most edges of all components and under a tenth of the vertices; directed, one
    runs through it all the way round.
    """
    pairs = [(3 * t + i, 3 * t + (i + 1) % 3) for t in range(400) for i in range(3)]
    pairs += [(1200 + i, 1200 + (i + 1) % 40) for i in range(40)]
    pairs += [(1240, 1241 + i) for i in range(29)]
    src, dst = np.array(pairs).T
    return EdgeList.from_arrays(src, dst, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
def test_roots_lie_in_the_largest_of_many_small_components(directed):
    with Engine(many_small_components(directed), "fixed:TC", device="cpu") as engine:
        sources = regret.sources_of(engine, 3)
        assert len(set(sources)) == 3
        assert all(1200 <= source < 1240 for source in sources)
        rows = list(regret.measure_graph(engine, StudyGraph("file", "g", list), 2, 1))
    assert {row["root"] for row in rows} == set(sources[:2])


def test_roots_that_reach_little_of_the_graph_are_left_out():
    """Two stars and lone edges: Graph500's keys are kept if they lie in a star."""
    pairs = [(0, 1 + i) for i in range(400)] + [(500, 501 + i) for i in range(300)]
    pairs += [(900 + 2 * i, 901 + 2 * i) for i in range(200)]
    src, dst = np.array(pairs).T
    edges = EdgeList.from_arrays(src, dst)
    with Engine(edges, "fixed:TC", device="cpu") as engine:
        graph = engine.graph
        sources = regret.sources_of(engine, 4)
        drawn = search_keys(graph.num_vertices, graph.is_isolated, 16)
    assert sources == [key for key in drawn if key < 900][:4]
    assert any(key >= 900 for key in drawn), "else nothing was to be left out"


def test_of_a_directed_component_roots_that_reach_the_most():
    """Lone edges, and a path whose first vertices reach the most of it."""
    pairs = [(2 * i, 2 * i + 1) for i in range(600)] + [(1200 + i, 1201 + i) for i in range(12)]
    src, dst = np.array(pairs).T
    with Engine(EdgeList.from_arrays(src, dst, directed=True), "fixed:TC", device="cpu") as engine:
        assert regret.sources_of(engine, 2) == [1200, 1201]


def test_without_an_edge_there_is_no_root():
    empty = np.empty(0, np.uint32)
    with Engine(EdgeList(empty, empty, 5), "fixed:TC", device="cpu") as engine:
        assert regret.sources_of(engine, 2) == []


def test_families_count_alike():
    table = pd.DataFrame(
        [
            {"selector": config, "family": family, "regret": value, "selection_share": 0.0}
            for config, family, value in [
                ("a", "grid", 0.0),
                ("a", "grid", 3.0),
                ("a", "uniform", 0.0),
                ("b", "grid", 0.21),
                ("b", "uniform", 0.0),
            ]
        ]
    )
    summary = summarise(table)
    assert summary.index.tolist() == ["b", "a"]
    assert summary.loc["a", "grid"] == pytest.approx(1.0)
    assert summary.loc["a", "all"] == pytest.approx(2**0.5 - 1)
    assert summary.loc["b", "all"] == pytest.approx(0.1)
    assert summary.loc["b", "worst"] == pytest.approx(0.21)
