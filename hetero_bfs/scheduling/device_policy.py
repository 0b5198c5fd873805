"""A policy on a device: its numbers in one array, and its functions in OpenCL C (policy.cl)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling import columns, schema
from hetero_bfs.scheduling import policy as policies
from hetero_bfs.scheduling.columns import NUM_COLUMNS, NUM_MIGRATION_COLUMNS, SWITCH
from hetero_bfs.scheduling.policy import FIXED, MOST_CANDIDATES, MOST_COST_TO_GO_ROWS, Policy
from hetero_bfs.scheduling.schema import DEVICE, HOST

_PACKED_NUMBERS = (
    "RULE",
    "CANDIDATES",
    "STRETCHES",
    "INTERVAL",
    "COST_TO_GO_ROWS",
    "ALPHA",
    "BETA",
    "NUM_VERTICES",
    "NUM_EDGES",
    "MEAN_DEGREE",
)
"""The first items of a packed policy; migrations, candidates and the rest follow."""

_POLICY_NUMBERS = (
    *("FIXED", "DIRECTION", "MODEL", "SPEEDS", "LEAST_ALIKE", "MOST_ALIKE", "LEAST_SECONDS"),
    *("MOST_CANDIDATES", "MOST_COST_TO_GO_ROWS"),
)
OPENCL = {
    **{name: place for place, name in enumerate((*_PACKED_NUMBERS, "MIGRATIONS"))},
    **{name: getattr(policies, name) for name in _POLICY_NUMBERS},
    "SWITCH": SWITCH,
    "CONVERT": columns.CONVERT,
}
"""Numbers shared with policy.cl (built_programs.py)."""

FUNCTIONS = (
    *(schema.is_dense_push, schema.size_of, schema.was_bottom_up, schema.grows),
    *(columns.found_share, columns.unsteadiness, columns.scattered_finds, columns.opened_lists),
    *(columns.expectations, columns.fill_columns, columns.share_left),
    *(policies.steps_of, policies.is_near),
    *(policies.choose_direction, policies.is_faster_bottom_up),
)
KINDS = {"columns": "__local float *", "state": "const float *"}
"""Functions that policy.cl calls (device_code.py), and the arrays among their parameters."""


def pack_policy(
    policy: Policy, num_vertices: int, num_edges: int, interval: int, place: int = DEVICE
) -> npt.NDArray[np.float32]:
    """Pack a policy for policy.cl: numbers, migrations, candidates, schedule or cost-to-go table.

    A schedule of rule FIXED becomes stretches of levels by one candidate. A device need not choose
    anew within a stretch.

    `place` is the number of the device. A device knows only itself and the host, so the seconds of
    a switch to another device are added to that device's candidates. After the candidates there is
    room for at least MOST_COST_TO_GO_ROWS rows, since policy.cl copies that many.
    """
    schedule = _stretches(policy.schedule) if policy.rule == FIXED else policy.schedule
    named = {
        "RULE": policy.rule,
        "CANDIDATES": policy.places.size,
        "STRETCHES": len(schedule),
        "INTERVAL": interval,
        "COST_TO_GO_ROWS": policy.cost_to_go.shape[0],
        "ALPHA": policy.alpha,
        "BETA": policy.beta,
        "NUM_VERTICES": num_vertices,
        "NUM_EDGES": num_edges,
        "MEAN_DEGREE": max(num_edges / max(num_vertices, 1), 1.0),
    }
    numbers = [named[name] for name in _PACKED_NUMBERS]
    traits = (policy.places == place, policy.top_down, policy.traits[:, policies.VARIANT])
    weights = policy.weights.copy()
    elsewhere = (policy.places != place) & (policy.places != HOST)
    further = policy.migrations[SWITCH, policy.places[elsewhere]]
    weights[:, elsewhere, :NUM_MIGRATION_COLUMNS] += further
    candidates = np.zeros((MOST_CANDIDATES, 2 * NUM_COLUMNS + len(traits)))
    candidates[: policy.places.size] = np.column_stack((*weights, *traits))
    rest = np.concatenate((schedule.ravel(), policy.cost_to_go.ravel()))
    padding = np.zeros(max(MOST_COST_TO_GO_ROWS * (1 + MOST_CANDIDATES) - rest.size, 0))
    migrations = policy.migrations[:, [HOST, place]]
    parts = (numbers, migrations.ravel(), candidates.ravel(), rest, padding)
    return np.concatenate(parts).astype(np.float32)


def _stretches(schedule: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the candidate of each stretch and the level after it, (stretches, 2)."""
    ends = 1 + np.flatnonzero(np.diff(schedule, append=-1))
    return np.column_stack((schedule[ends - 1], ends))
