"""What an engine keeps on a device, copies, and leaves out if it does not fit."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import (
    nasty,
    sources_of,
)
from oracle import check_search, engine_on

import hetero_bfs as hb
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import DeviceError, ModelError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.search_graph import build_search_graph


def test_shared_memory_is_not_copied(shared):
    edges = KroneckerEdges(15).materialise()
    graph = build_search_graph(edges)
    with engine_on(shared, graph, selector="fixed:TG") as engine:
        device = engine.accelerator.device
        assert graph.graph.indices.nbytes > 2 * 2**20
        assert device.bytes_copied < 64 * 2**10, "upload and warm-up"
        device.bytes_copied = 0
        for selector in ("fixed:TG", "fixed:BG", "fixed:TC,BG,TC", "fixed:TG,BC,TG"):
            engine.set_selector(selector)
            check_search(engine, edges, int(edges.src[0]))
            assert device.bytes_copied < 64 * 2**10, selector
            device.bytes_copied = 0


@pytest.mark.usefixtures("few_objects")
def test_shared_memory_is_unmapped_when_an_engine_goes(shared):
    edges = nasty("Kronecker 10")
    before = _count_mappings()
    for closes in (True, False):
        engine = engine_on(shared, edges, selector="fixed:TC,BG,TC")
        engine.bfs(458)
        assert _count_mappings() > before
        if closes:
            engine.close()
        del engine
        assert _count_mappings() == before


def test_an_engine_that_goes_leaves_nothing_to_the_garbage_collector(opencl_device):
    """Else a device's memory is in use until Python collects cycles, which may be late."""
    graph = build_search_graph(nasty("Kronecker 10"))
    lists = weakref.ref(graph.graph.indices)
    gc.collect()
    gc.disable()
    try:
        with engine_on(opencl_device, graph) as engine:
            engine.bfs(458)
            engine.bfs(458, want="levels")
        del engine, graph
        assert lists() is None
    finally:
        gc.enable()


def _count_mappings():
    """Count the memory that this process has mapped by OpenCL and not unmapped."""
    gc.collect()
    return sum(type(thing).__name__ == "MemoryMap" for thing in gc.get_objects())


def test_a_graph_is_copied_to_a_device_with_memory_of_its_own(apart):
    """Later changes of the host's edges do not affect a search on the device."""
    edges = KroneckerEdges(12).materialise()
    graph = build_search_graph(edges)
    with engine_on(apart, graph, selector="fixed:TG,BG") as engine:
        assert engine.accelerator.device.bytes_copied > graph.graph.indices.nbytes
        graph.graph.indices[:] = 0
        check_search(engine, edges, int(edges.src[0]))


def test_only_the_frontier_crosses_to_a_device_with_memory_of_its_own(apart):
    """TC, TG, BC: bitmap n/8 bytes and a short queue; parents are merged once at the end."""
    edges = KroneckerEdges(15).materialise()
    with engine_on(apart, edges, selector="fixed:TC,TG,BC") as engine:
        device = engine.accelerator.device
        n = engine.graph.num_searched
        device.bytes_copied = 0
        search = engine.search(int(edges.src[0]))
        switches = 2
        queue = max(t.features.frontier_vertices for t in search.traces[:2])
        assert device.bytes_copied <= 4 * n + switches * (n // 8 + 16 * queue + 64) + 4096


def test_graph_too_large_for_the_device_is_searched_on_the_cpu(opencl_device):
    edges = nasty("Kronecker 10")
    small = replace(opencl_device, memory_bytes=15_000)
    with (
        mock.patch("hetero_bfs.options.choose_devices", return_value=[small]),
        hb.Engine(edges, selector="fixed:TC,BC") as engine,
    ):
        assert engine.device_info is None
        assert [s.name for s in engine.candidates] == ["TC", "BC"]
        (note,) = engine.notes
        assert small.name in note
        assert "left out" in note
        fits = "edges of this kind would fit" if small.unified_memory else "a few pages of edges"
        assert fits in note
        check_search(engine, edges, 458)
        with pytest.raises(ModelError, match="strategies that can run are TC, BC"):
            engine.set_selector("fixed:TG")


def test_graph_too_large_for_the_device_is_left_out_with_max_alloc_too(opencl_device):
    edges = nasty("Kronecker 10")
    small = replace(opencl_device, memory_bytes=15_000)
    with (
        mock.patch("hetero_bfs.options.choose_devices", return_value=[small]),
        hb.Engine(edges, selector="fixed:TC", max_alloc_bytes=2**20) as engine,
    ):
        assert engine.device_info is None
        assert "left out" in engine.notes[0]


def test_no_opencl_runtime(monkeypatch):
    monkeypatch.setattr("hetero_bfs.devices.opencl.driver.platform_devices", list)
    edges = nasty("two components")
    with hb.Engine(edges, selector="alpha-beta") as engine:
        assert engine.device_info is None
        assert "searching on the CPU only: no OpenCL runtime found" in engine.notes[0]
        check_search(engine, edges, 0)
    with pytest.raises(DeviceError, match="no OpenCL runtime"):
        hb.Engine(edges, device="0", selector="fixed:TC")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("name", ["sparse random", "isolated vertices", "no edges"])
def test_memory_that_was_never_written_is_never_read(opencl_device, name, directed):
    """All of it is 0xAB at first; vertex 0 may have no edges, so that warming up does nothing."""
    make_buffer, make_array = OpenCLDevice.buffer, OpenCLDevice.host_array

    def buffer(self, size, dtype):
        made = make_buffer(self, size, dtype)
        cl.enqueue_fill_buffer(self.queue, made, np.uint8(0xAB), 0, made.size)
        self.queue.finish()
        return made

    def host_array(self, size, dtype):
        array = make_array(self, size, dtype)
        array.view(np.uint8)[:] = 0xAB
        return array

    cl = pytest.importorskip("pyopencl")
    edges = nasty(name, directed)
    patched = mock.patch.multiple(OpenCLDevice, buffer=buffer, host_array=host_array)
    for selector in ("fixed:TC,BGC", "fixed:TC,BG,TG", "fixed:TC,TG,BC", "fixed:BG,TC", "fixed:TG"):
        with patched, engine_on(opencl_device, edges, selector="fixed:TC", order="given") as engine:
            engine.set_selector(selector)
            for source in sources_of(edges, 4):
                check_search(engine, edges, source)


def test_a_kernel_that_does_not_compile_is_a_device_error(opencl_device):
    broken = mock.patch(
        "hetero_bfs.devices.opencl.opencl_device.kernel_source", return_value="__kernel nonsense"
    )
    with broken, pytest.raises(DeviceError, match="compiling kernels"):
        engine_on(opencl_device, nasty("star"), selector="fixed:TG")


def test_a_device_whose_compiler_fails_is_left_out(opencl_device):
    broken = mock.patch(
        "hetero_bfs.devices.opencl.opencl_device.kernel_source", return_value="__kernel nonsense"
    )
    chosen = mock.patch("hetero_bfs.options.choose_devices", return_value=[opencl_device])
    edges = nasty("star")
    with broken, chosen, hb.Engine(edges, selector="alpha-beta") as engine:
        assert engine.device_info is None
        assert "is left out: compiling kernels" in engine.notes[0]
        assert engine.bfs(0).reached == edges.num_vertices
