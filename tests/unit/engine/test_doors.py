"""One graph by every constructor, file format and interface is one graph, and has one answer."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from cli_runs import run

import hetero_bfs as hb
from tests.fuzz import doors
from tests.fuzz.door_cases import FLOATS, FORMS, INTEGERS, DoorCase
from tests.fuzz.door_graphs import DOORS

EDGES = {
    "plain": [(0, 1), (1, 2), (3, 2), (5, 4)],
    "loops": [(0, 1), (1, 1), (1, 2), (2, 3), (4, 4)],
    "duplicates": [(0, 1), (0, 1), (1, 2), (2, 1), (3, 0), (0, 1)],
    "both": [(0, 1), (1, 0), (2, 2), (2, 2), (1, 3), (1, 3), (4, 1)],
    "none": [],
}
WEIGHTS = [3, 0, 2, 1, 7, 5, 1]


def case_of(edges: str, weight_type: str = "int64", **settings: object) -> DoorCase:
    pairs = EDGES[edges]
    weights = [w / 4 if weight_type in FLOATS else w for w in WEIGHTS[: len(pairs)]]
    if weight_type == "bool":
        weights = [bool(w) for w in weights]
    return DoorCase(7, pairs, weights, weight_type, **settings)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("door", DOORS)
def test_every_constructor_and_format_gives_one_graph(door, tmp_path):
    flags = (False, True)
    compared = 0
    for edges, given, directed, weighted in itertools.product(EDGES, flags, flags, flags):
        case = case_of(edges, given_directed=given, directed=directed, weighted=weighted)
        made = DOORS[door](case, tmp_path)
        if made is not None:
            assert made[1].difference(made[0]) is None, case
            compared += 1
    assert compared >= 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize("weight_type", INTEGERS + FLOATS)
def test_every_type_and_form_of_arrays_is_taken(weight_type, tmp_path):
    for form, id_type in itertools.product(FORMS, ("int64", "uint32", "uint8")):
        case = case_of("both", weight_type, form=form, id_type=id_type)
        for name, door in DOORS.items():
            made = door(case, tmp_path)
            if made is not None:
                assert made[1].difference(made[0]) is None, (name, case)


@pytest.mark.parametrize("beyond", [2**31, 2**40, 2**63])
def test_integers_beyond_int32_become_float64_at_every_door(beyond, tmp_path):
    case = replace(case_of("plain", "uint64"), weights=[1, beyond, 3, 4])
    compared = 0
    for name, door in DOORS.items():
        made = door(case, tmp_path)
        if made is not None:
            assert made[1].weight_type == "float64"
            assert made[1].difference(made[0]) is None, name
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("kind", ["csgraph", "networkx", "engine", "commands"])
def test_every_interface_gives_one_answer(kind, tmp_path):
    flags = (False, True) if kind in ("csgraph", "networkx") else (True,)
    total = 0  # a graph of NetworkX cannot hold every case
    for edges, directed in itertools.product(("plain", "loops", "both"), (False, True)):
        for given in flags:
            case = case_of(edges, given_directed=given, directed=directed)
            wrong, tried = doors.trouble(kind, case, tmp_path)
            assert wrong is None, case
            total += tried
    assert total >= 6


def test_an_undirected_graph_read_as_directed_has_both_directions():
    for kind in (nx.Graph, nx.MultiGraph):
        graph = kind([("c", "b"), ("b", "a"), ("a", "a")])
        both = hb.CSRGraph.from_networkx(graph, directed=True)
        assert both.directed
        assert hb.bfs(both, 2).level.tolist() == [2, 1, 0]
        assert both.num_input_edges == graph.to_directed().number_of_edges() == 5


# SciPy's matrices are read as its csgraph reads them.


def test_duplicates_and_zeros_of_matrices():
    entries = ([1.0, 2.0, 0.0, 5.0], ([0, 0, 1, 2], [1, 1, 2, 3]))
    for kind in ("coo", "csr", "csc", "lil", "dok", "bsr", "dia"):
        matrix = sp.coo_array(entries, (4, 4)).asformat(kind)
        graph = hb.CSRGraph.from_scipy(matrix, directed=True, weighted=True)
        zeros = kind not in ("bsr", "dia")
        assert graph.weights.tolist() == ([3, 0, 5] if zeros else [3, 5]), kind
        assert hb.CSRGraph.from_scipy(matrix, directed=True).indices.tolist() == [1, 3]
    matrix = sp.coo_array(entries, (4, 4))
    least = hb.CSRGraph.from_scipy(matrix, True, True, duplicates="min")
    assert least.weights.tolist() == [1, 0, 5]
    twice = sp.csr_array(([4.0, 2.0], [1, 1], [0, 2, 2]), (2, 2))
    assert hb.CSRGraph.from_scipy(twice, True, True).weights.tolist() == [2]
    assert hb.CSRGraph.from_scipy(twice, True, True, "sum").weights.tolist() == [6]


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_matrices_with_entries_outside_are_refused(kind):
    for wrong in (-1, 3):
        matrix = kind(sp.coo_array(([1, 2], ([0, 1], [1, 2])), (3, 3)))
        (matrix.col if matrix.format == "coo" else matrix.indices)[0] = wrong
        with pytest.raises(hb.GraphError):
            hb.CSRGraph.from_scipy(matrix)
    matrix = sp.csr_array(([1, 2], [0, 1], [0, 1, 2]), (2, 2))
    matrix.indptr[1] = 9
    with pytest.raises(hb.GraphError):
        hb.CSRGraph.from_scipy(matrix)


# Messages go by the role of what is wrong, and name the remedy.

FRAME = {"source": [0, 1], "target": [1, 2], "w": [1, 2]}


@pytest.mark.parametrize(
    ("column", "values", "said", "remedy"),
    [
        ("source", [0.0, 1.0], "column 'source' holds float64, and vertex ids", '.astype("int64")'),
        ("target", [0.5, 1.0], "entry 0 is 0.5", '.astype("int64")'),
        ("source", [0.0, 2.0**60], "lost digits", "read them again as integers"),
        ("source", [True, False], "holds bool", '.astype("int64")'),
        ("source", ["u", "v"], "column 'source'", "renumber=True"),
        ("w", ["1", "2"], "column 'w' holds '1' of type str", '.astype("float64")'),
        ("w", [Decimal(1), Decimal(2)], "of type Decimal", '.astype("float64")'),
        ("w", pd.to_datetime(["2026-01-01", "2026-01-02"]), "datetime64", "times.min()"),
        ("w", pd.to_timedelta([1, 2], "s"), "timedelta64", 'numpy.timedelta64(1, "s")'),
    ],
)
@pytest.mark.parametrize("make", ["from_pandas", "from_arrow"])
def test_messages_name_the_column_and_the_remedy(make, column, values, said, remedy):
    frame = pd.DataFrame({**FRAME, column: values})
    table = pa.Table.from_pandas(frame) if make == "from_arrow" else frame
    if make == "from_arrow":
        remedy = remedy.replace("astype", "cast")
    with pytest.raises(hb.GraphError) as caught:
        getattr(hb.CSRGraph, make)(table, weight="w")
    text = str(caught.value)
    assert said in text
    assert remedy in text
    assert ("numbers the vertices" in text) == ("renumber" in remedy)


def test_messages_of_other_weights():
    with pytest.raises(hb.GraphError, match="edge attribute 'cost' holds 'x' of type str"):
        hb.CSRGraph.from_networkx(nx.Graph([(0, 1, {"cost": "x"})]), weight="cost")
    with pytest.raises(hb.GraphError, match="beyond float64"):
        hb.CSRGraph.from_edges([0], [1], weights=[10**400])
    huge = hb.CSRGraph.from_networkx(nx.Graph([(0, 1, {"w": 2**70})]), weight="w")
    assert huge.weights.tolist() == [2.0**70] * 2


def test_a_later_batch_beyond_int32_widens_all():
    parts = [pa.table({**FRAME, "w": pa.array([1, last])}) for last in (2, 2**40)]
    graph = hb.CSRGraph.from_arrow(pa.concat_tables(parts), weight="w")
    assert graph.weights.dtype == np.float64
    assert graph.weights.tolist() == [1, 1, 2, 2]


def test_an_engine_says_what_to_pickle_instead():
    with hb.Engine(hb.CSRGraph.from_edges([0], [1]), device="cpu", correction=False) as engine:
        with pytest.raises(TypeError, match="pickle the graph"):
            pickle.dumps(engine)
        assert pickle.loads(pickle.dumps(engine.bfs(0))).level.tolist() == [0, 1]


# Meaning that stands in a file.


def load(path: Path, text: str, **settings: bool) -> hb.CSRGraph:
    path.write_text(text)
    return hb.load(path, **settings)


def pairs(graph: hb.CSRGraph) -> list[tuple[int, int]]:
    return [
        pair for src, dst in graph.chunks() for pair in zip(src.tolist(), dst.tolist(), strict=True)
    ]


def test_a_bipartite_file_keeps_both_sides_apart(tmp_path):
    lines = "1 1\n1 2\n2 1\n"
    for head in ("% bip unweighted\n% 3 2 2\n", "% bip unweighted\n"):
        graph = load(tmp_path / "g.tsv", head + lines, directed=True)
        assert (graph.num_vertices, pairs(graph)) == (4, [(0, 2), (0, 3), (1, 2)])
    graph = load(tmp_path / "g.tsv", "% bip unweighted\n% 3 4 9\n" + lines, directed=True)
    assert (graph.num_vertices, pairs(graph)) == (13, [(0, 4), (0, 5), (1, 4)])


def test_sizes_and_first_id_of_konect(tmp_path):
    graph = load(tmp_path / "g.txt", "% asym posweighted\n% 2 5 5\n1 2 3\n2 5 4\n", weighted=True)
    assert (graph.num_vertices, pairs(graph)) == (5, [(0, 1), (1, 0), (1, 4), (4, 1)])
    assert graph.weights.tolist() == [3, 3, 4, 4]
    assert load(tmp_path / "g.txt", "% sym unweighted\n% 0 3 3\n").num_vertices == 3


def test_dimacs(tmp_path):
    text = "c road\nc\np sp 4 4\na 1 2 803\nc\n\na 2 3 158\na 3 1 1\na 1 2 7\n"
    graph = load(tmp_path / "g.gr", text, directed=True, weighted=True)
    assert (graph.num_vertices, pairs(graph)) == (4, [(0, 1), (1, 2), (2, 0)])
    assert graph.weights.tolist() == [7, 158, 1]
    for head in ("p edge 3 2", "p col 3 4"):
        graph = load(tmp_path / "g.col", f"{head}\ne 1 2\n e\t2 3 # a line read one by one\n")
        assert (graph.num_vertices, graph.num_input_edges) == (3, 2)


@pytest.mark.parametrize("text", ["c d\nd p\n", "p c\nc d\n", "p d\n", "c d\nc p\n", "c\tp\n"])
def test_edges_of_names_that_begin_as_dimacs_lines(tmp_path, text):
    graph = load(tmp_path / "g.txt", text, renumber=True)
    wanted = [line.split()[:2] for line in text.splitlines()]
    assert list(graph.names) == sorted({name for ends in wanted for name in ends})
    assert graph.num_input_edges == len(wanted)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("g.tsv", "% bip unweighted\n% 1 2 2\n1 3\n", r"g.tsv:3: vertex id 3 is above 2"),
        ("g.tsv", "% bip unweighted\n% 1 2 1\n1 2\n", r"g.tsv:2: .*1 right vertices.* vertex 2"),
        ("g.tsv", "% sym unweighted\n% 2 2 2\n1 2\n", "g.tsv:2: the header says Edges: 2"),
        ("g.tsv", "% sym unweighted\n0 1\n", "g.tsv:2: vertex id 0; ids start at 1"),
        ("g.txt", "c a\np sp 2 1\na 1 2 3\n", r"g.txt:1: .* DIMACS .* \.gr"),
        ("g.el", "p edge 2 1\ne 1 2\n", r"g.el:1: .* DIMACS .* \.gr"),
        ("g.txt", "c a\n\nc\np max 2 1\na 1 2 3\n", r"g.txt:1: 'c a' begins a DIMACS file"),
        (
            "g.txt",
            "c d\ne f\n",
            r"g.txt:1: 'c d' is an edge .* names, which need renumber, or .* DIMACS",
        ),
        (
            "g.txt",
            "# a\np x\nc d\n",
            r"g.txt:2: 'p x' is an edge .* names, which need renumber, or .* DIMACS",
        ),
        ("g.gr", "p sp 2 1\na 1 3 1\n", "g.gr:2: vertex id 3 is above 2, the size on line 1"),
        ("g.gr", "p sp 2 2\na 1 2 1\n", "g.gr:1: the p line says 2 edges, but .* holds 1"),
        ("g.gr", "p sp 2 1\na 1 2\na 2 1\n", "g.gr:1: the p line says 1 edges, but .* holds 2"),
        ("g.gr", "p sp 2 1\n1 2 1\n", "g.gr:2: '1 2 1' is not an edge; expected 'a'"),
        ("g.gr", "p sp 2 1\na\n", "g.gr:2: 'a' is not an edge"),
        ("g.col", "0 1\n", "g.col:1: '0 1' comes where"),
        ("g.col", "", "g.col:1: '' comes where"),
    ],
)
def test_files_that_contradict_themselves(tmp_path, name, text, said):
    with pytest.raises(hb.GraphFileError, match=said):
        load(tmp_path / name, text)


@pytest.mark.parametrize(
    ("name", "text", "note"),
    [
        ("g.tsv", "% sym unweighted\n1 2\n", "KONECT's ids are 1-based: vertex 1 of the file is 0"),
        ("g.tsv", "% asym unweighted\n1 2\n", "give --directed"),
        ("g.tsv", "% bip unweighted\n% 1 5 1\n1 1\n", "its right ones from 5 on"),
        ("g.gr", "p sp 2 1\na 1 2 3\n", "DIMACS's ids are 1-based"),
        ("g.el", "0 1\n", None),
    ],
)
def test_a_note_tells_of_other_ids(tmp_path, capsys, name, text, note):
    path = tmp_path / name
    path.write_text(text)
    assert run("convert", path, tmp_path / "g.hbg") == 0
    said = capsys.readouterr().err
    assert (note in said) if note else "note" not in said


def test_pagerank_tells_of_loops(tmp_path, capsys):
    path = tmp_path / "g.el"
    for text, count in (("0 1\n1 1\n2 2\n", 2), ("0 1\n", 0)):
        path.write_text(text)
        assert run("pagerank", path, "--device", "cpu", "--json", "-") == 0
        captured = capsys.readouterr()
        assert f'"num_self_loops": {count}' in captured.out
        assert ("2 self-loops do not count" in captured.err) == bool(count)
