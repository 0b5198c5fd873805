"""Prepares a graph on an OpenCL device, or notes why the device is not used."""

from __future__ import annotations

from hetero_bfs.algorithms.bfs.device import OpenCLExecutor
from hetero_bfs.algorithms.bfs.device_memory import bytes_in_memory
from hetero_bfs.algorithms.bfs.executor import DeviceExecutor
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.paged_graph import Streaming, plan_stream
from hetero_bfs.algorithms.bfs.streamed import StreamedExecutor
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.devices.opencl.tuning import Tuning
from hetero_bfs.errors import BudgetError, DeviceError, ModelError, SplitError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.support.memory import format_bytes

_USABLE_SHARE = 0.9
"""Share of the device's memory to use if no budget is given; drivers and others need the rest."""


def open_devices(
    graph: SearchGraph, options: EngineOptions
) -> tuple[CPUExecutor, list[DeviceExecutor], list[str]]:
    """Return the host, the devices, and notes for the user.

    If several devices are named, those that cannot hold the graph are omitted.

    Raises `DeviceError` if a device that the options name is missing, or as `open_device` does.
    """
    infos, missing = options.find_devices()
    if not infos:
        return CPUExecutor(graph, options.threads), [], missing
    host, first, notes = open_device(infos[0], graph, options)
    devices = [] if first is None else [first]
    for info in infos[1:]:
        _, device, more = open_device(info, graph, options, host)
        if isinstance(device, StreamedExecutor) or isinstance(first, StreamedExecutor):
            notes.append(f"{info.name} is left out: edges stream through a single device only")
            continue
        notes += more
        devices += [] if device is None else [device]
    if len(devices) > 1:
        names = " and ".join(device.device.info.name for device in devices)
        notes.append(f"searches choose between the host, {names}")
    return host, devices, notes


def open_device(
    info: DeviceInfo,
    graph: SearchGraph,
    options: EngineOptions,
    host: CPUExecutor | None = None,
) -> tuple[CPUExecutor, DeviceExecutor | None, list[str]]:
    """Return the host, the device (None if it cannot hold the graph), and notes for the user.

    `host` is given if another device was opened with it.

    Raises `DeviceError` if the user named the device and it cannot be opened, or it cannot hold the
    graph within a limit that the user set.
    """
    notes: list[str] = []
    try:
        directed = graph.graph.directed
        opened = OpenCLDevice(info, "directed searches" if directed else "searches")
    except DeviceError as error:
        if options.device is not None:
            raise
        return CPUExecutor(graph, options.threads), None, [f"{info.name} is left out: {error}"]
    tuning = options.tuning or trained_tuning(info, notes)
    max_alloc_bytes, device_memory_bytes = options.max_alloc_bytes, options.device_memory_bytes
    try:
        host = host or CPUExecutor(graph, options.threads, opened.host_array)
        executor = open_executor(opened, graph, host, max_alloc_bytes, tuning, device_memory_bytes)
    except DeviceError as error:
        if max_alloc_bytes is not None and isinstance(error, SplitError):
            raise
        if device_memory_bytes is not None and isinstance(error, BudgetError):
            raise
        notes.append(f"{info.name} is left out: {error}")
        return host or CPUExecutor(graph, options.threads), None, notes
    if isinstance(executor, StreamedExecutor):
        notes.append(f"edges are {executor.streaming}")
    return host, executor, notes


def streaming_of(accelerator: DeviceExecutor | None) -> Streaming | None:
    """Return how the edges stream through a device; None if it holds the graph."""
    return accelerator.streaming if isinstance(accelerator, StreamedExecutor) else None


def bytes_streamed_by(accelerator: DeviceExecutor | None) -> int:
    """Return the bytes of edges sent to a device so far; 0 if it holds the graph."""
    return accelerator.bytes_streamed if isinstance(accelerator, StreamedExecutor) else 0


def trained_tuning(info: DeviceInfo, notes: list[str]) -> Tuning | None:
    """Return the tuning of the device's speed model, if there is one."""
    try:
        model = model_of(info)
    except ModelError as error:  # selectors that need the model raise it later
        notes.append(f"tuning by default: {error}")
        return None
    return None if model is None else model.tuning


def open_executor(
    device: OpenCLDevice,
    graph: SearchGraph,
    host: CPUExecutor,
    max_alloc_bytes: int | None,
    tuning: Tuning | None,
    device_memory_bytes: int | None,
) -> DeviceExecutor:
    """Return an executor that holds the edges if they fit, else a streaming one.

    Raises `BudgetError` if the arrays per vertex do not fit, or the graph does not fit on a device
    that shares the host's memory. Raises `SplitError` if `max_alloc_bytes` would cut the edges into
    too many parts, or is less than a page.
    """
    info = device.info
    limit = min(device_memory_bytes or info.memory_bytes, info.memory_bytes)
    needed = bytes_in_memory(info, graph)
    if needed <= limit or graph.num_searched == 0:
        return OpenCLExecutor(device, graph, host, max_alloc_bytes, tuning)
    if info.unified_memory:
        edges = int(graph.graph.num_stored_edges // 2 * limit / needed)
        raise BudgetError(
            f"the graph needs {format_bytes(needed)} on {info.name}, of whose memory "
            f"{format_bytes(limit)} may be used; there is nothing to stream to, since it shares "
            f"the host's memory; a graph of about {edges:,} edges of this kind would fit"
        )
    budget = device_memory_bytes or int(_USABLE_SHARE * info.memory_bytes)
    plan = plan_stream(
        info, graph, min(budget, limit), min(max_alloc_bytes or limit, info.max_alloc_bytes)
    )
    return StreamedExecutor(device, graph, host, plan, tuning)
