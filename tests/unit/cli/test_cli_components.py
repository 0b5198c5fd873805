"""`hetero-bfs components`: what it writes, prints and refuses."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from cli_runs import one_line, run

from hetero_bfs.algorithms.components import result
from hetero_bfs.errors import CheckOutcome


@pytest.fixture
def graph(tmp_path):
    """2-1-0, 5-6, 3 and 4 alone."""
    path = tmp_path / "g.el"
    path.write_text("# Nodes: 7\n2 1\n1 0\n5 6\n4 4\n")
    return path


COMPONENT = [0, 0, 0, 3, 4, 5, 5]


def test_components(graph, tmp_path, capsys):
    out, trace, report = (tmp_path / name for name in ("c.npy", "t.csv", "r.json"))
    assert run("components", graph, f"--out={out}", f"--trace={trace}", f"--json={report}") == 0
    text = capsys.readouterr().out
    assert "4 components, the largest of 3 vertices; 2 isolated vertices" in text
    assert ", valid" in text
    component = np.load(out)
    assert component.tolist() == COMPONENT
    assert component.dtype == np.int64
    data = json.loads(report.read_text())
    assert (data["num_components"], data["largest"], data["isolated"]) == (4, 3, 2)
    assert (data["num_vertices"], data["num_input_edges"], data["valid"]) == (7, 4, True)
    assert re.fullmatch(
        r"cpu: no device is looked for: the model predicts [\d.e-]+ ms for 1 run on the CPU, and "
        r"[\d.e-]+ ms on a device after [\d.]+ ms to find and open it; name a device to use one",
        data["place_reason"],
    )
    assert min(data["seconds"], data["restore_seconds"]) > 0
    with trace.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == data["iterations"]
    assert sum(int(row["edges_scanned"]) for row in rows) == data["edges_scanned"]


@pytest.mark.parametrize(
    "extra",
    [["--order", "given"], ["--no-validate"], ["-v"], ["--threads=1"], ["--directed"]],
)
def test_options(graph, tmp_path, capsys, extra):
    out = tmp_path / "c.npy"
    assert run("components", graph, "--out", out, *extra) == 0
    assert np.load(out).tolist() == COMPONENT
    text = capsys.readouterr().out
    assert ("valid" in text) == (extra != ["--no-validate"])
    assert ("first neighbours" in text) == (extra == ["-v"])


def test_on_a_device(graph, opencl_device, tmp_path, capsys):
    out = tmp_path / "c.npy"
    assert run("components", graph, "--out", out, "--device", opencl_device.index, "-v") == 0
    assert np.load(out).tolist() == COMPONENT
    text = capsys.readouterr().out
    assert f"device {opencl_device.name}" in text
    assert "device all phases" in text


def test_a_graph_without_edges(tmp_path, capsys):
    path = tmp_path / "g.el"
    path.write_text("# Nodes: 3\n")
    assert run("components", path, "--json", "-") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["num_components"], data["largest"], data["isolated"]) == (3, 1, 3)
    assert data["device"] is None


def test_a_wrong_result_is_a_failure(graph, monkeypatch, capsys):
    wrong = CheckOutcome(False, "check 2 fails")
    monkeypatch.setattr(result, "check_components", lambda *_: wrong)
    assert run("components", graph) == 1
    assert "check 2 fails" in one_line(capsys)


def test_a_missing_file(tmp_path, capsys):
    assert run("components", tmp_path / "none.el") == 1
    assert "none.el" in one_line(capsys)
