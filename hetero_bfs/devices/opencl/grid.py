"""Grids of work-groups that all make progress at the same time (grid.cl)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.devices.opencl.header import GAVE_UP

PATIENCE = np.uint32(1 << 22)
"""Polls after which a barrier gives up. That takes seconds, as one group may work alone."""

_PROBE_PATIENCE = 1 << 15


class Grid:
    """The memory of a grid's barriers, and the search for the largest grid in which they work.

    Parameters
    ----------
    device : OpenCLDevice
    groups_per_unit : int
        The most work-groups for each compute unit.
    """

    def __init__(self, device: OpenCLDevice, groups_per_unit: int) -> None:
        self._device, self._per_unit = device, groups_per_unit
        self.sync = device.buffer(GAVE_UP + 1, np.uint32)
        self.cells = device.buffer(groups_per_unit * device.info.compute_units, np.uint32)
        self.clear()

    @property
    def arguments(self) -> list[Any]:
        """The buffers, as kernels take them."""
        return [self.sync, self.cells]

    def clear(self) -> None:
        """Reset barriers that gave up."""
        self._device.fill(self.sync, 0)

    def largest(self, probe: Callable[[int, np.uint32], bool]) -> int | None:
        """Return the work-groups of the largest grid that passes a probe; None if none does.

        `probe` is called with a number of work-groups and the patience. It launches a kernel that
        calls `probe` of grid.cl, and tells whether all rounds ended.
        """
        units = self._device.info.compute_units
        for per_unit in range(self._per_unit, 0, -1):
            passed = probe(per_unit * units, np.uint32(_PROBE_PATIENCE))
            sync = np.zeros(GAVE_UP + 1, np.uint32)
            self._device.read(sync, self.sync)
            self.clear()
            if passed and not sync[GAVE_UP]:
                return per_unit * units
        return None
