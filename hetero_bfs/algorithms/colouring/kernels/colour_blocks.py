"""The loop of a colouring on the host: blocks of ranks, one after the other; see greedy.py."""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.colouring.kernels.greedy import (
    CLEAR,
    FIRST,
    LIMIT,
    MARK,
    NOTE_WORDS,
    PUBLISH,
    STRIDE,
    colour_in_turn,
    colour_waiting,
)
from hetero_bfs.devices.cpu.sharing import even_size, share
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds

STRATEGY, VERTICES, EDGES, SECONDS = range(4)
"""Columns of a record; each block has a row."""

RECORD_WIDTH = 4
GREEDY, SHARED = range(2)

_LEAST_VERTICES = 1 << 12  # vertices of a chunk when arrays are cleared
_LEAST_PUBLISHED = 1 << 15
_LEAST_MARKED = 16  # vertices of a chunk that read neighbours
_CHUNKS_PER_THREAD = 8

_FIRST_BLOCK = 512
_GROWTH = 8  # a shared block has at most 1 / 8 of the number of vertices before it
_MOST_WAITED = 4  # a block is shared if the last one waited for at most 1 / 4 of its edges
_NOTED_VERTICES = 1000  # vertices whose notes always fit, whatever their degrees are

MOST_NOTES = _NOTED_VERTICES * (_NOTED_VERTICES + NOTE_WORDS)


def most_chunks(threads: int) -> int:
    """Return the most chunks of a block, each of which has its own notes."""
    return _CHUNKS_PER_THREAD * threads


@njit(inline="always")
def _next_block(arrays, begin, n):
    """Return the size of the next shared block, and the room for the notes of one vertex.

    A vertex waits for at most as many vertices as it has neighbours. Later degrees are smaller.
    """
    u = arrays.order[begin]
    degree = arrays.indptr[u + 1] - arrays.indptr[u]
    room = max(MOST_NOTES // (degree + NOTE_WORDS), np.int64(_NOTED_VERTICES))
    size = min(max(begin // _GROWTH, 1), room, n - begin)
    return size, min(degree, size) + NOTE_WORDS


@njit(inline="always")
def _colour_shared(control, arrays, begin, size, stride, limit):
    """Colour a block; return entries read, the neighbours waited for, and the new limit."""
    for i in range(begin, begin + size):
        limit = max(limit, np.int64(arrays.order[i]))
    control[LIMIT], control[FIRST], control[STRIDE] = limit, begin, stride
    chunk = max(-(-size // (_CHUNKS_PER_THREAD * arrays.threads)), np.int64(_LEAST_MARKED))
    scanned, waited, _ = share(control, arrays, MARK, size, chunk)
    share(control, arrays, PUBLISH, size, max(chunk, _LEAST_PUBLISHED))
    if waited:
        for number in range(-(-size // chunk)):
            at = number * chunk * stride
            colour_waiting(arrays, at, at + arrays.noted[number])
    return scanned, waited, limit


@kernel(counted=False)
def colour_all(control, arrays, records):
    """Colour all vertices; return the number of records filled.

    `control` and `arrays` are the thread pool's words; see greedy.py. `records` is float64 (any,
    RECORD_WIDTH); the last row sums up all that do not fit.
    """
    n = np.int64(arrays.order.size)
    began = clock_seconds()
    share(control, arrays, CLEAR, n, even_size(arrays, n, _LEAST_VERTICES))
    begin, limit, rows = np.int64(0), np.int64(0), 0
    is_pool, is_shared = arrays.threads > 1, False
    size = min(n, np.int64(_FIRST_BLOCK)) if is_pool else n
    while begin < n:
        if is_shared:
            size, stride = _next_block(arrays, begin, n)
            scanned, waited, limit = _colour_shared(control, arrays, begin, size, stride, limit)
        else:
            end, waited = begin + size, np.int64(0)
            scanned, limit = colour_in_turn(
                arrays.indptr, arrays.indices, arrays.order, arrays.colour, begin, end, limit
            )
        ended = clock_seconds()
        strategy = SHARED if is_shared else GREEDY
        rows = _record(records, rows, strategy, size, scanned, ended - began)
        began = ended
        begin += size
        is_shared = is_pool and _MOST_WAITED * waited <= scanned
        size = n - begin
    return rows


@njit(inline="always")
def _record(records, rows, strategy, vertices, edges, seconds):
    """Fill the next record, or add to the last one if all are full; return the number filled."""
    row = min(rows, records.shape[0] - 1)
    record = records[row]
    if row == rows:
        record[:] = 0.0
        record[STRATEGY] = strategy
    record[VERTICES] += vertices
    record[EDGES] += edges
    record[SECONDS] += seconds
    return row + 1
