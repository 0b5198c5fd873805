"""Graphs from tables of names, and graphs as frames, matrices and NetworkX graphs."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hetero_bfs as hb

ROWS = {"a": [0, 1, 3, 1], "b": [1, 2, 0, 2], "w": [2.5, 1.0, 4.0, 0.5]}


def same(one, other):
    for name in ("indptr", "indices", "input_degree", "weights"):
        given, wanted = getattr(one, name), getattr(other, name)
        assert (given is None) == (wanted is None)
        if given is not None:
            assert given.tolist() == wanted.tolist()
            assert given.dtype == wanted.dtype
    assert (one.directed, one.num_input_edges) == (other.directed, other.num_input_edges)


def test_missing_packages_are_named(monkeypatch):
    graph = hb.CSRGraph.from_edges([0], [1])
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(hb.ArgumentError, match="pip install networkx"):
        graph.to_networkx()


def graphs():
    random = np.random.default_rng(8)
    for directed in (False, True):
        for dtype in (None, np.int32, np.float32, np.float64):
            ends = random.integers(0, 30, (2, 60))
            weights = None if dtype is None else random.integers(0, 9, 60).astype(dtype)
            edges = hb.EdgeList(*ends, 32, directed, weights)
            # without loops and duplicates, which lists do not hold
            lists = hb.CSRGraph.from_edge_source(edges)
            degree, stored = np.diff(lists.indptr), lists.num_stored_edges
            count = stored if directed else stored // 2
            yield hb.CSRGraph(lists.indptr, lists.indices, directed, count, degree, lists.weights)
    yield hb.CSRGraph.from_edges(np.empty(0, int), np.empty(0, int), 3)
    yield hb.CSRGraph.from_edges(np.empty(0, int), np.empty(0, int), 0, weights=[])


def test_a_graph_goes_out_and_comes_back():
    for graph in graphs():
        weighted, directed = graph.weights is not None, graph.directed
        weight = "weight" if weighted else None
        matrix = graph.to_scipy()
        assert matrix.shape == (graph.num_vertices,) * 2
        assert matrix.indices.dtype == np.int32
        back = hb.CSRGraph.from_scipy(matrix, directed, weighted)
        assert back.indices.tolist() == graph.indices.tolist()
        assert (back.weights is None) == (not weighted)
        assert not weighted or back.weights.tolist() == graph.weights.tolist()
        frame = graph.to_pandas()
        assert list(frame) == ["source", "target", *(["weight"] if weighted else [])]
        n = graph.num_vertices
        same(hb.CSRGraph.from_pandas(frame, "source", "target", weight, n, directed), graph)
        network = graph.to_networkx()
        assert type(network) is (nx.DiGraph if directed else nx.Graph)
        assert list(network) == list(range(n))
        again = hb.CSRGraph.from_networkx(network, weight=weight)
        assert again.indices.tolist() == graph.indices.tolist()
        assert not weighted or again.weights.tolist() == graph.weights.tolist()


def test_names_of_columns_and_the_arrays_are_the_users():
    graph = hb.CSRGraph.from_edges([0, 1], [1, 2], weights=[2, 3])
    assert list(graph.to_pandas("u", "v", "cost")) == ["u", "v", "cost"]
    with pytest.raises(hb.ArgumentError, match="different names"):
        graph.to_pandas("u", "u")
    assert graph.to_networkx("cost").edges[0, 1] == {"cost": 2}
    matrix = graph.to_scipy()
    matrix.data[:] = 9  # the weights of the graph are its own
    assert graph.weights.tolist() == [2, 2, 3, 3]


def test_names_go_to_frames_and_networkx(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("source,target,weight\nbob,ada,2\ncy,bob,3\n")
    graph = hb.load(path, renumber=True, weighted=True)
    assert graph.to_pandas().values.tolist() == [["ada", "bob", 2], ["bob", "cy", 3]]
    network = graph.to_networkx()
    assert list(network.edges(data="weight")) == [("ada", "bob", 2), ("bob", "cy", 3)]
    with pytest.raises(hb.GraphError, match=r"'ada' is not .* is its position in graph\.names"):
        hb.bfs(graph, "ada")


NAMED = {"a": ["x", "y", "w", "y"], "b": ["y", "z", "x", "z"], "w": ROWS["w"]}
GAPS = {"a": [7, 2**40, -3, 2**40], "b": [2**40, 9, 7, 9], "w": ROWS["w"]}


def arrow_in_batches(rows):
    whole = pa.table(rows)
    return pa.concat_tables([whole.slice(0, 1), whole.slice(1, 2), whole.slice(3)])


DOORS = {
    "pandas": lambda rows, *given, **more: hb.CSRGraph.from_pandas(
        pd.DataFrame(rows), *given, **more
    ),
    "categories": lambda rows, *given, **more: hb.CSRGraph.from_pandas(
        pd.DataFrame(rows).astype({"a": "category"}), *given, **more
    ),
    "polars": lambda rows, *given, **more: hb.CSRGraph.from_arrow(
        pytest.importorskip("polars").DataFrame(rows), *given, **more
    ),
    "arrow": lambda rows, *given, **more: hb.CSRGraph.from_arrow(pa.table(rows), *given, **more),
    "batches": lambda rows, *given, **more: hb.CSRGraph.from_arrow(
        arrow_in_batches(rows), *given, **more
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("rows", [NAMED, GAPS], ids=["names", "gaps"])
@pytest.mark.parametrize("directed", [False, True])
def test_vertices_are_numbered_by_their_sorted_names(door, rows, directed):
    made = DOORS[door](rows, "a", "b", "w", directed=directed, duplicates="max", renumber=True)
    names = sorted({*rows["a"], *rows["b"]})
    assert made.names.tolist() == names
    src, dst = ([names.index(name) for name in rows[end]] for end in "ab")
    weights = np.array(ROWS["w"])
    same(made, hb.CSRGraph.from_edges(src, dst, len(names), directed, weights, "max"))
    result = hb.bfs(made, names.index(rows["a"][0]))
    assert result.names.tolist() == names


@pytest.mark.parametrize("door", DOORS)
def test_what_renumbering_refuses(door):
    with pytest.raises(hb.ArgumentError, match="num_vertices is 9, and renumber=True counts"):
        DOORS[door](NAMED, "a", "b", num_vertices=9, renumber=True)
    with pytest.raises(hb.ArgumentError, match="renumber is 1; give True or False"):
        DOORS[door](NAMED, "a", "b", renumber=1)
    with pytest.raises(hb.GraphError, match="column 'b' has 1 missing"):
        DOORS[door](NAMED | {"b": ["y", None, "x", "z"]}, "a", "b", renumber=True)
    with pytest.raises(hb.GraphError, match="column 'b' holds float64"):
        DOORS[door](NAMED | {"b": [1.0, 2.0, 3.0, 4.0]}, "a", "b", renumber=True)
