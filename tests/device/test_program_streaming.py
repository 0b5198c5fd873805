"""Vertex programs on a device without room for the lists: the results of a device that has it."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from graphs import edge_list, nasty, path
from oracle import engine_on
from sample_programs import (
    Communities,
    Distances,
    Labels,
    Parents,
    Parity,
    Ranks,
    Votes,
    needs_doubles,
)

import hetero_bfs as hb
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs import device as device_run
from hetero_bfs.programs import device_sweeps, renumbered
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.device_forms import StreamedProgram

MODES = {
    "asynchronous": {"mode": "asynchronous"},
    "layered": {"mode": "layered", "root": 1},
}
SMALL = {"_HEAVY_EDGES": 40, "_MOST_RECORDS": 512}
PROGRAMS = {
    "Distances": (Distances(), {"source": 1}),
    "Labels": (Labels(), {}),
    "Parents": (Parents(), {"source": 1}),
    "Ranks": (Ranks(), {"alpha": 0.85, "tol": 1e-5}),
    "Communities": (Communities(), {"rounds": 3}),
    "Votes": (Votes(), {"rounds": 3}),
    "Parity": (Parity(), {"rounds": 3}),
}
GRAPHS = [
    ("Kronecker 10", True), ("Kronecker 10", False), ("two hubs", False), ("star", True),
    ("isolated vertices", True), ("one edge", False),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _small():
    """Blocks of 32 vertices, long lists, few records, few joined levels: the graphs are small."""
    with (
        mock.patch.multiple(device_run, **SMALL),
        mock.patch.object(DeviceProgram, "GROUP", 32),
        mock.patch.multiple(device_sweeps, _HEAVY_EDGES_OF_CPU=40, _HEAVY_EDGES=40),
        mock.patch.object(renumbered, "_PART_EDGES", 200),
        mock.patch.object(device_sweeps, "_RESIDENT_ITEMS", 0),  # a GPU joins no more levels
    ):
        yield


def weighted(name: str, directed: bool = False):
    edges = nasty(name, directed)
    weights = np.random.default_rng(1).integers(0, 9, edges.src.size).astype(np.int32)
    return build_search_graph(
        EdgeList(edges.src, edges.dst, edges.num_vertices, directed, weights),
        "given" if directed else "auto",
    )


def always_streamed():
    """Let no program hold the lists, however small they are."""
    return mock.patch.object(DeviceProgram, "_make_room", side_effect=BudgetError("it is full"))


def run(runs: ProgramRuns, name: str, direction: str = "auto", place: str = "device", **others):
    program, parameters = PROGRAMS[name]
    return runs.run(program, parameters, hb.RunOptions(300, direction, place=place, **others))


def on_device(runs: ProgramRuns) -> DeviceProgram:
    """Return the only program that was compiled."""
    ((compiled,),) = [mode.programs.values() for mode in runs._modes.values()]
    return compiled.on["device"]


def least_bytes(graph, device, name: str, **mode) -> int:
    """Return the memory that a program with streamed lists takes at least."""
    small = replace(device, memory_bytes=40 * graph.num_vertices)
    with ProgramRuns(graph, 1, small) as runs, always_streamed():
        assert not run(runs, name, place="cpu", **mode).streamed_bytes
        if mode and not runs.notes:  # a sweep may take less
            return small.memory_bytes
        allowed = f"{small.memory_bytes} bytes may be used, in pieces of {small.max_alloc_bytes}"
        assert runs.notes[0].endswith(allowed)
    return int(re.search(r" the CPU only: programs need (\d+) bytes", runs.notes[0])[1])


def same(streamed, whole, exact: bool = True, rounding: float = 0.0) -> None:
    """The same states, bit for bit or up to `rounding`, after the same iterations.

    `exact` is False for a search, where any of several messages may win.
    """
    assert streamed.state.keys() == whole.state.keys()
    for name, state in whole.state.items():
        if exact:
            np.testing.assert_allclose(streamed.state[name], state, rtol=rounding)
        else:
            np.testing.assert_array_equal(streamed.state[name] < 0, state < 0)
    assert [trace[:4] for trace in streamed.traces] == [trace[:4] for trace in whole.traces]
    assert streamed.totals == pytest.approx(whole.totals, rel=1e3 * rounding, abs=0.0)
    assert streamed.converged == whole.converged


def skip_without_doubles(device, program: str) -> None:
    if needs_doubles(PROGRAMS[program][0]) and not device.has_double:
        pytest.skip(f"{device.name} has no doubles, which {program} needs")


@pytest.mark.sampled(20)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("name", "directed"), GRAPHS)
def test_results_are_those_of_whole_lists(opencl_device, name, directed, program):
    """Bit for bit, sums too: a work-group takes the same vertices, whose lists are in one block.

    A GPU cuts long lists otherwise where they stream, so it adds messages in another order.
    """
    skip_without_doubles(opencl_device, program)
    rounding = 1e-12 if opencl_device.type == "GPU" else 0.0
    graph = weighted(name, directed)
    least = least_bytes(graph, opencl_device, program)
    all_lists = (1 + directed) * 8 * graph.graph.num_stored_edges
    directions = ("pull",) if PROGRAMS[program][0].all_active else ("push", "pull", "auto")
    with ProgramRuns(graph, 1, opencl_device) as runs:
        whole = {direction: run(runs, program, direction) for direction in directions}
    for share in (0, 0.3):
        small = replace(opencl_device, memory_bytes=least + int(share * all_lists))
        with ProgramRuns(graph, 1, small) as runs, always_streamed():
            for direction in directions:
                streamed = run(runs, program, direction)
                same(streamed, whole[direction], program != "Parents", rounding)
            assert not runs.notes
            assert share or streamed.streamed_bytes or on_device(runs).memory.layout.resident


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("mode", "program"),
    [(mode, name) for mode in MODES for name in ("Distances", "Labels", "Parents")]
    + [("asynchronous", "Ranks")],
)
@pytest.mark.parametrize(
    ("name", "directed"),
    [("Kronecker 10", True), ("Kronecker 10", False), ("two hubs", False), ("grid", True),
     ("isolated vertices", False), ("one edge", True)],
)  # fmt: skip
def test_layers_and_colours_stream_in_their_order(plain_device, name, directed, mode, program):
    """So a sweep visits the same edges, and sends a list once or twice at most."""
    skip_without_doubles(plain_device, program)
    graph, options = weighted(name, directed), MODES[mode]
    least = least_bytes(graph, plain_device, program, **options)
    all_lists = (1 + directed) * 8 * graph.graph.num_stored_edges
    with ProgramRuns(graph, 1, plain_device) as runs:
        whole = run(runs, program, **options)
        assert whole.streamed_bytes == 0
    for share in (0, 0.5):
        small = replace(plain_device, memory_bytes=least + int(share * all_lists))
        with ProgramRuns(graph, 1, small) as runs, always_streamed():
            streamed = [run(runs, program, **options) for _ in range(2)]
            same(streamed[0], streamed[1], program != "Parents")
            assert not runs.notes
            memory = on_device(runs).memory
        sent = streamed[0].streamed_bytes
        missing = sum(way.sizes[memory.layout.resident :].sum() for way in memory.ways)
        assert missing or graph.graph.num_stored_edges < 2000 or share
        assert sent >= 4 * missing or program != "Labels"  # others may not need all lists
        assert sent <= (whole.iterations + 1) * 2 * (all_lists + 8 * graph.num_vertices)
        if program == "Ranks":  # its sums are added in another order
            np.testing.assert_allclose(streamed[0].rank, whole.rank, rtol=1e-12)
        else:
            same(streamed[0], whole, program != "Parents")


def test_a_sweep_sends_what_has_changed(opencl_device):
    """A search from the root of the layers sends each list once, the root's also at the start, and
    nothing in a second sweep.

    Vertices are adjacent to those up to 8 before and behind: 250 levels, two of them in a block.
    """
    n = 2000
    edges = edge_list([(v, v + i) for i in range(1, 9) for v in range(n - i)], n)
    graph = build_search_graph(edges, "given")
    lists = 4 * graph.graph.num_stored_edges
    memory = least_bytes(graph, opencl_device, "Parents", **MODES["layered"])
    with ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=memory)) as runs:
        result = run(runs, "Parents", **MODES["layered"])
        sizes = on_device(runs).memory.ways[0].sizes
    blocks, largest = sizes.size, 4 * sizes.max()
    assert (result.iterations, result.traces[0].strategy) == (2, "device layered")
    assert 100 < blocks < 150
    bounds = 8 if opencl_device.unified_memory else 32  # bytes for a block, with its alignment
    assert 0.8 * lists < result.streamed_bytes < lists + largest + bounds * (blocks + 1)


def test_programs_in_modes_take_turns_on_the_device(opencl_device):
    graph = weighted("Kronecker 10")
    modes = ({}, *MODES.values())
    memory = 30_000 + max(least_bytes(graph, opencl_device, "Labels", **mode) for mode in modes)
    with ProgramRuns(graph, 1, opencl_device) as runs:
        whole = [run(runs, "Labels", **mode) for mode in modes]
    with (
        ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=memory)) as runs,
        always_streamed(),
    ):
        for _ in range(2):
            for i, mode in enumerate(modes):
                same(run(runs, "Labels", **mode), whole[i])
                compiled = [one for kept in runs._modes.values() for one in kept.programs.values()]
                assert sum(bool(one.on["device"].memory.parts) for one in compiled) == 1
        assert not runs.notes


def test_only_lists_that_do_not_fit_are_streamed(opencl_device):
    graph = weighted("Kronecker 10", directed=True)
    with ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=50_000)) as runs:
        run(runs, "Labels", place="cpu")
        needed = int(re.search(r"programs need (\d+) bytes", runs.notes[0])[1])
    for memory, streamed in ((needed, True), (2**24, False)):
        with ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=memory)) as runs:
            result = run(runs, "Labels", "pull")
            assert (result.streamed_bytes > 0) == streamed
            assert isinstance(on_device(runs), StreamedProgram) == streamed
            assert result.traces[0].strategy == "device pull"
            assert not runs.notes
    with ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=needed - 1)) as runs:
        assert run(runs, "Labels", place="cpu").traces[0].strategy == "pull"
        assert f"need {needed} bytes" in runs.notes[0]
        with pytest.raises(DeviceError, match="no OpenCL device is in use that can run it"):
            run(runs, "Labels")


@pytest.mark.parametrize("program", ["Labels", "Communities"])
def test_parts_under_the_limit_of_a_buffer_stay_on_the_device(opencl_device, program):
    graph = weighted("Kronecker 12", directed=True)
    limit = 80_000
    with ProgramRuns(graph, 1, opencl_device) as runs:
        whole = run(runs, program)
    with ProgramRuns(graph, 1, replace(opencl_device, max_alloc_bytes=limit)) as runs:
        streamed = run(runs, program)
        same(streamed, whole)
        assert streamed.streamed_bytes == 0
        for parts in on_device(runs).memory.parts:
            assert len(parts) >= 3
            assert max(buffer.size for part in parts for buffer in part.buffers) <= limit


def test_a_list_that_is_larger_than_a_buffer(opencl_device):
    """The hub's list is in one block as a whole, and so are the counts of its messages."""
    graph = weighted("star")
    with ProgramRuns(graph, 1, replace(opencl_device, max_alloc_bytes=60_000)) as runs:
        run(runs, "Communities", place="cpu")
        least = int(re.search(r", up to (\d+) in one piece", runs.notes[0])[1])
    assert 80_000 <= least < 90_000
    for limit, place in ((least - 1, "cpu"), (least, "device")):
        with ProgramRuns(graph, 1, replace(opencl_device, max_alloc_bytes=limit)) as runs:
            run(runs, "Communities", place=place)
            assert bool(runs.notes) == (place == "cpu")


@pytest.mark.parametrize("program", ["Distances", "Communities"])
def test_the_memory_is_kept(apart, program):
    graph = weighted("Kronecker 12")
    least = least_bytes(graph, apart, program)
    make_buffer, sizes = OpenCLDevice.buffer, []

    def buffer(self, size, dtype):
        sizes.append(max(size, 1) * np.dtype(dtype).itemsize)
        return make_buffer(self, size, dtype)

    for extra in (0, 30_000):
        sizes.clear()
        small = replace(apart, memory_bytes=least + extra)
        with (
            mock.patch.object(OpenCLDevice, "buffer", buffer),
            ProgramRuns(graph, 1, small) as runs,
        ):
            assert run(runs, program).streamed_bytes > 0
        assert 0.9 * small.memory_bytes < sum(sizes) <= small.memory_bytes + 8


def test_only_blocks_that_are_needed_are_sent(opencl_device):
    """A push sends the lists of active vertices; a pull of a search those of the unvisited."""
    edges = path(1100)
    graph = build_search_graph(edges, "given")
    least = least_bytes(graph, opencl_device, "Parents")
    with ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=least)) as runs:
        with always_streamed():
            push, pull = (run(runs, "Parents", direction) for direction in ("push", "pull"))
        blocks = on_device(runs).memory.ways[0].sizes.size
        resident = on_device(runs).memory.layout.resident
    assert push.iterations == pull.iterations == 300  # 301 of 1100 vertices are reached
    assert blocks == 35
    assert resident < 3
    of_block = 4 * 64 + 8
    assert push.streamed_bytes <= 310 * of_block
    assert 25 * 300 * of_block < pull.streamed_bytes < 33 * 300 * of_block


def refuse_above(most_bytes: int):
    """Let devices have no memory for larger arrays."""
    make_buffer = OpenCLDevice.buffer

    def buffer(self, size, dtype):
        if max(size, 1) * np.dtype(dtype).itemsize > most_bytes:
            raise DeviceError("out of memory")
        return make_buffer(self, size, dtype)

    return mock.patch.object(OpenCLDevice, "buffer", buffer)


def test_programs_take_turns_on_the_device(opencl_device):
    graph = weighted("Kronecker 10")
    names = ("Distances", "Labels")
    memory = max(least_bytes(graph, opencl_device, name) for name in names) + 30_000
    with ProgramRuns(graph, 1, opencl_device) as runs:
        whole = {name: run(runs, name) for name in names}
    with (
        ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=memory)) as runs,
        always_streamed(),
    ):
        for name in (*names, *names):
            same(run(runs, name), whole[name])
            ((*compiled,),) = [mode.programs.values() for mode in runs._modes.values()]
            with_parts = [one for one in compiled if one.on["device"].memory.parts]
            assert [one.host.plan.name for one in with_parts] == [name]
        with refuse_above(100), pytest.raises(DeviceError, match="out of memory"):
            run(runs, "Distances")
        same(run(runs, "Distances"), whole["Distances"])
        assert not runs.notes


def test_a_device_with_less_memory_than_it_says(apart):
    """Others use it, too. Resident parts are given up, then the device."""
    graph = weighted("Kronecker 12")
    with ProgramRuns(graph, 1, apart) as runs:
        whole = run(runs, "Labels")
    limited = replace(apart, memory_bytes=2**21)
    with refuse_above(200_000), ProgramRuns(graph, 1, limited) as runs, always_streamed():
        streamed = run(runs, "Labels")
        same(streamed, whole)
        assert streamed.streamed_bytes > 0
        assert on_device(runs).memory.layout.resident > 0
        assert not runs.notes
    with refuse_above(20_000), ProgramRuns(graph, 1, limited) as runs, always_streamed():
        run(runs, "Labels", place="cpu")
        assert runs.notes == ["Labels runs on the CPU only: out of memory"]


def test_graphs_without_edges(opencl_device):
    small = replace(opencl_device, memory_bytes=100_000)
    for name in ("no edges", "one vertex", "loops only"):
        with ProgramRuns(build_search_graph(nasty(name)), 1, small) as runs:
            result = run(runs, "Labels", place="auto")
            assert result.label.tolist() == list(range(result.label.size))


def test_a_mode_without_memory_for_a_few_blocks(opencl_device):
    """The host takes over, with a note."""
    graph = weighted("Kronecker 10")
    least = least_bytes(graph, opencl_device, "Labels", **MODES["asynchronous"])
    for memory, prefix in ((least, "device "), (least - 1, "")):
        with ProgramRuns(graph, 1, replace(opencl_device, memory_bytes=memory)) as runs:
            options = hb.RunOptions(mode="asynchronous", place="auto" if not prefix else "device")
            result = runs.run(Labels(), {}, options)
            assert result.traces[0].strategy == prefix + "asynchronous"
            assert bool(runs.notes) == (not prefix)
    expected = f"Labels in mode 'asynchronous' runs on the CPU only: programs need {least} bytes"
    assert runs.notes[0].startswith(expected)


def test_an_engine_streams_programs_as_it_streams_searches(apart):
    graph = weighted("Kronecker 12")
    limit = least_bytes(graph, apart, "Labels") + 20_000
    options = hb.RunOptions(place="device")
    with engine_on(apart, graph, selector="fixed:TG") as engine:
        whole = engine.run(Labels(), options)
    with engine_on(apart, graph, selector="fixed:TG", device_memory_bytes=limit) as engine:
        streamed = engine.run(Labels(), options)
        same(streamed, whole)
        assert whole.streamed_bytes == 0 < streamed.streamed_bytes
