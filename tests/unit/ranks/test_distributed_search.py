"""Searches by simulated ranks: right for any number of ranks, graph and schedule."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import SEARCHABLE_NAMES, edge_list, edge_lists, nasty, sources_of
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated import search_all

from hetero_bfs.algorithms.bfs.check import validate
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.ranks import exchange

SELECTORS = ("auto", "alpha-beta", "fixed:TC", "fixed:BC", "fixed:TC,TC,BC,TC,BC,BC,TC")


def check(edges, source, found, reverse=False):
    outcome = validate(edges, source, found.parent, reverse=reverse)
    assert outcome.valid, outcome.message
    for result in found.results:
        assert result.reached == outcome.reached
        assert reverse or result.nedge == outcome.nedge
    assert found.parent[source] == source


@pytest.mark.sampled(8)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("name", SEARCHABLE_NAMES)
def test_right_for_any_number_of_ranks(name, ranks):
    edges = nasty(name)
    sources = sources_of(edges, 1)
    selectors = SELECTORS if ranks < 8 else SELECTORS[::4]  # the ranks run in turn: it takes long
    for selector in selectors:
        for source, found in zip(sources, search_all(edges, sources, ranks, selector), strict=True):
            check(edges, source, found)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["duplicates", "late hub", "long path", "star", "R-MAT", "tree"])
def test_directed_graphs_forwards_and_backwards(name, ranks):
    edges = nasty(name, directed=True)
    sources = sources_of(edges, 1)
    for selector in SELECTORS:
        for reverse in (False, True):
            every = search_all(edges, sources, ranks, selector, reverse=reverse)
            for source, found in zip(sources, every, strict=True):
                check(edges, source, found, reverse)


@settings(max_examples=60)
@given(
    edges=edge_lists(),
    ranks=st.integers(1, 9),
    selector=st.sampled_from(SELECTORS),
    reverse=st.booleans(),
    data=st.data(),
)
def test_right_for_random_graphs(edges, ranks, selector, reverse, data):
    source = data.draw(st.integers(0, edges.num_vertices - 1))
    (found,) = search_all(edges, [source], ranks, selector, reverse=reverse)
    check(edges, source, found, reverse)


def test_several_threads_of_a_rank():
    edges = KroneckerEdges(13).materialise()
    sources = [1, 77, 4000]
    for selector in SELECTORS:
        for source, found in zip(
            sources, search_all(edges, sources, 2, selector, threads=2), strict=True
        ):
            check(edges, source, found)


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("host_size", [1, 2, 5])
def test_words_in_boxes_and_by_calls(ranks, host_size):
    """Two ranks have more words than fit in a box."""
    edges = KroneckerEdges(14).materialise()
    sources = [3, 5]
    every = search_all(edges, sources, ranks, "fixed:TC", host_size=host_size)
    for source, found in zip(sources, every, strict=True):
        check(edges, source, found)
    if ranks == 2:
        words = max(level.bytes_sent for level in every[0].results[0].levels) // 8
        assert words > edges.num_vertices // (2 * ranks * ranks)


def test_no_memory_for_boxes(monkeypatch):
    monkeypatch.setattr(exchange, "free_shared_bytes", lambda: 0)
    edges = KroneckerEdges(11).materialise()
    for source, found in zip([3, 6], search_all(edges, [3, 6], 3, "fixed:TC,TC,BC"), strict=True):
        check(edges, source, found)


def test_more_ranks_than_vertices():
    edges = edge_list([(0, 1), (1, 2)], 3)
    (found,) = search_all(edges, [2], 7)
    np.testing.assert_array_equal(found.parent, [1, 2, 2])


@pytest.mark.parametrize("selector", SELECTORS)
def test_ranks_of_unlike_sizes_decide_alike(selector):
    """Of the odd ids most have no edges, so every second rank has few vertices."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        ends = rng.integers(0, 300, (900, 2))
        edges = edge_list(np.where(ends % 14 == 1, ends, ends // 2 * 2), 300)
        for source, found in zip((0, 4), search_all(edges, [0, 4], 2, selector), strict=True):
            check(edges, source, found)


def test_all_ranks_run_the_same_directions():
    edges = KroneckerEdges(11).materialise()
    for found in search_all(edges, [5, 6, 7], 4):
        directions = [[level.direction for level in r.levels] for r in found.results]
        assert all(one == directions[0] for one in directions)
