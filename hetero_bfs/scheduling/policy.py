"""Chooses a strategy, compiled: a policy is data (numbers, matrices) that one function evaluates.

There are four rules:

- FIXED takes the candidates of a schedule in order, the last one for all later levels.
- DIRECTION is Beamer's (2012): bottom-up once the frontier's edges are more than at the last level
  and exceed 1 / alpha of the unvisited ones, top-down again once the frontier has fewer than
  1 / beta of the vertices. At the end of a tail few edges are unvisited, but the frontier does not
  grow. The paper also asks that it shrinks before the return.
- SPEEDS is Zhang et al.'s (2018): bottom-up at each level whose frontier's edges exceed 1 / alpha
  of the unvisited ones. Alpha comes from measured speeds (`ZhangSelector`).
- MODEL takes the candidate of least predicted seconds. With `caution`, early in a search on the
  host, it takes bottom-up only if that is clearly faster.

A model's predicted seconds are a matrix of weights times the columns of the level (columns.py).
The columns have the order of schema.COLUMNS and are explained in trace.py.

device_policy.py has the form of a policy on a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import (
    NUM_COLUMNS,
    NUM_MIGRATION_COLUMNS,
    dot,
    fill_columns,
    is_dense_push_level,
    share_left,
    size_of_level,
    transition_seconds,
)
from hetero_bfs.scheduling.schema import (
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    UNVISITED_EDGES,
    grows,
    has_queue,
    row_of,
    was_bottom_up,
)
from hetero_bfs.scheduling.strategies import STRATEGIES, Strategy
from hetero_bfs.support.compiling import kernel

MOST_CANDIDATES = 8
MOST_COST_TO_GO_ROWS = 64  # rows of `Policy.cost_to_go`
FIXED, DIRECTION, MODEL, SPEEDS = 0, 1, 2, 3
ROW, VARIANT, DENSE_PUSHES = 0, 1, 2  # columns of `Policy.traits`
_TURN = 15.0
LEAST_SECONDS = 1e-30  # least divisor
CAUTION = 1.4
"""Factor by which bottom-up on the host must be predicted faster early in a search. Early means:
the search is not on the device, and the frontier has less than 1 / 15 of the unvisited edges, where
Beamer's rule stays top-down. Predictions are worst for short neighbour lists in a large graph."""
LEAST_ALIKE, MOST_ALIKE = 1.2, 2.0
"""Bounds of the ratio of two levels up to which a model's choice is kept: the lower bound for a
close choice, the upper bound for a clear choice."""


class Policy(NamedTuple):
    """A selector as data; candidates are numbered in the selector's order.

    rule : int64; FIXED, DIRECTION, SPEEDS or MODEL
    schedule : int64 (levels,); FIXED: candidates by level. DIRECTION, SPEEDS: the candidates for
        top-down and for bottom-up
    alpha, beta : float64; DIRECTION's thresholds; SPEEDS has only alpha
    weights : float64 (2, candidates, NUM_COLUMNS); MODEL: seconds per unit of each column, of SMALL
        and of LARGE levels
    migrations : float64 (3, places, NUM_MIGRATION_COLUMNS); MODEL: weights of starting at a place,
        switching to it, converting a bitmap there
    cost_to_go : float64 (rows, 1 + candidates); MODEL: expected cost of the remaining levels after
        a level by each candidate (rehearsal.py). The first column is the `share_left` of that
        level. May be empty
    caution : float64; MODEL: see CAUTION; 1 for none
    places, top_down : int64, bool (candidates,); place and direction of each candidate
    traits : int64 (candidates, 3); ROW, VARIANT and DENSE_PUSHES: the row in STRATEGIES, and two
        fields of `Strategy`. They are one array, since passing each array from Python to compiled
        code takes time
    work : float64 (NUM_COLUMNS,); scratch
    """

    rule: Any
    schedule: Any
    alpha: Any
    beta: Any
    weights: Any
    migrations: Any
    cost_to_go: Any
    caution: Any
    places: Any
    top_down: Any
    traits: Any
    work: Any


def num_places(candidates: Sequence[Strategy]) -> int:
    return 1 + max((schema.DEVICE, *(s.place for s in candidates)))


def make_policy(rule: int, candidates: Sequence[Strategy], **fields: Any) -> Policy:
    """Return a policy for these candidates; fields that its rule does not use are optional."""
    count = len(candidates)
    given: dict[str, Any] = {
        "schedule": [],
        "alpha": 0.0,
        "beta": 0.0,
        "weights": np.zeros((2, count, NUM_COLUMNS)),
        "migrations": np.zeros((3, num_places(candidates), NUM_MIGRATION_COLUMNS)),
        "cost_to_go": np.zeros((0, 1 + count)),
        "caution": 1.0,
        "work": np.zeros(NUM_COLUMNS),
        **fields,
    }
    given["schedule"] = np.array(given["schedule"], np.int64)
    numbers = {name: row for row, name in enumerate(STRATEGIES)}
    return Policy(
        rule=rule,
        places=np.array([s.place for s in candidates]),
        top_down=np.array([s.direction == "top-down" for s in candidates]),
        traits=np.array(
            [(numbers[s.row], s.variant, s.dense_pushes) for s in candidates], np.int64
        ),
        **given,
    )


def fixed_policy(schedule: Sequence[int], candidates: Sequence[Strategy]) -> Policy:
    return make_policy(FIXED, candidates, schedule=schedule)


_row_of = njit(inline="always")(row_of)
_has_queue = njit(inline="always")(has_queue)
_was_bottom_up = njit(inline="always")(was_bottom_up)
_grows = njit(inline="always")(grows)


@kernel(counted=False, inlined=True, inner=True)
def _find_row(cost_to_go, left):
    """Return the row of `cost_to_go` whose first item is nearest to `left`, as a ratio."""
    low, high = 0, cost_to_go.shape[0]
    while low < high:
        middle = (low + high) // 2
        if cost_to_go[middle, 0] >= left:
            low = middle + 1
        else:
            high = middle
    if low == cost_to_go.shape[0] or (
        low and left * left >= cost_to_go[low - 1, 0] * cost_to_go[low, 0]
    ):
        return low - 1
    return low


@njit(inline="always")
def _is_early(state):
    is_small = _TURN * state[FRONTIER_EDGES] < state[UNVISITED_EDGES]
    return state[schema.PLACE] < schema.DEVICE and is_small


@njit(inline="always")
def _care(policy, early, s):
    careful = early and policy.places[s] == schema.HOST and not policy.top_down[s]
    return policy.caution if careful else 1.0


@njit(inline="always")
def steps_of(num_vertices, frontier_edges, unvisited_vertices):
    """Return on which side of each threshold where predictions jump a level is, as bits."""
    dense_push = is_dense_push_level(num_vertices, frontier_edges, unvisited_vertices)
    return (1 if dense_push else 0) + 2 * size_of_level(frontier_edges)


@njit(inline="always")
def _steps(num_vertices, state):
    return steps_of(num_vertices, state[FRONTIER_EDGES], state[schema.UNVISITED_VERTICES])


@kernel(counted=False, inlined=True, inner=True)
def _choose_by_model(policy, num_vertices, num_edges, state, predicted, total):
    columns = policy.work
    fill_columns(columns, num_vertices, state)
    weights = policy.weights[size_of_level(state[FRONTIER_EDGES])]
    kind = int(state[schema.PLACE])
    cost_to_go = policy.cost_to_go
    row = -1
    if cost_to_go.shape[0]:
        row = _find_row(cost_to_go, share_left(state[UNVISITED_EDGES], num_edges))
    early = _is_early(state)
    is_queue = _has_queue(state)
    best = 0
    for s in range(policy.places.size):
        seconds = dot(weights[s], columns)
        seconds += transition_seconds(policy, columns, kind, is_queue, s)
        predicted[s] = seconds
        total[s] = _care(policy, early, s) * seconds
        if row >= 0:
            total[s] += cost_to_go[row, 1 + s]
        if total[s] < total[best]:
            best = s
    return best


@njit(inline="always")
def choose_direction(alpha, beta, num_vertices, state):
    """Return 0 for top-down, 1 for bottom-up."""
    if _was_bottom_up(state):
        return 0 if state[FRONTIER_VERTICES] * beta < num_vertices else 1
    rises = _grows(state) and state[FRONTIER_EDGES] * alpha > state[UNVISITED_EDGES]
    return 1 if rises else 0


@njit(inline="always")
def is_faster_bottom_up(alpha, state):
    """Return 1 if SPEEDS takes bottom-up, else 0."""
    return 1 if state[FRONTIER_EDGES] * alpha > state[UNVISITED_EDGES] else 0


@njit(inline="always")
def scheduled(policy, level):
    """Return the number of the candidate that a schedule has for a level."""
    return policy.schedule[min(level, policy.schedule.size - 1)]


@kernel(counted=False, inlined=True)
def choose(policy, num_vertices, num_edges, state, predicted, total):
    """Return the number of the candidate for the level that `state` describes (schema.py).

    A model fills `predicted` and `total`, float64 (candidates,): the predicted seconds of each
    candidate, and the deciding seconds, with caution and cost-to-go. Other rules do not change
    them.
    """
    if policy.rule == FIXED:
        return scheduled(policy, int(state[schema.LEVEL]))
    if policy.rule == DIRECTION:
        return policy.schedule[choose_direction(policy.alpha, policy.beta, num_vertices, state)]
    if policy.rule == SPEEDS:
        return policy.schedule[is_faster_bottom_up(policy.alpha, state)]
    return _choose_by_model(policy, num_vertices, num_edges, state, predicted, total)


@kernel(counted=False, inlined=True, inner=True)
def stays_within(policy, state, predicted, total, best):
    """Return the ratio of two levels up to which the choice for one also suits the other.

    If all columns are within a ratio r, so are all predictions. Let the lead be the difference of
    another candidate's total and the best one's. The best candidate stays the best while (r - 1)
    times the sum of both predictions is less than the lead. The cost-to-go is taken as equal.
    """
    early = _is_early(state)
    mine = _care(policy, early, best) * predicted[best]
    lead = MOST_ALIKE - 1.0
    for s in range(total.size):
        if s != best:
            both = mine + _care(policy, early, s) * predicted[s]
            lead = min(lead, (total[s] - total[best]) / max(both, LEAST_SECONDS))
    return max(1.0 + lead, LEAST_ALIKE)


@njit(inline="always")
def is_near(now, then, ratio):
    return now <= ratio * then and then <= ratio * now


@njit(inline="always")
def are_near(level, other, ratio):
    """Tell whether two levels are alike in frontier vertices, frontier and unvisited edges."""
    return (
        is_near(level[FRONTIER_VERTICES], other[FRONTIER_VERTICES], ratio)
        and is_near(level[FRONTIER_EDGES], other[FRONTIER_EDGES], ratio)
        and is_near(level[UNVISITED_EDGES], other[UNVISITED_EDGES], ratio)
    )


@kernel(counted=False, inlined=True, inner=True)
def _is_alike(num_vertices, state, record):
    """Tell whether a model would very likely repeat the choice of a record's level.

    Levels of a high-diameter graph take a microsecond or two. Evaluating a model takes a tenth of a
    microsecond.
    """
    return (
        state[schema.PLACE] == record[schema.PLACE]
        and state[schema.REPRESENTATION] == record[schema.REPRESENTATION]
        and are_near(state, record, record[schema.WITHIN])
        and _is_early(state) == _is_early(record)
        and _steps(num_vertices, state) == _steps(num_vertices, record)
    )


@kernel(counted=False)
def choose_level(policy, interval, num_vertices, num_edges, state, records):
    """Choose the next level's candidate, begin the level's record, and set `state[CHOSEN]`.

    Return whether a model was evaluated, which takes as long as a small level.

    A model's choice is kept while levels are alike. A clear choice is kept longer. The selector
    chooses at most every `interval` levels. `state` is float64 (STATE_SIZE,). Of `records`, float64
    (rows, record_width), the next level's row is written and earlier rows are read.
    """
    row = _row_of(state)
    record = records[row]
    candidates = policy.places.size
    for column in range(schema.RECORD_STATE):
        record[column] = state[column]
    for column in range(schema.PREDICTED, record.size):
        record[column] = np.nan
    before = int(records[row - 1, schema.CHOSEN_AT]) if row else 0
    stays = int(state[schema.LEVEL]) % interval != 0
    if row and policy.rule == MODEL:
        stays = stays or _is_alike(num_vertices, state, records[before])
    if not stays:
        record[schema.CHOSEN_AT] = row
        predicted = record[schema.PREDICTED : schema.PREDICTED + candidates]
        total = record[schema.PREDICTED + candidates :]
        chosen = choose(policy, num_vertices, num_edges, state, predicted, total)
        if policy.rule == MODEL:
            record[schema.WITHIN] = stays_within(policy, state, predicted, total, chosen)
    else:
        record[schema.CHOSEN_AT] = before
        chosen = int(records[before, schema.STRATEGY])
    record[schema.STRATEGY] = state[schema.CHOSEN] = chosen
    record[schema.TRANSFER_SECONDS] = record[schema.SELECT_SECONDS] = 0.0
    record[schema.FURTHER_LEVELS] = 0.0
    return not stays and policy.rule == MODEL


class Alike(NamedTuple):
    """Bounds of the levels for which a top-down choice at a tiny level stays as it is.

    `vertices` and `edges` of the frontier are at most these, and at least these over `ratio`
    squared. At least `unvisited` edges are unvisited, and more than `share` times the frontier's.
    """

    vertices: Any
    edges: Any
    ratio: Any
    unvisited: Any
    share: Any


@kernel(counted=False, inlined=True, inner=True)
def alike_levels(policy, state, records):
    """Return the bounds of levels after the one that `state` describes; its choice is recorded.

    The bounds are `_is_alike`'s and the rule's. They admit no level where they would be
    complicated.
    """
    anchor = records[int(records[_row_of(state), schema.CHOSEN_AT])]
    half = 0.5 * state[UNVISITED_EDGES]  # so that one prediction suits all levels of a record
    if policy.rule == MODEL:
        ratio = anchor[schema.WITHIN]
        vertices, edges = ratio * anchor[FRONTIER_VERTICES], ratio * anchor[FRONTIER_EDGES]
        unvisited = max(half, anchor[UNVISITED_EDGES] / ratio)
        simple = _is_early(anchor) and anchor[schema.REPRESENTATION] == schema.QUEUE
        return Alike(vertices, edges, ratio, unvisited, _TURN if simple else np.inf)
    share = policy.alpha if policy.rule != FIXED else 0.0
    tiny = float(schema.TINY_EDGES)
    return Alike(tiny, tiny, tiny, half, share)


@njit(inline="always")
def is_alike(bounds, vertices, edges, unvisited):
    """Tell whether a level is within bounds (`alike_levels`)."""
    squared = bounds.ratio * bounds.ratio
    return (
        vertices <= bounds.vertices
        and edges <= bounds.edges
        and squared * vertices >= bounds.vertices
        and squared * edges >= bounds.edges
        and unvisited >= bounds.unvisited
        and unvisited > bounds.share * edges
    )
