"""Shortest paths by simulated ranks: distances of one process, parents and checks of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import nasty
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.algorithms.sssp.ranks import RankPathSearch
from hetero_bfs.algorithms.sssp.ranks_check import RankPathValidator
from hetero_bfs.errors import AgreedError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.registry import read, write
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.graph500.protocol import run_graph500
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct


def weighted(edges: EdgeList, weights) -> EdgeList:
    return replace(edges, weights=weights)


def drawn(edges: EdgeList, dtype=np.float32, most=60) -> EdgeList:
    drawn = np.random.default_rng(7).random(edges.src.size) * most
    return weighted(edges, drawn.astype(dtype))


def path(n: int, weight, dtype=np.float32) -> EdgeList:
    order = np.random.default_rng(1).permutation(n).astype(np.uint32)
    weights = np.full(n - 1, weight, dtype)
    return EdgeList(order[:-1].copy(), order[1:].copy(), n, False, weights)


def share_of(edges: EdgeList, rank: int, ranks: int) -> EdgeList:
    parts = [array[rank::ranks].copy() for array in (edges.src, edges.dst, edges.weights)]
    return EdgeList(*parts[:2], edges.num_vertices, edges.directed, parts[2])


def search_all(edges: EdgeList, sources, ranks: int, host_size=None):
    """Return distances, parents, the ranks' results and the outcome, of each source."""

    def work(communicator):
        share = share_of(edges, communicator.rank, ranks)
        graph = construct(communicator, share, edges.num_input_edges)
        search = RankPathSearch(communicator, graph)
        validator = RankPathValidator(communicator, share, None)
        found = [search.search(source) for source in sources]
        return [(one, validator.validate(one.source, one.distance, one.parent)) for one in found]

    by_rank = run_ranks(ranks, work, host_size)
    for i in range(len(sources)):
        distance = np.empty(edges.num_vertices)
        parent = np.empty(edges.num_vertices, np.int64)
        for rank, results in enumerate(by_rank):
            distance[rank::ranks] = results[i][0].distance
            parent[rank::ranks] = results[i][0].parent
        parent[parent == 0xFFFFFFFF] = -1
        yield distance, parent, [results[i][0] for results in by_rank], by_rank[0][i][1]


KRONECKER = nasty("Kronecker 10")
INFINITE = drawn(KRONECKER)
INFINITE.weights.setflags(write=True)
INFINITE.weights[::3] = np.inf

GRAPHS = {
    "float32": drawn(KRONECKER),
    "float64": drawn(KRONECKER, np.float64),
    "int32": drawn(KRONECKER, np.int32),
    "largest integers": weighted(KRONECKER, np.full(KRONECKER.src.size, 2**31 - 1, np.int32)),
    "many zeros": drawn(KRONECKER, np.int32, 2),
    "weights that vanish": drawn(KRONECKER, np.float32, 1e-9),
    "infinite weights": INFINITE,
    "distances beyond float32": path(40, 3e38),
    "distances beyond float64": path(20, 1e308, np.float64),
    "zeros all the way": path(300, 0),
    "grid": drawn(nasty("grid")),
    "star": drawn(nasty("star"), np.int32),
    "two components": drawn(nasty("two components")),
    "directed": drawn(nasty("R-MAT", directed=True)),
    "directed zeros": drawn(nasty("duplicates", directed=True), np.int32, 2),
    "directed grid": drawn(nasty("grid", directed=True)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", GRAPHS)
def test_paths_pass_the_check_of_one_process(name):
    """Which leaves no other distances: sums are rounded alike everywhere."""
    edges = GRAPHS[name]
    sources = [int(edges.src[0]), edges.num_vertices - 1]
    for ranks, host_size in ((1, 1), (2, 2), (5, 2)):
        every = search_all(edges, sources, ranks, host_size)
        for source, (distance, parent, results, outcome) in zip(sources, every, strict=True):
            if name in ("float32", "directed"):
                expected = hb.sssp(edges, source, device="cpu", threads=1)
                np.testing.assert_array_equal(distance, expected.distance)
            check = hb.check_paths(edges, source, distance, parent)
            assert check.valid, check.message
            assert outcome == check
            assert len({len(result.windows) for result in results}) == 1


def test_more_ranks_than_vertices():
    edges = path(3, 2, np.int32)
    source = int(edges.src[0])
    for distance, parent, results, outcome in search_all(edges, [source], 7, 3):
        assert sorted(distance.tolist()) == [0, 2, 4]
        assert outcome.valid
        assert parent[source] == source
        assert sum(w.bytes_sent for result in results for w in result.windows) > 0


PAIRS = np.array([(0, 1, 2), (1, 2, 2), (2, 3, 1), (0, 4, 0), (4, 4, 5), (5, 6, 1), (3, 4, 9)])
EDGES = EdgeList(*PAIRS.T[:2].astype(np.uint32), 8, False, PAIRS[:, 2].astype(np.float32))
FAR, UP = [0, 2, 4, 5, 0, np.inf, np.inf, np.inf], [0, 0, 1, 2, 0, -1, -1, -1]

WRONG = {
    "source not its own parent": ([(0, 0, 4)], "check 1"),
    "source elsewhere": ([(0, 1, 0)], "check 1"),
    "negative": ([(1, -2, 0)], "check 2"),
    "not a number": ([(1, np.nan, 0)], "check 2"),
    "parent without distance": ([(7, np.inf, 0)], "check 2"),
    "parent no vertex": ([(1, 2, 77)], "check 2"),
    "shorter way": ([(3, 9, 4)], "check 3"),
    "vertex left out": ([(3, np.inf, -1)], "check 3"),
    "no such edge": ([(2, 4, 0)], "check 4"),
    "too near": ([(3, 4.5, 2)], "check 4"),
    "circle": ([(5, 0, 6), (6, 1, 5)], "check 5"),
    "parent unreached": ([(3, 5, 5)], "check 5"),
}


@pytest.mark.parametrize(("ranks", "host_size"), [(1, 1), (3, 3), (4, 2)])
def test_wrong_paths_fail(ranks, host_size):
    def work(communicator):
        share = share_of(EDGES, communicator.rank, ranks)
        validator = RankPathValidator(communicator, share, None)
        outcomes = []
        for changes, _ in [*WRONG.values(), ([], "")]:
            far, up = np.array(FAR), np.array(UP)
            for vertex, distance, parent in changes:
                far[vertex], up[vertex] = distance, parent
            own = slice(communicator.rank, None, ranks)
            outcomes.append(validator.validate(0, far[own], up[own].astype(np.uint32)))
        return outcomes

    for outcomes in run_ranks(ranks, work, host_size):
        *wrong, right = outcomes
        for name, outcome in zip(WRONG, wrong, strict=True):
            assert not outcome.valid, name
            assert WRONG[name][1] in outcome.message, name
        assert right == hb.check_paths(EDGES, 0, np.array(FAR), np.array(UP))


@pytest.mark.parametrize("regenerate", [False, True])
def test_graph500_by_ranks(regenerate):
    settings = Graph500Options(
        "sssp", 9, sources=5, regenerate=regenerate, energy_seconds=0.0,
        engine=EngineOptions(device="cpu", threads=1),
    )  # fmt: skip
    alone = run_graph500(settings)
    report = run_ranks(3, lambda communicator: run_graph500(settings, communicator), 2)[1]
    assert (report.valid, report.processes, report.kernel) == (True, 3, "sssp")
    for found, expected in zip(report.sources, alone.sources, strict=True):
        for name in ("source", "nedge"):
            assert getattr(found.result, name) == getattr(expected.result, name)
        assert (found.furthest, found.reached) == (expected.furthest, expected.reached)
        assert found.validation == expected.validation
    assert [line.split(":")[0] for line in report.lines()] == [
        line.split(":")[0] for line in alone.lines()
    ]
    assert "imbalance" in report.details(report.typical())
    assert {"rounds", "bytes_sent"} < report.to_dict()["roots"][0].keys()


def test_graph500_of_a_file_with_weights(tmp_path):
    file = tmp_path / "graph.wel"
    triples = "".join(f"{u} {v} {int(w)}\n" for u, v, w in PAIRS.tolist())
    file.write_text(triples + "1 0 7\n")
    converted = tmp_path / "graph.hbg"
    write(CSRGraph.from_edge_source(read(file, False, True)), converted)
    for graph in (file, converted):
        settings = Graph500Options("sssp", sources=8, graph=graph)
        report = run_ranks(2, lambda c, s=settings: run_graph500(s, c))[0]
        assert report.valid, report.failures
        assert {record.result.nedge for record in report.sources} == {1, 6}


def test_what_cannot_be_searched():
    for edges, words in (
        (EdgeList(EDGES.src, EDGES.dst, 8), "no weights"),
        (weighted(EDGES, EDGES.weights - 1), "-1"),
    ):
        with pytest.raises(AgreedError, match=words):
            run_ranks(
                2,
                lambda c, e=edges: RankPathSearch(
                    c, construct(c, e if c.rank == 0 else _none_of(e), e.num_input_edges)
                ).search(0),
            )


def _none_of(edges: EdgeList) -> EdgeList:
    weights = None if edges.weights is None else edges.weights[:0]
    return EdgeList(edges.src[:0], edges.dst[:0], edges.num_vertices, False, weights)


@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
def test_a_rank_alone(kernel):
    """Ranks compile with it."""
    engine = EngineOptions(device="cpu", threads=2)
    settings = Graph500Options(kernel, 9, sources=3, energy_seconds=0.0, engine=engine)
    found, expected = (run_graph500(settings, one) for one in (Communicator(), None))
    assert found.valid
    for one, other in zip(found.sources, expected.sources, strict=True):
        assert (one.result.source, one.result.nedge) == (other.result.source, other.result.nedge)
        assert (one.furthest, one.reached) == (other.furthest, other.reached)
