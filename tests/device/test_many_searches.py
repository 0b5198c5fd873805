"""Multi-source searches: levels, sums, limits, masks, reverse ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import MAKERS, edge_list, edge_lists, nasty, path, roads, two_paths
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import engine_on, true_levels
from plain_search import plain_levels

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.query import Query, check_many
from hetero_bfs.algorithms.multi_source import algorithm
from hetero_bfs.algorithms.multi_source.algorithm import ManyRuns
from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.graph.search_graph import build_search_graph

SHAPES = ("Kronecker 12", "two hubs", "star", "isolated vertices", "dense random", "tree", "R-MAT")


def check(found, levels):
    """Compare a result with levels (searches, vertices)."""
    np.testing.assert_array_equal(found.level, levels)
    check_sums(found, levels)


def check_sums(found, levels):
    assert found.reached.tolist() == np.count_nonzero(levels >= 0, axis=1).tolist()
    assert found.eccentricity.tolist() == levels.max(axis=1).tolist()
    assert found.distance_sum.tolist() == np.where(levels > 0, levels, 0).sum(axis=1).tolist()
    assert (found.reached.dtype, found.distance_sum.dtype) == (np.int64, np.int64)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_hurt(name, directed):
    """More searches than a word has bits, some of them twice."""
    edges = nasty(name, directed)
    random = np.random.default_rng(1)
    sources = [*random.integers(0, edges.num_vertices, 69).tolist(), 0, 0]
    levels = np.stack([true_levels(edges, source) for source in sources])
    with ManyRuns(build_search_graph(edges), 3) as runs:
        check(runs.run(Query(tuple(sources), want="levels")), levels)
        check_sums(runs.run(Query(tuple(sources), want="sums")), levels)


@settings(max_examples=40)
@given(edges=edge_lists(), data=st.data(), is_limited=st.booleans(), is_masked=st.booleans())
def test_any_small_graph(edges, data, is_limited, is_masked):
    vertex = st.integers(0, edges.num_vertices - 1)
    sources = data.draw(st.lists(vertex, min_size=1, max_size=70))
    limit = data.draw(st.integers(0, 4)) if is_limited else None
    mask = set(data.draw(st.lists(vertex))) - set(sources) if is_masked else set()
    query = check_many(edges.num_vertices, sources, limit, sorted(mask))
    levels = np.stack([plain_levels(edges, [s], limit, mask=mask) for s in sources])
    with ManyRuns(build_search_graph(edges), 1) as runs:
        check(runs.run(query), levels)
        check_sums(runs.run(replace(query, want="sums")), levels)


@pytest.mark.parametrize(
    ("length", "dtype"),
    [(7, np.int8), (9, np.int8), (128, np.int8), (130, np.int16), (300, np.int16)],
)
def test_levels_are_as_wide_as_they_must_be(length, dtype):
    """Beyond the eighth level rows are added to, beyond the 127th they get wider."""
    edges = path(length)
    sources = [0, length - 1, length // 2]
    levels = np.stack([true_levels(edges, source) for source in sources])
    with ManyRuns(build_search_graph(edges), 1) as runs:
        found = runs.run(Query(tuple(sources), want="levels"))
        assert found.level.dtype == dtype
        check(found, levels)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_an_engine_searches_multi_source(place, directed):
    edges = nasty("Kronecker 10", directed)
    sources, mask = [1, 5, 1, 400], np.arange(edges.num_vertices) % 7 == 2
    with engine_on(place, edges) as engine:
        for asked in ({}, {"reverse": True}, {"mask": mask}, {"depth_limit": 2, "reverse": True}):
            plain = {**asked, "mask": np.flatnonzero(asked.get("mask", ()))}
            levels = np.stack([plain_levels(edges, [source], **plain) for source in sources])
            found = engine.bfs_many(sources, **asked)
            check(found, levels)
            assert found.sources.tolist() == sources
            assert {trace.strategy.split()[-1] for trace in found.traces} <= {"push", "pull"}
            check_sums(engine.bfs_many(sources, want="sums", **asked), levels)


@pytest.mark.parametrize("faster", ["apart", "engine"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_on_long_paths_searches_run_apart(monkeypatch, faster, directed):
    """One search of each kind is timed, the rest is done in the faster way."""
    done = []

    def timed(work):
        work()
        done.append(work)
        return float((len(done) % 2 == 1) == (faster == "engine"))

    monkeypatch.setattr(algorithm, "_timed", timed)
    edges = replace(roads(60, 70), directed=directed)
    edges = replace(edges, num_vertices=edges.num_vertices + 1)  # the last one is isolated
    last = edges.num_vertices - 1
    sources, mask = [0, 3, 3, last, 4000, 17, 9, last], np.arange(last + 1) % 7 == 6
    with hb.Engine(edges, "fixed:TC", device="cpu", order="locality") as engine:
        monkeypatch.setattr(type(engine), "reference_levels", HIGH_DIAMETER_LEVELS)
        for asked in ({}, {"mask": mask}, {"depth_limit": 5}, {"depth_limit": 0}):
            plain = {**asked, "mask": np.flatnonzero(asked.get("mask", ()))}
            levels = np.stack([plain_levels(edges, [source], **plain) for source in sources])
            found = engine.bfs_many(sources, **asked)
            check(found, levels)
            assert found.traces == [], "they could be larger than the levels"
            check_sums(engine.bfs_many(sources, want="sums", **asked), levels)
            check(engine.bfs_many(sources[:1], **asked), levels[:1])
        assert engine.bfs_many([]).level.shape == (0, edges.num_vertices)


def test_more_sources_than_half_of_the_vertices():
    """Their list fills the room for lists, which must be delivered before the next level."""
    edges = path(7)
    levels = np.stack([true_levels(edges, source) for source in range(7)])
    with ManyRuns(build_search_graph(edges), 1) as runs:
        check(runs.run(Query(tuple(range(7)), want="levels")), levels)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_a_search_that_lags_is_pushed_while_others_are_pulled(directed):
    """It starts on a path to the core, which the others have nearly covered when it arrives."""
    core = nasty("Kronecker 12", directed)
    n, hub = core.num_vertices, int(np.bincount(core.src).argmax())
    tail = [(n, hub), (n + 1, n), (n + 2, n + 1)]
    edges = edge_list(
        np.concatenate([np.stack([core.src, core.dst], 1), tail]), n + 3, directed=directed
    )
    sources = [*np.unique(core.src)[:40].tolist(), n + 2, hub]
    levels = np.stack([true_levels(edges, source) for source in sources])
    with ManyRuns(build_search_graph(edges), 2) as runs:
        found = runs.run(Query(tuple(sources), want="levels"))
        assert {trace.strategy for trace in found.traces} == {"push", "push and pull", "pull"}
        check(found, levels)


def test_one_call_and_what_it_refuses():
    edges = MAKERS["two components"]()
    found = hb.bfs_many(edges, [0, 7])
    assert found.level.tolist() == [[0, 1, 2, -1, -1, -1, -1, -1], [-1] * 7 + [0]]
    assert found.reached.tolist() == [3, 1]
    directed = edge_list([(0, 1), (1, 2)], 3, directed=True)
    assert hb.bfs_many(directed, [2], reverse=True).level.tolist() == [[2, 1, 0]]
    assert hb.bfs_many(edge_list([], 2), [1]).level.tolist() == [[-1, 0]]
    with pytest.raises(ArgumentError, match=r"search with want='levels'"):
        _ = hb.bfs_many(edges, [0], want="sums").level
    with pytest.raises(ArgumentError, match=r"want is 'parents'; give one of"):
        hb.bfs_many(edges, [0], want="parents")
    with pytest.raises(ArgumentError, match=r"sources is 3; give a sequence"):
        hb.bfs_many(edges, 3)
    with pytest.raises(GraphError, match=r"source 4 is masked"):
        hb.bfs_many(edges, [0, 4], mask=[4])
    with pytest.raises(GraphError, match=r"vertex 8 is not in the graph"):
        hb.bfs_many(edges, [8])
    with pytest.raises(ArgumentError, match=r"device is '0', and .* run on the CPU; give device="):
        hb.bfs_many(edges, [0], device="0")
    assert hb.bfs_many(edges, [7], device="cpu", threads=1).reached.tolist() == [1]


def test_a_second_component_that_is_a_long_path():
    """Its levels go on after those of the core have ended."""
    edges = two_paths(150, 20)
    core = nasty("dense random")
    whole = edge_list(
        np.concatenate(
            [np.stack([core.src, core.dst], 1), np.stack([edges.src, edges.dst], 1) + 300]
        ),
        300 + edges.num_vertices,
    )
    sources = [0, 300, 449, 460]
    levels = np.stack([true_levels(whole, source) for source in sources])
    with ManyRuns(build_search_graph(whole, "given"), 2) as runs:
        check(runs.run(Query(tuple(sources), want="levels")), levels)
