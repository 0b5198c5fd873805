"""Connected components on the host and on every OpenCL device, against SciPy and the check."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from graphs import NAMES, edge_list, edge_lists, grid, nasty, path, random_graph, roads, star
from hypothesis import given
from hypothesis import strategies as st
from oracle import with_less_memory
from real_graphs import real_graph_file

import hetero_bfs as hb
from hetero_bfs.algorithms.components import device as device_components
from hetero_bfs.algorithms.components import host as host_components
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.components.device import DeviceComponents
from hetero_bfs.errors import BudgetError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.support import parallel


def expected(edges) -> np.ndarray:
    """Return the least vertex of each one's component, by SciPy."""
    graph, n = hb.CSRGraph.from_edge_source(edges), edges.num_vertices
    lists = np.ones(graph.indices.size, np.int8), graph.indices.astype(np.int64), graph.indptr
    matrix = scipy.sparse.csr_array(lists, (n, n))
    count, label = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    least = np.full(count, n)
    np.minimum.at(least, label, np.arange(n))
    return least[label]


def confirm(edges, result: hb.Components) -> None:
    wanted = expected(edges)
    np.testing.assert_array_equal(result.component, wanted)
    assert result.component.dtype == np.int64
    labels, sizes = np.unique(wanted, return_counts=True)
    assert result.num_components == labels.size
    np.testing.assert_array_equal(result.sizes, sizes)
    check = hb.check_components(edges, result.component)
    assert check.valid, check.message


def runs_of(edges, threads, place, order="auto") -> ComponentRuns:
    runs = ComponentRuns(build_search_graph(edges, order), threads, place)
    assert runs.notes == []
    return runs


def phases(result: hb.Components) -> list[str]:
    return [trace.strategy for trace in result.traces]


def islands(count: int, size: int) -> EdgeList:
    """Random graphs side by side, their vertices in turn: no component is the largest."""
    one = random_graph(size, 3 * size, 4)
    places = np.arange(count, dtype=np.uint32)[:, None]
    ends = [(end * np.uint32(count) + places).ravel() for end in (one.src, one.dst)]
    return EdgeList(*ends, count * size)


LARGE = {
    "Kronecker 15": lambda: KroneckerEdges(15).materialise(),
    "random": lambda: random_graph(40_000, 140_000, 3),
    "grid": lambda: grid(150, 217),
    "long path": lambda: path(40_000),
    "roads": lambda: roads(150, 217),
    "islands": lambda: islands(9, 5_000),
    "stars": lambda: edge_list([(v % 3, v) for v in range(3, 30_000)], 30_000),
}
"""Graphs of several chunks and blocks."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_shape(plain_place, name, directed):
    edges = nasty(name, directed)
    with runs_of(edges, 2, plain_place) as runs:
        *_, where = runs.places
        confirm(edges, runs.run(place=where))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", LARGE)
def test_large_graphs(plain_place, name, directed):
    edges = replace(LARGE[name](), directed=directed)
    with runs_of(edges, 3, plain_place) as runs:
        *_, where = runs.places
        for _ in range(3):
            result = runs.run(place=where)
        confirm(edges, result)


@pytest.mark.parametrize("order", ["degree", "locality", "compact", "given"])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_order(monkeypatch, threads, order):
    monkeypatch.setattr(host_components, "_POOL_VERTICES", 0)
    for name in ("islands", "roads", "random"):
        with runs_of(LARGE[name](), threads, None, order) as runs:
            confirm(LARGE[name](), runs.run())


@given(edges=edge_lists(min_vertices=0), order=st.sampled_from(["auto", "given", "locality"]))
def test_any_graph(edges, order):
    with runs_of(edges, 1, None, order) as runs:
        result = runs.run()
    confirm(edges, result)
    graph = nx.Graph(zip(edges.src.tolist(), edges.dst.tolist(), strict=True))
    graph.add_nodes_from(range(edges.num_vertices))
    found = {frozenset(np.flatnonzero(result.component == v)) for v in set(result.component)}
    assert found == set(map(frozenset, nx.connected_components(graph)))


def test_long_lists_are_linked_by_the_whole_grid(plain_device, monkeypatch):
    monkeypatch.setattr(device_components, "_HEAVY_EDGES", 40)
    for directed in (False, True):
        for edges in (star(90), nasty("Kronecker 10"), LARGE["stars"]()):
            edges = replace(edges, directed=directed)
            with runs_of(edges, 1, plain_device) as runs:
                confirm(edges, runs.run(place="device"))


def test_phases_are_those_that_are_of_use():
    """The first neighbours settle most of a skewed graph; in others roots link their lists."""
    wanted = {"Kronecker 15": False, "random": True, "islands": True}
    for name, by_roots in wanted.items():
        with runs_of(LARGE[name](), 1, None) as runs:
            result = runs.run()
        assert ("lists of roots" in phases(result)) == by_roots, name
        assert result.iterations == len(result.traces)
        assert all(trace.seconds > 0 for trace in result.traces)
        if name != "islands":
            stored = 2 * LARGE[name]().src.size
            assert result.edges_scanned < stored / 5, "a random graph scans a tenth"


@pytest.mark.usefixtures("without_costs")
def test_engine(place):
    edges = nasty("Kronecker 10")
    options = {"device": "cpu"} if place is None else {"device": str(place.index)}
    with hb.Engine(edges, **options) as engine:
        tried = [engine.connected_components() for _ in range(4)]
        for result in tried:
            confirm(edges, result)
        assert any(result.used_device for result in tried) == (place is not None)
    with pytest.raises(hb.EngineClosedError):
        engine.connected_components()


def several_hubs() -> EdgeList:
    """Stars with long lists in several parts, in components of like size; others read all lists."""
    pairs = [(v % 5, v) for v in range(5, 3000)] + [(v, v + 1) for v in range(3000, 4000, 3)]
    return edge_list(pairs, 4200)


STREAMED = {
    "several hubs": several_hubs,
    "islands": lambda: islands(9, 400),
    "Kronecker 10": lambda: nasty("Kronecker 10"),
    "one edge": lambda: nasty("one edge"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["auto", "given"])
def test_lists_stream_to_a_device_without_room_for_them(opencl_device, order, directed):
    """With no tile, some tiles in one part or several, or all tiles in parts on the device."""
    with (
        mock.patch.object(device_components, "_HEAVY_EDGES", 40),
        mock.patch.object(DeviceComponents, "GROUP", 32),
        mock.patch.object(DeviceComponents, "_make_room", side_effect=BudgetError("it is full")),
    ):
        for name, make in STREAMED.items():
            edges = replace(make(), directed=directed)
            graph = build_search_graph(edges, order)
            lists = (1 + directed) * 4 * graph.graph.num_stored_edges
            with ComponentRuns(graph, 1, replace(opencl_device, memory_bytes=100)) as runs:
                assert runs.device is None
                least = int(re.search(r"components need (\d+) bytes", runs.notes[0])[1])
            sent = []
            for small in with_less_memory(opencl_device, least, lists):
                with ComponentRuns(graph, 1, small) as runs:
                    assert runs.device is not None
                    assert runs.notes == ["lists stream: it is full"]
                    results = [runs.run(place="device") for _ in range(2)]
                for result in results:
                    confirm(edges, result)
                    assert result.used_device
                sent.append(results[1].streamed_bytes)
            assert sent[-1] == 0
            assert sent[0] >= sent[1]
            if name == "Kronecker 10" and order == "auto":
                assert sent[0] < lists / 9, "the first neighbours settle most"
            elif name != "one edge":
                assert sent[0] > lists / 9, name


def test_a_device_has_room_for_lists_or_for_some_of_them(apart):
    edges = LARGE["islands"]()
    graph = build_search_graph(edges)
    lists = 4 * graph.graph.num_stored_edges
    for memory, note in ((lists, "lists stream: components need"), (2 * lists, None)):
        with ComponentRuns(graph, 2, replace(apart, memory_bytes=memory)) as runs:
            result = runs.run(place="device")
            assert [one[: len(note or "")] for one in runs.notes] == [note] * bool(note)
            confirm(edges, result)
            assert (result.streamed_bytes > 0) == bool(note)
            assert runs.run(place="cpu").streamed_bytes == 0


@pytest.mark.usefixtures("without_costs")
@pytest.mark.parametrize("limit", [{"device_memory_bytes": 10_000}, {"max_alloc_bytes": 3_000}])
def test_a_device_that_may_not_hold_what_is_kept_for_vertices_is_left_out(apart, limit):
    edges = nasty("Kronecker 10")
    with hb.Engine(edges, device=str(apart.index)) as engine:
        engine.options = replace(engine.options, **limit)
        results = [engine.connected_components() for _ in range(4)]
        assert not any(result.used_device for result in results)
        assert any("is left out of components" in note for note in engine.notes)
    confirm(edges, results[-1])


def test_one_call(plain_device):
    edges = nasty("two components")
    confirm(edges, hb.connected_components(edges))
    result = hb.connected_components(edges, device=str(plain_device.index))
    confirm(edges, result)
    assert result.used_device
    with pytest.raises(hb.ArgumentError, match="the graph is of type list"):
        hb.connected_components([(0, 1)])


@pytest.mark.parametrize("name", ["moscow-centre", "debian-depends"])
def test_real_graphs(plain_place, name):
    edges = read(real_graph_file(name))
    with runs_of(edges, 2, plain_place) as runs:
        *_, where = runs.places
        confirm(edges, runs.run(place=where))


@pytest.mark.parametrize("shared_from", [1, 1 << 20])
def test_ids_are_restored_by_one_thread_or_by_all(monkeypatch, shared_from):
    monkeypatch.setattr(parallel, "_SHARED_FROM", shared_from)
    edges = nasty("isolated vertices")
    with runs_of(edges, 2, None) as runs:
        confirm(edges, runs.run())
