"""Chooses when a run that began on a device ends on the host, since few vertices are left.

A window costs the device some steps. It costs the host a constant, and seconds for its edges. The
device adds the seconds by which each window was slower than on the host to a sum that never falls
below 0. The run leaves once the sum exceeds the seconds of leaving (the ski-rental rule of
program_rule.py). The edges that no vertex
has relaxed yet count as work of the host, so a run does not leave before a second large part of a
graph. Runs correct all of these costs but that of an edge. The result's transfer to the host is no
cost of leaving, since a run that stays needs it, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling.program_costs import MigrationCosts
from hetero_bfs.scheduling.speed_model import GraphSize, RunCosts
from hetero_bfs.scheduling.strategies import DeviceKind

_STEP_SECONDS = {True: 4e-6, False: 4e-5}
"""First guess for a step of the device, by whether one launch runs all steps."""

_WINDOW_SECONDS = 2e-6  # first guess for a small window on the host
_EDGE_SECONDS = 2e-9  # of the host, if no model is known
_LEARNING = 0.5  # weight of the latest run


class Leaving:
    """When runs of an algorithm leave a device."""

    def __init__(
        self, size: GraphSize, costs: Mapping[DeviceKind, RunCosts], one_launch: bool
    ) -> None:
        host, edges = costs.get("cpu"), max(size.edges, 1.0)
        self._step, self._window = _STEP_SECONDS[one_launch], _WINDOW_SECONDS
        self._edge = _EDGE_SECONDS if host is None else host.run.seconds(size) / edges
        self._leaving = MigrationCosts.to("cpu", None).seconds
        self._is_compiled = False

    def costs(self, may_leave: bool) -> npt.NDArray[np.float32]:
        """Return nanoseconds of a step, a window, an edge, and of leaving (inf: never)."""
        leaving = self._leaving if may_leave else np.inf
        return (1e9 * np.array([self._step, self._window, self._edge, leaving])).astype(np.float32)

    def learn_device(
        self, steps: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]
    ) -> None:
        """Learn from windows on the device: the least seconds of a step."""
        each = seconds[steps > 0] / steps[steps > 0]
        if each.size and each.min() > 0.0:
            self._step += _LEARNING * (float(each.min()) - self._step)

    def learn_host(
        self, edges: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64], leaving: float
    ) -> None:
        """Learn from windows that the host continued, and from the seconds of leaving.

        The first run is ignored, as it compiles kernels.
        """
        if not self._is_compiled:
            self._is_compiled = True
            return
        own = np.maximum(seconds - self._edge * edges, 0.0)
        if own.size:
            self._window += _LEARNING * (float(own.mean()) - self._window)
        self._leaving += _LEARNING * (leaving - self._leaving)
