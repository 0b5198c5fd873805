"""One level of breadth-first search on the CPU, top-down or bottom-up (bfs.cl is its twin).

State, the same on every device (n vertices searched, m stored edges):

    parent        uint32 (n,)       parent in this search, 0xFFFFFFFF while unvisited; a device
                                    holds only the parents it found itself
    visited       uint32 (words,)   bit v % 32 of word v // 32: vertex v was found before or at
                                    the level's start; bottom-up reads this snapshot and writes
                                    `next_visited`, top-down claims vertices in place
    queue         uint32 (n,)       the frontier, vertices with at least one edge
    offsets       int64 (n,)        edges of the frontier before each queue entry; with the
                                    frontier's edge total this cuts a level into equal shares of
                                    edges, hubs included, by binary search
    counter       uint64 (1,)       vertices << edge_bits | edges of what was found: one atomic
                                    addition reserves a queue slot and its edge offset together

Bottom-up needs no frontier: an unvisited vertex's visited neighbour is always in the frontier.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hetero_bfs.kernels.intrinsics import atomic_add, atomic_or, population_count, trailing_zeros

CHUNK_EDGES = 4096
"""Edges that a thread takes at a time in top-down; also the capacity of its local queue."""

CHUNKS_PER_THREAD = 64
"""Shares of the bitmap per thread in bottom-up. They grow quadratically: after relabelling the
first words are the hubs', with the longest lists."""

_NO_VERTEX = np.uint32(0xFFFFFFFF)
_ONE = np.uint32(1)
_WORD_MASK = np.uint32(31)
_WORD_SHIFT = np.uint32(5)
_FULL = np.uint32(0xFFFFFFFF)


@njit(inline="always")
def _first_entry(offsets, count, edge):
    """Return the last queue entry whose edges start at or before `edge`."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) >> 1
        if offsets[middle] <= edge:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _push_chunk(
    begin, end, alone, queue, offsets, count, indptr, indices, degree, visited, parent, found
):
    """Expand edges [begin, end) of the frontier; list the vertices claimed in `found`."""
    taken = 0
    entry = _first_entry(offsets, count, begin)
    edge = begin
    while edge < end:
        u = queue[entry]
        start = indptr[u] + (edge - offsets[entry])
        stop = min(indptr[u + 1], start + (end - edge))
        for k in range(start, stop):
            v = indices[k]
            word = v >> _WORD_SHIFT
            bit = _ONE << (v & _WORD_MASK)
            if visited[word] & bit:
                continue
            if alone:
                visited[word] |= bit
            elif atomic_or(visited, word, bit) & bit:
                continue
            parent[v] = u
            if degree[v]:
                found[taken] = v
                taken += 1
        edge += stop - start
        entry += 1
    return taken


@njit(cache=True, nogil=True)
def _append(found, taken, degree, edge_bits, counter, next_queue, next_offsets):
    """Move a local queue to the shared one, reserving slots and edge offsets in one step."""
    edges = np.uint64(0)
    for i in range(taken):
        edges += np.uint64(degree[found[i]])
    base = atomic_add(counter, 0, (np.uint64(taken) << np.uint64(edge_bits)) | edges)
    slot = np.int64(base >> np.uint64(edge_bits))
    offset = np.int64(base & ((np.uint64(1) << np.uint64(edge_bits)) - np.uint64(1)))
    for i in range(taken):
        next_queue[slot + i] = found[i]
        next_offsets[slot + i] = offset
        offset += degree[found[i]]


@njit(cache=True, nogil=True, parallel=True)
def _top_down_team(
    queue,
    offsets,
    count,
    edges,
    indptr,
    indices,
    degree,
    visited,
    parent,
    next_queue,
    next_offsets,
    edge_bits,
    counter,
    found,
):
    chunks = (edges + CHUNK_EDGES - 1) // CHUNK_EDGES
    ticket = np.zeros(1, np.int64)
    for t in prange(found.shape[0]):
        while True:
            chunk = atomic_add(ticket, 0, 1)
            if chunk >= chunks:
                break
            begin = chunk * CHUNK_EDGES
            end = min(edges, begin + CHUNK_EDGES)
            taken = _push_chunk(
                begin,
                end,
                False,
                queue,
                offsets,
                count,
                indptr,
                indices,
                degree,
                visited,
                parent,
                found[t],
            )
            if taken:
                _append(found[t], taken, degree, edge_bits, counter, next_queue, next_offsets)


@njit(cache=True, nogil=True)
def top_down(
    queue,
    offsets,
    count,
    edges,
    indptr,
    indices,
    degree,
    visited,
    parent,
    next_queue,
    next_offsets,
    edge_bits,
    counter,
    found,
):
    """Push the frontier's edges: claim unvisited neighbours and queue them.

    `found` is uint32 (threads, CHUNK_EDGES), scratch. A frontier of one chunk or less is expanded
    by the calling thread alone, without atomics. Returns nothing; the counter has the outcome.
    """
    if edges > CHUNK_EDGES:
        _top_down_team(
            queue,
            offsets,
            count,
            edges,
            indptr,
            indices,
            degree,
            visited,
            parent,
            next_queue,
            next_offsets,
            edge_bits,
            counter,
            found,
        )
        return
    taken = _push_chunk(
        0, edges, True, queue, offsets, count, indptr, indices, degree, visited, parent, found[0]
    )
    _append(found[0], taken, degree, edge_bits, counter, next_queue, next_offsets)


@njit(inline="always")
def _is_visited(visited, v):
    return (visited[v >> _WORD_SHIFT] >> (v & _WORD_MASK)) & _ONE


@njit(inline="always")
def _find_visited(v, first, indptr, indices, visited):
    """Return the first visited neighbour of v and how many were looked at."""
    u = first[v]
    if u == _NO_VERTEX:
        return _NO_VERTEX, 0
    if _is_visited(visited, u):
        return u, 1
    begin, end = indptr[v], indptr[v + 1]
    for k in range(begin + 1, end):
        u = indices[k]
        if _is_visited(visited, u):
            return u, k - begin + 1
    return _NO_VERTEX, end - begin


@njit(cache=True, nogil=True)
def _bottom_up_words(
    low, high, first, indptr, indices, degree, visited, next_visited, parent, n, totals
):
    """Settle the unvisited vertices of words [low, high); add to totals (3,)."""
    count = np.int64(0)
    edges = np.int64(0)
    examined = np.int64(0)
    for word in range(low, high):
        seen = visited[word]
        fresh = np.uint32(0)
        pending = ~seen & _FULL
        while pending:
            position = trailing_zeros(pending)
            pending &= pending - _ONE
            v = np.int64(word) * 32 + position
            if v >= n:
                break
            u, looked = _find_visited(v, first, indptr, indices, visited)
            examined += looked
            if u != _NO_VERTEX:
                parent[v] = u
                fresh |= _ONE << position
                edges += degree[v]
        next_visited[word] = seen | fresh
        count += population_count(fresh)
    totals[0] += count
    totals[1] += edges
    totals[2] += examined


@njit(cache=True, nogil=True, parallel=True)
def bottom_up(first, indptr, indices, degree, visited, next_visited, parent, totals):
    """Look for a visited neighbour of every unvisited vertex.

    `first`, `indptr` and `indices` belong to the transposed graph. `totals` is int64
    (threads, 8), one cache line a thread: vertices found, their edges, neighbours examined.
    """
    n = parent.size
    words = visited.size
    chunks = CHUNKS_PER_THREAD * totals.shape[0]
    ticket = np.zeros(1, np.int64)
    for t in prange(totals.shape[0]):
        totals[t, :] = 0
        while True:
            chunk = atomic_add(ticket, 0, 1)
            if chunk >= chunks:
                break
            _bottom_up_words(
                words * chunk * chunk // (chunks * chunks),
                words * (chunk + 1) * (chunk + 1) // (chunks * chunks),
                first,
                indptr,
                indices,
                degree,
                visited,
                next_visited,
                parent,
                n,
                totals[t],
            )
