"""Neighbour lists are in a device's memory once, whatever algorithms and engines read them."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import random_graph
from oracle import check_search, engine_on
from sample_programs import Distances, Labels, MonotoneDistances

import hetero_bfs as hb
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.devices.opencl.device_run import DeviceArray, DeviceLists, offset_dtype
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling.run_chooser import RunChoice, RunChooser

pytestmark = pytest.mark.usefixtures("few_objects")

DRAWN = random_graph(3000, 20_000, 3)


def edges_of(directed: bool) -> EdgeList:
    weights = np.random.default_rng(1).integers(1, 90, DRAWN.src.size).astype(np.float32)
    return EdgeList(DRAWN.src, DRAWN.dst, DRAWN.num_vertices, directed, weights)


def search(engine, edges):
    check_search(engine, edges, 5)


def rank(engine, edges):
    check = hb.check_pagerank(edges, engine.pagerank(tol=1e-6).rank, 0.85, 1e-6)
    assert check.valid, check.message


def find_components(engine, edges):
    check = hb.check_components(edges, engine.connected_components().component)
    assert check.valid, check.message


def colour(engine, edges):
    check = hb.check_colouring(edges, engine.colour().colour)
    assert check.valid, check.message


CALLS = search, rank, find_components, colour


class Uploads:
    """The arrays that devices took in, and how large those are that they still have."""

    def __init__(self, monkeypatch):
        self.sizes: list[int] = []
        upload = OpenCLDevice.upload

        def count(device, array):
            self.sizes.append(array.size)
            return upload(device, array)

        monkeypatch.setattr(OpenCLDevice, "upload", count)

    def of(self, *sizes: int) -> int:
        """Return how many arrays of these sizes were taken in."""
        return sum(self.sizes.count(size) for size in sizes)


def held_bytes(graph) -> int:
    """Return the bytes of neighbours that devices hold now."""
    gc.collect()
    arrays = [thing for thing in gc.get_objects() if type(thing) is DeviceArray]
    sizes = [array.buffer.size for array in arrays]
    return sum(size for size in sizes if size == graph.graph.indices.nbytes)


def to_device(patch) -> None:
    """Let each algorithm run on its device; fail if it has none."""

    def choose(chooser, **_):
        return RunChoice(next(place for place in chooser if place == "device"), {}, "")

    patch.setattr(RunChooser, "choose", choose)


@pytest.fixture
def on_device(monkeypatch):
    to_device(monkeypatch)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("order", [CALLS, CALLS[::-1]], ids=["searches first", "searches last"])
def test_five_algorithms_hold_the_lists_once(apart, monkeypatch, on_device, directed, order):
    edges, ways = edges_of(directed), 1 + directed
    graph, uploads = build_search_graph(edges), Uploads(monkeypatch)
    n, entries = graph.num_searched, graph.graph.num_stored_edges
    with engine_on(apart, graph, selector="fixed:TG,BG") as engine:
        for call in order:
            call(engine, edges)
        assert uploads.of(entries) == ways
        assert uploads.of(n + 1) == ways + directed  # the colouring's joined lists
        assert held_bytes(graph) == ways * 4 * entries
    assert held_bytes(graph) == 0


def test_searches_against_the_edges_share_the_lists(apart, monkeypatch):
    edges = edges_of(directed=True)
    graph, uploads = build_search_graph(edges), Uploads(monkeypatch)
    choosing = "hetero_bfs.options.choose_devices"
    with (
        mock.patch(choosing, return_value=[apart]),
        hb.Engine(graph, selector="fixed:BG") as engine,
    ):
        engine.bfs(5)
        engine.bfs(5, reverse=True)
        assert uploads.of(graph.graph.num_stored_edges) == 2


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_weighted_lists_are_held_once(apart, monkeypatch, directed):
    """Shortest paths read lists by rising weight; so do programs that are monotone."""
    edges = edges_of(directed)
    graph, uploads = build_search_graph(edges), Uploads(monkeypatch)
    entries = graph.graph.num_stored_edges
    options = hb.RunOptions(place="device")
    with engine_on(apart, graph, selector="fixed:TG") as engine:
        with monkeypatch.context() as patch:
            to_device(patch)
            paths = engine.sssp(5)
            engine.pagerank(weighted=True)
        before = uploads.of(entries)
        found = engine.run(MonotoneDistances(), options, source=5)
        assert uploads.of(entries) == before
        np.testing.assert_allclose(found.state["distance"], paths.distance)
        engine.run(Distances(), options, source=5)
        engine.run(Labels(), options)
        # Neighbours and weights of each direction; by weight those of one, and the other's order.
        assert uploads.of(entries) == (7 if directed else 4)


def test_an_engine_goes_on_when_another_one_closes(apart, on_device):
    edges = edges_of(directed=False)
    graph = build_search_graph(edges)
    first = engine_on(apart, graph, selector="fixed:TG,BG")
    with engine_on(apart, graph, selector="fixed:BG") as second:
        for call in CALLS:
            call(first, edges)
        assert held_bytes(graph) == 4 * graph.graph.num_stored_edges
        first.close()
        for call in CALLS:
            call(second, edges)
        assert held_bytes(graph) == 4 * graph.graph.num_stored_edges
    assert held_bytes(graph) == 0


def test_engines_in_threads_share_the_lists(apart, monkeypatch, on_device):
    edges = edges_of(directed=False)
    graph, uploads = build_search_graph(edges), Uploads(monkeypatch)
    engines = [engine_on(apart, graph, selector="fixed:TG,BG") for _ in range(3)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for call in (*CALLS[number:], *CALLS[:number]):
                call(engines[number], edges)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert uploads.of(graph.graph.num_stored_edges) == 1
    for engine in engines:
        engine.close()


def test_parts_are_of_one_search(apart, monkeypatch, on_device):
    """Kernels of other algorithms read lists in one piece; they get their own."""
    edges = edges_of(directed=False)
    graph, uploads = build_search_graph(edges), Uploads(monkeypatch)
    entries = graph.graph.num_stored_edges
    with engine_on(apart, graph, selector="fixed:TG,BG", max_alloc_bytes=2 * entries) as engine:
        search(engine, edges)
        assert engine.num_parts > 1
        assert uploads.of(entries) == 0
    with ComponentRuns(graph, 1, apart) as runs, Colourings(graph, 1, apart) as more:
        assert runs.device is not None
        assert more.device is not None
        assert runs.notes == more.notes == []
        assert uploads.of(entries) == 1


def test_shared_memory_is_used_in_place(shared, monkeypatch, on_device):
    edges = edges_of(directed=True)
    graph, uploads = build_search_graph(edges), Uploads(monkeypatch)
    share = OpenCLDevice.share
    used: list[int] = []

    def note(device, array):
        used.append(array.ctypes.data)
        return share(device, array)

    monkeypatch.setattr(OpenCLDevice, "share", note)
    with engine_on(shared, graph, selector="fixed:TG,BG") as engine:
        for call in CALLS[:3]:
            call(engine, edges)
    lists = graph.graph, graph.graph.transpose
    for array in (*(one.indptr for one in lists), *(one.indices for one in lists)):
        assert used.count(array.ctypes.data) == 1
    assert uploads.of(graph.graph.num_stored_edges) == 2


def test_an_array_whose_address_is_used_again_is_another_one(plain_device):
    lists = DeviceLists(OpenCLDevice(plain_device))
    for value in range(20):
        array = np.full(1000, value, np.uint32)
        read = np.empty_like(array)
        lists.device.read(read, lists.array(array))
        assert (read == value).all()


def test_offsets_have_room_for_strides(plain_device):
    apart = replace(plain_device, unified_memory=False)
    assert offset_dtype(apart, 2**31) == np.uint32
    assert offset_dtype(apart, 2**32 - 1) == np.uint64
    assert offset_dtype(replace(plain_device, unified_memory=True), 10) == np.uint64


def test_a_failed_upload_leaves_nothing_behind(apart):
    device = OpenCLDevice(apart)
    array = np.arange(100, dtype=np.uint32)
    with (
        mock.patch.object(OpenCLDevice, "upload", side_effect=hb.errors.DeviceError("no memory")),
        pytest.raises(hb.errors.DeviceError),
    ):
        DeviceLists(device).array(array)
    read = np.empty_like(array)
    device.read(read, DeviceLists(device).array(array))
    np.testing.assert_array_equal(read, array)
