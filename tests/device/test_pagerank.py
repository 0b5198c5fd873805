"""PageRank on the host and on every OpenCL device, against NetworkX and the check."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest import mock

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from graphs import NAMES, edge_list, edge_lists, nasty, random_graph
from hypothesis import given
from hypothesis import strategies as st
from real_graphs import real_graph_file

import hetero_bfs as hb
from hetero_bfs.algorithms.pagerank.algorithm import PageRanks, WeightedPageRanks
from hetero_bfs.algorithms.pagerank.host import check_settings
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device as device_run

ALPHA = 0.85


def exact(edges, alpha=ALPHA, weighted=False, personalization=None) -> np.ndarray:
    """Return the ranks by SciPy: as many steps of the power method as can change them."""
    lists, n = hb.CSRGraph.from_edge_source(edges), edges.num_vertices
    values = lists.weights if weighted else np.ones(lists.num_stored_edges)
    arrays = values.astype(float), lists.indices.astype(int), lists.indptr
    matrix = scipy.sparse.csr_array(arrays, (n, n))
    total = matrix.sum(axis=1)
    given = alpha / np.where(total > 0, total, np.inf)
    restart = np.ones(n) if personalization is None else personalization
    rank = restart = restart / max(restart.sum(), 1e-300)
    for _ in range(math.ceil(math.log(1e-17) / math.log(alpha))):
        passed_on = (rank * given) @ matrix
        new = passed_on + (1 - passed_on.sum()) * restart
        if np.abs(new - rank).sum() < 1e-16:
            break
        rank = new
    return rank


def confirm(edges, result, tol=1e-6, alpha=ALPHA, expected=None, **options) -> None:
    """Compare with what `tol` promises."""
    n = edges.num_vertices
    expected = exact(edges, alpha) if expected is None else expected
    error = np.abs(result.rank - expected).sum()
    assert result.converged
    assert error <= result.change * alpha / (1 - alpha) + 1e-13
    assert result.change < n * tol or n == 0
    check = hb.check_pagerank(edges, result.rank, alpha, tol, **options)
    assert check.valid, check.message


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["Kronecker 10", "isolated vertices", "no vertices"])
def test_as_networkx(name, directed):
    base, tol = nasty(name, directed), 1e-9
    n, rng = base.num_vertices, np.random.default_rng(1)
    edges = replace(base, weights=rng.integers(1, 9, base.src.size).astype(np.float64))
    wanted = rng.random(n)
    graph = (nx.DiGraph if directed else nx.Graph)()
    graph.add_nodes_from(range(n))
    for src, dst, weights in hb.CSRGraph.from_edge_source(edges).weighted_chunks():
        graph.add_weighted_edges_from(
            zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True)
        )
    for weighted in (False, True):
        for personal in (None, wanted):
            theirs = nx.pagerank(
                graph,
                personalization=None if personal is None else dict(enumerate(personal)),
                weight="weight" if weighted else None,
                max_iter=1000,
                tol=1e-12,
            )
            ours = hb.pagerank(edges, ALPHA, tol, 100, weighted, personal)
            error = np.abs(ours.rank - [theirs[v] for v in range(n)]).sum()
            assert error <= n * (tol + 1e-12) * ALPHA / (1 - ALPHA)


def ranks_of(edges, threads, place, order="auto", kind=PageRanks):
    ranks = kind(build_search_graph(edges, order), threads, place)
    assert ranks.notes == []
    return ranks


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_shape(plain_place, name, directed):
    edges = nasty(name, directed)
    expected = exact(edges)
    with ranks_of(edges, 2, plain_place) as ranks:
        *_, where = ranks.places
        for tol in (1e-2, 1e-6, 1e-11):
            settings = check_settings(edges.num_vertices, ALPHA, tol, 500)
            confirm(edges, ranks.run(settings, place=where), tol, expected=expected)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_damping(threads, directed):
    edges = nasty("Kronecker 12", directed)
    with ranks_of(edges, threads, None) as ranks:
        for alpha in (0.3, 0.95):
            settings = check_settings(edges.num_vertices, alpha, 1e-9, 5000)
            result = ranks.run(settings)
            confirm(edges, result, 1e-9, alpha)


@pytest.mark.parametrize("order", ["degree", "locality", "compact", "given"])
def test_every_order(plain_place, order):
    for directed in (False, True):
        edges = nasty("isolated vertices", directed)
        with ranks_of(edges, 2, plain_place, order) as ranks:
            *_, where = ranks.places
            confirm(edges, ranks.run(check_settings(400, ALPHA, 1e-9, 200), place=where), 1e-9)


@given(edges=edge_lists(), alpha=st.floats(0.01, 0.99), tol=st.sampled_from([1e-3, 1e-9]))
def test_any_graph(edges, alpha, tol):
    with ranks_of(edges, 1, None) as ranks:
        settings = check_settings(edges.num_vertices, alpha, tol, 10_000)
        confirm(edges, ranks.run(settings), tol, alpha)


@pytest.mark.parametrize(("directed", "dtype"), [(False, np.float32), (True, np.int32)])
def test_weights(plain_place, directed, dtype):
    """Some are 0: a vertex of such edges alone is dangling."""
    base = nasty("Kronecker 10", directed)
    weights = np.random.default_rng(3).integers(0, 5, base.src.size).astype(dtype)
    weights[(base.src < 20) | (base.dst < 20)] = 0
    edges = replace(base, weights=weights)
    expected = exact(edges, weighted=True)
    settings = check_settings(edges.num_vertices, ALPHA, 1e-9, 500)
    with ranks_of(edges, 2, plain_place, kind=WeightedPageRanks) as ranks:
        *_, where = ranks.places
        result = ranks.run(settings, place=where)
        confirm(edges, result, 1e-9, expected=expected, weighted=True)


@pytest.mark.parametrize("directed", [False, True])
def test_personalization(plain_place, directed):
    edges = nasty("isolated vertices", directed)
    wanted = np.random.default_rng(4).random(edges.num_vertices)
    wanted[:200] = 0
    expected = exact(edges, personalization=wanted)
    settings = check_settings(edges.num_vertices, ALPHA, 1e-9, 500, wanted)
    plain = check_settings(edges.num_vertices, ALPHA, 1e-9, 500)
    with ranks_of(edges, 2, plain_place) as ranks:
        *_, where = ranks.places
        result = ranks.run(settings, place=where)
        confirm(edges, result, 1e-9, expected=expected, personalization=wanted)
        confirm(edges, ranks.run(plain, place=where), 1e-9)


@pytest.mark.parametrize("directed", [False, True])
def test_restarts_at_vertices_without_edges_alone(plain_place, directed):
    edges = edge_list([(0, 1), (1, 2)], 5, directed)
    for wanted in (np.array([0, 0, 0, 1, 3.0]), np.array([1e-12, 0, 0, 1, 3.0])):
        settings = check_settings(5, ALPHA, 1e-9, 500, wanted)
        with ranks_of(edges, 1, plain_place) as ranks:
            *_, where = ranks.places
            result = ranks.run(settings, place=where)
            confirm(edges, result, 1e-9, expected=exact(edges, personalization=wanted),
                    personalization=wanted)  # fmt: skip


def test_an_undirected_graph_that_converges_slowly_is_over_relaxed():
    edges = nasty("long path")
    settings = check_settings(edges.num_vertices, 0.99, 1e-13, 5000)
    with ranks_of(edges, 1, None) as ranks:
        result = ranks.run(settings)
        assert result.traces[-1].strategy == "over-relaxed, double"
        assert result.iterations < 200, "the power method takes 1500"
    with ranks_of(nasty("long path", True), 1, None) as ranks:
        assert {t.strategy for t in ranks.run(settings).traces} <= {"in place", "in place, double"}


def test_the_same_ranks_by_one_thread_each_time():
    edges = nasty("Kronecker 12")
    with ranks_of(edges, 1, None) as ranks:
        settings = check_settings(edges.num_vertices, ALPHA, 1e-9, 100)
        first, second = (ranks.run(settings) for _ in range(2))
        np.testing.assert_array_equal(first.rank, second.rank)
        first.rank[:] = 0
        assert second.rank.sum() == pytest.approx(1), "results do not share their memory"


def test_too_few_iterations(plain_place):
    edges = nasty("grid")
    with ranks_of(edges, 2, plain_place) as ranks:
        *_, where = ranks.places
        result = ranks.run(check_settings(edges.num_vertices, ALPHA, 1e-12, 3), place=where)
        assert (result.converged, result.iterations) == (False, 3)
        assert result.change > edges.num_vertices * 1e-12
        error = np.abs(result.rank - exact(edges)).sum()
        assert error <= result.change * ALPHA / (1 - ALPHA)


def test_a_tolerance_of_0_is_never_met():
    result = hb.pagerank(nasty("Kronecker 10"), tol=0, max_iter=60)
    assert (result.converged, result.iterations) == (False, 60)
    assert result.change < 1e-13


@pytest.mark.usefixtures("without_costs")
def test_engine(place):
    edges = nasty("Kronecker 10")
    options = {"device": "cpu"} if place is None else {"device": str(place.index)}
    with hb.Engine(edges, **options) as engine:
        results = [engine.pagerank() for _ in range(5)]
        for result in results:
            confirm(edges, result)
        assert [result.used_device for result in results[:4]] == (
            [False] * 4 if place is None else [False, False, True, True]
        )
        with pytest.raises(hb.GraphError, match="the graph has no weights"):
            engine.pagerank(weighted=True)
    with pytest.raises(hb.EngineClosedError):
        engine.pagerank()


@pytest.mark.usefixtures("without_costs")
@pytest.mark.parametrize("limit", [{"device_memory_bytes": 60_000}, {"max_alloc_bytes": 20_000}])
def test_a_device_that_may_not_hold_the_lists_is_left_out(apart, limit):
    edges = nasty("Kronecker 10")
    with hb.Engine(edges, device=str(apart.index)) as engine:
        engine.options = replace(engine.options, **limit)
        results = [engine.pagerank() for _ in range(4)]
        assert not any(result.used_device for result in results)
        assert any("is left out of PageRank" in note for note in engine.notes)
    confirm(edges, results[-1])


@pytest.mark.parametrize(("is_weighted", "directed"), [(False, False), (True, True)])
def test_lists_stream_to_a_device_without_room_for_them(apart, is_weighted, directed):
    if not apart.has_double:
        pytest.skip(f"{apart.name} has no doubles, which PageRank in float64 needs")
    edges = replace(random_graph(500, 40_000, 3), directed=directed)
    if is_weighted:
        weights = np.random.default_rng(2).integers(0, 9, edges.src.size).astype(np.float32)
        edges = replace(edges, weights=weights)
    restarts = np.arange(edges.num_vertices) % 5 == 0
    small = replace(apart, memory_bytes=200_000)
    kind = WeightedPageRanks if is_weighted else PageRanks
    with (
        mock.patch.object(device_run, "_MOST_RECORDS", 64),
        mock.patch.object(device_run.DeviceProgram, "GROUP", 32),
        kind(build_search_graph(edges), 2, small) as ranks,
    ):
        assert ranks.device is not None
        assert "lists stream: PageRank needs" in ranks.notes[0]
        for personalization in (None, restarts):
            settings = check_settings(edges.num_vertices, ALPHA, 1e-11, 200, personalization)
            there, here = ranks.run(settings, place="device"), ranks.run(settings, place="cpu")
            assert there.converged
            assert there.used_device
            assert there.streamed_bytes > there.iterations * 100_000
            assert here.streamed_bytes == 0
            assert np.abs(there.rank - here.rank).sum() < 1e-6


def test_one_call(plain_device):
    edges = nasty("grid")
    confirm(edges, hb.pagerank(edges))
    result = hb.pagerank(edges, device=str(plain_device.index))
    confirm(edges, result)
    assert result.used_device


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["moscow-centre", "debian-depends"])
def test_real_graphs(plain_place, name, directed):
    edges = read(real_graph_file(name), directed)
    settings = check_settings(edges.num_vertices, ALPHA, 1e-9, 200)
    with ranks_of(edges, 2, plain_place) as ranks:
        *_, where = ranks.places
        result = ranks.run(settings, place=where)
        check = hb.check_pagerank(edges, result.rank, tol=1e-9)
        assert check.valid, check.message


def test_highest():
    result = hb.pagerank(edge_list([(0, 3), (1, 3), (4, 5)], 6))
    assert [v for v, _ in result.highest(4)] == [3, 4, 5, 0]
    assert len(result.highest(99)) == 6
    assert hb.pagerank(edge_list([], 0)).highest() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": 1}, "alpha is 1.0; give a number between 0 and 1"),
        ({"alpha": 0}, "alpha is 0.0"),
        ({"alpha": np.nan}, "alpha is nan"),
        ({"alpha": True}, "alpha is True; give a number"),
        ({"alpha": "0.5"}, "alpha is '0.5'; give a number"),
        ({"tol": -1e-6}, "tol is -1e-06; give a finite number of at least 0"),
        ({"tol": np.nan}, "tol is nan"),
        ({"tol": np.inf}, "tol is inf"),
        ({"max_iter": 0}, "max_iter is 0; give an integer from 1"),
        ({"max_iter": 1.5}, "max_iter is 1.5; give an integer"),
        ({"max_iter": 10**9}, "max_iter is 1000000000"),
        ({"weighted": 1}, "weighted is 1; give True or False"),
        ({"personalization": [1, 2]}, "personalization has shape .2,.; give one number for each"),
        ({"personalization": [1, -1, 0]}, r"personalization.1. is -1.0; give finite numbers"),
        ({"personalization": [1, np.inf, 0]}, r"personalization.1. is inf"),
        ({"personalization": [0, 0, 0]}, "personalization adds up to 0.0"),
        ({"personalization": [1e308] * 3}, "personalization adds up to inf"),
        ({"personalization": "abc"}, "personalization holds no numbers"),
    ],
)
def test_wrong_arguments(options, said):
    with pytest.raises(hb.ArgumentError, match=said):
        hb.pagerank(edge_list([(0, 1)], 3), **options)


@pytest.mark.parametrize(
    ("weight", "said"),
    [(-2.0, "-2.0; weighted ranks need weights of"), (np.inf, "inf; weighted ranks need finite")],
)
def test_weights_that_are_refused(weight, said):
    edges = EdgeList.from_arrays([0, 5, 2], [1, 3, 4], weights=np.array([1, weight, 3]))
    confirm(edges, hb.pagerank(edges))
    with pytest.raises(hb.GraphError, match=r"edge \([35], [35]\) has weight " + said):
        hb.pagerank(edges, weighted=True)
