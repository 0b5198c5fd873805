"""The loop of a shortest-path search on the host: windows of distances; relax.py has its phases."""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.sssp.kernels.relax import (
    ACTIVE,
    END,
    FIND_UNSETTLED,
    INFINITY,
    KEPT,
    LIMIT,
    OVERFLOW,
    PULL,
    QUEUE,
    QUEUED,
    RELAX_ACTIVE,
    RELAX_QUEUE,
    RESET,
    ROUND,
    SELECT,
    SOURCE,
    START,
)
from hetero_bfs.algorithms.sssp.weighted_lists import FULL, PREFIX, PULL_ONCE
from hetero_bfs.devices.cpu.blocks import close_list, push_item
from hetero_bfs.devices.cpu.sharing import even_size, share
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds

STARTS_AT, STRATEGY, VERTICES, EDGES, STEPS, SECONDS = range(6)
"""Columns of a record: where the window starts, the strategy, vertices, edges, queues, seconds."""

RECORD_WIDTH = 6

_LEAST_VERTICES = 1 << 12  # of a chunk of single entries


@njit(inline="always")
def _forget_lowest(arrays):
    for thread in range(arrays.lowest.shape[0]):
        arrays.lowest[thread, 0] = arrays.window[INFINITY]


@njit(inline="always")
def _open_window(arrays, start, width, is_full):
    """Set the next window; one that the type cannot tell from nothing takes all distances."""
    window = arrays.window
    infinity = window[INFINITY]
    end = window.dtype.type(start + width) if start < infinity - width else infinity
    if end <= start:
        end = infinity
    window[START] = start
    window[END] = end
    window[LIMIT] = infinity if is_full else end
    _forget_lowest(arrays)


@njit(inline="always")
def _least_waiting(arrays):
    least = arrays.window[INFINITY]
    for thread in range(arrays.lowest.shape[0]):
        least = min(least, arrays.lowest[thread, 0])
    return least


@njit(inline="always")
def _next_round(control, arrays, task, blocks):
    """Do a phase over blocks that queues vertices, as a round of its own."""
    control[ROUND] += 1
    return share(control, arrays, task, blocks, 1)


@njit(inline="always")
def _relax_window(control, arrays, blocks, vertices):
    """Relax queues until no distance falls within the window any more.

    Returns vertices and edges relaxed, edges left and met first, and how many queues there were.
    """
    relaxed, scanned, left, fresh, steps = 0, np.int64(0), np.int64(0), np.int64(0), 0
    while blocks:
        more = _next_round(control, arrays, RELAX_QUEUE, blocks)
        relaxed += vertices
        scanned += more[0]
        left += more[1]
        fresh += more[2]
        steps += 1
        control[QUEUE] = 1 - control[QUEUE]
        blocks, vertices = close_list(arrays, QUEUED, arrays.queue_blocks)
    return relaxed, scanned, left, fresh, steps


@njit(inline="always")
def _list_unsettled(control, arrays, n):
    """List the unsettled vertices instead of the active ones; return blocks and vertices."""
    close_list(arrays, KEPT, arrays.active_blocks)
    share(control, arrays, FIND_UNSETTLED, n, even_size(arrays, n, _LEAST_VERTICES))
    control[ACTIVE] = 1 - control[ACTIVE]
    return close_list(arrays, KEPT, arrays.active_blocks)


@kernel(counted=False)
def search(control, arrays, source, widths, is_full, records):
    """Find the distances from `source` (a new id).

    Parameters
    ----------
    control, arrays
        The thread pool's words; see relax.py.
    widths : of the distances' type, shape (2,)
        Of a window whose vertices relax prefixes of their lists, and of one with whole lists.
    is_full : bool
        Whether whole lists are relaxed from the start on.
    records : float64 (any, RECORD_WIDTH)
        A row for each window and each pull; the last row takes all that do not fit.

    Returns
    -------
    rows : int
        Records filled; -1 if a distance is beyond the type.
    """
    n = arrays.distance.size
    control[SOURCE], control[QUEUE], control[ACTIVE], control[ROUND] = source, 0, 0, 0
    share(control, arrays, RESET, n, even_size(arrays, n, _LEAST_VERTICES))
    arrays.counters[OVERFLOW, 0] = 0
    arrays.distance[source] = 0
    arrays.cursor[0, QUEUED] = push_item(arrays, QUEUED, arrays.queue[0], 0, source, 0)
    queued, vertices = close_list(arrays, QUEUED, arrays.queue_blocks)
    active, listed, rows = np.int64(0), np.int64(0), 0
    unsettled_edges = np.int64(arrays.neighbours.size)
    start = arrays.distance[source]
    while start < arrays.window[INFINITY] and not arrays.counters[OVERFLOW, 0]:
        began = clock_seconds()
        _open_window(arrays, start, widths[np.int64(is_full)], is_full)
        scanned, left, fresh = np.int64(0), np.int64(0), np.int64(0)
        if active and is_full:
            _next_round(control, arrays, SELECT, active)
        elif active:
            scanned, left, fresh = _next_round(control, arrays, RELAX_ACTIVE, active)
        if active:
            control[QUEUE] = 1 - control[QUEUE]
            queued, vertices = close_list(arrays, QUEUED, arrays.queue_blocks)
        more = _relax_window(control, arrays, queued, vertices)
        vertices = more[0] + (np.int64(0) if is_full else listed)
        scanned, left = scanned + more[1], left + more[2]
        unsettled_edges -= fresh + more[3]
        ended = clock_seconds()
        strategy = FULL if is_full else PREFIX
        rows = _record(records, rows, start, strategy, vertices, scanned, more[4], ended - began)
        if not is_full and left > unsettled_edges:
            is_full = True
            active, listed = _list_unsettled(control, arrays, n)
            _forget_lowest(arrays)
            scanned, _, _ = share(control, arrays, PULL, active, 1)
            began, ended = ended, clock_seconds()
            rows = _record(records, rows, start, PULL_ONCE, listed, scanned, 1, ended - began)
        else:
            control[ACTIVE] = 1 - control[ACTIVE]
            active, listed = close_list(arrays, KEPT, arrays.active_blocks)
        start = _least_waiting(arrays)
    # A search that was given up leaves lists as they are: the next one begins with empty ones.
    close_list(arrays, KEPT, arrays.active_blocks)
    return -1 if arrays.counters[OVERFLOW, 0] else rows


@njit(inline="always")
def _record(records, rows, start, strategy, vertices, edges, steps, seconds):
    """Fill the next record, or add to the last one where there is no room; return how many."""
    row = min(rows, records.shape[0] - 1)
    record = records[row]
    if row == rows:
        record[:] = 0.0
        record[STARTS_AT], record[STRATEGY] = start, strategy
    record[VERTICES] += vertices
    record[EDGES] += edges
    record[STEPS] += steps
    record[SECONDS] += seconds
    return row + 1
