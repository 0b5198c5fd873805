"""Weights in graph files: what is written is read, by the letter of each format, or refused."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from graph_file_checks import put
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from weighted_triples import combined, error_of, triples

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.io import text_columns

DTYPES = [np.int32, np.float32, np.float64]
TEXT = ["g.el", "g.wel", "g.txt", "g.tsv.gz", "g.mtx", "g.mtx.gz"]
MTX = "%%MatrixMarket matrix coordinate"
IN_A_FOLDER = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
INT32 = st.integers(-(2**31), 2**31 - 1)
FLOAT = {
    np.float32: st.floats(allow_nan=False, width=32),
    np.float64: st.floats(allow_nan=False),
}


def plain_lines(raw: bytes, lowest: int) -> list[tuple[int, int, float]]:
    """The edges of a text file as Python's own numbers."""
    rows = [line.split() for line in raw.decode().splitlines() if line[0] not in "#%"]
    rows = rows[1:] if lowest else rows
    return [(int(u) - lowest, int(v) - lowest, float(w)) for u, v, w in rows]


@st.composite
def weighted_edges(draw) -> EdgeList:
    dtype = draw(st.sampled_from(DTYPES))
    end, weight = st.integers(0, 9), INT32 if dtype == np.int32 else FLOAT[dtype]
    edges = draw(st.lists(st.tuples(end, end, weight), max_size=30))
    src, dst, weights = zip(*edges, strict=True) if edges else ((), (), ())
    isolated, directed = draw(st.integers(0, 2)), draw(st.booleans())
    return EdgeList.from_arrays(src, dst, 10 + isolated, directed, np.array(weights, dtype))


# Round trips


@pytest.mark.parametrize("name", TEXT)
@IN_A_FOLDER
@given(edges=weighted_edges())
def test_text_round_trips(tmp_path: Path, name: str, edges: EdgeList) -> None:
    """Every float comes back as it was; those of float32 as float64."""
    path = tmp_path / name
    io.write(edges, path)
    back = io.read(path, edges.directed, weighted=True)
    expected = triples(edges)
    if ".mtx" in name and not edges.directed:
        expected = [(max(u, v), min(u, v), w) for u, v, w in expected]
    raw = gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()
    assert plain_lines(raw, int(".mtx" in name)) == triples(back) == expected
    assert (back.num_vertices, back.directed) == (edges.num_vertices, edges.directed)
    whole = edges.weights.dtype == np.int32 or (".mtx" not in name and edges.weights.size == 0)
    assert back.weights.dtype == (np.int32 if whole else np.float64)
    assert [str(w) for _, _, w in triples(back)] == [str(w) for _, _, w in expected]
    assert io.read(path, edges.directed).weights is None


@pytest.mark.parametrize("name", [*TEXT, "g.wsg", "g.hbg"])
@IN_A_FOLDER
@given(edges=weighted_edges(), directed=st.booleans())
def test_lists_round_trip(tmp_path: Path, name: str, edges: EdgeList, directed: bool) -> None:
    """Also read as directed what is undirected, and the other way round."""
    path, graph = tmp_path / name, CSRGraph.from_edge_source(edges)
    if name == "g.wsg" and graph.weights.dtype != np.int32:
        with pytest.raises(GraphFileError, match=r"weights are float.*write \.hbg or \.wel"):
            io.write(graph, path)
        return
    io.write(graph, path)
    back = io.load(path, directed, weighted=True)
    expected = combined(triples(edges), edges.directed)
    if edges.directed != directed:
        if name.startswith("g.mtx") or name in ("g.wsg", "g.hbg"):
            expected = combined(expected, directed)
        else:
            expected = combined([e for e in expected if edges.directed or e[0] < e[1]], directed)
    assert triples(back) == expected
    if name == "g.hbg":
        assert back.weights.dtype == edges.weights.dtype
        assert not back.weights.flags.writeable
    assert io.load(path, directed).weights is None
    np.testing.assert_array_equal(io.load(path, directed).indices, back.indices)


@pytest.mark.parametrize("name", ["g.wsg", "g.hbg"])
def test_binary_files_build_an_edge_list_first(tmp_path: Path, name: str) -> None:
    """By the list's own rule for duplicates."""
    edges = EdgeList.from_arrays([0, 1, 2], [1, 0, 2], 3, weights=[1, 2, 4], duplicates="sum")
    io.write(edges, tmp_path / name)
    assert triples(io.load(tmp_path / name, weighted=True)) == [(0, 1, 3), (1, 0, 3)]


# Numbers in text

DIGITS = st.text("0123456789", max_size=24)
DECIMALS = st.tuples(
    st.sampled_from(["", "-", "+"]), DIGITS, st.sampled_from(["", "."]), DIGITS,
    st.one_of(st.just(""), st.builds("{}{}{:03}".format, st.sampled_from("eE"),
              st.sampled_from(["", "+", "-"]), st.integers(0, 330))),
).map("".join)  # fmt: skip
SHORT = st.builds("{}e{}".format, st.integers(0, 2**54), st.integers(-24, 24))
FORMS = st.one_of(DECIMALS, SHORT, st.floats().map(repr), st.integers().map(str))


def meaning(word: str) -> tuple[float, bool] | None:
    """A word's number, and whether it is an integer within int32; None if it is none."""
    try:
        value = float(word)
    except ValueError:
        return None
    if value != value or (abs(value) == float("inf") and "inf" not in word):
        return None
    whole = re.fullmatch("[+-]?[0-9]+", word) is not None and -(2**31) <= value < 2**31
    return value, whole


@pytest.mark.parametrize("slowly", [False, True])
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(FORMS, min_size=1, max_size=8), block=st.sampled_from([1, 30, 1 << 22]))
@example(words=["9007199254740992e22", "9007199254740991e22", "9007199254740993"], block=1)
@example(words=["2147483647", "-2147483648"], block=1)
@example(words=["1", "2147483648", "-2147483649", "3.5"], block=1)
@example(words=["1e309"], block=1 << 22)
@example(words=["999999999999999999", "9999999999999999999", "0" * 40 + "7"], block=1 << 22)
@example(words=["1.", ".5", "-.5e+1", "+0.e-9", "4e-400", "-0.0", "1e23", "1e22"], block=1 << 22)
@example(words=["."], block=1)
@example(words=["1e"], block=1)
@example(words=["1e+"], block=1)
@example(words=["-"], block=1)
@example(words=["e5"], block=1)
def test_numbers_are_those_of_python(
    tmp_path: Path, words: list[str], block: int, slowly: bool
) -> None:
    path = tmp_path / "g.wel"
    first = "+0 0 0\n" if slowly else "0 0 0\n"
    put(path, first + "".join(f"0 {i}\t{word} x\n" for i, word in enumerate(words) if word))
    found = [meaning(word) for word in words if word]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_columns, "_BLOCK_BYTES", block)
        if None in found:
            error_of(path, f"g.wel:{found.index(None) + 2}: ")
            return
        weights = io.read(path, weighted=True).weights
    assert weights.tolist() == [0, *(value for value, _ in found)]
    assert weights.dtype == (np.int32 if all(whole for _, whole in found) else np.float64)


@pytest.mark.parametrize("count", [1, 2, 5000])
def test_decimals_in_a_later_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(text_columns, "_BLOCK_BYTES", 64)
    text = "".join(f"{i} {i + 1} {i}\n" for i in range(count))
    weights = io.read(put(tmp_path / "g.el", text), weighted=True).weights
    assert (weights.dtype, weights.tolist()) == (np.int32, list(range(count)))
    weights = io.read(put(tmp_path / "g.el", text + "0 0 0.5\n"), weighted=True).weights
    assert (weights.dtype, weights.tolist()) == (np.float64, [*range(count), 0.5])


def test_long_decimals_take_no_second_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_columns, "check_lines", None)
    random = np.random.default_rng(4).random(1000).tolist()
    text = "".join(f"0 {i} {w!r}\n" for i, w in enumerate(random))
    assert io.read(put(tmp_path / "g.el", text), weighted=True).weights.tolist() == random


def test_comments_line_ends_and_more_columns(tmp_path: Path) -> None:
    text = "# Nodes: 12\r\n0\t1 7#x\r\n\r\n  4 2  -3 \r\n% c\r\n1 1 +2%\r\n9 0 1 2 3"
    edges = io.read(put(tmp_path / "g.tsv", text), weighted=True)
    assert triples(edges) == [(0, 1, 7), (4, 2, -3), (1, 1, 2), (9, 0, 1)]
    assert edges.num_vertices == 12
    weights = io.read(
        put(tmp_path / "g.el", "0 1 1\r0 2 inf\r0 3 -Infinity"), weighted=True
    ).weights
    assert weights.tolist() == [1, np.inf, -np.inf]


@pytest.mark.parametrize("name", ["g.wel", "g.txt.gz"])
@pytest.mark.parametrize(
    "word", ["nan", "-NaN", "x", "1,5", "0x1", "1_0", "٣", "1e", "--1", "1.2.3", "ınf", "'1'", "."]
)
def test_what_is_no_number(tmp_path: Path, name: str, word: str) -> None:
    path = put(tmp_path / name, f"# c\n0 1 2.5\n1 2 {word} 4\n".encode())
    error_of(path, f"{name}:3: {word!r} is not a weight; expected a number such as 3, -2.5")
    assert io.read(path).num_input_edges == 2


def test_no_third_column(tmp_path: Path) -> None:
    path = put(tmp_path / "g.el", "0 1 5\n3 4\n")
    error_of(path, "g.el:2: only two columns, '3 4'", "as the third, or read it without weights")
    error_of(put(path, "0 1 5\n3 4 # 6\n"), "g.el:2: only two columns")
    error_of(put(path, "0 1 5\n3\n"), "g.el:2: only one column")
    error_of(put(path, "0 1 5\n3 -4 1\n"), "g.el:2: vertex id -4")


@pytest.mark.parametrize("word", ["1e309", "-1e400", "9" * 310])
def test_beyond_float64(tmp_path: Path, word: str) -> None:
    path = put(tmp_path / "g.el", f"0 1 {word}\n")
    error_of(path, f"g.el:1: weight {word[:80]!r} is beyond float64", "1.8e308", "or inf")


@pytest.mark.parametrize("word", ["1" * 60_000 + "x", "1." + "1" * 60_000 + "x", "0" * 60_000])
def test_a_long_number_takes_no_long_time(tmp_path: Path, word: str) -> None:
    path = put(tmp_path / "g.el", f"0 1 {word}\n")
    if word.endswith("x"):
        error_of(path, "g.el:1: ", "is not a weight")
    else:
        assert io.read(path, weighted=True).weights.tolist() == [0]


def test_memory_for_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "g.el", "0 1 2\n" * 60)
    monkeypatch.setattr(text_columns, "free_bytes", lambda: 800)
    assert io.read(path).num_input_edges == 60
    error_of(path, "holds 60 edges or more", "16 bytes each")


# Matrix Market


@pytest.mark.parametrize(
    ("field", "values", "dtype"),
    [
        ("integer", ["1", "-2"], np.int32),
        ("integer", ["1", "2147483648"], np.float64),
        ("real", ["1", "-2"], np.float64),
        ("real", ["1.5", "-2e-3"], np.float64),
        ("Double", ["1", "0"], np.float64),
    ],
)
def test_values_of_a_matrix(tmp_path: Path, field: str, values: list[str], dtype: type) -> None:
    body = f"{MTX} {field} general\n% c\n3 3 2\n1 2 {values[0]}\n3 3 {values[1]}\n"
    edges = io.read(put(tmp_path / "g.mtx", body), True, weighted=True)
    assert triples(edges) == [(0, 1, float(values[0])), (2, 2, float(values[1]))]
    assert edges.weights.dtype == dtype
    empty = put(tmp_path / "g.mtx", f"{MTX} {field} general\n3 3 0\n")
    expected = np.int32 if field == "integer" else np.float64
    assert io.read(empty, weighted=True).weights.dtype == expected


@pytest.mark.parametrize("symmetry", ["symmetric", "hermitian", "skew-symmetric"])
def test_values_of_a_symmetric_matrix(tmp_path: Path, symmetry: str) -> None:
    path = put(tmp_path / "g.mtx", f"{MTX} integer {symmetry}\n3 3 3\n2 1 5\n3 3 1\n3 2 4\n")
    sign = -1 if symmetry == "skew-symmetric" else 1
    expected = [(1, 0, 5), (2, 2, 1), (2, 1, 4), (0, 1, 5 * sign), (1, 2, 4 * sign)]
    assert triples(io.read(path, True, weighted=True)) == expected
    if sign < 0:
        error_of(
            path, "g.mtx:1: ", "unlike sign; read it with directed, or read it without weights"
        )
    else:
        assert triples(io.read(path, weighted=True)) == expected[:3]


def test_the_least_int32_has_no_counterpart(tmp_path: Path) -> None:
    path = put(tmp_path / "g.mtx", f"{MTX} integer skew-symmetric\n2 2 1\n2 1 -2147483648\n")
    edges = io.read(path, True, weighted=True)
    assert triples(edges) == [(1, 0, -(2**31)), (0, 1, 2**31)]
    assert edges.weights.dtype == np.float64


def test_matrices_without_weights(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx"
    error_of(put(path, f"{MTX} pattern general\n2 2 1\n1 2\n"), "g.mtx:1: a pattern matrix")
    error_of(put(path, f"{MTX} complex general\n2 2 1\n1 2 3 4\n"), "g.mtx:1: a complex matrix")
    error_of(put(path, f"{MTX} real general\n2 2 1\n1 2\n"), "g.mtx:3: only two columns")
    error_of(put(path, f"{MTX} real general\n2 2 1\n1 2 nan\n"), "g.mtx:3: 'nan' is not a weight")
    integer = put(path, f"{MTX} integer general\n2 2 1\n1 2 1.5\n")
    error_of(integer, "g.mtx:3: weight '1.5' is not an integer, which line 1 says")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scipy_reads_what_we_write(tmp_path: Path, dtype: type, directed: bool) -> None:
    from scipy.io import mmread

    weights = np.array([3, -1, 7]) / (1 if dtype == np.int32 else 3)
    graph = CSRGraph.from_edges([0, 1, 3], [1, 3, 2], 5, directed, weights.astype(dtype))
    io.write(graph, tmp_path / "g.mtx")
    matrix = mmread(tmp_path / "g.mtx")
    assert matrix.dtype.kind == np.dtype(dtype).kind
    assert triples(CSRGraph.from_scipy(matrix, directed, weighted=True)) == triples(graph)
