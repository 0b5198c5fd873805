"""Choosing by a speed model, compiled: a policy is data (matrices), evaluated by one function.

Columns of a level, in this order: constant, num_vertices, frontier_vertices, frontier_edges,
unvisited_vertices, unvisited_edges, expected_examined, expected_found (trace.py explains them).
Predicted seconds are a matrix of weights times the columns. Devices: 0 host, 1 OpenCL device.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

NUM_COLUMNS = 8
START, SWITCH, CONVERT = 0, 1, 2  # first index of `moves`
_MOST_LEVELS = 1000.0
_SLOWEST_GROWTH = 1.05
_SETTLE_EXAMINED = 2.0  # neighbours that bottom-up looks at when half of all edge ends are visited


@njit(cache=True, nogil=True)
def expected_examined(unvisited_vertices, unvisited_edges, num_edges):
    """Neighbours that bottom-up is expected to look at; see `LevelFeatures.expected_examined`."""
    if unvisited_vertices == 0 or unvisited_edges == 0:
        return 0.0
    share = 1.0 - unvisited_edges / num_edges
    if share <= 0.0:
        return float(unvisited_edges)
    mean_degree = unvisited_edges / unvisited_vertices
    return unvisited_vertices * (1.0 - (1.0 - share) ** mean_degree) / share


@njit(cache=True, nogil=True)
def expected_found(frontier_edges, unvisited_vertices, unvisited_edges, num_edges):
    """Vertices that the level is expected to reach; see `LevelFeatures.expected_found`."""
    if unvisited_vertices == 0 or num_edges == 0:
        return 0.0
    share = min(frontier_edges / num_edges, 1.0)
    return unvisited_vertices * (1.0 - (1.0 - share) ** (unvisited_edges / unvisited_vertices))


@njit(cache=True, nogil=True)
def _fill(columns, num_vertices, frontier, unvisited, num_edges):
    columns[0] = 1.0
    columns[1] = num_vertices
    columns[2], columns[3] = frontier
    columns[4], columns[5] = unvisited
    columns[6] = expected_examined(unvisited[0], unvisited[1], num_edges)
    columns[7] = expected_found(frontier[1], unvisited[0], unvisited[1], num_edges)


@njit(cache=True, nogil=True)
def _levels_left(frontier_edges, growth, unvisited_edges):
    """Guess how many levels the search still takes from how fast the frontier grows."""
    rate = math.log(max(growth, 1.0 / max(growth, 1e-9), _SLOWEST_GROWTH))
    if growth >= 1.0:
        distance = math.log(max(unvisited_edges / frontier_edges, 1.0))
    else:
        distance = math.log(frontier_edges + 1.0)
    return min(max(distance / rate, 1.0), _MOST_LEVELS)


@njit(cache=True, nogil=True)
def _rest(weights, moves, kinds, columns, growth, rest):
    """Predict what follows this level, for a search that stands on either device after it.

    The remaining levels but one are taken to be like this one, the last to settle all that is
    left; the search may move to the other device at once, or before that last level.
    """
    small = np.full(2, np.inf)
    settle = np.full(2, np.inf)
    left = max(columns[4] - columns[7], 0.0)
    last = columns.copy()
    edges = columns[5] * left / max(columns[4], 1.0)
    last[2], last[3], last[4], last[5] = left, edges, left, edges
    last[6], last[7] = min(_SETTLE_EXAMINED * left, edges), left
    for s in range(kinds.size):
        small[kinds[s]] = min(small[kinds[s]], np.dot(weights[s], columns))
        settle[kinds[s]] = min(settle[kinds[s]], np.dot(weights[s], last))
    between = _levels_left(columns[3], growth, columns[5]) - 1.0
    stay = np.empty(2)
    for kind in range(2):
        other = np.dot(moves[SWITCH, 1 - kind], columns) + settle[1 - kind]
        stay[kind] = between * small[kind] + min(settle[kind], other)
    for kind in range(2):
        rest[kind] = min(stay[kind], np.dot(moves[SWITCH, 1 - kind], columns) + stay[1 - kind])


@njit(cache=True, nogil=True)
def choose(
    weights,
    moves,
    kinds,
    top_down,
    looks_ahead,
    num_vertices,
    num_edges,
    frontier,
    unvisited,
    growth,
    kind,
    is_bitmap,
    predicted,
    total,
):
    """Fill predicted and total seconds (strategies,); return the strategy of least total.

    Parameters
    ----------
    weights : float64 (strategies, NUM_COLUMNS)
    moves : float64 (3, 2, NUM_COLUMNS)
        Starting on a device, switching to it, converting a bitmap on it.
    kinds, top_down : int64, bool (strategies,)
    frontier, unvisited : (vertices, edges)
    growth : float
        The frontier's edges over those one level earlier.
    kind : int
        Device that the search is on, -1 before it has begun.
    """
    columns = np.empty(NUM_COLUMNS)
    _fill(columns, num_vertices, frontier, unvisited, num_edges)
    rest = np.zeros(2)
    if looks_ahead:
        _rest(weights, moves, kinds, columns, growth, rest)
    best = 0
    for s in range(kinds.size):
        seconds = np.dot(weights[s], columns)
        if kind < 0:
            seconds += np.dot(moves[START, kinds[s]], columns)
        else:
            if top_down[s] and is_bitmap:
                seconds += np.dot(moves[CONVERT, kind], columns)
            if kinds[s] != kind:
                seconds += np.dot(moves[SWITCH, kinds[s]], columns)
        predicted[s] = seconds
        total[s] = seconds + rest[kinds[s]]
        if total[s] < total[best]:
            best = s
    return best
