"""Our .hbg files: written to the letter, every damage found, and what it is named."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from graph_file_checks import assert_same, checksum, error_of, padded, put, small_graph

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.io import hbg
from hetero_bfs.graph.io import registry as io

MAGIC = b"\x89HBG\r\n\x1a\n"
TABLE = 256  # the first byte behind header and table of three sections


def sections_of(graph: CSRGraph) -> dict[str, bytes]:
    return {
        "indptr": graph.indptr.astype("<i8").tobytes(),
        "indices": graph.indices.astype("<u4").tobytes(),
        "input_degree": graph.input_degree.astype("<u4").tobytes(),
    }


def version_2(graph: CSRGraph, loops: int, **changes) -> bytes:
    """A whole file with right checksums; `changes` are header fields, sections and `table`."""
    sections = {**sections_of(graph), **changes.pop("sections", {})}
    dtypes = {"indptr": b"<i8", "indices": b"<u4", "input_degree": b"<u4", "weights": b"<f4"}
    names = changes.pop("table", list(sections))
    start = 64 + len(padded(bytes(48 * len(names))))
    table, body = b"", b""
    for name in names:
        raw = sections[name]
        place = start + len(body), len(raw), checksum(raw)
        table += struct.pack("<16s8sQQQ", name.encode(), dtypes[name], *place)
        body += padded(raw)
    table = padded(changes.pop("edit", lambda table: table)(table))
    header = {
        "version": 2,
        "flags": int(graph.directed),
        "vertices": graph.num_vertices,
        "stored": graph.num_stored_edges,
        "input": graph.num_input_edges,
        "loops": loops,
        "sections": len(names),
        "zeros": bytes(8),
    }
    head = struct.pack("<8sIIQQQQI8s", MAGIC, *(header | changes).values())
    return head + struct.pack("<I", zlib.crc32(head + table)) + table + body


def entry_edited(offset: int, value: bytes):
    return lambda table: table[:offset] + value + table[offset + len(value) :]


@pytest.mark.parametrize("directed", [False, True])
def test_written_to_the_letter(tmp_path: Path, directed: bool) -> None:
    graph = small_graph(directed)
    io.write(graph, tmp_path / "g.hbg")
    assert (tmp_path / "g.hbg").read_bytes() == version_2(graph, loops=1)


def test_empty_graphs(tmp_path: Path) -> None:
    for vertices in (0, 1, 5):
        graph = CSRGraph.from_edges([], [], vertices)
        io.write(graph, tmp_path / "g.hbg")
        assert (tmp_path / "g.hbg").read_bytes() == version_2(graph, loops=0)
        assert_same(io.load(tmp_path / "g.hbg"), graph)


def test_every_flipped_bit_is_refused_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "g.hbg"
    io.write(small_graph(), path)
    good = bytearray(path.read_bytes())
    ends = {"header": TABLE, "section indptr": TABLE + 64, "section indices": TABLE + 128}
    for byte in range(len(good)):
        place = next((p for p, end in ends.items() if byte < end), "section input_degree")
        for bit in range(8):
            good[byte] ^= 1 << bit
            error_of(put(path, bytes(good)), place)
            good[byte] ^= 1 << bit
    assert_same(io.load(put(path, bytes(good))), small_graph())


def test_every_other_length_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.hbg"
    io.write(small_graph(), path)
    good = path.read_bytes()
    for length in range(len(good)):
        error_of(put(path, good[:length]), f"ends at byte {length}", "truncated")
    error_of(put(path, good + b"x"), "too long")
    error_of(put(path, good + bytes(64)), "too long")


@pytest.mark.parametrize("swap", [8, 16])
def test_parts_that_changed_places_are_found(tmp_path: Path, swap: int) -> None:
    path = tmp_path / "g.hbg"
    io.write(CSRGraph.from_edges(range(40), range(1, 41)), path)
    good = path.read_bytes()
    parts = good[:TABLE], good[TABLE : TABLE + swap], good[TABLE + swap : TABLE + 2 * swap]
    error_of(put(path, parts[0] + parts[2] + parts[1] + good[TABLE + 2 * swap :]), "indptr")


def test_headers_that_make_no_sense(tmp_path: Path) -> None:
    """Their checksums are right: a faulty program wrote them, or a newer one."""
    path, graph = tmp_path / "g.hbg", small_graph()

    def refused(*parts: str, loops: int = 1, **changes) -> None:
        error_of(put(path, version_2(graph, loops, **changes)), "header", *parts)

    refused("byte 8", "version 3", "reads version 2", "update hetero_bfs", version=3)
    for version in (0, 1):
        refused("byte 8", f"version {version}", version=version)
    refused("byte 12", "flags 0x2", flags=2)
    refused(f"{2**64 - 1} vertices", vertices=2**64 - 1)
    refused("section indices", "36 bytes", stored=9)
    refused("byte 52", "reserved bytes", zeros=b"\0\1" + bytes(6))
    refused("byte 48", "17 sections", table=["indptr"] * 17)
    refused("byte 32", "6 input edges, 0 of them self-loops", "vertices are 10", loops=0)
    refused("byte 32", "7 input edges, 1 of them", input=7)
    refused("byte 32", f"{2**63 + 5} input edges", input=2**63 + 5, loops=2**63)
    refused("section indices is missing", table=["indptr", "input_degree"])
    refused("section indptr", table=["indptr", "indptr", "indices", "input_degree"])
    refused("section indptr", "'<f8'", edit=entry_edited(16, b"<f8"))
    refused("byte 112", "'indices' starts at byte 0", edit=entry_edited(48 + 24, bytes(8)))
    refused("'\\n' starts", "byte 64", edit=entry_edited(0, b"\n" + bytes(31)))


def test_a_table_without_sections(tmp_path: Path) -> None:
    raw = version_2(CSRGraph.from_edges([], [], 3), 0, table=[])
    error_of(put(tmp_path / "g.hbg", raw), "header: byte 48: 0 sections")


def test_a_section_of_another_name_is_checked_and_ignored(tmp_path: Path) -> None:
    graph = small_graph()
    weights = np.arange(graph.num_stored_edges, dtype="<f4").tobytes()
    names = ["indptr", "weights", "indices", "input_degree"]
    raw = version_2(graph, 1, sections={"weights": weights}, table=names)
    path = put(tmp_path / "g.hbg", raw)
    assert_same(io.load(path), graph)
    at = raw.index(weights)
    error_of(put(path, raw[:at] + b"\1" + raw[at + 1 :]), "section weights", "checksum")


def test_lists_are_checked_behind_right_checksums(tmp_path: Path) -> None:
    """Searches go wherever the numbers point."""
    path, graph = tmp_path / "g.hbg", CSRGraph.from_edges([0, 1, 2], [1, 2, 3], 4)

    def refused(name: str, at: int, value: int, *parts: str) -> None:
        array = np.frombuffer(sections_of(graph)[name], "<i8" if name == "indptr" else "<u4").copy()
        array[at] = value
        raw = version_2(graph, 0, sections={name: array.tobytes()})
        error_of(put(path, raw), *parts)

    refused("indptr", 1, 10**12, "byte 272", "offset 2 is 3", "rise from 0 to 6")
    refused("indptr", 1, -5, "byte 264", "offset 1 is -5")
    refused("indices", 1, 4_000_000_000, "byte 324", "neighbour 4000000000", "not below 4")
    refused("indices", 0, 0, "byte 320", "neighbour 0 of vertex 0", "leave out the vertex")
    refused("indices", 1, 2, "byte 328", "neighbour 2 of vertex 1", "lists must rise")
    refused("indices", 0, 2, "marked as undirected", "lacks its reverse")
    refused("input_degree", 1, 1, "byte 388", "1 input edges at vertex 1", "2 neighbours")
    refused("input_degree", 0, 2, "byte 32", "3 input edges", "ends at vertices are 7")


def test_a_graph_whose_counts_disagree_is_not_written(tmp_path: Path) -> None:
    good = small_graph()
    lists = good.indptr, good.indices, good.directed
    few = CSRGraph.trusted(*lists, 2, good.input_degree)
    odd = CSRGraph.trusted(*lists, good.num_input_edges, np.ones(7, np.uint32))
    for wrong in (few, odd):
        with pytest.raises(GraphError, match="num_input_edges is"):
            io.write(wrong, tmp_path / "g.hbg")
    assert os.listdir(tmp_path) == []


# Memory


def owner_of(array: np.ndarray):
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return array


def test_arrays_are_aligned_and_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    io.write(small_graph(), tmp_path / "g.hbg")
    for limit, mapped in ((hbg._MAPPED_FROM_BYTES, False), (0, True)):
        monkeypatch.setattr(hbg, "_MAPPED_FROM_BYTES", limit)
        graph = io.load(tmp_path / "g.hbg")
        assert_same(graph, small_graph())
        for array in (graph.indptr, graph.indices, graph.input_degree):
            assert type(array) is np.ndarray
            assert not array.flags.writeable
            assert array.ctypes.data % 64 == 0
            assert isinstance(owner_of(array), np.memmap) == mapped


def test_a_small_file_may_be_cut_while_in_use(tmp_path: Path) -> None:
    """Reading the mapping of a file that was cut ends the process."""
    path = tmp_path / "g.hbg"
    io.write(small_graph(), path)
    graph = io.load(path)
    os.truncate(path, 0)
    assert_same(graph, small_graph())


def test_a_mapped_file_that_is_cut_ends_the_process(tmp_path: Path) -> None:
    """As `read_hbg` and the guide to file formats say."""
    path = tmp_path / "g.hbg"
    io.write(small_graph(), path)
    code = (
        "import os, sys; from hetero_bfs.graph.io import hbg, registry as io\n"
        "hbg._MAPPED_FROM_BYTES = 0\n"
        "graph = io.load(sys.argv[1]); os.truncate(sys.argv[1], 0); graph.indices.sum()"
    )
    done = subprocess.run([sys.executable, "-c", code, path], timeout=100, check=False)
    assert done.returncode == -signal.SIGBUS


@pytest.mark.parametrize("limit", [0, 1 << 26])
def test_written_over_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(hbg, "_MAPPED_FROM_BYTES", limit)
    path = tmp_path / "g.hbg"
    io.write(small_graph(), path)
    loaded = io.load(path)
    io.write(loaded, path)
    assert_same(loaded, small_graph())
    assert_same(io.load(path), small_graph())


def test_directed_flag_against_the_request(tmp_path: Path) -> None:
    io.write(CSRGraph.from_edges([0, 0, 2], [1, 1, 2], 4), tmp_path / "u.hbg")
    both_ways = CSRGraph.from_edges([0, 0, 1, 1, 2], [1, 1, 0, 0, 2], 4, directed=True)
    assert_same(io.load(tmp_path / "u.hbg", directed=True), both_ways)
    io.write(CSRGraph.from_edges([0, 2], [1, 1], 4, directed=True), tmp_path / "d.hbg")
    assert_same(io.load(tmp_path / "d.hbg"), CSRGraph.from_edges([0, 2], [1, 1], 4))
