"""Follows a policy through a graph's reference search, without running it, compiled.

The levels of a search do not depend on the strategies. So the states of one reference search
(cost_to_go.py) show what a policy chooses at each level, and a model predicts what that takes.
Searches from other sources have frontiers of other sizes. A threshold that suits one of them may be
far off for the next. So policies are compared on searches like the reference, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import fill_columns, is_dense_push_level, size_of_level
from hetero_bfs.scheduling.policy import (
    DENSE_PUSHES,
    LEAST_ALIKE,
    MODEL,
    Policy,
    are_near,
    choose,
    dot,
)
from hetero_bfs.scheduling.schema import has_queue
from hetero_bfs.scheduling.transitions import leaves_queue, transition_seconds
from hetero_bfs.support.compiling import kernel

ASKING_SECONDS = (2e-7, 1.5e-6)
"""Seconds of one evaluation of a model, on the host and on a device."""

KEEPING_SECONDS = (1e-8, 1.2e-7)
"""Seconds of finding out that a choice can be kept, on the host and on a device."""

_MOST_VARIED = 64  # levels; in a longer search no single level matters much
_PHASES = tuple(step / 8 for step in range(1, 8))
"""Where a frontier grows a thousandfold, these are frontiers of all sizes: each is at most 2.4
times as large as the one before."""

_SIZES = (
    (schema.FRONTIER_VERTICES, schema.UNVISITED_VERTICES),
    (schema.FRONTIER_EDGES, schema.UNVISITED_EDGES),
)


def with_alike(reference: npt.NDArray[np.float64]) -> list[npt.NDArray[np.float64]]:
    """Return a reference search, and searches whose levels lie between two of its levels.

    A frontier of a core grows a hundredfold from one level to the next. From another source it may
    have any size between the two. The ratio of visited to unvisited vertices grows evenly between
    two levels, and that of edges; a frontier is what a level adds.
    """
    found = [reference]
    if not 2 < len(reference) <= _MOST_VARIED:
        return found
    for phase in _PHASES:
        other = reference.copy()
        for frontier, unvisited in _SIZES:
            left = np.maximum(reference[:, unvisited], 0.5)
            total = reference[0, frontier] + reference[0, unvisited]
            visited = np.maximum(total - left, 0.5)
            grown = np.log(visited / left)
            grown[1:-1] = (1.0 - phase) * grown[1:-1] + phase * grown[2:]
            other[1:-1, unvisited] = total / (1.0 + np.exp(grown[1:-1]))
            other[1:, frontier] = np.maximum(-np.diff(other[:, unvisited]), 1.0)
        other[2:, schema.PREVIOUS_EDGES] = other[1:-1, schema.FRONTIER_EDGES]
        found.append(other)
    return found


_has_queue = njit(inline="always")(has_queue)


@njit(inline="always")
def keeps_choice(level, before):
    """Tell whether a search very likely keeps the choice of the level before, without asking."""
    same_size = size_of_level(level[schema.FRONTIER_EDGES]) == size_of_level(
        before[schema.FRONTIER_EDGES]
    )
    return same_size and are_near(level, before, LEAST_ALIKE)


@njit(inline="always")
def choosing_seconds(place, keeps):
    """Return the seconds of choosing by a model where the search is."""
    there = 1 if place > schema.HOST else 0
    return KEEPING_SECONDS[there] if keeps else ASKING_SECONDS[there]


def rehearse(
    policy: Policy,
    costs: Policy,
    num_vertices: int,
    num_edges: int,
    reference: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.int64], float]:
    """Return what a policy chooses in a reference search, int64 (levels,), and the predicted cost.

    `policy` chooses. `costs` predicts, with the same candidates and rule MODEL. `reference` is
    float64 (levels, RECORD_STATE). The cost is in seconds, or as the objective has it, of all
    levels and migrations, and of choosing.
    """
    chosen = np.zeros(len(reference), np.int64)
    predicted = np.zeros((2, policy.places.size))
    seconds = _rehearse(policy, costs, num_vertices, num_edges, reference.copy(), predicted, chosen)
    return chosen, float(seconds)


@kernel(counted=False)
def _rehearse(policy, costs, num_vertices, num_edges, levels, predicted, chosen):
    """Fill `chosen`; place and representation of `levels` are replaced."""
    columns = costs.work
    place, representation = schema.NOWHERE, schema.QUEUE
    total = 0.0
    for i in range(levels.shape[0]):
        state = levels[i]
        state[schema.PLACE], state[schema.REPRESENTATION] = place, representation
        keeps = i > 0 and keeps_choice(state, levels[i - 1])
        if keeps and policy.rule == MODEL:
            s = chosen[i - 1]
        else:
            s = choose(policy, num_vertices, num_edges, state, predicted[0], predicted[1])
        if policy.rule == MODEL:
            total += choosing_seconds(place, keeps)
        chosen[i] = s
        fill_columns(columns, num_vertices, state)
        size = size_of_level(state[schema.FRONTIER_EDGES])
        total += dot(costs.weights[size, s], columns)
        total += transition_seconds(costs, columns, place, _has_queue(state), s)
        place = policy.places[s]
        dense_push = is_dense_push_level(
            num_vertices, state[schema.FRONTIER_EDGES], state[schema.UNVISITED_VERTICES]
        )
        if leaves_queue(policy.top_down[s], policy.traits[s, DENSE_PUSHES] != 0, dense_push):
            representation = schema.QUEUE
        else:
            representation = schema.DENSE_PUSH_BITMAP if policy.top_down[s] else schema.BITMAP
    return total
