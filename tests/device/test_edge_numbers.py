"""Weights at the edge of their type: every door gives the ranks and distances of exact arithmetic.

The references are plain Python: ranks by fractions, distances by the addition of float64, in which
a sum beyond the type is infinite, as in NetworkX and SciPy.
"""

from __future__ import annotations

import heapq
import math
from contextlib import contextmanager
from fractions import Fraction
from unittest import mock

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from cli_runs import run
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.algorithms.pagerank.algorithm import WeightedPageRanks
from hetero_bfs.algorithms.pagerank.device import StreamedPageRank
from hetero_bfs.algorithms.pagerank.host import check_settings
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.device import StreamedPaths
from hetero_bfs.engine.kept import KeptGraph
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.registry import write
from hetero_bfs.graph.search_graph import build_search_graph

EDGES_OF = {
    np.int32: [0, 1, 2, 3, 1000, 2**31 - 2, 2**31 - 1],
    np.float32: [0, 1e-45, 1e-40, 1e-30, 0.5, 1, 3, 1e30, 2e38, 3.4e38],
    np.float64: [0, 5e-324, 1e-310, 1e-300, 1e-46, 0.5, 1, 3, 1e46, 1e300, 1e308, 1.7e308],
}
MOST = {np.float32: float(np.finfo(np.float32).max), np.float64: float(np.finfo(np.float64).max)}


@st.composite
def weighted(draw, dtypes=tuple(EDGES_OF)):
    """A small graph as CSRGraph, whose weights are near to the limits of their type."""
    dtype, n = draw(st.sampled_from(dtypes)), draw(st.integers(2, 8))
    weight = st.sampled_from(EDGES_OF[dtype])
    if dtype in MOST:
        bits = 8 * np.dtype(dtype).itemsize
        weight |= st.floats(0, MOST[dtype], width=bits)
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, weight), min_size=1, max_size=20))
    src, dst, weights = zip(*edges, strict=True)
    directed = draw(st.booleans())
    return hb.CSRGraph.from_edges(src, dst, n, directed, np.array(weights, dtype))


def listed(graph):
    """Return (start, end, weight) of each stored edge, as Python's numbers."""
    return [
        (int(u), int(v), w.item())
        for part in graph.weighted_chunks()
        for u, v, w in zip(*part, strict=True)
    ]


def exact_ranks(graph, alpha=0.85):
    n = graph.num_vertices
    passed_on = np.zeros((n, n))
    total = [Fraction(0)] * n
    for u, _, w in listed(graph):
        total[u] += Fraction(w)
    for u, v, w in listed(graph):
        passed_on[u, v] = float(Fraction(w) / total[u]) if total[u] else 0
    passed_on[[not one for one in total]] = 1 / n
    step = alpha * passed_on.T
    return np.linalg.solve(np.eye(n) - step, np.full(n, (1 - alpha) / n))


def exact_distances(graph, source):
    """Return distances of float64 by vertices that a path leads to."""
    lists: dict = {}
    for u, v, w in listed(graph):
        lists.setdefault(u, []).append((v, w))
    found, heap = {}, [(0, source)]
    while heap:
        far, u = heapq.heappop(heap)
        if u in found:
            continue
        found[u] = far
        for v, w in lists.get(u, []):
            heapq.heappush(heap, (far + w, v))
    return found


def networkx_of(graph):
    made = (nx.DiGraph if graph.directed else nx.Graph)()
    made.add_nodes_from(range(graph.num_vertices))
    made.add_weighted_edges_from(listed(graph))
    return made


def ranks_by_one_call(graph, device, options):
    return [hb.pagerank(graph, weighted=True, **options)]


def ranks_by_engine(graph, device, options):
    with hb.Engine(graph, device="cpu", selector="fixed:TC") as engine:
        return [engine.pagerank(weighted=True, **options)]


def ranks_on_device(graph, device, options):
    checked = check_settings(graph.num_vertices, 0.85, **options)
    with WeightedPageRanks(build_search_graph(graph), 1, device) as ranks:
        return [ranks.run(checked) for _ in range(3)]  # each place gets its turn


def ranks_streamed(graph, device, options):
    checked = check_settings(graph.num_vertices, 0.85, **options)
    with WeightedPageRanks(build_search_graph(graph), 1) as ranks:
        ranks._device = StreamedPageRank(ranks.lists, device)
        return [ranks.run(checked, place="device")]


RANK_DOORS = {
    f.__name__: f for f in (ranks_by_one_call, ranks_by_engine, ranks_on_device, ranks_streamed)
}


@pytest.mark.parametrize("door", RANK_DOORS)
@settings(max_examples=12)
@given(graph=weighted(), tol=st.sampled_from([1e-3, 1e-9]))
def test_ranks(plain_device, door, graph, tol):
    if door == "ranks_streamed" and not plain_device.has_double:
        return
    if graph.num_stored_edges == 0 and door != "ranks_by_one_call":
        return  # no place has anything to do
    expected = exact_ranks(graph)
    for result in RANK_DOORS[door](graph, plain_device, {"tol": tol, "max_iter": 1000}):
        assert result.converged
        assert np.abs(result.rank - expected).sum() <= result.change * 0.85 / 0.15 + 1e-12
        assert result.rank.sum() == pytest.approx(1)
        check = hb.check_pagerank(graph, result.rank, tol=tol, weighted=True)
        assert check.valid, check.message


@settings(max_examples=12)
@given(graph=weighted())
def test_ranks_of_the_backend(graph):
    found = nx.pagerank(networkx_of(graph), tol=1e-9, max_iter=1000, backend="hetero")
    expected = exact_ranks(graph)
    assert np.abs([found[v] - expected[v] for v in range(expected.size)]).sum() < 1e-7


def test_a_rank_that_is_not_finite_is_an_error():
    with pytest.raises(hb.ValidationError, match="change is nan after 1 iterations"):
        hb.PageRank(np.full(2, np.nan), 0.0, math.nan, False, [mock.Mock()])


def test_infinite_weights_of_ranks_are_refused(plain_device):
    graph = hb.CSRGraph.from_edges([0, 1], [1, 2], weights=[1e308, math.inf])
    for door in RANK_DOORS.values():
        with pytest.raises(hb.GraphError, match="has weight inf; weighted ranks need finite"):
            door(graph, plain_device, {"tol": 1e-6, "max_iter": 9})
    with pytest.raises(NotImplementedError):
        nx.pagerank(networkx_of(graph), backend="hetero")


@contextmanager
def searches_on(graph, streams, device):
    with PathSearches(build_search_graph(graph), 1, None if streams else device) as searches:
        if streams and searches.lists.num_vertices:
            searches._device = StreamedPaths(searches.lists, device)
        yield searches


def paths_by_one_call(graph, source, device):
    return [hb.sssp(graph, source)]


def paths_by_engine(graph, source, device):
    with hb.Engine(graph, device="cpu", selector="fixed:TC") as engine:
        return [engine.sssp(source)]


def paths_on_device(graph, source, device):
    with searches_on(graph, False, device) as searches:
        return [*[searches.run(source) for _ in range(3)], searches.run(source, place="device")]


def paths_streamed(graph, source, device):
    with searches_on(graph, True, device) as searches:
        return [searches.run(source, place="device")]


def paths_by_ranks(graph, source, device):
    src, dst = (np.concatenate(ends) for ends in zip(*graph.chunks(), strict=True))
    edges = EdgeList(src, dst, graph.num_vertices, True, graph.weights)
    return run_ranks(2, lambda c: RankEngine(edges if c.rank == 0 else None, c).sssp(source))[-1:]


PATH_DOORS = {
    f.__name__: f
    for f in (paths_by_one_call, paths_by_engine, paths_on_device, paths_streamed, paths_by_ranks)
}


def array_of(distances, n):
    return np.array([distances.get(v, math.inf) for v in range(n)], float)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("door", PATH_DOORS)
@settings(max_examples=12)
@given(graph=weighted(), data=st.data())
def test_distances(plain_device, door, graph, data):
    """Sums of float32 are rounded, so these compare about; the check knows their last bit."""
    if door == "paths_streamed" and not plain_device.has_double:
        return
    n = graph.num_vertices
    source = data.draw(st.integers(0, n - 1))
    if graph.num_stored_edges == 0 and door != "paths_by_one_call":
        return
    expected = array_of(exact_distances(graph, source), n)
    for result in PATH_DOORS[door](graph, source, plain_device):
        if graph.weight_dtype == np.float32:
            np.testing.assert_allclose(result.distance, expected, 1e-6, 1e-44)
        else:
            np.testing.assert_array_equal(result.distance, expected)
        assert result.reached == np.isfinite(expected).sum()
        check = hb.check_paths(graph, source, result.distance, result.parent)
        assert check.valid, check.message


def matrix_of(graph):
    arrays = graph.weights.astype(float), graph.indices.astype(np.int32), graph.indptr
    return scipy.sparse.csr_array(arrays, (graph.num_vertices,) * 2)


@pytest.mark.parametrize("opens", [True, False])
@settings(max_examples=12)
@given(graph=weighted())
def test_distances_of_matrices(opens, graph):
    matrix, n = matrix_of(graph), graph.num_vertices
    expected = np.array([array_of(exact_distances(graph, v), n) for v in range(n)])
    with mock.patch.object(KeptGraph, "_pays", return_value=opens):
        found, parents = hb.csgraph.dijkstra(matrix, return_predecessors=True)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(parents >= 0, np.isfinite(found) & ~np.eye(n, dtype=bool))
        np.testing.assert_array_equal(hb.csgraph.dijkstra(matrix, indices=0), expected[0])
        nearest = hb.csgraph.dijkstra(matrix, indices=[0, 1], min_only=True)
        np.testing.assert_array_equal(nearest, expected[:2].min(axis=0))


@pytest.mark.parametrize("opens", [True, False])
@settings(max_examples=12)
@given(graph=weighted([np.float32, np.float64]))
def test_distances_of_the_backend(opens, graph):
    made = networkx_of(graph)
    with mock.patch.object(KeptGraph, "_pays", return_value=opens):
        for name in ("_path_length", "_path", ""):
            function = getattr(nx, f"single_source_dijkstra{name}")
            for limit in (None, 1e308, math.inf):
                theirs = function(made, 0, cutoff=limit, backend="networkx")
                assert function(made, 0, cutoff=limit, backend="hetero") == theirs


def test_all_nodes_of_a_long_path_are_in_the_backends_answer():
    n = 40_000
    made = nx.path_graph(n)
    nx.set_edge_attributes(made, 4.7e303, "weight")
    theirs = nx.single_source_dijkstra_path_length(made, 0, backend="networkx")
    assert math.isinf(theirs[n - 1])
    assert nx.single_source_dijkstra_path_length(made, 0, backend="hetero") == theirs


@pytest.mark.parametrize(("where", "n"), [("cpu", 3000), ("device", 60)])
@pytest.mark.parametrize(
    ("dtype", "weight"), [(np.float32, 3e38), (np.float64, 1.7e308), (np.float64, 1e307)]
)
@pytest.mark.parametrize("degree", [2, 20])
def test_long_graphs(plain_device, where, n, dtype, weight, degree):
    """Whole lists, or prefixes and the pull; several threads."""
    start = np.repeat(np.arange(n), degree // 2)
    ends = np.minimum(start + np.tile(np.arange(1, degree // 2 + 1), n), n - 1)
    graph = hb.CSRGraph.from_edges(start, ends, n, weights=np.full(start.size, weight, dtype))
    expected = array_of(exact_distances(graph, 0), n)
    with PathSearches(build_search_graph(graph), 3, plain_device) as searches:
        result = searches.run(0, place=where)
    np.testing.assert_array_equal(result.distance, expected)
    check = hb.check_paths(graph, 0, result.distance, result.parent)
    assert check.valid, check.message


def test_the_check_finds_vertices_that_float32_alone_does_not_reach():
    graph = hb.CSRGraph.from_edges([0, 1], [1, 2], weights=np.array([3e38, 3e38], np.float32))
    first = float(np.float32(3e38))
    check = hb.check_paths(graph, 0, np.array([0, first, math.inf]), np.array([0, 0, -1]))
    assert "check 3" in check.message
    assert hb.check_paths(graph, 0, np.array([0, first, 2 * first]), np.array([0, 0, 1])).valid


@pytest.mark.parametrize("weights", [[1e-46, 3e-46, 1], [1e308, 1e308, 1e308], [5e-324, 0, 1e300]])
def test_commands(tmp_path, weights):
    graph = hb.CSRGraph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], weights=[*weights, 1e308])
    path, out = tmp_path / "g.wel", tmp_path / "out.npy"
    write(graph, path)
    options = ("--device=cpu", f"--out={out}", "--tol=1e-9")
    assert run("pagerank", path, "--weighted", *options) == 0
    assert np.abs(np.load(out) - exact_ranks(graph)).sum() < 1e-7
    assert run("sssp", path, "--source", 0, *options[:2]) == 0
    np.testing.assert_array_equal(np.load(out), array_of(exact_distances(graph, 0), 4))
