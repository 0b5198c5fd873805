"""Vertex programs by simulated ranks: the states of one process, for any number of ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import nasty
from sample_programs import (
    Communities,
    Distances,
    Extremes,
    Farthest,
    Labels,
    Parents,
    Ranks,
    Reached,
)
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import AgreedError, GraphError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.ranks.construction import construct

RANKS = (1, 2, 5)


def weighted(edges: EdgeList, duplicates="min", dtype=np.float32) -> EdgeList:
    weights = np.random.default_rng(7).integers(1, 60, edges.src.size).astype(dtype)
    return replace(edges, weights=weights, duplicates=duplicates)


def by_ranks(edges, ranks, run):
    """Run a function of an engine by so many ranks; return what the last one returned."""

    def work(communicator):
        return run(RankEngine(edges if communicator.rank == 0 else None, communicator))

    return run_ranks(ranks, work)[-1]


CASES = {
    "two fields": (Labels(), {}),
    "a method that combines": (Farthest(), {}),
    "priority and weights": (Distances(), {"source": 3}),
    "sums": (Ranks(), {"alpha": 0.85, "tol": 1e-9}),
    "totals of every kind": (Extremes(), {}),
    "array": (Reached(), {"mask": (np.arange(6000) % 7).astype(np.uint32)}),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("graph", "directed"), [("Kronecker 10", False), ("star", False), ("R-MAT", True)]
)
@pytest.mark.parametrize("case", CASES)
def test_states_are_those_of_one_process(case, graph, directed):
    program, parameters = CASES[case]
    edges = weighted(nasty(graph, directed))
    parameters = {
        name: value[: edges.num_vertices] if isinstance(value, np.ndarray) else value
        for name, value in parameters.items()
    }
    with hb.Engine(edges, device="cpu", threads=1) as engine:
        expected = engine.run(program, **parameters)
    for ranks in RANKS:
        for direction in ("auto", "push", "pull") if ranks == 2 else ("auto",):
            options = hb.RunOptions(direction=direction)

            def run(engine, options=options):
                result = engine.run(program, options, **parameters)
                return result, {name: result.gathered(name) for name in program.state}

            result, states = by_ranks(edges, ranks, run)
            assert result.converged
            for name, state in states.items():
                np.testing.assert_allclose(state, expected.state[name], rtol=1e-12)


@pytest.mark.parametrize("way", ["in", "both"])
def test_messages_against_edges(way):
    program = Distances()
    program.along = way
    edges = weighted(nasty("R-MAT", directed=True))
    source = int(edges.dst[0])
    with hb.Engine(edges, device="cpu", threads=1) as engine:
        expected = engine.run(program, source=source).state["distance"]
    found = by_ranks(edges, 3, lambda e: e.run(program, source=source).gathered("distance"))
    np.testing.assert_array_equal(found, expected)


def test_any_one_message_will_do():
    edges = nasty("Kronecker 10")
    source = int(edges.src[0])
    parent = by_ranks(edges, 3, lambda engine: engine.run(Parents(), source=source)).state
    found = by_ranks(
        edges, 3, lambda engine: engine.run(Parents(), source=source).gathered("parent")
    )
    assert parent["parent"].size < found.size
    outcome = hb.validate(edges, source, found.astype(np.int64))
    assert outcome.valid, outcome.message


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "directed"), [(np.int32, True), (np.float32, False)])
def test_shortest_paths(dtype, directed):
    edges = weighted(nasty("Kronecker 10", directed), dtype=dtype)
    source = int(edges.src[0])
    expected = hb.sssp(edges, source, device="cpu")
    for ranks in RANKS:
        found = by_ranks(edges, ranks, lambda engine: engine.sssp(source))
        np.testing.assert_array_equal(found.distance, expected.distance)
        check = hb.check_paths(edges, source, found.distance, found.parent)
        assert check.valid, check.message


@pytest.mark.parametrize("rule", ["min", "max", "sum"])
def test_weights_of_duplicates(rule):
    """Rank 0 has all edges; each rank's lists have the weights that one process finds."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 30, (2, 900)).astype(np.uint32)
    edges = weighted(EdgeList(src, dst, 30), rule, np.int32)
    whole = build_search_graph(edges, "degree")
    old = whole.relabelling.old_of_new
    lists = whole.graph
    expected = sorted(
        (int(old[u]), int(old[lists.indices[k]]), int(lists.weights[k]))
        for u in range(old.size)
        for k in range(lists.indptr[u], lists.indptr[u + 1])
    )

    def triples(engine):
        graph, names = engine.graph.graph, engine.graph.relabelling.old_of_new
        return [
            (int(names[u]), int(names[graph.indices[k]]), int(graph.weights[k]))
            for u in range(graph.indptr.size - 1)
            for k in range(graph.indptr[u], graph.indptr[u + 1])
        ]

    found = run_ranks(
        3, lambda c: triples(RankEngine(edges if c.rank == 0 else None, c)), host_size=2
    )
    assert sorted(triple for part in found for triple in part) == expected


def test_a_sum_of_weights_beyond_int32():
    weights = np.full(2, 2**31 - 1, np.int32)
    edges = EdgeList(np.array([0, 1]), np.array([1, 0]), 2, False, weights, "sum")
    with pytest.raises(AgreedError, match="32-bit"):
        run_ranks(1, lambda c: construct(c, edges, 2))


@pytest.mark.parametrize(("name", "directed"), [("grid", False), ("sparse random", True)])
def test_components_and_ranks(name, directed):
    edges = nasty(name, directed)
    found = by_ranks(
        edges, 4, lambda engine: (engine.connected_components(), engine.pagerank(tol=1e-10))
    )
    expected = hb.connected_components(edges, device="cpu")
    np.testing.assert_array_equal(found[0].component, expected.component)
    assert found[0].num_components == expected.num_components
    ranks = hb.pagerank(edges, tol=1e-10, device="cpu").rank
    np.testing.assert_allclose(found[1].rank, ranks, atol=1e-8)


WEIGHTS = {
    "float32": np.float32([0, 0.5, 1, 7]),
    "int32": np.int32([0, 1, 2**31 - 1]),
    "float64, large": np.float64([1e308, 1.5e308, 0]),
    "float64, small": np.float64([1e-320, 5e-320, 0]),
    "float64, both": np.float64([1e-320, 1e308, 1]),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_ranks_by_weights_are_those_of_one_process(weights, directed):
    edges = nasty("sparse random", directed)
    drawn = np.random.default_rng(5).choice(WEIGHTS[weights], edges.src.size)
    edges = replace(edges, weights=drawn)
    share = np.zeros(edges.num_vertices)
    share[[3, 5]] = 1, 3
    with hb.Engine(edges, device="cpu", threads=1) as alone:
        for personalization in (None, share):
            asked = {"tol": 1e-12, "max_iter": 1000, "weighted": True}
            asked["personalization"] = personalization
            expected = alone.pagerank(**asked).rank
            for ranks in (1, 2, 3, 4) if weights == "float32" else (3,):
                found = by_ranks(edges, ranks, lambda engine, asked=asked: engine.pagerank(**asked))
                assert found.converged
                np.testing.assert_allclose(found.rank, expected, atol=1e-9)


def test_ranks_with_and_without_weights_on_one_engine():
    edges = weighted(nasty("R-MAT", directed=True))
    with hb.Engine(edges, device="cpu", threads=1) as alone:
        expected = [alone.pagerank(tol=1e-12, weighted=way).rank for way in (False, True, False)]
    found = by_ranks(
        edges,
        2,
        lambda engine: [engine.pagerank(tol=1e-12, weighted=w).rank for w in (False, True, False)],
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "asked", "words"),
    [
        (None, {"weighted": True}, "the graph has no weights"),
        (-1.0, {"weighted": True}, "has weight -1.0; weighted ranks need weights of at least 0"),
        (np.inf, {"weighted": True}, "weighted ranks need finite weights"),
        (1.0, {"weighted": 1}, "weighted is 1; give True or False"),
        (1.0, {"personalization": [1.0]}, "personalization has shape"),
        (1.0, {"personalization": ["a"] * 9}, "personalization holds no numbers"),
        (1.0, {"personalization": np.ma.array(np.ones(9), mask=np.arange(9) == 1)}, "1 of 9"),
    ],
)
def test_ranks_that_are_refused_on_all_ranks(weights, asked, words):
    ends = np.arange(8)
    values = None if weights is None else np.where(ends == 3, weights, 1.0)
    edges = EdgeList(ends, ends + 1, 9, True, values)
    with pytest.raises(AgreedError, match=words):
        by_ranks(edges, 3, lambda engine: engine.pagerank(**asked))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda engine: engine.bfs(0, reverse=1), "reverse is 1; give True or False"),
        (lambda engine: engine.bfs(np.ma.array(0, mask=True)), "not a vertex id"),
        (lambda engine: engine.run(Reached(), mask=[0] * 9), "parameter mask is"),
        (lambda engine: engine.run(Communities(), rounds=3), "most_frequent"),
        (lambda engine: engine.run(Labels(), hb.RunOptions(mode="asynchronous")), "synchronous"),
        (lambda engine: engine.sssp(10**6), "vertex 1000000"),
        (lambda engine: engine.bfs(-1), "vertex -1"),
        (lambda engine: engine.pagerank(alpha=3), "alpha"),
        (lambda engine: engine.run(Labels(), source=3), "no parameter"),
    ],
)
def test_what_is_refused_on_all_ranks(run, words):
    with pytest.raises(AgreedError, match=words):
        by_ranks(weighted(nasty("star")), 2, run)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("directed", [False, True])
def test_searches_are_those_of_one_process(directed, ranks):
    edges = nasty("R-MAT", directed)
    source = int(edges.src[0])
    with hb.Engine(edges, device="cpu", threads=1) as alone:
        every = [alone.bfs(source, reverse=reverse) for reverse in (False, True)]
    for reverse, expected in zip((False, True), every, strict=True):
        found = by_ranks(edges, ranks, lambda engine, way=reverse: engine.bfs(source, reverse=way))
        outcome = hb.validate(edges, source, found.parent, found.level, reverse=reverse)
        assert outcome.valid, outcome.message
        np.testing.assert_array_equal(found.level, expected.level)
        assert (found.nedge, found.reached) == (expected.nedge, expected.reached)
        for number, (trace, one) in enumerate(zip(found.traces, expected.traces, strict=True)):
            reached = np.count_nonzero(found.level == number)
            # In a directed graph a queue has only vertices with outgoing edges.
            assert trace.frontier_vertices == reached or directed
            assert trace.frontier_vertices <= reached
            assert trace.frontier_edges == one.features.frontier_edges


@pytest.mark.parametrize(("where", "words"), [(range(3), "rank 1: edges"), ((), "no edges")])
def test_edges_on_other_ranks_than_the_first(where, words):
    edges = nasty("star")
    with pytest.raises(AgreedError, match=words):
        run_ranks(3, lambda c: RankEngine(edges if c.rank in where else None, c))


class Source:
    """A user's own source of edges, whose chunks are `read[i]` when they are read again."""

    num_vertices, num_input_edges, directed, both_directions = 3, 2, False, False

    def __init__(self, *read, weights=None, input_degree=None):
        self.read, self.times, self.input_degree = read, -1, input_degree
        self.weight_dtype = None if weights is None else weights.dtype
        self.weights = weights

    def chunks(self, size=0):
        self.times = min(self.times + 1, len(self.read) - 1)
        yield tuple(np.asanyarray(ends) for ends in self.read[self.times])

    def weighted_chunks(self, size=0):
        yield *next(self.chunks()), self.weights


U = np.uint32
MASKED = np.ma.array([0, 1], dtype=np.uint32, mask=[False, True])


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Source((U([0, 1]), U([1, 3]))), r"edge \(1, 3\) in a graph of only 3 vertices"),
        (Source((MASKED, U([1, 2]))), "src of a chunk of edges has 1 of 2 entries masked"),
        (Source((U([0, 1]), U([1]))), "src has 2 entries and dst 1"),
        (Source(([0.0, 1.0], [1.0, 2.0])), "src of a chunk of edges holds float64"),
        (Source((U([[0, 1]]), U([[1, 2]]))), "src of a chunk of edges"),
        (Source((U([0, 1]), U([1, 2])), weights=np.ones(3)), "2 edges and 3 weights"),
        (Source((U([0, 1]), U([1, 2])), weights=np.float32([1, np.nan])), "is NaN"),
        (Source((U([0, 1]), U([1, 2])), input_degree=np.zeros(2, U)), "input_degree has 2 entries"),
        (Source((U([0, 1]), U([1, 2])), input_degree=np.zeros(3)), "input_degree holds float64"),
    ],
)
def test_a_wrong_source_of_edges_is_refused_on_all_ranks(source, words, ranks):
    with pytest.raises(AgreedError, match=words):
        by_ranks(source, ranks, lambda engine: engine)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("later", [([0, 1, 2], [1, 2, 0]), ([0], [1])])
def test_edges_that_are_others_when_they_are_read_again(later, ranks):
    source = Source((U([0, 1]), U([1, 2])), tuple(map(U, later)))
    with pytest.raises(GraphError, match="gave different edges the second time"):
        by_ranks(source, ranks, lambda engine: engine)


def test_big_endian_strided_and_read_only_edges_and_arguments():
    edges = weighted(nasty("star"))
    n = edges.num_vertices
    other = EdgeList(
        np.repeat(edges.src, 2)[::2], edges.dst.astype(">i8"), n, False, edges.weights.astype(">f4")
    )
    flags = (np.arange(n) % 7).astype(np.uint32)
    strided = np.repeat(flags.astype(">u4"), 2)[::2]
    strided.flags.writeable = False
    states = [
        by_ranks(given, 2, lambda e, mask=mask: e.run(Reached(), mask=mask).gathered("mask"))
        for given, mask in ((edges, flags), (other, strided))
    ]
    np.testing.assert_array_equal(*states)
    distances = [by_ranks(given, 2, lambda e: e.sssp(0).distance) for given in (edges, other)]
    np.testing.assert_array_equal(*distances)


def test_widths_of_buckets_are_found_once():
    def work(communicator):
        edges = weighted(nasty("star")) if communicator.rank == 0 else None
        engine = RankEngine(edges, communicator)
        calls = []
        for _ in range(2):
            before = communicator.calls
            engine.run(Distances(), source=0)
            calls.append(communicator.calls - before)
        return calls

    first, second = run_ranks(2, work)[0]
    opening = 4  # arrays, two turns of compiling, and the sum of all lists
    assert first == second + opening + 1
