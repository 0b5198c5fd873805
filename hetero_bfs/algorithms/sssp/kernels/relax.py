"""Phases of a shortest-path search on the host; windows.py has the loop that runs them.

The search settles vertices in windows of distances, one after the other (Meyer and Sanders, 2003,
"Delta-stepping: a parallelizable shortest path algorithm"). There are three ways to relax edges:

    PREFIX  Lists are sorted by weight (by_weight.py). A vertex relaxes the edges that end within
            the window, and keeps its position in its list for the next window. No edge is relaxed
            for a later window; this serves graphs of long lists.
    PULL    Each unsettled vertex looks through its own list for its best settled neighbour. It
            stops where an edge alone is too heavy. One pull comes once the settled vertices have
            more edges left than the unsettled ones have in all.
    FULL    A vertex relaxes its whole list. Ends beyond the window wait in a list, the far pile
            (Davidson et al., 2014, "Work-efficient parallel GPU methods for single-source shortest
            paths"). This serves graphs of short lists, and the rest of a search after a pull.

State (n vertices; D is int32, int64, float32 or float64):

    distance    D (n,)          the least found so far, window[INFINITY] where none is known
    bits        int (n,)        the same memory as signed integers of that size, for atomics
    relaxed     int (n,)        bits of the distance with which the vertex relaxed edges last; -1
                                before it did
    position    uint32 (n,)     how many entries of its list it relaxed then
    queue       2 lists         vertices whose distance fell within the window: one list is read,
                                the other one written
    active      2 lists         PREFIX: vertices that relaxed a part of their lists; FULL: the far
                                pile
    queued      int32 (n,)      the last round in whose queue the vertex was put; each phase that
                                queues vertices is a round
    listed      int8 (n,)       whether a vertex is in the list of active ones
    window      D (4,)          START, END, the LIMIT of relaxed distances, INFINITY
    lowest      D (threads, 8)  least distance that waits for a later window, by thread
    cursor      int64 (threads, 8)  where a thread writes next in either list; 0: nowhere yet
    counters    int64 (3, 8)    blocks of the lists that are written, QUEUED and KEPT; OVERFLOW;
                                each on its own line

A list is an array of blocks of BLOCK items. A thread writes into blocks of its own, and in the next
phase it gets its own blocks first (blocks.py): so it goes on with the vertices around those that it
has in its cache.

A distance that its type does not hold sets OVERFLOW and is not stored: the caller searches again
with a wider type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int64, njit, types

from hetero_bfs.devices.cpu.blocks import block_of, push_item
from hetero_bfs.devices.cpu.sharing import ITEMS, chunk_of
from hetero_bfs.devices.cpu.thread_pool import OWN
from hetero_bfs.support.by_address import Struct, chunk_address
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    atomic_min,
    bits_of,
    exchange,
    prefetch,
    value_of,
)

QUEUED, KEPT, OVERFLOW = range(3)
"""The lists by number (blocks.py), and the counter of distances beyond the type."""

QUEUE, ACTIVE = ITEMS + 1, ITEMS + 2
"""Words of a job: which queue and which list of active vertices are read."""

SOURCE, ROUND = OWN, OWN + 1
"""Words that stay: the search's source, and the number of the round."""

RESET, RELAX_ACTIVE, RELAX_QUEUE, FIND_UNSETTLED, PULL, SELECT = range(6)
NUM_TASKS = 6

START, END, LIMIT, INFINITY = range(4)

_PREFETCH_DISTANCE = 8
_ZERO = np.int64(0)
_ON, _OFF = np.int8(1), np.int8(0)


@njit(inline="always")
def _note_lowest(arrays, me, candidate):
    """Note a distance that waits for a later window."""
    lowest = arrays.lowest[me]
    if candidate < lowest[0]:
        lowest[0] = candidate


@njit(inline="always")
def _is_dead_end(arrays, control, u, degree):
    """Tell whether the only edge of `u` leads back to where its distance came from."""
    return degree == 1 and arrays.is_directed == 0 and u != control[SOURCE]


@njit(inline="always")
def _relax_list(control, arrays, u, me, at, far_at, is_full):
    """Relax the edges of `u` up to the window's limit; queue ends that fall within the window.

    Returns the new cursors of the thread, the edges scanned, those left in the list, and those of
    the whole list if this is the vertex's first time.
    """
    distance, bits, window = arrays.distance, arrays.bits, arrays.window
    neighbours, weights = arrays.neighbours, arrays.weights
    next_queue, pile = 1 - control[QUEUE], 1 - control[ACTIVE]
    first, last = np.int64(arrays.indptr[u]), np.int64(arrays.indptr[u + 1])
    end, limit = window[END], window[LIMIT]
    key = bits[u]
    start = value_of(key, end)
    before = arrays.relaxed[u]
    k = first
    if before == key:
        k = last if is_full else first + np.int64(arrays.position[u])
    elif _is_dead_end(arrays, control, u, last - first):
        k = last
    arrays.relaxed[u] = key
    begin = k
    round_number = np.int32(control[ROUND])
    while k < last:
        candidate = start + weights[k]
        if candidate >= limit:
            break
        v = neighbours[k]
        if candidate < distance[v]:
            new = distance.dtype.type(candidate)
            if atomic_min(bits, v, bits_of(new)) > bits_of(new):
                if candidate < end:
                    if exchange(arrays.queued, v, round_number) != round_number:
                        at = push_item(arrays, QUEUED, arrays.queue[next_queue], at, v, me)
                else:
                    _note_lowest(arrays, me, new)
                    if exchange(arrays.listed, v, _ON) == 0:
                        far_at = push_item(arrays, KEPT, arrays.active[pile], far_at, v, me)
        k += 1
    if not is_full:
        arrays.position[u] = k - first
    if k < last:
        candidate = start + weights[k]
        if candidate < window[INFINITY]:
            _note_lowest(arrays, me, distance.dtype.type(candidate))
        elif weights[k] < window[INFINITY]:
            arrays.counters[OVERFLOW, 0] = 1
        else:
            k = last  # an infinite weight, and all behind it, is no edge
    return at, far_at, k - begin, last - k, last - first if before < 0 else _ZERO


@kernel(counted=False, inner=True)
def _reset(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    for v in range(begin, end):
        arrays.distance[v] = arrays.window[INFINITY]
        arrays.relaxed[v] = -1
        arrays.queued[v] = 0
        arrays.listed[v] = _OFF
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _prefetch(arrays, items, i, end):
    """Fetch what is read of later items: where their lists are, then the lists."""
    if i + 2 * _PREFETCH_DISTANCE < end:
        u = items[i + 2 * _PREFETCH_DISTANCE]
        prefetch(arrays.indptr, u)
        prefetch(arrays.bits, u)
        prefetch(arrays.relaxed, u)
    if i + _PREFETCH_DISTANCE < end:
        k = np.int64(arrays.indptr[items[i + _PREFETCH_DISTANCE]])
        prefetch(arrays.neighbours, k)
        prefetch(arrays.weights, k)


@njit(inline="always")
def _relax_all(control, arrays, chunk, me, items, lists, is_queue):
    """Relax the lists of a block of vertices; return edges scanned, left and met first."""
    begin, end = block_of(lists, chunk)
    at, far_at = arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT]
    scanned, left, fresh = _ZERO, _ZERO, _ZERO
    is_full = arrays.window[LIMIT] == arrays.window[INFINITY]
    for i in range(begin, end):
        _prefetch(arrays, items, i, end)
        u = np.int64(items[i])
        if not is_queue:
            arrays.listed[u] = _OFF
        at, far_at, more, more_left, more_fresh = _relax_list(
            control, arrays, u, me, at, far_at, is_full
        )
        scanned += more
        left += more_left
        fresh += more_fresh
        if more_left and not is_full and arrays.listed[u] == 0:
            arrays.listed[u] = _ON
            far_at = push_item(arrays, KEPT, arrays.active[1 - control[ACTIVE]], far_at, u, me)
    arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT] = at, far_at
    return scanned, left, fresh


@kernel(counted=False, inner=True)
def _relax_active(control, arrays, chunk, me):
    items = arrays.active[control[ACTIVE]]
    return _relax_all(control, arrays, chunk, me, items, arrays.active_blocks, False)


@kernel(counted=False, inner=True)
def _relax_queue(control, arrays, chunk, me):
    items = arrays.queue[control[QUEUE]]
    return _relax_all(control, arrays, chunk, me, items, arrays.queue_blocks, True)


@kernel(counted=False, inner=True)
def _find_unsettled(control, arrays, chunk, me):
    """List the vertices that no window so far has settled."""
    begin, end = chunk_of(control, chunk)
    kept, at = arrays.active[1 - control[ACTIVE]], arrays.cursor[me, KEPT]
    for v in range(begin, end):
        if arrays.distance[v] >= arrays.window[END]:
            at = push_item(arrays, KEPT, kept, at, v, me)
    arrays.cursor[me, KEPT] = at
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _pull(control, arrays, chunk, me):
    """Give unsettled vertices the best distance by a settled neighbour; return edges scanned.

    No distance is below 0: so once an edge's weight alone is too much, the rest of the list is.
    """
    begin, end = block_of(arrays.active_blocks, chunk)
    distance, settled = arrays.distance, arrays.window[END]
    indptr, neighbours = arrays.backward_indptr, arrays.backward_neighbours
    weights = arrays.backward_weights
    infinity = arrays.window[INFINITY]
    items = arrays.active[control[ACTIVE]]
    scanned = _ZERO
    for i in range(begin, end):
        v = items[i]
        first, last = np.int64(indptr[v]), np.int64(indptr[v + 1])
        best = distance[v]
        k = first
        while k < last and weights[k] < best:
            before = distance[neighbours[k]]
            if before < settled:
                candidate = before + weights[k]
                if candidate < best:
                    best = distance.dtype.type(candidate)
                elif candidate >= infinity:
                    arrays.counters[OVERFLOW, 0] = 1
            k += 1
        scanned += k - first
        arrays.listed[v] = _OFF if best == infinity else _ON  # SELECT leaves the others out
        if best < infinity:
            distance[v] = best
            _note_lowest(arrays, me, best)
    return scanned, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _select(control, arrays, chunk, me):
    """Take the vertices of this window from the far pile, and leave out settled ones."""
    begin, end = block_of(arrays.active_blocks, chunk)
    items, pile = arrays.active[control[ACTIVE]], arrays.active[1 - control[ACTIVE]]
    next_queue = arrays.queue[1 - control[QUEUE]]
    start, stop, infinity = arrays.window[START], arrays.window[END], arrays.window[INFINITY]
    at, far_at = arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT]
    for i in range(begin, end):
        v = items[i]
        reached = arrays.distance[v]
        if stop <= reached < infinity:
            _note_lowest(arrays, me, reached)
            far_at = push_item(arrays, KEPT, pile, far_at, v, me)
            continue
        arrays.listed[v] = _OFF
        if start <= reached < stop:
            arrays.queued[v] = control[ROUND]
            at = push_item(arrays, QUEUED, next_queue, at, v, me)
    arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT] = at, far_at
    return _ZERO, _ZERO, _ZERO


def link_work(arrays: Struct, work: npt.NDArray[np.int64]) -> None:
    """Compile the phases for these arrays, and fill their `work` with them."""
    control: Any = types.Array(int64, 1, "C")
    tasks = (_reset, _relax_active, _relax_queue, _find_unsettled, _pull, _select)
    for task, function in enumerate(tasks):
        work[task] = chunk_address(function, control, arrays.numba_type)
