"""Graphs whose edges stream through the device: valid, within the budget, only what is needed."""

from __future__ import annotations

import itertools
import weakref
from unittest import mock

import numpy as np
import pytest
from graphs import nasty, path, sources_of, two_paths
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check_leaving, check_result, check_search, engine_on, true_levels
from streams import SELECTORS, streaming

from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.devices.opencl.opencl_device import BoundKernel, OpenCLDevice
from hetero_bfs.devices.opencl.streamed_lists import NUM_SLOTS
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.strategies import STRATEGIES


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "share",
    [
        pytest.param(0.0, marks=pytest.mark.slow),
        0.3,
        pytest.param(0.8, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("directed", "columns"), [(False, 1), (True, 48)], ids=["undirected", "directed"]
)
@pytest.mark.parametrize(
    "name", ["Kronecker 10", "two hubs", "late hub", "star", "sparse random", "isolated vertices"]
)
def test_every_strategy(apart, name, directed, columns, share):
    """Hubs lie over many pages, some of them resident, and lists of both directions are sent."""
    edges = nasty(name, directed)
    graph = build_search_graph(edges, "given")
    with streaming(apart, graph, share, columns) as engine:
        streamed = engine.streaming
        assert streamed.resident_pages < streamed.pages
        for number, selector in enumerate(SELECTORS):
            engine.set_selector(selector)
            sources = sources_of(edges, 2)
            check_search(engine, edges, sources[number % len(sources)])
            check_search(engine, edges, sources[(number + 1) % len(sources)])
        assert engine.bytes_streamed > 0 or streamed.resident_pages > 0 or columns > 1


def test_a_row_of_searches(apart):
    """Each result has what was streamed for its own search."""
    edges = nasty("Kronecker 10")
    sources = sources_of(edges, 4)
    with streaming(apart, build_search_graph(edges), 0.2, columns=1) as engine:
        before = engine.bytes_streamed
        results = engine.bfs_back_to_back(sources)
        moved = [result.streamed_bytes for result in results]
        assert min(moved) > 0
        assert sum(moved) == engine.bytes_streamed - before
        for source, result in zip(sources, results, strict=True):
            check_result(engine, edges, source, result)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["grid", "Kronecker 12", "dense random", "tree", "R-MAT"])
def test_relabelled_graphs(apart, name):
    edges = nasty(name)
    graph = build_search_graph(edges)
    with streaming(apart, graph, 0.4, columns=2) as engine:
        for selector in SELECTORS:
            engine.set_selector(selector)
            for source in sources_of(edges, 2):
                check_search(engine, edges, source)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@settings(max_examples=30)
@given(
    name=st.sampled_from(["Kronecker 10", "sparse random", "two hubs", "R-MAT"]),
    share=st.sampled_from([0.0, 0.5]),
    columns=st.sampled_from([1, 48]),
    schedule=st.lists(st.sampled_from(list(STRATEGIES)), min_size=1, max_size=9),
    position=st.floats(0, 1, exclude_max=True),
    interval=st.integers(1, 3),
)
def test_any_mixture(kept, apart, directed, name, share, columns, schedule, position, interval):
    edges = nasty(name, directed)
    key = (apart, directed, name, share, columns)
    engine = kept(key, lambda: streaming(apart, build_search_graph(edges, "given"), share, columns))
    engine.set_selector("fixed:" + ",".join(schedule))
    engine.decision_interval = interval
    result = check_search(engine, edges, int(position * edges.num_vertices))
    wanted = [schedule[min(i - i % interval, len(schedule) - 1)] for i in range(len(result.traces))]
    assert [trace.strategy for trace in result.traces] == wanted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("levels", [63, 64, 128])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_a_search_that_leaves_the_device_after_many_levels(apart, directed, levels):
    """A search that ends with the rows of the records leaves no stale parents."""
    edges = two_paths(700, 300, directed)
    with streaming(apart, build_search_graph(edges, "given"), 0.5) as engine:
        check_leaving(engine, edges, 700, levels)


@pytest.mark.slow
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_memory_that_was_never_written_is_never_read(apart, directed):
    """All of it is 0xAB at first."""
    cl = pytest.importorskip("pyopencl")
    make_buffer = OpenCLDevice.buffer

    def buffer(self, size, dtype):
        made = make_buffer(self, size, dtype)
        cl.enqueue_fill_buffer(self.queue, made, np.uint8(0xAB), 0, made.size)
        self.queue.finish()
        return made

    edges = nasty("sparse random", directed)
    graph = build_search_graph(edges, "given")
    for selector in SELECTORS:
        with (
            mock.patch.object(OpenCLDevice, "buffer", buffer),
            mock.patch("hetero_bfs.algorithms.bfs.selection.warm_up_schedules", return_value=[]),
            streaming(apart, graph, 0.3, columns=1, selector=selector) as engine,
        ):
            for source in sources_of(edges, 2):
                check_search(engine, edges, source)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_single_steps(apart, directed):
    """The steps of measurements: begin, levels one by one, and a queue of the new vertices."""
    edges = nasty("Kronecker 10", directed)
    with streaming(apart, build_search_graph(edges, "given"), 0.5) as engine:
        executor, graph = engine.accelerator, engine.graph
        source = int(edges.src[3])
        levels = true_levels(edges, source)
        frontier = Frontier(
            int(graph.degree[source]), graph.num_searched, graph.graph.num_stored_edges
        )
        executor.begin(source, frontier)
        frontier.place = schema.DEVICE
        for level in range(1, levels.max() + 1):
            found, seconds = executor.run(STRATEGIES["TG" if level == 2 else "BG"], frontier)
            new = np.flatnonzero((levels == level) & (graph.degree > 0))
            assert found.edges == graph.degree[new].sum()
            assert seconds > 0
            if not frontier.has_queue:
                executor.to_queue(frontier)
            assert (frontier.level, frontier.vertices) == (level, new.size)
        executor.launch_nothing(frontier)


# What is sent.


def test_only_needed_pages_are_sent(apart):
    edges = path(4000)
    with streaming(apart, build_search_graph(edges, "given"), 0.3, columns=1) as engine:
        streamed = engine.streaming
        assert 0 < streamed.resident_pages < streamed.pages / 2
        page_bytes = streamed.page_bytes + 8
        for source, pages in ((3000, 1), (10, 0)):  # the first ones are resident
            before = engine.bytes_streamed
            Search(engine.platform, source, engine.selector).run(max_levels=1)
            assert engine.bytes_streamed - before <= 2 * pages * page_bytes


@pytest.mark.parametrize("selector", ["fixed:BG", "fixed:TG", "fixed:BG,TG,TG,BG"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_lists_that_are_no_longer_than_their_heads_are_never_sent(apart, directed, selector):
    """A vertex of a grid has four neighbours."""
    edges = nasty("grid", directed)
    graph = build_search_graph(edges, "given")
    share = mock.patch("hetero_bfs.algorithms.bfs.heads._HEADS_SHARE", 1)
    with share, streaming(apart, graph, 1.1, columns=4, selector=selector) as engine:
        assert engine.streaming.resident_neighbours >= 2
        assert engine.streaming.resident_pages < engine.streaming.pages
        check_search(engine, edges, 1000)
        assert engine.bytes_streamed == 0


def test_bottom_up_sends_nothing_that_first_neighbours_settle(apart):
    edges = nasty("star")
    with streaming(apart, build_search_graph(edges), 0.0, 1, selector="fixed:BG") as engine:
        before = engine.bytes_streamed
        check_search(engine, edges, 0)
        assert engine.bytes_streamed == before


def test_columns_are_as_long_as_lists_ask_for(apart):
    """In the order by degree: one vertex with many neighbours costs no more than that."""
    graph = build_search_graph(nasty("two hubs"))
    with streaming(apart, graph, 0.6) as engine:
        (sizes,) = engine.accelerator.plan.columns
        degrees = np.sort(graph.degree)[::-1]
        assert list(sizes) == [int((degrees > k).sum()) for k in range(len(sizes))]
        assert len(sizes) > 8


def test_hubs_are_resident(apart):
    edges = nasty("Kronecker 12")
    graph = build_search_graph(edges)
    with streaming(apart, graph, 0.3) as engine:
        streamed = engine.streaming
        assert 4 * graph.degree[0] <= streamed.resident_pages * streamed.page_bytes
        before = engine.bytes_streamed
        Search(engine.platform, 0, engine.selector).run(max_levels=1)
        assert engine.bytes_streamed == before


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_with_room_for_all_nothing_is_sent(apart, directed):
    edges = nasty("Kronecker 10", directed)
    graph = build_search_graph(edges)
    with (
        mock.patch("hetero_bfs.algorithms.bfs.platform.bytes_in_memory", return_value=2**40),
        engine_on(apart, graph, selector="fixed:TG", device_memory_bytes=2**20) as engine,
    ):
        assert engine.streaming.resident_pages == engine.streaming.pages
        for selector in SELECTORS:
            engine.set_selector(selector)
            check_search(engine, edges, 458)
        assert engine.bytes_streamed == 0


def test_more_room_means_fewer_bytes(apart):
    edges = nasty("Kronecker 12")
    graph = build_search_graph(edges)
    moved = []
    for share in (0.0, 0.2, 0.4, 0.8):
        with streaming(apart, graph, share) as engine:
            before = engine.bytes_streamed
            for source in sources_of(edges, 8):
                engine.search(source)
            moved.append(engine.bytes_streamed - before)
    assert moved[0] > 0
    assert all(more > less for more, less in itertools.pairwise(moved)), moved


def test_a_level_that_misses_more_than_all_slots_hold(apart):
    """More pages are missing than are read back at first."""
    edges = nasty("Kronecker 10")
    with (
        mock.patch("hetero_bfs.algorithms.bfs.streamed._FIRST_MISSING", 3),
        streaming(apart, build_search_graph(edges), 0.0, columns=1) as engine,
    ):
        page_bytes, layout = engine.streaming.page_bytes, engine.accelerator.memory.layout
        assert 4 * layout.slot_entries == page_bytes
        for selector in ("fixed:TG", "fixed:BG"):
            engine.set_selector(selector)
            before = engine.bytes_streamed
            check_search(engine, edges, 458)
            assert engine.bytes_streamed - before > 2 * NUM_SLOTS * page_bytes


def test_the_count_of_bytes(apart):
    edges = nasty("Kronecker 10")
    with streaming(apart, build_search_graph(edges), 0.2) as engine:
        device = engine.accelerator.device
        streamed, copied = engine.bytes_streamed, device.bytes_copied
        engine.search(458)
        assert engine.bytes_streamed > streamed
        assert device.bytes_copied - copied >= engine.bytes_streamed - streamed


def test_a_level_is_a_few_calls_to_the_driver(apart):
    """Four kernels and one read-back; if pages are missing a copy, a kernel and the end again."""
    edges = nasty("Kronecker 12")
    calls = []

    def count(name, method):
        def counted(*arguments, **named):
            calls.append(name)
            return method(*arguments, **named)

        return counted

    with streaming(apart, build_search_graph(edges), 0.4, selector="alpha-beta") as engine:
        layout = engine.accelerator.memory.layout
        names = ("send", "read", "write", "copy", "fill", "finish", "wait")
        counted = {name: count(name, getattr(OpenCLDevice, name)) for name in names}
        with (
            mock.patch.multiple(OpenCLDevice, **counted),
            mock.patch.object(BoundKernel, "launch", count("launch", BoundKernel.launch)),
        ):
            levels = len(engine.search(458).traces)
        sent = calls.count("send")
        assert layout.slot_blocks > 1
        assert calls.count("launch") <= 1 + 5 * levels + sent / 2
        assert calls.count("read") <= 2 * levels
        assert set(calls) <= {"launch", "read", "send", "wait"}


class Event:
    """Stands for PyOpenCL's event of a copy, which waits for the copy when it is dropped."""


def test_no_event_of_a_copy_is_dropped_before_its_slots_next_turn(apart):
    """Otherwise the host would wait for each copy before it queues the next one."""
    made = []

    def send(self, queue, buffer, array):
        event = Event()
        made.append(weakref.ref(event))
        return event

    with streaming(apart, build_search_graph(nasty("Kronecker 10"), "given"), 0.0) as engine:
        memory = engine.accelerator.memory
        of_slot = 4 * memory.layout.slot_entries // engine.streaming.page_bytes
        pages = np.arange(NUM_SLOTS * of_slot)
        with mock.patch.object(OpenCLDevice, "send", send):
            slots = memory.send(0, pages, lambda slot, pages, copied: copied[0])
        assert len(made) == 2 * len(slots) == 2 * NUM_SLOTS
        assert all(event() is not None for event in made)
