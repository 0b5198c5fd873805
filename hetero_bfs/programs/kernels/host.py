"""The phases of a vertex program on the host; loop.py has the loop that runs them.

host_code.py copies these statements, with a program's own adapters instead of the import of
adapters.py.

An iteration is a push or a pull. Both combine the messages to each vertex in `combined`, and list
the vertices that got messages. Then each listed vertex applies. An active vertex whose priority is
beyond the bucket's end waits in the list FAR.

Arrays in addition to loop.py's (n vertices; vertices below `searched` have edges):

    state_*     (n,)                the program's fields
    combined    (n,)                messages combined so far; IDENTITY between iterations and runs
    bits        (n,)                the same memory as integers, for atomics
    outgoing    (n,) or (1,)        each vertex's message, in pulls of messages without weights
    first       uint32 (searched,)  the first neighbour along incoming edges, v itself if none
    waiting     int8 (searched,)    whether a vertex is in FAR: NOT_LISTED, WAITING, or RUN (it is
                                    listed but has run since)
    far         pair of lists, as `next`
    touched_items   the list TOUCHED
    changed     uint8 (n,)          1 if the vertex's state was written, if the run has TRACKS
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import block_of, chunk_of, push_item
from hetero_bfs.programs.kernels import loop
from hetero_bfs.programs.kernels.adapters import (
    ALL_ACTIVE,
    APPLIES_IN_PULLS,
    HAS_FINISHED,
    HAS_IDENTITY,
    HAS_PRIORITY,
    IDENTITY,
    MONOTONE,
    WEIGHTED,
    apply,
    clear_totals,
    combine,
    finished,
    is_final,
    priority,
    receives,
    send,
    start,
    takes,
)
from hetero_bfs.programs.kernels.loop import take_lowest, written
from hetero_bfs.support.compiling import inlined, kernel
from hetero_bfs.support.intrinsics import (
    bits_of,
    compare_and_swap,
    exchange,
    population_count,
    prefetch,
    value_of,
)

_APPLIES_IN_PUSHES = APPLIES_IN_PULLS and not HAS_IDENTITY
_PREFETCH_DISTANCE = 8
_ZERO = np.int64(0)


@inlined
def is_due(control, arrays, v, far_at, me):
    """Return whether an active vertex is in the bucket, and the FAR cursor; list others in FAR."""
    if v >= arrays.searched:
        return False, far_at
    if HAS_PRIORITY:
        due = priority(arrays, v)
        if due >= arrays.limits[loop.END] and arrays.limits[loop.END] < np.inf:
            arrays.lowest[me, 0] = min(arrays.lowest[me, 0], due)
            if arrays.waiting[v] == loop.NOT_LISTED:
                far_at = push_item(
                    arrays, loop.FAR, arrays.far[written(control, loop.FAR)], far_at, v, me
                )
            arrays.waiting[v] = loop.WAITING
            return False, far_at
        if arrays.waiting[v] == loop.WAITING:
            arrays.waiting[v] = loop.RUN
    return True, far_at


@inlined
def activate(control, arrays, v, at, far_at, me):
    """List an active vertex; return the new cursors, and its edges if it is in the bucket."""
    in_bucket, far_at = is_due(control, arrays, v, far_at, me)
    if not in_bucket:
        return at, far_at, _ZERO
    at = push_item(arrays, loop.NEXT, arrays.next[written(control, loop.NEXT)], at, v, me)
    return at, far_at, np.int64(arrays.degree[v])


@kernel(counted=False, inner=True)
def _start(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    at, far_at = arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR]
    sums = arrays.sums[chunk]
    clear_totals(sums)
    active, edges = _ZERO, _ZERO
    for base in range(begin, end, 64):
        bits = np.uint64(0)
        for v in range(np.uint64(base), np.uint64(min(base + 64, end))):
            if HAS_PRIORITY and v < np.uint64(arrays.searched):
                arrays.waiting[v] = loop.NOT_LISTED
                if MONOTONE:
                    arrays.due[v] = np.inf
            bits |= np.uint64(start(arrays, v, sums)) << (v & np.uint64(63))
        active += np.int64(population_count(bits))
        while not ALL_ACTIVE and bits != 0:
            bits, place = take_lowest(bits)
            at, far_at, more = activate(control, arrays, base + place, at, far_at, me)
            edges += more
    arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR] = at, far_at
    return active, edges, _ZERO


@njit(inline="always")
def merge(arrays, v, message):
    """Combine a message with `combined[v]` atomically; return whether the result changed."""
    if not HAS_IDENTITY:  # any message will do: the last write wins
        arrays.combined[v] = message
        return True
    bits = arrays.bits
    while True:
        before = bits[v]
        new = bits_of(combine(value_of(before, message), message))
        if new == before:
            return False
        if compare_and_swap(bits, v, before, new):
            return True


@kernel(counted=False, inner=True)
def _push(control, arrays, chunk, me):
    """Send along the edges of listed vertices; return edges scanned.

    If `_APPLIES_IN_PUSHES`, also returns the vertices made active, and their edges.
    """
    begin, end = block_of(arrays.next_blocks, chunk)
    items = arrays.next[control[loop.SIDES] >> loop.NEXT & 1]
    touched_at, at = arrays.cursor[me, loop.TOUCHED], arrays.cursor[me, loop.NEXT]
    far_at = arrays.cursor[me, loop.FAR]
    indptr, neighbours, weights = arrays.indptr, arrays.neighbours, arrays.weights
    number = np.int32(control[loop.ROUND])
    scanned, activated, next_edges = _ZERO, _ZERO, _ZERO
    tracks = arrays.loop[loop.TRACKS] != 0
    for i in range(begin, end):
        if i + 2 * _PREFETCH_DISTANCE < end:
            prefetch(indptr, items[i + 2 * _PREFETCH_DISTANCE])
        if i + _PREFETCH_DISTANCE < end:
            prefetch(neighbours, np.int64(indptr[items[i + _PREFETCH_DISTANCE]]))
        u = np.int64(items[i])
        first, last = np.uint64(indptr[u]), np.uint64(indptr[u + 1])
        scanned += np.int64(last - first)
        message = send(arrays, u, weights[0])
        for k in range(first, last):
            v = np.int64(neighbours[k])
            if not receives(arrays, np.uint64(v)):
                continue
            if WEIGHTED:
                message = send(arrays, u, weights[k])
            if not takes(arrays, np.uint64(v), message):
                continue
            if not _APPLIES_IN_PUSHES and not merge(arrays, v, message):
                continue
            if exchange(arrays.touched, v, number) == number:
                continue
            if not _APPLIES_IN_PUSHES:
                touched_at = push_item(
                    arrays, loop.TOUCHED, arrays.touched_items, touched_at, v, me
                )
                continue
            if tracks:
                arrays.changed[v] = 1
            if apply(arrays, np.uint64(v), message, arrays.sums[0]):  # no totals here
                activated += 1
                at, far_at, edges = activate(control, arrays, v, at, far_at, me)
                next_edges += edges
    arrays.cursor[me, loop.TOUCHED], arrays.cursor[me, loop.NEXT] = touched_at, at
    arrays.cursor[me, loop.FAR] = far_at
    return scanned, activated, next_edges


@njit(inline="always")
def is_active(active, u):
    u = np.uint64(u)
    return active[u >> np.uint64(6)] >> (u & np.uint64(63)) & np.uint64(1) != 0


@kernel(counted=False, inner=True)
def _prepare(control, arrays, chunk, me):
    """Write each vertex's message, or the identity for inactive vertices."""
    begin, end = chunk_of(control, chunk)
    outgoing, weights = arrays.outgoing, arrays.weights
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    for u in range(begin, end):
        if ALL_ACTIVE or is_active(active, u):
            outgoing[u] = send(arrays, u, weights[0])
        else:
            outgoing[u] = IDENTITY
    return _ZERO, _ZERO, _ZERO


@inlined
def gathered(arrays, active, v):
    """Combine the messages to a receiver; return them, whether there are any, and edges scanned."""
    neighbours, weights = arrays.backward_neighbours, arrays.backward_weights
    outgoing = arrays.outgoing
    v = np.uint64(v)
    first = np.int64(arrays.backward_indptr[v])
    last = np.int64(arrays.backward_indptr[v + np.uint64(1)])
    total, found, k = IDENTITY, False, first
    while k < last:
        u = np.int64(neighbours[k])
        k += 1
        if WEIGHTED or not HAS_IDENTITY:
            if not ALL_ACTIVE and not is_active(active, u):
                continue
            message = send(arrays, u, weights[k - 1] if WEIGHTED else weights[0])
        else:
            message = outgoing[u]
        if takes(arrays, v, message):
            total = combine(total, message) if HAS_IDENTITY or found else message
            found = True
            if is_final(total):
                break
    return total, found and (not HAS_IDENTITY or total != IDENTITY), k - first


@kernel(counted=False, inner=True)
def _gather(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    at = arrays.cursor[me, loop.TOUCHED]
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    combined, touched_items = arrays.combined, arrays.touched_items
    edges, receivers = _ZERO, _ZERO
    for v in range(begin, end):
        if not receives(arrays, np.uint64(v)):
            if ALL_ACTIVE:
                combined[v] = IDENTITY
            continue
        receivers += 1
        total, found, scanned = gathered(arrays, active, v)
        edges += scanned
        if ALL_ACTIVE:
            combined[v] = total
        elif found:
            combined[v] = total
            at = push_item(arrays, loop.TOUCHED, touched_items, at, v, me)
    arrays.cursor[me, loop.TOUCHED] = at
    return edges, receivers, _ZERO


@kernel(counted=False, inner=True)
def _apply(control, arrays, chunk, me):
    begin, end = block_of(arrays.touched_blocks, chunk)
    tracks = arrays.loop[loop.TRACKS] != 0
    items = arrays.touched_items
    at, far_at = arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR]
    sums = arrays.sums[chunk]
    clear_totals(sums)
    active, edges = _ZERO, _ZERO
    for i in range(begin, end):
        v = np.int64(items[i])
        total = arrays.combined[v]
        arrays.combined[v] = IDENTITY
        if HAS_IDENTITY and total == IDENTITY:
            continue
        if tracks:
            arrays.changed[v] = 1
        if apply(arrays, np.uint64(v), total, sums):
            active += 1
            if MONOTONE and not arrays.is_directed and arrays.degree[v] == 1:
                continue  # its only edge leads back to the sender of its message
            at, far_at, more = activate(control, arrays, v, at, far_at, me)
            edges += more
    arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR] = at, far_at
    return active, edges, _ZERO


@kernel(counted=False, inner=True)
def _apply_all(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    sums = arrays.sums[chunk]
    clear_totals(sums)
    active = _ZERO
    for v in range(begin, end):
        if apply(arrays, np.uint64(v), arrays.combined[v], sums):
            active += 1
    return active, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _select(control, arrays, chunk, me):
    """List the vertices of FAR that are in the bucket now; keep the others in FAR."""
    begin, end = block_of(arrays.far_blocks, chunk)
    items = arrays.far[control[loop.SIDES] >> loop.FAR & 1]
    at, far_at = arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR]
    active, edges = _ZERO, _ZERO
    for i in range(begin, end):
        v = np.int64(items[i])
        waits = arrays.waiting[v] == loop.WAITING
        arrays.waiting[v] = loop.NOT_LISTED
        if waits:
            active += 1
            at, far_at, more = activate(control, arrays, v, at, far_at, me)
            edges += more
    arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR] = at, far_at
    return active, edges, _ZERO


@kernel(counted=False, inner=True)
def _finished(control, arrays, chunk, me):
    return np.int64(finished(arrays)), _ZERO, _ZERO


# Pulls and pushes that apply messages at once, if a pull does not read the states of other
# vertices: their messages are written before, or do not depend on the state. Active vertices are
# then marked in a bitmap. They are listed only if a push comes next.
#
# With `any_one` a push also applies at once: the thread that meets a receiver first in this push
# applies its message.


@inlined
def _receivers(arrays, begin, end):
    """Return bits of up to 64 vertices: whether each takes messages."""
    bits = np.uint64(0)
    for v in range(np.uint64(begin), np.uint64(end)):  # unsigned: no check for negative indices
        bits |= np.uint64(receives(arrays, v)) << (v & np.uint64(63))
    return bits


@inlined
def _first_looks(arrays, active, begin, end):
    """Return bits of up to 64 vertices: whether the first neighbour is active."""
    first, bits = arrays.first, np.uint64(0)
    for v in range(np.uint64(begin), np.uint64(end)):  # no branches: they would be mispredicted
        u = np.uint64(first[v])
        bits |= np.uint64((u != v) & is_active(active, u)) << (v & np.uint64(63))
    return bits


@inlined
def _deliver(control, arrays, v, total, far_at, me, tracks):
    """Apply a message; return the new FAR cursor, activity, edges, and the bit to set in the
    bitmap.
    """
    if tracks:
        arrays.changed[v] = 1
    if not apply(arrays, v, total, arrays.sums[0]):  # the program has no totals
        return far_at, _ZERO, _ZERO, np.uint64(0)
    in_bucket, far_at = is_due(control, arrays, np.int64(v), far_at, me)
    if not in_bucket:
        return far_at, np.int64(1), _ZERO, np.uint64(0)
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
    scanned, receivers, activated, next_edges = _ZERO, _ZERO, _ZERO, _ZERO
    listed, tracks = _ZERO, arrays.loop[loop.TRACKS] != 0
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


PHASES = {loop.START: _start, loop.GATHER: _gather}
"""The phases that the program needs, by task; files that extend this one replace some."""
if HAS_IDENTITY and not WEIGHTED:
    PHASES[loop.PREPARE] = _prepare
if ALL_ACTIVE:
    PHASES[loop.APPLY_ALL] = _apply_all
else:
    PHASES |= {loop.PUSH: _push, loop.MARK: loop.mark_listed, loop.APPLY: _apply}
if HAS_PRIORITY:
    PHASES[loop.SELECT] = _select
if HAS_FINISHED:
    PHASES[loop.FINISHED] = _finished
if APPLIES_IN_PULLS:
    PHASES |= {loop.GATHER: _gather_and_apply, loop.LIST: loop.list_marked}
    if _APPLIES_IN_PUSHES:
        del PHASES[loop.APPLY]
