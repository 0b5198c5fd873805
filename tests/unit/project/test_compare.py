"""benchmarks/compare.py: the table, its pairs of processes, turns, and what stops it."""

import itertools
import json
import sys

import numpy as np
import pytest
from checkout import TOP

sys.path.append(str(TOP / "benchmarks"))

import compare
import compare_worker
from tables import run_script

MADE_UP = """
from types import SimpleNamespace
import numpy as np

class Engine:
    upload_seconds, compile_seconds, notes, device_info = 0.0, 0.0, [], None

    def __init__(self, graph, **options):
        pass

    def bfs(self, source):
        open({log!r}, "a").write({name!r})
        print("not an answer")
        level = np.array([0, {level}, -1])
        return SimpleNamespace(
            level=level, seconds={seconds} * (1 + source), input_degree=np.array([1, 1, 0])
        )

    def bfs_back_to_back(self, sources):
        return [self.bfs(source) for source in sources]

    def close(self):
        pass

def load(path):
    if {refuses}:
        raise OSError("cannot read it")
    return path
"""


@pytest.fixture
def tiny(tmp_path):
    """A file of a little graph."""
    pairs = np.random.default_rng(4).integers(0, 200, (900, 2))
    np.savetxt(tmp_path / "tiny.txt", pairs, "%d")
    return tmp_path / "tiny.txt"


@pytest.fixture
def checkout(tmp_path):
    """Return a function that makes a package whose searches take the seconds that it says."""

    def make(name, seconds=0.001, level=1, refuses=False):
        folder = tmp_path / f"checkout-{name}" / "hetero_bfs"
        folder.mkdir(parents=True)
        log = str(tmp_path / "log")
        text = MADE_UP.format(name=name, seconds=seconds, level=level, refuses=refuses, log=log)
        (folder / "__init__.py").write_text(text)
        return folder.parent

    return make


def run(monkeypatch, *arguments) -> None:
    monkeypatch.setattr(sys, "argv", ["compare.py", *map(str, arguments)])
    run_script(compare.main)


def stopped(monkeypatch, *arguments) -> str:
    """Return the one line that the script ends with."""
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, *arguments)
    text = str(caught.value.code)
    assert text.startswith("compare.py: ")
    assert "\n" not in text
    return text


def test_a_checkout_beside_itself(tiny, tmp_path, monkeypatch, capsys):
    out = tmp_path / "rows.json"
    only = "tiny/search,tiny/build"
    command = [TOP, TOP, "--graph", tiny, "--only", only]
    command += ["--pairs", 2, "--rounds", 3, "--keys", 2]
    run(monkeypatch, *command, "--json", out)
    written = json.loads(out.read_text())
    rows = written["cases"]
    assert [row["case"] for row in rows] == only.split(",")
    for row in rows:
        assert [len(pair) for pair in row["ratios"]] == [3, 3]
        assert row["pair_ratios"] == [float(np.median(pair)) for pair in row["ratios"]]
        assert row["ratio"] == pytest.approx(np.mean(row["pair_ratios"]))
        assert min(row["old_seconds"], row["new_seconds"]) > 0
    shown = capsys.readouterr().out
    assert "| tiny/search |" in shown
    assert "- command: `python benchmarks/compare.py OLD NEW " in shown
    assert written["old"] == written["new"]
    assert f"- old: {written['old']}\n- new: {written['new']}\n" in shown


def test_sides_take_turns_and_the_ratio_is_new_over_old(tiny, checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "_PAUSE_SECONDS", 0.0)
    old, new = checkout("A", seconds=0.002), checkout("B", seconds=0.001)
    out = tmp_path / "rows.json"
    run(monkeypatch, old, new, "--graph", tiny, "--only", "tiny/search", "--json", out,
        "--pairs", 1, "--rounds", 8, "--keys", 9)  # fmt: skip
    (row,) = json.loads(out.read_text())["cases"]
    assert row["ratios"] == [[0.5] * 8]
    assert (row["ratio"], row["pair_ratios"]) == (0.5, [0.5])
    assert (row["old_seconds"], row["new_seconds"]) == (0.003, 0.0015)  # of keys 0 and 1
    turns = (tmp_path / "log").read_text()
    order = [turns[0]] + [b for a, b in itertools.pairwise(turns) if a != b]
    # The keys are A's. Levels and warming up by A and B, then eight rounds.
    assert "".join(order) == "ABAB" + "AB" + "AB" * 3 + "A"


def test_what_stops_it(tiny, checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "_PAUSE_SECONDS", 0.0)
    old = checkout("A")
    tail = ["--graph", tiny, "--only", "tiny/search", "--pairs", 1, "--rounds", 1]
    assert "it has no hetero_bfs/__init__.py" in stopped(monkeypatch, tmp_path, old, *tail)
    wrong = stopped(monkeypatch, old, checkout("B", level=2), *tail)
    assert "tiny/search: the two sides have different results" in wrong
    refused = stopped(monkeypatch, old, checkout("C", refuses=True), *tail)
    assert "OSError: cannot read it" in refused
    assert "checkout-C" in refused
    broken = checkout("D")
    (broken / "hetero_bfs" / "__init__.py").write_text("import os; os._exit(3)")
    assert "ended with status 3" in stopped(monkeypatch, old, broken, *tail)


def test_bad_arguments_are_refused_before_any_work(tiny, checkout, tmp_path, monkeypatch):
    sides = [checkout("A"), checkout("B")]
    missing = stopped(monkeypatch, *sides, "--graph", tmp_path / "none.txt")
    assert "there is no such file" in missing
    unknown = stopped(monkeypatch, *sides, "--graph", tiny, "--only", "moon")
    assert "--only moon" in unknown
    assert "tiny/search" in unknown
    assert "no folder" in stopped(monkeypatch, *sides, "--json", tmp_path / "no" / "rows.json")
    assert not (tmp_path / "log").exists()


def test_long_searches_share_the_keys_out_to_rounds(monkeypatch):
    class Side:
        def __init__(self):
            self.turns = []

        def ask(self, do, keys):
            self.turns.append(keys)
            return [0.04 * (1 + key) for key in keys]

    monkeypatch.setattr(compare, "_PAUSE_SECONDS", 0.0)
    sides = [Side(), Side()]
    old, new = compare.take_turns(sides, [0, 1, 0], 4)
    for side in sides:
        assert side.turns == [[0, 1, 0], [0, 1], [0, 0], [1, 0], [0, 1]]
    assert old.tolist() == new.tolist() == [[0.04, 0.08], [0.04, 0.04], [0.08, 0.04], [0.04, 0.08]]


def test_a_long_pair_stops_at_its_time_but_not_before_four_rounds(monkeypatch):
    class Slow:
        clock = 0.0

        def ask(self, do, keys):
            Slow.clock += 7.0
            return [1.0]

    monkeypatch.setattr(compare, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(compare.time, "perf_counter", lambda: Slow.clock)
    old, new = compare.take_turns([Slow(), Slow()], [1], 60)
    assert old.shape == new.shape == (4, 1)


def test_the_ratio_is_the_median_of_the_pairs():
    """The second pair has a slow process of the new side."""
    ones = np.ones((5, 2))
    row = compare.summarise("case", [(ones, ones), (ones, 3.0 * ones), (ones, 1.1 * ones)])
    assert row.pair_ratios == pytest.approx([1.0, 3.0, 1.1])
    assert row.ratio == pytest.approx(1.1)


def test_a_grid_has_every_edge():
    import hetero_bfs as hb

    graph = compare_worker.edges_of(hb, "grid3", in_memory=False)
    assert graph.neighbours(4).tolist() == [1, 3, 5, 7]
    assert graph.degree().tolist() == [2, 3, 2, 3, 4, 3, 2, 3, 2]
