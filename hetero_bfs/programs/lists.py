"""The lists of graphs on an OpenCL device, for vertex programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.devices.opencl.device_lists import DeviceLists
from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.devices.opencl.room import check_room
from hetero_bfs.devices.opencl.streaming.block_memory import Streams
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.weights import needed_weights
from hetero_bfs.programs.placed import PlacedGraph
from hetero_bfs.programs.plan import Plan

NEED = "programs need"
_LEAST_VERTEX_BYTES = 40  # of a vertex, whatever the program


class DeviceGraph(DeviceLists):
    """A graph's lists on a device, for several programs.

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
        super().__init__(OpenCLDevice(info, "vertex programs") if beside is None else beside.device)
        self.streams: Streams = Streams() if beside is None else beside.streams
        check_room(info, NEED, 8 * graph.num_vertices, _LEAST_VERTEX_BYTES * graph.num_vertices)
        self._no_weights = np.zeros(1, np.int64)

    @property
    def device_name(self) -> str:
        """Name of the device."""
        return self.device.info.name

    def with_weights(self, lists: CSRGraph, weighted: bool) -> list[Any]:
        """Return the buffers of `indptr`, neighbours and weights."""
        has_some = weighted and lists.num_stored_edges
        weights = needed_weights(lists) if has_some else self._no_weights
        return [*self.lists(lists), self.array(weights)]


def check_types(plan: Plan, info: DeviceInfo) -> None:
    """Raise `DeviceError` if a device lacks a type that a program needs."""
    kinds = {*plan.fields.values(), plan.stored_type, plan.weight_type}
    doubles = "float64" in kinds or plan.parameters.fractions or plan.totals
    if doubles and not info.has_double:
        raise DeviceError(f"{plan.name} needs float64, which {info.name} lacks")
