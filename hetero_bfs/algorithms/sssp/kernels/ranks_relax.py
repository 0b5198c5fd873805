"""A window of a shortest-path search on several ranks: the part of one rank.

A rank relaxes the edges of its own vertices, whose neighbour lists are sorted by weight. The phases
and the two strategies of relaxing are one process's (algorithms/sssp/kernels/phases.py):

    PREFIX  A vertex relaxes the edges that end within the window, and goes on in the next one.
    FULL    A vertex relaxes all its edges.

Arrays (D is float32, float64 or int64; columns are explained in ranks/partition.py). `indptr`,
`neighbours` and `weights` have the out-edges, and `backward_*` the in-edges. They are the same
arrays for an undirected graph. In-edges of a directed graph are not sorted: `backward_order` has
their order by weight.

    distance    D (columns,)        smallest distance found so far; for vertices of other ranks, the
                                    smallest that this rank sent, or that the owner sent to all
    relaxed     D (own,)            distance with which a vertex relaxed edges last; -1 before
    position    uint32 (own,)       number of entries that it relaxed then
    queue       uint32 (own,)       ring of own vertices whose distance fell within the window
    queued      uint8 (own,)        whether a vertex is in the ring
    active      uint32 (own,)       vertices with edges for later windows, or that are beyond
    listed      uint8 (own,)        whether a vertex is in `active`
    outbox      uint32 (columns,)   columns of other ranks whose distance fell
    noted       uint8 (columns,)    whether a column is in `outbox`
    window      D (2,)              END, INFINITY
    lowest      D (1,)              smallest distance that waits for a later window
    counts      int64 (8,)          see below
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.sssp.kernels.phases import best_by_settled
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import prefetch

END, INFINITY = range(2)

HEAD, QUEUED, LISTED, OUTBOX, LEFT, UNSETTLED, SOURCE, OVERFLOW = range(8)
"""Items of `counts`: start and length of the ring; lengths of `active` and of `outbox`; entries
left of vertices that relaxed some, and entries of all other vertices; the source's own number, or
-1; whether a distance exceeds the type."""

_AHEAD = 8  # vertices whose neighbour lists are prefetched
_ON, _OFF = np.uint8(1), np.uint8(0)


@kernel(counted=False)
def begin(arrays, source):
    """Reset the arrays; `source` is a number of this rank, or -1."""
    arrays.distance[:] = arrays.window[INFINITY]
    arrays.relaxed[:] = -1
    arrays.queued[:] = _OFF
    arrays.listed[:] = _OFF
    arrays.noted[:] = _OFF
    arrays.counts[:] = 0
    arrays.counts[SOURCE] = source
    arrays.counts[UNSETTLED] = arrays.neighbours.size
    arrays.lowest[0] = arrays.window[INFINITY]
    if source >= 0:
        arrays.distance[source] = arrays.lowest[0] = 0
        _list_active(arrays, source)


@njit(inline="always")
def _list_active(arrays, v):
    if arrays.listed[v] == _OFF:
        arrays.listed[v] = _ON
        arrays.active[arrays.counts[LISTED]] = v
        arrays.counts[LISTED] += 1


@njit(inline="always")
def _queue(arrays, v):
    if arrays.queued[v] == _OFF:
        arrays.queued[v] = _ON
        counts, ring = arrays.counts, arrays.queue
        at = counts[HEAD] + counts[QUEUED]
        ring[at - ring.size if at >= ring.size else at] = v
        counts[QUEUED] += 1


@njit(inline="always")
def _has_fallen(arrays, v):
    """Put an own vertex whose distance fell into the queue, or beyond the window into `active`."""
    if arrays.distance[v] < arrays.window[END]:
        _queue(arrays, v)
    else:
        arrays.lowest[0] = min(arrays.lowest[0], arrays.distance[v])
        _list_active(arrays, v)


@njit(inline="always")
def _relax(arrays, u, limit):
    """Relax the edges of `u` that end below the limit. Return their number, and if any remain."""
    distance, neighbours, weights = arrays.distance, arrays.neighbours, arrays.weights
    counts, infinity = arrays.counts, arrays.window[INFINITY]
    first, last = np.int64(arrays.indptr[u]), np.int64(arrays.indptr[u + 1])
    start, k = distance[u], first
    if arrays.relaxed[u] == start:
        k += np.int64(arrays.position[u])
        counts[LEFT] -= last - k
    elif arrays.relaxed[u] < 0:
        counts[UNSETTLED] -= last - first
    else:
        counts[LEFT] -= last - first - np.int64(arrays.position[u])
    if last - first == 1 and arrays.is_directed == 0 and u != counts[SOURCE]:
        k = last  # its only edge leads back to the vertex that its distance came from
    arrays.relaxed[u] = start
    since = k
    while k < last:
        reached = distance.dtype.type(start + weights[k])
        if reached >= limit:
            break
        v = neighbours[k]
        k += 1
        if reached >= distance[v]:
            continue
        distance[v] = reached
        if v < arrays.searched:
            _has_fallen(arrays, v)
        elif arrays.noted[v] == _OFF:
            arrays.noted[v] = _ON
            arrays.outbox[counts[OUTBOX]] = v
            counts[OUTBOX] += 1
    scanned = k - since
    if k < last:
        reached = distance.dtype.type(start + weights[k])
        if reached < infinity:
            arrays.lowest[0] = min(arrays.lowest[0], reached)
        else:
            counts[OVERFLOW] |= np.int64(weights[k] < infinity)
            k = last  # this edge and all later ones lead to infinity
    arrays.position[u] = k - first
    counts[LEFT] += last - k
    return scanned, k < last


@kernel(counted=False)
def relax_active(arrays, end, is_full):
    """Begin a window: relax the active vertices within it, then those they reach.

    Returns vertices and edges relaxed.
    """
    arrays.window[END] = end
    arrays.lowest[0] = arrays.window[INFINITY]
    limit = arrays.window[INFINITY] if is_full else end
    waiting, vertices, edges = arrays.counts[LISTED], np.int64(0), np.int64(0)
    arrays.counts[LISTED] = 0
    for i in range(waiting):
        u = np.int64(arrays.active[i])
        arrays.listed[u] = _OFF
        reached = arrays.distance[u]
        if reached >= end:
            arrays.lowest[0] = min(arrays.lowest[0], reached)
            _list_active(arrays, u)
        elif arrays.relaxed[u] != reached or not is_full:
            scanned, is_left = _relax(arrays, u, limit)
            vertices += 1
            edges += scanned
            if is_left:
                _list_active(arrays, u)
    more = relax_queue(arrays, is_full)
    return vertices + more[0], edges + more[1]


@kernel(counted=False)
def relax_queue(arrays, is_full):
    """Relax the vertices in the ring until it is empty; return vertices and edges relaxed."""
    counts, ring = arrays.counts, arrays.queue
    limit = arrays.window[INFINITY] if is_full else arrays.window[END]
    vertices, edges = np.int64(0), np.int64(0)
    while counts[QUEUED]:
        head = counts[HEAD]
        if counts[QUEUED] > _AHEAD:
            ahead = head + _AHEAD
            later = ring[ahead - ring.size if ahead >= ring.size else ahead]
            at = np.int64(arrays.indptr[later])
            prefetch(arrays.neighbours, at)
            prefetch(arrays.weights, at)
        u = np.int64(ring[head])
        counts[HEAD] = head + 1 if head + 1 < ring.size else 0
        counts[QUEUED] -= 1
        arrays.queued[u] = _OFF
        scanned, is_left = _relax(arrays, u, limit)
        vertices += 1
        edges += scanned
        if is_left:
            _list_active(arrays, u)
    return vertices, edges


@kernel(counted=False)
def take_outbox(arrays, messages):
    """Move the distances of the columns in `outbox` to `messages`; return their number."""
    count = arrays.counts[OUTBOX]
    for i in range(count):
        column = arrays.outbox[i]
        messages[i] = arrays.distance[column]
        arrays.noted[column] = _OFF
    arrays.counts[OUTBOX] = 0
    return count


@kernel(counted=False)
def take_in(arrays, numbers, messages):
    """Apply the distances that other ranks found for own vertices."""
    for i in range(numbers.size):
        v = np.int64(numbers[i])
        if messages[i] < arrays.distance[v]:
            arrays.distance[v] = messages[i]
            _has_fallen(arrays, v)


@kernel(counted=False)
def pull(arrays):
    """Give own vertices beyond the window the best distance by a neighbour within it.

    The distances of all ranks must be known. Afterwards `active` has the reached vertices beyond
    the window. Returns the vertices that scanned edges, and these edges.
    """
    settled, infinity = arrays.window[END], arrays.window[INFINITY]
    arrays.counts[LISTED] = 0
    arrays.listed[:] = _OFF
    arrays.lowest[0] = infinity
    vertices, edges = np.int64(0), np.int64(0)
    for v in range(arrays.searched):
        if arrays.distance[v] < settled:
            continue
        best, scanned, is_beyond = best_by_settled(arrays, v, settled, infinity)
        arrays.counts[OVERFLOW] |= np.int64(is_beyond)
        vertices += 1
        edges += scanned
        if best < infinity:
            arrays.distance[v] = best
            arrays.lowest[0] = min(arrays.lowest[0], best)
            _list_active(arrays, v)
    return vertices, edges


@kernel(counted=False)
def adopt(arrays, parent, numbers, count):
    """Give a parent to each vertex that is as near as a neighbour that has a parent.

    The first `count` items of the queue are own vertices with new parents. Own neighbours get
    parents at once. Neighbours on other ranks go to `outbox`, each once a search, and their parents
    to `numbers`.
    """
    distance, neighbours, weights = arrays.distance, arrays.neighbours, arrays.weights
    queue, at, outbox_size = arrays.queue, np.int64(0), np.int64(0)
    while at < count:
        u = queue[at]
        at += 1
        reached = distance[u]
        for k in range(np.int64(arrays.indptr[u]), np.int64(arrays.indptr[u + 1])):
            if distance.dtype.type(reached + weights[k]) > reached:
                break
            v = neighbours[k]
            if distance[v] != reached:
                continue
            if v >= arrays.searched:
                if arrays.noted[v] == _OFF:
                    arrays.noted[v] = _ON
                    arrays.outbox[outbox_size], numbers[outbox_size] = v, u
                    outbox_size += 1
            elif parent[v] == NO_ID:
                parent[v] = u
                queue[count] = v
                count += 1
    return outbox_size


@kernel(counted=False)
def take_parents(arrays, parent, numbers, messages, received, first_column):
    """Apply parents from other ranks; queue the vertices that got one, and return their number."""
    count, begin = np.int64(0), np.int64(0)
    for rank in range(received.size):
        for i in range(begin, begin + received[rank]):
            v = numbers[i]
            if parent[v] == NO_ID:
                parent[v] = first_column[rank] + np.int64(messages[i])
                arrays.queue[count] = v
                count += 1
        begin += received[rank]
    return count
