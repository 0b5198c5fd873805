"""benchmarks/cpu_peers.py and what it compares: checks that stop, protocol, tables."""

import os
import sys
import time

import numpy as np
import pandas as pd
import pytest
from checkout import TOP
from graphs import edge_list

import hetero_bfs as hb
from hetero_bfs.graph.io import registry as io

sys.path.append(str(TOP / "benchmarks"))

import cpu_contestants as contestants
import cpu_peers as peers
import libraries

VARIABLE = "GOMP_SPINCOUNT"
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
    io.write(edges, path)
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


@pytest.mark.parametrize("usual", [None, "7"])
def test_peers_load_without_our_spinning(monkeypatch, usual):
    seen = []
    monkeypatch.setattr(libraries, "ENVIRONMENT", {} if usual is None else {VARIABLE: usual})
    monkeypatch.setenv(VARIABLE, "20000")
    monkeypatch.setitem(
        contestants.PEERS, "scipy", lambda _: seen.append(os.environ.get(VARIABLE)) or Scripted(1.0)
    )
    peers.open_peers(["scipy"], None)
    assert seen == [usual]
    assert os.environ[VARIABLE] == "20000"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["kron18"], "neither a file nor a generated graph"),
        (["grid8", "grid8"], "same name"),
        (["kronecker99"], "not within"),
    ],
)
def test_graphs_that_are_none(names, words):
    with pytest.raises(SystemExit, match=words):
        peers.find_graphs(names)


@pytest.mark.parametrize("name", ["kronecker6", "uniform6", "grid8", "kronecker6-45-15-25"])
def test_gaps_converter_makes_what_it_can(name, monkeypatch, tmp_path):
    commands = []

    def convert(program, *arguments):
        commands.append([str(word) for word in arguments])
        io.write(graph.make(), arguments[-1])
        return "Build Time:   0.5"

    monkeypatch.setattr(peers, "run_gap", convert)
    (graph,) = peers.find_graphs([name])
    case, seconds = peers.make_case(graph, tmp_path, tmp_path, 2)
    assert case.graph.num_vertices == 64
    option = {"kronecker6": "-g", "uniform6": "-u"}.get(name)
    assert [words[:4] for words in commands] == [[option, "6", "-k", "16"]] * len(commands)
    assert seconds.get("GAP") == (None if option is None else [0.5] * len(commands))
    assert bool(commands) == (option is not None)


def test_everyone_comes_once_a_round_and_first_in_turn():
    rounds = [peers.rotated("abc", number) for number in range(6)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in rounds)
    assert [turn[0] for turn in rounds] == [*"abcabc"]


@pytest.mark.parametrize(("seconds", "searches"), [(0.0, 2), (5.0, 1)])
def test_only_a_long_search_is_timed_without_one_before(seconds, searches, monkeypatch):
    monkeypatch.setattr(peers, "UNTIMED_SECONDS", -1.0)
    contestant = Scripted(seconds)
    assert peers.take_turn(contestant, 3) == seconds
    assert contestant.searched == [3] * searches


def test_short_searches_are_repeated_until_the_clocks_are_up():
    contestant = Scripted(0.0)
    started = time.perf_counter()
    assert peers.take_turn(contestant, 3) == 0.0
    assert time.perf_counter() - started >= peers._PAUSE_SECONDS + peers.UNTIMED_SECONDS
    assert len(contestant.searched) > 2


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
