"""Shortest paths on the host and on every OpenCL device, against SciPy and the check."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from graphs import SEARCHABLE_NAMES, nasty, random_graph, sources_of
from hypothesis import given
from hypothesis import strategies as st
from planned_paths import planned
from real_graphs import real_graph_file

import hetero_bfs as hb
from hetero_bfs.algorithms.sssp import device as device_search
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.kernels import phases, tree
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.programs import device as device_run
from hetero_bfs.scheduling.algorithm_decision import WindowPlan, WindowStrategy
from hetero_bfs.support import parallel

DTYPES = [np.int32, np.float32, np.float64]


def weighted(edges: EdgeList, dtype, low: int = 1, high: int = 256, seed: int = 1) -> EdgeList:
    """Return a graph with weights of multiples of 1/4, which all types add exactly."""
    drawn = np.random.default_rng(seed).integers(low, high, edges.src.size)
    weights = drawn.astype(dtype) if np.dtype(dtype).kind == "i" else (drawn / 4).astype(dtype)
    return EdgeList(edges.src, edges.dst, edges.num_vertices, edges.directed, weights)


def expected(edges: EdgeList, source: int) -> np.ndarray:
    """Return the distances by SciPy, which takes a stored 0 for an edge of weight 0."""
    graph = hb.CSRGraph.from_edge_source(edges)
    n = edges.num_vertices
    lists = graph.weights.astype(np.float64), graph.indices.astype(np.int64), graph.indptr
    return scipy.sparse.csgraph.dijkstra(scipy.sparse.csr_array(lists, (n, n)), indices=source)


def confirm(edges: EdgeList, result: hb.ShortestPaths) -> None:
    np.testing.assert_array_equal(result.distance, expected(edges, result.source))
    check = hb.check_paths(edges, result.source, result.distance, result.parent)
    assert check.valid, check.message


PLANS = {
    "as planned": None,
    "narrow prefixes": WindowPlan(WindowStrategy.PREFIX, 1.0, 1.0),
    "wide prefixes": WindowPlan(WindowStrategy.PREFIX, 1e9, 1e9),
    "narrow, whole lists": WindowPlan(WindowStrategy.FULL, 1.0, 2.0),
    "wide, whole lists": WindowPlan(WindowStrategy.FULL, 1e9, 1e9),
    "prefixes, then wide": WindowPlan(WindowStrategy.PREFIX, 3.0, 1e6),
}


def searches_of(edges, threads, place, plan=None, order="auto"):
    needs_double = edges.weights is not None and edges.weights.dtype == np.float64
    if place is not None and needs_double and not place.has_double:
        pytest.skip(f"{place.name} has no doubles, which weights of float64 need")
    with planned(plan):
        searches = PathSearches(build_search_graph(edges, order), threads, place)
        _ = plan and searches.device  # opened with the plan
    assert searches.notes == []
    return searches


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("directed", "dtype"), [(False, np.int32), (True, np.float32), (True, np.float64)]
)
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_every_shape(plain_place, name, directed, dtype):
    edges = weighted(nasty(name, directed), dtype)
    with searches_of(edges, 2, plain_place) as searches:
        for source in sources_of(edges, 1):
            *_, where = searches.places
            confirm(edges, searches.run(source, place=where))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
@pytest.mark.parametrize("threads", [1, 3])
def test_every_plan(many_threads, threads, plan, dtype):
    for name in ("Kronecker 12", "grid", "star", "isolated vertices"):
        edges = weighted(nasty(name), dtype)
        with searches_of(edges, threads, None, plan) as searches:
            for source in sources_of(edges, 1):
                confirm(edges, searches.run(source))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("plan", ["narrow, whole lists", "wide, whole lists"])
def test_a_full_pool_drops_items_and_finds_them_again(many_threads, threads, plan):
    for name in ("Kronecker 12", "grid", "star"):
        edges = weighted(nasty(name), np.int32)
        blocks = mock.patch.object(phases, "pool_blocks", return_value=3)
        with blocks, searches_of(edges, threads, None, PLANS[plan]) as searches:
            for source in sources_of(edges, 1):
                confirm(edges, searches.run(source))


@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
def test_every_plan_on_a_device(plain_device, plan):
    for name in ("Kronecker 10", "grid"):
        edges = weighted(nasty(name), np.float32)
        with searches_of(edges, 1, plain_device, plan) as searches:
            confirm(edges, searches.run(7, place="device"))


@pytest.mark.parametrize("order", ["degree", "locality", "given"])
def test_every_order(order):
    edges = weighted(nasty("Kronecker 10"), np.int32)
    with searches_of(edges, 2, None, order=order) as searches:
        confirm(edges, searches.run(3))


@st.composite
def any_weighted(draw):
    vertices, count = draw(st.integers(1, 30)), draw(st.integers(0, 90))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = rng.integers(0, vertices, (2, count))
    base = EdgeList.from_arrays(*ends, vertices, draw(st.booleans()))
    return weighted(base, draw(st.sampled_from(DTYPES)), 0, draw(st.sampled_from([1, 3, 40])))


@given(edges=any_weighted(), data=st.data())
def test_any_graph(edges, data):
    """Weights of 0 among them, and nothing else but 0."""
    plan = data.draw(st.sampled_from(list(PLANS.values())))
    source = data.draw(st.integers(0, edges.num_vertices - 1))
    with searches_of(edges, 1, None, plan) as searches:
        confirm(edges, searches.run(source))


def test_circles_of_weight_0_do_not_become_circles_of_parents():
    n = 5000
    ring = [(i, (i + 1) % n) for i in range(n)]
    edges = EdgeList.from_arrays(*np.array(ring).T, n, weights=np.zeros(n, np.int32))
    with searches_of(edges, 2, None) as searches:
        result = searches.run(77)
        confirm(edges, result)
        assert len(result.path_to(76)) == 2


@pytest.mark.parametrize(("directed", "dtype"), [(False, np.int32), (True, np.float32)])
def test_parents_are_found_on_the_device(plain_device, directed, dtype):
    """Lists that a work-group reads together, and circles of weight 0 among the others."""
    graphs = [weighted(nasty(name, directed), dtype, 0, 40) for name in ("Kronecker 10", "star")]
    ring = np.arange(200), np.roll(np.arange(200), -1)
    graphs.append(EdgeList.from_arrays(*ring, 200, directed, np.zeros(200, dtype)))
    on_host = mock.patch.object(tree, "tree_parents", side_effect=AssertionError)
    with on_host, mock.patch.object(device_search, "_PULL_EDGES", 2):
        for edges in graphs:
            with searches_of(edges, 1, plain_device) as searches:
                earlier, later = searches.run(3, place="device"), searches.run(7, place="device")
                confirm(edges, earlier)
                confirm(edges, later)


def test_parents_of_a_device_that_fails_or_is_closed_are_the_hosts(plain_device):
    edges = weighted(nasty("Kronecker 10"), np.int32)
    with searches_of(edges, 1, plain_device) as searches:
        result, other = searches.run(3, place="device"), searches.run(7, place="device")
        with mock.patch.object(device_search.DeviceSearch, "parents", side_effect=hb.DeviceError):
            confirm(edges, result)
    confirm(edges, other)


@pytest.mark.parametrize("shared_from", [1, 1 << 20])
def test_ids_are_restored_by_one_thread_or_by_all(monkeypatch, shared_from):
    monkeypatch.setattr(parallel, "_SHARED_FROM", shared_from)
    edges = weighted(nasty("isolated vertices"), np.float32)
    with searches_of(edges, 2, None) as searches:
        confirm(edges, searches.run(sources_of(edges, 1)[0]))


@pytest.mark.parametrize("dtype", [np.int32, pytest.param(np.float32, marks=pytest.mark.thorough)])
def test_distances_beyond_the_weights_type(plain_place, dtype):
    """Of int32 the search starts again with 64 bits; of float32 with float64."""
    large = 2**30 if dtype == np.int32 else np.float32(3e38)
    edges = EdgeList.from_arrays([0, 1, 2], [1, 2, 3], weights=np.full(3, large, dtype))
    with searches_of(edges, 1, plain_place) as searches:
        *_, where = searches.places
        result = searches.run(0, place=where)
        np.testing.assert_array_equal(result.distance, float(large) * np.arange(4))
        assert result.path_to(3) == [0, 1, 2, 3]


def test_the_largest_integer_is_a_weight_as_any_other(plain_place):
    """It stands for infinity in searches of 32 bits. So 64 are taken, which no device has."""
    largest = np.iinfo(np.int32).max
    weights = np.array([largest, 1], np.int32)
    edges = EdgeList.from_arrays([0, 1], [1, 2], weights=weights)
    with PathSearches(build_search_graph(edges), 1, plain_place) as searches:
        assert searches.device is None
        confirm(edges, searches.run(0))
        if plain_place is not None:
            (note,) = searches.notes
            assert f"a weight is {largest}" in note


def test_an_edge_of_infinite_weight_is_none(plain_place):
    edges = EdgeList.from_arrays([0, 1], [1, 2], weights=np.array([1, np.inf], np.float32))
    with searches_of(edges, 1, plain_place) as searches:
        *_, where = searches.places
        result = searches.run(0, place=where)
        np.testing.assert_array_equal(result.distance, [0, 1, np.inf])
        assert result.parent.tolist() == [0, 0, -1]


def test_a_kronecker_graph_is_pulled_and_a_grid_is_not():
    for edges, pulls in ((KroneckerEdges(13).materialise(), 1), (nasty("grid"), 0)):
        with searches_of(weighted(edges, np.int32), 2, None) as searches:
            traces = searches.run(int(edges.src[0])).traces
            assert [trace.strategy for trace in traces].count("pull") == pulls


@pytest.mark.usefixtures("without_costs")
def test_an_engine_tries_each_place_if_no_model_predicts(plain_device):
    edges = weighted(nasty("Kronecker 10"), np.int32)
    with searches_of(edges, 1, plain_device) as searches:
        tried = [searches.run(3).used_device for _ in range(4)]
        assert tried == [False, False, True, True]


def leaves_at_once(searches: PathSearches) -> None:
    """Let searches begin on the device, and leave it after the first window of full lists."""
    searches.places._expected = {"cpu": 2.0, "device": 1.0}
    searches.places._recent.clear()
    leaving = searches.device.leaving
    leaving._leaving, leaving._edge = -1.0, 0.0


@pytest.mark.sampled(8)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize("name", ["Kronecker 10", "Kronecker 12", "sparse random", "star"])
def test_a_search_ends_on_the_host_if_few_vertices_are_left(place, name, dtype, threads):
    if place is None:
        pytest.skip("needs a device")
    edges = weighted(nasty(name), dtype)
    with searches_of(edges, threads, place) as searches:
        if not isinstance(searches.device, device_search.DeviceSearch):
            pytest.skip("the device lacks this type")
        moved = 0
        for source in (0, 3, 5):
            leaves_at_once(searches)
            result = searches.run(source)
            confirm(edges, result)
            on_device = [trace.strategy.startswith("device") for trace in result.traces]
            assert on_device == sorted(on_device, reverse=True)
            moved += any(on_device) and not all(on_device)
        assert moved or not name.startswith("Kronecker")
        stays = searches.run(3, place="device")
        assert all(trace.strategy.startswith("device") for trace in stays.traces)


def test_distances_beyond_32_bits_after_leaving_a_device(plain_device):
    """The host continues with 32 bits, finds that they do not suffice, and begins again."""
    n = 600
    first = np.arange(n - 1, dtype=np.uint32)
    weights = np.full(n - 1, 5_000_000, np.int32)
    edges = EdgeList(first, first + np.uint32(1), n, weights=weights)
    with searches_of(edges, 1, plain_device) as searches:
        leaves_at_once(searches)
        result = searches.run(0)
        np.testing.assert_array_equal(result.distance, 5e6 * np.arange(n))


@pytest.mark.sampled(3)
def test_engine(place):
    edges = weighted(nasty("Kronecker 10"), np.float64)
    options = {"device": "cpu"} if place is None else {"device": str(place.index)}
    with hb.Engine(edges, **options) as engine:
        for _ in range(5):
            confirm(edges, engine.sssp(5))
        assert engine.bfs(5).reached == engine.sssp(5).reached
        with pytest.raises(hb.GraphError, match="vertex 1024 is not in the graph"):
            engine.sssp(1024)
    with pytest.raises(hb.EngineClosedError):
        engine.sssp(5)


@pytest.mark.parametrize("limit", [{"device_memory_bytes": 60_000}, {"max_alloc_bytes": 20_000}])
def test_a_device_that_may_not_hold_the_lists_is_left_out(apart, limit):
    edges = weighted(nasty("Kronecker 10"), np.int32)
    with hb.Engine(edges, device=str(apart.index)) as engine:
        engine.options = replace(engine.options, **limit)
        results = [engine.sssp(5) for _ in range(4)]
        assert not any(result.used_device for result in results)
        assert engine._runs_of(PathSearches).device is None
        assert any("is left out of shortest paths" in note for note in engine.notes)
    confirm(edges, results[-1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("dtype", "directed"), [(np.int32, True), (np.float32, False), (np.float64, False)]
)
def test_lists_stream_to_a_device_without_room_for_them(apart, dtype, directed):
    if dtype != np.int32 and not apart.has_double:
        pytest.skip(f"{apart.name} has no doubles, which distances along float weights need")
    edges = weighted(replace(random_graph(500, 40_000, 3), directed=directed), dtype)
    small = replace(apart, memory_bytes=330_000)
    with (
        mock.patch.object(device_run, "_MOST_RECORDS", 64),
        mock.patch.object(device_run.DeviceProgram, "GROUP", 32),
        PathSearches(build_search_graph(edges), 2, small) as searches,
    ):
        assert searches.device is not None
        assert "lists stream: shortest paths need" in searches.notes[0]
        for source in (5, 77):
            result = searches.run(source, place="device")
            confirm(edges, result)
            assert result.used_device
            assert result.streamed_bytes > 0
            assert np.isnan(result.traces[0].start)
            assert searches.run(source, place="cpu").streamed_bytes == 0


@pytest.mark.parametrize(("directed", "most"), [(False, 8), (True, 12)])
def test_bytes_of_a_stored_edge_beside_the_graph(directed, most):
    lists = WeightedLists.of(build_search_graph(weighted(nasty("grid", directed), np.int32)), "all")
    graph = lists.graph.graph
    held = [graph.indptr, graph.indices, graph.weights]
    held += [graph.transpose.indptr, graph.transpose.indices, graph.transpose.weights]
    kept = {id(one): one for one in (*lists.forward, *lists.backward, lists.backward_order)}
    own = [one for one in kept.values() if not any(np.shares_memory(one, has) for has in held)]
    assert sum(one.nbytes for one in own) <= most * graph.num_stored_edges + 4


def test_one_call(plain_device):
    edges = weighted(nasty("grid"), np.int32)
    confirm(edges, hb.sssp(edges, 11))
    result = hb.sssp(edges, 11, device=str(plain_device.index))
    confirm(edges, result)
    assert result.used_device


@pytest.mark.parametrize("name", ["moscow-centre", "debian-depends"])
def test_real_graphs(plain_place, name):
    edges = weighted(read(real_graph_file(name)), np.float32)
    with searches_of(edges, 2, plain_place) as searches:
        *_, where = searches.places
        confirm(edges, searches.run(1, place=where))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_negative_weight_is_refused_by_name(dtype):
    edges = EdgeList.from_arrays([0, 5, 2], [1, 3, 4], weights=np.array([1, -2, 3], dtype))
    with pytest.raises(hb.GraphError, match=r"edge \([35], [35]\) has weight -2"):
        hb.sssp(edges, 0)


def test_a_weight_of_minus_zero_is_zero():
    edges = EdgeList.from_arrays([0, 1], [1, 2], weights=np.array([-0.0, 2.0]))
    result = hb.sssp(edges, 0)
    assert result.distance.tolist() == [0, 0, 2]


def test_a_graph_without_weights_is_refused():
    with pytest.raises(hb.GraphError, match="the graph has no weights"):
        hb.sssp(nasty("grid"), 0)


def test_a_stalled_grid_searches_again_step_by_step(plain_device):
    edges = weighted(nasty("grid"), np.float32)
    with searches_of(edges, 1, plain_device) as searches:
        device = searches.device
        device._search, device._kernels = mock.Mock(), {}
        with mock.patch.object(device, "_run_one_launch", return_value=(None, [])) as stalled:
            confirm(edges, searches.run(7, place="device"))
        assert stalled.call_count == 1
        assert not device.one_launch


LATE_WORKER = """
from itertools import combinations

import numpy as np

from hetero_bfs.algorithms.sssp import host
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.devices.cpu import host_run
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling.algorithm_decision import WindowPlan, WindowStrategy

pairs = [(a, b, 100.0 if a else 1.0) for a, b in combinations(range(150), 2)]
pairs += [(1, 150, 50.0), *((150, 151 + leaf, 1000.0) for leaf in range(8000))]
u, v, weight = (np.array(column) for column in zip(*pairs))
edges = EdgeList(u.astype(np.uint32), v.astype(np.uint32), 8151, False, weight.astype(np.float32))
host_run.start_workers = lambda *_: host_run.no_workers
plan = WindowPlan(WindowStrategy.PREFIX, 10.0, 8.0)
host.plan_windows = lambda *_: plan
searches = PathSearches(build_search_graph(edges), 2)
paths = searches.run(0)
print(*(trace.strategy for trace in paths.traces), paths.distance.max())
"""


@pytest.mark.thorough  # it compiles all kernels once more, with bounds checks
def test_a_vertex_that_a_pull_did_not_reach_is_on_the_far_pile_once():
    """One thread relaxes its part before another part of the pile is read."""
    done = subprocess.run(
        [sys.executable, "-c", LATE_WORKER],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("prefix pull full full 1051.0\n", "")
