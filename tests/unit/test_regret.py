"""Regret of ways of choosing on small graphs, searched on the host and on every device."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from hetero_bfs.engine import Engine
from hetero_bfs.strategy import STRATEGIES
from hetero_bfs.training import regret
from hetero_bfs.training.families import named_graph
from hetero_bfs.training.oracle import best_schedule
from hetero_bfs.training.regret import COLUMNS, measure_regret, summarise


def levels(schedule: str) -> int:
    return sum(int(run.partition("*")[2] or 1) for run in schedule.split())


@pytest.fixture(scope="module")
def table(place):
    graphs = [named_graph("kronecker9"), named_graph("grid20")]
    return measure_regret(graphs, place, roots=2, rounds=2)


def test_every_way_has_a_row_for_every_search(table, place):
    assert tuple(table.columns) == COLUMNS
    wanted = {"fixed:TC", "fixed:BC", "alpha-beta", "auto", "oracle", "none"}
    if place is not None:
        wanted |= {"daga", "fixed:TG", "fixed:BG", "fixed:BGC"}
    for _, rows in table.groupby(["graph", "root"]):
        assert wanted <= set(rows["selector"])
        assert rows["selector"].is_unique
    assert table["machine"].nunique() == 1
    assert set(table["family"]) == {"kronecker", "grid"}
    assert (table.groupby("graph")["root"].nunique() == 2).all()


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
    with Engine(named_graph("kronecker9").make(), devices="cpu") as engine:
        (rows,) = [list(regret.measure_graph(engine, named_graph("kronecker9"), roots=1, rounds=1))]
    by_way = {row["selector"]: row for row in rows}
    best = by_way["oracle"]["schedule"]
    for row in rows:
        assert row["estimated"] == (row["schedule"] != best)
    other = next(row for row in rows if row["selector"] in ("fixed:TC", "fixed:BC"))
    assert other["seconds"] > 0


def test_a_slower_schedule_is_seen_to_be_slower(monkeypatch):
    """An oracle that picks the worst strategy everywhere is told apart from the best replay."""

    def worst(costs, among=tuple(STRATEGIES)):
        negative = type(costs)(
            costs.strategies, -costs.seconds, costs.start, costs.switch, costs.convert,
            costs.measured,
        )  # fmt: skip
        found = best_schedule(negative, among)
        return type(found)(found.strategies, costs.schedule_seconds(found.strategies))

    monkeypatch.setattr(regret, "best_schedule", worst)
    with Engine(named_graph("grid200").make(), devices="cpu") as engine:
        rows = list(regret.measure_graph(engine, named_graph("grid200"), roots=1, rounds=2))
    by_way = {row["selector"]: row for row in rows}
    assert by_way["oracle"]["schedule"].startswith("BC")
    assert by_way["oracle"]["regret"] > by_way["fixed:TC"]["regret"]


def test_families_count_alike():
    table = pd.DataFrame(
        [
            {"selector": way, "family": family, "regret": value, "selection_share": 0.0}
            for way, family, value in [
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
