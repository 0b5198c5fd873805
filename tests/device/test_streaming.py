"""Graphs whose edges stream through the device: valid, within the budget, only what is needed."""

from __future__ import annotations

import json
import re
import weakref
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import edge_list, nasty, path, roots_of, two_paths
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check_leaving, check_search, engine_on, true_levels

import hetero_bfs as hb
from hetero_bfs.bfs import Frontier
from hetero_bfs.build import build_search_graph
from hetero_bfs.cli import main
from hetero_bfs.devices.opencl import OpenCLDevice
from hetero_bfs.devices.opencl_graph import bytes_in_memory
from hetero_bfs.devices.opencl_slots import _runs
from hetero_bfs.errors import BudgetError, DeviceError, SplitError
from hetero_bfs.graph500 import Graph500Options, run_graph500
from hetero_bfs.report import format_report
from hetero_bfs.strategy import STRATEGIES

SELECTORS = [
    "fixed:TG",
    "fixed:BG",
    "fixed:BGC",
    "fixed:TG,BG,TG",
    "fixed:TC,BG,TG,BC,BGC,TC",
    "fixed:BG,TC,TG,BC,TG",
    "alpha-beta",
    "daga",
]


@pytest.fixture
def apart(opencl_device):
    """A device with memory of its own."""
    if opencl_device.unified_memory:
        pytest.skip("this device shares the host's memory: nothing streams")
    return opencl_device


def streaming(device, graph, share: float, **options):
    """Open an engine with room for about this share of the edges."""
    edge_bytes = graph.graph.indices.nbytes * (2 if graph.graph.directed else 1)
    budget = bytes_in_memory(device, graph) - int((1 - share) * edge_bytes)
    options = {"selector": "fixed:TG", "device_memory_bytes": budget} | options
    engine = engine_on(device, graph, **options)
    assert engine.streaming is not None
    assert engine.streaming.budget_bytes == budget
    return engine


@pytest.mark.parametrize("share", [0.35, 0.6, 0.95])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize(
    "name", ["Kronecker 10", "two hubs", "late hub", "star", "sparse random", "isolated vertices"]
)
def test_every_strategy(apart, name, directed, share):
    """Hubs lie over many parts, and lists of both directions take turns in the slots."""
    edges = nasty(name, directed)
    graph = build_search_graph(edges, "given")
    with streaming(apart, graph, share) as engine:
        plan = engine.accelerator.plan
        assert 1 < plan.num_slots < engine.streaming.parts
        for number, selector in enumerate(SELECTORS):
            engine.set_selector(selector)
            roots = roots_of(edges, 2)
            check_search(engine, edges, roots[number % len(roots)])
            check_search(engine, edges, roots[(number + 1) % len(roots)])


@pytest.mark.parametrize("name", ["grid", "Kronecker 12", "dense random", "tree", "R-MAT"])
def test_relabelled_graphs(apart, name):
    edges = nasty(name)
    graph = build_search_graph(edges)
    with streaming(apart, graph, 0.5) as engine:
        for selector in SELECTORS:
            engine.set_selector(selector)
            for root in roots_of(edges, 2):
                check_search(engine, edges, root)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@settings(max_examples=60)
@given(
    name=st.sampled_from(["Kronecker 10", "sparse random", "two hubs", "R-MAT"]),
    share=st.sampled_from([0.3, 0.8]),
    schedule=st.lists(st.sampled_from(list(STRATEGIES)), min_size=1, max_size=9),
    position=st.floats(0, 1, exclude_max=True),
    interval=st.integers(1, 3),
)
def test_any_mixture(kept, apart, directed, name, share, schedule, position, interval):
    edges = nasty(name, directed)
    key = (apart, directed, name, share)
    engine = kept(key, lambda: streaming(apart, build_search_graph(edges, "given"), share))
    engine.set_selector("fixed:" + ",".join(schedule))
    engine.decision_interval = interval
    result = check_search(engine, edges, int(position * edges.num_vertices))
    wanted = [schedule[min(i - i % interval, len(schedule) - 1)] for i in range(len(result.traces))]
    assert [trace.strategy for trace in result.traces] == wanted


@pytest.mark.parametrize("levels", [63, 64, 128])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_a_search_that_leaves_the_device_after_many_levels(apart, directed, levels):
    """What ends where the records end has forgotten stale parents too."""
    edges = two_paths(700, 300, directed)
    with streaming(apart, build_search_graph(edges, "given"), 0.5) as engine:
        check_leaving(engine, edges, 700, levels)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_memory_that_was_never_written_is_never_read(apart, directed):
    """All of it is 0xAB at first, and slots hold blocks that nobody sent."""
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
            mock.patch("hetero_bfs.devices.opencl_slots._GAP_BYTES", 0),
            mock.patch("hetero_bfs.engine._WARM_UP", ()),
            streaming(apart, graph, 0.5, selector=selector) as engine,
        ):
            for root in roots_of(edges, 2):
                check_search(engine, edges, root)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_single_steps(apart, directed):
    """What measurements use: begin, levels one by one, and a queue of the new vertices alone."""
    edges = nasty("Kronecker 10", directed)
    with streaming(apart, build_search_graph(edges, "given"), 0.5) as engine:
        searcher, graph = engine.accelerator, engine.graph
        root = int(edges.src[3])
        levels = true_levels(edges, root)
        frontier = Frontier(
            int(graph.degree[root]), graph.num_searched, graph.graph.num_stored_edges
        )
        searcher.begin(root, frontier)
        frontier.kind = "device"
        for level in range(1, levels.max() + 1):
            found, seconds = searcher.run(STRATEGIES["TG" if level == 2 else "BG"], frontier)
            new = np.flatnonzero((levels == level) & (graph.degree > 0))
            assert found.edges == graph.degree[new].sum()
            assert seconds > 0
            if frontier.form == "bitmap":
                searcher.to_queue(frontier)
            assert (frontier.level, frontier.vertices) == (level, new.size)
        searcher.launch_nothing(frontier)
        assert not searcher.one_launch


@pytest.mark.parametrize("fails", ["memory", "driver"])
def test_edges_that_cannot_be_pinned_stay_where_they_are(apart, fails):
    edges = nasty("Kronecker 10")
    graph = build_search_graph(edges)
    host_array = OpenCLDevice.host_array

    def stingy(self, size, dtype):
        if size > graph.num_searched:
            raise DeviceError("pinning failed")
        return host_array(self, size, dtype)

    failing = {
        "memory": mock.patch("hetero_bfs.memory.free_bytes", return_value=0),
        "driver": mock.patch.object(OpenCLDevice, "host_array", stingy),
    }[fails]
    with failing, streaming(apart, graph, 0.5) as engine:
        assert not engine.streaming.pinned
        assert "no room to pin them" in engine.notes[0]
        check_search(engine, edges, 458)


# What is sent.


def test_only_needed_parts_are_sent(apart):
    """A small component beside a large one: top-down reads the one part that has it."""
    small = [(i, i + 1) for i in range(9)]
    large = np.random.default_rng(1).integers(10, 1500, (6000, 2))
    edges = edge_list(np.concatenate((small, large)), 1500)
    with streaming(apart, build_search_graph(edges, "given"), 0.4) as engine:
        plan = engine.accelerator.plan
        engine.bfs(700)
        before = engine.bytes_streamed
        check_search(engine, edges, 3)
        assert plan.num_parts > 8
        assert engine.bytes_streamed - before <= plan.part_bytes
        before = engine.bytes_streamed
        check_search(engine, edges, 5)
        assert engine.bytes_streamed == before, "it is there already"


def test_only_needed_blocks_are_sent(apart):
    edges = path(4000)
    no_gap = mock.patch("hetero_bfs.devices.opencl_slots._GAP_BYTES", 0)
    with no_gap, streaming(apart, build_search_graph(edges, "given"), 0.4) as engine:
        plan = engine.accelerator.plan
        block_bytes = 4 << plan.block_shift
        assert block_bytes < plan.part_bytes
        engine.bfs(0)  # leaves the last parts in the slots
        before = engine.bytes_streamed
        search = hb.search.Search(engine.platform, 1000, engine.selector)
        search.run(max_levels=1)
        assert engine.bytes_streamed - before <= 2 * block_bytes


def test_bottom_up_sends_nothing_that_first_neighbours_settle(apart):
    edges = nasty("star")
    with streaming(apart, build_search_graph(edges), 0.5, selector="fixed:BG") as engine:
        before = engine.bytes_streamed
        check_search(engine, edges, 0)
        assert engine.bytes_streamed == before


def test_heads_of_lists_are_resident(apart):
    """A vertex of a grid has four neighbours, all of them resident if there is room."""
    edges = nasty("grid")
    graph = build_search_graph(edges, "given")
    resident = mock.patch("hetero_bfs.devices.opencl_stream_graph._COLUMNS_SHARE", 1)
    with (
        mock.patch("hetero_bfs.devices.opencl_stream.bytes_in_memory", return_value=2**40),
        resident,
        engine_on(apart, graph, selector="fixed:BG", device_memory_bytes=2**20) as engine,
    ):
        assert engine.accelerator.plan.columns >= 3
        before = engine.bytes_streamed
        check_search(engine, edges, 1000)
        assert engine.bytes_streamed == before


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_with_room_for_all_everything_stays(apart, directed):
    edges = nasty("Kronecker 10", directed)
    graph = build_search_graph(edges)
    with (
        mock.patch("hetero_bfs.devices.opencl_stream.bytes_in_memory", return_value=2**40),
        engine_on(apart, graph, selector="fixed:TG", device_memory_bytes=2**20) as engine,
    ):
        assert engine.accelerator.plan.num_slots == engine.streaming.parts
        for selector in SELECTORS:
            engine.set_selector(selector)
            check_search(engine, edges, 458)
        before = engine.bytes_streamed
        assert before <= 1.1 * engine.streaming.edge_bytes, "blocks between others may come twice"
        for selector in SELECTORS:
            engine.set_selector(selector)
            check_search(engine, edges, 458)
        assert engine.bytes_streamed == before


def test_a_budget_a_little_too_small_costs_little(apart):
    """All parts but a few stay; a search moves those few."""
    edges = nasty("Kronecker 12")
    graph = build_search_graph(edges)
    no_column = mock.patch("hetero_bfs.devices.opencl_stream_graph._MOST_COLUMNS", 0)
    with no_column, streaming(apart, graph, 0.9) as engine:
        plan = engine.accelerator.plan
        missing = plan.num_parts - plan.num_slots
        assert 0 < missing < plan.num_slots
        for root in roots_of(edges):
            check_search(engine, edges, root)
            before = engine.bytes_streamed
            result = check_search(engine, edges, root)
            levels = len(result.traces)
            moved = engine.bytes_streamed - before
            assert moved <= levels * (missing + 1) * plan.part_bytes


def test_the_count_of_bytes(apart):
    edges = nasty("Kronecker 10")
    with streaming(apart, build_search_graph(edges), 0.4) as engine:
        device = engine.accelerator.device
        streamed, copied = engine.bytes_streamed, device.bytes_copied
        engine.search(458)
        assert engine.bytes_streamed > streamed
        assert device.bytes_copied - copied >= engine.bytes_streamed - streamed


@pytest.mark.parametrize(
    ("blocks", "gap", "runs"),
    [
        ([], 1, []),
        ([3], 1, [(3, 4)]),
        ([0, 1, 2, 5, 6], 1, [(0, 3), (5, 7)]),
        ([0, 1, 2, 5, 6], 3, [(0, 7)]),
        ([0, 2, 4], 1, [(0, 1), (2, 3), (4, 5)]),
    ],
)
def test_runs_of_blocks(blocks, gap, runs):
    assert _runs(np.array(blocks, np.intp), gap) == runs


class Event:
    """Stands for PyOpenCL's event of a copy, which waits for the copy when it is dropped."""


def test_no_event_of_a_copy_is_dropped_within_a_level(apart):
    """Else the host would wait for each copy before it queues the next one."""
    made = []

    def send(self, queue, buffer, offset_bytes, array, after):
        event = Event()
        made.append(weakref.ref(event))
        return event

    with streaming(apart, build_search_graph(nasty("Kronecker 10"), "given"), 0.5) as engine:
        plan, slots = engine.accelerator.plan, engine.accelerator._slots
        for slot in slots.slots:
            slot.part, slot.present[:] = None, False
        needed = np.ones(plan.num_parts << (plan.part_shift - plan.block_shift), np.bool_)
        with mock.patch.object(OpenCLDevice, "send", send):
            slots.stream(0, needed, lambda slot, piece, after: None)
        assert len(made) == plan.num_parts
        assert all(event() is not None for event in made)


# Budgets.


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("share", [0.35, 0.95])
def test_the_budget_is_kept(apart, directed, share):
    graph = build_search_graph(nasty("Kronecker 12", directed))
    make_buffer = OpenCLDevice.buffer
    sizes = []

    def buffer(self, size, dtype):
        sizes.append(size * np.dtype(dtype).itemsize)
        return make_buffer(self, size, dtype)

    counted = mock.patch.object(OpenCLDevice, "buffer", buffer)
    with counted, streaming(apart, graph, share) as engine:
        plan = engine.accelerator.plan
        assert sum(sizes) <= plan.budget_bytes
        assert plan.resident_bytes + plan.num_slots * plan.part_bytes <= plan.budget_bytes


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_too_small_a_budget_names_one_that_works(apart, directed):
    edges = nasty("Kronecker 10", directed)
    graph = build_search_graph(edges)
    with pytest.raises(BudgetError, match=r"^10000 bytes .* \(--device-memory\)") as caught:
        engine_on(apart, graph, selector="fixed:TG", device_memory_bytes=10_000)
    least = int(re.search(r"need (\d+) bytes", str(caught.value))[1])
    with pytest.raises(BudgetError, match=f"need {least} bytes"):
        engine_on(apart, graph, selector="fixed:TG", device_memory_bytes=least - 1)
    options = {"selector": "fixed:TG", "device_memory_bytes": least}
    with engine_on(apart, graph, **options) as engine:
        assert engine.accelerator.plan.num_slots == 2
        for selector in SELECTORS:
            engine.set_selector(selector)
            check_search(engine, edges, 458)


def test_a_graph_that_fits_the_budget_does_not_stream(apart):
    graph = build_search_graph(nasty("Kronecker 10"))
    budget = bytes_in_memory(apart, graph)
    options = {"selector": "fixed:TC", "device_memory_bytes": budget}
    with engine_on(apart, graph, **options) as engine:
        assert engine.streaming is None
        assert engine.bytes_streamed == 0
        assert engine.notes == []


def test_max_alloc_bounds_the_parts(apart):
    edges = nasty("Kronecker 10")
    graph = build_search_graph(edges)
    with streaming(apart, graph, 0.6, max_alloc_bytes=1500) as engine:
        assert engine.streaming.part_bytes == 1024
        assert engine.num_parts == -(-graph.graph.indices.nbytes // 1024) > 32
        check_search(engine, edges, 458)
    with pytest.raises(SplitError, match=r"allow at least 256 bytes \(--max-alloc\)"):
        streaming(apart, graph, 0.6, max_alloc_bytes=128)


def test_a_device_too_small_for_the_edges_streams_unasked(apart):
    edges = nasty("Kronecker 10")
    graph = build_search_graph(edges)
    small = replace(apart, memory_bytes=bytes_in_memory(apart, graph) - 1000)
    with engine_on(small, graph, selector="fixed:TG") as engine:
        assert engine.streaming.budget_bytes == int(0.9 * small.memory_bytes)
        assert any("streamed" in note for note in engine.notes)
        check_search(engine, edges, 458)


def test_shared_memory_has_nothing_to_stream(opencl_device):
    if not opencl_device.unified_memory:
        pytest.skip("this device has memory of its own")
    edges = nasty("Kronecker 10")
    with pytest.raises(BudgetError, match="shares the host's memory"):
        engine_on(opencl_device, edges, selector="fixed:TC", device_memory_bytes=30_000)
    small = replace(opencl_device, memory_bytes=30_000)
    with (
        mock.patch("hetero_bfs.engine.choose_device", return_value=small),
        hb.Engine(edges, selector="fixed:TC") as engine,
    ):
        assert engine.device_info is None
        assert "left out" in engine.notes[0]
        assert "nothing to stream to" in engine.notes[0]


# What is reported.


def test_the_report_says_what_was_moved(apart):
    options = Graph500Options(
        scale=10, roots=8, selector="fixed:TG,BG", device_memory_bytes=60_000, energy_seconds=0.01
    )
    with mock.patch("hetero_bfs.engine.choose_device", return_value=apart):
        report = run_graph500(options)
    assert report.valid
    text = format_report(report)
    line = re.search(
        r"edge array: streamed, [\d.]+ KiB in (\d+) parts of [\d.]+ KiB, room for (\d+) of them, "
        r"budget 58.6 KiB; (\S+ \w+) moved per search\n",
        text,
    )
    assert line is not None, text
    assert int(line[1]) == report.parts > int(line[2])
    assert any("edges are streamed" in note for note in report.notes)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["streaming"]["budget_bytes"] == 60_000
    moved = [root["streamed_bytes"] for root in data["roots"]]
    assert max(moved) > 0
    assert data["streaming"]["mean_bytes_moved_per_search"] == pytest.approx(np.mean(moved))


def test_the_command_line_takes_a_budget(apart, tmp_path, capsys):
    graph = tmp_path / "graph.txt"
    pairs = np.random.default_rng(2).integers(0, 500, (8000, 2))
    np.savetxt(graph, pairs, "%d")
    command = ["bfs", str(graph), "--source", "1", "--selector", "fixed:TG,BG", "--device-memory"]
    with mock.patch("hetero_bfs.engine.choose_device", return_value=apart):
        assert main([*command, "50k"]) == 0
        shown = capsys.readouterr()
        assert "edges are streamed" in shown.err
        assert ", valid" in shown.out
        assert main([*command, "1k"]) == 1
        assert "1024 bytes of" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*command, "much"])
    assert ended.value.code == 2
