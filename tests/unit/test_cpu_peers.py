"""benchmarks/cpu_peers.py and cpu_contestants.py: checks that stop, protocol, tables."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from graphs import edge_list

import hetero_bfs as hb

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import cpu_contestants as contestants
import cpu_peers as peers

GAP_OUTPUT = """\
Graph has 9 nodes and 10 undirected edges for degree: 1
Source:                    5
    i                0.00001
   td          3     0.00002
    e                0.00003
   bu          4     0.00004
   bu          1     0.00004
    c                0.00003
   td          0     0.00002
Trial Time:          0.00500
BFS Tree has 9 nodes and 20 edges
Verification:           PASS
Verification Time:   0.06795
Average Time:        0.00300
"""
GAP_LEVELS = np.array([0, 1, 1, 1, 2, 2, 2, 2, 3], np.int32)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Two components and isolated vertices at both ends of the ids."""
    rng = np.random.default_rng(7)
    pairs = [*rng.integers(1, 40, (60, 2)), (50, 51), (51, 52)]
    edges = edge_list(pairs, 60)
    path = tmp_path_factory.mktemp("case") / "small.sg"
    hb.io.write(edges, path)
    graph = hb.load(path)
    hub = int(graph.degree().argmax())
    return contestants.Case("small", path, graph, [hub, 51])


class Scripted(contestants.Contestant):
    """Takes as long as it is told."""

    name = "scripted"

    def __init__(self, seconds):
        self.seconds, self.searched = seconds, []

    def search(self, key):
        self.searched.append(key)
        return self.seconds, None

    def check(self, case, key, expected):
        return self.search(key)[0]


@pytest.mark.parametrize("name", sorted(set(contestants.PEERS) - {"gap"}))
def test_a_peer_finds_what_we_find_and_is_stopped_if_not(name, case):
    try:
        peer = contestants.PEERS[name](None)
    except ImportError as error:
        pytest.skip(str(error))
    peer.prepare(case)
    for key in case.keys:
        level = case.engine.bfs(key).level
        assert (level >= 0).sum() > 1
        assert (level < 0).sum() > 1
        assert peer.check(case, key, level) > 0
        for wrong_level in (-1, level.max() + 1):
            wrong = np.where(level == level.max(), wrong_level, level)
            with pytest.raises(SystemExit, match=r"is at level"):
                peer.check(case, key, wrong)


def test_parents_that_are_no_neighbours_stop(case):
    class Liar(contestants.OurCall):
        def parents(self, found, key):
            return np.where(found.parent >= 0, key, -1)

    liar = Liar()
    liar.prepare(case)
    with pytest.raises(SystemExit, match="small"):
        liar.check(case, case.keys[0], case.engine.bfs(case.keys[0]).level)


def test_what_gap_prints_is_read():
    assert contestants.gap_findings(GAP_OUTPUT) == (9, [1, 3, 4, 1], True)
    assert contestants.gap_seconds(GAP_OUTPUT + "Trial Time:   0.25\n", "Trial Time") == 0.25
    with pytest.raises(SystemExit, match="no Build Time"):
        contestants.gap_seconds(GAP_OUTPUT, "Build Time")


@pytest.mark.parametrize(
    ("was", "now"), [("PASS", "FAIL"), ("has 9 nodes", "has 8 nodes"), ("bu          1", "bu 2")]
)
def test_gap_is_stopped_where_it_differs(was, now, case, monkeypatch, tmp_path):
    gap = contestants.GAP(tmp_path)
    gap.prepare(case)
    monkeypatch.setattr(contestants, "run_gap", lambda *_: GAP_OUTPUT)
    assert gap.check(case, 0, GAP_LEVELS) == 0.005
    monkeypatch.setattr(contestants, "run_gap", lambda *_: GAP_OUTPUT.replace(was, now))
    with pytest.raises(SystemExit, match="level sizes"):
        gap.check(case, 0, GAP_LEVELS)


def test_a_peer_that_is_not_there_is_left_out_with_a_remedy(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "igraph", None)
    opened = peers.open_peers(["igraph", "scipy", "gap"], None)
    assert [peer.name for peer in opened] == ["SciPy"]
    said = capsys.readouterr().err
    assert "pip install igraph" in said
    assert "--gap DIR" in said


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kron18", ("kron", 18)),
        ("uniform9", ("uniform", 9)),
        ("grid2048", ("grid", 2048)),
        ("grid0", None),
        ("kron", None),
        ("kron18.sg", None),
        ("data/grid3", None),
    ],
)
def test_names_of_graphs(name, expected):
    assert peers.generated(name) == expected


def test_a_grid_joins_each_vertex_to_those_beside_it():
    graph = hb.CSRGraph.from_edge_source(peers.make_edges("grid4"))
    assert graph.num_vertices == 16
    assert sorted(graph.degree()) == [2] * 4 + [3] * 8 + [4] * 4
    assert graph.neighbours(5).tolist() == [1, 4, 6, 9]


def test_everyone_comes_once_a_round_and_first_in_turn():
    rounds = [peers.rotated("abc", number) for number in range(6)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in rounds)
    assert [turn[0] for turn in rounds] == [*"abcabc"]


@pytest.mark.parametrize(("seconds", "searches"), [(0.0, 2), (5.0, 1)])
def test_only_a_long_search_is_timed_without_one_before(seconds, searches):
    contestant = Scripted(seconds)
    assert peers.take_turn(contestant, 3) == seconds
    assert contestant.searched == [3] * searches


def test_a_peer_over_the_budget_is_timed_once(case):
    quick, slow = Scripted(3.0), Scripted(5.0)
    over = peers.check(case, [quick, slow], budget=4.0)
    assert over == {slow}
    times = peers.compare(case, [quick, slow], over, rounds=3)
    assert {c: len(seconds) for c, seconds in times.items()} == {quick: 6, slow: 1}
    assert set(slow.searched) == set(case.keys[:1])


def test_we_have_no_budget(case):
    ours = contestants.OurCall()
    ours.prepare(case)
    assert peers.check(case, [ours], budget=0.0) == set()


def test_ratios_are_to_ours_of_the_same_graph_and_kind():
    table = pd.DataFrame(
        [
            ("a", "hetero_bfs", "search", 6, 1.0),
            ("a", "hetero_bfs", "call", 6, 2.0),
            ("a", "GAP", "search", 6, 3.0),
            ("a", "SciPy", "call", 1, 5.0),
            ("b", "hetero_bfs", "call", 6, 10.0),
            ("b", "SciPy", "call", 6, 5.0),
        ],
        columns=["graph", "contestant", "what", "measurements", "median_seconds"],
    ).assign(vertices=1, edges=2)
    rated = peers.with_ratios(table)
    assert rated.ratio_to_ours.tolist() == [1.0, 1.0, 3.0, 2.5, 1.0, 0.5]
    matrix = peers.as_matrix(rated).set_index("graph")
    assert matrix.loc["a", "SciPy call"] == "5000.000 ms (2.50x) *"
    assert matrix.loc["b", "SciPy call"] == "5000.000 ms (0.50x)"
    assert matrix.loc["b", "GAP search"] == "-"
