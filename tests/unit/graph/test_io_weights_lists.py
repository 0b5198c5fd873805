"""Weights in .wsg and .hbg files, and `convert`."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from graph_file_checks import checksum, padded, put
from weighted_triples import error_of, triples

from hetero_bfs.cli import main as cli
from hetero_bfs.errors import ArgumentError, GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.io import registry as io

DTYPES = [np.int32, np.float32, np.float64]
Lists = list[list[tuple[int, int]]]
PATH: Lists = [[(1, 5)], [(0, 5), (2, -7)], [(1, -7)], []]


def serialized(directed: bool, lists: Lists, inverse: Lists | None = None) -> bytes:
    """Write GAP's .wsg by the letter of its writer.h and graph.h."""
    raw = struct.pack("<?qq", directed, sum(map(len, lists)), len(lists))
    for part in (lists, inverse) if inverse is not None else (lists,):
        offsets = np.cumsum([0, *map(len, part)])
        raw += struct.pack(f"<{len(offsets)}q", *offsets)
        raw += b"".join(struct.pack("<ii", v, w) for found in part for v, w in found)
    return raw


def test_wsg_to_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "g.WSG"
    io.write(CSRGraph.from_edges([0, 1], [1, 2], 4, weights=[5, -7]), path)
    assert path.read_bytes() == serialized(False, PATH)
    directed = CSRGraph.from_edges([0, 2], [1, 1], 3, directed=True, weights=[5, 6])
    io.write(directed, path)
    inverse: Lists = [[], [(0, 5), (2, 6)], []]
    assert path.read_bytes() == serialized(True, [[(1, 5)], [], [(1, 6)]], inverse)
    assert io.vertices_by_header(path) == 3
    assert triples(io.load(path, True, weighted=True)) == triples(directed)


def test_wsg_with_loops_duplicates_and_disorder(tmp_path: Path) -> None:
    """The smallest weight counts, as where GAP removes duplicates."""
    lists: Lists = [[(2, 8), (1, 4), (1, 3)], [(0, 3), (2, 6), (1, 1), (0, 9)], [(0, 8), (1, 6)]]
    path = put(tmp_path / "g.wsg", serialized(False, lists))
    expected = [(0, 1, 3), (0, 2, 8), (1, 0, 3), (1, 2, 6), (2, 0, 8), (2, 1, 6)]
    graph = io.load(path, weighted=True)
    assert triples(graph) == expected
    assert graph.num_input_edges == 5
    assert triples(io.load(path, True, weighted=True)) == expected
    lists[2] = [(0, 7), (1, 6)]
    damaged = put(path, serialized(False, lists))
    error_of(damaged, f"byte {17 + 32 + 4}: edge (0, 2) of an undirected graph has weight 8")
    assert io.load(damaged).num_input_edges == 5


def test_wsg_errors(tmp_path: Path) -> None:
    path, good = tmp_path / "g.wsg", serialized(False, PATH)
    error_of(put(path, b""), "0 bytes", "17")
    error_of(put(path, good[:-1]), f"ends at byte {len(good) - 1}", "truncated")
    error_of(put(path, good + b"x"), "too long")
    error_of(put(path, b"\2" + good[1:]), "byte 0", "no .wsg file")
    first = 17 + 8 * 5
    neighbour = good[: first + 16] + struct.pack("<i", 4) + good[first + 20 :]
    error_of(put(path, neighbour), f"byte {first + 16}: neighbour 4 is not below 4")
    weight = good[: first + 4] + struct.pack("<i", 6) + good[first + 8 :]
    error_of(put(path, weight), f"byte {first + 4}: edge (0, 1)", "has weight 6", "damaged")
    assert io.load(path).num_stored_edges == 4


def test_sg_has_no_weights(tmp_path: Path) -> None:
    io.write(CSRGraph.from_edges([0], [1]), tmp_path / "g.sg")
    error_of(
        tmp_path / "g.sg", ".sg holds no weights; give a .wsg file, or read it without weights"
    )


# Our .hbg


def version_2(graph: CSRGraph, entries: list[tuple[str, bytes, bytes]]) -> bytes:
    """A file with right checksums whose sections after the three are these."""
    sections = [
        ("indptr", b"<i8", graph.indptr.tobytes()),
        ("indices", b"<u4", graph.indices.tobytes()),
        ("input_degree", b"<u4", graph.input_degree.tobytes()),
        *entries,
    ]
    start = 64 + len(padded(bytes(48 * len(sections))))
    table, body = b"", b""
    for name, dtype, raw in sections:
        place = start + len(body), len(raw), checksum(raw)
        table += struct.pack("<16s8sQQQ", name.encode(), dtype, *place)
        body += padded(raw)
    sizes = graph.num_vertices, graph.num_stored_edges, graph.num_input_edges
    head = struct.pack("<8sIIQQQ", b"\x89HBG\r\n\x1a\n", 2, graph.directed, *sizes)
    head += struct.pack("<QI8s", 0, len(sections), bytes(8))
    return head + struct.pack("<I", zlib.crc32(head + padded(table))) + padded(table) + body


@pytest.mark.parametrize("dtype", DTYPES)
def test_hbg_to_the_letter(tmp_path: Path, dtype: type) -> None:
    graph = CSRGraph.from_edges([0, 1], [1, 2], 4, weights=np.array([5, -7], dtype))
    io.write(graph, tmp_path / "g.hbg")
    code = np.dtype(dtype).newbyteorder("<").str.encode()
    expected = version_2(graph, [("weights", code, graph.weights.tobytes())])
    assert (tmp_path / "g.hbg").read_bytes() == expected
    assert io.vertices_by_header(tmp_path / "g.hbg") == 4


def test_hbg_errors(tmp_path: Path) -> None:
    path, graph = tmp_path / "g.hbg", CSRGraph.from_edges([0, 1], [1, 2], 4)
    error_of(put(path, version_2(graph, [])), "byte 48: the file has no section weights")

    def section(values: list[float], code: str) -> tuple[str, bytes, bytes]:
        return "weights", code.encode(), np.array(values, code).tobytes()

    good = section([5, 5, 7, 7], "<i4")
    first = 256 + 3 * 64
    for wrong in (
        [section([5, 5, 7, 7], "<i8")],
        [section([5, 5, 7], "<f4")],
        [section([5, 5, 7, 7, 7], "<f8")],
        [("weights", b"", b"")],
        [good, good],
    ):
        put(path, version_2(graph, wrong))
        error_of(path, "header: byte 64: section weights is", "16 bytes of <f4 or 32 bytes of <f8")
        with pytest.raises(GraphFileError, match="section weights"):
            io.read(path)
    put(path, version_2(graph, [section([5, 5, np.nan, 7], "<f8")]))
    error_of(path, f"byte {first + 16}: a weight is NaN: the file is damaged")
    put(path, version_2(graph, [section([5, 5, 6, 7], "<f4")]))
    error_of(path, f"byte {first + 8}: edge (1, 2) of an undirected graph has weight 6")
    assert io.load(path).num_input_edges == 2
    raw = version_2(graph, [good])
    damaged = put(path, raw[:first] + b"\1" + raw[first + 1 :])
    error_of(damaged, f"section weights: bytes {first} to", "checksum")
    with pytest.raises(GraphFileError, match=r"section weights: .*checksum"):
        io.read(damaged)


# Writing


def test_endings_that_do_not_fit(tmp_path: Path) -> None:
    bare = CSRGraph.from_edges([0], [1])
    weighted = CSRGraph.from_edges([0], [1], weights=[2])
    with pytest.raises(GraphFileError, match=r"\.sg holds no weights; write \.wsg, \.hbg"):
        io.write(weighted, tmp_path / "g.sg")
    for suffix, other in ((".wel", ".el"), (".wsg", ".sg")):
        with pytest.raises(GraphFileError, match=rf"graph has none; write \{other}, or read"):
            io.write(bare, tmp_path / f"g{suffix}")
    assert os.listdir(tmp_path) == []
    with pytest.raises(ArgumentError, match="weighted"):
        io.read(tmp_path / "g.el", weighted="yes")


# The command line


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["o.el.gz", "o.wel", "o.mtx", "o.wsg", "o.hbg"])
def test_convert_keeps_weights(tmp_path: Path, name: str, directed: bool) -> None:
    source = put(tmp_path / "g.wel", "0 1 5\n1 2 -7\n2 1 3\n")
    flags = ["--directed"] * directed
    assert run("convert", source, tmp_path / name, "--weighted", *flags) == 0
    expected = io.load(source, directed, weighted=True)
    assert triples(io.load(tmp_path / name, directed, weighted=True)) == triples(expected)
    if name not in ("o.wel", "o.wsg"):
        assert run("convert", source, tmp_path / name, *flags) == 0
        assert io.load(tmp_path / name, directed).num_stored_edges == expected.num_stored_edges
        with pytest.raises(GraphFileError):
            io.load(tmp_path / name, directed, weighted=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["g.el", "o.sg", "--weighted"], "o.sg: .sg holds no weights; write .wsg, .hbg or .wel"),
        (["g.el", "o.wsg"], "write .sg, or read the graph with --weighted"),
        (["absent.el", "o.wel"], "o.wel: .wel holds weights"),
        (["g.el", "o.hbg", "--weighted"], "g.el:2: only two columns, '1 2'"),
        (["d.el", "o.wsg", "--weighted"], "o.wsg: the weights are float64"),
    ],
)
def test_convert_refuses(tmp_path, monkeypatch, capsys, arguments: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path("g.el"), "0 1 5\n1 2\n")
    put(Path("d.el"), "0 1 5.5\n")
    assert run("convert", *arguments) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert said in error
    assert sorted(os.listdir(tmp_path)) == ["d.el", "g.el"]
