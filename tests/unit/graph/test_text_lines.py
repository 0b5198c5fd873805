"""Lines of text files: their ends, their numbers, and how much memory one may take."""

from __future__ import annotations

import gzip
import tracemalloc
from io import BytesIO
from itertools import product
from pathlib import Path

import pytest
from graph_file_checks import error_of, put
from hypothesis import given
from hypothesis import strategies as st

from hetero_bfs.graph.io import graph_files, text_columns
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.io.graph_files import LONGEST_LINE_BYTES, lines

MIB = 2**20
LONG = LONGEST_LINE_BYTES


@given(st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"#"])), st.integers(1, 5))
def test_lines_and_their_places(parts: list[bytes], block: int) -> None:
    """As Python's own universal newlines have them, whatever the blocks."""
    content = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_files, "_BLOCK_BYTES", block)
        found = list(lines(BytesIO(content), Path("g.txt")))
    expected = content.splitlines()
    assert [line.text for line in found] == expected
    assert [line.number for line in found] == list(range(1, len(expected) + 1))
    assert all(content[line.start :].startswith(line.text) for line in found)
    assert all(line.start == 0 or content[line.start - 1] in b"\r\n" for line in found)


@pytest.mark.parametrize(
    ("head", "end"),
    [("", ""), *product(["", "0 1{end}", "# c{end}\r\n0 1{end}"], ["\n", "\r\n", "\r"])],
)
@pytest.mark.parametrize("line", ["#", "2 3 ", "9", " ", "2 3 # "])
def test_the_longest_line(tmp_path: Path, head: str, line: str, end: str) -> None:
    """A limit of bytes before the end of the line, wherever the line is."""
    text = head.format(end=end)
    number = len(text.splitlines()) + 1
    fits = put(tmp_path / "g.txt", text + line.ljust(LONG, line[-1]) + end)
    if line == "9":
        error_of(fits, f"g.txt:{number}: only one column")
    elif "0 1" in text or "2" in line:
        assert io.read(fits).num_input_edges == ("0 1" in text) + ("2" in line)
    else:
        error_of(fits, "holds no edges")
    too_long = put(tmp_path / "g.txt", text + line.ljust(LONG + 1, line[-1]) + end)
    error_of(too_long, f"g.txt:{number}: ", f"over {LONG} bytes", "lines of up to")


@pytest.mark.parametrize("where", ["first", "comment", "size", "entry", "later"])
def test_the_longest_line_of_a_matrix(tmp_path: Path, where: str) -> None:
    parts = {
        "first": "%%MatrixMarket matrix coordinate pattern general",
        "comment": "% c",
        "size": "3 3 2",
        "entry": "1 2",
        "later": "2 3",
    }
    number = list(parts).index(where) + 1
    parts[where] = parts[where].ljust(LONG)
    assert io.read(put(tmp_path / "g.mtx", "\n".join(parts.values()))).num_input_edges == 2
    parts[where] += " "
    path = put(tmp_path / "g.mtx", "\n".join(parts.values()))
    error_of(path, f"g.mtx:{number}: ", f"over {LONG} bytes")


@pytest.mark.parametrize(
    "start", [b"", b"0 1\n", b"# c\n", b"0 1\n#", b"%%MatrixMarket matrix coordinate real general"]
)
def test_memory_for_a_line_that_never_ends(tmp_path: Path, start: bytes) -> None:
    """A gzip file of 100 KiB may hold 100 MiB of one line."""
    path = tmp_path / ("g.mtx.gz" if start.startswith(b"%%") else "g.txt.gz")
    path.write_bytes(gzip.compress(start + b" " * (100 * MIB), 1))
    io.read(put(tmp_path / "small.txt", "0 1\n"))  # compiles
    tracemalloc.start()
    error_of(path, f"over {LONG} bytes")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 32 * MIB


def test_carriage_returns_end_lines_everywhere(tmp_path: Path) -> None:
    """Old ones alone, in files of any size; mixed with others, in comments too."""
    many = "".join(f"{i} {i + 1}\r" for i in range(20_000))
    assert io.read(put(tmp_path / "g.txt", many)).num_input_edges == 20_000
    graph = io.read(put(tmp_path / "g.txt", "# Nodes: 9\r0 1\r"))
    assert (graph.num_vertices, graph.num_input_edges) == (9, 1)
    matrix = "%%MatrixMarket matrix coordinate pattern general\n% a\r%b\n3 3 2\n+1 2\n2 3\n"
    for text in (matrix, matrix.replace("\n", "\r")):
        graph = io.read(put(tmp_path / "g.mtx", text))
        assert (graph.src.tolist(), graph.dst.tolist()) == ([0, 1], [1, 2])
    error_of(put(tmp_path / "g.txt", "0 1\r# c\r2 x\n"), "g.txt:3: 'x'")


@pytest.mark.parametrize("text", [b"#\0\n0 1\n", b"0 1\n#\0\n", b"0 1 \0\n", b"0 1\n\0"])
def test_zero_bytes_are_refused_everywhere(tmp_path: Path, text: bytes) -> None:
    number = text[: text.index(b"\0")].count(b"\n") + 1
    error_of(put(tmp_path / "g.txt", text), f"g.txt:{number}: ", "a zero byte")
    error_of(put(tmp_path / "u.txt", "0 1\n".encode("utf-16")), "u.txt:1: ", "a zero byte")


@pytest.mark.parametrize("line", ["1 2\n", "+1 2\n"])
def test_more_entries_than_declared_are_counted_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(text_columns, "_BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(text_columns, "_LINES_AT_ONCE", 1 << 10)
    head = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n"
    path = put(tmp_path / "g.mtx", head + line)
    assert io.read(path).num_input_edges == 1
    path = put(tmp_path / "g.mtx.gz", head + line * MIB)
    tracemalloc.start()
    error_of(path, "g.mtx.gz:2: the size line says 1 entries", f"holds {MIB};")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2 * MIB


def test_more_edges_than_the_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "g.txt", "1 2\n" * 100)
    monkeypatch.setattr(text_columns, "free_bytes", lambda: 800)
    assert io.read(path).num_input_edges == 100
    error_of(put(path, "1 2\n" * 101), "g.txt: holds 101 edges or more", "8 bytes each")


def test_long_ids(tmp_path: Path) -> None:
    path = put(tmp_path / "g.txt", f"{7:099} +{8:0999}\n")
    graph = io.read(path)
    assert (graph.src.tolist(), graph.dst.tolist()) == ([7], [8])
    error_of(put(path, f"7 {10**98}\n"), "g.txt:1: ", f"vertex id {10**98} is above")
    error_of(put(path, f"7 {10**99}\n"), "g.txt:1: ", "is not a vertex id")
