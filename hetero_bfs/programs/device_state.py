"""A program's own arrays on an OpenCL device: its parameters, its vertices' states, its sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.programs.codegen.device_code import state_arrays
from hetero_bfs.programs.placed import PlacedGraph
from hetero_bfs.programs.plan import Plan

_BYTES = {"uchar": 1, "int": 4, "uint": 4, "float": 4}
"""Bytes of an item, by its type in OpenCL C; all others have 8."""


def state_sizes(plan: Plan, num_vertices: int) -> dict[str, tuple[int, npt.DTypeLike]]:
    """Return bytes and type of each array, in the order in which kernels take them."""
    parameters = plan.parameters
    items = {
        "integers": 1 + len(parameters.integers),
        "fractions": len(parameters.fractions),
        "totals": max(len(plan.totals), 1),
    }
    return {
        name: (_BYTES.get(kind, 8) * items.get(name, num_vertices), np.uint8)
        for name, kind, _ in state_arrays(plan)
    }


class DeviceState:
    """The arrays, for programs of the same types as `plan`.

    Parameters
    ----------
    buffers : dict
        Memory of the sizes that `state_sizes` returns, by the arrays' names.
    """

    def __init__(self, plan: Plan, device: OpenCLDevice, buffers: dict[str, Any]) -> None:
        self._plan, self._device, self.buffers = plan, device, buffers
        self._total_type = np.float64 if device.info.has_double else np.float32

    def field(self, name: str) -> Any:
        """Return the memory of a field of the vertices' states."""
        return self.buffers[f"state_{name}"]

    def write_parameters(self, plan: Plan, graph: PlacedGraph) -> None:
        """Write the parameters of a run on this graph."""
        device, parameters = self._device, plan.parameters
        integers = [graph.num_vertices, *parameters.integers.values()]
        device.write(self.buffers["integers"], np.array(integers, np.int64))
        if parameters.fractions:
            fractions = np.array(list(parameters.fractions.values()), np.float64)
            device.write(self.buffers["fractions"], fractions)
        for name, array in parameters.arrays.items():
            placed = np.ascontiguousarray(array[graph.names])
            if placed.size:
                device.write(self.buffers[f"parameter_{name}"], placed.view(np.uint8))

    def read_fields(self, num_vertices: int) -> dict[str, npt.NDArray[Any]]:
        """Return the vertices' states."""
        state = {}
        for name, kind in self._plan.fields.items():
            array = np.empty(num_vertices, kind)
            if num_vertices:
                self._device.read(array.view(np.uint8), self.field(name))
            state[name] = array
        return state

    def read_totals(self) -> dict[str, float]:
        """Return the program's sums."""
        if not self._plan.totals:
            return {}
        totals = np.empty(len(self._plan.totals), self._total_type)
        self._device.read(totals, self.buffers["totals"])
        return dict(zip(self._plan.totals, totals.tolist(), strict=True))

    def write_totals(self, totals: npt.NDArray[np.float64]) -> None:
        """Write the program's sums."""
        if self._plan.totals:
            self._device.write(self.buffers["totals"], totals.astype(self._total_type))
