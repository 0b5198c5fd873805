"""`hetero_bfs.csgraph` beside SciPy: same arrays, types, orders and refusals."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as theirs
from checkout import TOP
from hypothesis import given, settings
from hypothesis import strategies as st

import hetero_bfs as hb
from hetero_bfs import csgraph
from hetero_bfs.engine.kept import KeptGraph


@st.composite
def matrices(draw):
    """A sparse or dense matrix: loops, explicit zeros, edges one way or with two weights."""
    n = draw(st.integers(1, 12))
    entry = st.tuples(
        st.integers(0, n - 1), st.integers(0, n - 1), st.sampled_from([0.0, 0.25, 1.0, 3.0])
    )
    entries = draw(st.lists(entry, max_size=40, unique_by=lambda e: e[:2]))
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    coo = scipy.sparse.coo_array((values, (rows, columns)), shape=(n, n), dtype=np.float64)
    return draw(st.sampled_from([coo, coo.tocsr(), coo.tocsc(), coo.toarray()]))


def assert_same_arrays(found, expected):
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same_arrays(one, other)
        return
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape


@settings(max_examples=60)
@given(matrices(), st.booleans(), st.booleans(), st.data())
def test_orders_and_components_are_those_of_scipy(matrix, directed, more, data):
    start = data.draw(st.integers(0, matrix.shape[0] - 1))
    for name, arguments in (
        ("breadth_first_order", (start, directed, more)),
        ("connected_components", (directed, "weak", more)),
        ("connected_components", (directed, "STRONG", more)),
    ):
        found = getattr(csgraph, name)(matrix, *arguments)
        assert_same_arrays(found, getattr(theirs, name)(matrix, *arguments))


def check_predecessors(matrix, distance, predecessors, directed, unweighted):
    """Each predecessor is nearer by the entry from it to the vertex."""
    lists = scipy.sparse.csr_array(matrix)
    for source in range(distance.shape[0]):
        for v, up in enumerate(predecessors[source]):
            if up < 0:
                assert distance[source, v] in (0, np.inf)
                continue
            ways = [lists[[up], [v]]] if directed else [lists[[up], [v]], lists[[v], [up]]]
            weights = [1.0] if unweighted else [float(way[0]) for way in ways]
            assert any(np.isclose(distance[source, up] + w, distance[source, v]) for w in weights)


@settings(max_examples=60)
@given(matrices(), st.booleans(), st.booleans(), st.sampled_from([np.inf, 0, 1, 1.25]))
def test_distances_are_those_of_scipy(matrix, directed, unweighted, limit):
    arguments = {"directed": directed, "unweighted": unweighted, "limit": limit}
    found = csgraph.dijkstra(matrix, **arguments)
    assert_same_arrays(found, theirs.dijkstra(matrix, **arguments))
    distance, predecessors = csgraph.dijkstra(matrix, return_predecessors=True, **arguments)
    assert_same_arrays(distance, found)
    assert predecessors.dtype == np.int32
    check_predecessors(matrix, distance, predecessors, directed, unweighted)
    nearest = [0, matrix.shape[0] - 1, 0]
    distance, predecessors, sources = csgraph.dijkstra(
        matrix, indices=nearest, min_only=True, return_predecessors=True, **arguments
    )
    assert_same_arrays(
        distance, theirs.dijkstra(matrix, indices=nearest, min_only=True, **arguments)
    )
    reached = np.isfinite(distance)
    assert_same_arrays(distance[reached], found[sources[reached], np.flatnonzero(reached)])
    assert set(sources[~reached]) <= {-9999}
    assert set(predecessors[~reached]) <= {-9999}
    assert sources.dtype == predecessors.dtype == np.int32


@pytest.mark.sampled(3)
@pytest.mark.parametrize("octaves", [0, 4, 200])
def test_distances_with_weights_of_any_spread(octaves):
    """Many buckets, with zeros, infinity and numbers that sums do not change."""
    random = np.random.default_rng(octaves)
    matrix = scipy.sparse.random_array((200, 200), density=0.04, rng=random, format="csr")
    matrix.data = np.exp2(random.uniform(-octaves, octaves, matrix.nnz))
    matrix.data[:40:8], matrix.data[1:40:8], matrix.data[2:40:8] = 0.0, np.inf, 1e-308
    for directed in (False, True):
        for limit in (np.inf, 1.5):
            arguments = {"directed": directed, "limit": limit, "indices": range(20)}
            found, predecessors = csgraph.dijkstra(matrix, return_predecessors=True, **arguments)
            assert_same_arrays(found, theirs.dijkstra(matrix, **arguments))
            check_predecessors(matrix, found, predecessors, directed, unweighted=False)
            assert_same_arrays(
                csgraph.dijkstra(matrix, min_only=True, **arguments),
                theirs.dijkstra(matrix, min_only=True, **arguments),
            )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int32, np.int64, np.float32])
def test_values_of_other_types(kind, directed):
    matrix = scipy.sparse.random_array((30, 30), density=0.1, rng=np.random.default_rng(2))
    matrix = (9 * matrix).ceil().astype(kind).tocsr()
    for name in ("dijkstra", "shortest_path"):
        found = getattr(csgraph, name)(matrix, directed=directed)
        assert_same_arrays(found, getattr(theirs, name)(matrix, directed=directed))
    arguments = (matrix, 1, directed)
    assert_same_arrays(
        csgraph.breadth_first_order(*arguments), theirs.breadth_first_order(*arguments)
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("unweighted", [False, True])
def test_engines_find_the_same_distances(monkeypatch, directed, unweighted):
    matrix = scipy.sparse.random_array((40, 40), density=0.06, rng=np.random.default_rng(3))
    plain = csgraph.dijkstra(matrix, directed, unweighted=unweighted, limit=2.5)
    monkeypatch.setattr(KeptGraph, "_pays", lambda *_: True)
    distance, predecessors = csgraph.dijkstra(
        matrix, directed, return_predecessors=True, unweighted=unweighted, limit=2.5
    )
    assert_same_arrays(distance, plain)
    check_predecessors(matrix, distance, predecessors, directed, unweighted)
    found = csgraph.dijkstra(
        matrix, directed, [3, 3, -1], unweighted=unweighted, limit=2.5
    )  # the same source twice
    assert_same_arrays(found, plain[[3, 3, -1]])


@pytest.mark.parametrize("indices", [2, [2], [-1, 0], [[0, 1], [2, 2]], [1.5, -0.5], []])
def test_indices_give_the_shape(indices):
    matrix = scipy.sparse.csr_array(np.array([[0, 1, 0], [0, 0, 2], [0, 0, 0]]))
    for function in ("dijkstra", "shortest_path"):
        expected = getattr(theirs, function)(matrix, indices=indices, return_predecessors=True)
        found = getattr(csgraph, function)(matrix, indices=indices, return_predecessors=True)
        assert_same_arrays(found, expected)


def test_dense_matrices_without_edges_at_0_infinity_and_nan():
    dense = np.array([[0, 2, np.inf], [np.nan, 0, 1.5], [0, 0, 0]])
    masked = np.ma.masked_invalid(dense)
    for matrix in (dense, masked, dense.tolist()):
        assert_same_arrays(csgraph.shortest_path(matrix), theirs.shortest_path(matrix, "D"))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("breadth_first_order", (np.ones((2, 3)), 0)),
        ("connected_components", (np.ones((2, 2)), True, "middling")),
        ("dijkstra", (None,)),
        ("shortest_path", (np.ones(3),)),
        ("dijkstra", (np.ones((2, 2)), True, [2])),
        ("dijkstra", (np.ones((2, 2)), True, [-3])),
        ("dijkstra", (np.ones((2, 2)), True, None, False, False, -1)),
        ("shortest_path", (np.ones((2, 2)), "X")),
        ("shortest_path", (np.ones((2, 3)),)),
    ],
)
def test_both_refuse_by_a_value_error(function, arguments):
    for module in (csgraph, theirs):
        with pytest.raises(ValueError):
            getattr(module, function)(*arguments)


def test_a_start_that_is_no_vertex_is_refused():
    with pytest.raises(hb.GraphError, match="ids are 0 to 1"):
        csgraph.breadth_first_order(np.ones((2, 2)), 2)


@pytest.mark.parametrize("index", [2**32 + 1, -(2**32) - 1, 2**70, float("nan"), 1e300, 1j, "a"])
@pytest.mark.parametrize("min_only", [False, True])
def test_indices_are_no_vertices_by_wrapping(index, min_only):
    for indices in (index, [0, index]):
        with pytest.raises(hb.ArgumentError, match="indices has"):
            csgraph.dijkstra(np.ones((2, 2)), indices=indices, min_only=min_only)


def test_what_is_left_to_scipy():
    matrix = np.array([[0, -1.0, 0], [0, 0, 2.0], [0, 0, 0]])
    for method in ("auto", "J", "BF", "FW"):
        expected = theirs.shortest_path(matrix, method)
        assert_same_arrays(csgraph.shortest_path(matrix, method), expected)
    with pytest.warns(UserWarning, match="negative"):
        csgraph.dijkstra(matrix)
    assert_same_arrays(
        csgraph.shortest_path(matrix, unweighted=True),
        theirs.shortest_path(abs(matrix), unweighted=True),
    )


def test_scipys_own_tests_pass():
    suite = TOP / "tests" / "support" / "scipy_suite.py"
    ran = subprocess.run([sys.executable, suite], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:]


def test_all_names_are_those_of_scipy():
    assert sorted(csgraph.__all__) == sorted(theirs.__all__)
    for name in theirs.__all__:
        assert (getattr(csgraph, name) is getattr(theirs, name)) == (name not in csgraph.OURS), name
    assert set(csgraph.OURS) < set(theirs.__all__)


def test_names_of_scipy_are_imported_from_here():
    program = (
        "import hetero_bfs.csgraph as csgraph\n"
        "from hetero_bfs.csgraph import NegativeCycleError, dijkstra, minimum_spanning_tree\n"
        "assert csgraph.dijkstra is dijkstra and dijkstra.__module__.startswith('hetero_bfs')\n"
        "import scipy.sparse.csgraph\nassert csgraph.johnson is scipy.sparse.csgraph.johnson\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=TOP)
