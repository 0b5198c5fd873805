"""Phases of a shortest-path search on the host; loop.py has the loop that runs them.

The search settles vertices in windows of distances, one after the other (Meyer and Sanders, 2003,
"Delta-stepping: a parallelizable shortest path algorithm"). There are three strategies:

    PREFIX  Neighbour lists are sorted by weight (sorting.py). A vertex relaxes the edges that
            end within the window, and keeps its position for the next window. No edge is relaxed
            for a later window. This suits graphs of high degree.
    PULL    Each unsettled vertex scans its neighbours for the best settled one. It stops where the
            weight of an edge is at least its distance. A search pulls once: when the settled
            vertices have more edges left than the unsettled vertices have in all.
    FULL    A vertex relaxes all its edges. Ends beyond the window wait in a list, the far pile
            (Davidson et al., 2014, "Work-efficient parallel GPU methods for single-source shortest
            paths"). This suits graphs of low degree, and the rest of a search after a pull.
            own_buckets.py has its phase.

State (n vertices; D is int32, int64, float32 or float64):

    distance    D (n,)          smallest found so far, window[INFINITY] if none
    bits        int (n,)        the same memory as signed integers, for atomics
    relaxed     int (n,)        bits of the distance with which the vertex relaxed edges last; -1
                                before that
    position    uint32 (n,)     PREFIX: number of entries that it relaxed then
    queue       2 lists         PREFIX: vertices whose distance fell within the window; one list is
                                read and the other written
    active      2 lists         PREFIX: vertices that relaxed some of their edges; FULL: the far
                                pile
    queued      int32 (n,)      PREFIX: last round in whose queue the vertex was put; each phase
                                that queues vertices is a round
    listed      int8 (n,)       whether a vertex is in the active list; FULL: whether it ever was on
                                the far pile, which a vertex enters only once: distances
                                below the window's start are final
    window      D (8,)          START, END, INFINITY
    lowest      D (threads, 8)  smallest distance that waits for a later window, by thread
    cursor      int64 (threads, 8)  where a thread writes next in either list; 0: nowhere yet
    counters    int64 (7, 8)    number of blocks of the written lists, QUEUED and KEPT; OVERFLOW;
                                those of own_buckets.py; each on its own cache line

A list is an array of blocks of BLOCK items. A thread writes into its own blocks. In the next phase
it gets them first (thread_pool.py), since their vertices are in its cache.

A distance that exceeds its type sets OVERFLOW and is not stored. If the type has 32 bits, the
caller searches again with a wider one. Distances beyond float64 are infinite.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import ITEMS, OWN, block_of, chunk_of, push_item
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    atomic_min,
    bits_of,
    exchange,
    prefetch,
    value_of,
)
from hetero_bfs.support.parallel import part_of

QUEUED, KEPT, OVERFLOW, TAKEN, DROPPED, BUSY, IDLE = range(7)
"""Counters: the lists by number (thread_pool.py), whether a distance exceeded the type, and those
of own_buckets.py."""

QUEUE, ACTIVE = ITEMS + 1, ITEMS + 2
"""Words of a job: which queue and which list of active vertices are read."""

SOURCE, ROUND, BUCKETS, PILE, PILE_BLOCKS = range(OWN, OWN + 5)
"""Words that phases keep: the source, the number of the round, the buckets of a window, and the
numbers of items and blocks in the far pile."""

START, END, INFINITY = range(3)

ZERO = np.int64(0)
ON, OFF = np.int8(1), np.int8(0)

PREFETCH_DISTANCE = 8


@njit(inline="always")
def note_lowest(arrays, me, candidate):
    """Note a distance that waits for a later window."""
    lowest = arrays.lowest[me]
    if candidate < lowest[0]:
        lowest[0] = candidate


@njit(inline="always")
def is_dead_end(arrays, control, u, degree):
    """Tell whether the only edge of `u` leads back to the vertex that its distance came from."""
    return degree == 1 and arrays.is_directed == 0 and u != control[SOURCE]


@njit(inline="always")
def _relax_prefix(control, arrays, u, me, at):
    """Relax the edges of `u` that end within the window; queue their ends.

    Returns the thread's new cursor, the edges scanned, the edges left, and the vertex's degree, or
    0 if it was relaxed before.
    """
    distance, bits, window = arrays.distance, arrays.bits, arrays.window
    neighbours, weights = arrays.neighbours, arrays.weights
    first, last = np.int64(arrays.indptr[u]), np.int64(arrays.indptr[u + 1])
    end = window[END]
    key = bits[u]
    start = value_of(key, end)
    before = arrays.relaxed[u]
    k = first
    if before == key:
        k = first + np.int64(arrays.position[u])
    elif is_dead_end(arrays, control, u, last - first):
        k = last
    arrays.relaxed[u] = key
    begin = k
    round_number = np.int32(control[ROUND])
    while k < last:
        candidate = start + weights[k]
        if candidate >= end:
            break
        v = neighbours[k]
        if candidate < distance[v]:
            new = distance.dtype.type(candidate)
            if atomic_min(bits, v, bits_of(new)) > bits_of(new):
                if exchange(arrays.queued, v, round_number) != round_number:
                    queue = arrays.queue[1 - control[QUEUE]]
                    at = push_item(arrays, QUEUED, queue, at, v, me)
        k += 1
    arrays.position[u] = k - first
    if k < last:
        candidate = start + weights[k]
        if candidate < window[INFINITY]:
            note_lowest(arrays, me, distance.dtype.type(candidate))
        else:
            if weights[k] < window[INFINITY]:
                arrays.counters[OVERFLOW, 0] = 1
            k = last  # this edge and all later ones lead beyond the type
    return at, k - begin, last - k, last - first if before < 0 else ZERO


@kernel(counted=False, inner=True)
def reset(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    for v in range(begin, end):
        arrays.distance[v] = arrays.window[INFINITY]
        arrays.relaxed[v] = -1
        arrays.queued[v] = 0
        arrays.listed[v] = OFF
    return ZERO, ZERO, ZERO


@kernel(counted=False, inner=True)
def adopt(given, part, parts):
    """Take over a part of the distances of another search: all are final but those on a list.

    FULL does not read `queued` and `position`.
    """
    begin, end = part_of(given.distance.size, part, parts)
    for v in range(np.uint64(begin), np.uint64(end)):
        given.distance[v] = given.found[v]
        given.relaxed[v] = given.bits[v]
        given.listed[v] = OFF


@njit(inline="always")
def prefetch_lists(arrays, items, i, end):
    """Prefetch the data of later items: offsets of their neighbour lists, then the entries."""
    if i + 2 * PREFETCH_DISTANCE < end:
        u = items[i + 2 * PREFETCH_DISTANCE]
        prefetch(arrays.indptr, u)
        prefetch(arrays.bits, u)
        prefetch(arrays.relaxed, u)
    if i + PREFETCH_DISTANCE < end:
        k = np.int64(arrays.indptr[items[i + PREFETCH_DISTANCE]])
        prefetch(arrays.neighbours, k)
        prefetch(arrays.weights, k)


@njit(inline="always")
def _relax_all(control, arrays, chunk, me, items, lists, is_queue):
    """Relax a block of vertices; return edges scanned, edges left, and degrees of new vertices."""
    begin, end = block_of(lists, chunk)
    at, kept_at = arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT]
    kept = arrays.active[1 - control[ACTIVE]]
    scanned, left, fresh = ZERO, ZERO, ZERO
    for i in range(begin, end):
        prefetch_lists(arrays, items, i, end)
        u = np.int64(items[i])
        if not is_queue:
            arrays.listed[u] = OFF
        at, more, more_left, more_fresh = _relax_prefix(control, arrays, u, me, at)
        scanned += more
        left += more_left
        fresh += more_fresh
        if more_left and arrays.listed[u] == 0:
            arrays.listed[u] = ON
            kept_at = push_item(arrays, KEPT, kept, kept_at, u, me)
    arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT] = at, kept_at
    return scanned, left, fresh


@kernel(counted=False, inner=True)
def relax_active(control, arrays, chunk, me):
    items = arrays.active[control[ACTIVE]]
    return _relax_all(control, arrays, chunk, me, items, arrays.active_blocks, False)


@kernel(counted=False, inner=True)
def relax_queue(control, arrays, chunk, me):
    items = arrays.queue[control[QUEUE]]
    return _relax_all(control, arrays, chunk, me, items, arrays.queue_blocks, True)


@kernel(counted=False, inner=True)
def find_unsettled(control, arrays, chunk, me):
    """List the vertices that are not settled."""
    begin, end = chunk_of(control, chunk)
    kept, at = arrays.active[1 - control[ACTIVE]], arrays.cursor[me, KEPT]
    for v in range(begin, end):
        if arrays.distance[v] >= arrays.window[END]:
            at = push_item(arrays, KEPT, kept, at, v, me)
    arrays.cursor[me, KEPT] = at
    return ZERO, ZERO, ZERO


@kernel(counted=False, inner=True)
def pull(control, arrays, chunk, me):
    """Give unsettled vertices the best distance by a settled neighbour; return edges scanned.

    Distances are at least 0. So if the weight of an edge is at least the best distance, later edges
    are not needed. The vertices that have been reached form the far pile. A vertex that has not
    must not be on it: relaxing would put it there a second time.
    """
    begin, end = block_of(arrays.active_blocks, chunk)
    distance, settled = arrays.distance, arrays.window[END]
    indptr, neighbours = arrays.backward_indptr, arrays.backward_neighbours
    weights = arrays.backward_weights
    infinity = arrays.window[INFINITY]
    order, is_directed = arrays.backward_order, arrays.is_directed != 0
    items, pile = arrays.active[control[ACTIVE]], arrays.active[1 - control[ACTIVE]]
    pile_at = arrays.cursor[me, KEPT]
    scanned = ZERO
    for i in range(begin, end):
        v = items[i]
        first, last = np.int64(indptr[v]), np.int64(indptr[v + 1])
        best = distance[v]
        k = first
        while k < last:
            at = first + np.int64(order[k]) if is_directed else k
            if weights[at] >= best:
                break
            before = distance[neighbours[at]]
            if before < settled:
                candidate = before + weights[at]
                if candidate < best:
                    best = distance.dtype.type(candidate)
                elif candidate >= infinity:
                    arrays.counters[OVERFLOW, 0] = 1
            k += 1
        scanned += k - first
        arrays.listed[v] = OFF if best == infinity else ON
        if best < infinity:
            distance[v] = best
            pile_at = push_item(arrays, KEPT, pile, pile_at, v, me)
            note_lowest(arrays, me, best)
    arrays.cursor[me, KEPT] = pile_at
    return scanned, ZERO, ZERO
