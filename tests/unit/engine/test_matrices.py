"""Calls on SciPy's matrices: answers of the graph that they mean, kept while they do not change."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as theirs

import hetero_bfs as hb
from hetero_bfs.engine import calls, kept
from hetero_bfs.engine.kept import KeptGraph
from hetero_bfs.graph.kernels.digests import digest_of

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.fixture(autouse=True)
def _closed_at_the_end():
    yield
    kept.close_all()


def matrix_of(seed=3, n=40, entries=90, loops=True):
    random = np.random.default_rng(seed)
    rows, columns = random.integers(0, n, (2, entries))
    keep = np.ones(entries, bool) if loops else rows != columns
    weights = random.integers(1, 9, entries) / 4
    coo = sp.coo_array((weights[keep], (rows[keep], columns[keep])), shape=(n, n))
    coo.sum_duplicates()
    return coo


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("loops", [False, True])
def test_answers_are_those_of_the_graph(form, loops):
    matrix = matrix_of(loops=loops).asformat(form)
    graph = hb.CSRGraph.from_scipy(matrix, directed=True, weighted=True)
    for given in (matrix, sp.csr_matrix(matrix) if form == "csr" else matrix):
        assert hb.bfs(given, 3).level.tolist() == hb.bfs(graph, 3).level.tolist()
        assert hb.bfs(given, 3).nedge == hb.bfs(graph, 3).nedge
        found = hb.bfs_many(given, [1, 2], want="levels").level
        assert np.array_equal(found, hb.bfs_many(graph, [1, 2], want="levels").level)
        assert hb.sssp(given, 3).distance.tolist() == theirs.dijkstra(matrix, indices=3).tolist()
        count = theirs.connected_components(matrix, connection="weak")[0]
        assert hb.connected_components(given).num_components == count
        assert hb.colour(given).colour.tolist() == hb.colour(graph).colour.tolist()
        for weighted in (False, True):
            ranks = hb.pagerank(given, weighted=weighted).rank
            np.testing.assert_allclose(ranks, hb.pagerank(graph, weighted=weighted).rank)
    reverse = hb.bfs(matrix, 3, reverse=True).level
    assert reverse.tolist() == hb.bfs(graph, 3, reverse=True).level.tolist()


def test_explicit_zeros_are_edges_with_and_without_weights():
    matrix = sp.csr_array(([0.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert hb.bfs(matrix, 0).level.tolist() == [0, 1, 2]
    assert hb.sssp(matrix, 0).distance.tolist() == [0, 0, 1]
    assert theirs.dijkstra(matrix, indices=0, unweighted=True).tolist() == [0, 1, 2]


def test_a_call_with_a_device_takes_matrices_too():
    matrix = path_matrix()
    assert hb.bfs(matrix, 1, device="cpu").level.tolist() == [-1, 0, 1, 2, 3, 4]
    assert hb.sssp(matrix, 1, device="cpu").distance[5] == 4


def path_matrix(n=6):
    return sp.csr_array((np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), shape=(n, n))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("engine", [False, True])
def test_a_changed_matrix_gives_other_answers(monkeypatch, form, engine):
    monkeypatch.setattr(KeptGraph, "_pays", lambda *_: engine)
    matrix = path_matrix().asformat(form)
    assert hb.sssp(matrix, 0).distance.tolist() == [0, 1, 2, 3, 4, 5]
    assert hb.bfs(matrix, 0).level.tolist() == [0, 1, 2, 3, 4, 5]
    matrix.data[2] = 7  # in place
    assert hb.sssp(matrix, 0).distance.tolist() == [0, 1, 2, 9, 10, 11]
    first, second = ("row", "col") if form == "coo" else ("indices", "indices")
    ids = getattr(matrix, second if form != "csc" else first)
    ids[4] = 0 if form != "csc" else 5  # the edge 4 -> 5 becomes another
    before = hb.CSRGraph.from_scipy(matrix, directed=True)
    assert hb.bfs(matrix, 0).level.tolist() == hb.bfs(before, 0).level.tolist()
    matrix.data = matrix.data * 2
    assert hb.sssp(matrix, 0).distance[1] == 2


def test_the_same_matrix_is_read_once(monkeypatch):
    matrix, made = path_matrix(), []
    monkeypatch.setattr(
        calls,
        "_graph_of",
        lambda *given, original=calls._graph_of: made.append(1) or original(*given),
    )
    monkeypatch.setattr(KeptGraph, "_pays", lambda *_: True)
    for _ in range(3):
        hb.bfs(matrix, 0)
    assert len(made) == 1
    assert calls.graph_of(matrix, False) is calls.graph_of(matrix, False)
    hb.sssp(matrix, 0)
    assert len(made) == 2
    matrix.data[0] = 4  # unweighted calls do not read it
    hb.bfs(matrix, 0)
    assert len(made) == 2


def test_what_is_kept_goes_with_the_matrix():
    matrix = path_matrix()
    graph = weakref.ref(calls.graph_of(matrix, False))
    assert graph() is not None
    del matrix
    gc.collect()
    assert graph() is None
    many = [path_matrix(4 + i) for i in range(kept.MOST_KEPT + 2)]
    graphs = [weakref.ref(calls.graph_of(one, False)) for one in many]
    gc.collect()
    assert [one() is not None for one in graphs] == [False] * 2 + [True] * kept.MOST_KEPT


def test_read_only_arrays_are_not_read_again(monkeypatch):
    matrix = path_matrix()
    for name in ("indptr", "indices", "data"):
        array = getattr(matrix, name).copy()  # not a view of one that can be written
        array.flags.writeable = False
        setattr(matrix, name, array)
    first = calls.graph_of(matrix, True)
    monkeypatch.setattr(calls, "digest_of", lambda _: pytest.fail("was read"))
    assert calls.graph_of(matrix, True) is first
    matrix.indices = matrix.indices.copy()
    monkeypatch.undo()
    assert calls.graph_of(matrix, True) is not first


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (sp.coo_array(np.ones((2, 3))), "shape"),
        (sp.coo_array(np.ones(3)), "shape"),
        (sp.csr_array(([1.0], [5], [0, 1, 1]), shape=(2, 2)), "indices"),
        (np.eye(3), "from_scipy"),
    ],
)
def test_others_are_refused(matrix, said):
    for call in (lambda: hb.bfs(matrix, 0), lambda: hb.connected_components(matrix)):
        with pytest.raises(hb.HeteroBFSError, match=said):
            call()
    with pytest.raises(hb.GraphError, match="not in the graph"):
        hb.bfs(path_matrix(), 6)
    with pytest.raises(hb.GraphError, match="weight -1"):
        hb.sssp(-path_matrix(), 0)


@pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0, 4.0])
def test_digests_change_with_the_scale_of_all_weights(factor):
    """Such changes are in the same high bits of each word."""
    for size in (16, 1 << 15, 1 << 19):
        weights = np.ones(size)
        assert digest_of(weights) != digest_of(factor * weights)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100, 1 << 22])
def test_digests_change_with_any_byte_and_order(size):
    random = np.random.default_rng(size)
    array = random.integers(0, 256, size).astype(np.uint8)
    before = digest_of(array)
    assert digest_of(array.copy()) == before
    for position in {0, size // 2, size - 1}:
        array[position] ^= 1
        assert digest_of(array) != before
        array[position] ^= 1
    if size > 8:
        words = array[: size // 8 * 8].view(np.uint64)
        words[[0, -1]] = words[[-1, 0]]
        assert (digest_of(array) == before) == (words[0] == words[-1])
