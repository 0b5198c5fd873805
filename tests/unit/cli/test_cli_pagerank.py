"""`hetero-bfs pagerank`: what it writes, prints and refuses."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_runs import one_line, run

import hetero_bfs as hb
from hetero_bfs.algorithms.pagerank import result
from hetero_bfs.algorithms.pagerank.check import PageRankCheck


@pytest.fixture
def graph(tmp_path):
    """A star around 1 with a tail, 5-6 apart, 7 alone."""
    path = tmp_path / "g.el"
    path.write_text("# Nodes: 8\n0 1\n1 2\n1 3\n3 4\n5 6\n")
    return path


def test_pagerank(graph, tmp_path, capsys):
    out, trace, report = (tmp_path / name for name in ("r.npy", "t.csv", "r.json"))
    options = [f"--out={out}", f"--trace={trace}", f"--json={report}", "--tol=1e-10"]
    assert run("pagerank", graph, *options) == 0
    text = capsys.readouterr().out
    assert "valid" in text
    rank, data = np.load(out), json.loads(report.read_text())
    assert (rank.dtype, rank.shape) == (np.float64, (8,))
    expected = hb.pagerank(hb.load(graph), tol=1e-12).rank
    np.testing.assert_allclose(rank, expected, atol=1e-8)
    highest = [entry["vertex"] for entry in data["highest"]]
    assert (highest[:2], set(highest[2:])) == ([1, 3], {4, 5, 6})
    assert data["highest"][0]["rank"] == rank[1]
    assert (data["num_vertices"], data["num_input_edges"]) == (8, 5)
    assert (data["alpha"], data["tol"], data["valid"]) == (0.85, 1e-10, True)
    assert data["converged"] is True
    assert data["change"] < 8e-10
    assert data["seconds"] > 0
    with trace.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == data["iterations"]
    assert {int(row["edges_scanned"]) for row in rows} == {10}


def test_direction_and_json_on_standard_output(graph, capsys):
    assert run("pagerank", graph, "--directed", "--json", "-", "--device", "cpu") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["highest"][0]["vertex"] == 4
    assert data["device"] is None


def test_not_converged_is_a_note(graph, capsys):
    assert run("pagerank", graph, "--max-iter", 2, "--tol", 1e-9, "--json", "-") == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert (data["converged"], data["iterations"], data["valid"]) == (False, 2, None)
    assert "note: not converged after 2 iterations, change " in captured.err
    assert "instead of 8e-09; give a larger --max-iter" in captured.err


@pytest.mark.parametrize(
    "extra", [["--order", "given"], ["--no-validate"], ["-v"], ["--threads=1"], ["--alpha=0.5"]]
)
def test_options(graph, capsys, extra):
    assert run("pagerank", graph, *extra) == 0
    text = capsys.readouterr().out
    assert (", valid" in text) == (extra != ["--no-validate"])
    assert ("edges" in text) == (extra == ["-v"])


def test_on_a_device(graph, opencl_device, capsys):
    assert run("pagerank", graph, "--device", opencl_device.index, "-v") == 0
    text = capsys.readouterr().out
    assert f"device {opencl_device.name}" in text
    assert "device power" in text


def test_weights(tmp_path, capsys):
    path = tmp_path / "g.wel"
    path.write_text("0 1 1\n0 2 3\n")
    assert run("pagerank", path, "--directed", "--weighted", "--json", "-") == 0
    high, low, _ = json.loads(capsys.readouterr().out)["highest"]
    assert (high["vertex"], low["vertex"]) == (2, 1)


def test_the_highest_have_their_names(tmp_path, capsys):
    path = tmp_path / "g.csv"
    path.write_text("source,target\nada,cy\nbob,cy\n")
    for extra, name in (([], "\n          cy "), (["--json", "-"], '"vertex": "cy"')):
        assert run("pagerank", path, "--renumber", *extra) == 0
        assert name in capsys.readouterr().out


def test_a_graph_without_vertices(tmp_path, capsys):
    path = tmp_path / "g.el"
    path.write_text("# Nodes: 0\n")
    assert run("pagerank", path, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["highest"] == []


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--alpha", "1"], "--alpha is 1.0; give a number between 0 and 1"),
        (["--tol", "nan"], "--tol is nan; give a finite number of at least 0"),
        (["--max-iter", "0"], "--max-iter is 0; give an integer from 1 to 1000000"),
        (["--max-iter", "2000000"], "--max-iter is 2000000; give an integer from 1 to 1000000"),
        (["--weighted"], "only two columns"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(graph, capsys, extra, said):
    assert run("pagerank", graph, *extra) == 1
    assert said in one_line(capsys)


@pytest.mark.parametrize("extra", [["--alpha", "x"], ["--max-iter", "1.5"], ["--tol"]])
def test_wrong_usage(graph, extra):
    assert run("pagerank", graph, *extra) == 2


def test_a_wrong_result_is_a_failure(graph, monkeypatch, capsys):
    wrong = PageRankCheck(False, "another step changes the ranks", 1.0)
    monkeypatch.setattr(result, "check_pagerank", lambda *_: wrong)
    assert run("pagerank", graph) == 1
    assert "another step changes the ranks" in one_line(capsys)
