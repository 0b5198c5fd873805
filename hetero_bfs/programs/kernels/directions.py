"""Chooses the direction of an iteration on the host by costs, and corrects the costs.

loop.py describes `arrays`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.scheduling.place_costs import (
    PULL_EDGE,
    PULL_MISS,
    PULL_VERTEX,
    PUSH_CHANGE,
    PUSH_EDGE,
    PUSH_VERTEX,
)
from hetero_bfs.scheduling.place_rule import leaves, pull_seconds, push_seconds

_LEAST_LEARNED = 50e-6  # seconds; shorter iterations do not correct costs
_RIVAL = 3.0  # ratio of predicted times below which both directions are rivals


@njit(inline="always")
def choose(arrays, senders, edges, receivers):
    """Return whether to pull, and the expected seconds, or 0.0 if costs must not be corrected.

    Only iterations where both directions are rivals correct costs: only there costs matter.
    """
    costs, searched, stored = arrays.costs, arrays.searched, arrays.num_edges
    pushed = push_seconds(costs, 0, senders, edges)
    if pushed <= searched * costs[PULL_VERTEX]:  # less than any pull costs
        return False, 0.0
    pulled = pull_seconds(costs, 0, edges, receivers, searched, stored, arrays.has_identity != 0)
    expected = min(pulled, pushed)
    are_rivals = max(pulled, pushed) < _RIVAL * expected
    return pulled < pushed, expected if are_rivals else 0.0


@njit(inline="always")
def migrates(arrays, direction, active, senders, edges, receivers):
    """Tell whether the next iteration must run on the other place."""
    direction = 2 if arrays.all_active != 0 else direction
    sizes, has_identity = (arrays.searched, arrays.num_edges), arrays.has_identity != 0
    return leaves(arrays.costs, direction, active, senders, edges, receivers, sizes, has_identity)


@njit(inline="always")
def learn(arrays, pulls, expected, seconds):
    """Correct the costs of a direction by the fourth root of seconds / expected seconds.

    They do not change if `expected` is 0.0.
    """
    if expected == 0.0 or max(expected, seconds) < _LEAST_LEARNED:
        return
    factor = np.sqrt(np.sqrt(min(max(seconds / expected, 0.25), 4.0)))
    costs = arrays.costs
    if pulls:
        for cost in (PULL_VERTEX, PULL_EDGE, PULL_MISS):
            costs[cost] *= factor
    else:
        for cost in (PUSH_VERTEX, PUSH_EDGE, PUSH_CHANGE):
            costs[cost] *= factor
