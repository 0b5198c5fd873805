"""Iterations in which each receiver goes through its messages one by one, as in messages.cl.

host_code.py appends this text to host.py if `apply` reads `messages`, and for other programs that
need to see both ends of an edge, or messages one by one, or that count equal messages. Messages
are not stored: `fetch` computes them from the states of the sender and of the receiver. So the new
states are stored aside until all vertices have gone through their messages. `combined` has a flag,
which `collect` returns: 0 if the
vertex does not apply, 2 if it applies and says that it is active, 1 if it applies else.

In a pull all vertices look for messages. A push first marks the receivers of active vertices in
`touched`; then only these look for messages.

All vertices are searched, including isolated ones. Arrays in addition to host.py's:

    new_*       (n,)        the new states of vertices that apply
    slot_messages, slot_counts      (threads, any)  hash tables that count messages to a vertex
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import block_of, chunk_of, push_item
from hetero_bfs.programs.kernels import loop
from hetero_bfs.programs.kernels.adapters import (
    ACTIVE_APPLY,
    ALL_ACTIVE,
    COUNTS,
    IDENTITY,
    SENDS_BACK,
    WEIGHTED,
    collect,
    receives,
    send,
    takes,
)
from hetero_bfs.programs.kernels.host import PHASES, is_active
from hetero_bfs.programs.schema import HASH_FACTOR, SLOTS
from hetero_bfs.support.compiling import kernel

_NONE = np.int64(0)


@njit(inline="always")
def sends(active, u):
    return ALL_ACTIVE or is_active(active, u)


@kernel(counted=False, inner=True)
def _collect(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    at = arrays.cursor[me, loop.TOUCHED]
    active = arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1]
    edges, receivers = _NONE, _NONE
    touches, number = arrays.loop[loop.TOUCHES] != 0, np.int32(control[loop.ROUND])
    for v in range(begin, end):
        if touches and arrays.touched[v] != number:
            continue
        first, count = np.int64(arrays.backward_indptr[v]), _NONE
        back_first, back_count = np.int64(arrays.indptr[v]), _NONE
        if receives(arrays, v):
            receivers += 1
            count = np.int64(arrays.backward_indptr[v + 1]) - first
            if SENDS_BACK:
                back_count = np.int64(arrays.indptr[v + 1]) - back_first
            edges += count + back_count
        flag = collect(arrays, active, v, first, count, back_first, back_count)
        arrays.combined[v] = flag
        if not ALL_ACTIVE and flag != 0:
            at = push_item(arrays, loop.TOUCHED, arrays.touched_items, at, v, me)
    arrays.cursor[me, loop.TOUCHED] = at
    return edges, receivers, _NONE


@njit(inline="always")
def _touch(touched, number, indptr, neighbours, u):
    for k in range(indptr[u], indptr[u + 1]):
        touched[neighbours[k]] = number
    return np.int64(indptr[u + 1] - indptr[u])


@kernel(counted=False, inner=True)
def _touch_receivers(control, arrays, chunk, me):
    begin, end = block_of(arrays.next_blocks, chunk)
    items = arrays.next[control[loop.SIDES] >> loop.NEXT & 1]
    touched, number, edges = arrays.touched, np.int32(control[loop.ROUND]), _NONE
    for i in range(begin, end):
        u = np.int64(items[i])
        if ACTIVE_APPLY:
            touched[u] = number
        edges += _touch(touched, number, arrays.indptr, arrays.neighbours, u)
        if SENDS_BACK:
            indptr, neighbours = arrays.backward_indptr, arrays.backward_neighbours
            edges += _touch(touched, number, indptr, neighbours, u)
    return edges, _NONE, _NONE


# A pull that takes the most frequent message to each vertex, as in messages.cl. Equal messages are
# counted in a hash table with open addressing. A vertex has SLOTS slots for each of its messages. A
# slot holds a message and its count, or `none`, a number that is never a message.

_FACTOR = np.uint64(HASH_FACTOR)
_HALF = np.uint64(32)


@njit(inline="always")
def count_message(messages, counts, size, message, none):
    """Count a message in the first `size` slots; return its count so far."""
    mixed = np.uint64(message) * _FACTOR >> _HALF
    slot = np.int64(mixed * np.uint64(size) >> _HALF)
    while messages[slot] != none:
        if messages[slot] == message:
            counts[slot] += 1
            return counts[slot]
        slot += 1
        if slot == size:
            slot = 0
    messages[slot] = message
    counts[slot] = 1
    return counts[slot]


@kernel(counted=False, inner=True)
def _count(control, arrays, chunk, me):
    """Take the most frequent message to each vertex; of equally frequent ones, the least."""
    begin, end = chunk_of(control, chunk)
    indptr, neighbours = arrays.backward_indptr, arrays.backward_neighbours
    weights, outgoing = arrays.backward_weights, arrays.outgoing
    messages, counts = arrays.slot_messages[me], arrays.slot_counts[me]
    edges, receivers = _NONE, _NONE
    for v in range(begin, end):
        best, most = IDENTITY, np.uint32(0)
        if receives(arrays, v):
            receivers += 1
            first, last = np.int64(indptr[v]), np.int64(indptr[v + 1])
            edges += last - first
            size = SLOTS * (last - first)
            messages[:size] = IDENTITY
            for k in range(first, last):
                u = np.int64(neighbours[k])
                message = send(arrays, u, weights[k]) if WEIGHTED else outgoing[u]
                if message == IDENTITY or not takes(arrays, v, message):
                    continue
                count = count_message(messages, counts, size, message, IDENTITY)
                if count > most or (count == most and message < best):
                    best, most = message, count
        arrays.combined[v] = best
    return edges, receivers, _NONE


if COUNTS:
    PHASES = PHASES | {loop.GATHER: _count}
else:
    PHASES = PHASES | {loop.GATHER: _collect}
    if not ALL_ACTIVE:
        PHASES[loop.PUSH] = _touch_receivers
