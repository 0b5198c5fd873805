"""Graph files: what is read is what was written, and every bad file is named with its place."""

from __future__ import annotations

import gzip
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from edge_pairs import MTX, pairs
from graph_file_checks import assert_same, assert_same_lists, error_of, put, small_graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.io import text_columns
from hetero_bfs.graph.io.formats import Format

FORMATS = ["g.txt", "g.el", "g.tsv", "g.mtx", "g.sg", "g.hbg", "g.el.gz", "g.TXT.GZ", "g.mtx.gz"]


# Round trips


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_round_trip(tmp_path: Path, name: str, directed: bool) -> None:
    graph = small_graph(directed)
    io.write(graph, tmp_path / name)
    assert_same_lists(io.load(str(tmp_path / name), directed), graph)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", FORMATS)
def test_round_trip_without_edges(tmp_path: Path, name: str) -> None:
    graph = CSRGraph.from_edges([], [], 4)
    io.write(graph, tmp_path / name)
    assert_same(io.load(tmp_path / name), graph)


@pytest.mark.parametrize("name", ["g.el", "g.mtx"])
def test_text_keeps_loops_and_duplicates_of_an_edge_list(tmp_path: Path, name: str) -> None:
    edges = EdgeList.from_arrays([2, 2, 1, 1], [0, 0, 1, 2], 5, directed=True)
    io.write(edges, tmp_path / name)
    assert pairs(io.read(tmp_path / name, directed=True)) == [(2, 0), (2, 0), (1, 1), (1, 2)]


def test_undirected_edge_is_written_once(tmp_path: Path) -> None:
    for graph in (EdgeList.from_arrays([0, 1], [1, 2]), CSRGraph.from_edges([0, 1], [1, 2])):
        io.write(graph, tmp_path / "g.el")
        text = (tmp_path / "g.el").read_text()
        assert "# Nodes: 3 Edges: 2\n" in text
        assert text.endswith("\n0\t1\n1\t2\n")


def test_hbg_and_sg_build_an_edge_list_first(tmp_path: Path) -> None:
    edges = EdgeList.from_arrays([0, 1, 2], [1, 0, 2], 3)
    for name in ("g.hbg", "g.sg"):
        io.write(edges, tmp_path / name)
        assert_same_lists(io.load(tmp_path / name), CSRGraph.from_edge_source(edges))


EDGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40)


@pytest.mark.parametrize("name", ["g.hbg", "g.sg", "g.el", "g.mtx"])
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edges=EDGES, directed=st.booleans(), isolated=st.integers(0, 3))
def test_any_graph_round_trips(
    tmp_path: Path, name: str, edges: list[tuple[int, int]], directed: bool, isolated: int
) -> None:
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    graph = CSRGraph.from_edges(src, dst, 13 + isolated, directed)
    io.write(graph, tmp_path / name)
    back = io.load(tmp_path / name, directed)
    assert_same_lists(back, graph)
    if name == "g.hbg":
        assert_same(back, graph)
    if name in ("g.el", "g.mtx"):
        found_list = EdgeList.from_arrays(src, dst, 13 + isolated, directed)
        io.write(found_list, tmp_path / name)
        assert_same(io.load(tmp_path / name, directed), graph)


# Edge lists


@pytest.mark.parametrize("name", ["g.txt", "g.el", "g.wel", "g.tsv", "g.txt.gz"])
def test_comments_crlf_blank_lines_gaps_and_extra_columns(tmp_path: Path, name: str) -> None:
    text = "# a\r\n% b\r\n\r\n0\t1 7.5\r\n  4 2 \r\n\r\n# c\r\n1 1 # loop\r\n9 0 1 2 3"
    edges = io.read(put(tmp_path / name, text))
    assert isinstance(edges, EdgeList)
    assert pairs(edges) == [(0, 1), (4, 2), (1, 1), (9, 0)]
    assert (edges.num_vertices, edges.directed, edges.src.dtype) == (10, False, np.uint32)


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n2 3",
        "0 1\r\n\r\n2\t3\t\r\n",
        " 0  1 x 7\n\t\n2 3 # 4\n",
        "0 1#2\n  # 5 6\n2 3 %\n",
        "0 1 ü\n2 3\n",
        "0 1\r2 3\r",
        "0\v1\n+2 3\n",
    ],
)
def test_forms_of_lines(tmp_path: Path, text: str) -> None:
    assert pairs(io.read(put(tmp_path / "g.txt", text.encode()))) == [(0, 1), (2, 3)]


def test_percent_comment_between_edges_and_byte_order_mark(tmp_path: Path) -> None:
    edges = io.read(put(tmp_path / "g.txt", b"\xef\xbb\xbf# x\n0 1\n% y\n1 2 % z\n"), True)
    assert pairs(edges) == [(0, 1), (1, 2)]
    assert edges.directed
    assert pairs(io.read(put(tmp_path / "h.txt", b"\xef\xbb\xbf0 1\n%\n2 3\n"))) == [(0, 1), (2, 3)]
    for before in (b"\n", b"# x\n", b"# Nodes: 9\n\n"):  # only a file's first line may have one
        with pytest.raises(GraphFileError, match="is not a vertex id"):
            io.read(put(tmp_path / "i.txt", before + b"\xef\xbb\xbf0 1\n"))


def test_header_gives_isolated_vertices(tmp_path: Path) -> None:
    edges = io.read(put(tmp_path / "g.txt", "# Nodes: 8 Edges: 1\n0 1\n"))
    assert (edges.num_vertices, edges.num_input_edges) == (8, 1)
    edges = io.read(put(tmp_path / "g.txt", "# nodes: 3\n"))
    assert (edges.num_vertices, edges.num_input_edges) == (3, 0)


def test_more_lines_than_the_header_says_are_read(tmp_path: Path) -> None:
    """Some headers count an undirected edge once that the file lists in both directions."""
    edges = io.read(put(tmp_path / "g.txt", "# Nodes: 2 Edges: 1\n0 1\n1 0\n"))
    assert pairs(edges) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("size", [1, 5, 17])
def test_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(text_columns, "_BLOCK_BYTES", size)
    path = put(tmp_path / "g.txt", "".join(f"{i} {i + 1}\n" for i in range(10)))
    assert pairs(io.read(path)) == [(i, i + 1) for i in range(10)]
    error_of(put(path, path.read_bytes() + b"5 x\n"), ":11: 'x' is not a vertex id")


@pytest.mark.parametrize(
    "word", ["abc", "1.5", "1.0", "nan", "1e3", "True", "0x1", "1_0", '"1"', "1,2", "9" * 5000, "٣"]
)
@pytest.mark.parametrize("row", ["{} 1", "1 {}"])
def test_non_integer(tmp_path: Path, word: str, row: str) -> None:
    bad = row.format(word)
    path = put(tmp_path / "g.txt", f"# x\n0 1\n\n2 3\n{bad}\n")
    error_of(path, f"{path}:5: {word[:80]!r} is not a vertex id; expected two integers")
    path = put(tmp_path / "only.txt", f"{bad}\n")
    error_of(path, f"{path}:1: {word[:80]!r} is not a vertex id")


def test_one_column(tmp_path: Path) -> None:
    error_of(put(tmp_path / "g.txt", "0 1\n7\n"), "g.txt:2: only one column, '7'")


def test_negative_and_large_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.txt"
    error_of(put(path, "0 1\n2 -3\n"), "g.txt:2: vertex id -3; ids start at 0")
    plenty = SimpleNamespace(available=2**50)
    monkeypatch.setattr("psutil.virtual_memory", lambda: plenty)
    assert io.read(put(path, f"0 {2**32 - 3}\n")).num_vertices == 2**32 - 2
    remedy = "is above 4294967293, the 32-bit limit: renumber the vertices without gaps"
    for value in (2**32 - 2, 2**32 + 1, 2**63 + 5, 10**30):
        error_of(put(path, f"0 1\n{value} 1\n"), f"g.txt:2: vertex id {value} {remedy}")


def test_ids_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=400))
    path = tmp_path / "g.txt"
    assert io.read(put(path, "0 9\n")).num_vertices == 10
    parts = "40 bytes per vertex", "renumber the vertices without gaps"
    error_of(put(path, "0 9\n1 10\n"), "g.txt:2: vertex id 10 is above 9", *parts)
    parts = "11 vertices; at most 10, as much as", *parts
    error_of(put(path, "#\n# Nodes: 11 Edges: 1\n0 1\n"), "g.txt:2", *parts)
    error_of(put(tmp_path / "g.mtx", f"{MTX} pattern general\n11 11 0\n"), "g.mtx:2", *parts)


def test_header_counts_used_ids_only(tmp_path: Path) -> None:
    """SNAP's own files have gaps in their ids: V is a minimum."""
    edges = io.read(put(tmp_path / "g.txt", "# x\n# Nodes: 3 Edges: 2\n0 1\n1 5\n"))
    assert (edges.num_vertices, edges.num_input_edges) == (6, 2)
    edges = io.read(put(tmp_path / "g.txt", "# Nodes: 0 Edges: 1\n0 1\n"))
    assert edges.num_vertices == 2


def test_fewer_lines_than_the_header_says(tmp_path: Path) -> None:
    path = put(tmp_path / "g.txt", "# Nodes: 5 Edges: 3\n0 1\n2 4\n")
    error_of(path, "g.txt:1: the header says Edges: 3", "holds 2 edge lines", "truncated")


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments\n"])
@pytest.mark.parametrize("name", ["g.txt", "g.txt.gz"])
def test_empty_file(tmp_path: Path, name: str, text: str) -> None:
    error_of(put(tmp_path / name, text), "holds no edges", "'# Nodes: V Edges: 0'")


# Files that are not what their names say


def test_missing_directory_and_unreadable(tmp_path: Path) -> None:
    error_of(tmp_path / "none.txt", "no such file")
    error_of(tmp_path / "none.xyz", "no such file")
    for name in ("d.txt", "d.hbg", "d"):
        (tmp_path / name).mkdir()
        error_of(tmp_path / name, "the folder holds no files")
    error_of(tmp_path / ("x" * 300 + ".txt"), "cannot be read", "name too long")


@pytest.mark.parametrize("name", ["g", "g.xls", "g.txt.lz4", "g.sg.gz", "g.hbg.gz", "g.gz"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    parts = "unknown ending", ".txt, .el, .tsv", ".mtx, ", ".sg, .wsg, .hbg", ".gz, .bz2, .xz"
    error_of(put(tmp_path / name, "0 1\n"), *parts, ".wel")
    with pytest.raises(GraphFileError, match="unknown ending") as caught:
        io.write(small_graph(), tmp_path / name)
    assert all(part in str(caught.value) for part in parts)


@pytest.mark.parametrize("name", ["g.txt.gz", "g.mtx.gz"])
def test_truncated_and_corrupt_gzip(tmp_path: Path, name: str) -> None:
    source = np.random.default_rng(1).integers(0, 5000, (50_000, 2))
    io.write(EdgeList.from_arrays(*source.T, 5000), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    path = tmp_path / ("cut_" + name)
    for length in (12, len(whole) // 2, len(whole) - 4):
        path.write_bytes(whole[:length])
        error_of(path, f"stop at byte {length}", "truncated: fetch it again")
    middle = len(whole) // 2
    for damage in (whole[:middle] + b"\xff" * 500 + whole[middle + 500 :], whole[:-8] + bytes(8)):
        path.write_bytes(damage)
        error_of(path, "bad gzip data before byte", "fetch it again")
    path.write_bytes(b"0 1\n")
    error_of(path, "bad gzip data before byte", "take .gz off its name")


def test_binary_garbage(tmp_path: Path) -> None:
    garbage = np.random.default_rng(2).bytes(300_000)
    error_of(put(tmp_path / "g.txt", garbage), "g.txt:1: ", "is not a vertex id")
    error_of(put(tmp_path / "e.txt", b"\x7fELF\2\1\1\0" + garbage), "e.txt:1: ", "binary data")
    error_of(put(tmp_path / "l.txt", b"#" * 100_000), "l.txt:1: ", "line of over 65536 bytes")
    error_of(put(tmp_path / "g.mtx", garbage), "g.mtx:1: ", "%%MatrixMarket")
    error_of(put(tmp_path / "g.sg", garbage), "byte")
    error_of(put(tmp_path / "g.hbg", garbage), "byte 0", "not the mark of an .hbg file")
    later = put(tmp_path / "h.txt", b"0 1\n2\0 3\n" + garbage)
    error_of(later, "h.txt:2: ", "a zero byte from byte 4 on")
    error_of(put(tmp_path / "i.txt", b"\xfe\xed 1\n"), "i.txt:1: ", "is not a vertex id")


# Writing


@pytest.mark.parametrize("name", FORMATS)
def test_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).write_text("precious")

    def fail(graph: object, handle: object) -> None:
        handle.write(b"half")  # type: ignore[attr-defined]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Format, "function", lambda self, role: fail)
    with pytest.raises(GraphFileError, match="cannot be written: No space left") as caught:
        io.write(small_graph(), tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert (tmp_path / name).read_text() == "precious"
    assert os.listdir(tmp_path) == [name]


def test_write_into_nowhere(tmp_path: Path) -> None:
    with pytest.raises(GraphFileError, match=r"none/g\.el: cannot be written: No such file"):
        io.write(small_graph(), tmp_path / "none" / "g.el")
    (tmp_path / "d.el").mkdir()
    with pytest.raises(GraphFileError, match=re.escape("d.el: cannot be written")):
        io.write(small_graph(), tmp_path / "d.el")
    assert os.listdir(tmp_path) == ["d.el"]


def test_write_replaces_and_gzip_is_reproducible(tmp_path: Path) -> None:
    path = put(tmp_path / "g.el.gz", "old")
    io.write(small_graph(), path)
    first = path.read_bytes()
    io.write(small_graph(), path)
    assert path.read_bytes() == first
    assert gzip.decompress(first).startswith(b"# Undirected graph\n# Nodes: 7 Edges: 4\n")


def test_import_is_light() -> None:
    """The package's own __init__ is left out: it may import what it likes."""
    import subprocess

    code = f"""
import sys, types
package = types.ModuleType("hetero_bfs")
package.__path__ = [{str(Path(io.__file__).parents[2])!r}]
sys.modules["hetero_bfs"] = package
import hetero_bfs.graph.io.registry
print([m for m in ("pandas", "scipy", "psutil", "numba", "gzip") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Real graphs
