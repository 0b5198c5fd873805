"""The programs that the package builds, recorded from its own classes on made-up devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from collected_programs import Cores, Countdown, Hubs, Toll, with_arrays
from graphs import random_graph
from kernel_rules import Build
from sample_programs import (
    Communities,
    Distances,
    Farthest,
    Labels,
    MonotoneDistances,
    Parents,
    Ranks,
)
from selector_levels import GPU

import hetero_bfs
from hetero_bfs.algorithms.bfs.device_memory import DeviceGraph, DeviceResults
from hetero_bfs.algorithms.bfs.device_program import SearchProgram
from hetero_bfs.algorithms.bfs.heads import plan_stream
from hetero_bfs.algorithms.bfs.streamed import StreamedExecutor
from hetero_bfs.algorithms.colouring.device import DeviceColouring, StreamedColouring
from hetero_bfs.algorithms.colouring.host import UndirectedLists
from hetero_bfs.algorithms.components.device import DeviceComponents, StreamedComponents
from hetero_bfs.algorithms.pagerank.device import DevicePageRank
from hetero_bfs.algorithms.pagerank.host import PageRankLists
from hetero_bfs.algorithms.sssp.device import DeviceSearch
from hetero_bfs.devices.machine import DeviceInfo, default_tuning
from hetero_bfs.devices.opencl.device_run import DeviceRun, both_ways
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.weighted_lists import WeightedLists
from hetero_bfs.programs.device import DeviceProgram
from hetero_bfs.programs.device_forms import OneLaunch, StreamedProgram, StreamedSweeps
from hetero_bfs.programs.device_stay import Packing
from hetero_bfs.programs.device_sweeps import DeviceSweeps
from hetero_bfs.programs.parameters import Parameters
from hetero_bfs.programs.plan import Plan
from hetero_bfs.programs.renumbered import PlacedGraph, by_colour
from hetero_bfs.scheduling.speed_model import first_guess

PACKAGE = Path(hetero_bfs.__file__).parent
KERNEL_FILES = {
    str(path.relative_to(PACKAGE)): path.read_text() for path in sorted(PACKAGE.rglob("*.cl"))
}
"""The text of all kernel files, by path."""

_PROGRAMS = (
    (Parents(), {"source": 5}),
    (Distances(), {"source": 5}),
    (MonotoneDistances(), {"source": 5}),
    (Labels(), {}),
    (Ranks(), {"alpha": 0.85, "tol": 0.1}),
    (Communities(), {"rounds": 3}),
    (Farthest(), {}),
    (Cores(), {}),
    (Countdown(), {}),
    (Hubs(), {"rounds": 3}),
    (Toll(), {"toll": "entries", "is_open": "flags"}),
)
_CPU = replace(GPU, type="CPU", unified_memory=True)
DEVICES = {
    "GPU": GPU,
    "CPU": _CPU,
    "plain": replace(
        _CPU, has_double=False, has_int64_atomics=False, local_memory_bytes=1 << 14,
        max_work_group_size=64,
    ),
    "plain GPU": replace(GPU, has_int64_atomics=False),
    "NVIDIA": replace(GPU, platform="NVIDIA CUDA"),
}  # fmt: skip
"""Devices whose programs differ, by name."""


def record(info: DeviceInfo, directed: bool) -> list[Build]:
    """Return all programs that the package builds for a device like this one and such a graph."""
    builds: list[Build] = []
    with _made_up_devices(builds):
        for make in _makers(info, directed):
            try:
                make()
            except DeviceError as error:  # the device lacks a type
                if "float64" not in str(error) and "doubles" not in str(error):
                    raise
    return list(dict.fromkeys(builds))


def _made_up_devices(builds: list[Build]) -> Any:
    """Let devices allocate and run nothing; their reads find zeros, their programs are recorded."""

    def build(source: str, options: list[str]) -> Any:
        builds.append(Build(tuple(options), tuple(_sections(source))))
        return mock.MagicMock()

    def open_device(self: OpenCLDevice, info: DeviceInfo, *_: Any) -> None:
        self.info, self.bytes_copied, self.queues, self.blocks = info, 0, [], None
        self._programs = SimpleNamespace(build=build, shared=lambda _, make: make())
        self._cl, self.queue, self.context = mock.MagicMock(), mock.Mock(), None

    def read(_: OpenCLDevice, array: Any, buffer: Any, offset_bytes: int = 0) -> None:
        array[...] = 0

    made_up = ("buffer", "upload", "share", "write", "copy", "fill", "bind", "finish", "send")
    return mock.patch.multiple(
        OpenCLDevice,
        __init__=open_device,
        read=read,
        host_array=lambda _, size, dtype: np.zeros(size, dtype),
        pin=lambda _, array: array,
        second_queue=lambda _: mock.Mock(),
        **{name: lambda *_, **__: mock.MagicMock() for name in made_up},
    )


def _sections(source: str) -> Iterator[tuple[str, str]]:
    """Cut a program into the package's files, and what is generated for it."""
    begins = sorted(
        (source.index(text), file, text) for file, text in KERNEL_FILES.items() if text in source
    )
    end = 0
    for begin, file, text in begins:
        yield "generated", source[end:begin]
        yield file, text
        end = begin + len(text)
    yield "generated", source[end:]


def _makers(info: DeviceInfo, directed: bool) -> Iterator[Callable[[], Any]]:
    """Yield functions that open the package's algorithms on a device, in all their forms."""
    for dtype in (np.int32, np.float64, np.float32):
        graph = _graph(directed, dtype)
        yield partial(DeviceSearch, WeightedLists(graph), info)
        yield partial(DevicePageRank, PageRankLists(graph, True), info)
    for algorithm in (DeviceComponents, StreamedComponents):
        yield partial(algorithm, graph, info)
    yield partial(DevicePageRank, PageRankLists(graph, False), info)
    yield partial(_stream, graph, info)
    for form in ({}, {"max_alloc_bytes": 4096}, {"mask": 1}, {"sent": [1] * 4, "ranks": 3}):
        yield partial(_search, graph, info, **form)
    yield partial(_results, graph, info)
    for program, parameters in _PROGRAMS:
        yield partial(_programs, program, parameters, graph, info)
    for colouring in (DeviceColouring, StreamedColouring):
        yield partial(colouring, UndirectedLists(_graph(False, np.int32)), info)


def _graph(directed: bool, dtype: Any) -> SearchGraph:
    drawn = random_graph(200, 900, 1)
    weights = np.arange(drawn.src.size).astype(dtype)
    return build_search_graph(EdgeList(drawn.src, drawn.dst, drawn.num_vertices, directed, weights))


def _search(
    graph: SearchGraph, info: DeviceInfo, max_alloc_bytes: int | None = None, **form: Any
) -> None:
    device = OpenCLDevice(info)
    lists = DeviceGraph(DeviceRun(device, both_ways(graph)), graph, max_alloc_bytes)
    tuning = default_tuning(info.type).fitting(info)
    SearchProgram(device, graph, tuning, 40, lists, mock.MagicMock(), **form)


def _results(graph: SearchGraph, info: DeviceInfo) -> None:
    pair = [mock.MagicMock()] * 2
    memory = mock.MagicMock(queue=pair, offsets=pair)
    DeviceResults(OpenCLDevice(info), graph, memory, 1 << 30)


def _stream(graph: SearchGraph, info: DeviceInfo) -> None:
    device, host = OpenCLDevice(info), mock.MagicMock(edge_bits=40)
    plan = plan_stream(info, graph, 1 << 26, 1 << 26)
    StreamedExecutor(device, graph, host, plan).build_kernels()


def _programs(
    program: Any, parameters: dict[str, Any], graph: SearchGraph, info: DeviceInfo
) -> None:
    placed = PlacedGraph(graph)
    arrays = with_arrays(parameters, graph.graph)
    given = Parameters.of(arrays, graph.num_vertices, program.edges)
    plan, costs = Plan(program, given, placed.weight_type), first_guess("device", 1)
    device = OpenCLDevice(info)
    classes = np.arange(graph.num_vertices) % 3
    arranged = by_colour(placed, classes.astype(np.int32), 8)
    if plan.collects:
        placed = placed.whole
    for form in (DeviceProgram,) if plan.collects else (DeviceProgram, StreamedProgram):
        Packing(form(plan, device, placed, costs))
    if info.may_run_in_one_launch and not plan.counts:
        OneLaunch(plan, device, placed, costs)
    if not (plan.counts or plan.collects):
        for sweeps in (DeviceSweeps, StreamedSweeps):
            sweeps(plan, device, arranged, costs)
