"""Graph files of commands: names of vertices, values that are written, generated graphs."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from cli_runs import command, run

import hetero_bfs as hb
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.vertex_names import numbers_of

CPU = ["--device", "cpu", "--json", "-"]


def test_search_by_names(friends, tmp_path, capsys):
    out, levels = tmp_path / "parents.csv", tmp_path / "levels.parquet"
    options = ["--renumber", "--source", "ada", "--target", "cat", *CPU]
    assert run("bfs", friends, *options, "--out", out, "--levels", levels) == 0
    captured = capsys.readouterr()
    summary = json.loads(captured.out)
    assert (summary["source"], summary["path"]) == ("ada", ["ada", "bob", "cat"])
    assert "target cat: path ada bob cat" in captured.err
    assert out.read_text() == "vertex,parent\nada,ada\nbob,ada\ncat,bob\nzed,\nzoe,\n"
    frame = pd.read_parquet(levels)
    assert frame.vertex.tolist() == ["ada", "bob", "cat", "zed", "zoe"]
    assert frame.level.tolist() == [0, 1, 2, -1, -1]


@pytest.mark.parametrize("option", ["--out", "--levels"])
def test_a_missing_package_is_noticed_before_the_run(
    friends, tmp_path, capsys, monkeypatch, option
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = []
    monkeypatch.setattr("hetero_bfs.cli.algorithms.read_graph", lambda *given: ran.append(given))
    out = tmp_path / "o.parquet"
    assert run("bfs", friends, "--renumber", "--source", "ada", option, out) == 1
    assert "pip install pyarrow" in capsys.readouterr().err
    assert not ran


def test_other_algorithms_by_names(friends, tmp_path, capsys):
    out = tmp_path / "d.csv"
    assert run("sssp", friends, "--renumber", "--source", "bob", "--out", out, *CPU) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "bob"
    assert out.read_text().splitlines()[1:3] == ["ada,2.0", "bob,0.0"]
    assert run("components", friends, "--renumber", "--out", out, "--device", "cpu") == 0
    assert out.read_text().splitlines()[4:] == ["zed,zed", "zoe,zed"]
    npz = tmp_path / "r.npz"
    assert run("pagerank", friends, "--renumber", "--out", npz, "--device", "cpu") == 0
    with np.load(npz) as arrays:
        assert arrays["vertex"].tolist() == ["ada", "bob", "cat", "zed", "zoe"]
        assert arrays["rank"].sum() == pytest.approx(1)


def test_ids_with_gaps(tmp_path, capsys):
    path, out = tmp_path / "gaps.txt", tmp_path / "p.csv"
    path.write_text("1000000 1000001\n1000001 1000002\n")
    assert run("bfs", path, "--source", 1000000, *CPU) == 0
    assert "note: " in (error := capsys.readouterr().err)
    assert "no edge names 1000000 of the 1000003 vertices; --renumber" in error
    options = ["--renumber", "--source", 1000000, "--out", out]
    assert run("bfs", path, *options, *CPU) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["num_vertices"] == 3
    assert out.read_text() == "vertex,parent\n1000000,1000000\n1000001,1000000\n1000002,1000001\n"


def test_values_without_names(tmp_path, capsys):
    path, out = tmp_path / "g.txt", tmp_path / "p.csv"
    path.write_text("0 1\n2 3\n")
    assert run("bfs", path, "--source", 0, "--out", out, "--device", "cpu") == 0
    assert out.read_text() == "vertex,parent\n0,0\n1,0\n2,\n3,\n"


def test_hbg_keeps_names(friends, tmp_path, capsys):
    graph, mask = tmp_path / "f.hbg", tmp_path / "mask.txt"
    assert run("convert", friends, graph, "--renumber", "--weighted") == 0
    assert hb.load(graph).names.tolist() == ["ada", "bob", "cat", "zed", "zoe"]
    capsys.readouterr()
    assert run("bfs", graph, "--source", "zoe", *CPU) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "zoe"
    assert run("bfs", graph, "--source", "nobody", *CPU) == 1
    assert "no vertex is named 'nobody'; the graph has 5 names, such as ada" in (
        capsys.readouterr().err
    )
    graph.rename(tmp_path / "F.HBG")
    assert run("bfs", tmp_path / "F.HBG", "--source", "zoe", *CPU) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "zoe"
    mask.write_text("# closed\nzed\n")
    assert run("bfs", tmp_path / "F.HBG", "--source", "zoe", "--mask", mask, *CPU) == 0
    assert json.loads(capsys.readouterr().out)["reached"] == 1
    mask.write_text("nobody\n")
    assert run("bfs", tmp_path / "F.HBG", "--source", "zoe", "--mask", mask, *CPU) == 1
    assert "no vertex is named 'nobody'" in capsys.readouterr().err
    path = tmp_path / "numbers.txt"
    path.write_text("7 9\n9 11\n11 13\n")
    mask.write_text("9\n")
    options = ["--renumber", "--source", "11", "--mask", mask, *CPU]
    assert run("bfs", path, *options) == 0
    assert json.loads(capsys.readouterr().out)["reached"] == 2


def test_names_without_renumber(friends, capsys):
    assert run("bfs", friends, "--source", "ada", *CPU) == 2
    assert (
        "'ada' is not a vertex id; ids are 0 to 4294967293, others and names need --renumber"
        in capsys.readouterr().err
    )
    assert run("bfs", friends, "--source", "0", *CPU) == 1
    assert "friends.csv:2: 'ada' is not a vertex id; expected two integers, or --renumber" in (
        capsys.readouterr().err
    )


def test_standard_input(tmp_path):
    options = ["-", "--source", "b", "--renumber", "--columns", "2,1", "--json", "-"]
    done = command("bfs", *options, "--device", "cpu", input="x,a\ny,b\nx,b\n")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["graph"], summary["source"], summary["reached"]) == ("standard input", "b", 4)
    done = command(
        "convert", "-", str(tmp_path / "o.txt"), "--format", "metis", input="2 1\n2\n1\n"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o.txt").read_text().endswith("0\t1\n")


GENERATED = [
    (["kronecker", "--scale", "6", "--degree", "4"], 64, 256),
    (["kronecker", "--scale", "6", "--weighted", "--directed"], 64, 1024),
    (["rmat", "--scale", "5", "--a", "0.4", "--b", "0.3", "--c", "0.2", "--d", "0.1"], 32, 512),
    (["uniform", "--scale", "5", "--seed", "0"], 32, 512),
    (["bipartite", "--scale", "4", "--right-scale", "3", "--degree", "2"], 24, 32),
    (["grid", "--rows", "3", "--columns", "4"], 12, 17),
    (["grid", "--rows", "3"], 9, 12),
    (["smallworld", "--scale", "6", "--degree", "3", "--rewired", "0.1"], 64, 192),
    (["tails", "--scale", "6", "--chains", "2", "--length", "5"], 74, 1034),
]


@pytest.mark.parametrize(("options", "vertices", "edges"), GENERATED)
def test_generated_graphs(tmp_path, options, vertices, edges):
    path = tmp_path / "g.hbg"
    assert run("generate", options[0], path, *options[1:]) == 0
    graph = hb.load(path, "--directed" in options, "--weighted" in options)
    assert (graph.num_vertices, graph.num_input_edges) == (vertices, edges)
    assert (graph.weights is not None) == ("--weighted" in options)


def test_a_seed_makes_another_graph(tmp_path):
    for family in ("kronecker", "rmat", "uniform", "bipartite", "smallworld", "tails"):
        paths = [tmp_path / f"{family}{seed}.hbg" for seed in (1, 1, 5)]
        files = []
        for path, seed in zip(paths, (1, 1, 5), strict=True):
            assert run("generate", family, path, "--scale", "6", "--seed", seed) == 0
            files.append(path.read_bytes())
        assert files[0] == files[1] != files[2]


def test_a_zero_is_an_option_too(tmp_path, capsys):
    assert run("generate", "grid", tmp_path / "g.txt", "--seed", 0) == 2
    assert "--seed is not an option of grid" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "wanted", "numbers"),
    [
        (np.array([-4, 6, 9]), ["9", -4, "+6"], [2, 0, 1]),
        (np.array([6, 9, 2**64 - 1], np.uint64), [2**64 - 1, "6"], [2, 0]),
        (np.array(["a", "bc", "d"], object), ["d", "bc"], [2, 1]),
        (np.array(["d", "bc", "a"], object), ["d", "bc"], [0, 1]),
        (np.array([9, 6]), [6], [1]),
    ],
)
def test_numbers_of_names(names, wanted, numbers):
    assert numbers_of(names, wanted) == numbers
    for other in ("b", 7, 2**63, -(2**70), "zz"):
        with pytest.raises(GraphError, match="no vertex is named"):
            numbers_of(names, [other])
    with pytest.raises(GraphError, match="has 0 names"):
        numbers_of(names[:0], wanted)


def test_no_right_vertex_is_left(tmp_path):
    path = tmp_path / "b.npy"
    assert run("generate", "bipartite", path, "--scale", "3", "--right-scale", "5") == 0
    rows = np.load(path)
    assert rows[:, 0].max() == 7
    assert rows[:, 1].min() >= 8
    assert rows[:, 1].max() < 40
