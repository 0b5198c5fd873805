"""Searches from several sources, with a limit, a target or a mask, and reverse ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from asked import check_answer, questions
from graphs import MAKERS, edge_list, edge_lists, nasty, roads
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import engine_on
from plain_search import lists_of, plain_levels
from strategy_mixtures import selectors_of
from streams import SELECTORS, streaming

import hetero_bfs as hb
from hetero_bfs.errors import ArgumentError, DeviceError, GraphError
from hetero_bfs.graph.search_graph import build_search_graph

GRAPHS = ("Kronecker 10", "two hubs", "grid", "isolated vertices", "sparse random", "roads")


def graph_of(name, directed):
    return replace(roads(30, 40), directed=directed) if name == "roads" else nasty(name, directed)


def check(engine, edges, sources, **asked):
    return check_answer(engine.bfs(sources, **asked), edges, sources, engine.selector.name, **asked)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@settings(max_examples=20)
@given(data=st.data(), name=st.sampled_from(GRAPHS), number=st.integers(0, 99))
def test_any_question_by_any_strategy(kept, place, directed, name, number, data):
    edges = graph_of(name, directed)
    engine = kept((place, directed, name), lambda: engine_on(place, edges, selector="fixed:TC"))
    selectors = selectors_of(place)
    engine.set_selector(selectors[number % len(selectors)])
    sources, asked = data.draw(questions(edges.num_vertices))
    check(engine, edges, sources, **asked)


@settings(max_examples=15)
@given(data=st.data(), name=st.sampled_from(GRAPHS[:3]), number=st.integers(0, 99))
def test_any_question_while_edges_stream(kept, apart, name, number, data):
    edges = graph_of(name, directed=True)
    graph = build_search_graph(edges, "given")
    engine = kept((apart, name), lambda: streaming(apart, graph, 0.3, columns=1))
    engine.set_selector(SELECTORS[number % len(SELECTORS)])
    sources, asked = data.draw(questions(edges.num_vertices))
    check(engine, edges, sources, **{**asked, "reverse": False})


@settings(max_examples=40)
@given(edges=edge_lists(), data=st.data())
def test_any_small_graph(one_thread, edges, data):
    sources, asked = data.draw(questions(edges.num_vertices))
    with hb.Engine(edges, "fixed:TC,BC,TC", device="cpu") as engine:
        check(engine, edges, sources, **asked)


def test_plain_searches_after_masked_ones_see_the_whole_graph(place):
    edges = nasty("Kronecker 10")
    with engine_on(place, edges) as engine:
        for selector in selectors_of(place):
            engine.set_selector(selector)
            check(engine, edges, 1, mask=np.arange(edges.num_vertices) % 2 == 0)
            check(engine, edges, 1)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_path_follows_edges(reverse):
    edges = nasty("sparse random", directed=True)
    lists = lists_of(edges)
    with hb.Engine(edges, device="cpu") as engine:
        source = int(np.bincount(edges.dst if reverse else edges.src).argmax())
        result = engine.bfs(source, reverse=reverse)
        far = int(result.level.argmax())
        path = engine.bfs([source], target=far, reverse=reverse).path(far)
    assert path.dtype == np.int64
    assert path.size == result.level[far] + 1 > 3
    assert path[[0, -1]].tolist() == ([far, source] if reverse else [source, far])
    assert all(v in lists[u] for u, v in pairwise(path))


def test_a_path_needs_a_vertex_that_was_reached_and_parents():
    edges = nasty("two components")
    result = hb.bfs(edges, 0)
    assert result.path(0).tolist() == [0]
    with pytest.raises(GraphError, match=r"vertex 4 was not reached"):
        result.path(4)
    with pytest.raises(GraphError, match=r"vertex 8 is not in the graph"):
        result.path(8)
    with pytest.raises(ArgumentError, match=r"want='parents'"):
        hb.bfs(edges, 0, want="levels").path(0)


def test_one_call_takes_the_same_questions():
    edges = edge_list([(0, 1), (1, 2), (3, 2), (2, 4)], 6, directed=True)
    result = hb.bfs(edges, 2, reverse=True)
    assert result.level.tolist() == [2, 1, 0, 1, -1, -1]
    assert result.path(0).tolist() == [0, 1, 2]
    assert result.nedge == 3
    assert hb.bfs(edges, [3, 0, 3], mask=[1]).level.tolist() == [0, -1, 1, 0, 2, -1]
    assert hb.bfs(edges, 0, depth_limit=1).level.tolist() == [0, 1, -1, -1, -1, -1]
    assert hb.bfs(edges, 5, target=5).level.tolist() == [-1, -1, -1, -1, -1, 0]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"source": []}, r"source is an empty sequence"),
        ({"source": [0, 9]}, r"vertex 9 is not in the graph"),
        ({"source": "0"}, r"'0' is not a vertex id"),
        ({"source": 0, "depth_limit": -1}, r"depth_limit is -1; give an integer of at least 0"),
        ({"source": 0, "target": 8}, r"vertex 8 is not in the graph"),
        ({"source": 0, "mask": [True, False]}, r"mask holds bool in shape \(2,\); give a bool"),
        ({"source": 0, "mask": [1.5]}, r"mask holds float64"),
        ({"source": 0, "mask": 5}, r"mask is 5; give a bool array"),
        ({"source": 0, "mask": [-1]}, r"vertex -1 is not in the graph"),
        ({"source": [1, 0], "mask": [0]}, r"source 0 is masked; take it out"),
        ({"source": 0, "want": "both"}, r"want is 'both'; give one of"),
        ({"source": 0, "dtype": "uint32"}, r"dtype is 'uint32'; give 'int64' or 'int32'"),
        ({"source": 0, "dtype": "none"}, r"dtype is 'none'; give"),
        ({"source": 0, "dtype": None}, r"dtype is None; give"),
        ({"source": 0, "dtype": ">i8"}, r"dtype is '>i8'; give"),
        ({"source": 0, "reverse": 1}, r"reverse is 1; give True or False"),
    ],
)
def test_wrong_questions(asked, message):
    with pytest.raises((ArgumentError, GraphError), match=message):
        hb.bfs(MAKERS["two components"](), **asked)


def test_searches_of_several_threads_and_of_asyncio(place):
    """They run one after another, and each gets its own result."""
    edges = nasty("Kronecker 10", directed=True)
    sources = list(range(12))

    async def all_at_once(engine):
        return await asyncio.gather(
            *(asyncio.to_thread(engine.bfs, v, reverse=v % 2 > 0) for v in sources)
        )

    with engine_on(place, edges) as engine:
        results = asyncio.run(all_at_once(engine))
    for source, result in zip(sources, results, strict=True):
        levels = plain_levels(edges, [source], reverse=source % 2 > 0)
        np.testing.assert_array_equal(result.level, levels)


def test_a_device_that_fails_in_a_masked_search_forgets_the_mask(opencl_device):
    edges = nasty("Kronecker 10")
    source = int(edges.src[0])
    mask = np.arange(edges.num_vertices) % 2 == 1 - source % 2
    with engine_on(opencl_device, edges, selector="fixed:TC,TG,BG") as engine:
        failing = mock.patch.object(
            type(engine.accelerator), "receive", side_effect=DeviceError("it failed")
        )
        for _ in range(2):
            with failing, pytest.raises(DeviceError, match="it failed"):
                engine.bfs(source, mask=mask)
        check(engine, edges, source)
        check(engine, edges, source, mask=mask)
        check(engine, edges, source)
