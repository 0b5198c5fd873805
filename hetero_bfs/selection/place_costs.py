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

PUSH_EDGE, PULL_VERTEX, PULL_EDGE, PULL_MISS, PUSH_VERTEX, PUSH_CHANGE, ITERATION_COST = range(7)
"""Seconds of what iterations do, in the order of program_costs.py, which explains them; and of an
iteration."""

NUM_DIRECTION_COSTS = 6

OTHER = 7
"""The same seven of the other place."""

WAY, CHANGED_VERTEX, ALL_STATES, LISTED_VERTEX, BITMAP = range(14, 19)
"""Seconds of the way, infinite if there is none; of what crosses (handover.py): of a vertex whose
state changed, or of all states; of an active vertex in a list, or of a bitmap."""

LOST, NUM_CHANGED, CHANGES_PER_EDGE = range(19, 22)
"""Seconds lost here so far; how often a vertex was active here, so that its state may differ; how
many vertices the latest iteration made active for each edge of those that sent."""

NUM_COSTS = 22

OPENCL = {
    "PUSH_EDGE": PUSH_EDGE,
    "PULL_VERTEX": PULL_VERTEX,
    "PULL_EDGE": PULL_EDGE,
    "PULL_MISS": PULL_MISS,
    "PUSH_VERTEX": PUSH_VERTEX,
    "PUSH_CHANGE": PUSH_CHANGE,
    "ITERATION_COST": ITERATION_COST,
    "OTHER": OTHER,
    "WAY": WAY,
    "CHANGED_VERTEX": CHANGED_VERTEX,
    "ALL_STATES": ALL_STATES,
    "LISTED_VERTEX": LISTED_VERTEX,
    "BITMAP": BITMAP,
    "LOST": LOST,
    "NUM_CHANGED": NUM_CHANGED,
    "CHANGES_PER_EDGE": CHANGES_PER_EDGE,
}
"""For loop.cl."""

_WAY_SECONDS, _BYTE_SECONDS = 150e-6, 1 / 5e9
"""First guesses for a machine without a trained model."""


def lone_costs(of_directions: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return costs for a place from which no way leads to another."""
    costs = np.zeros(NUM_COSTS)
    costs[: len(of_directions)] = of_directions
    costs[WAY], costs[CHANGES_PER_EDGE] = np.inf, 1.0
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
