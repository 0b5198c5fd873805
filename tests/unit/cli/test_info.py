"""`hetero-bfs info`: figures of small files, counted by hand."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from cli_runs import command, run

import hetero_bfs as hb

EDGES = "0 1\n1 0\n1 2\n2 2\n4 5\n0 1\n"


def info(capsys, path, *options):
    assert run("info", path, "--json", "-", *options) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_an_undirected_file(tmp_path, capsys):
    path = tmp_path / "g.el"
    path.write_text(EDGES)
    found, text = info(capsys, path)
    sizes = ("num_vertices", "num_isolated", "num_input_edges", "num_edges")
    assert [found[name] for name in sizes] == [6, 1, 6, 3]
    assert (found["num_self_loops"], found["num_duplicates"]) == (1, 2)
    assert found["out_degree"] == {"min": 0, "median": 1.0, "mean": 1.0, "max": 2}
    assert found["in_degree"] == found["out_degree"]
    assert (found["num_components"], found["largest_component"]) == (3, 3)
    assert (found["weights"], found["directed"]) == (None, False)
    assert (found["format"], found["file_bytes"]) == (".el", len(EDGES))
    graph = hb.load(path)
    arrays = (graph.indptr, graph.indices, graph.input_degree)
    assert found["memory_bytes"] == sum(array.nbytes for array in arrays)
    for line in ("vertices    6, 1 of them", "edges       3 undirected", "degree      min 0"):
        assert line in text


def test_a_directed_file_with_weights(tmp_path, capsys):
    path = tmp_path / "g.wel"
    path.write_text("0 1 2\n0 2 5\n0 1 -3\n3 0 1\n")
    found, text = info(capsys, path, "--directed")
    assert found["directed"]
    assert found["weights"] == {"dtype": "int32", "min": -3, "max": 5}
    assert found["out_degree"]["max"] == 2
    assert found["in_degree"] == {"min": 0, "median": 1.0, "mean": 0.75, "max": 1}
    assert (found["num_edges"], found["num_isolated"], found["num_components"]) == (3, 0, 1)
    assert "out-degree" in text
    assert "in-degree" in text
    assert "int32, -3 to 5" in text


@pytest.mark.parametrize("suffix", [".sg", ".hbg", ".mtx", ".el.gz"])
def test_the_format_does_not_matter(tmp_path, capsys, suffix):
    path = tmp_path / f"g.x{suffix}"
    hb.graph.io.registry.write(hb.CSRGraph.from_edges([0, 1, 3], [1, 2, 0]), path)
    found, _ = info(capsys, path)
    assert (found["num_vertices"], found["num_edges"], found["format"]) == (4, 3, suffix)


def test_names_and_standard_input(tmp_path, capsys):
    path = tmp_path / "g.data"
    path.write_text("a;b;7\nb;c;8\n")
    options = ["--renumber", "--format", ".csv", "--columns", "1,2,3"]
    found, _ = info(capsys, path, *options)
    assert (found["num_vertices"], found["num_edges"], found["format"]) == (3, 2, ".csv")
    assert found["weights"]["max"] == 8
    done = command("info", "-", "--json", "-", input=EDGES)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["graph"], found["format"]) == ("standard input", ".txt")
    assert (found["num_vertices"], found["file_bytes"]) == (6, len(EDGES))


@pytest.mark.parametrize("arguments", [["graph500"], ["study", "{folder}/study"]])
def test_standard_input_is_no_file_of_benchmarks(tmp_path, capsys, arguments):
    names = ["-"]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        names.append(tmp_path / "pipe")
    for name in names:
        given = [one.format(folder=tmp_path) for one in arguments]
        assert run(*given, "--graph", name, "--device", "cpu") == 1
        assert f"{name}: {given[0]} reads graph files alone" in capsys.readouterr().err


def test_text_alone_goes_to_standard_output(tmp_path, capsys):
    path = tmp_path / "g.el"
    path.write_text(EDGES)
    assert run("info", path) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{path}: .el, ")
    assert captured.err == ""


def test_empty_and_infinite(tmp_path, capsys):
    graph = hb.CSRGraph.from_edges(np.empty(0, int), np.empty(0, int), 0)
    hb.graph.io.registry.write(graph, tmp_path / "none.hbg")
    found, text = info(capsys, tmp_path / "none.hbg")
    assert (found["num_vertices"], found["out_degree"], found["num_components"]) == (0, None, 0)
    assert "no vertices" in text
    graph = hb.CSRGraph.from_edges([0], [1], weights=[np.inf])
    hb.graph.io.registry.write(graph, tmp_path / "far.hbg")
    assert info(capsys, tmp_path / "far.hbg")[0]["weights"]["max"] == "inf"


def test_errors_are_one_line(tmp_path, capsys):
    (tmp_path / "bad.el").write_text("0 x\n")
    for name in ("bad.el", "none.el", "g.xyz"):
        assert run("info", tmp_path / name) == 1
        assert capsys.readouterr().err.startswith("hetero-bfs: ")
    assert run("info") == 2
