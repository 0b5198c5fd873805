"""An algorithm on a prepared graph, run on the host or on an OpenCL device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.errors import BudgetError, DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.weights import needed_weights, weight_dtype_of
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.trials import Places

T = TypeVar("T")
S = TypeVar("S")


class OnHost(Protocol):
    """Runs an algorithm on the host."""

    def close(self) -> None:
        """End the threads."""


class OnDevice(Protocol):
    """Runs an algorithm on an OpenCL device."""

    @property
    def device_name(self) -> str:
        """Name of the device."""


class Analysis:
    """Base class of an algorithm's runs on one graph. A subclass makes what runs on each place.

    Parameters
    ----------
    graph : SearchGraph
    threads : int
    device : DeviceInfo, optional
        An OpenCL device to use beside the host. If it cannot hold the graph, `notes` says so.

    Raises
    ------
    GraphError
        The graph lacks something that the algorithm needs, such as weights.
    """

    what: ClassVar[str]
    """The algorithm's name in notes, such as "shortest paths"."""

    needs_weights: ClassVar[bool] = False

    def __init__(self, graph: SearchGraph, threads: int, device: DeviceInfo | None = None) -> None:
        self.graph = graph
        self.notes: list[str] = []
        self.host: Any = self._make_host(threads)
        self.device: Any = None
        if device is not None and graph.num_searched:
            try:
                self.device = self._make_device(device)
            except DeviceError as error:
                self.notes.append(f"{device.name} is left out of {self.what}: {error}")
        self.places = Places(["cpu"] if self.device is None else ["cpu", "device"])

    def _make_host(self, threads: int) -> OnHost:
        """Return what runs the algorithm on the host."""
        raise NotImplementedError

    def _make_device(self, info: DeviceInfo) -> OnDevice:
        """Return what runs it on a device; raise `DeviceError` if the device cannot."""
        raise NotImplementedError

    def _whole_or_streamed(self, whole: Callable[[], T], streamed: Callable[[], S]) -> T | S:
        """Return the runner with all lists on the device, or else one that streams them."""
        try:
            return whole()
        except BudgetError as error:
            made = streamed()
            self.notes.append(f"lists stream: {error}")
            return made

    @property
    def device_name(self) -> str | None:
        """Name of the OpenCL device in use, if any."""
        return None if self.device is None else str(self.device.device_name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads and release the device."""
        self.host.close()
        self.device = None


A = TypeVar("A", bound=Analysis)


def open_analysis(
    kind: type[A], graph: CSRGraph | EdgeSource | SearchGraph, options: EngineOptions
) -> A:
    """Prepare a graph for an algorithm. Only the options of devices and order matter.

    Raises
    ------
    GraphError, DeviceError
        As `Engine` raises them; or the graph lacks something that the algorithm needs.
    """
    import numba

    found, notes = options.find_devices()
    info = within_limits(found[0], options) if found else None
    if not isinstance(graph, SearchGraph):
        if kind.needs_weights and weight_dtype_of(graph) is None:
            needed_weights(graph)
        graph = build_search_graph(graph, options.order)
    analysis = kind(graph, options.threads or numba.get_num_threads(), info)
    if options.device is not None and analysis.device is None and analysis.notes:
        raise DeviceError(analysis.notes[0])
    analysis.notes[:0] = notes
    return analysis


def within_limits(info: DeviceInfo, options: EngineOptions) -> DeviceInfo:
    """Return a device with its memory reduced to what the options allow."""
    return replace(
        info,
        memory_bytes=min(info.memory_bytes, options.device_memory_bytes or info.memory_bytes),
        max_alloc_bytes=min(info.max_alloc_bytes, options.max_alloc_bytes or info.max_alloc_bytes),
    )
