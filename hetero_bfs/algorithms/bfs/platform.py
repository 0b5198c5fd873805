"""The platform: the host and the devices that hold one graph, and the stored first choices.

`open_devices` prepares a graph on OpenCL devices, or notes why a device is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device import OpenCLExecutor
from hetero_bfs.algorithms.bfs.device_memory import bytes_in_memory
from hetero_bfs.algorithms.bfs.heads import plan_stream
from hetero_bfs.algorithms.bfs.host import CPUExecutor
from hetero_bfs.algorithms.bfs.result import Frontier
from hetero_bfs.algorithms.bfs.streamed import StreamedExecutor, Streaming
from hetero_bfs.devices.machine import DeviceInfo, Tuning
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.errors import BudgetError, DeviceError, ModelError, SplitError
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.policy import Policy, choose_level
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.support.memory import format_bytes

Device = OpenCLExecutor | StreamedExecutor

_USABLE_SHARE = 0.9
"""Share of the device's memory to use if no budget is given; drivers and others need the rest."""


def open_devices(
    graph: SearchGraph, options: EngineOptions
) -> tuple[CPUExecutor, list[Device], list[str]]:
    """Return the host, the devices that can hold the graph, and notes for the user.

    Raises `DeviceError` if a device that the options name is missing or cannot be opened, or a
    device cannot hold the graph within a limit that the user set.
    """
    infos, notes = options.find_devices()
    host: CPUExecutor | None = None
    devices: list[Device] = []
    for info in infos:
        said: list[str] = []
        try:
            directed = graph.graph.directed
            opened = OpenCLDevice(info, "directed searches" if directed else "searches")
        except DeviceError as error:
            if options.device is not None:
                raise
            notes.append(f"{info.name} is left out: {error}")
            continue
        try:
            host = host or CPUExecutor(graph, options.threads, opened.host_array)
            executor = open_executor(opened, graph, host, options, said)
        except DeviceError as error:
            if options.max_alloc_bytes is not None and isinstance(error, SplitError):
                raise
            if options.device_memory_bytes is not None and isinstance(error, BudgetError):
                raise
            notes += [*said, f"{info.name} is left out: {error}"]
            continue
        if devices and StreamedExecutor in {type(one) for one in (executor, *devices)}:
            notes.append(f"{info.name} is left out: edges stream through a single device only")
            continue
        devices.append(executor)
        notes += said
        if isinstance(executor, StreamedExecutor):
            notes.append(f"edges are {executor.streaming}")
    if len(devices) > 1:
        names = " and ".join(device.device.info.name for device in devices)
        notes.append(f"searches choose between the host, {names}")
    return host or CPUExecutor(graph, options.threads), devices, notes


def streaming_of(accelerator: Device | None) -> Streaming | None:
    return accelerator.streaming if isinstance(accelerator, StreamedExecutor) else None


def bytes_streamed_by(accelerator: Device | None) -> int:
    return accelerator.memory.bytes_sent if isinstance(accelerator, StreamedExecutor) else 0


def trained_tuning(info: DeviceInfo, notes: list[str]) -> Tuning | None:
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
    options: EngineOptions,
    notes: list[str],
) -> Device:
    """Return an executor that holds the edges if they fit, else a streaming one.

    Raises `BudgetError` if the arrays per vertex do not fit, or the graph does not fit on a device
    that shares the host's memory. Raises `SplitError` if `max_alloc_bytes` would cut the edges into
    too many parts, or is less than a page.
    """
    tuning = options.tuning or trained_tuning(device.info, notes)
    max_alloc_bytes, device_memory_bytes = options.max_alloc_bytes, options.device_memory_bytes
    info = device.info
    limit = min(device_memory_bytes or info.memory_bytes, info.memory_bytes)
    needed = bytes_in_memory(info, graph)
    if needed <= limit or graph.num_searched == 0:
        spare = limit - needed
        return OpenCLExecutor(device, graph, host, max_alloc_bytes, tuning, spare_bytes=spare)
    if info.unified_memory:
        edges = int(graph.graph.num_stored_edges // 2 * limit / needed)
        raise BudgetError(
            f"the graph needs {format_bytes(needed)} on {info.name}, and {format_bytes(limit)} of "
            "its memory may be used; the device shares the host's memory, so there is nothing to "
            f"stream to; a graph of about {edges:,} edges of this kind would fit"
        )
    budget = device_memory_bytes or int(_USABLE_SHARE * info.memory_bytes)
    plan = plan_stream(
        info, graph, min(budget, limit), min(max_alloc_bytes or limit, info.max_alloc_bytes)
    )
    return StreamedExecutor(device, graph, host, plan, tuning)


FIRST_RECORDS = 64
"""Initial number of levels with records."""

_MOST_FIRST_RECORDS = 4096


@dataclass
class Platform:
    """The host and any number of devices, all holding the same graph.

    A place is a number: 0 for the host, 1 for the first device.
    """

    graph: SearchGraph
    host: CPUExecutor
    devices: Sequence[Device] = ()
    records: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    _first_records: dict[tuple[int, int], tuple[Policy, npt.NDArray[np.float64]]] = field(
        default_factory=dict
    )
    """Records of first levels, by the policy's id and `Selector.first_edges`."""

    def __post_init__(self) -> None:
        for number, device in enumerate(self.devices):
            device.place = 1 + number

    @property
    def accelerator(self) -> Device | None:
        """The first device, for which an engine chooses strategies; None without one."""
        return self.devices[0] if self.devices else None

    def device_at(self, place: int) -> Device:
        return self.devices[place - 1]

    def executor(self, place: int) -> CPUExecutor | Device:
        return self.host if place == schema.HOST else self.device_at(place)

    def close(self) -> None:
        """Wait for the devices and end the host's threads; the last user frees the memory."""
        self.host.close()
        for executor in self.devices:
            executor.device.finish()

    @property
    def lists_host_finds(self) -> bool:
        """Whether the host keeps the found list: there is one device, and it has its own memory.

        A directed graph has no found list, since its queue lacks vertices without edges.
        """
        if len(self.devices) != 1 or self.graph.graph.directed:
            return False
        return not self.devices[0].unified

    def records_of(self, candidates: int, rows: int) -> npt.NDArray[np.float64]:
        """Return records for at least `rows` levels; earlier records keep their content."""
        width = schema.record_width(candidates)
        if self.records.shape[1] != width:
            self.records = np.empty((FIRST_RECORDS, width))
        while self.records.shape[0] < rows:
            self.records = np.concatenate((self.records, np.empty_like(self.records)))
        return self.records

    def choose(
        self,
        selector: Selector,
        interval: int,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
    ) -> None:
        """Choose a level's strategy while the search is not on the host.

        The first choice is stored and reused for all sources of similar degree, since choosing
        takes as long as a small level on the device.
        """
        if frontier.level > 0:
            n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
            choose_level(selector.policy, interval, n, m, frontier.state, records)
            return
        known = self._first_choice(selector, interval, frontier)
        records[0] = known
        records[0, : schema.RECORD_STATE] = frontier.state[: schema.RECORD_STATE]
        frontier.state[schema.CHOSEN] = known[schema.STRATEGY]

    def expect(self, selector: Selector, interval: int, before: Selector) -> None:
        """Make first choices of a new selector in advance, for the sources that are known `before`.

        If a choice is a device, the policy is sent there, so that the next search is not delayed.
        """
        if not self.devices:
            return
        n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
        degrees = [edges for policy, edges in self._first_records if policy == id(before.policy)]
        known = [self._first_choice(selector, interval, Frontier(d, n, m)) for d in degrees]
        for chosen in {int(record[schema.STRATEGY]) for record in known}:
            place = selector.candidates[chosen].place
            if place != schema.HOST:
                self.device_at(place).receive_policy(selector.policy, interval)

    def _first_choice(
        self, selector: Selector, interval: int, frontier: Frontier
    ) -> npt.NDArray[np.float64]:
        key = self._first_key(selector, frontier)
        if key not in self._first_records:
            n, m = self.graph.num_searched, self.graph.graph.num_stored_edges
            records = np.empty((1, schema.record_width(len(selector.candidates))))
            state = Frontier(key[1], n, m).state
            choose_level(selector.policy, interval, n, m, state, records)
            known = records[0]
            known[schema.PREDICTED :] = np.nan  # the predictions belong to another source
            if len(self._first_records) >= _MOST_FIRST_RECORDS:  # many are of earlier policies
                self._first_records.clear()
            self._first_records[key] = selector.policy, known
        return self._first_records[key][1]

    def known_choice(
        self, selector: Selector, frontier: Frontier
    ) -> npt.NDArray[np.float64] | None:
        known = self._first_records.get(self._first_key(selector, frontier))
        return None if known is None else known[1]

    def _first_key(self, selector: Selector, frontier: Frontier) -> tuple[int, int]:
        left = self.graph.graph.num_stored_edges - frontier.edges
        return id(selector.policy), selector.first_edges(frontier.edges, left)

    @cached_property
    def scratch_parents(self) -> npt.NDArray[np.uint32]:
        """Host memory for a copy of a device's parents."""
        return self.devices[0].device.host_array(self.graph.num_searched, np.uint32)
