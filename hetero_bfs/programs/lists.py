"""The lists of graphs on an OpenCL device, for vertex programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.devices.opencl.room import check_room
from hetero_bfs.devices.opencl.streaming.block_memory import Streams
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.weighted_lists import ByWeight
from hetero_bfs.programs.placed import PlacedGraph, weights_of
from hetero_bfs.programs.plan import Plan

NEED = "programs need"
_LEAST_VERTEX_BYTES = 40  # of a vertex, whatever the program


class DeviceGraph:
    """Graphs' lists on a device, which several programs share.

    Parameters
    ----------
    graph : PlacedGraph
    info : DeviceInfo
    beside : DeviceGraph, optional
        Another graph's, on the same device.

    Raises
    ------
    BudgetError
        The device cannot hold arrays with an entry for each vertex.
    """

    def __init__(
        self, graph: PlacedGraph, info: DeviceInfo, beside: DeviceGraph | None = None
    ) -> None:
        self.device: OpenCLDevice = (
            OpenCLDevice(info, "vertex programs") if beside is None else beside.device
        )
        self.streams: Streams = Streams() if beside is None else beside.streams
        check_room(info, NEED, 8 * graph.num_vertices, _LEAST_VERTEX_BYTES * graph.num_vertices)
        self._kept: list[Any] = []  # a device may use them in place
        self._uploaded: dict[Any, Any] = {}

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    def lists(self, lists: CSRGraph, weighted: bool) -> list[Any]:
        """Return the buffers of `indptr`, neighbours and weights of lists that are kept."""
        return [
            self.offsets(lists),
            self._buffer((lists, "neighbours"), lambda: lists.indices),
            self._buffer((lists, "weights", weighted), lambda: weights_of(lists, weighted)),
        ]

    def by_weight(self, lists: ByWeight) -> list[Any]:
        """Return the same for lists sorted by weight, whose arrays do not change."""
        kind = np.uint32 if lists.neighbours.size < 2**32 else np.uint64
        key = id(lists.neighbours)
        return [
            self._buffer((key, "indptr"), lambda: lists.indptr.astype(kind)),
            self._buffer((key, "neighbours"), lambda: lists.neighbours),
            self._buffer((key, "weights"), lambda: lists.weights),
        ]

    def order(self, graph: PlacedGraph) -> Any:
        """Return the buffer of `WeightedLists.backward_order`."""
        return self._buffer((graph, "order"), lambda: graph.by_weight.backward_order)

    def offsets(self, lists: CSRGraph) -> Any:
        """Return the buffer of `indptr`."""
        kind = offset_type(lists)
        return self._buffer((lists, "indptr"), lambda: lists.indptr.astype(kind))

    def of_vertices(self, graph: PlacedGraph, name: str) -> Any:
        """Return the buffer of "names" or "degree"."""
        return self._buffer((graph, name), lambda: getattr(graph, name))

    def _buffer(self, key: Any, make: Any) -> Any:
        if key not in self._uploaded:
            self._kept.append(np.ascontiguousarray(make()))
            self._uploaded[key] = self.device.upload(self._kept[-1])
        return self._uploaded[key]


def check_types(plan: Plan, info: DeviceInfo) -> None:
    """Raise `DeviceError` if a device lacks a type that a program needs."""
    kinds = {*plan.fields.values(), plan.stored_type, plan.weight_type}
    doubles = "float64" in kinds or plan.parameters.fractions or plan.totals
    if doubles and not info.has_double:
        raise DeviceError(f"{plan.name} needs float64, which {info.name} lacks")


def offset_type(lists: CSRGraph) -> type[np.unsignedinteger[Any]]:
    """Return the type of offsets into lists."""
    return np.uint32 if lists.num_stored_edges < 2**32 else np.uint64
