"""Weights of edges: checks, duplicates, and their places after every way of building lists."""

from __future__ import annotations

from collections import defaultdict

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import hetero_bfs as hb
from hetero_bfs.graph import lists
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph

COMBINE = {"min": min, "max": max, "sum": sum}
DTYPES = [np.int32, np.float32, np.float64]


def plain(edges: EdgeList) -> dict[tuple[int, int], float]:
    """Return the weight of every directed pair by plain Python."""
    found = defaultdict(list)
    for u, v, w in zip(edges.src.tolist(), edges.dst.tolist(), edges.weights.tolist(), strict=True):
        if u != v:
            found[u, v].append(w)
            if not edges.directed:
                found[v, u].append(w)
    combine = COMBINE[edges.duplicates]
    return {pair: combine(weights) for pair, weights in found.items()}


def held(graph: hb.CSRGraph, names=None) -> dict[tuple[int, int], float]:
    """Return the weight of every entry of a graph's lists, its vertices called by `names`."""
    names = np.arange(graph.num_vertices) if names is None else names
    src = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    pairs = zip(names[src].tolist(), names[graph.indices].tolist(), strict=True)
    return dict(zip(pairs, graph.weights.tolist(), strict=True))


@st.composite
def weighted_edges(draw):
    count, vertices = draw(st.integers(0, 60)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = rng.integers(-9, 10, count).astype(draw(st.sampled_from(DTYPES)))
    ends = rng.integers(0, vertices, (2, count))
    rule = draw(st.sampled_from(sorted(COMBINE)))
    return EdgeList.from_arrays(*ends, vertices, draw(st.booleans()), weights, rule)


@given(edges=weighted_edges())
def test_weights_find_their_edges(edges):
    graph = hb.CSRGraph.from_edge_source(edges)
    assert held(graph) == plain(edges)
    assert graph.weights.dtype == edges.weights.dtype
    turned = {(v, u): w for (u, v), w in plain(edges).items()}
    assert held(graph.transpose) == turned
    again = hb.CSRGraph.from_edge_source(graph)
    assert held(again) == held(graph)


@given(edges=weighted_edges(), order=st.sampled_from(["degree", "locality", "compact", "given"]))
def test_relabelling_keeps_weights(edges, order):
    built = build_search_graph(edges, order)
    names = built.relabelling.old_of_new
    assert held(built.graph, names) == plain(edges)
    turned = {(v, u): w for (u, v), w in plain(edges).items()}
    assert held(built.graph.transpose, names) == turned


@pytest.mark.parametrize("bucket_edges", [lists._BUCKET_EDGES, 4000, 64])
def test_many_chunks_and_buckets(monkeypatch, bucket_edges):
    """Duplicates come in several chunks and by several threads.

    With 64 edges each list is longer than a bucket.
    """
    monkeypatch.setattr(lists, "_BUCKET_EDGES", bucket_edges)
    monkeypatch.setattr(lists, "_MAX_BUCKETS", 1 << 20)
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 500, (2, 40_000))
    weights = rng.integers(1, 1000, src.size)
    edges = EdgeList.from_arrays(src, dst, 500, weights=weights, duplicates="sum")

    class Small(EdgeList):
        def chunks(self, size=997):
            return super().chunks(min(size, 997))

        def weighted_chunks(self, size=997):
            return super().weighted_chunks(min(size, 997))

    small = Small(src, dst, 500, weights=weights, duplicates="sum")
    expected = plain(edges)
    assert held(hb.CSRGraph.from_edge_source(small)) == expected
    assert held(hb.CSRGraph.from_edge_source(edges)) == expected


@settings(max_examples=40)
@given(
    edges=weighted_edges(),
    bucket_edges=st.integers(1, 70),
    line_keys=st.sampled_from([1, 2, 16]),
    order=st.sampled_from(["degree", "locality", "given"]),
    threads=st.integers(1, 5),
)
def test_weights_in_any_buckets(monkeypatch, edges, bucket_edges, line_keys, order, threads):
    with monkeypatch.context() as patch:
        patch.setattr(lists, "_BUCKET_EDGES", bucket_edges)
        patch.setattr(lists, "_MAX_BUCKETS", 1 << 20)
        patch.setattr(lists, "_line_keys", lambda num_lines, num_keys: line_keys)
        patch.setattr("numba.get_num_threads", lambda: threads)
        built = build_search_graph(edges, order)
        assert held(built.graph, built.relabelling.old_of_new) == plain(edges)


@pytest.mark.parametrize("bucket_edges", [lists._BUCKET_EDGES, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_directions_of_an_edge_have_the_same_sum(monkeypatch, bucket_edges, dtype):
    """Rounding depends on the order of the terms, so it must be the same for both ends."""
    monkeypatch.setattr(lists, "_BUCKET_EDGES", bucket_edges)
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 30, (2, 20_000))
    weights = (rng.random(src.size) * 10.0 ** rng.integers(-9, 9, src.size)).astype(dtype)
    graph = hb.CSRGraph.from_edges(src, dst, weights=weights, duplicates="sum")
    found = held(graph)
    assert all(found[v, u] == weight for (u, v), weight in found.items())
    fields = (graph.indptr, graph.indices, False, graph.num_input_edges, graph.input_degree)
    assert hb.CSRGraph(*fields, graph.weights).weights is not None


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1, 2], "one weight"),
        ([1.0, np.nan, 3.0], r"weights\[1\] is NaN"),
        ([1j, 2j, 3j], "complex128"),
        (["1", "2", "3"], "int32, float32 or float64"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "masked"),
    ],
)
def test_what_is_no_weight_is_refused(weights, said):
    with pytest.raises(hb.GraphError, match=said):
        hb.CSRGraph.from_edges([0, 1, 2], [1, 2, 3], weights=weights)


def test_an_unknown_rule_is_refused():
    with pytest.raises(hb.ArgumentError, match='"min", "max", "sum"'):
        hb.CSRGraph.from_edges([0], [1], weights=[1], duplicates="first")


def test_a_sum_beyond_int32_is_refused():
    with pytest.raises(hb.GraphError, match="float64"):
        hb.CSRGraph.from_edges([0, 0], [1, 1], weights=[2**30, 2**30], duplicates="sum")


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, np.float64])
def test_types_that_become_others(dtype):
    graph = hb.CSRGraph.from_edges([0, 1], [1, 2], weights=np.array([3, 4], dtype))
    wanted = {np.uint8: np.int32, np.int64: np.int32, np.float16: np.float32}.get(dtype, dtype)
    assert graph.weights.dtype == wanted
    assert held(graph) == {(0, 1): 3, (1, 0): 3, (1, 2): 4, (2, 1): 4}


def test_weights_are_read_only():
    graph = hb.CSRGraph.from_edges([0, 1], [1, 2], weights=[3, 4])
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 1


def test_unlike_weights_of_one_edge_are_refused():
    indptr, indices, degree = [0, 1, 2], [1, 0], [1, 1]
    with pytest.raises(hb.GraphError, match=r"edge \(0, 1\) .* has weight 5"):
        hb.CSRGraph(indptr, indices, False, 1, degree, weights=[5, 6])
    assert hb.CSRGraph(indptr, indices, False, 1, degree, weights=[5, 5]).weights.tolist() == [5, 5]
    assert hb.CSRGraph(indptr, indices, True, 2, degree, weights=[5, 6]).weights.tolist() == [5, 6]


def test_from_scipy_values_are_weights():
    matrix = scipy.sparse.csr_array(([2.5, 3.5], ([0, 1], [1, 2])), (3, 3))
    graph = hb.CSRGraph.from_scipy(matrix, directed=True, weighted=True)
    assert held(graph) == {(0, 1): 2.5, (1, 2): 3.5}
    assert hb.CSRGraph.from_scipy(matrix).weights is None


def test_from_networkx_an_attribute_is_the_weight():
    graph = networkx.MultiDiGraph()
    graph.add_edge("a", "b", cost=4)
    graph.add_edge("a", "b", cost=2)
    graph.add_edge("b", "c")
    assert held(hb.CSRGraph.from_networkx(graph, weight="cost")) == {(0, 1): 2, (1, 2): 1}
    summed = hb.CSRGraph.from_networkx(graph, weight="cost", duplicates="sum")
    assert held(summed) == {(0, 1): 6, (1, 2): 1}
    assert hb.CSRGraph.from_networkx(graph).weights is None


class Fickle(EdgeList):
    """Gives `others` when it is read again."""

    def weighted_chunks(self, size=0):
        read_before = self.__dict__.get("read_before", False)
        self.__dict__["read_before"] = True
        yield self.others if read_before else (self.src, self.dst, self.weights)


def test_a_source_whose_second_reading_differs_is_refused():
    edges = Fickle([0, 1, 2], [1, 2, 3], 5, weights=[1, 2, 3])
    edges.__dict__["others"] = (
        np.array([1, 2], np.uint32),
        np.array([2, 3], np.uint32),
        edges.weights[:2],
    )
    with pytest.raises(hb.GraphError, match="gave different edges the second time"):
        hb.CSRGraph.from_edge_source(edges)


def test_an_end_that_had_no_edge_before_is_refused():
    edges = Fickle([0, 1, 2], [1, 2, 3], 5, weights=[1, 2, 3])
    edges.__dict__["others"] = edges.src, np.array([1, 2, 4], np.uint32), edges.weights
    with pytest.raises(hb.GraphError, match="gave different edges the second time"):
        build_search_graph(edges, "degree")


@pytest.mark.parametrize(
    ("chunk", "said"),
    [
        (lambda e: (e.src, e.dst, e.weights.astype(np.float64)), "weights of a chunk .* int32"),
        (lambda e: (e.src, e.dst, e.weights[:2]), "3 edges and 2 weights"),
        (lambda e: (e.src.astype(np.int64), e.dst, e.weights), "src of a chunk .* uint32"),
    ],
)
def test_a_wrong_chunk_is_refused(chunk, said):
    class Wrong(EdgeList):
        def weighted_chunks(self, size=0):
            yield chunk(self)

    with pytest.raises(hb.GraphError, match=said):
        hb.CSRGraph.from_edge_source(Wrong([0, 1, 2], [1, 2, 3], 5, weights=[1, 2, 3]))
