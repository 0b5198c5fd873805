"""One level of breadth-first search on the CPU, top-down or bottom-up (bfs.cl is its twin).

State, the same on every device (n vertices searched, m stored edges):

    parent        uint32 (n,)       parent in this search; on the CPU an entry counts only if its
                                    vertex is visited (frontier.py, `forget_stale_parents`), on
                                    other devices it is 0xFFFFFFFF while unvisited; a device
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

The loops are split so that none waits for memory or guesses branches needlessly: candidates are
gathered without branches, then claimed, then their parents written; lists that will be read are
prefetched.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.kernels.intrinsics import (
    atomic_add,
    atomic_or,
    population_count,
    prefetch,
    trailing_zeros,
)

CHUNK_EDGES = 4096
"""Most edges in a chunk of top-down; a thread's scratch arrays hold one more item."""

BLOCK_WORDS = CHUNK_EDGES // 32
"""Bitmap words that bottom-up works through at a time."""

_AHEAD = 8  # queue entries between prefetching a list and reading it
_DENSE = 10  # unvisited vertices of a word from which all 32 are tested without branches
_ONE = np.uint32(1)
_WORD_MASK = np.uint32(31)
_WORD_SHIFT = np.uint32(5)
_FULL = np.uint32(0xFFFFFFFF)


@njit(inline="always")
def _is_visited(visited, v):
    return (visited[v >> _WORD_SHIFT] >> (v & _WORD_MASK)) & _ONE


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
def top_down_alone(
    queue, count, indptr, indices, visited, parent, next_queue, next_offsets, source
):
    """Expand a small frontier by one thread, without atomics; return vertices and edges found.

    `source` is uint32 scratch for as many vertices as the frontier has edges, and one more.
    """
    found = 0
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(indices, indptr[queue[i + _AHEAD]])
        u = queue[i]
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            word = v >> _WORD_SHIFT
            seen = visited[word]
            next_queue[found] = v
            source[found] = u
            found += np.int64(_ONE - ((seen >> (v & _WORD_MASK)) & _ONE))
            visited[word] = seen | (_ONE << (v & _WORD_MASK))
    kept, edges = 0, np.int64(0)
    for i in range(found):
        v = next_queue[i]
        parent[v] = source[i]
        degree = indptr[v + 1] - indptr[v]
        next_queue[kept] = v
        next_offsets[kept] = edges
        kept += np.int64(degree > 0)
        edges += degree
    return kept, edges


@njit(cache=True, nogil=True)
def _gather_candidates(begin, end, queue, offsets, count, indptr, indices, visited, found, source):
    """List the unvisited ends of the frontier's edges [begin, end), duplicates included."""
    taken = 0
    entry = _first_entry(offsets, count, begin)
    edge = begin
    while edge < end:
        if entry + _AHEAD < count:
            prefetch(indices, indptr[queue[entry + _AHEAD]])
        u = queue[entry]
        start = indptr[u] + (edge - offsets[entry])
        stop = min(indptr[u + 1], start + (end - edge))
        for k in range(start, stop):
            v = indices[k]
            found[taken] = v
            source[taken] = u
            taken += np.int64(_ONE - _is_visited(visited, v))
        edge += stop - start
        entry += 1
    return taken


@njit(cache=True, nogil=True)
def top_down_chunk(
    begin,
    end,
    queue,
    offsets,
    count,
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
    source,
):
    """Expand edges [begin, end) of the frontier, beside other threads.

    `found` and `source` are this thread's scratch, uint32 (CHUNK_EDGES + 1,). What was found is
    queued, and counted in `counter`.
    """
    candidates = _gather_candidates(
        begin, end, queue, offsets, count, indptr, indices, visited, found, source
    )
    claimed = 0
    for i in range(candidates):
        v = found[i]
        bit = _ONE << (v & _WORD_MASK)
        before = atomic_or(visited, v >> _WORD_SHIFT, bit)
        found[claimed] = v
        source[claimed] = source[i]
        claimed += np.int64((before & bit) == 0)
    kept, edges = 0, np.uint64(0)
    for i in range(claimed):
        v = found[i]
        parent[v] = source[i]
        found[kept] = v
        source[kept] = degree[v]
        kept += np.int64(degree[v] > 0)
        edges += np.uint64(degree[v])
    if kept == 0:
        return
    base = atomic_add(counter, 0, (np.uint64(kept) << np.uint64(edge_bits)) | edges)
    slot = np.int64(base >> np.uint64(edge_bits))
    offset = np.int64(base & ((np.uint64(1) << np.uint64(edge_bits)) - np.uint64(1)))
    for i in range(kept):
        next_queue[slot + i] = found[i]
        next_offsets[slot + i] = offset
        offset += source[i]


@njit(inline="always")
def _settle_dense(base, pending, first, degree, visited, parent):
    """Test the first neighbours of all 32 vertices of a word; return what was found, its edges."""
    fresh = np.uint32(0)
    edges = np.int64(0)
    for i in range(32):
        u = first[base + i]
        hit = (_is_visited(visited, u) & (pending >> np.uint32(i))) & _ONE
        fresh |= hit << np.uint32(i)
        parent[base + i] = u if hit else parent[base + i]
        edges += np.int64(degree[base + i] if hit else np.uint32(0))
    return fresh, edges


@njit(inline="always")
def _settle_sparse(base, pending, first, degree, visited, parent):
    """Test the first neighbours of a word's unvisited vertices."""
    fresh = np.uint32(0)
    edges = np.int64(0)
    while pending:
        position = trailing_zeros(pending)
        pending &= pending - _ONE
        v = base + np.int64(position)
        u = first[v]
        if _is_visited(visited, u):
            parent[v] = u
            fresh |= _ONE << position
            edges += np.int64(degree[v])
    return fresh, edges


@njit(cache=True, nogil=True)
def _settle_by_first(low, high, n, first, degree, visited, next_visited, parent, late):
    """Settle words [low, high) by first neighbours; list whom that does not settle in `late`."""
    count, edges, pending_count, left = 0, np.int64(0), 0, 0
    for word in range(low, high):
        seen = visited[word]
        base = np.int64(word) * 32
        pending = ~seen & _FULL
        if base + 32 > n:
            pending &= (_ONE << np.uint32(n - base)) - _ONE
        number = np.int64(population_count(pending))
        if number >= _DENSE and base + 32 <= n:
            fresh, more = _settle_dense(base, pending, first, degree, visited, parent)
        else:
            fresh, more = _settle_sparse(base, pending, first, degree, visited, parent)
        next_visited[word] = seen | fresh
        pending_count += number
        count += np.int64(population_count(fresh))
        edges += more
        rest = pending & ~fresh
        while rest:
            late[left] = base + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            left += 1
    return count, edges, pending_count, left


@njit(cache=True, nogil=True)
def _settle_by_lists(late, left, indptr, indices, degree, visited, next_visited, parent):
    """Look through the whole lists of the vertices in `late`, their first neighbours excepted."""
    count, edges, examined = 0, np.int64(0), 0
    for i in range(left):
        if i + _AHEAD < left:
            prefetch(indices, indptr[late[i + _AHEAD]] + 1)
        v = late[i]
        k, end = indptr[v] + 1, indptr[v + 1]
        begin = k
        while k < end and not _is_visited(visited, indices[k]):
            k += 1
        if k < end:
            parent[v] = indices[k]
            next_visited[v >> _WORD_SHIFT] |= _ONE << (v & _WORD_MASK)
            count += 1
            edges += np.int64(degree[v])
            k += 1
        examined += k - begin if k > begin else 0
    return count, edges, examined


@njit(cache=True, nogil=True)
def bottom_up_words(
    low, high, n, first, indptr, indices, degree, visited, next_visited, parent, late
):
    """Look for a visited neighbour of every unvisited vertex in the bitmap's words [low, high).

    `first`, `indptr` and `indices` belong to the transposed graph; `late` is uint32 scratch of
    CHUNK_EDGES items. Returns vertices found, their edges, and neighbours examined.
    """
    count, edges, examined = 0, np.int64(0), 0
    for start in range(low, high, BLOCK_WORDS):
        stop = min(high, start + BLOCK_WORDS)
        by_first, first_edges, pending, left = _settle_by_first(
            start, stop, n, first, degree, visited, next_visited, parent, late
        )
        by_list, list_edges, looked = _settle_by_lists(
            late, left, indptr, indices, degree, visited, next_visited, parent
        )
        count += by_first + by_list
        edges += first_edges + list_edges
        examined += pending + looked
    return count, edges, examined
