"""Pulls and pushes that apply messages at once, on the host.

host_code.py appends this text to host.py if a pull does not read the states of other vertices:
their messages are written before, or do not depend on the state. Active vertices are then marked
in a bitmap. They are listed only if a push comes next.

With `any_one` a push also applies at once: the thread that lists a receiver first in this push
applies its message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import block_of, chunk_of, push_item
from hetero_bfs.programs.kernels import loop
from hetero_bfs.programs.kernels.adapters import (
    HAS_IDENTITY,
    WEIGHTED,
    apply,
    receives,
    send,
    takes,
)
from hetero_bfs.programs.kernels.host import (
    PHASES,
    activate,
    gathered,
    is_active,
    is_due,
    prefetch_list,
    take_lowest,
    written,
)
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import exchange, population_count

_NONE = np.int64(0)


@njit(forceinline=True)
def _receivers(arrays, begin, end):
    """Return bits of up to 64 vertices: whether each takes messages."""
    bits = np.uint64(0)
    for v in range(np.uint64(begin), np.uint64(end)):  # unsigned: no check for negative indices
        bits |= np.uint64(receives(arrays, v)) << (v & np.uint64(63))
    return bits


@njit(forceinline=True)
def _first_looks(arrays, active, begin, end):
    """Return bits of up to 64 vertices: whether the first neighbour is active."""
    first, bits = arrays.first, np.uint64(0)
    for v in range(np.uint64(begin), np.uint64(end)):  # no branches: they would be mispredicted
        u = np.uint64(first[v])
        bits |= np.uint64((u != v) & is_active(active, u)) << (v & np.uint64(63))
    return bits


@njit(forceinline=True)
def _deliver(control, arrays, v, total, far_at, me, tracks):
    """Apply a message; return the new FAR cursor, activity, edges, and the bit to set in the
    bitmap.
    """
    if tracks:
        arrays.changed[v] = 1
    if not apply(arrays, v, total, arrays.sums[0]):  # the program has no totals
        return far_at, _NONE, _NONE, np.uint64(0)
    in_bucket, far_at = is_due(control, arrays, v, far_at, me)
    if not in_bucket:
        return far_at, np.int64(1), _NONE, np.uint64(0)
    return far_at, np.int64(1), np.int64(arrays.degree[v]), np.uint64(1) << np.uint64(v & 63)


@kernel(counted=False, inner=True)
def _gather_and_apply(control, arrays, chunk, me):
    """Gather and apply at once, and set the bits of vertices that are active next.

    A chunk has whole words of the bitmap. With `any_one` most messages come from the first
    neighbour, so 64 vertices look there first.
    """
    begin, end = chunk_of(control, chunk)
    far_at = arrays.cursor[me, loop.FAR]
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    next_active = arrays.active[written(control, loop.ACTIVE)]
    scanned, receivers, activated, next_edges = _NONE, _NONE, _NONE, _NONE
    listed, tracks = _NONE, arrays.loop[loop.TRACKS] != 0
    for base in range(begin, end, 64):
        receiving, hits = _receivers(arrays, base, min(base + 64, end)), np.uint64(0)
        receivers += np.int64(population_count(receiving))
        word = np.uint64(0)
        if not HAS_IDENTITY and not WEIGHTED and receiving != 0:
            hits = receiving & _first_looks(arrays, active, base, min(base + 64, end))
        while hits != 0:
            hits, place = take_lowest(hits)
            v = np.uint64(base + place)
            message = send(arrays, np.int64(arrays.first[v]), arrays.backward_weights[0])
            if takes(arrays, v, message):
                receiving &= ~(np.uint64(1) << np.uint64(place))
                scanned += 1
                far_at, one, edges, bit = _deliver(control, arrays, v, message, far_at, me, tracks)
                activated += one
                next_edges += edges
                word |= bit
        while receiving != 0:
            receiving, place = take_lowest(receiving)
            v = np.uint64(base + place)
            total, found, looks = gathered(arrays, active, v)
            scanned += looks
            if found:
                far_at, one, edges, bit = _deliver(control, arrays, v, total, far_at, me, tracks)
                activated += one
                next_edges += edges
                word |= bit
        next_active[base >> 6] = word
        listed += np.int64(population_count(word))
    arrays.cursor[me, loop.FAR] = far_at
    arrays.activated[me, 0] += activated
    arrays.activated[me, 1] += next_edges
    return scanned, receivers, listed


@kernel(counted=False, inner=True)
def _push_and_apply(control, arrays, chunk, me):
    """Push and apply; return edges scanned, vertices made active, and their edges."""
    begin, end = block_of(arrays.next_blocks, chunk)
    items = arrays.next[control[loop.SIDES] >> loop.NEXT & 1]
    at, far_at = arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR]
    indptr, neighbours, weights = arrays.indptr, arrays.neighbours, arrays.weights
    number = np.int32(control[loop.ROUND])
    scanned, activated, next_edges = _NONE, _NONE, _NONE
    tracks = arrays.loop[loop.TRACKS] != 0
    for i in range(begin, end):
        prefetch_list(arrays, items, i, end)
        u = np.int64(items[i])
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + 1])
        scanned += np.int64(last - first)
        message = send(arrays, u, weights[0])
        for k in range(first, last):
            v = np.int64(neighbours[k])
            if not receives(arrays, v):
                continue
            if WEIGHTED:
                message = send(arrays, u, weights[k])
            if not takes(arrays, v, message):
                continue
            if exchange(arrays.touched, v, number) != number:
                if tracks:
                    arrays.changed[v] = 1
                if apply(arrays, v, message, arrays.sums[0]):  # the program has no totals
                    activated += 1
                    at, far_at, edges = activate(control, arrays, v, at, far_at, me)
                    next_edges += edges
    arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR] = at, far_at
    return scanned, activated, next_edges


@kernel(counted=False, inner=True)
def _list_marked(control, arrays, chunk, me):
    """List the vertices whose bits are set. A chunk has words of the bitmap."""
    begin, end = chunk_of(control, chunk)
    at = arrays.cursor[me, loop.NEXT]
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    for i in range(begin, end):
        word = active[i]
        while word != 0:
            word, place = take_lowest(word)
            v = (i << 6) + place
            at = push_item(arrays, loop.NEXT, arrays.next[written(control, loop.NEXT)], at, v, me)
    arrays.cursor[me, loop.NEXT] = at
    return _NONE, _NONE, _NONE


PHASES = PHASES | {loop.GATHER: _gather_and_apply, loop.LIST: _list_marked}
if not HAS_IDENTITY:
    PHASES[loop.PUSH] = _push_and_apply
    del PHASES[loop.APPLY]
