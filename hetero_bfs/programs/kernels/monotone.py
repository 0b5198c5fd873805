"""The phases of a monotone program on the host; monotone_loop.py has the loop that runs them.

host_code.py appends this text to host.py, so `activate` replaces that of host.py.

Neighbour lists are sorted by weight, so messages do not fall along a list. A vertex sends the
messages below the limit: the bucket's end, or infinity. If messages remain, it waits in FAR for the
bucket of the first of them. A receiver scans its incoming edges in the same order. It stops where
even the sender of the lowest priority could not send less than the receiver has.

Arrays in addition to host.py's:

    waiting     int8 (searched,)    bits: LISTED in FAR; CHANGED since it sent; SENT something
    position    uint32 (searched,)  how many messages of its list a vertex sent last
    due         float64 (searched,) the bucket that it waits for; infinity if it does not wait

FAR may list vertices that no longer wait.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import block_of, chunk_of, push_item
from hetero_bfs.programs.kernels import loop, monotone_loop
from hetero_bfs.programs.kernels.adapters import IDENTITY, WEIGHTED, priority, receives, send, takes
from hetero_bfs.programs.kernels.host import PHASES, is_active, merge
from hetero_bfs.programs.kernels.loop import written
from hetero_bfs.support.compiling import inlined, kernel
from hetero_bfs.support.intrinsics import atomic_or, exchange, prefetch

LISTED, CHANGED, SENT = np.int8(1), np.int8(2), np.int8(4)

_AHEAD = 8  # prefetch distance in items
_NONE = np.int64(0)


@njit(inline="always")
def _wait(control, arrays, v, due, far_at, me):
    """Make a vertex wait for a bucket; return the new cursor."""
    arrays.due[v] = due
    arrays.lowest[me, 0] = min(arrays.lowest[me, 0], due)
    if arrays.waiting[v] & LISTED == 0:
        arrays.waiting[v] |= LISTED
        far_at = push_item(arrays, loop.FAR, arrays.far[written(control, loop.FAR)], far_at, v, me)
    return far_at


@inlined
def activate(control, arrays, v, at, far_at, me):
    """List a vertex whose state changed; return the new cursors, and 0 edges."""
    if v >= arrays.searched:
        return at, far_at, _NONE
    arrays.waiting[v] |= CHANGED
    due = priority(arrays, v)
    if due >= arrays.limits[loop.END]:
        return at, _wait(control, arrays, v, due, far_at, me), _NONE
    arrays.due[v] = np.inf
    at = push_item(arrays, loop.NEXT, arrays.next[written(control, loop.NEXT)], at, v, me)
    return at, far_at, _NONE


@njit(inline="always")
def _edges_left(arrays, u, degree):
    """Return how many edges of a vertex are unread, if it has begun its list; else 0."""
    return degree - np.int64(arrays.position[u]) if arrays.waiting[u] & SENT else _NONE


@kernel(counted=False, inner=True)
def _push_below_limit(control, arrays, chunk, me):
    """Return edges scanned, the change in unread edges of begun lists, and edges of newly begun
    lists.
    """
    begin, end = block_of(arrays.next_blocks, chunk)
    items = arrays.next[control[loop.SIDES] >> loop.NEXT & 1]
    touched_items = arrays.touched_items
    at, far_at = arrays.cursor[me, loop.TOUCHED], arrays.cursor[me, loop.FAR]
    indptr, neighbours, weights = arrays.indptr, arrays.neighbours, arrays.weights
    limit, number = arrays.limits[monotone_loop.LIMIT], np.int32(control[loop.ROUND])
    has_limit = limit < np.inf  # without a limit all is sent, and no vertex waits
    scanned, left, fresh = _NONE, _NONE, _NONE
    for i in range(begin, end):
        if i + 2 * _AHEAD < end:
            prefetch(indptr, items[i + 2 * _AHEAD])
        if i + _AHEAD < end:
            prefetch(neighbours, np.int64(indptr[items[i + _AHEAD]]))
            prefetch(weights, np.int64(indptr[items[i + _AHEAD]]) if WEIGHTED else 0)
        u = np.int64(items[i])
        first, last = np.int64(indptr[u]), np.int64(indptr[u + 1])
        k = first
        if has_limit:
            left -= _edges_left(arrays, u, last - first)
            if arrays.waiting[u] & SENT == 0:
                fresh += last - first
            if arrays.waiting[u] & CHANGED == 0:
                k += np.int64(arrays.position[u])
        scanned -= k
        message = send(arrays, u, weights[0])
        while k < last:
            if WEIGHTED:
                message = send(arrays, u, weights[k])
            if np.float64(message) >= limit:
                break
            v = np.int64(neighbours[k])
            k += 1
            if not _is_taken(arrays, v, message) or not merge(arrays, v, message):
                continue
            if exchange(arrays.touched, v, number) != number:
                at = push_item(arrays, loop.TOUCHED, touched_items, at, v, me)
        scanned += k
        if has_limit:
            arrays.waiting[u] = (arrays.waiting[u] & LISTED) | SENT
            if k < last and message < IDENTITY:
                far_at = _wait(control, arrays, u, np.float64(message), far_at, me)
            else:
                k = last
            arrays.position[u] = k - first
            left += last - k
    arrays.cursor[me, loop.TOUCHED], arrays.cursor[me, loop.FAR] = at, far_at
    return scanned, left, fresh


@inlined
def _is_taken(arrays, v, message):
    """Tell whether a vertex takes a message; rounding both to float64 keeps their order."""
    if np.float64(message) > priority(arrays, v):
        return False
    return receives(arrays, v) and takes(arrays, v, message)


@kernel(counted=False, inner=True)
def _mark_senders(control, arrays, chunk, me):
    """Set the bits of vertices to pull from, and note that they sent all messages.

    Returns the change in unread edges of begun lists, and edges of newly begun lists.
    """
    begin, end = block_of(arrays.next_blocks, chunk)
    items = arrays.next[control[loop.SIDES] >> loop.NEXT & 1]
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    left, fresh = _NONE, _NONE
    for i in range(begin, end):
        u = np.int64(items[i])
        degree = np.int64(arrays.indptr[u + 1] - arrays.indptr[u])
        left -= _edges_left(arrays, u, degree)
        if arrays.waiting[u] & SENT == 0:
            fresh += degree
        arrays.waiting[u] = (arrays.waiting[u] & LISTED) | SENT
        arrays.position[u] = degree
        atomic_or(active, u >> 6, np.uint64(1) << np.uint64(u & 63))
        own = priority(arrays, u)
        if not own >= arrays.lowest[me, monotone_loop.SENDER_PRIORITY]:
            arrays.lowest[me, monotone_loop.SENDER_PRIORITY] = own
            arrays.lowest[me, monotone_loop.SENDER] = u
    return left, fresh, _NONE


@kernel(counted=False, inner=True)
def _gather_in_order(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    at = arrays.cursor[me, loop.TOUCHED]
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    indptr, neighbours = arrays.backward_indptr, arrays.backward_neighbours
    weights, combined = arrays.backward_weights, arrays.combined
    lowest = np.int64(arrays.limits[monotone_loop.LOWEST_SENDER])
    floor = arrays.limits[monotone_loop.FLOOR]
    order, is_directed = arrays.backward_order, arrays.is_directed != 0
    edges, receivers = _NONE, _NONE
    for v in range(begin, end):
        own = priority(arrays, v)
        if own < floor or not receives(arrays, v):
            continue
        receivers += 1
        first, last = np.int64(indptr[v]), np.int64(indptr[v + 1])
        total, k = IDENTITY, first
        while k < last:
            entry = first + np.int64(order[k]) if WEIGHTED and is_directed else k
            weight = weights[entry] if WEIGHTED else weights[0]
            least = send(arrays, lowest, weight)
            if least >= total or np.float64(least) > own:
                break
            u = np.int64(neighbours[entry])
            k += 1
            if is_active(active, u):
                message = send(arrays, u, weight)
                if message < total and _is_taken(arrays, v, message):
                    total = message
        edges += k - first
        if total < IDENTITY:
            combined[v] = total
            at = push_item(arrays, loop.TOUCHED, arrays.touched_items, at, v, me)
    arrays.cursor[me, loop.TOUCHED] = at
    return edges, receivers, _NONE


@kernel(counted=False, inner=True)
def _select_due(control, arrays, chunk, me):
    """List vertices of FAR that are in the bucket, or sent a part if IS_LAST; keep the others."""
    begin, end = block_of(arrays.far_blocks, chunk)
    items = arrays.far[control[loop.SIDES] >> loop.FAR & 1]
    at, far_at = arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR]
    bucket_end, is_last = arrays.limits[loop.END], arrays.limits[monotone_loop.IS_LAST] != 0.0
    active = _NONE
    for i in range(begin, end):
        v = np.int64(items[i])
        due = arrays.due[v]
        arrays.waiting[v] &= ~LISTED
        if due == np.inf:
            continue
        if due < bucket_end or (is_last and arrays.waiting[v] == SENT):
            active += 1
            arrays.due[v] = np.inf
            at = push_item(arrays, loop.NEXT, arrays.next[written(control, loop.NEXT)], at, v, me)
        else:
            far_at = _wait(control, arrays, v, due, far_at, me)
    arrays.cursor[me, loop.NEXT], arrays.cursor[me, loop.FAR] = at, far_at
    return active, _NONE, _NONE


PHASES = PHASES | {
    loop.PUSH: _push_below_limit, loop.MARK: _mark_senders, loop.GATHER: _gather_in_order,
    loop.SELECT: _select_due,
}  # fmt: skip
