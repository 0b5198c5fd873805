"""The phases of a vertex program on several ranks; programs/ranks.py has their loop.

host_code.py copies this text, with a program's own adapters instead of the import below.

A rank's own vertices come first: vertices with edges, numbered below `searched`, then isolated
ones. Neighbour lists hold columns (ranks/partition.py); the first columns are the own vertices. A
rank knows the states of its own vertices only. It sends messages to other ranks' vertices. In pulls
of messages without weights it reads the messages of all vertices from `outgoing`.

Arrays of a run:

    state_*     (own,)              the program's fields
    names       uint32 (own,)       the caller's ids
    degree      uint32 (own,)       number of edges; in a directed graph, of out-edges
    combined    (columns,)          messages combined so far, where `mark` has this push's number
    mark        int32 (columns,)    the last push that met the column
    outgoing    (columns,) or (1,)  each vertex's message; IDENTITY for inactive vertices
    waiting     uint8 (searched,)   whether an active vertex is listed
    outbox, outbox_messages             outbox: columns of other ranks, and messages to them
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.programs.kernels.adapters import (
    ALL_ACTIVE,
    HAS_IDENTITY,
    HAS_PRIORITY,
    IDENTITY,
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
from hetero_bfs.support.compiling import kernel

_ZERO = np.int64(0)


@njit(inline="always")
def _list(arrays, listed, count, v):
    """List an active vertex unless it is listed; return the number of listed vertices."""
    if ALL_ACTIVE or v >= arrays.searched or arrays.waiting[v]:
        return count
    arrays.waiting[v] = 1
    listed[count] = v
    return count + 1


@kernel(counted=False)
def begin(arrays, listed, sums):
    """Write the initial states; return the numbers of listed and of active vertices."""
    clear_totals(sums)
    arrays.waiting[:] = 0
    count, active = _ZERO, _ZERO
    for v in range(arrays.own):
        if start(arrays, v, sums):
            active += 1
            count = _list(arrays, listed, count, v)
    return count, active


@kernel(counted=False)
def lowest(arrays, listed, count):
    """Return the lowest priority of the listed vertices; inf if there are none."""
    least = np.inf
    for i in range(count):
        least = min(least, priority(arrays, np.int64(listed[i])))
    return least


@kernel(counted=False)
def take_due(arrays, listed, count, end, due):
    """Move listed vertices with a priority below `end` to `due`.

    Returns the numbers of these vertices, of their edges, and of vertices still listed.
    """
    num_due, edges, kept = _ZERO, _ZERO, _ZERO
    for i in range(count):
        v = np.int64(listed[i])
        if HAS_PRIORITY and priority(arrays, v) >= end:
            listed[kept] = v
            kept += 1
            continue
        arrays.waiting[v] = 0
        due[num_due] = v
        num_due += 1
        edges += np.int64(arrays.degree[v])
    return num_due, edges, kept


@njit(inline="always")
def _merge(arrays, v, message, number):
    """Combine a message with the others of this push; send whether it is the first one."""
    if arrays.mark[v] != number:
        arrays.mark[v] = number
        arrays.combined[v] = message
        return True
    arrays.combined[v] = combine(arrays.combined[v], message)
    return False


@kernel(counted=False)
def push(arrays, due, count, number, combines, touched):
    """Send messages along the edges of the vertices in `due`.

    Messages to own vertices are combined. Messages to other ranks' vertices go to the outbox
    `outbox`, combined beforehand if `combines`. Returns the sizes of `touched` and of `outbox`.
    """
    indptr, neighbours, weights = arrays.indptr, arrays.neighbours, arrays.weights
    outbox, outbox_messages = arrays.outbox, arrays.outbox_messages
    num_touched, outbox_size = _ZERO, _ZERO
    for i in range(count):
        u = np.int64(due[i])
        message = send(arrays, u, weights[0])
        for k in range(indptr[u], indptr[u + 1]):
            v = np.int64(neighbours[k])
            if WEIGHTED:
                message = send(arrays, u, weights[k])
            if HAS_IDENTITY and message == IDENTITY:
                continue
            if v >= arrays.searched:
                if not combines:
                    outbox_messages[outbox_size] = message
                elif not _merge(arrays, v, message, number):
                    continue
                outbox[outbox_size] = v
                outbox_size += 1
            elif (
                receives(arrays, v)
                and takes(arrays, v, message)
                and _merge(arrays, v, message, number)
            ):
                touched[num_touched] = v
                num_touched += 1
    if combines:
        for i in range(outbox_size):
            outbox_messages[i] = arrays.combined[outbox[i]]
    return num_touched, outbox_size


@kernel(counted=False)
def take_in(arrays, numbers, messages, number, touched, count):
    """Combine messages from other ranks to own vertices; return how many are touched."""
    for i in range(numbers.size):
        v, message = np.int64(numbers[i]), messages[i]
        if receives(arrays, v) and takes(arrays, v, message) and _merge(arrays, v, message, number):
            touched[count] = v
            count += 1
    return count


@kernel(counted=False)
def apply_touched(arrays, touched, count, listed, num_listed, sums):
    clear_totals(sums)
    active = _ZERO
    for i in range(count):
        v = np.int64(touched[i])
        if apply(arrays, v, arrays.combined[v], sums):
            active += 1
            num_listed = _list(arrays, listed, num_listed, v)
    return num_listed, active


@kernel(counted=False)
def apply_all(arrays, number, sums):
    """Apply the messages of this push to all own vertices; return how many are active."""
    clear_totals(sums)
    active = _ZERO
    for v in range(arrays.own):
        got = v < arrays.searched and arrays.mark[v] == number
        active += apply(arrays, v, arrays.combined[v] if got else IDENTITY, sums)
    return active


@kernel(counted=False)
def prepare(arrays, due, count):
    """Write the messages of own vertices to `outgoing`."""
    outgoing = arrays.outgoing
    if ALL_ACTIVE:
        for u in range(arrays.searched):
            outgoing[u] = send(arrays, u, arrays.weights[0])
        return
    for u in range(arrays.searched):
        outgoing[u] = IDENTITY
    for i in range(count):
        outgoing[due[i]] = send(arrays, np.int64(due[i]), arrays.weights[0])


@kernel(counted=False)
def pull(arrays, listed, num_listed, sums):
    """Gather from `outgoing` and apply; return numbers of listed and active vertices and scanned
    edges.

    Messages do not depend on the states that others apply, so each vertex applies at once.
    """
    clear_totals(sums)
    indptr, neighbours = arrays.backward_indptr, arrays.backward_neighbours
    outgoing = arrays.outgoing
    active, scanned = _ZERO, _ZERO
    for v in range(arrays.searched):
        combined = IDENTITY
        if receives(arrays, v):
            for k in range(indptr[v], indptr[v + 1]):
                scanned += 1
                message = outgoing[neighbours[k]]
                if message != IDENTITY and takes(arrays, v, message):
                    combined = combine(combined, message)
                    if is_final(combined):
                        break
        if (ALL_ACTIVE or combined != IDENTITY) and apply(arrays, v, combined, sums):
            active += 1
            num_listed = _list(arrays, listed, num_listed, v)
    if ALL_ACTIVE:
        for v in range(arrays.searched, arrays.own):
            active += apply(arrays, v, IDENTITY, sums)
    return num_listed, active, scanned


@kernel(counted=False)
def ends(arrays):
    return finished(arrays)
