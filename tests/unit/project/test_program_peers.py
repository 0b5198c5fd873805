"""benchmarks/programs: turns that compare answers, and other libraries on graphs that hurt."""

import argparse
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from graphs import edge_list

import hetero_bfs as hb
from benchmarks.programs import __main__ as programs
from benchmarks.programs import peers
from benchmarks.programs.contest import Contest
from benchmarks.programs.cugraph import CuGraph
from hetero_bfs.algorithms.pagerank.host import PageRankSettings

SETTINGS = PageRankSettings(0.85, 1e-9, 500)
OPTIONS = argparse.Namespace(threads=2)
HURT = {
    "one vertex": edge_list([], 1),
    "no edges": edge_list([], 5),
    "a star and a path, isolated vertices at both ends": edge_list(
        [*((1, v) for v in range(2, 9)), *((v, v + 1) for v in range(9, 40))], 43
    ),
    "a path against the ids": edge_list([(v, (v * 37) % 101) for v in range(1, 101)], 101),
}


@pytest.fixture(params=HURT, name="edges")
def _edges(request):
    return HURT[request.param]


@pytest.fixture(params=["NetworKit", "GraphBLAS"], name="library")
def _library(request):
    for module in {"NetworKit": ["networkit"], "GraphBLAS": ["graphblas_algorithms"]}[
        request.param
    ]:
        pytest.importorskip(module, exc_type=ImportError)
    return getattr(peers, request.param)


def weighted(edges):
    weights = np.random.default_rng(3).integers(1, 256, edges.src.size).astype(np.int32)
    return hb.EdgeList(edges.src, edges.dst, edges.num_vertices, weights=weights)


def contest_of(**runs):
    return Contest(True, lambda one, other: one == other, runs)


def test_libraries_find_our_distances(edges, library):
    edges = weighted(edges)
    graph = hb.CSRGraph.from_edge_source(edges)
    for source in {0, edges.num_vertices // 2}:
        expected = hb.sssp(edges, source).distance
        for run in library(graph, 2).paths().values():
            np.testing.assert_allclose(run(source)[1], expected)


def test_libraries_find_our_ranks(edges, library):
    graph = hb.CSRGraph.from_edge_source(edges)
    if not graph.num_stored_edges:
        pytest.skip("graphblas-algorithms returns no ranks without edges")
    expected = hb.pagerank(edges, tol=1e-9 / edges.num_vertices, max_iter=500).rank
    for run in library(graph, 2).ranks(SETTINGS).values():
        np.testing.assert_allclose(run(0)[1], expected, atol=1e-8)


def test_libraries_find_our_components(edges, library):
    graph = hb.CSRGraph.from_edge_source(edges)
    expected = hb.connected_components(edges).component
    for run in library(graph, 2).components().values():
        np.testing.assert_array_equal(run(0)[1], expected)


def test_labels_become_the_least_vertices_with_them():
    labels = np.array([7, 0, 7, 3, 0])
    assert peers.least_members(labels).tolist() == [0, 1, 0, 3, 1]
    assert peers.least_members(labels[:0]).size == 0


def test_a_library_that_is_not_there_is_left_out_with_a_remedy(monkeypatch, capsys):
    for module in ("networkit", "graphblas", "cupy"):
        monkeypatch.setitem(sys.modules, module, None)
    runs = {}
    graph = hb.CSRGraph.from_edge_source(HURT["no edges"])
    peers.add_peers(runs, graph, OPTIONS, lambda library: library.components())
    assert runs == {}
    said = capsys.readouterr().err
    assert "pip install networkit" in said
    assert "pip install python-graphblas suitesparse-graphblas graphblas-algorithms" in said
    assert "pip install pylibcugraph-cu13" in said


def test_answers_of_cugraph_come_by_vertex_with_our_marks_of_what_is_not_reached():
    """cuGraph needs a GPU: here its functions return what they are documented to return."""
    vertices, far, none = np.array([2, 0, 1]), np.finfo(np.float32).max, np.iinfo(np.int32).max
    cugraph = CuGraph.__new__(CuGraph)
    cugraph._lists, cugraph._handle, cugraph._graph = SimpleNamespace(directed=False), None, None
    device = SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=lambda: None))
    cugraph._cupy = SimpleNamespace(
        empty_like=np.empty_like, asarray=np.asarray, asnumpy=np.asarray, cuda=device
    )
    cugraph._library = SimpleNamespace(
        sssp=lambda *_: (vertices, np.array([7, far, 0], np.float32), None),
        bfs=lambda *_: (np.array([1, none, 0], np.int32), None, vertices),
        weakly_connected_components=lambda *_: (vertices, np.array([2, 0, 2], np.int32)),
    )
    for runs, expected in (
        (cugraph.paths(), [np.inf, 0, 7]),
        (cugraph.levels(), [-1, 0, 1]),
        (cugraph.components(), [0, 1, 1]),
    ):
        assert [*runs] == ["cuGraph", "cuGraph, to the host"]
        for run in runs.values():
            seconds, answer = run(1)
            assert seconds > 0
            np.testing.assert_array_equal(answer, expected)


def test_an_answer_that_differs_stops_before_anything_is_timed():
    runs = []
    contest = contest_of(
        ours=lambda source: runs.append(source) or (0.0, 1), other=lambda _: (0.0, 2)
    )
    with pytest.raises(SystemExit, match="other disagrees with the others from 5"):
        programs.take_turns(contest, [5], 3)
    assert runs == [5]


def test_a_long_run_is_timed_once_for_each_source():
    seconds = {"short": 0.1, "long": programs._LONG_SECONDS + 1}
    contest = contest_of(
        **{name: lambda _, took=took: (took, None) for name, took in seconds.items()}
    )
    times = programs.take_turns(contest, [3, 4], 3)
    assert times == {"short": [0.1] * 6, "long": [seconds["long"]] * 2}
