"""Searches of ranks from several sources, with a limit, a target or a mask: as in one process."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from asked import check_answer, questions
from graphs import edge_list, edge_lists, nasty
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import constructed, joined
from simulated_ranks import run_ranks

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.query import check_query
from hetero_bfs.algorithms.bfs.ranks import DistributedSearch
from hetero_bfs.algorithms.bfs.ranks_host import RankExecutor
from hetero_bfs.engine.rank_engine import RankEngine
from hetero_bfs.errors import AgreedError
from hetero_bfs.ranks.partition import RankGraph

RANKS = (1, 2, 3, 5)
GRAPHS = ("Kronecker 10", "two hubs", "grid", "isolated vertices", "sparse random", "star")
SELECTORS = ("auto", "fixed:TC", "fixed:BC", "fixed:TC,BC,BC,TC", "fixed:TC,BC,TC,BC")


def engines_asked(edges, ranks, sources, asked):
    """Return the results of all ranks of an engine, and the result of one process."""

    def run(communicator):
        engine = RankEngine(edges if communicator.rank == 0 else None, communicator)
        return engine.bfs(sources, **asked)

    return run_ranks(ranks, run), hb.bfs(edges, sources, **asked)


@settings(max_examples=40)
@given(edges=edge_lists(), ranks=st.sampled_from(RANKS), data=st.data())
def test_any_question_about_any_small_graph(edges, ranks, data):
    sources, asked = data.draw(questions(edges.num_vertices))
    found, alone = engines_asked(edges, ranks, sources, asked)
    for result in found:
        check_answer(result, edges, sources, f"{ranks} ranks", **asked)
        np.testing.assert_array_equal(result.level, alone.level)
        assert (result.source, result.sources) == (alone.source, alone.sources)
        assert (result.nedge, result.parent.size) == (alone.nedge, alone.parent.size)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@settings(max_examples=40)
@given(
    name=st.sampled_from(GRAPHS),
    ranks=st.sampled_from(RANKS),
    selector=st.sampled_from(SELECTORS),
    threads=st.sampled_from([1, 2]),
    data=st.data(),
)
def test_any_question_in_any_direction(directed, name, ranks, selector, threads, data):
    """Plain searches after masked ones see the whole graph again."""
    edges = nasty(name, directed)
    plain = {"dtype": "int64"}
    every = [data.draw(questions(edges.num_vertices)) for _ in range(2)]
    every = [(sources, asked | {"reverse": False} | plain) for sources, asked in every]
    every.append((0, dict(plain)))
    queries = [check_query(edges.num_vertices, sources, **asked) for sources, asked in every]

    def run(communicator):
        graph = constructed(communicator, edges)
        search = DistributedSearch(communicator, graph, selector, threads)
        try:
            return search.search_in_a_row(queries)
        finally:
            search.close()

    by_rank = run_ranks(ranks, run)
    for i, (sources, asked) in enumerate(every):
        found = joined([results[i] for results in by_rank], edges)
        given = {name: asked[name] for name in asked.keys() - {"reverse", "want", "dtype"}}
        levels = hb.bfs(edges, sources, **given).level
        outcome = hb.validate(edges, sources, found.parent, levels, **given)
        assert outcome.valid, f"{selector}, {sources}, {asked}: {outcome.message}"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("isolated", [False, True])
def test_records_count_what_a_search_visits(directed, isolated):
    edges = nasty("Kronecker 10", directed)
    degree = np.bincount(np.append(edges.src, edges.dst), minlength=edges.num_vertices)
    sources = [0, 3, *(np.flatnonzero(degree == 0)[:2] if isolated else ())]
    assert len(sources) == 2 + 2 * isolated
    mask = np.arange(edges.num_vertices) % 3 == 1
    mask[sources] = False
    with hb.Engine(edges, "fixed:TC", device="cpu") as engine:
        alone = [trace.features for trace in engine.bfs(sources, mask=mask).traces]
    for result in engines_asked(edges, 3, sources, {"mask": mask})[0]:
        for level, one in zip(result.traces, alone, strict=True):
            found = level.frontier_vertices, level.frontier_edges
            assert found == (one.frontier_vertices, one.frontier_edges)
            assert (level.level, level.strategy[0]) == (one.level, level.direction[0].upper())


def test_the_search_ends_with_the_level_that_finds_the_target():
    edges = edge_list([(i, i + 1) for i in range(40)], 41)
    found, _ = engines_asked(edges, 3, 0, {"target": 7})
    for result in found:
        assert result.path(7).tolist() == [*range(8)]
        assert len(result.traces) == 7
        assert result.reached == 8


@pytest.mark.parametrize(("asked", "levels"), [({"target": 4}, 0), ({"depth_limit": 0}, 0)])
def test_a_search_of_no_level(asked, levels):
    found, _ = engines_asked(nasty("star"), 3, [0, 4], asked)
    for result in found:
        assert len(result.traces) == levels
        assert np.flatnonzero(result.parent >= 0).tolist() == [0, 4]


WRONG = [
    {"source": []},
    {"source": [0, 99]},
    {"source": 0, "depth_limit": -1},
    {"source": 0, "target": 99},
    {"source": 0, "mask": [1.5]},
    {"source": 0, "mask": np.zeros(3, bool)},
    {"source": [1, 0], "mask": [0]},
    {"source": 0, "want": "both"},
]


@pytest.mark.parametrize("asked", WRONG)
@pytest.mark.parametrize("wrong", [None, 1])
def test_errors_are_those_of_one_process_on_all_ranks(asked, wrong):
    """A wrong argument of one rank ends the call of all."""
    edges = edge_list([(0, 1), (1, 2), (2, 3)], 4)
    with pytest.raises(hb.HeteroBFSError) as alone:
        hb.bfs(edges, **asked)

    def run(communicator):
        engine = RankEngine(edges if communicator.rank == 0 else None, communicator)
        given = asked if wrong in (None, communicator.rank) else {"source": 0}
        with pytest.raises(AgreedError) as raised:
            engine.bfs(**given)
        engine.bfs(0)
        return str(raised.value)

    where = "" if wrong is None else f"rank {wrong}: "
    assert run_ranks(3, run) == [f"{where}{alone.value}"] * 3


def test_a_rank_without_memory_for_the_mask_ends_the_search_of_all():
    edges, lacking = nasty("grid"), []
    whole = RankGraph.bitmap_of

    def bitmap_of(graph, *given):
        if any(graph is one for one in lacking):
            raise MemoryError
        return whole(graph, *given)

    def run(communicator):
        engine = RankEngine(edges if communicator.rank == 0 else None, communicator)
        engine.bfs(0)
        if communicator.rank == 1:
            lacking.append(engine.along("out"))
        with pytest.raises(AgreedError, match="out of memory"):
            engine.bfs(0, mask=[1])
        if communicator.rank == 1:
            lacking.clear()
        check_answer(engine.bfs(0), edges, 0, "after it")
        return True

    with mock.patch.object(RankGraph, "bitmap_of", bitmap_of):  # once, since ranks are threads
        assert run_ranks(2, run) == [True] * 2


def test_a_rank_starts_without_sources_of_its_own():
    edges = nasty("star")

    def run(communicator):
        host = RankExecutor(constructed(communicator, edges), 1)
        host.prepare()
        frontier = host.start(check_query(edges.num_vertices, [0, 5]).seeds(host.graph))
        host.close()
        return frontier.vertices, frontier.edges

    vertices = [found[0] for found in run_ranks(5, run)]
    assert vertices == [2, 0, 0, 0, 0]


def test_names_of_vertices_are_on_rank_0(tmp_path):
    path = tmp_path / "roads.csv"
    path.write_text("a,b\nBerlin,Ulm\nUlm,Mainz\n")

    def run(communicator):
        engine = RankEngine.read(path, communicator=communicator, renumber=True, columns="a,b")
        return engine.bfs(0, target=1)

    for rank, result in enumerate(run_ranks(2, run)):
        assert result.path(1).tolist() == [0, 2, 1]
        assert (result.names is None) == (rank > 0)
        assert rank or result.names.tolist() == ["Berlin", "Mainz", "Ulm"]
