"""The loop of a shortest-path search on the host; phases.py has its phases."""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.sssp.kernels import phases
from hetero_bfs.algorithms.sssp.kernels.phases import (
    MOST_BUCKETS,
    find_unsettled,
    find_waiting,
    pull,
    relax_active,
    relax_queue,
    reset,
    settle,
)
from hetero_bfs.devices.cpu.thread_pool import close_list, even_size, push_item, share
from hetero_bfs.scheduling.algorithm_decision import WindowStrategy, pulls_next
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds

STARTS_AT, STRATEGY, VERTICES, EDGES, ROUNDS, SECONDS = range(6)
"""Columns of a record; STARTS_AT is the start of the window, ROUNDS counts queues."""

RECORD_WIDTH = 6

PREFIX, FULL, PULL = int(WindowStrategy.PREFIX), int(WindowStrategy.FULL), int(WindowStrategy.PULL)

PLANNED_BUCKETS = 8
"""Buckets of a window of the planned width, which is the first width after a pull."""

_FIRST_BUCKETS = 2  # of the source's window, which one thread runs

_TASKS = reset, relax_active, relax_queue, find_unsettled, pull, settle, find_waiting
NUM_TASKS = len(_TASKS)
_RESET, _RELAX_ACTIVE, _RELAX_QUEUE, _FIND_UNSETTLED, _PULL, _SETTLE, _FIND_WAITING = range(
    NUM_TASKS
)

_LEAST_VERTICES = 1 << 12  # vertices of a chunk
_LEAST_ITEMS = 32  # of the far pile that make a thread worthwhile
_FOUND_FROM_ONE = 16  # vertices of the last window that make as much work as an item of the pile
_FEW_VERTICES, _MANY_VERTICES = 1 << 12, 1 << 14  # of a window, for each thread

_pulls_next = njit(inline="always")(pulls_next)


@njit(inline="always")
def _forget_lowest(arrays):
    for thread in range(arrays.lowest.shape[0]):
        arrays.lowest[thread, 0] = arrays.window[phases.INFINITY]


@njit(inline="always")
def _open_window(arrays, start, width):
    """Set the next window; it has all distances if the type cannot hold its width."""
    window = arrays.window
    infinity = window[phases.INFINITY]
    end = infinity
    if width < 0.5 * (np.float64(infinity) - np.float64(start)):
        end = window.dtype.type(start + width)
    if end <= start:
        end = infinity
    window[phases.START] = start
    window[phases.END] = end
    _forget_lowest(arrays)


@njit(inline="always")
def _is_beyond(arrays):
    """Tell whether a distance exceeds a type of 32 bits; the caller then uses a wider one."""
    return arrays.distance.itemsize < 8 and arrays.counters[phases.OVERFLOW, 0] != 0


@njit(inline="always")
def _least_waiting(arrays):
    least = arrays.window[phases.INFINITY]
    for thread in range(arrays.lowest.shape[0]):
        least = min(least, arrays.lowest[thread, 0])
    return least


@njit(inline="always")
def _next_round(control, arrays, task, blocks):
    """Relax prefixes in a new round, and switch to the queue that it wrote.

    Returns the sums of the phase, and the numbers of blocks and vertices in the queue.
    """
    control[phases.ROUND] += 1
    more = share(control, arrays, task, blocks, 1)
    control[phases.QUEUE] = 1 - control[phases.QUEUE]
    return more, close_list(arrays, phases.QUEUED, arrays.queue_blocks)


@kernel(counted=False, inner=True)
def _switch_lists(control, arrays):
    """Switch to the written list: of active vertices, or the far pile."""
    control[phases.ACTIVE] = 1 - control[phases.ACTIVE]
    control[phases.LISTED_BLOCKS], control[phases.LISTED] = close_list(
        arrays, phases.KEPT, arrays.active_blocks
    )


@njit(inline="always")
def _relax_window(control, arrays):
    """Continue in the neighbour lists of active vertices, then relax queues until they are empty.

    Returns vertices and edges relaxed, edges left, edges of new vertices, and the number of queues.
    """
    vertices, rounds = control[phases.LISTED], 0
    (scanned, left, fresh), (blocks, queued) = _next_round(
        control, arrays, _RELAX_ACTIVE, control[phases.LISTED_BLOCKS]
    )
    while blocks:
        vertices += queued
        more, (blocks, queued) = _next_round(control, arrays, _RELAX_QUEUE, blocks)
        scanned += more[0]
        left += more[1]
        fresh += more[2]
        rounds += 1
    _switch_lists(control, arrays)
    return vertices, scanned, left, fresh, rounds


@njit(inline="always")
def _empty_pool(arrays):
    """Mark all blocks of the pool as free. Between windows all buckets are empty."""
    arrays.counters[phases.TAKEN, 0] = arrays.counters[phases.DROPPED, 0] = 0
    arrays.free[:] = 0


@njit(inline="always")
def _settle_window(control, arrays, n, before):
    """Settle a window by relaxing full neighbour lists; return vertices and edges relaxed.

    `before` is the number of vertices of the previous window. If it is large, more threads take
    part than the far pile keeps busy: they can get vertices that the others find.
    """
    worth = max(control[phases.LISTED], before // _FOUND_FROM_ONE)
    parts = min(arrays.threads, -(-worth // _LEAST_ITEMS))
    scanned, vertices, _ = share(control, arrays, _SETTLE, parts, 1)
    _switch_lists(control, arrays)
    if arrays.counters[phases.DROPPED, 0]:
        _empty_pool(arrays)
        share(control, arrays, _FIND_WAITING, n, even_size(arrays, n, _LEAST_VERTICES))
        _switch_lists(control, arrays)
    return vertices, scanned


@njit(inline="always")
def _next_buckets(buckets, vertices, threads):
    """Return the buckets of the next window: more after a window with few vertices.

    Threads wait less in wide windows, but share the work more evenly in narrow ones.
    """
    if vertices < _FEW_VERTICES * threads:
        return min(2 * buckets, MOST_BUCKETS)
    return max(buckets // 2, 1) if vertices > _MANY_VERTICES * threads else buckets


@njit(inline="always")
def _begin(control, arrays, source):
    """Reset the arrays, and put the source into the active list."""
    n = arrays.distance.size
    share(control, arrays, _RESET, n, even_size(arrays, n, _LEAST_VERTICES))
    arrays.distance[source] = 0
    arrays.listed[source] = phases.ON
    arrays.cursor[0, phases.KEPT] = push_item(arrays, phases.KEPT, arrays.active[1], 0, source, 0)
    _switch_lists(control, arrays)


@njit(inline="always")
def _go_on(control, arrays, waiting, start):
    """Put vertices on the far pile that wait in another search, after `adopt`.

    Vertices of a distance below `start` are settled. A vertex may be in `waiting` twice.
    """
    at = phases.ZERO
    for v in waiting:
        if (
            start <= arrays.distance[v] < arrays.window[phases.INFINITY]
            and arrays.listed[v] != phases.ON
        ):
            arrays.listed[v] = phases.ON
            arrays.relaxed[v] = -1
            at = push_item(arrays, phases.KEPT, arrays.active[1], at, v, 0)
    arrays.cursor[0, phases.KEPT] = at
    _switch_lists(control, arrays)


@kernel(counted=False)
def search(control, arrays, source, waiting, start, widths, strategy, records):
    """Find the distances from `source` (a new id), or continue another search.

    To continue, `waiting`, uint32, has the vertices that wait in that search, and `start` is a
    lower limit of their distances; for a new search `waiting` is empty and `start` 0. `widths`,
    float64 (2,), are the widths of a window with PREFIX, and of a bucket with FULL. `strategy` is
    that of the first window, PREFIX or FULL. `records`, float64 (any, RECORD_WIDTH), gets a row for
    each window and each pull; the last row sums up all that do not fit.

    A strategy relaxes the edges of an open window, and notes in `lowest` whatever waits beyond it.
    It writes one list of active vertices; `_switch_lists` makes that the list to read.

    Returns the records filled; -1 if the type has 32 bits and a distance exceeds it.
    """
    control[phases.SOURCE], control[phases.ROUND] = source, 0
    control[phases.QUEUE] = control[phases.ACTIVE] = 0
    arrays.counters[phases.OVERFLOW, 0] = 0
    _empty_pool(arrays)
    if waiting.size:
        _go_on(control, arrays, waiting, start)
    else:
        _begin(control, arrays, source)
    n, rows, buckets = arrays.distance.size, 0, _FIRST_BUCKETS
    unsettled_edges = np.int64(arrays.neighbours.size)
    vertices = phases.ZERO
    while start < arrays.window[phases.INFINITY] and not _is_beyond(arrays):
        began, left, rounds = clock_seconds(), phases.ZERO, 1
        _open_window(arrays, start, widths[1] * buckets if strategy == FULL else widths[0])
        if strategy == FULL:
            control[phases.BUCKETS] = buckets
            vertices, scanned = _settle_window(control, arrays, n, vertices)
            buckets = _next_buckets(buckets, vertices, arrays.threads)
        else:
            vertices, scanned, left, fresh, rounds = _relax_window(control, arrays)
            unsettled_edges -= fresh
        ended = clock_seconds()
        rows = _record(records, rows, start, strategy, vertices, scanned, rounds, ended - began)
        if strategy == PREFIX and _pulls_next(left, unsettled_edges):
            strategy, buckets = FULL, PLANNED_BUCKETS
            share(control, arrays, _FIND_UNSETTLED, n, even_size(arrays, n, _LEAST_VERTICES))
            _switch_lists(control, arrays)
            _forget_lowest(arrays)
            unsettled = control[phases.LISTED]
            scanned, _, _ = share(control, arrays, _PULL, control[phases.LISTED_BLOCKS], 1)
            _switch_lists(control, arrays)
            began, ended = ended, clock_seconds()
            rows = _record(records, rows, start, PULL, unsettled, scanned, 1, ended - began)
        start = _least_waiting(arrays)
    # An aborted search leaves items behind; this makes the lists empty for the next search.
    close_list(arrays, phases.KEPT, arrays.active_blocks)
    return -1 if _is_beyond(arrays) else rows


@njit(inline="always")
def _record(records, rows, start, strategy, vertices, edges, rounds, seconds):
    """Fill the next record, or add to the last one if all are full; return the number filled."""
    row = min(rows, records.shape[0] - 1)
    record = records[row]
    if row == rows:
        record[:] = 0.0
        record[STARTS_AT], record[STRATEGY] = start, strategy
    record[VERTICES] += vertices
    record[EDGES] += edges
    record[ROUNDS] += rounds
    record[SECONDS] += seconds
    return row + 1


PHASES = dict(enumerate(_TASKS))
