"""`hetero-bfs bfs` and `sssp` on simulated ranks, beside one process."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_runs import one_line, run
from simulated import run_commands_on_ranks

import hetero_bfs as hb
from hetero_bfs.cli import algorithms
from hetero_bfs.graph.io.registry import write


@pytest.fixture
def on_ranks(monkeypatch):
    run_commands_on_ranks(monkeypatch, 3, algorithms)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "k.hbg"
    write(hb.CSRGraph.from_edge_source(hb.kronecker(8, weighted=True)), path)
    return path


@pytest.mark.parametrize(
    ("command", "option", "what"),
    [("bfs", "--levels", "level"), ("sssp", "--out", "distance")],
)
def test_results_are_those_of_one_process(made, tmp_path, on_ranks, capsys, command, option, what):
    out, report = tmp_path / "o.npy", tmp_path / "r.json"
    asked = [command, made, "--source", 1, option, out, "--json", report, "--device", "cpu"]
    assert run(*asked) == 0
    assert ", valid" in capsys.readouterr().out
    expected = getattr(hb, command)(hb.load(made, weighted=command == "sssp"), 1)
    np.testing.assert_array_equal(np.load(out), getattr(expected, what))
    data = json.loads(report.read_text())
    assert (data["source"], data["reached"], data["device"]) == (1, expected.reached, None)


@pytest.mark.parametrize(
    "options",
    [
        ["--source", 9, "--source", 200],
        ["--depth-limit", 2, "--mask", "mask.txt"],
        ["--target", 60, "--source", 3, "--mask", "mask.txt", "--dtype", "int32"],
    ],
)
def test_limits_are_those_of_one_process(made, tmp_path, monkeypatch, capsys, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mask.txt").write_text("5\n17\n40\n41\n")

    def answer():
        asked = ["bfs", made, "--source", 1, *options, "--levels", "l.npy", "--json", "r.json"]
        assert run(*asked) == 0
        report = json.loads((tmp_path / "r.json").read_text())
        path = report["path"]
        same = {name: report[name] for name in ("source", "sources", "reached", "depth", "nedge")}
        assert ", valid" in capsys.readouterr().out
        return np.load("l.npy").tolist(), same, path and len(path)

    alone = answer()
    run_commands_on_ranks(monkeypatch, 3, algorithms)
    assert answer() == alone


@pytest.mark.parametrize(
    "options",
    [
        ["--mask", "absent.txt"],
        ["--mask", "mask.txt"],
        ["--mask", "words.txt"],
        ["--target", "999999"],
        ["--target", "Berlin"],
    ],
)
def test_wrong_limits_are_said_as_in_one_process(made, tmp_path, monkeypatch, capsys, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mask.txt").write_text("0\n1\n")
    (tmp_path / "words.txt").write_text("zero\n")
    said = []
    for ranks in (1, 3):
        with monkeypatch.context() as patch:
            if ranks > 1:
                run_commands_on_ranks(patch, 3, algorithms)
            status = run("bfs", made, "--source", 1, *options)
        said.append((status, one_line(capsys)))
    assert said[0] == said[1]


@pytest.mark.parametrize("suffix", [".txt", ".xyz"])
def test_a_format_is_that_of_one_process(tmp_path, monkeypatch, capsys, suffix):
    """A format that does not exist is refused, whatever the file's name ends in."""
    path = tmp_path / ("roads.txt" if suffix == ".xyz" else "roads.dat")
    path.write_text("0 1\n1 2\n")
    said = []
    for ranks in (1, 3):
        with monkeypatch.context() as patch:
            if ranks > 1:
                run_commands_on_ranks(patch, ranks, algorithms)
            status = run("bfs", path, "--source", 0, "--format", suffix)
        output = capsys.readouterr()
        shown = output.err.replace("rank 0: ", "") if status else output.out.splitlines()[0]
        said.append((status, shown))
    assert said[0] == said[1]
    assert said[0][0] == (suffix == ".xyz")


COMMANDS = {
    "bfs": ["--source", "Berlin", "--source", "Ulm", "--mask", "mask.txt", "--target", "Bonn"],
    "sssp": ["--source", "Berlin"],
    "components": [],
    "pagerank": ["--weighted", "--tol", "1e-12"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_names_and_columns_are_those_of_one_process(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = ["Berlin,9,Ulm,2", "Berlin,1,Mainz,4", "Mainz,3,Bonn,1", "Ulm,5,Bonn,7", "Jena,5,Gera,1"]
    (tmp_path / "roads.csv").write_text("\n".join(["a,n,b,w", *rows]) + "\n")
    (tmp_path / "mask.txt").write_text("Mainz\n")
    out = "--levels" if command == "bfs" else "--out"
    asked = [command, "roads.csv", "--renumber", *COMMANDS[command], out, "out.csv"]
    asked += ["--columns", "a,b,w", "--json", "r.json"]

    def answer():
        assert run(*asked) == 0
        report = json.loads((tmp_path / "r.json").read_text())
        lines = (tmp_path / "out.csv").read_text().splitlines()
        head, *values = [line.split(",") for line in lines]
        if command != "components":  # whose values are names
            values = [[name, pytest.approx(float(value))] for name, value in values]
        return head, values, [report.get(name) for name in ("source", "sources", "path", "reached")]

    alone = answer()
    run_commands_on_ranks(monkeypatch, 3, algorithms)
    assert answer() == alone


def test_settings_of_a_search_on_ranks(made, on_ranks, capsys):
    options = ["--selector", "alpha-beta", "--threads", 2, "--no-correction", "--dtype", "int32"]
    options += ["--device", "cpu"]
    assert run("bfs", made, "--source", 1, "-v", "--json", "-", *options) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert (data["selector"], data["model"]) == ("alpha-beta", None)
    assert len(data["strategies"]) >= data["depth"] > 1
    assert "selector alpha-beta, device none\nlevel " in captured.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--selector", "daga"], "--selector needs a single process"),
        (["--decision-interval", "2"], "--decision-interval needs a single process"),
        (["--order", "given"], "--order needs a single process"),
    ],
)
def test_what_ranks_refuse(made, on_ranks, capsys, options, words):
    assert run("bfs", made, "--source", 1, *options) == 1
    assert words in one_line(capsys)
