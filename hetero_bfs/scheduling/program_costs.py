"""Costs, in seconds, of a vertex program's iterations on two places, and of migrations.

They are one float array, indexed as below, on the host and on a device. program_rule.py has the
formulas and the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import DeviceKind

PUSH_EDGE, PULL_VERTEX, PULL_EDGE, PULL_MISS, PUSH_VERTEX, PUSH_CHANGE, ITERATION_COST = range(7)
"""Seconds of an iteration's parts (speed_model.py explains them), and its constant seconds."""

NUM_DIRECTION_COSTS = 6

OTHER = 7
"""First of the same seven costs for the other place."""

MIGRATION, CHANGED_VERTEX, ALL_STATES, LISTED_VERTEX, BITMAP = range(14, 19)
"""Seconds of a migration: its latency (infinite if the run cannot migrate), and the transfers
(device_stay.py): per vertex whose state changed, for all states, per active vertex in a list, for a
bitmap."""

LOST, NUM_CHANGED, CHANGES_PER_EDGE = range(19, 22)
"""Seconds lost here so far. Number of active vertices so far, whose states may differ. Vertices
that the latest iteration made active, per edge of its senders."""

NUM_COSTS = 22

OPENCL = {"MIGRATION": MIGRATION, "CHANGES_PER_EDGE": CHANGES_PER_EDGE}
"""For loop.cl."""

_LATENCY_SECONDS, _BYTE_SECONDS = 150e-6, 1 / 5e9
"""First guesses for a machine without a trained model."""


def lone_costs(of_directions: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return costs for a run that cannot migrate."""
    costs = np.zeros(NUM_COSTS)
    costs[: len(of_directions)] = of_directions
    costs[MIGRATION], costs[CHANGES_PER_EDGE] = np.inf, 1.0
    return costs


class RunSizes(NamedTuple):
    """Sizes of a run: of the graph, and bytes of a vertex's state.

    `num_searched` vertices have edges. `has_identity` tells whether `combine` has an identity,
    `all_active` whether all vertices are active in each iteration.
    """

    num_vertices: int
    num_searched: int
    num_stored_edges: int
    item_bytes: int
    has_identity: bool
    all_active: bool


@dataclass(frozen=True)
class MigrationCosts:
    """Seconds of a migration to a place: latency, and per byte."""

    seconds: float
    byte_seconds: float

    @classmethod
    def to(cls, place: DeviceKind, model: SpeedModel | None) -> MigrationCosts:
        """Return the model's costs for searches, whose frontier has 4 bytes per vertex."""
        if model is None or place not in model.switch:
            return cls(_LATENCY_SECONDS, _BYTE_SECONDS)
        weights = model.switch[place].to_json()
        return cls(weights.get("constant", 0.0), weights.get("frontier_vertices", 0.0) / 4)
