"""Shortest paths in graphs whose chains are contracted, against SciPy and the check."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st
from planned_paths import planned

import hetero_bfs as hb
from hetero_bfs.algorithms.sssp import host
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.host import ChainSearch
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling.algorithm_decision import WindowPlan, WindowStrategy


def graph_of(pairs, vertices: int, weights, directed: bool = False) -> EdgeList:
    plain = EdgeList.from_arrays(*np.array(pairs).reshape(-1, 2).T, vertices, directed)
    return EdgeList(plain.src, plain.dst, vertices, directed, np.asarray(weights))


def path(first: int, last: int) -> list[tuple[int, int]]:
    return [(v, v + 1) for v in range(first, last)]


SHAPES = {
    "path": path(0, 40),
    "ring": [*path(0, 40), (40, 0)],
    "ring with a tail": [*path(0, 40), (20, 0)],
    "two hubs and three chains": [
        *path(0, 30),
        (0, 31),
        *path(31, 35),
        (35, 30),
        (0, 36),
        (36, 30),
    ],
    "three tails": [*path(0, 10), (0, 11), *path(11, 20), (0, 21), *path(21, 40)],
    "parts": [*path(0, 10), *path(11, 20), (20, 11), (22, 23), *path(24, 30), (26, 31), (26, 32)],
}


def searches_of(edges: EdgeList, threads: int = 1, plan: WindowPlan | None = None) -> PathSearches:
    with mock.patch.object(host, "_LEAST_EDGES", 0), planned(plan):
        return PathSearches(build_search_graph(edges), threads)


def confirm_all(edges: EdgeList, searches: PathSearches) -> None:
    graph, n = hb.CSRGraph.from_edge_source(edges), edges.num_vertices
    lists = graph.weights.astype(np.float64), graph.indices.astype(np.int64), graph.indptr
    matrix = scipy.sparse.csr_array(lists, (n, n))
    for source in range(n):
        result = searches.run(source)
        expected = scipy.sparse.csgraph.dijkstra(matrix, indices=source)
        np.testing.assert_array_equal(result.distance, expected)
        hb.check_paths(edges, source, result.distance, result.parent).raise_if_invalid()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("heaviest", [1, 50, 1 << 27], ids=["zeros", "small", "beyond int32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_source_of_every_shape(shape, heaviest):
    pairs = SHAPES[shape]
    weights = np.random.default_rng(1).integers(0, heaviest, len(pairs)).astype(np.int32)
    edges = graph_of(pairs, 42, weights)
    with searches_of(edges) as searches:
        if heaviest <= 50:
            assert isinstance(searches.host, ChainSearch)
        confirm_all(edges, searches)


@given(seed=st.integers(0, 2**32 - 1), vertices=st.integers(2, 40))
def test_any_graph_of_few_edges(seed, vertices):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, vertices + 2))
    weights = rng.integers(0, rng.choice([2, 40, 1 << 30]), count).astype(np.int32)
    edges = graph_of(rng.integers(0, vertices, (count, 2)), vertices, weights)
    with searches_of(edges) as searches:
        confirm_all(edges, searches)


@pytest.mark.parametrize("strategy", [WindowStrategy.PREFIX, WindowStrategy.FULL])
def test_a_given_plan_replaces_that_of_the_graph(strategy):
    edges = graph_of(
        SHAPES["three tails"], 41, np.arange(len(SHAPES["three tails"]), dtype=np.int32)
    )
    with searches_of(edges, plan=WindowPlan(strategy, 2.0, 5.0)) as searches:
        assert isinstance(searches.host, ChainSearch) == (strategy is WindowStrategy.FULL)
        confirm_all(edges, searches)
        assert searches.run(5).traces[0].strategy == strategy.label


def test_several_threads_fill_in_the_distances_of_a_large_graph(many_threads):
    side = 150
    ids = np.arange(side * side).reshape(side, side)
    cross = np.concatenate([np.stack([ids[:, :-1], ids[:, 1:]], -1).reshape(-1, 2),
                            np.stack([ids[:-1], ids[1:]], -1).reshape(-1, 2)])  # fmt: skip
    middle = side * side + np.arange(2 * len(cross)).reshape(-1, 2)
    pairs = np.concatenate([np.stack([cross[:, 0], middle[:, 0]], 1), middle,
                            np.stack([middle[:, 1], cross[:, 1]], 1)])  # fmt: skip
    weights = np.random.default_rng(1).integers(1, 256, len(pairs)).astype(np.int32)
    edges = graph_of(pairs, int(pairs.max()) + 1, weights)
    with searches_of(edges, 3) as searches:
        assert isinstance(searches.host, ChainSearch)
        for source in (0, edges.num_vertices - 1):
            result = searches.run(source)
            check = hb.check_paths(edges, source, result.distance, result.parent)
            assert check.valid, check.message


@pytest.mark.parametrize(
    ("directed", "weights"),
    [
        (True, np.ones(40, np.int32)),
        (False, np.ones(40, np.float32)),
        (False, np.full(40, 1 << 29, np.int32)),
        (False, np.full(40, np.iinfo(np.int32).max, np.int32)),
    ],
    ids=["directed", "floats", "heavy chains", "the largest weight"],
)
def test_which_graphs_are_not_contracted(directed, weights):
    edges = graph_of(path(0, 40), 41, weights, directed)
    with searches_of(edges) as searches:
        assert not isinstance(searches.host, ChainSearch)
        confirm_all(edges, searches)
