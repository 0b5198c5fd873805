"""`hetero-bfs colour`: what it writes, prints and refuses."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_runs import one_line, run

from hetero_bfs.algorithms.colouring import result
from hetero_bfs.errors import CheckOutcome


@pytest.fixture
def graph(tmp_path):
    """A triangle 1-2-3 with a tail 3-0, 5-6 apart, 4 alone."""
    path = tmp_path / "g.txt"
    path.write_text("# Nodes: 7\n1 2\n2 3\n3 1\n3 0\n5 6\n")
    return path


COLOURS = [1, 1, 2, 0, 0, 0, 1]


def test_colour(graph, tmp_path, capsys):
    out, trace, report = (tmp_path / name for name in ("c.npy", "t.csv", "r.json"))
    assert run("colour", graph, f"--out={out}", f"--trace={trace}", f"--json={report}") == 0
    text = capsys.readouterr().out
    assert "3 colours for 7 vertices; largest classes 0: 3, 1: 3, 2: 1" in text
    assert ", valid" in text
    colour = np.load(out)
    assert colour.tolist() == COLOURS
    assert colour.dtype == np.int32
    data = json.loads(report.read_text())
    assert (data["num_colours"], data["num_vertices"], data["num_input_edges"]) == (3, 7, 5)
    assert data["largest_classes"] == {"0": 3, "1": 3, "2": 1}
    assert data["valid"] is True
    assert data["seconds"] > 0
    with trace.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == data["iterations"]
    assert sum(int(row["edges_scanned"]) for row in rows) == data["edges_scanned"]


@pytest.mark.parametrize(
    "extra",
    [["--order", "given"], ["--no-validate"], ["-v"], ["--threads=1", "--directed"]],
)
def test_options(graph, tmp_path, capsys, extra):
    out = tmp_path / "c.npy"
    assert run("colour", graph, "--out", out, *extra) == 0
    assert np.load(out).tolist() == COLOURS
    text = capsys.readouterr().out
    assert ("valid" in text) == (extra != ["--no-validate"])
    assert ("greedy" in text) == (extra == ["-v"])


def test_from_earlier_colours(graph, tmp_path, capsys):
    first, second, report = (tmp_path / name for name in ("1.npy", "2.npy", "r.json"))
    assert run("colour", graph, "--out", first) == 0
    with graph.open("a") as file:
        file.write("4 5\n")
    assert run("colour", graph, "--start", first, "--out", second, "--json", report) == 0
    assert np.load(second).tolist() == [1, 1, 2, 0, 1, 0, 1]
    assert json.loads(report.read_text())["start"] == str(first)
    capsys.readouterr()
    assert run("colour", graph, "--start", tmp_path / "none.npy") == 1
    assert "none.npy" in one_line(capsys)


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_earlier_colours_belong_to_names(tmp_path, suffix):
    path, first, second = tmp_path / "g.csv", tmp_path / f"1{suffix}", tmp_path / "2.csv"
    path.write_text("source,target\nbob,cat\ncat,dan\ndan,bob\ndan,eve\n")
    assert run("colour", path, "--renumber", "--out", first) == 0
    path.write_text(path.read_text() + "ann,eve\n")  # every number changes
    assert run("colour", path, "--renumber", "--start", first, "--out", second) == 0
    with second.open() as lines:
        found = {row["vertex"]: int(row["colour"]) for row in csv.DictReader(lines)}
    assert found == {"dan": 0, "bob": 1, "cat": 2, "eve": 1, "ann": 0}


def test_earlier_colours_without_names_do_not_suit_names(tmp_path, capsys):
    path, first = tmp_path / "g.csv", tmp_path / "1.npy"
    path.write_text("source,target\nbob,cat\n")
    assert run("colour", path, "--renumber", "--out", first) == 0
    capsys.readouterr()
    assert run("colour", path, "--renumber", "--start", first) == 1
    assert "has no column 'vertex'" in one_line(capsys)


def test_on_a_device(graph, opencl_device, tmp_path, capsys):
    out = tmp_path / "c.npy"
    assert run("colour", graph, "--out", out, "--device", opencl_device.index, "-v") == 0
    assert np.load(out).tolist() == COLOURS
    text = capsys.readouterr().out
    assert f"device {opencl_device.name}" in text
    assert "device rounds" in text


def test_json_on_standard_output(graph, capsys):
    assert run("colour", graph, "--json", "-", "--device", "cpu") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["device"] is None
    assert "3 colours" in captured.err


@pytest.mark.parametrize(
    ("text", "said"), [("# Nodes: 4\n", "1 colour for"), ("# Nodes: 0\n", "0 ")]
)
def test_graphs_without_edges(tmp_path, capsys, text, said):
    path, out, trace = tmp_path / "g.txt", tmp_path / "c.npy", tmp_path / "t.csv"
    path.write_text(text)
    assert run("colour", path, "--out", out, "--trace", trace) == 0
    assert not np.load(out).any()
    assert said in capsys.readouterr().out


def test_what_is_wrong_is_said_in_a_line(tmp_path, capsys):
    path = tmp_path / "g.el"
    path.write_text("0 x\n")
    assert run("colour", path) == 1
    assert "g.el:1" in one_line(capsys)
    assert run("colour", tmp_path / "none.el") == 1
    assert "none.el" in one_line(capsys)


def test_a_wrong_result_is_a_failure(graph, monkeypatch, capsys):
    wrong = CheckOutcome(False, "check 2 fails")
    monkeypatch.setattr(result, "check_colouring", lambda *_: wrong)
    assert run("colour", graph) == 1
    assert "check 2 fails" in one_line(capsys)
