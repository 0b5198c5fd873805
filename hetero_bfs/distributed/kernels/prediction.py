"""A rank's prediction of the next level, in both directions; decision.py describes it."""

from __future__ import annotations

from hetero_bfs.selection.columns import expectations, fill_columns
from hetero_bfs.selection.schema import (
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    UNVISITED_EDGES,
    UNVISITED_VERTICES,
)
from hetero_bfs.support.compiling import kernel

(EDGES, VERTICES, UNVISITED, UNVISITED_LEFT, PUSH_SECONDS, PULL_SECONDS, TOLD_BYTES) = range(7)
"""What the ranks reduce: edges and vertices of the frontier, unvisited vertices and their edges,
predicted seconds, and bytes for other ranks. Each is the most of any rank."""

NUM_REDUCED = 7
PUSH, PULL, DEVICE_PULL = range(3)
"""Levels that a rank predicts: a push, a pull, and a pull on the rank's OpenCL device."""

_SECONDS_PER_EDGE, _SECONDS_PER_FOUND = 2e-9, 8e-9  # of a push
_SECONDS_PER_SCAN, _SECONDS_PER_WORD = 1.5e-9, 2e-9  # of a pull, without a model
_WORD_BYTES = 8


@kernel(counted=False)
def predict(state, weights, floor, others_share, factors, columns, raw, reduced):
    """Fill `raw`, float64 (3,): seconds of a push and of pulls; and `reduced`, corrected.

    `weights`, float64 (2, NUM_COLUMNS), are speed models' for a pull on the host and on the device;
    all 0 without a model. A pull on the device takes `floor` seconds more, inf without a device.
    `others_share` is the share of vertices that are other ranks'. `columns` is scratch.
    """
    edges, found = state[FRONTIER_EDGES], state[FRONTIER_VERTICES]
    unvisited, left = state[UNVISITED_VERTICES], state[UNVISITED_EDGES]
    vertices = unvisited + found
    raw[:] = _SECONDS_PER_WORD * vertices / 32.0
    told = 0.0
    if found > 0.0 and unvisited > 0.0:
        fill_columns(columns, vertices, state)
        scanned, expected = expectations(state)
        told = expected * others_share
        raw[PUSH] = _SECONDS_PER_EDGE * edges + _SECONDS_PER_FOUND * expected
        for place in range(weights.shape[0]):
            predicted = 0.0
            for i in range(columns.size):
                predicted += weights[place, i] * columns[i]
            way = PULL + place
            raw[way] = predicted if predicted > 0.0 else raw[way] + _SECONDS_PER_SCAN * scanned
    reduced[EDGES], reduced[VERTICES] = edges, found
    reduced[UNVISITED], reduced[UNVISITED_LEFT] = unvisited, left
    reduced[PUSH_SECONDS] = factors[PUSH] * raw[PUSH]
    on_device = floor + factors[DEVICE_PULL] * raw[DEVICE_PULL]
    reduced[PULL_SECONDS] = min(factors[PULL] * raw[PULL], on_device)
    reduced[TOLD_BYTES] = _WORD_BYTES * told
