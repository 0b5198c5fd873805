"""The input of a speed model before a level runs, compiled: its columns, and the transition to it.

A transition starts a search, switches devices, or converts a frontier. Only `migrations_between`
lists the migrations of a transition, and only `transition_seconds` predicts its seconds. A device
has the same functions (policy.py, policy.cl). Training uses `migrations_of`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numba import njit

from hetero_bfs.scheduling.schema import (
    COLUMNS,
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    HOST,
    LEVEL,
    MIGRATION_COLUMNS,
    NOWHERE,
    PREVIOUS_EDGES,
    UNVISITED_EDGES,
    UNVISITED_VERTICES,
    is_dense_push,
    size_of,
)
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind, Strategy
from hetero_bfs.support.compiling import kernel

NUM_COLUMNS = len(COLUMNS)
NUM_MIGRATION_COLUMNS = len(MIGRATION_COLUMNS)
START, SWITCH, CONVERT = 0, 1, 2  # first index of `Policy.migrations`
# Threads that share so few lists follow parts of one, and write to places of their own.
FEW_LISTS = 32.0
MIXED = 0.8  # a graph with uneven degrees and no clusters finds this share of the expected vertices
LARGEST_SHARE = 0.999999
WORD_BITS = 32.0
SMALL = 0.01  # below this the first terms of the series suffice

is_dense_push_level = njit(inline="always")(is_dense_push)
size_of_level = njit(inline="always")(size_of)


@njit(inline="always")
def dot(weights, columns):
    total = 0.0
    for i in range(NUM_COLUMNS):
        total += weights[i] * columns[i]
    return total


@njit(inline="always")
def share_left(unvisited_edges, num_edges):
    """Return a search's progress: unvisited over visited edges, which falls at every level.

    As a ratio it separates the first levels as well as the last ones.
    """
    return unvisited_edges / max(num_edges - unvisited_edges, 1.0)


@njit(inline="always")
def found_share(share, mean_degree):
    """Return the probability that a vertex of this degree has a neighbour in a set.

    `share` is the set's share of all edge ends. The result, 1 - (1 - share)**mean_degree, has six
    digits even for the smallest shares. `expm1` and `log1p` would take longer than the rest of the
    prediction.
    """
    p = min(share, LARGEST_SHARE)
    if p < SMALL:
        logarithm = -p * (1.0 + p * (0.5 + p * (1.0 / 3.0 + p * 0.25)))
    else:
        logarithm = math.log(1.0 - p)
    x = mean_degree * logarithm
    return -x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x / 24.0))) if x > -SMALL else 1.0 - math.exp(x)


@njit(inline="always")
def unsteadiness(edges, before):
    """Return 0 if a frontier has as many edges as the one before; near 1 if far more or fewer.

    A top-down level takes longer if the frontier grows or shrinks fast, as in a core. Along chains
    and on grids it does not.
    """
    return 1.0 - min(edges, before) / max(edges, before, 1.0)


@njit(inline="always")
def scattered_finds(found, frontier):
    """Return the vertices that are found, scaled down if the frontier has few vertices.

    Threads that follow many lists write to the same cache lines, which then move from core to core.
    """
    return found * frontier / (frontier + FEW_LISTS)


@njit(inline="always")
def opened_lists(unvisited, examined):
    """Return how many vertices bottom-up is expected to look at again, after their first neighbour.

    Each look finds a visited neighbour with the same probability.
    """
    return unvisited * (1.0 - unvisited / max(examined, unvisited, 1.0))


@kernel(counted=False, inlined=True)
def expectations(state):
    """Return expected numbers: edges that bottom-up scans, and vertices that the level finds.

    `LevelFeatures.expected_examined` explains them.
    """
    unvisited, edges = state[UNVISITED_VERTICES], state[UNVISITED_EDGES]
    found, frontier = state[FRONTIER_VERTICES], state[FRONTIER_EDGES]
    if unvisited <= 0.0 or edges <= 0.0:
        return 0.0, 0.0
    left_before = edges + frontier
    came = state[PREVIOUS_EDGES] / (left_before + state[PREVIOUS_EDGES])
    free = max(frontier - came * left_before, 0.0)
    share = free / (free + edges)
    mixed = 1.0
    if state[LEVEL] > 0:
        before = unvisited + found
        found_if_mixed = before * found_share(came, left_before / before)
        if found < MIXED * found_if_mixed:
            mixed = found / (MIXED * found_if_mixed)
    reached_share = found_share(share, edges / unvisited)
    if reached_share <= 0.0:
        return edges, 0.0
    reached = unvisited * reached_share
    by_chance = min(reached / share, edges)
    at_once = min(reached + (1.0 - reached_share) * edges, by_chance)
    first = min(max(frontier * unvisited / (found * edges) - 1.0, 0.0), 1.0)
    near = by_chance + first * (at_once - by_chance)
    return mixed * near + (1.0 - mixed) * edges, min(mixed * reached, frontier)


@kernel(counted=False, inlined=True, inner=True)
def fill_columns(columns, num_vertices, state):
    """Fill a level's columns, float64 (NUM_COLUMNS,), in the order of schema.COLUMNS."""
    columns[0] = 1.0
    columns[1] = num_vertices
    columns[2] = state[FRONTIER_VERTICES]
    columns[3] = state[FRONTIER_EDGES]
    columns[4] = state[UNVISITED_VERTICES]
    columns[5] = state[UNVISITED_EDGES]
    columns[6], columns[7] = expectations(state)
    columns[8] = columns[6] / max(columns[4], 1.0)
    dense_push = is_dense_push_level(num_vertices, state[FRONTIER_EDGES], state[UNVISITED_VERTICES])
    columns[9] = 0.0 if dense_push else columns[7]
    columns[10] = num_vertices if dense_push else 0.0
    columns[11] = unsteadiness(state[FRONTIER_EDGES], state[PREVIOUS_EDGES])
    columns[12] = scattered_finds(columns[7], columns[2])
    columns[13] = min(num_vertices / WORD_BITS, columns[4])
    columns[14] = opened_lists(columns[4], columns[6])


@njit(inline="always")
def leaves_queue(top_down, dense_pushes, dense_push):
    """Tell whether a strategy leaves a queue to the next level; see `Strategy`."""
    return top_down and not (dense_pushes and dense_push)


@njit(inline="always")
def migrations_between(kind, is_queue, there, top_down):
    """Return the place of a start, that of a conversion, and the ends of two switches.

    Each is -1 if it is not needed. The second switch is that to the host, through which a search
    goes from one device to another. `kind` is the frontier's place or NOWHERE; `there` and
    `top_down` belong to the next strategy.
    """
    start, convert, switch, through = -1, -1, -1, -1
    if kind < 0:
        start = there
    else:
        if top_down and not is_queue:
            convert = kind
        if there != kind:
            switch = there
            if kind != HOST and there != HOST:
                through = HOST
    return start, convert, switch, through


@njit(inline="always")
def migration_seconds(policy, migration, kind, columns):
    weights = policy.migrations[migration, kind]
    total = 0.0
    for i in range(NUM_MIGRATION_COLUMNS):
        total += weights[i] * columns[i]
    return total


@njit(inline="always")
def transition_seconds(policy, columns, kind, is_queue, s):
    there, top_down = policy.places[s], policy.top_down[s]
    start, convert, switch, through = migrations_between(kind, is_queue, there, top_down)
    seconds = 0.0
    if start >= 0:
        seconds += migration_seconds(policy, START, start, columns)
    if convert >= 0:
        seconds += migration_seconds(policy, CONVERT, convert, columns)
    if switch >= 0:
        seconds += migration_seconds(policy, SWITCH, switch, columns)
    if through >= 0:
        seconds += migration_seconds(policy, SWITCH, through, columns)
    return seconds


class Migrations(NamedTuple):
    """The devices of `migrations_between` by name, None if a migration is not needed."""

    start: DeviceKind | None
    convert: DeviceKind | None
    switch: DeviceKind | None


def migrations_of(last: Strategy | None, strategy: Strategy, dense_push: bool) -> Migrations:
    """Return the migrations before a level, between the host and the first device.

    `last` is the strategy of the previous level, None before the first level. `dense_push` says
    whether the previous level met `schema.is_dense_push`.
    """
    kind, is_queue = NOWHERE, True
    if last is not None:
        kind = DEVICE_KINDS.index(last.device_kind)
        is_queue = leaves_queue.py_func(last.direction == "top-down", last.dense_pushes, dense_push)
    there = DEVICE_KINDS.index(strategy.device_kind)
    found = migrations_between.py_func(kind, is_queue, there, strategy.direction == "top-down")
    return Migrations(*(None if place < 0 else DEVICE_KINDS[place] for place in found[:3]))
