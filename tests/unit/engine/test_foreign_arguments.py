"""Arrays and numbers of other packages as arguments of calls: refused in a line, or read right."""

from __future__ import annotations

import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from array_memory import other_memory
from sample_programs import Ranks, Reached

import hetero_bfs as hb
from hetero_bfs import csgraph
from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.io.graph_files import read_vertices


class OnADevice:
    """An array of which NumPy makes none, as of one in a GPU's memory."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("convert it\nfirst")


PATH = hb.CSRGraph.from_edges([0, 1, 2], [1, 2, 3], 100)
MASKED = np.ma.array(np.arange(100), mask=np.arange(100) == 5)
WIDE = np.arange(100)[None]

TAKE_VERTICES = {
    "bfs": lambda ids: hb.bfs(PATH, ids, device="cpu"),
    "bfs_many": lambda ids: hb.bfs_many(PATH, ids, device="cpu"),
    "mask": lambda ids: hb.bfs(PATH, 0, mask=ids, device="cpu"),
    "src": lambda ids: hb.CSRGraph.from_edges(ids, np.arange(100)),
    "validate": lambda ids: hb.validate(PATH, 0, ids),
    "component": lambda ids: hb.check_components(PATH, ids),
    "colour": lambda ids: hb.check_colouring(PATH, ids),
}
TAKE_NUMBERS = {
    "weights": lambda values: hb.CSRGraph.from_edges([0] * 100, [1] * 100, weights=values),
    "personalization": lambda values: hb.pagerank(PATH, personalization=values),
    "rank": lambda values: hb.check_pagerank(PATH, values),
}  # fmt: skip


@pytest.mark.parametrize("call", TAKE_VERTICES | TAKE_NUMBERS)
@pytest.mark.parametrize(
    "values",
    [
        MASKED, WIDE, WIDE.T, np.float64(3), [[0], [1, 2]], ["a"] * 100, OnADevice(),
        np.zeros(100, "M8[s]"), np.zeros(100, complex), np.zeros(100, [("a", int)]),
        np.ma.array(np.zeros(100, [("a", int)]), mask=True), [None] * 100, [10**400] * 100,
        [10**5000] * 100,
    ],
)  # fmt: skip
def test_what_is_no_array_of_vertices_or_numbers_is_refused_in_a_line(call, values):
    with pytest.raises((ArgumentError, GraphError)) as caught:
        (TAKE_VERTICES | TAKE_NUMBERS)[call](values)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400


def test_many_sources_are_of_one_dimension():
    with pytest.raises(ArgumentError, match=r"array of shape \(1, 100\); .* such as .ravel\(\)"):
        hb.bfs_many(PATH, WIDE)


def test_arguments_of_csgraph_lose_no_mask_and_are_numbers():
    matrix = scipy.sparse.csr_array(np.eye(6, k=1))
    with pytest.raises(GraphError, match="indices has 1 of 2 entries masked"):
        csgraph.dijkstra(matrix, indices=np.ma.array([0, 1], mask=[False, True]))
    with pytest.raises(GraphError, match=r"indices is .*makes no array"):
        csgraph.dijkstra(matrix, indices=[[0], [1, 2]])
    for limit in ("1", None, np.ones(2), 1j):
        with pytest.raises(ArgumentError, match="limit is"):
            csgraph.dijkstra(matrix, limit=limit)
    assert csgraph.dijkstra(matrix, indices=0, limit=np.array(1.0))[2] == np.inf
    with pytest.raises(ArgumentError, match="connection is None"):
        csgraph.connected_components(matrix, connection=None)
    with pytest.raises(GraphError, match=r"csgraph is \[\[1\], \[1, 2\]\], of which"):
        csgraph.dijkstra([[1], [1, 2]])


def saved(array: np.ndarray) -> bytes:
    """What `numpy.save` writes."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


DAMAGED_FILES = {
    "cut": saved(np.arange(9))[:-3],
    "shape open": saved(np.arange(9)).replace(b"(9,)", b"((9,"),
    "shape huge": saved(np.arange(9)).replace(b"(9,), ", b"(9" + b"0" * 14 + b",), ")[:190],
    "type": saved(np.arange(9)).replace(b"<i8", b"<x8"),
    "objects": saved(np.array([None, 1], object)),
    "zip": b"PK\x03\x04" + saved(np.arange(9)),
    "text": b"1\n2\n",
    "empty": b"",
}


@pytest.mark.parametrize("name", DAMAGED_FILES)
def test_a_damaged_file_of_vertices_is_refused_in_a_line(name, tmp_path):
    path = tmp_path / "mask.npy"
    path.write_bytes(DAMAGED_FILES[name])
    with pytest.raises(GraphError, match="is not a NumPy array") as caught:
        read_vertices(path)
    assert "\n" not in str(caught.value)


def test_a_file_of_vertices(tmp_path):
    path = tmp_path / "mask.npy"
    path.write_bytes(saved(np.array([3, 1], ">i4")))
    assert read_vertices(path).tolist() == [3, 1]
    text = tmp_path / "mask.txt"
    text.write_text("# ids\n3\n\n 1 \n")
    assert read_vertices(text).tolist() == [3, 1]
    for wrong in ("1_0", "1.0", "x", "9" * 30, "9" * 5000):
        text.write_text(f"3\n{wrong}\n")
        with pytest.raises(GraphError, match=r"mask\.txt:2: .* is not a vertex id"):
            read_vertices(text)


@pytest.fixture(scope="module")
def engine():
    with hb.Engine(hb.CSRGraph.from_edges([0, 1], [1, 2], 4), device="cpu") as opened:
        yield opened


@pytest.mark.parametrize(
    "value",
    [
        None, "1", 1j, 10**30, np.datetime64(1, "ns"), np.timedelta64(1, "ns"), np.ma.masked,
        np.ma.array(3.0, mask=True), np.ma.array(np.ones(4), mask=[0, 1, 0, 0]), np.longdouble(1),
        np.ones(3), np.ones((1, 4)), np.ones(4, "M8[s]"), np.ones(4, complex),
        np.ones(4, object), np.array(["1"] * 4), np.ones(4, "f2"), np.ones(4, [("a", int)]),
        [1.0] * 4, {0: 1.0}, OnADevice(), Decimal(1), pd.Series([1.0] * 4), pd.NA,
    ],
)  # fmt: skip
def test_arguments_of_programs_that_are_refused(engine, value):
    with pytest.raises((ArgumentError, GraphError), match="parameter mask") as caught:
        engine.run(Reached(), mask=value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_vector_for_each_vertex_is_no_number(engine):
    with pytest.raises(hb.ProgramError, match=r"a vector of 1 in `return mask`.*takes a number"):
        engine.run(Reached(), mask=np.ones((4, 1)))


def test_arguments_of_programs_in_other_memory(engine):
    masks = np.array([4, 2, 1, 8], np.uint32)
    for change in other_memory().values():
        found = engine.run(Reached(), mask=change(masks)).state["mask"]
        assert found.tolist() == [7, 7, 7, 8]
    few = {"alpha": np.float32(0.5), "tol": np.array(1e-3)}  # numbers
    np.testing.assert_allclose(engine.run(Ranks(), **few).rank.sum(), 1.0)
