"""Budgets of streaming, and what is reported of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import nasty
from oracle import check_search, engine_on
from streams import SELECTORS, streaming

import hetero_bfs as hb
from hetero_bfs.algorithms.bfs.device_memory import bytes_in_memory
from hetero_bfs.cli.main import main
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import BudgetError, SplitError
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.graph500.kernel import Graph500Options
from hetero_bfs.graph500.protocol import run_graph500
from hetero_bfs.graph500.report import format_report
from hetero_bfs.options import EngineOptions


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("share", [0.0, 0.35, 0.8])
def test_the_budget_is_kept(apart, directed, share):
    graph = build_search_graph(nasty("Kronecker 12", directed))
    make_buffer = OpenCLDevice.buffer
    sizes = []

    def buffer(self, size, dtype):
        sizes.append(max(size, 1) * np.dtype(dtype).itemsize)
        return make_buffer(self, size, dtype)

    counted = mock.patch.object(OpenCLDevice, "buffer", buffer)
    with counted, streaming(apart, graph, share) as engine:
        budget = engine.streaming.budget_bytes
        assert 0.9 * budget < sum(sizes) <= budget


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_too_small_a_budget_names_one_that_works(apart, directed):
    edges = nasty("Kronecker 10", directed)
    graph = build_search_graph(edges)
    with pytest.raises(BudgetError, match=r"^10000 bytes .* \(device_memory_bytes\)") as caught:
        engine_on(apart, graph, selector="fixed:TG", device_memory_bytes=10_000)
    least = int(re.search(r"need (\d+) bytes", str(caught.value))[1])
    with pytest.raises(BudgetError, match=f"need {least} bytes"):
        engine_on(apart, graph, selector="fixed:TG", device_memory_bytes=least - 1)
    options = {"selector": "fixed:TG", "device_memory_bytes": least}
    with engine_on(apart, graph, **options) as engine:
        assert engine.streaming.resident_pages == 0
        assert engine.streaming.resident_neighbours == 1
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
        (note,) = engine.notes
    assert note.startswith("the host restores results: the arrays need 11.5 KiB on ")


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_max_alloc_bounds_the_buffers_of_edges(apart, directed):
    edges = nasty("Kronecker 10", directed)
    graph = build_search_graph(edges)
    with streaming(apart, graph, 0.6, columns=2, max_alloc_bytes=1500) as engine:
        executor = engine.accelerator
        rooms = [*executor.memory.parts[0], *executor.memory.parts[-1], *executor.memory.slots]
        buffers = [buffer for room in rooms for buffer in room.buffers]
        assert max(buffer.size for buffer in buffers) <= 1500
        assert len(executor.memory.parts[-1]) > 4
        check_search(engine, edges, 458)
        engine.set_selector("fixed:BG,TG,BG")
        check_search(engine, edges, 458)
    with pytest.raises(SplitError, match=r"allow at least \d+ bytes \(max_alloc_bytes\)"):
        streaming(apart, graph, 0.6, max_alloc_bytes=64)


def test_a_device_too_small_for_the_edges_streams_unasked(apart):
    edges = nasty("Kronecker 10")
    graph = build_search_graph(edges)
    small = replace(apart, memory_bytes=bytes_in_memory(apart, graph) - 1000)
    with engine_on(small, graph, selector="fixed:TG") as engine:
        assert engine.streaming.budget_bytes == int(0.9 * small.memory_bytes)
        assert any("streamed" in note for note in engine.notes)
        check_search(engine, edges, 458)


def test_shared_memory_has_nothing_to_stream(shared):
    edges = nasty("Kronecker 10")
    with pytest.raises(BudgetError, match="shares the host's memory"):
        engine_on(shared, edges, selector="fixed:TC", device_memory_bytes=30_000)
    small = replace(shared, memory_bytes=30_000)
    with (
        mock.patch("hetero_bfs.options.choose_devices", return_value=[small]),
        hb.Engine(edges, selector="fixed:TC") as engine,
    ):
        assert engine.device_info is None
        assert "left out" in engine.notes[0]
        assert "nothing to stream to" in engine.notes[0]


# What is reported.


def test_the_report_says_what_was_moved(apart):
    engine = EngineOptions(selector="fixed:TG,BG", device_memory_bytes=60_000)
    options = Graph500Options(scale=10, sources=8, energy_seconds=0.01, engine=engine)
    with mock.patch("hetero_bfs.options.choose_devices", return_value=[apart]):
        report = run_graph500(options)
    assert report.valid
    text = format_report(report)
    line = re.search(
        r"edge array: streamed, [\d.]+ KiB in ([\d,]+) pages of \d+ bytes; resident are ([\d,]+) "
        r"pages and of every list the first \d+, budget 58.6 KiB; \S+ \w+ sent per search\n",
        text,
    )
    assert line is not None, text
    pages, resident = (int(number.replace(",", "")) for number in line.groups())
    assert pages == report.parts > resident > 0
    assert any("edges are streamed" in note for note in report.notes)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["streaming"]["budget_bytes"] == 60_000
    moved = [source["streamed_bytes"] for source in data["roots"]]
    assert max(moved) > 0
    assert data["streaming"]["mean_bytes_moved_per_search"] == pytest.approx(np.mean(moved))


def test_the_command_line_takes_a_budget(apart, tmp_path, capsys):
    graph = tmp_path / "graph.txt"
    pairs = np.random.default_rng(2).integers(0, 500, (8000, 2))
    np.savetxt(graph, pairs, "%d")
    command = ["bfs", str(graph), "--source", "1", "--selector", "fixed:TG,BG", "--device-memory"]
    with mock.patch("hetero_bfs.options.choose_devices", return_value=[apart]):
        assert main([*command, "50k"]) == 0
        shown = capsys.readouterr()
        assert "edges are streamed" in shown.err
        assert ", valid" in shown.out
        assert main([*command, "1k"]) == 1
        assert "1024 bytes of" in capsys.readouterr().err
    assert main([*command, "much"]) == 2


def test_auto_is_beamers_rule_where_edges_stream(apart):
    """A model would predict levels whose edges lie on the device."""
    graph = build_search_graph(nasty("Kronecker 10"))
    with streaming(apart, graph, 0.3, selector="auto") as engine:
        assert engine.selector.name.startswith("alpha-beta")
        assert "device" in {s.device_kind for s in engine.selector.candidates}
        engine.set_selector("alpha-beta")
        assert engine.selector.name == "alpha-beta"
