"""`hetero-bfs sssp`: what it writes, prints and refuses."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_runs import one_line, run

import hetero_bfs as hb
from hetero_bfs.algorithms.sssp import result
from hetero_bfs.errors import CheckOutcome
from hetero_bfs.graph.io.registry import write

INF = np.inf


@pytest.fixture
def graph(tmp_path):
    """0-1-2-3 with a detour, 5-6 apart, 4 alone."""
    path = tmp_path / "g.wel"
    path.write_text("# Nodes: 7\n0 1 4\n1 2 1\n0 2 2\n2 3 1.5\n5 6 9\n")
    return path


def test_sssp(graph, tmp_path, capsys):
    files = {name: tmp_path / f"{name}.npy" for name in ("out", "parents")}
    trace, report = tmp_path / "t.csv", tmp_path / "r.json"
    options = [f"--{k}={v}" for k, v in files.items()]
    assert run("sssp", graph, "--source", 0, *options, f"--trace={trace}", f"--json={report}") == 0
    text = capsys.readouterr().out
    assert "reached 4 of 7 vertices, the furthest at distance 3.5" in text
    assert ", valid" in text
    distance, parent = np.load(files["out"]), np.load(files["parents"])
    assert distance.tolist() == [0, 3, 2, 3.5, INF, INF, INF]
    assert parent.tolist() == [0, 2, 0, 2, -1, -1, -1]
    assert (distance.dtype, parent.dtype) == (np.float64, np.int64)
    data = json.loads(report.read_text())
    assert (data["source"], data["reached"], data["largest_distance"]) == (0, 4, 3.5)
    assert (data["num_vertices"], data["num_input_edges"], data["weights"]) == (7, 5, "float64")
    assert data["valid"] is True
    assert data["seconds"] > 0
    with trace.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == data["iterations"]
    assert sum(int(row["edges_scanned"]) for row in rows) == data["edges_scanned"]


@pytest.mark.parametrize("option", ["--out", "--parents"])
def test_a_suffix_of_no_format_ends_the_command_before_the_search(graph, tmp_path, capsys, option):
    assert run("sssp", graph, "--source", 0, option, tmp_path / "o.txt") == 1
    assert f"{option} {tmp_path / 'o.txt'}: its name must end in .npy" in capsys.readouterr().err
    assert not (tmp_path / "o.txt").exists()


def test_direction_and_json_on_standard_output(graph, capsys):
    assert run("sssp", graph, "--source", 2, "--directed", "--json", "-", "--device", "cpu") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["reached"], data["largest_distance"], data["device"]) == (2, 1.5, None)


@pytest.mark.parametrize(
    "extra", [["--order", "given"], ["--no-validate"], ["-v"], ["--threads=1"]]
)
def test_options(graph, tmp_path, capsys, extra):
    out = tmp_path / "d.npy"
    assert run("sssp", graph, "--source", 0, "--out", out, *extra) == 0
    assert np.load(out).tolist() == [0, 3, 2, 3.5, INF, INF, INF]
    text = capsys.readouterr().out
    assert ("valid" in text) == (extra != ["--no-validate"])
    assert ("starts at" in text) == (extra == ["-v"])


def test_on_a_device(graph, opencl_device, tmp_path, capsys):
    out = tmp_path / "d.npy"
    options = ["--source", 0, "--out", out, "--device", opencl_device.index, "-v"]
    assert run("sssp", graph, *options) == 0
    assert np.load(out).tolist() == [0, 3, 2, 3.5, INF, INF, INF]
    text = capsys.readouterr().out
    assert f"device {opencl_device.name}" in text
    assert "device full" in text


@pytest.mark.parametrize("ending", [".wsg", ".hbg", ".mtx", ".txt.gz"])
def test_every_format_that_holds_weights(tmp_path, capsys, ending):
    path = tmp_path / f"g{ending}"
    write(hb.CSRGraph.from_edges([0, 1, 0], [1, 2, 2], weights=[1, 2, 9]), path)
    assert run("sssp", path, "--source", 0, "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["largest_distance"] == 3


@pytest.mark.parametrize(
    ("text", "source", "said"),
    [
        ("0 1 4\n", 9, "vertex 9 is not in the graph; its ids are 0 to 1"),
        ("0 1 4\n1 2 -3\n", 0, "edge (1, 2) has weight -3; shortest paths need weights of at"),
        ("0 1 4\n1 2\n", 0, "g.el:2: only two columns"),
        ("0 1 nan\n", 0, "g.el:1: "),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, capsys, text, source, said):
    path = tmp_path / "g.el"
    path.write_text(text)
    assert run("sssp", path, "--source", source) == 1
    assert said in one_line(capsys)


def test_a_file_without_weights(tmp_path, capsys):
    path = tmp_path / "g.sg"
    write(hb.CSRGraph.from_edges([0], [1]), path)
    assert run("sssp", path, "--source", 0) == 1
    assert "holds no weights" in one_line(capsys)


def test_a_wrong_result_is_a_failure(graph, monkeypatch, capsys):
    wrong = CheckOutcome(False, "source 0: check 3 fails")
    monkeypatch.setattr(result, "check_paths", lambda *_: wrong)
    assert run("sssp", graph, "--source", 0) == 1
    assert "check 3 fails" in one_line(capsys)


def test_a_vertex_without_edges_is_noted(graph, capsys):
    assert run("sssp", graph, "--source", 4) == 0
    captured = capsys.readouterr()
    assert "reached 1 of 7" in captured.out
    assert "note: no edge leads from vertex 4 to another" in captured.err
