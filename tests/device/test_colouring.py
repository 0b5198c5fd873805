"""Colourings on the host and on every OpenCL device, against NetworkX and the check."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from graphs import NAMES, edge_list, edge_lists, nasty, random_graph, roads
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import with_less_memory
from real_graphs import real_graph_file

import hetero_bfs as hb
from hetero_bfs.algorithms.colouring import device as device_colouring
from hetero_bfs.algorithms.colouring import host as host_colouring
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.colouring.device import DeviceColouring
from hetero_bfs.errors import ArgumentError, BudgetError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.search_graph import build_search_graph


def expected(edges: EdgeList) -> np.ndarray:
    """Return the colours by NetworkX, its nodes being in the order of their ids."""
    graph = nx.Graph()
    graph.add_nodes_from(range(edges.num_vertices))
    graph.add_edges_from((u, v) for u, v in zip(edges.src, edges.dst, strict=True) if u != v)
    colours = nx.greedy_color(graph, "largest_first")
    return np.array([colours[v] for v in range(edges.num_vertices)], np.int32)


LARGER = {
    "sparse": cache(lambda: random_graph(5000, 40_000, 3)),
    "dense": cache(lambda: random_graph(2000, 150_000, 4)),
    "roads": cache(lambda: roads(60, 70)),
}


@cache
def expected_of(name: str) -> np.ndarray:
    return expected(LARGER[name]() if name in LARGER else nasty(name))


@pytest.fixture
def share_all(monkeypatch):
    """Small graphs are for several threads, too."""
    monkeypatch.setattr(host_colouring, "_POOL_EDGES", 0)


def colourings_of(edges, threads, place, order="auto"):
    colourings = Colourings(build_search_graph(edges, order), threads, place)
    assert colourings.notes == []
    return colourings


def confirm(edges: EdgeList, result: hb.Colouring, colours: np.ndarray) -> None:
    np.testing.assert_array_equal(result.colour, colours)
    assert result.colour.dtype == np.int32
    assert result.num_colours == colours.max(initial=-1) + 1
    assert result.class_sizes.sum() == edges.num_vertices
    check = hb.check_colouring(edges, result.colour)
    assert check.valid, check.message


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_shape(plain_place, name, directed):
    """A directed graph has the colours of the undirected one."""
    edges = nasty(name, directed)
    with colourings_of(edges, 2, plain_place) as colourings:
        *_, where = colourings.places
        confirm(edges, colourings.run(place=where), expected_of(name))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads(many_threads, share_all, threads):
    for name in ("Kronecker 12", "grid", "complete", "star", "roads", "sparse", "dense"):
        edges = LARGER[name]() if name in LARGER else nasty(name)
        with colourings_of(edges, threads, None) as colourings:
            for _ in range(2):
                confirm(edges, colourings.run(), expected_of(name))


def test_blocks_are_shared_where_vertices_seldom_wait(share_all):
    shared = {}
    for name in ("Kronecker 12", "grid"):
        with colourings_of(nasty(name), 2, None) as colourings:
            ways = [trace.strategy for trace in colourings.run().traces]
        assert ways[:2] == ["sort", "greedy"]
        shared[name] = ways.count("shared")
    assert shared["Kronecker 12"] > 5
    assert shared["grid"] == 1, "one block shows that most vertices wait"


@pytest.mark.parametrize("order", ["degree", "locality", "compact", "given"])
def test_every_order(plain_place, order):
    """Duplicate edges count for the order "degree", but not for colours."""
    for name in ("Kronecker 10", "duplicates", "isolated vertices"):
        edges = nasty(name)
        with colourings_of(edges, 2, plain_place, order) as colourings:
            *_, where = colourings.places
            confirm(edges, colourings.run(place=where), expected_of(name))


@settings(max_examples=60)
@given(edges=edge_lists())
def test_any_graph(edges):
    with colourings_of(edges, 1, None) as colourings:
        confirm(edges, colourings.run(), expected(edges))


def test_more_colours_than_bits_in_a_word(plain_place, share_all):
    """In a block of a complete graph a vertex may wait for more neighbours than a word has bits."""
    pairs = np.column_stack(np.triu_indices(700, 1))
    edges = edge_list(pairs, 700)
    with colourings_of(edges, 2, plain_place) as colourings:
        *_, where = colourings.places
        confirm(edges, colourings.run(place=where), np.arange(700))


@pytest.mark.parametrize("hub_edges", [1, 8, 40])
def test_the_host_colours_hubs_before_a_device_begins(plain_device, monkeypatch, hub_edges):
    monkeypatch.setattr(device_colouring, "_HUB_EDGES", hub_edges)
    for name in ("two hubs", "Kronecker 10", "complete", "isolated vertices"):
        for order in ("auto", "given"):
            with colourings_of(nasty(name), 1, plain_device, order) as colourings:
                result = colourings.run(place="device")
                confirm(nasty(name), result, expected_of(name))
                degree = colourings.lists.degree
                hubs = min(np.count_nonzero(degree > hub_edges), degree.size - 1)
                steps = [trace.strategy for trace in result.traces]
                assert steps[:2] == (["sort", "greedy"] if hubs else ["sort", "device rounds"])
                assert not hubs or result.traces[1].vertices == hubs


def test_the_host_takes_over_from_a_device_where_chains_are_long(plain_device):
    for name, ways in (
        ("long path", {"sort", "device rounds", "greedy"}),
        ("grid", {"sort", "device rounds"}),
    ):
        with colourings_of(nasty(name), 1, plain_device) as colourings:
            result = colourings.run(place="device")
            confirm(nasty(name), result, expected_of(name))
            assert {trace.strategy for trace in result.traces} == ways
            assert result.used_device
            vertices = sum(t.vertices for t in result.traces if t.strategy != "sort")
            assert vertices == nasty(name).num_vertices


@pytest.mark.usefixtures("without_costs")
def test_engine(place):
    edges = nasty("Kronecker 10")
    options = {"device": "cpu"} if place is None else {"device": str(place.index)}
    with hb.Engine(edges, **options) as engine:
        results = [engine.colour() for _ in range(5)]
        for result in results:
            confirm(edges, result, expected_of("Kronecker 10"))
            assert result.iterations == len(result.traces) > 1
        assert [result.used_device for result in results[:2]] == [False, False]
        assert place is None or results[2].used_device
    with pytest.raises(hb.EngineClosedError):
        engine.colour()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["auto", "given"])
def test_lists_stream_to_a_device_without_room_for_them(opencl_device, order, directed):
    """They pass once: with no block on the device, some in one part or several, or all in parts."""
    with (
        mock.patch.object(device_colouring, "_HUB_EDGES", 40),
        mock.patch.object(DeviceColouring, "GROUP", 32),
        mock.patch.object(DeviceColouring, "_make_room", side_effect=BudgetError("it is full")),
    ):
        for name in ("Kronecker 10", "two hubs", "sparse", "complete", "one edge"):
            edges = LARGER[name]() if name in LARGER else nasty(name)
            edges = replace(edges, directed=directed)
            graph = build_search_graph(edges, order)
            with Colourings(graph, 1, replace(opencl_device, memory_bytes=100)) as colourings:
                assert colourings.device is None
                least = int(re.search(r"colouring needs (\d+) bytes", colourings.notes[0])[1])
                degree = colourings.lists.degree
                lists = 4 * int(degree[degree <= 40].sum())
            sent = []
            for small in with_less_memory(opencl_device, least, lists):
                with Colourings(graph, 1, small) as colourings:
                    results = [colourings.run(place="device") for _ in range(2)]
                    assert colourings.notes == ["lists stream: it is full"]
                for result in results:
                    confirm(edges, result, expected_of(name))
                    steps = {trace.strategy for trace in result.traces}
                    assert steps == {"device rounds"} | ({"greedy"} if degree.max() > 40 else set())
                sent.append(results[1].streamed_bytes)
            assert sent[-1] == 0
            assert lists / 2 < sent[0] < 1.5 * lists or name in ("complete", "one edge")
            assert sent[1] <= 0.6 * sent[0] + 5000


def test_the_host_takes_over_from_a_device_to_which_lists_stream(opencl_device):
    edges = nasty("long path")
    with (
        mock.patch.object(device_colouring, "_HUB_EDGES", 40),
        mock.patch.object(DeviceColouring, "GROUP", 32),
        mock.patch.object(DeviceColouring, "_make_room", side_effect=BudgetError("it is full")),
        Colourings(build_search_graph(edges, "given"), 1, replace(opencl_device)) as colourings,
    ):
        for _ in range(2):
            result = colourings.run(place="device")
            confirm(edges, result, expected_of("long path"))
            assert {trace.strategy for trace in result.traces} == {"device rounds", "greedy"}


@pytest.mark.usefixtures("without_costs")
@pytest.mark.parametrize("limit", [{"device_memory_bytes": 10_000}, {"max_alloc_bytes": 3_000}])
def test_a_device_that_may_not_hold_what_is_kept_for_vertices_is_left_out(apart, limit):
    edges = nasty("Kronecker 10")
    with hb.Engine(edges, device=str(apart.index)) as engine:
        engine.options = replace(engine.options, **limit)
        results = [engine.colour() for _ in range(4)]
        assert not any(result.used_device for result in results)
        assert any("is left out of colouring" in note for note in engine.notes)
    confirm(edges, results[-1], expected_of("Kronecker 10"))


def test_one_call(plain_device):
    edges = nasty("grid", directed=True)
    confirm(edges, hb.colour(edges), expected_of("grid"))
    result = hb.colour(edges, device=str(plain_device.index))
    confirm(edges, result, expected_of("grid"))
    assert result.used_device
    confirm(edges, hb.colour(build_search_graph(edges), threads=1), expected_of("grid"))


def test_no_graph():
    with pytest.raises(hb.ArgumentError, match="the graph is of type int"):
        hb.colour(5)


@pytest.mark.parametrize("name", ["moscow-centre", "debian-depends"])
def test_real_graphs(plain_place, name):
    edges = read(real_graph_file(name))
    with colourings_of(edges, 2, plain_place) as colourings:
        *_, where = colourings.places
        confirm(edges, colourings.run(place=where), expected(edges))


# From the colours of an earlier version of the graph


@settings(max_examples=200)
@given(data=st.data())
def test_colours_stay_where_edges_allow_it(data):
    """Vertices and edges are added; earlier vertices keep their colours but for conflicts."""
    n = data.draw(st.integers(2, 30))
    vertex = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(vertex, vertex), min_size=1, max_size=80))
    some = data.draw(st.integers(0, len(pairs)))
    known = data.draw(st.integers(1, n))
    directed = data.draw(st.booleans())
    earlier = [(u, v) for u, v in pairs[:some] if max(u, v) < known]
    start = hb.colour(edge_list(earlier, known, directed)).colour
    edges = edge_list(pairs, n, directed)
    found = hb.colour(edges, start=start)
    hb.check_colouring(edges, found.colour).raise_if_invalid()
    in_conflict = {
        v for pair in pairs for v in pair
        if max(pair) < known and start[pair[0]] == start[pair[1]] and pair[0] != pair[1]
    }  # fmt: skip
    assert set(np.flatnonzero(found.colour[:known] != start).tolist()) <= in_conflict


@pytest.mark.parametrize("ends", [([], []), ([0], [1])])
def test_vertices_without_edges_keep_colours(ends):
    graph, start = hb.CSRGraph.from_edges(*ends, num_vertices=5), [1, 0, 3, -1]
    with hb.Engine(graph, device="cpu") as engine:
        for found in (engine.colour(start=start), hb.colour(graph, start=start)):
            assert found.colour.tolist() == [1, 0, 3, 0, 0]


def test_a_device_leaves_extending_to_the_host(opencl_device):
    edges = nasty("Kronecker 10")
    start = expected_of("Kronecker 10").copy()
    start[:100] = -1
    with Colourings(build_search_graph(edges), 1, opencl_device) as colourings:
        found = colourings.run(start, place="device")
        assert not found.used_device
        hb.check_colouring(edges, found.colour).raise_if_invalid()
        np.testing.assert_array_equal(found.colour[100:], start[100:])


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (np.zeros(10**6, int), "give at most one colour for each of"),
        ([0.5], "start holds float64"),
        ([-2], "from -2 to -2; give -1 for none"),
        ([10**6], "numbers below"),
        ([[1]], "shape \\(1, 1\\)"),
    ],
)
def test_wrong_colours_to_start_from(start, words):
    with pytest.raises(ArgumentError, match=words):
        hb.colour(nasty("grid"), start=start)
