"""Formats of graph files: what each can hold is read back; files of other tools; pipes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import threading
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse
from checkout import TOP
from edge_pairs import pairs
from graph_file_checks import assert_same_lists, error_of, put
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from weighted_triples import triples

import hetero_bfs as hb
from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.io.formats import BY_SUFFIX, COMPRESSIONS, FORMATS

WRITABLE = [suffix for suffix, row in BY_SUFFIX.items() if row.writer is not None]
EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25)


# What is written is read back


@pytest.mark.parametrize("suffix", WRITABLE)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    edges=EDGES,
    directed=st.booleans(),
    isolated=st.integers(0, 2),
    weights=st.sampled_from([None, np.int32, np.float64]),
)
def test_every_format_holds_what_its_row_says(
    tmp_path: Path, suffix: str, edges: list, directed: bool, isolated: int, weights: type | None
) -> None:
    row, path = BY_SUFFIX[suffix], tmp_path / f"g{suffix}"
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    values = None if weights is None else (np.arange(src.size) % 5 + 1).astype(weights)
    if weights == np.float64:
        values = values / 3
    count = 10 + isolated if row.keeps_isolated else None
    graph = CSRGraph.from_edges(src, dst, count, directed, values)
    kinds = {"none": [None], "needed": [np.int32, np.float64]}.get(row.weights, [weights])
    wrong = weights not in kinds or (directed and not row.keeps_direction)
    wrong = wrong or (suffix in (".wsg", ".graph", ".metis") and weights == np.float64)
    if wrong:
        if src.size and (src != dst).any():
            with pytest.raises(GraphFileError, match=re.escape(str(path))):
                graph.save(path)
        return
    graph.save(path)
    back = io.load(path, directed, weighted=weights is not None)
    if row.keeps_isolated:
        assert_same_lists(back, graph)
    assert pairs(back) == pairs(graph)
    if weights is not None:
        assert back.weights.tolist() == graph.weights.tolist()
        assert not back.weights.size or back.weights.dtype == weights
    if row.size is not None:
        assert io.vertices_by_header(path) == graph.num_vertices


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("suffix", [".txt", ".csv", ".mtx", ".graph", ".col"])
def test_compressed_text(tmp_path: Path, suffix: str, compression: str) -> None:
    graph = CSRGraph.from_edges([0, 1, 1], [1, 2, 3])
    path = tmp_path / f"g{suffix}{compression}"
    graph.save(path)
    assert path.read_bytes().startswith(COMPRESSIONS[compression])
    assert_same_lists(io.load(path), graph)
    path.write_bytes(path.read_bytes()[:-6])
    error_of(path, "stop at byte", "truncated: fetch it again")
    path.write_bytes(b"0 1\n" * 9)
    error_of(path, "data before byte", f"take {compression} off its name")


def test_the_table_stands_in_the_documentation() -> None:
    text = (TOP / "docs/guide/file-formats.md").read_text()
    for row in FORMATS:
        names = ", ".join(f"`{suffix}`" for suffix in row.suffixes)
        holds = "reads" if row.writer is None else "reads and writes"
        weights = "none" if row.weights == "none" else row.weights_text
        direction = "yes" if row.keeps_direction else "no"
        isolated = "yes" if row.keeps_isolated else "no"
        isolated = "without names" if row.keeps_isolated and row.writes_names else isolated
        line = f"| {names} | {row.title} | {holds} | {weights} | {direction} | {isolated} |"
        assert line in text


# Files as other tools write them


def graph_of(path: Path, **options) -> CSRGraph:
    return io.load(path, **options)


def test_csv_of_pandas(tmp_path: Path) -> None:
    frame = pd.DataFrame({"from": [0, 1], "to": [1, 2], "weight": [2.5, 1.0], "note": ["a", "b"]})
    frame.to_csv(tmp_path / "g.csv", index=False)
    assert triples(io.read(tmp_path / "g.csv", weighted=True)) == [(0, 1, 2.5), (1, 2, 1.0)]
    frame.to_csv(tmp_path / "index.csv")
    assert pairs(io.read(tmp_path / "index.csv")) == [(0, 1), (1, 2)]
    frame.to_csv(tmp_path / "g.tsv", sep="\t", index=False)
    assert pairs(io.read(tmp_path / "g.tsv")) == [(0, 1), (1, 2)]
    frame.columns = ["a", "b", "c", "d"]
    frame.to_csv(tmp_path / "other.csv", index=False)
    error_of(tmp_path / "other.csv", "other.csv:1: 'a' is not a vertex id")
    for columns in (["b", "a", "c"], "b,a,c"):
        found = io.read(tmp_path / "other.csv", weighted=True, columns=columns)
        assert triples(found) == [(1, 0, 2.5), (2, 1, 1.0)]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("comma.csv", "source,target,weight\n0,1,2.5\n1,2,1\n", [(0, 1), (1, 2)]),
        ("ogb.csv", "0,1\n1,2\n", [(0, 1), (1, 2)]),
        ("header.tsv", "source\ttarget\n0\t1\n1\t2\n", [(0, 1), (1, 2)]),
        ("header_weight.txt", "from to weight\n0 1 2.5\n1 2 1\n", [(0, 1), (1, 2)]),
        ("semicolon.csv", "Source;Target\n0;1\n1;2\n", [(0, 1), (1, 2)]),
        ("quoted.csv", '"source","target"\n"0","1"\n"1","2"\n', [(0, 1), (1, 2)]),
        ("comments.csv", "# made by hand\n0,1\n% more\n1,2\n", [(0, 1), (1, 2)]),
        ("network.edges", "% comment\n0,1,5\n1,2,5\n", [(0, 1), (1, 2)]),
        ("r.csv", '"","u","v"\n"1",0,1\n"2",1,2\n', [(0, 1), (1, 2)]),
        ("only.csv", "source,target\n", []),
    ],
)
def test_tables_of_text(tmp_path: Path, name: str, text: str, expected: list) -> None:
    for ends in ("\n", "\r\n"):
        path = put(tmp_path / name, text.replace("\n", ends))
        assert pairs(io.read(path)) == expected


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n", {}, ":1: 'a' is not a vertex id; expected two integers, or renumber for names"),
        ("0,1\n2,x\n", {}, ":2: 'x' is not a vertex id"),
        ("# c\nsource,target\n0,1\n\n2,1.5\n", {}, ":5: '1.5' is not a vertex id"),
        ("0,1\n-1,2\n", {}, ":2: vertex id -1; ids start at 0"),
        ("0,1\n7,99999999999\n", {}, ":2: vertex id 99999999999 is above "),
        ("0,1\n2\n", {}, ":2: only one column, '2'"),
        ("0,1\n2,\n", {}, ":2: '' is not a vertex id"),
        ("0,1,2\n1,2,nan\n", {"weighted": True}, ":2: 'nan' is not a weight"),
        ("0,1\n", {"weighted": True}, ":1: only two columns"),
        ("a,\n", {"renumber": True}, ":1: 'a,' names fewer than two vertices"),
        ("source,target,x,y\n0,1,2,3\n", {"weighted": True}, ":1: which column has the weights"),
        ("source,target\n0,1\n", {"columns": ["source", "goal"]}, ":1: column 'goal' is not there"),
        ("", {}, ": holds no edges"),
        ("0,1\0\n", {}, ":1: holds binary data"),
        ("0,1\n" + "9" * 70_000, {}, ":2: holds binary data, a line of over 65536 bytes"),
    ],
)
def test_errors_of_tables(tmp_path: Path, text: str, options: dict, message: str) -> None:
    path = put(tmp_path / "g.csv", text)
    with pytest.raises(GraphFileError) as caught:
        io.read(path, **options)
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize("separator", [",", "\t", " "])
@pytest.mark.parametrize("count", [3, 50_000])
def test_carriage_returns_end_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str, count: int
) -> None:
    monkeypatch.setattr("hetero_bfs.graph.io.text_columns._BLOCK_BYTES", 100_000)
    rows = [f"{i % 100}{separator}{i % 90}\r" for i in range(count)]
    text = "".join([f"source{separator}target\r", rows[0], "# c\r", *rows[1:]])
    graph = io.read(put(tmp_path / "g.csv", text))
    assert graph.src.tolist() == [i % 100 for i in range(count)]
    assert graph.dst.tolist() == [i % 90 for i in range(count)]
    graph = io.read(put(tmp_path / "m.csv", f"1{separator}2\n{text[14:]}"))
    assert graph.num_input_edges == count + 1
    put(tmp_path / "m.csv", f"{text}x{separator}1\r")
    error_of(tmp_path / "m.csv", f"m.csv:{count + 3}: 'x' is not a vertex id")


@pytest.mark.parametrize("options", [{}, {"renumber": True}])
def test_a_long_line_does_not_end_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict
) -> None:
    monkeypatch.setattr("hetero_bfs.graph.io.text_columns._BLOCK_BYTES", 100_000)
    for length in (90_000, 250_000):
        path = put(tmp_path / "g.csv", "0,1\n" * 5000 + "3,4," + "9" * length + "\n5,6\n")
        with pytest.raises(GraphFileError, match=r"g.csv:5001: .* of over 65536 bytes"):
            io.read(path, **options)


def test_parquet_arrow_and_feather(tmp_path: Path) -> None:
    frame = pd.DataFrame({"k": ["x", "y"], "src": [0, 1], "dst": [1, 2], "w": [2, 1]})
    frame.to_parquet(tmp_path / "g.parquet")
    pa.feather.write_feather(frame, tmp_path / "g.feather")
    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_file(tmp_path / "g.arrow", table.schema) as writer:
        writer.write_table(table)
    for name in ("g.parquet", "g.feather", "g.arrow"):
        assert triples(io.read(tmp_path / name, weighted=True)) == [(0, 1, 2), (1, 2, 1)]
    named = io.read(tmp_path / "g.parquet", renumber=True, columns=["k", "dst"])
    assert named.names.tolist() == ["1", "2", "x", "y"]
    assert pairs(named) == [(2, 0), (3, 1)]
    error_of(put(tmp_path / "no.parquet", b"PAR1 or not"), "is not a file that pyarrow reads")
    error_of(put(tmp_path / "no.arrow", b"ARROW1 not"), "is not a file that pyarrow reads")
    with pytest.raises(GraphFileError, match=r"column 'k' holds .*vertex ids are integers"):
        io.read(tmp_path / "g.parquet", columns=["k", "dst"])


@pytest.mark.parametrize("renumber", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_files_of_a_folder_are_one_graph(
    tmp_path: Path, renumber: bool, weighted: bool
) -> None:
    """In any text format; ids or names are those of the whole graph."""
    random = np.random.default_rng(5)
    ends = random.choice([3, 5, 8, 13, 200, 4000], (40, 2))
    rows = [f"{u} {v} {w}" for (u, v), w in zip(ends, random.integers(1, 90, 40), strict=True)]
    whole = tmp_path / "whole.wel"
    whole.write_text("\n".join(rows) + "\n")
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.wel").write_text("\n".join(rows[:7]) + "\n")
    table = ["source,target,weight", *(row.replace(" ", ",") for row in rows[7:30])]
    (folder / "b.csv").write_text("\n".join(table) + "\n")
    with gzip.open(folder / "c.txt.gz", "wt") as stream:
        stream.write("\n".join(rows[30:]) + "\n")
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden").write_text("no edges")
    found, expected = (
        io.read(path, weighted=weighted, renumber=renumber) for path in (folder, whole)
    )
    assert isinstance(found, EdgeList)
    for name in ("src", "dst", "weights", "names"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None)
        if other is not None:
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    assert found.num_vertices == expected.num_vertices


def test_neighbour_lists_are_no_part(tmp_path: Path) -> None:
    (tmp_path / "a.el").write_text("0 1\n")
    hb.CSRGraph.from_edges([0], [1]).save(tmp_path / "b.sg")
    with pytest.raises(GraphFileError, match=r"b.sg: neighbour lists are no part"):
        io.read(tmp_path)


def test_networkx_writes_edge_lists(tmp_path: Path) -> None:
    graph = nx.karate_club_graph()
    nx.write_edgelist(graph, tmp_path / "g.edgelist")
    nx.write_weighted_edgelist(graph, tmp_path / "w.edgelist")
    expected = CSRGraph.from_networkx(graph, weight="weight")
    assert_same_lists(graph_of(tmp_path / "g.edgelist"), expected)
    back = graph_of(tmp_path / "w.edgelist", weighted=True)
    assert back.weights.tolist() == expected.weights.tolist()
    named = nx.relabel_nodes(graph, {i: f"member {i}" for i in graph})
    nx.write_edgelist(named, tmp_path / "n.tsv", delimiter="\t", data=False)
    back = graph_of(tmp_path / "n.tsv", renumber=True)
    assert back.names[:2].tolist() == ["member 0", "member 1"]
    assert nx.utils.edges_equal(
        named.edges, [(back.names[u], back.names[v]) for u, v in pairs(back) if u < v]
    )


def test_scipy_writes_matrices(tmp_path: Path) -> None:
    matrix = scipy.sparse.coo_array(([2.0, 3.0], ([0, 1], [1, 2])), (4, 4))
    scipy.sparse.save_npz(tmp_path / "g.npz", matrix)
    scipy.io.mmwrite(tmp_path / "dense.mtx", matrix.toarray())
    scipy.io.mmwrite(tmp_path / "sparse.mtx", matrix)
    for name in ("g.npz", "dense.mtx", "sparse.mtx"):
        back = graph_of(tmp_path / name, directed=True, weighted=True)
        assert (back.num_vertices, triples(back)) == (4, [(0, 1, 2.0), (1, 2, 3.0)])
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    error_of(tmp_path / "other.npz", "is not a sparse matrix of SciPy", "save_npz")
    error_of(put(tmp_path / "no.npz", b"PK\3\4 not"), "is not a sparse matrix of SciPy")
    scipy.sparse.save_npz(tmp_path / "wide.npz", scipy.sparse.coo_array((2, 3)))
    error_of(tmp_path / "wide.npz", "square")


def test_numpy_writes_columns(tmp_path: Path) -> None:
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    for array in (edges, edges.T, edges.astype(np.uint8)):
        np.save(tmp_path / "g.npy", array)
        assert pairs(io.read(tmp_path / "g.npy")) == [*map(tuple, edges.tolist())]
    np.save(tmp_path / "w.npy", np.column_stack([edges, [0.5, 1, 2, 3]]))
    assert triples(io.read(tmp_path / "w.npy", weighted=True))[0] == (0, 1, 0.5)
    np.save(tmp_path / "m.npy", np.eye(5))
    error_of(tmp_path / "m.npy", "has the shape (5, 5)", "scipy.sparse.save_npz")
    error_of(put(tmp_path / "no.npy", b"\x93NUMPY not"), "is not a NumPy array")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n", 3),
        ("%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n", 3),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n2 1\n3 2\n", 3),
        ("2 1\n3 2\n", 3),
        ("% c\n% c\n4 4 2\n2 1\n3 2\n", 4),
        ("4 4 2\n2 1\n3 2\n", 4),
        ("%%MatrixMarket matrix array integer symmetric\n3 3\n0\n1\n0\n0\n1\n0\n", 3),
        ("%%MatrixMarket matrix array real general\n3 3\n0\n1\n0\n0\n0\n1\n0\n0\n0\n", 3),
    ],
)
def test_odd_matrices(tmp_path: Path, text: str, expected: int) -> None:
    found = io.read(put(tmp_path / "g.mtx", text))
    assert (found.num_vertices, pairs(found)) == (expected, [(1, 0), (2, 1)])
    assert io.vertices_by_header(tmp_path / "g.mtx") in (expected, None)


def test_unsigned_integers_of_matrices(tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate unsigned-integer general\n2 2 1\n1 2 "
    path = put(tmp_path / "g.mtx", f"{head}18446744073709551615\n")
    assert triples(io.read(path, weighted=True)) == [(0, 1, float(2**64 - 1))]
    path = put(tmp_path / "g.mtx", f"{head}7\n")
    assert io.read(path, weighted=True).weights.dtype == np.int32


def test_dimacs(tmp_path: Path) -> None:
    text = "c 9th DIMACS\np sp 4 5\nc\na 1 2 803\na 2 1 803\na 2 3 158\na 3 4 1\na 1 4 2000\n"
    found = io.load(put(tmp_path / "usa.gr", text), weighted=True)
    assert triples(found)[:2] == [(0, 1, 803), (0, 3, 2000)]
    found = io.read(put(tmp_path / "m.col", "c colour\np edge 3 2\ne 1 2\ne 2 3\n"))
    assert pairs(found) == [(0, 1), (1, 2)]
    text = "c flow\np max 4 2\nn 1 s\nc x\nn 4 t\na 1 2 5\na 2 4 7\n"
    path = put(tmp_path / "f.max", text)
    assert triples(io.read(path, True, weighted=True)) == [(0, 1, 5), (1, 3, 7)]
    with pytest.raises(GraphFileError, match=r"unknown ending '\.max'"):
        found.save(tmp_path / "g.max")
    error_of(put(path, "p max 4 3\nn 1 s\nn 4 t\na 1 2 5\na 2 4 7\n"), "says 3 edges")


# METIS


def test_metis(tmp_path: Path) -> None:
    path = tmp_path / "g.graph"
    found = io.read(put(path, "% c\n4 2\n2 3\n1\n% c\n1\n\n"))
    assert (found.num_vertices, pairs(found)) == (4, [(0, 1), (0, 2)])
    assert pairs(io.read(put(path, "4 2\n2 3\n1\n1"))) == [(0, 1), (0, 2)]
    weighted = "3 2 1\n2 7\n1 7 3 4\n2 4\n"
    assert triples(io.read(put(path, weighted), weighted=True)) == [(0, 1, 7), (1, 2, 4)]
    assert len(pairs(io.read(path, directed=True))) == 4
    manual = "3 2 111 2\n1 5 5 2 7\n1 6 6 1 7 3 4\n1 8 8 2 4\n"
    assert triples(io.read(put(path, manual), weighted=True)) == [(0, 1, 7), (1, 2, 4)]
    assert io.read(put(path, "2 0\n\n\n")).num_vertices == 2
    graph = hb.kronecker(8)
    graph.save(path)
    assert_same_lists(io.load(path), graph)
    assert_same_lists(io.load(put(path, path.read_text().replace("\n", "\r\n"))), graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("% c\n4 3\n2 3\n1\n1\n\n", ":2: the first line says 3 edges, and the lists hold 2"),
        ("2 1\n2\n", ": the edge of vertices 1 and 2 is in the list of one end only"),
        ("2 1\n%\n3\n1\n", ":3: vertex id 3; ids are 1 to 2"),
        ("2 1\n0\n1\n", ":2: vertex id 0; ids are 1 to 2"),
        ("2 1\n2\n% c\nx\n", ":4: 'x' begins no integer"),
        ("2 1\n2\n1.5\n", ":3: '1.' begins no integer"),
        ("2 1 1\n2\n1 3\n", ":2: has 1 numbers; line 1 asks for 0 and then 2"),
        ("2 1 1\n2 3\n1 4\n", ": the edge of vertices 1 and 2 has two weights"),
        ("3 1\n2\n", ":1: the first line says 3 vertices, and 1 lines follow"),
        ("1 0\n\n2\n", ":1: the first line says 1 vertices, and 2 lines follow"),
        ("", ":1: '' comes where METIS has 'V E'"),
        ("2 1 7\n2\n1\n", ":1: '2 1 7' comes where METIS"),
    ],
)
def test_errors_of_metis(tmp_path: Path, text: str, message: str) -> None:
    path = put(tmp_path / "g.graph", text)
    with pytest.raises(GraphFileError) as caught:
        io.read(path, weighted=" 1 1\n" in text)
    assert str(caught.value).startswith(f"{path}{message}")


def test_metis_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hetero_bfs.graph.io.metis._BLOCK_BYTES", 64)
    graph = CSRGraph.from_edges(np.zeros(300, int), np.arange(1, 301))
    graph.save(tmp_path / "star.graph")
    assert_same_lists(io.load(tmp_path / "star.graph"), graph)


# Names


NAMED = [
    ("gaps.txt", "1000000 1000001\n1000001 1000002\n", [1000000, 1000001, 1000002]),
    ("named.txt", "a b\nb c\n", ["a", "b", "c"]),
    ("big.csv", "source,target\n18446744073709551615,5\n5,7\n", [5, 7, 2**64 - 1]),
    ("negative.csv", "-5,7\n", [-5, 7]),
    ("mixed.csv", "-5,18446744073709551615\n", ["-5", "18446744073709551615"]),
    ("some.txt", "1 x\nx 10\n", ["1", "10", "x"]),
    ("comma.csv", 'from,to\n"Smith, A",Jones\n', ["Jones", "Smith, A"]),
    ("comments.txt", "# c\na b # c\n% d\nb c\n", ["a", "b", "c"]),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 2\n", [1, 2, 3]),
    ("out.konect", "% sym unweighted\n% 1 3 3\n1 2\n", [1, 2, 3]),
    ("true.csv", "True,1.0\n1.5,NA\n", ["1.0", "1.5", "NA", "True"]),
]


@pytest.mark.parametrize(("name", "text", "names"), NAMED, ids=[row[0] for row in NAMED])
def test_names(tmp_path: Path, name: str, text: str, names: list | None) -> None:
    graph = io.load(put(tmp_path / name, text), renumber=True)
    assert names == (None if graph.names is None else graph.names.tolist())
    assert names is None or graph.num_vertices == len(names)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    ends=st.lists(
        st.tuples(*[st.text("ab1 ,\"'é", min_size=1).filter(lambda n: n == n.strip())] * 2),
        min_size=1,
        max_size=12,
    )
)
def test_any_names_round_trip(tmp_path: Path, ends: list[tuple[str, str]]) -> None:
    frame = pd.DataFrame(ends, columns=["source", "target"])
    frame.to_csv(tmp_path / "g.csv", index=False)
    graph = io.read(tmp_path / "g.csv", True, renumber=True)
    assert [(str(graph.names[u]), str(graph.names[v])) for u, v in pairs(graph)] == [
        tuple(str(int(n)) if graph.names.dtype.kind == "i" else n for n in pair) for pair in ends
    ]
    for name in ("b.csv", "b.parquet", "b.arrow"):
        graph.save(tmp_path / name)
        back = io.read(tmp_path / name, True, renumber=True)
        assert back.names.tolist() == graph.names.tolist()
        assert pairs(back) == pairs(graph)


def test_names_in_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers first, and names that are no numbers later."""
    monkeypatch.setattr("hetero_bfs.graph.io.text_columns._LINES_AT_ONCE", 3)
    text = "".join(f"{i},{i + 1}\n" for i in range(10)) + "x,0\n"
    graph = io.read(put(tmp_path / "g.csv", text), True, renumber=True)
    assert graph.names.tolist() == sorted([*map(str, range(11)), "x"])
    assert (graph.names[graph.src[-1]], graph.names[graph.dst[-1]]) == ("x", "0")


def test_ldbc_vertices_beside_edges(tmp_path: Path) -> None:
    edges = put(tmp_path / "g.e", "6 7\n7 9\n")
    assert io.read(edges).num_vertices == 10
    put(tmp_path / "g.v", "4\n6\n7\n9\n12\n")
    assert io.read(edges).num_vertices == 13
    graph = io.read(edges, renumber=True)
    assert graph.names.tolist() == [4, 6, 7, 9, 12]
    assert pairs(graph) == [(1, 2), (2, 3)]


def test_names_beside_edges(tmp_path: Path) -> None:
    edges = put(tmp_path / "g.e", "6 7\n7 9\n")
    put(tmp_path / "g.v", "NA\n6\n7\n9\n")
    assert io.read(edges, renumber=True).names.tolist() == ["6", "7", "9", "NA"]
    with pytest.raises(GraphFileError, match=r"g\.v: holds more than vertex ids.* renumber"):
        io.read(edges)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("6\n5000000000000\n", "g.v: vertex id 5000000000000 is above "),
        ("-1\n6\n", "g.v: vertex id -1; ids start at 0"),
        ("", "g.v: does not list vertices (No columns to parse from file)"),
    ],
)
def test_errors_of_vertices_beside_edges(tmp_path: Path, text: str, message: str) -> None:
    edges = put(tmp_path / "g.e", "6 7\n7 9\n")
    put(tmp_path / "g.v", text)
    with pytest.raises(GraphFileError, match=re.escape(message)):
        io.read(edges, renumber=text == "")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".hbg", ".txt", ".npy"])
def test_a_note_on_names_without_edges(tmp_path: Path, suffix: str) -> None:
    put(tmp_path / "g.v", "4\n6\n7\n9\n12\n")
    graph = io.load(put(tmp_path / "g.e", "6 7\n7 9\n"), renumber=True)
    expected = {
        **dict.fromkeys([".csv", ".parquet", ".arrow"], "2 vertices with names have no edges"),
        ".npy": "the last 1 vertices have no edges",
    }
    notes = io.write(graph, tmp_path / f"o{suffix}")
    assert len(notes) == (suffix in expected)
    assert all(expected[suffix] in note for note in notes)


@pytest.mark.parametrize("renumber", [False, True])
def test_columns_of_lists_are_refused(tmp_path: Path, renumber: bool) -> None:
    path = tmp_path / "g.parquet"
    pa.parquet.write_table(pa.table({"source": [[0], [1]], "target": [[1], [2]]}), path)
    with pytest.raises(GraphFileError, match=r"g\.parquet: "):
        io.read(path, renumber=renumber)


def test_a_note_on_gaps(tmp_path: Path) -> None:
    graph = io.read(put(tmp_path / "g.txt", "3 5\n"))
    assert "no edge names 4 of the 6 vertices; renumber" in io.gaps_note(graph)
    assert io.gaps_note(io.read(put(tmp_path / "g.txt", "0 1\n"))) is None
    note = io.write(CSRGraph.from_edges([0], [1], 5), tmp_path / "g.csv")
    assert note == [f"{tmp_path / 'g.csv'}: the last 3 vertices have no edges and are not in it"]


# Pipes and names that do not end in a suffix


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"0 1\n1 2\n", [(0, 1), (1, 2)]),
        (b"source,target\n0,1\n1,2\n", [(0, 1), (1, 2)]),
        (b"c x\np edge 3 2\ne 1 2\ne 2 3\n", [(0, 1), (1, 2)]),
        (b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", [(0, 1), (1, 2)]),
        (bz2.compress(b"0 1\n1 2\n"), [(0, 1), (1, 2)]),
        (lzma.compress(b"0 1\n1 2\n"), [(0, 1), (1, 2)]),
    ],
)
def test_pipes(tmp_path: Path, content: bytes, expected: list) -> None:
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    thread.start()
    assert pairs(io.read(tmp_path / "pipe")) == expected
    thread.join()


@pytest.mark.parametrize("suffix", [".hbg", ".parquet", ".npz", ".npy", ".graph"])
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    graph = CSRGraph.from_edges([0, 1], [1, 2])
    graph.save(tmp_path / f"g{suffix}")
    with open(tmp_path / f"g{suffix}") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        found = hb.load("-", format=suffix if suffix == ".graph" else None)
    assert found.indices.tolist() == [1, 0, 2, 1]


def test_a_format_by_name(tmp_path: Path) -> None:
    path = put(tmp_path / "g.data", "0,1\n1,2\n")
    assert pairs(io.read(path, format=".csv")) == [(0, 1), (1, 2)]
    assert pairs(io.read(path, format="csv")) == [(0, 1), (1, 2)]
    with pytest.raises(GraphFileError, match=r"unknown ending '.xyz'"):
        io.read(path, format=".xyz")
    error_of(Path("/dev/null"), "is neither a file nor a pipe")


def test_konect_names_and_sizes(tmp_path: Path) -> None:
    path = put(tmp_path / "out.moreno", "% bip unweighted\n% 3 2 2\n1 1\n1 2\n2 1\n")
    found = io.read(path)
    assert (found.num_vertices, pairs(found)) == (4, [(0, 2), (0, 3), (1, 2)])
    with pytest.raises(GraphFileError, match=r"without --renumber .*right ones from 2 on"):
        io.read(path, renumber=True)


# Damaged files


SOUND = CSRGraph.from_edges([0, 1, 3, 3, 2], [1, 3, 0, 5, 5], 7, weights=[3, 1, 4, 1, 5])
NEW = [".csv", ".graph", ".npz", ".npy", ".parquet", ".arrow", ".gr", ".mtx"]


@pytest.mark.parametrize("suffix", NEW)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_are_read_or_refused_in_a_line(tmp_path: Path, suffix: str, data) -> None:
    path = tmp_path / f"g{suffix}"
    SOUND.save(path)
    raw = path.read_bytes()
    start = data.draw(st.integers(0, len(raw)))
    length = data.draw(st.sampled_from([0, 1, 1, 4, 20, len(raw)]))
    words = [b"", b"\n", b"x", b"-1", b"9" * 25, b"1.5", b"nan", b",", b'"', b"%", b"\0", b"\xff"]
    put(path, raw[:start] + data.draw(st.sampled_from(words)) + raw[start + length :])
    for options in ({}, {"weighted": True}, {"renumber": True}):
        if "renumber" in options and suffix not in (".csv", ".npy", ".parquet", ".arrow"):
            continue
        message = str(path)
        try:
            io.read(path, **options)
        except GraphFileError as error:
            message = str(error)
        assert message.startswith(str(path))
        assert "\n" not in message
