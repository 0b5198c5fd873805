"""Calls on a graph: the same answers by one thread and by engines, which are kept and released."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from forking import in_child

import hetero_bfs as hb
from hetero_bfs.engine import kept
from hetero_bfs.engine.engine import Engine
from hetero_bfs.engine.kept import KeptGraph, kept_of
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling import run_chooser
from hetero_bfs.support import memory


@pytest.fixture(autouse=True)
def _closed_at_the_end():
    yield
    kept.close_all()


def random_edges(directed, dtype):
    random = np.random.default_rng(5)
    ends = random.integers(0, 70, (2, 130)).astype(np.uint32)
    weights = random.integers(0, 9, 130).astype(dtype) * np.asarray(0.75, dtype).astype(dtype)
    if dtype is np.int32:
        weights = random.integers(0, 9, 130).astype(dtype)
    return hb.EdgeList(*ends, 75, directed, weights)


def edges_of(pairs, n, directed=False):
    ends = np.array(pairs, np.uint32).reshape(-1, 2).T
    return hb.EdgeList(*ends, n, directed, np.arange(ends.shape[1], dtype=np.float64))


EDGES = {
    "one vertex": edges_of([], 1),
    "isolated": edges_of([], 5),
    "loops": edges_of([(0, 0), (2, 2), (2, 2)], 3),
    "duplicates": edges_of([(0, 1), (1, 0), (0, 1), (1, 2), (3, 3), (4, 5)], 8),
    "path": edges_of([(i, i + 1) for i in range(60)], 61),
    "directed cycle and tail": edges_of([(0, 1), (1, 2), (2, 0), (2, 3), (5, 2)], 6, True),
    **{
        f"random, {name}, {kind.__name__}": random_edges(name == "directed", kind)
        for name in ("undirected", "directed")
        for kind in (np.int32, np.float32, np.float64)
    },
}
QUERIES = [
    {},
    {"depth_limit": 0},
    {"depth_limit": 2},
    {"target": 2},
    {"target": 2, "depth_limit": 1},
    {"target": 0},
    {"mask": [2, 3]},
    {"mask": [2], "target": 2},
    {"reverse": True},
    {"reverse": True, "target": 2, "want": "levels"},
    {"want": "levels"},
    {"dtype": "int32"},
]


def both(monkeypatch, call):
    """Return a call's results by one thread and by what is kept open."""
    found = []
    for pays in (False, True):
        monkeypatch.setattr(KeptGraph, "_pays", lambda *_, pays=pays: pays)
        found.append(call())
    return found


@pytest.mark.parametrize("make", [lambda edges: edges, hb.CSRGraph.from_edge_source])
@pytest.mark.parametrize("name", EDGES)
def test_searches_find_the_same(monkeypatch, name, make):
    graph = make(EDGES[name])
    n = graph.num_vertices
    for query in QUERIES:
        if any(v >= n for v in (query.get("target", 0), *query.get("mask", ()))):
            continue
        for source in (0, n - 1, [0, n - 1, 0], list(range(0, n, 3))):
            if set(np.atleast_1d(source)) & set(query.get("mask", ())):
                continue
            one, other = both(
                monkeypatch, lambda source=source, query=query: hb.bfs(graph, source, **query)
            )
            assert one.level.tolist() == other.level.tolist(), (query, source)
            assert (one.level.dtype, one.parent.dtype) == (other.level.dtype, other.parent.dtype)
            assert (one.parent >= 0).tolist() == (other.parent >= 0).tolist()
            for what in ("nedge", "reached", "sources", "directed", "reverse"):
                assert getattr(one, what) == getattr(other, what), (what, query, source)
            assert one.input_degree.tolist() == other.input_degree.tolist()
            assert [trace.strategy for trace in one.traces] == ["serial"]
            assert one.traces[0].found_vertices == one.reached - len(one.sources)
            if query == {} and isinstance(source, int):
                hb.validate(graph, source, one.parent)


@pytest.mark.parametrize("name", EDGES)
def test_levels_are_scipys(name):
    graph = hb.CSRGraph.from_edge_source(EDGES[name])
    ones = np.ones(graph.num_stored_edges), graph.indices, graph.indptr
    n = graph.num_vertices
    matrix = scipy.sparse.csr_array(ones, shape=(n, n))
    theirs = scipy.sparse.csgraph.shortest_path(matrix, unweighted=True)
    theirs[np.isinf(theirs)] = -1
    assert np.array_equal([hb.bfs(graph, v).level for v in range(n)], theirs)
    assert np.array_equal(hb.bfs_many(graph, range(n)).level, theirs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EDGES)
def test_other_algorithms_find_the_same(monkeypatch, name):
    edges = EDGES[name]
    graph, n = hb.CSRGraph.from_edge_source(edges), edges.num_vertices
    for source in {0, n // 2, n - 1}:
        one, other = both(monkeypatch, lambda source=source: hb.sssp(graph, source))
        assert one.distance.dtype == np.float64
        assert one.distance.tolist() == other.distance.tolist()
        hb.check_paths(graph, source, one.distance, one.parent)
        assert one.parent.dtype == other.parent.dtype
    one, other = both(monkeypatch, lambda: hb.connected_components(graph))
    assert one.component.tolist() == other.component.tolist()
    assert (one.component.dtype, one.num_components) == (np.int64, other.num_components)
    one, other = both(monkeypatch, lambda: hb.colour(graph))
    assert one.colour.tolist() == other.colour.tolist()
    for options in ({}, {"personalization": np.arange(1.0, n + 1)}):
        one, other = both(
            monkeypatch, lambda options=options: hb.pagerank(graph, tol=1e-10, **options)
        )
        np.testing.assert_allclose(one.rank, other.rank, atol=1e-8)
    queries = [{}, {"depth_limit": 1}, {"want": "sums"}, {"reverse": True}]
    for query in queries if n > 3 else queries[:2]:
        for sources in ([], [0, n - 1, 0]):
            one, other = both(
                monkeypatch,
                lambda sources=sources, query=query: hb.bfs_many(graph, sources, **query),
            )
            for what in ("sources", "reached", "eccentricity", "distance_sum"):
                assert getattr(one, what).tolist() == getattr(other, what).tolist()
            if query != {"want": "sums"}:
                assert one.level.tolist() == other.level.tolist()


def test_distances_beyond_float32_are_found_in_float64(monkeypatch):
    graph = hb.CSRGraph.from_edges([0, 1], [1, 2], weights=np.float32([3e38, 3e38]))
    one, other = both(monkeypatch, lambda: hb.sssp(graph, 0))
    large = float(np.float32(3e38))
    assert one.distance.tolist() == other.distance.tolist() == [0, large, 2 * large]


@pytest.mark.parametrize("pays", [False, True])
def test_errors_are_the_same(monkeypatch, pays):
    monkeypatch.setattr(KeptGraph, "_pays", lambda *_: pays)
    empty = hb.CSRGraph.from_edges([], [], 0)
    with pytest.raises(GraphError, match="vertex 0 is not in the graph, which has no vertices"):
        hb.bfs(empty, 0)
    assert hb.connected_components(empty).num_components == 0
    assert hb.colour(empty).colour.size == hb.pagerank(empty).rank.size == 0
    plain = hb.CSRGraph.from_edges([0, 1], [1, 2])
    for call in (lambda: hb.sssp(plain, 0), lambda: hb.pagerank(plain, weighted=True)):
        with pytest.raises(GraphError, match="the graph has no weights"):
            call()
    negative = hb.CSRGraph.from_edges([0, 1], [1, 2], weights=[1.0, -2.0])
    for call in (lambda: hb.sssp(negative, 0), lambda: hb.pagerank(negative, weighted=True)):
        with pytest.raises(GraphError, match=r"edge \(\d, \d\) has weight -2.0"):
            call()


def graph_of_path(n=50):
    return hb.CSRGraph.from_edges(range(n - 1), range(1, n))


def spend(graph, seconds, kind=Engine):
    """Let calls on the graph have taken this long."""
    kept_of(graph).chooser.spent[kind] = seconds


def strategies(result):
    return {trace.strategy for trace in result.traces}


def test_an_engine_opens_when_calls_took_as_long_as_it_takes():
    graph = graph_of_path()
    assert strategies(hb.bfs(graph, 0)) == {"serial"}
    assert not kept_of(graph).is_open
    spend(graph, 60.0)
    found = hb.bfs(graph, 3)
    assert kept_of(graph).is_open
    assert "serial" not in strategies(found)
    assert found.level.tolist() == [abs(3 - v) for v in range(50)]
    assert "serial" in strategies(hb.connected_components(graph))  # has not paid itself
    assert "serial" not in strategies(hb.bfs_many(graph, [1]))  # has the same engine


def test_one_thread_answers_where_the_engine_is_slower():
    graph = graph_of_path()
    hb.bfs(graph, 0)
    spend(graph, 60.0)
    record = kept_of(graph).chooser
    answers = [strategies(hb.bfs(graph, 0)) for _ in range(run_chooser._JUDGED)]
    assert {"serial"} not in answers  # its first answers may compile
    record._serial[Engine].extend([-1.0] * run_chooser._JUDGED)
    assert strategies(hb.bfs(graph, 0)) == {"serial"}
    spend(graph, 60.0)
    assert "serial" not in strategies(hb.bfs(graph, 0))  # tries it again
    assert strategies(hb.bfs(graph, 0)) == {"serial"}


def test_a_few_slow_answers_of_an_engine_do_not_count():
    graph = graph_of_path()
    hb.bfs(graph, 0)
    spend(graph, 60.0)
    for _ in range(run_chooser._JUDGED):
        hb.bfs(graph, 0)
    record = kept_of(graph).chooser
    record._serial[Engine].extend([60.0] * run_chooser._JUDGED)
    record._engine[Engine].extend([1e9] * (run_chooser._JUDGED // 2 - 1))
    assert "serial" not in strategies(hb.bfs(graph, 0))
    record._engine[Engine].extend([1e9] * (run_chooser._JUDGED // 2 + 1))
    assert strategies(hb.bfs(graph, 0)) == {"serial"}


def test_compiling_counts(monkeypatch):
    graph = graph_of_path()
    monkeypatch.setattr(run_chooser._Measured, "opened", set())
    monkeypatch.setattr(run_chooser, "was_compiled", lambda _: False)
    spend(graph, run_chooser._COMPILING_SECONDS - 1)
    assert strategies(hb.bfs(graph, 0)) == {"serial"}
    monkeypatch.setattr(run_chooser, "was_compiled", lambda _: True)
    assert "serial" not in strategies(hb.bfs(graph, 0))


@pytest.mark.parametrize("given", [{"device": "cpu"}, {"threads": 1}])
def test_options_open_an_engine_of_their_own(given):
    graph = graph_of_path()
    assert "serial" not in strategies(hb.bfs(graph, 0, **given))
    assert not kept_of(graph).is_open


def test_few_engines_stay_open():
    graphs = [graph_of_path(5 + i) for i in range(kept.MOST_KEPT + 2)]
    for graph in graphs:
        spend(graph, 60.0)
        assert hb.bfs(graph, 1).reached == graph.num_vertices
    is_open = [kept_of(graph).is_open for graph in graphs]
    assert is_open == [False] * 2 + [True] * kept.MOST_KEPT
    hb.bfs(graphs[2], 0)
    spend(graphs[0], 60.0)
    hb.bfs(graphs[0], 0)
    assert [kept_of(graph).is_open for graph in graphs[:4]] == [True, False, True, False]


def test_what_takes_too_much_memory_is_not_kept(monkeypatch):
    monkeypatch.setattr(kept, "_MOST_SHARE", 0.0)
    graph = graph_of_path()
    spend(graph, 60.0)
    assert hb.bfs(graph, 0).reached == 50
    assert not kept_of(graph).is_open
    spend(graph, 60.0)  # which an engine that cannot stay does not save
    assert strategies(hb.bfs(graph, 0)) == {"serial"}
    edges = hb.EdgeList([0, 1], [1, 2], 3)
    assert hb.bfs(edges, 0).level.tolist() == [0, 1, 2]
    assert kept_of(edges).num_bytes == 0


def test_memory_comes_back_before_it_is_refused(monkeypatch):
    graph = graph_of_path()
    spend(graph, 60.0)
    hb.bfs(graph, 0)
    free = iter([0, 2**40])
    monkeypatch.setattr(memory, "free_bytes", lambda: next(free))
    memory.check_free_memory(1, "a test", "none")
    assert not kept_of(graph).is_open


def test_without_memory_one_thread_goes_on(monkeypatch):
    graph = graph_of_path()
    spend(graph, 60.0)
    monkeypatch.setattr(memory, "free_bytes", lambda: 0)
    assert strategies(hb.bfs(graph, 0)) == {"serial"}


@pytest.mark.parametrize("make", [graph_of_path, lambda: build_search_graph(graph_of_path())])
def test_engines_close_with_their_graph(make):
    graph = make()
    if isinstance(graph, hb.CSRGraph):
        spend(graph, 60.0)
    assert hb.bfs(graph, 0).reached == 50
    record = kept_of(graph)
    assert record.is_open
    [engine] = record._opened.values()
    seen = weakref.ref(graph)
    del graph
    gc.collect()
    assert seen() is None
    assert engine._platform is None
    assert not record.is_open


@pytest.mark.parametrize(
    "call", [lambda graph: hb.bfs(graph, 0), hb.connected_components], ids=["bfs", "components"]
)
def test_a_result_does_not_keep_the_graph(call):
    graph = hb.CSRGraph.from_edges([0, 1], [1, 2])
    result, seen = call(graph), weakref.ref(graph)
    del graph
    gc.collect()
    assert seen() is None
    assert len(result.traces) == 1


def test_edges_that_are_no_graph_are_read_once():
    class Source:
        num_vertices, num_input_edges, directed, both_directions = 3, 2, False, False
        passes = 0

        def chunks(self, size=1):
            self.passes += 1
            yield np.array([0, 1], np.uint32), np.array([1, 2], np.uint32)

    source = Source()
    assert hb.bfs(source, 0).level.tolist() == [0, 1, 2]
    before = source.passes
    assert hb.bfs(source, 2).level.tolist() == [2, 1, 0]
    assert hb.connected_components(source).num_components == 1
    assert source.passes == before


def test_an_object_without_weak_references_is_not_kept():
    class Source:
        __slots__ = ()
        num_vertices, num_input_edges, directed, both_directions = 2, 1, False, False

        def chunks(self, size=1):
            yield np.array([0], np.uint32), np.array([1], np.uint32)

    source = Source()
    count = len(kept._KEPT)
    assert hb.bfs(source, 0).level.tolist() == hb.bfs(source, 0).level.tolist() == [0, 1]
    assert len(kept._KEPT) == count


def test_a_pickled_graph_takes_no_engine_along():
    graph = graph_of_path()
    spend(graph, 60.0)
    hb.bfs(graph, 0)
    other = pickle.loads(pickle.dumps(graph))
    assert not kept_of(other).is_open
    assert hb.bfs(other, 0).reached == 50


def test_arrays_that_change_behind_the_view_are_refused():
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0], np.uint32)
    graph = hb.CSRGraph(indptr, indices, False, 1, np.ones(2, np.uint32))
    assert hb.bfs(graph, 0).level.tolist() == [0, 1]
    indices[0] = 4_000_000_000
    with pytest.raises(GraphError, match="arrays changed after it was made"):
        hb.bfs(graph, 0)
    indices[0], indptr[1] = 1, 4_000_000_000
    with pytest.raises(GraphError, match="arrays changed after it was made"):
        hb.connected_components(graph)


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_threads_search_one_graph(seconds):
    graph = graph_of_path(300)
    wrong, start = [], threading.Barrier(4)

    def search(first):
        start.wait()
        for source in range(first, 300, 7):
            level = hb.bfs(graph, source).level
            if not np.array_equal(level, abs(np.arange(300) - source)):
                wrong.append(source)
            if source % 3 == 0:
                kept.close_all()
                spend(graph, seconds)

    spend(graph, seconds)
    threads = [threading.Thread(target=search, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_searches_without_its_parents_engine():
    graph = graph_of_path()
    spend(graph, 60.0)
    hb.bfs(graph, 0)

    def search() -> bool:
        found = [hb.bfs(graph, 1).level[49]]
        spend(graph, 60.0)
        found += [hb.bfs(graph, 1).level[49], hb.connected_components(graph).num_components]
        return found == [48, 48, 1]

    assert in_child(search, kept._LOCK, kept_of(graph)._lock)
    assert kept_of(graph).is_open
    assert "serial" not in strategies(hb.bfs(graph, 1))
