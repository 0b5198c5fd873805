"""What iterations of a vertex program cost on two places, and the way between them, in seconds.

An array of floats has all of it, numbered as below, on the host and on a device. place_rule.py has
the formulas and the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hetero_bfs.selection.speed_model import SpeedModel
from hetero_bfs.selection.strategies import DeviceKind

PUSH_EDGE, PULL_VERTEX, PULL_EDGE, PULL_MISS, ITERATION_COST = range(5)
"""Seconds for an edge of a push; for a vertex, an edge and a miss of a pull (program_costs.py); for
an iteration."""

NUM_DIRECTION_COSTS = 4

OTHER = 5
"""The same five of the other place."""

WAY, CHANGED_VERTEX, ALL_STATES, LISTED_VERTEX, BITMAP = range(10, 15)
"""Seconds of the way, infinite if there is none; of what crosses (handover.py): of a vertex whose
state changed, or of all states; of an active vertex in a list, or of a bitmap."""

LOST, NUM_CHANGED = 15, 16
"""Seconds lost here so far; how often a vertex was active here, so that its state may differ."""

NUM_COSTS = 17

OPENCL = {
    "PUSH_EDGE": PUSH_EDGE,
    "PULL_VERTEX": PULL_VERTEX,
    "PULL_EDGE": PULL_EDGE,
    "PULL_MISS": PULL_MISS,
    "ITERATION_COST": ITERATION_COST,
    "OTHER": OTHER,
    "WAY": WAY,
    "CHANGED_VERTEX": CHANGED_VERTEX,
    "ALL_STATES": ALL_STATES,
    "LISTED_VERTEX": LISTED_VERTEX,
    "BITMAP": BITMAP,
    "LOST": LOST,
    "NUM_CHANGED": NUM_CHANGED,
}
"""For loop.cl."""

_WAY_SECONDS, _BYTE_SECONDS = 150e-6, 1 / 5e9
"""First guesses for a machine without a trained model."""


def lone_costs(of_directions: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return costs for a place from which no way leads to another."""
    costs = np.zeros(NUM_COSTS)
    costs[: len(of_directions)] = of_directions
    costs[WAY] = np.inf
    return costs


@dataclass(frozen=True)
class WayCosts:
    """Seconds of a migration to a place: latency, and each byte."""

    seconds: float
    byte_seconds: float

    @classmethod
    def to(cls, place: DeviceKind, model: SpeedModel | None) -> WayCosts:
        """Return what the model has for searches, whose frontier is 4 bytes a vertex."""
        if model is None or place not in model.switch:
            return cls(_WAY_SECONDS, _BYTE_SECONDS)
        weights = model.switch[place].to_json()
        return cls(weights.get("constant", 0.0), weights.get("frontier_vertices", 0.0) / 4)
