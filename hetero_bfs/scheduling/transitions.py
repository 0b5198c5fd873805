"""Transitions between two levels: starting, switching devices, converting a frontier; their cost.

Only `migrations_between` lists the migrations of a transition, and only `transition_seconds`
predicts its seconds. policy.cl does the same for searches on the device. Selectors, the cost-to-go
table, thresholds and corrections use the compiled functions; training uses `migrations_of`.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from hetero_bfs.scheduling.schema import DEVICE, HOST, MIGRATION_COLUMNS, NOWHERE
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, DeviceKind, Strategy

NUM_MIGRATION_COLUMNS = len(MIGRATION_COLUMNS)
START, SWITCH, CONVERT = 0, 1, 2  # first index of `Policy.migrations`


@njit(inline="always")
def leaves_queue(top_down, dense_pushes, dense_push):
    """Tell whether a strategy leaves a queue to the next level; see `Strategy`."""
    return top_down and not (dense_pushes and dense_push)


@njit(inline="always")
def migrations_between(kind, is_queue, there, top_down):
    """Return the places of the start, the conversion and the switch, and the place between.

    Each is -1 if it is not needed. A search goes from one device to another through the host.
    `kind` is the frontier's place or NOWHERE; `there` and `top_down` belong to the next strategy.
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
    """Return the predicted seconds of START, SWITCH or CONVERT, on or to a device."""
    weights = policy.migrations[migration, kind]
    total = 0.0
    for i in range(NUM_MIGRATION_COLUMNS):
        total += weights[i] * columns[i]
    return total


@njit(inline="always")
def transition_seconds(policy, columns, kind, is_queue, s):
    """Return the predicted seconds from a frontier (`migrations_between`) to candidate `s`."""
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


_NAMES: dict[int, DeviceKind | None] = {
    HOST: DEVICE_KINDS[HOST],
    DEVICE: DEVICE_KINDS[DEVICE],
    -1: None,
}


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
    return Migrations(*(_NAMES[place] for place in found[:3]))
