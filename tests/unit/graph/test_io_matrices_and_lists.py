"""Matrix Market files and serialized lists (.sg), to the letter and damaged."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
from edge_pairs import MTX, pairs, serialized
from graph_file_checks import assert_same, assert_same_lists, error_of, put, small_graph

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io


def test_matrix_market_under_another_name(tmp_path: Path) -> None:
    path = put(tmp_path / "g.txt", f"{MTX} pattern general\n2 2 1\n1 2\n")
    error_of(path, "g.txt:1", "rename it to end in .mtx")


# Matrix Market


@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz"])
@pytest.mark.parametrize(
    ("field", "value"),
    [("pattern", ""), ("real", " -1.5e3"), ("integer", " 0"), ("complex", " 1 2")],
)
def test_matrix_market_general(tmp_path: Path, name: str, field: str, value: str) -> None:
    text = f"{MTX} {field} general\r\n% c\r\n\r\n4 4 3\r\n1 2{value}\r\n4 1{value}\n 3 3{value}\n"
    edges = io.read(put(tmp_path / name, text), directed=True)
    assert isinstance(edges, EdgeList)
    assert pairs(edges) == [(0, 1), (3, 0), (2, 2)]
    assert (edges.num_vertices, edges.directed) == (4, True)


@pytest.mark.parametrize("symmetry", ["symmetric", "skew-symmetric", "Hermitian"])
def test_matrix_market_symmetric(tmp_path: Path, symmetry: str) -> None:
    path = put(tmp_path / "g.mtx", f"{MTX} real {symmetry}\n3 3 3\n2 1 5\n3 3 1\n3 2 4\n")
    undirected = io.read(path)
    assert pairs(undirected) == [(1, 0), (2, 2), (2, 1)]
    assert not undirected.directed
    directed = io.read(path, directed=True)
    assert sorted(pairs(directed)) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]
    assert directed.directed


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("", ["g.mtx:1", "first line is ''", "expected '%%MatrixMarket"]),
        ("1 2 x\n", ["g.mtx:1", "'1 2 x'", "rows columns entries"]),
        ("%%MatrixMarket matrix array real general\n2 2\n", ["g.mtx:2", "array", "SciPy"]),
        ("%%MatrixMarket matrix list real general\n2 2\n", ["g.mtx:1", "array", "coordinate"]),
        (f"{MTX} pattern general\n% c\n", ["g.mtx:3", "size line is ''"]),
        (f"{MTX} pattern general\n2\n", ["g.mtx:2", "'2'", "rows columns entries"]),
        (f"{MTX} pattern general\n2 2 -1\n", ["g.mtx:2", "'2 2 -1'"]),
        (f"{MTX} pattern general\n2 3 0\n", ["g.mtx:2", "2 x 3", "square"]),
        (f"{MTX} pattern general\n{10**15} {10**15} 0\n", ["g.mtx:2", "renumber"]),
        (f"{MTX} pattern general\n2 2 2\n1 2\n", ["g.mtx:2", "says 2 entries", "holds 1"]),
        (f"{MTX} pattern general\n2 2 1\n1 2\n2 1\n", ["g.mtx:2", "says 1 entries", "holds 2"]),
        (f"{MTX} pattern general\n%\n2 2 1\n0 1\n", ["g.mtx:4: vertex id 0; ids start at 1"]),
        (f"{MTX} pattern general\n2 2 1\n1 3\n", ["g.mtx:3: vertex id 3 is above 2", "line 2"]),
        (f"{MTX} pattern general\n2 2 1\n1 x\n", ["g.mtx:3: 'x' is not a vertex id"]),
        (f"{MTX} pattern general\n2 2 1\n1\n", ["g.mtx:3: only one column"]),
    ],
)
def test_matrix_market_errors(tmp_path: Path, body: str, parts: list[str]) -> None:
    error_of(put(tmp_path / "g.mtx", body), *parts)


def test_scipy_reads_what_we_write(tmp_path: Path) -> None:
    from scipy.io import mmread

    for directed in (False, True):
        graph = small_graph(directed)
        io.write(graph, tmp_path / "g.mtx")
        assert_same_lists(CSRGraph.from_scipy(mmread(tmp_path / "g.mtx"), directed), graph)


# GAP's .sg

PATH_LISTS = [[1], [0, 2], [1], []]


def test_sg_wraps_clean_lists(tmp_path: Path) -> None:
    graph = io.read(put(tmp_path / "g.sg", serialized(False, 4, PATH_LISTS)))
    assert isinstance(graph, CSRGraph)
    assert_same(graph, CSRGraph.from_edges([0, 1], [1, 2], 4))


def test_sg_is_written_to_the_letter(tmp_path: Path) -> None:
    io.write(CSRGraph.from_edges([0, 1], [1, 2], 4), tmp_path / "u.sg")
    assert (tmp_path / "u.sg").read_bytes() == serialized(False, 4, PATH_LISTS)
    io.write(CSRGraph.from_edges([0, 2], [1, 1], 3, directed=True), tmp_path / "d.sg")
    expected = serialized(True, 3, [[1], [], [1]], [[], [0, 2], []])
    assert (tmp_path / "d.sg").read_bytes() == expected


def test_sg_directed_flag_against_the_request(tmp_path: Path) -> None:
    path = put(tmp_path / "d.sg", serialized(True, 3, [[2, 1], [1], []], [[], [0, 1], [0]]))
    assert_same(io.load(path, True), CSRGraph.from_edges([0, 0, 1], [1, 2, 1], 3, True))
    assert_same(io.load(path), CSRGraph.from_edges([0, 0, 1], [1, 2, 1], 3))
    path = put(tmp_path / "u.sg", serialized(False, 4, PATH_LISTS))
    both_ways = CSRGraph.from_edges([0, 1, 1, 2], [1, 0, 2, 1], 4, directed=True)
    assert_same(io.load(path, directed=True), both_ways)


def test_sg_with_loops_duplicates_and_disorder(tmp_path: Path) -> None:
    lists = [[2, 1, 1], [0, 1, 0], [0]]
    graph = io.load(put(tmp_path / "g.sg", serialized(False, 3, lists)))
    assert_same(graph, CSRGraph.from_edges([0, 0, 0, 1], [2, 1, 1, 1], 3))


def test_sg_errors(tmp_path: Path) -> None:
    path, good = tmp_path / "g.sg", serialized(False, 4, PATH_LISTS)
    error_of(put(path, b""), "0 bytes", "17")
    error_of(
        put(path, good[:-1]), f"ends at byte {len(good) - 1}", f"{len(good)} bytes", "truncated"
    )
    error_of(put(path, good + b"x"), f"ends at byte {len(good) + 1}", "too long")
    error_of(put(path, serialized(True, 4, PATH_LISTS)), "truncated")
    error_of(put(path, b"\x02" + good[1:]), "byte 0", "directed = 2")
    error_of(put(path, good[:9] + struct.pack("<q", -1) + good[17:]), "-1 vertices")
    bad = bytearray(good)
    bad[17 + 16 : 17 + 24] = struct.pack("<q", 0)
    error_of(put(path, bytes(bad)), f"byte {17 + 16}", "offset 2 is 0", "rise from 0 to 4")
    for value in (4, -1):
        bad = bytearray(good)
        bad[-8:-4] = struct.pack("<i", value)
        error_of(put(path, bytes(bad)), f"byte {len(good) - 8}: neighbour", "not below 4")
    cycle = serialized(False, 3, [[1], [2], [0]])
    error_of(put(path, cycle), "marked as undirected", "lacks its reverse")


def test_sg_refuses_ids_beyond_31_bits(tmp_path: Path) -> None:
    indptr = np.broadcast_to(np.int64(0), 2**31 + 2)
    huge = CSRGraph.trusted(indptr, np.empty(0, np.uint32), False, 0, np.empty(0, np.uint32))
    with pytest.raises(GraphFileError, match=r"2147483649 vertices; \.sg has 31-bit ids.*\.hbg"):
        io.write(huge, tmp_path / "g.sg")
    assert os.listdir(tmp_path) == []
