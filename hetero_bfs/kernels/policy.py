"""Choosing a strategy, compiled: a policy is data (numbers, matrices), evaluated by one function.

Three rules. FIXED takes the candidates of a schedule in turn, the last for all further levels.
DIRECTION is Beamer's (2012): bottom-up once the frontier's edges exceed 1 / alpha of the unvisited
ones, top-down again once the frontier has fewer than 1 / beta of the vertices. MODEL takes the
candidate of least predicted seconds.

Columns that a model sees, in this order: constant, num_vertices, frontier_vertices,
frontier_edges, unvisited_vertices, unvisited_edges, expected_examined, expected_found (trace.py
explains them). Predicted seconds are a matrix of weights times the columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.kernels.compile import kernel
from hetero_bfs.kernels.level import (
    BITMAP,
    CHOSEN,
    DEVICE,
    FORM,
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    HOST,
    KIND,
    LEVEL,
    PREDICTED,
    PREVIOUS_EDGES,
    RECORD_STATE,
    SELECT_SECONDS,
    STRATEGY,
    TRANSFER_SECONDS,
    UNVISITED_EDGES,
    UNVISITED_VERTICES,
)
from hetero_bfs.strategy import Strategy

NUM_COLUMNS = 8
MOST_CANDIDATES = 8
WORK_ROWS = 6
FIXED, DIRECTION, MODEL = 0, 1, 2
START, SWITCH, CONVERT = 0, 1, 2  # first index of `moves`
_MOST_LEVELS = 1000.0
_SLOWEST_GROWTH = 1.05
_SETTLE_EXAMINED = 2.0  # neighbours that bottom-up looks at when half of all edge ends are visited


class Policy(NamedTuple):
    """A selector as data; candidates are numbered as the selector lists them.

    Parameters
    ----------
    rule : int64
        FIXED, DIRECTION or MODEL.
    schedule : int64 (levels,)
        FIXED: candidates by level. DIRECTION: the one for top-down, the one for bottom-up.
    alpha, beta : float64
        DIRECTION's thresholds.
    weights : float64 (candidates, NUM_COLUMNS)
        MODEL: seconds per unit of each column.
    moves : float64 (3, 2, NUM_COLUMNS)
        MODEL: starting on a device, switching to it, converting a bitmap on it.
    looks_ahead : bool
        MODEL: whether each candidate also bears what the rest of the search is expected to cost
        from its device; else a cheap first level on the host is chosen although the next one must
        leave it again.
    kinds, top_down, cached : int64, bool, bool (candidates,)
        Device, direction and variant of each candidate.
    work : float64 (WORK_ROWS, NUM_COLUMNS)
        Scratch.
    """

    rule: Any
    schedule: Any
    alpha: Any
    beta: Any
    weights: Any
    moves: Any
    looks_ahead: Any
    kinds: Any
    top_down: Any
    cached: Any
    work: Any


def make_policy(rule: int, candidates: Sequence[Strategy], **fields: Any) -> Policy:
    """Return a policy for these candidates; fields that its rule does not use may be left out."""
    count = len(candidates)
    given: dict[str, Any] = {
        "schedule": [],
        "alpha": 0.0,
        "beta": 0.0,
        "weights": np.zeros((count, NUM_COLUMNS)),
        "moves": np.zeros((3, 2, NUM_COLUMNS)),
        "looks_ahead": False,
        "work": np.zeros((WORK_ROWS, NUM_COLUMNS)),
        **fields,
    }
    given["schedule"] = np.array(given["schedule"], np.int64)
    kinds = np.array([HOST if s.device_kind == "cpu" else DEVICE for s in candidates])
    top_down = np.array([s.direction == "top-down" for s in candidates])
    cached = np.array([s.variant == "cached" for s in candidates])
    return Policy(rule=rule, kinds=kinds, top_down=top_down, cached=cached, **given)


def fixed_policy(schedule: Sequence[int], candidates: Sequence[Strategy]) -> Policy:
    """Return the policy of a fixed schedule: numbers of candidates, level by level."""
    return make_policy(FIXED, candidates, schedule=schedule)


def pack_policy(
    policy: Policy, num_vertices: int, num_edges: int, interval: int, dtype: npt.DTypeLike
) -> npt.NDArray[np.floating[Any]]:
    """Lay a policy out for policy.cl: numbers, moves, candidates, schedule.

    The schedule has room for MOST_CANDIDATES at least, since policy.cl copies as many.
    """
    numbers = [policy.rule, policy.kinds.size, policy.schedule.size, interval, policy.looks_ahead]
    mean_degree = max(num_edges / max(num_vertices, 1), 1.0)
    numbers += [policy.alpha, policy.beta, num_vertices, num_edges, mean_degree]
    traits = (policy.kinds == DEVICE, policy.top_down, policy.cached)
    candidates = np.zeros((MOST_CANDIDATES, NUM_COLUMNS + len(traits)))
    candidates[: policy.kinds.size] = np.column_stack((policy.weights, *traits))
    padding = np.zeros(max(MOST_CANDIDATES - policy.schedule.size, 0))
    parts = (numbers, policy.moves.ravel(), candidates.ravel(), policy.schedule, padding)
    return np.concatenate(parts).astype(dtype)


@kernel(counted=False)
def expected_examined(unvisited_vertices, unvisited_edges, num_edges):
    """Neighbours that bottom-up is expected to look at; see `LevelFeatures.expected_examined`."""
    if unvisited_vertices == 0 or unvisited_edges == 0:
        return 0.0
    share = 1.0 - unvisited_edges / num_edges
    if share <= 0.0:
        return float(unvisited_edges)
    mean_degree = unvisited_edges / unvisited_vertices
    return unvisited_vertices * (1.0 - (1.0 - share) ** mean_degree) / share


@kernel(counted=False)
def expected_found(frontier_edges, unvisited_vertices, unvisited_edges, num_edges):
    """Vertices that the level is expected to reach; see `LevelFeatures.expected_found`."""
    if unvisited_vertices == 0 or num_edges == 0:
        return 0.0
    share = min(frontier_edges / num_edges, 1.0)
    return unvisited_vertices * (1.0 - (1.0 - share) ** (unvisited_edges / unvisited_vertices))


@njit(inline="always")
def _dot(weights, columns):
    total = 0.0
    for i in range(NUM_COLUMNS):
        total += weights[i] * columns[i]
    return total


@kernel(counted=False)
def _fill(columns, num_vertices, num_edges, state):
    columns[0] = 1.0
    columns[1] = num_vertices
    columns[2] = state[FRONTIER_VERTICES]
    columns[3] = state[FRONTIER_EDGES]
    columns[4] = state[UNVISITED_VERTICES]
    columns[5] = state[UNVISITED_EDGES]
    columns[6] = expected_examined(columns[4], columns[5], num_edges)
    columns[7] = expected_found(columns[3], columns[4], columns[5], num_edges)


@kernel(counted=False)
def _levels_left(frontier_edges, growth, unvisited_edges):
    """Guess how many levels the search still takes from how fast the frontier grows."""
    rate = math.log(max(growth, 1.0 / max(growth, 1e-9), _SLOWEST_GROWTH))
    if growth >= 1.0:
        distance = math.log(max(unvisited_edges / frontier_edges, 1.0))
    else:
        distance = math.log(frontier_edges + 1.0)
    return min(max(distance / rate, 1.0), _MOST_LEVELS)


@kernel(counted=False)
def _rest(policy, growth, rest):
    """Predict what follows this level, for a search that stands on either device after it.

    The remaining levels but one are taken to be like this one, the last to settle all that is
    left; the search may move to the other device at once, or before that last level.
    """
    weights, moves, kinds = policy.weights, policy.moves, policy.kinds
    columns, last = policy.work[0], policy.work[1]
    small, settle, stay = policy.work[2], policy.work[3], policy.work[4]
    for kind in range(2):
        small[kind] = settle[kind] = np.inf
    left = max(columns[4] - columns[7], 0.0)
    for i in range(NUM_COLUMNS):
        last[i] = columns[i]
    edges = columns[5] * left / max(columns[4], 1.0)
    last[2], last[3], last[4], last[5] = left, edges, left, edges
    last[6], last[7] = min(_SETTLE_EXAMINED * left, edges), left
    for s in range(kinds.size):
        small[kinds[s]] = min(small[kinds[s]], _dot(weights[s], columns))
        settle[kinds[s]] = min(settle[kinds[s]], _dot(weights[s], last))
    between = _levels_left(columns[3], growth, columns[5]) - 1.0
    for kind in range(2):
        other = _dot(moves[SWITCH, 1 - kind], columns) + settle[1 - kind]
        stay[kind] = between * small[kind] + min(settle[kind], other)
    for kind in range(2):
        rest[kind] = min(stay[kind], _dot(moves[SWITCH, 1 - kind], columns) + stay[1 - kind])


@kernel(counted=False)
def _choose_by_model(policy, num_vertices, num_edges, state, predicted, total):
    columns = policy.work[0]
    _fill(columns, num_vertices, num_edges, state)
    kind = int(state[KIND])
    rest = policy.work[5]
    rest[HOST] = rest[DEVICE] = 0.0
    if policy.looks_ahead:
        _rest(policy, state[FRONTIER_EDGES] / state[PREVIOUS_EDGES], rest)
    best = 0
    for s in range(policy.kinds.size):
        seconds = _dot(policy.weights[s], columns)
        if kind < 0:
            seconds += _dot(policy.moves[START, policy.kinds[s]], columns)
        else:
            if policy.top_down[s] and state[FORM] == BITMAP:
                seconds += _dot(policy.moves[CONVERT, kind], columns)
            if policy.kinds[s] != kind:
                seconds += _dot(policy.moves[SWITCH, policy.kinds[s]], columns)
        predicted[s] = seconds
        total[s] = seconds + rest[policy.kinds[s]]
        if total[s] < total[best]:
            best = s
    return best


@kernel(counted=False)
def _choose_direction(policy, num_vertices, state):
    """Return 0 for top-down, 1 for bottom-up; a bitmap is what bottom-up left."""
    if state[FORM] == BITMAP:
        return 0 if state[FRONTIER_VERTICES] * policy.beta < num_vertices else 1
    return 1 if state[FRONTIER_EDGES] * policy.alpha > state[UNVISITED_EDGES] else 0


@kernel(counted=False)
def choose(policy, num_vertices, num_edges, state, predicted, total):
    """Return the number of the candidate for the level that `state` describes (level.py).

    A model fills `predicted` and `total`, float64 (candidates,), with the seconds it expects of
    each candidate, and those that decided; other rules leave them alone.
    """
    if policy.rule == FIXED:
        return policy.schedule[min(int(state[LEVEL]), policy.schedule.size - 1)]
    if policy.rule == DIRECTION:
        return policy.schedule[_choose_direction(policy, num_vertices, state)]
    return _choose_by_model(policy, num_vertices, num_edges, state, predicted, total)


@kernel(counted=False)
def choose_level(policy, interval, num_vertices, num_edges, state, records):
    """Choose the coming level's candidate: begins the level's record, and sets `state[CHOSEN]`.

    Parameters
    ----------
    policy : Policy
    interval : int
        Levels between two choices; the others take their predecessor's.
    state : float64 (STATE_SIZE,)
    records : float64 (rows, record_width)
        The row of the coming level is written, that of the level before is read.
    """
    level = int(state[LEVEL])
    record = records[level]
    candidates = policy.kinds.size
    for column in range(RECORD_STATE):
        record[column] = state[column]
    for column in range(PREDICTED, record.size):
        record[column] = np.nan
    if level % interval == 0:
        chosen = choose(
            policy,
            num_vertices,
            num_edges,
            state,
            record[PREDICTED : PREDICTED + candidates],
            record[PREDICTED + candidates :],
        )
    else:
        chosen = int(records[level - 1, STRATEGY])
    record[STRATEGY] = state[CHOSEN] = chosen
    record[TRANSFER_SECONDS] = record[SELECT_SECONDS] = 0.0
