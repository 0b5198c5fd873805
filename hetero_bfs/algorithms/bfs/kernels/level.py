"""One level of breadth-first search on the CPU, top-down or bottom-up (top_down.cl and
bottom_up.cl are its twins).

State, the same on every device (n vertices searched, m stored edges):

    parent        uint32 (n,)       parent in this search; on the CPU an entry counts only if its
                                    vertex is visited (frontier.py, `invalidate_stale_parents`), on
                                    other devices it is 0xFFFFFFFF while unvisited; a device
                                    holds only the parents it found itself;
                                    what an unvisited vertex has there is none, or a vertex with an
                                    edge to it, or itself: `resolve_pushed_words` relies on it
    visited       uint32 (words,)   bit v % 32 of word v // 32: vertex v was found before or at
                                    the level's start; bottom-up reads this snapshot and writes
                                    `next_visited`, and so does top-down of a dense-push frontier on
                                    the CPU; else vertices are visited in place
    queue         uint32 (n,)       the frontier, vertices with at least one edge
    offsets       int64 (n,)        edges of the frontier before each queue entry; with the
                                    frontier's edge total this cuts a level into equal shares of
                                    edges, hubs included, by binary search
    segments      int64 (3, any)    on the CPU a queue may lie in several pieces, as owners of
                                    partitions left them (expand.py; known here when they hand it
                                    over); they have no offsets until they are joined
    counter       uint64 (1,)       vertices << edge_bits | edges of what was found: one atomic
                                    addition reserves a queue slot and its edge offset together

Bottom-up needs no frontier: an unvisited vertex's visited neighbour is always in the frontier.
On the CPU it lists whom it leaves unvisited. Once they are few, one thread looks through that list
until the search ends (`bottom_up_by_list`), instead of all through the bitmap, and queues what it
finds; other levels may come between, on other devices too, since who is visited is passed over.

`indptr` is uint32 where the edges allow it, which halves what a search of long paths reads. Lists
that will be read are prefetched a few queue entries ahead.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels.frontier import NO_VERTEX
from hetero_bfs.devices.cpu.vectors import resolve_pushed_word, resolve_word, visited_among_eight
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    atomic_add,
    atomic_or,
    population_count,
    prefetch,
    trailing_zeros,
)

CHUNK_EDGES = 4096
"""Most edges in a chunk of top-down, which a thread's scratch arrays hold."""

BLOCK_WORDS = CHUNK_EDGES // 32
"""Bitmap words that bottom-up works through at a time."""

_PREFETCH_DISTANCE = 8  # queue entries between fetching a list and reading it
_LINE_ITEMS = 16  # of a list, in a cache line
_MOST_ITEMS = 64  # prefetched of a list; of a longer one the processor fetches the rest by itself
_DENSE = 5  # unvisited vertices of a word from which all 32 are tested at once
_LANES = np.uint64(8)
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


@njit(inline="always")
def _prefetch_entries(queue, entry, count, indptr, indices):
    """Prefetch what later queue entries will read: offsets first, then the lists, all lines."""
    if entry + 2 * _PREFETCH_DISTANCE < count:
        prefetch(indptr, queue[entry + 2 * _PREFETCH_DISTANCE])
    if entry + _PREFETCH_DISTANCE < count:
        u = queue[entry + _PREFETCH_DISTANCE]
        low, high = np.int64(indptr[u]), np.int64(indptr[u + 1])
        for k in range(low, min(high, low + _MOST_ITEMS), _LINE_ITEMS):
            prefetch(indices, k)


@kernel(counted=False, inner=True)
def _claim(
    begin, end, queue, offsets, count, indptr, indices, degree, visited, parent, found, source
):
    """Claim the unvisited ends of the frontier's edges [begin, end); list them in `found`.

    Their parents go to `source`: stores that miss the cache would hold up the next atomic. Their
    degrees are prefetched.
    """
    entry = _first_entry(offsets, count, begin)
    edge, taken = begin, 0
    while edge < end:
        _prefetch_entries(queue, entry, count, indptr, indices)
        u = queue[entry]
        start = np.int64(indptr[u]) + (edge - offsets[entry])
        stop = min(np.int64(indptr[u + 1]), start + (end - edge))
        for k in range(np.uint64(start), np.uint64(stop)):
            v = indices[k]
            bit = _ONE << (v & _WORD_MASK)
            if visited[v >> _WORD_SHIFT] & bit:
                continue
            if atomic_or(visited, v >> _WORD_SHIFT, bit) & bit:
                continue
            found[taken] = v
            source[taken] = u
            taken += 1
            prefetch(parent, v)
            prefetch(degree, v)
        edge += stop - start
        entry += 1
    for i in range(taken):
        parent[found[i]] = source[i]
    return taken


@kernel(counted=False, inner=True)
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
    """Expand edges [begin, end) of a frontier of `count` vertices, beside other threads.

    `found` and `source` are this thread's scratch, uint32 (CHUNK_EDGES or more). What was found is
    queued, and counted in `counter`.
    """
    taken = _claim(
        begin, end, queue, offsets, count, indptr, indices, degree, visited, parent, found, source
    )
    kept, edges = 0, np.uint64(0)
    for i in range(taken):
        v = found[i]
        found[kept] = v
        kept += np.int64(degree[v] > 0)
        edges += np.uint64(degree[v])
    if kept == 0:
        return
    base = atomic_add(counter, 0, (np.uint64(kept) << np.uint64(edge_bits)) | edges)
    slot = np.int64(base >> np.uint64(edge_bits))
    offset = np.int64(base & ((np.uint64(1) << np.uint64(edge_bits)) - np.uint64(1)))
    for i in range(kept):
        v = found[i]
        next_queue[slot + i] = v
        next_offsets[slot + i] = offset
        offset += degree[v]


@kernel(counted=False, inner=True)
def push_dense_chunk(begin, end, queue, offsets, count, indptr, indices, visited, parent):
    """Write the frontier's edges [begin, end) to `parent` of their unvisited ends.

    What other threads write at the same time is as good: that of the last one stays.
    """
    entry = _first_entry(offsets, count, begin)
    edge = begin
    while edge < end:
        _prefetch_entries(queue, entry, count, indptr, indices)
        u = queue[entry]
        start = np.int64(indptr[u]) + (edge - offsets[entry])
        stop = min(np.int64(indptr[u + 1]), start + (end - edge))
        for k in range(np.uint64(start), np.uint64(stop)):
            v = indices[k]
            if not _is_visited(visited, v):
                parent[v] = u
        edge += stop - start
        entry += 1


@kernel(counted=False, inner=True)
def resolve_pushed_words(low, high, degree, visited, next_visited, parent):
    """Visit the unvisited vertices of the bitmap's words [low, high) whose parent is visited.

    Some parents are an earlier search's. That does not matter: they are neighbours that lead here,
    or the vertex itself if it was a source, and a visited neighbour of an unvisited vertex is in
    the frontier. Returns how many vertices it visits, and their edges.
    """
    count, edges = 0, np.int64(0)
    for word in range(np.uint64(low), np.uint64(high)):
        seen = visited[word]
        fresh, more = np.uint32(0), np.int64(0)
        begin, end = word * np.uint64(32), (word + np.uint64(1)) * np.uint64(32)
        if end > parent.size:
            for v in range(begin, np.uint64(parent.size)):
                bit = _ONE << (np.uint32(v) & _WORD_MASK)
                if not seen & bit and parent[v] != NO_VERTEX and _is_visited(visited, parent[v]):
                    fresh |= bit
                    more += np.int64(degree[v])
        elif seen != _FULL:
            fresh, more = resolve_pushed_word(word, ~seen, degree, visited, parent)
        next_visited[word] = seen | fresh
        count += np.int64(population_count(fresh))
        edges += more
    return count, edges


@njit(inline="always")
def _resolve_sparse(word, pending, first, degree, visited, parent):
    """Do what `resolve_word` does, vertex by vertex, for words with few unvisited vertices."""
    fresh = np.uint32(0)
    edges = np.int64(0)
    while pending:
        position = trailing_zeros(pending)
        pending &= pending - _ONE
        v = (np.uint32(word) << _WORD_SHIFT) | position
        u = first[v]
        if _is_visited(visited, u):
            parent[v] = u
            fresh |= _ONE << position
            edges += np.int64(degree[v])
    return fresh, edges


@kernel(counted=False, inner=True)
def _resolve_by_first(low, high, n, first, degree, visited, next_visited, parent, late):
    """Settle words [low, high) by first neighbours; list whom that does not settle in `late`."""
    count, edges, scanned, left = 0, np.int64(0), 0, 0
    for word in range(np.uint64(low), np.uint64(high)):
        seen = visited[word]
        remain = n - np.int64(word) * 32
        exist = _FULL if remain >= 32 else np.uint32((_ONE << np.uint32(remain)) - _ONE)
        pending = np.uint32(~seen & exist)
        if pending == 0:
            next_visited[word] = seen
            continue
        number = np.int64(population_count(pending))
        if number >= _DENSE and remain >= 32:
            fresh, more = resolve_word(word, pending, first, degree, visited, parent)
        else:
            fresh, more = _resolve_sparse(word, pending, first, degree, visited, parent)
        next_visited[word] = seen | fresh
        scanned += number
        count += np.int64(population_count(fresh))
        edges += more
        rest = pending & ~fresh
        while rest:
            late[left] = (np.uint32(word) << _WORD_SHIFT) | trailing_zeros(rest)
            rest &= rest - _ONE
            left += 1
    return count, edges, scanned, left


@njit(inline="always")
def _find_in_list(begin, end, indices, visited):
    """Return the position of the first visited neighbour in [begin, end), `end` if none is."""
    k = begin
    while k + _LANES <= end:
        hits = visited_among_eight(indices, k, visited)
        if hits:
            return k + np.uint64(trailing_zeros(hits))
        k += _LANES
    while k < end and not _is_visited(visited, indices[k]):
        k += np.uint64(1)
    return k


@kernel(counted=False, inner=True)
def _resolve_by_lists(late, left, indptr, indices, degree, visited, next_visited, parent):
    """Look through the whole lists of the vertices in `late`, their first neighbours excepted.

    Those that remain unvisited stay in it; returns their number as well.
    """
    count, edges, scanned, remain = 0, np.int64(0), np.uint64(0), 0
    for i in range(left):
        if i + _PREFETCH_DISTANCE < left:
            prefetch(indices, np.uint64(indptr[late[i + _PREFETCH_DISTANCE]]) + np.uint64(1))
        v = late[i]
        late[remain] = v
        remain += 1
        begin, end = np.uint64(indptr[v]) + np.uint64(1), np.uint64(indptr[v + 1])
        if begin >= end:
            continue
        k = _find_in_list(begin, end, indices, visited)
        scanned += k - begin
        if k < end:
            scanned += np.uint64(1)
            parent[v] = indices[k]
            next_visited[v >> _WORD_SHIFT] |= _ONE << (v & _WORD_MASK)
            count += 1
            edges += np.int64(degree[v])
            remain -= 1
    return count, edges, np.int64(scanned), remain


@njit(inline="always")
def _list_unvisited(late, count, counter, unvisited_list):
    """Add what remains unvisited to `unvisited_list`, as far as it has room."""
    slot = np.int64(atomic_add(counter, 0, np.uint64(count)))
    for i in range(min(count, unvisited_list.size - slot)):
        unvisited_list[slot + i] = late[i]


@kernel(counted=False, inner=True)
def bottom_up_words(
    low,
    high,
    n,
    first,
    indptr,
    indices,
    degree,
    visited,
    next_visited,
    parent,
    late,
    counter,
    unvisited_list,
):
    """Look for a visited neighbour of every unvisited vertex in the bitmap's words [low, high).

    `first`, `indptr` and `indices` belong to the transposed graph; `late` is uint32 scratch of
    CHUNK_EDGES items. Those that have none are counted in `counter`, and listed in `unvisited_list`
    while it has room. Returns vertices found, their edges, and neighbours edges_scanned.
    """
    count, edges, edges_scanned = 0, np.int64(0), 0
    for start in range(low, high, BLOCK_WORDS):
        stop = min(high, start + BLOCK_WORDS)
        by_first, first_edges, pending, left = _resolve_by_first(
            start, stop, n, first, degree, visited, next_visited, parent, late
        )
        by_list, list_edges, scanned, remain = _resolve_by_lists(
            late, left, indptr, indices, degree, visited, next_visited, parent
        )
        if remain:
            _list_unvisited(late, remain, counter, unvisited_list)
        count += by_first + by_list
        edges += first_edges + list_edges
        edges_scanned += pending + scanned
    return count, edges, edges_scanned


@kernel(counted=False, inner=True)
def bottom_up_by_list(unvisited_list, count, indptr, indices, visited, parent, found):
    """Look for a visited neighbour of each unvisited vertex in a list, alone; visit who has one.

    `indptr` and `indices` belong to the transposed graph. The list stays as it is, for measurements
    that repeat a level. Returns how many vertices `found` then begins with, and neighbours scanned
    at.
    """
    taken, scanned = 0, np.uint64(0)
    for i in range(count):
        if i + _PREFETCH_DISTANCE < count:
            prefetch(indices, np.uint64(indptr[unvisited_list[i + _PREFETCH_DISTANCE]]))
        v = unvisited_list[i]
        if _is_visited(visited, v):
            continue
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        k = _find_in_list(begin, end, indices, visited)
        scanned += k - begin
        if k < end:
            scanned += np.uint64(1)
            parent[v] = indices[k]
            found[taken] = v
            taken += 1
    for i in range(taken):  # not before: the others ask who was visited when the level began
        visited[found[i] >> _WORD_SHIFT] |= _ONE << (found[i] & _WORD_MASK)
    return taken, np.int64(scanned)
