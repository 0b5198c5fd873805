"""Graphs numbered layer by layer, and the command that writes them."""

from __future__ import annotations

import json
from itertools import pairwise
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from cli_runs import one_line, run
from graphs import SEARCHABLE_NAMES, nasty
from hypothesis import given
from hypothesis import strategies as st

import hetero_bfs as hb
from hetero_bfs.errors import ArgumentError, GraphError, GraphFileError
from hetero_bfs.graph.io.hbg import write_hbg
from hetero_bfs.graph.search_graph import as_given
from hetero_bfs.programs import renumbered
from hetero_bfs.programs.renumbered import BEGIN, END, TIMES, PlacedGraph, by_level, join_levels

PROGRAM = """
import numpy as np

import hetero_bfs as hb


class Levels(hb.Program):
    state = {"level": np.int32}
    combine = hb.minimum

    def initial(self, vertex, source):
        return 0 if vertex == source else 2147483647

    def message(self, state):
        return state.level + 1

    def apply(self, state, combined):
        return min(state.level, combined)
"""


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_layers_are_levels_of_a_search(name, directed):
    graph = hb.CSRGraph.from_edge_source(nasty(name, directed))
    root = graph.num_vertices // 3
    made = hb.layered(graph, root)
    peer = nx.DiGraph(graph.to_networkx()) if directed else graph.to_networkx()
    level = nx.single_source_shortest_path_length(peer, root)
    assert made.names[0] == root
    assert made.layers[-1] == len(level)
    found = np.searchsorted(made.layers, np.arange(len(level)), side="right")
    assert [level[v] for v in made.names[: len(level)].tolist()] == found.tolist()
    lengths = np.maximum(np.diff(made.indptr), np.diff(made.transpose.indptr))
    same = found[1:] == found[:-1]
    assert (lengths[1 : len(level)] <= lengths[: len(level) - 1])[same].all()
    assert nx.utils.graphs_equal(made.to_networkx(), graph.to_networkx())
    hb.CSRGraph(*(getattr(made, one) for one in ("indptr", "indices", "directed")),
                made.num_input_edges, made.input_degree)  # checks its rules  # fmt: skip


@pytest.mark.parametrize(("along", "depth"), [("out", 3), ("in", 1), ("both", 3)])
def test_kept_layers_serve_messages_along_edges_only(along, depth):
    made = hb.layered(hb.CSRGraph.from_edges([0, 1, 3], [1, 2, 1], directed=True), 0)
    graph = by_level(PlacedGraph(as_given(made)).along(along), 0, 0)
    ends = graph.levels[0][:, END].tolist()
    assert graph.levels[2] == depth
    assert ends == {"out": [1, 2, 3, 4], "in": [1, 4], "both": [1, 2, 4]}[along]


def test_wrong_arguments():
    graph = hb.CSRGraph.from_edges([0], [1])
    with pytest.raises(GraphError, match="vertex"):
        hb.layered(graph, 2)
    with pytest.raises(ArgumentError, match="a CSRGraph"):
        hb.layered("graph", 0)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=40),
    least=st.integers(1, 300),
)
def test_combined_lists(sizes, least):
    """Consecutive levels, none is lost; lists are full unless a level stays apart."""
    ends = np.cumsum([size for size, _ in sizes])
    begins = ends - [size for size, _ in sizes]
    heavy = begins + [is_heavy for _, is_heavy in sizes]
    zeros, ones = np.zeros_like(ends), np.ones_like(ends)
    levels = np.column_stack([begins, heavy, ends, zeros, ones])
    edges = 3 * np.array([size for size, _ in sizes])
    with mock.patch.object(renumbered, "_PART_EDGES", 30):
        joined = join_levels(levels, edges, least)
    assert joined[:, TIMES].sum() == len(sizes)
    assert joined[:, BEGIN].tolist() == [0, *joined[:-1, END]]
    assert joined[-1, END] == ends[-1]
    apart = (edges >= least) | ((edges >= 30) & (heavy > begins))
    firsts = np.append(np.searchsorted(begins, joined[:, BEGIN]), len(sizes))
    assert (np.diff(firsts) == joined[:, TIMES]).all()
    for first, after in pairwise(firsts):
        assert after - first == 1 or not apart[first:after].any()
        is_full = edges[first:after].sum() >= least
        assert after == len(sizes) or is_full or apart[first] or apart[after]


def test_a_file_of_other_layers(tmp_path):
    made = hb.layered(hb.CSRGraph.from_edges([0, 1], [1, 2]), 1)
    for wrong in ([3, 2], [0, 3], [1, 4], []):
        made.__dict__["layers"] = np.array(wrong, np.int64)
        path = tmp_path / "wrong.hbg"
        with path.open("wb") as handle:
            write_hbg(made, handle)
        with pytest.raises(GraphFileError, match=r"section layers holds .* write the file again"):
            hb.load(path)


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("source,target,weight\nada,bob,1\nada,cat,2\nbob,dan,3\nzoe,zed,1\n")
    return path


def test_the_command(tree, tmp_path, capsys):
    out, program = tmp_path / "tree.hbg", tmp_path / "levels.py"
    program.write_text(PROGRAM)
    options = ["--renumber", "--root", "bob", "--device", "cpu", "--json", "-"]
    assert run("layers", tree, *options, "--weighted", "--out", out) == 0
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    assert (data["depth"], data["layer_sizes"], data["unreached"]) == (2, [1, 2, 1], 2)
    assert (data["root"], data["launches"], data["device"]) == ("bob", None, None)
    plain = hb.load(tree, renumber=True, weighted=True)
    assert (
        hb.load(out, weighted=True).num_bytes < 1.4 * hb.CSRGraph.from_edge_source(plain).num_bytes
    )
    assert "depth 2: layers of 1 to 2 vertices, median 1; not reached: 2\n" in captured.err
    assert f"{out}: 6 vertices, 4 input edges, " in captured.err
    assert run("info", out) == 0
    assert "layers      3, for mode layered" in capsys.readouterr().out
    graph = hb.load(out, weighted=True)
    assert graph.names.tolist()[:2] == ["bob", "ada"]
    values = tmp_path / "levels.csv"
    given = ["--vertex", "source=bob", "--mode", "layered", "--out", values, "--json", "-"]
    assert run("run", program, out, *given) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 1
    assert sorted(values.read_text().splitlines()[1:5]) == ["ada,1", "bob,0", "cat,2", "dan,1"]


def test_launches_on_a_device(tree, opencl_device, capsys):
    options = ["--renumber", "--root", "bob", "--device", opencl_device.index, "--json", "-"]
    assert run("layers", tree, *options) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["device"], data["launches"]) == (opencl_device.name, 1 + 2)


def test_directed_layers_need_directed(tree, tmp_path, capsys):
    out, program = tmp_path / "tree.hbg", tmp_path / "levels.py"
    program.write_text(PROGRAM)
    assert run("layers", tree, "--renumber", "--root", "ada", "--directed", "--out", out) == 0
    given = ["run", program, out, "--vertex", "source=ada", "--mode", "layered"]
    assert run(*given, "--directed") == 0
    capsys.readouterr()
    assert run(*given) == 1
    assert "give a root by --root V, or --directed if" in capsys.readouterr().err


def test_other_formats_hold_no_layers(tree, tmp_path, capsys):
    options = ["--renumber", "--root", "bob", "--out", tmp_path / "tree.sg"]
    assert run("layers", tree, *options) == 1
    assert "holds no layers; only .hbg does" in one_line(capsys)
    program = tmp_path / "levels.py"
    program.write_text(PROGRAM)
    given = ["--renumber", "--vertex", "source=bob", "--mode", "layered"]
    assert run("run", program, tree, *given) == 1
    assert "give a root" in one_line(capsys)
