"""What a level records: expected work by hand, rows, CSV, and the table for a terminal."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.scheduling.trace import LEVELS, LevelFeatures, LevelTrace, format_table, write_csv

FEATURES = LevelFeatures(
    level=2,
    frontier_vertices=10,
    frontier_edges=50,
    unvisited_vertices=40,
    unvisited_edges=80,
    num_vertices=100,
    num_edges=200,
    growth=2.5,
    device_kind="cpu",
    representation="queue",
)
TRACE = LevelTrace(
    FEATURES, "BG", 0.002, 0.0005, 1e-6, 33, {"BG": 0.0021, "TC": 0.01}, "because",
    {"BG": 0.005, "TC": 0.012},
)  # fmt: skip


START = replace(FEATURES, level=0, frontier_edges=20, growth=1e12)
"""Nothing drawn yet: a fifth of the ends are the frontier's, degrees are 2 everywhere."""


def test_a_well_mixed_level_by_hand():
    """40 vertices find a neighbour with chance 1 - 0.8**2 = 0.36, and scan 0.36 / 0.2 edges."""
    assert START.expected_found == pytest.approx(40 * 0.36)
    assert START.expected_examined == pytest.approx(40 * 0.36 / 0.2)
    assert START.expected_length == pytest.approx(0.36 / 0.2)


def test_a_frontier_of_hubs_is_met_at_once():
    """Those that find one scan 1 edge each, the others scan all their edges."""
    hub = replace(START, frontier_vertices=1)
    assert hub.expected_found == pytest.approx(40 * 0.36)
    assert hub.expected_examined == pytest.approx(40 * 0.36 + 0.64 * 80)


def test_a_badly_mixed_level_by_hand():
    """The level before should have found 50 (1 - (5 / 6)**2) of 50, and found 10."""
    later = replace(FEATURES, frontier_edges=30, unvisited_edges=70, growth=1.5)
    mixed = 10 / (0.8 * 50 * (1 - (5 / 6) ** 2))
    share = (30 - 100 / 6) / (30 - 100 / 6 + 70)  # but for the ends drawn by the level before
    reached = 1 - (1 - share) ** (70 / 40)
    first = (30 / 10) / (70 / 40) - 1
    near = (1 - first) * 40 * reached / share + first * (40 * reached + (1 - reached) * 70)
    assert later.expected_found == pytest.approx(mixed * 40 * reached)
    assert later.expected_examined == pytest.approx(mixed * near + (1 - mixed) * 70)


def test_nothing_left():
    done = replace(FEATURES, unvisited_vertices=0, unvisited_edges=0)
    assert (done.expected_examined, done.expected_found) == (0.0, 0.0)
    lonely = replace(FEATURES, unvisited_edges=0)
    assert (lonely.expected_examined, lonely.expected_found) == (0.0, 0.0)
    empty = replace(done, frontier_edges=0, num_edges=0)
    assert (empty.expected_examined, empty.expected_found) == (0.0, 0.0)


def test_nothing_visited():
    start = replace(FEATURES, unvisited_edges=200, frontier_edges=0)
    assert start.expected_examined == 200.0
    assert start.expected_found == 0.0


@pytest.mark.parametrize("name", ["uniform13", "small-world13", "preferential13", "kronecker13"])
def test_real_levels_are_as_expected(name):
    """Within a factor of 2 where a tenth of the edges or more is left, and so bottom-up matters."""
    from hetero_bfs.engine.engine import Engine
    from hetero_bfs.graph.generators.families import named_graph
    from hetero_bfs.training.measure import measure_search

    with Engine(named_graph(name).make(), "fixed:TC", device="cpu") as engine:
        levels = [
            (features, edges_scanned)
            for features, measured, _, edges_scanned in measure_search(engine, 5, repeats=1)
            if measured == "BC"
        ]
    for (features, edges_scanned), (after, _) in pairwise(levels):
        if features.unvisited_edges < 0.1 * features.num_edges:
            continue
        if features.level > 1:
            assert 0.5 < features.expected_examined / edges_scanned < 2
        if features.frontier_vertices > 300:
            assert 0.5 < features.expected_found / after.frontier_vertices < 2


@given(st.data())
def test_expectations_stay_within_what_there_is(data):
    draw = data.draw
    num_edges = draw(st.integers(1, 10**12))
    unvisited_edges = draw(st.integers(0, num_edges))
    frontier_edges = draw(st.integers(0, num_edges))
    vertices = draw(st.integers(0, 10**9))
    features = replace(
        FEATURES,
        level=draw(st.integers(0, 3)),
        growth=draw(st.floats(1e-6, 1e9)),
        num_edges=num_edges,
        unvisited_edges=unvisited_edges,
        frontier_edges=frontier_edges,
        unvisited_vertices=vertices,
    )
    assert 0 <= features.expected_found <= vertices * (1 + 1e-9)
    assert features.expected_examined >= 0
    assert features.expected_found <= frontier_edges
    assert features.expected_examined <= unvisited_edges * (1 + 1e-6)


def test_row_has_every_feature_and_every_strategy():
    row = TRACE.row()
    names = [field.name for field in fields(LevelFeatures)]
    assert names == list(row)[: len(names)]
    assert [row[name] for name in names] == [getattr(FEATURES, name) for name in names]
    assert (row["level"], row["frontier_edges"], row["device_kind"]) == (2, 50, "cpu")
    assert row["expected_examined"] == FEATURES.expected_examined
    assert row["expected_found"] == FEATURES.expected_found
    assert (row["predicted_BG"], row["predicted_TC"]) == (0.0021, 0.01)
    assert [row[f"predicted_{name}"] for name in ("TG", "BC", "BGC")] == [""] * 3
    assert (row["compared_BG"], row["compared_TC"], row["compared_BC"]) == (0.005, 0.012, "")
    measured = ("strategy", "seconds", "transfer_seconds", "select_seconds", "found_vertices")
    assert [row[name] for name in measured] == ["BG", 0.002, 0.0005, 1e-6, 33]
    assert row["reason"] == "because"


def test_csv_round_trip(tmp_path):
    path = tmp_path / "trace.csv"
    write_csv(path, ({"root": 7, **t.row()} for t in (TRACE, replace(TRACE, reason='a, "b"'))))
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["reason"] for row in rows] == ["because", 'a, "b"']
    expected = {"root": 7, **TRACE.row()}
    assert rows[0] == {key: str(value) for key, value in expected.items()}
    assert float(rows[0]["expected_examined"]) == FEATURES.expected_examined


def test_csv_of_nothing(tmp_path):
    write_csv(tmp_path / "trace.csv", [])
    assert (tmp_path / "trace.csv").read_text().strip() == ""


def test_csv_that_cannot_be_written(tmp_path):
    with pytest.raises(HeteroBFSError, match=r"trace\.csv.*No such file"):
        write_csv(tmp_path / "none" / "trace.csv", [TRACE.row()])


def test_table():
    bare = replace(TRACE, strategy="TG", predicted_seconds={})
    head, first, second = format_table(LEVELS, [TRACE, bare]).splitlines()
    titles = "level frontier its edges unvisited strategy ms migr ms pred ms why"
    assert " ".join(head.split()) == titles
    assert first.split() == ["2", "10", "50", "40", "BG", "2.000", "0.500", "2.100", "because"]
    assert second.split() == ["2", "10", "50", "40", "TG", "2.000", "0.500", "because"]
    assert format_table(LEVELS, []).split() == head.split()
    reason = "its edges <= unvisited edges / 15"
    lines = format_table(LEVELS, [replace(TRACE, reason=reason)]).splitlines()
    assert max(map(len, lines)) <= 110
