"""A rank's prediction of the next level, in both directions; rank_decision.py describes it."""

from __future__ import annotations

from hetero_bfs.scheduling.columns import expectations, fill_columns, size_of_level
from hetero_bfs.scheduling.schema import (
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    HOST,
    PLACE,
    UNVISITED_EDGES,
    UNVISITED_VERTICES,
)
from hetero_bfs.support.compiling import kernel

(EDGES, VERTICES, UNVISITED, UNVISITED_LEFT, PUSH_SECONDS, PULL_SECONDS, SENT_BYTES) = range(7)
"""Numbers that the ranks reduce by maximum: edges and vertices of the frontier, unvisited vertices
and their edges, predicted seconds, and bytes for other ranks."""

NUM_REDUCED = 7
PUSH, PULL, DEVICE_PUSH, DEVICE_PULL = range(4)
"""Predicted levels: a push and a pull on the host, and both on the rank's OpenCL device."""

NUM_PREDICTED = 4
MOVE_GAIN = 2.0
"""A search moves to the device for a level that takes less than 1 / 2 there, and then stays."""

_SECONDS_PER_EDGE, _SECONDS_PER_FOUND = 2e-9, 8e-9  # a push without a model
_SECONDS_PER_SCAN, _SECONDS_PER_WORD = 1.5e-9, 2e-9  # a pull without a model
_WORD_BYTES = 8


@kernel(counted=False)
def predict(
    state, weights, floors, move, trying, others_share, factors, columns, raw, on_device, reduced
):
    """Predict a push and a pull, each at the place where the rank would run it.

    Parameters
    ----------
    state : float64 (STATE_SIZE,)
    weights : float64 (2, NUM_PREDICTED, NUM_COLUMNS)
        Of speed models, at SMALL and at LARGE levels; all 0 without one.
    floors : float64 (2,)
        Constant seconds of a push and of a pull on the device; inf without a device.
    move : float
        Seconds that the move to the device takes.
    trying : bool
        Whether to take the device whatever its model predicts.
    others_share : float
        Share of the vertices that other ranks own.
    factors : float64 (NUM_PREDICTED,)
        Corrections of the predictions.
    columns : float64 (NUM_COLUMNS,)
        Scratch.
    raw : float64 (NUM_PREDICTED,)
        Filled with predictions without corrections and floors.
    on_device : bool (2,)
        Filled with the place of a push and of a pull.
    reduced : float64 (NUM_REDUCED,)
        Filled.
    """
    edges, found = state[FRONTIER_EDGES], state[FRONTIER_VERTICES]
    unvisited, left = state[UNVISITED_VERTICES], state[UNVISITED_EDGES]
    vertices = unvisited + found
    scanned = expected = 0.0
    columns[:] = 0.0
    if found > 0.0 and unvisited > 0.0:
        fill_columns(columns, vertices, state)
        scanned, expected = expectations(state)
    size = size_of_level(edges)
    for which in range(NUM_PREDICTED):
        predicted = 0.0
        for i in range(columns.size):
            predicted += weights[size, which, i] * columns[i]
        if predicted <= 0.0 and which % 2 == PUSH:
            predicted = _SECONDS_PER_EDGE * edges + _SECONDS_PER_FOUND * expected
        elif predicted <= 0.0:
            predicted = _SECONDS_PER_WORD * vertices / 32.0 + _SECONDS_PER_SCAN * scanned
        raw[which] = predicted
    reduced[EDGES], reduced[VERTICES] = edges, found
    reduced[UNVISITED], reduced[UNVISITED_LEFT] = unvisited, left
    for which in range(2):
        here = factors[which] * raw[which]
        there = floors[which] + factors[DEVICE_PUSH + which] * raw[DEVICE_PUSH + which]
        if state[PLACE] != HOST:
            on_device[which] = True
        else:
            there += move
            least = floors[which] + move if trying else MOVE_GAIN * there
            on_device[which] = least < here
        reduced[PUSH_SECONDS + which] = there if on_device[which] else here
    reduced[SENT_BYTES] = _WORD_BYTES * expected * others_share
