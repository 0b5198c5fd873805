"""One level of breadth-first search on the CPU, top-down or bottom-up.

top_down.cl and bottom_up.cl do the same on OpenCL devices. job.py describes the parameters. The end
of this file converts a frontier from bitmap to queue, and ends a search, as common.cl does.

The state of a search is the same on every device. A graph has n searched vertices and m stored
edges.

    parent        uint32 (n,)       each vertex's parent in this search. On the CPU an entry counts
                                    only if its vertex is visited
                                    (`invalidate_stale_parents`); on other devices it is NO_VERTEX
                                    while its vertex is unvisited. A device has only the parents
                                    that it found itself. The entry of an unvisited vertex is
                                    NO_VERTEX, or a vertex with an edge to it, or the vertex itself:
                                    `resolve_pushed_words` (below) relies on that
    visited       uint32 (words,)   bit v % 32 of word v // 32 is set if vertex v is visited.
                                    Bottom-up and a dense push on the CPU read the bitmap as the
                                    level found it and write the other bitmap. Any other level
                                    sets bits in place
    queue         uint32 (n,)       the frontier, without vertices that have no edge
    offsets       int64 (n,)        edges of the frontier before each queue entry. A binary search
                                    in them cuts a level into equal shares of edges, and so divides
                                    hubs too
    segments      int64 (3, any)    on the CPU a queue may consist of several segments, left by
                                    owners of partitions (expand.py). Then it has no offsets until
                                    the segments are joined
    counter       uint64 (1,)       vertices << edge_bits | edges that a level found. One atomic
                                    addition reserves a queue slot and its edge offset together

Bottom-up needs no frontier: a visited neighbour of an unvisited vertex is always in the frontier.
On the CPU it lists the vertices that it leaves unvisited. At first all threads scan the bitmap.
Once few vertices are left, one thread scans the list (`bottom_up_by_list`) and queues the vertices
that it finds, until the search ends. Other levels may come between, also on other devices: the scan
skips visited vertices.

A masked search ignores some vertices. They count as visited from the start, so no level claims
them. Bottom-up and the dense push look for parents in another bitmap, `reached`, without the masked
vertices (`unmask`). Masked vertices have no parent in the result.

`indptr` is uint32 if the number of edges allows it. That halves its memory traffic in searches of
long paths. Neighbour lists are prefetched a few queue entries before they are read.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.job import edges_of, words_of
from hetero_bfs.devices.cpu.vectors import resolve_pushed_word, resolve_word, visited_among_eight
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.scheduling.schema import QUEUE_INDEX, UNVISITED_LISTED, VISITED_INDEX
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    atomic_add,
    atomic_or,
    population_count,
    prefetch,
    trailing_zeros,
)

CHUNK_EDGES = 4096
"""Maximum edges in a chunk of a top-down level; a thread's scratch arrays have room for them."""

BLOCK_WORDS = CHUNK_EDGES // 32
"""Words of the bitmap that bottom-up processes at a time."""

_PREFETCH_DISTANCE = 8  # queue entries between fetching a list and reading it
_LINE_ITEMS = 16  # list items in a cache line
_MOST_ITEMS = 64  # list items to prefetch; the processor prefetches the rest of a longer list
_DENSE = 5  # least unvisited vertices of a word for which all 32 are tested at once
_LANES = np.uint64(8)
ONE = np.uint32(1)
WORD_MASK = np.uint32(31)
WORD_SHIFT = np.uint32(5)
FULL = np.uint32(0xFFFFFFFF)


@njit(inline="always")
def is_visited(visited, v):
    return (visited[v >> WORD_SHIFT] >> (v & WORD_MASK)) & ONE


@njit(inline="always")
def reached_of(control, arrays):
    return arrays.reached if control[job.MASKED] else arrays.visited[control[job.VISITED]]


@njit(inline="always")
def reserve(arrays, vertices, edges):
    """Reserve queue slots for these numbers of vertices and edges.

    Returns the first slot, and the number of edges before it.
    """
    bits = np.uint64(arrays.edge_bits)
    before = atomic_add(arrays.counter, 0, (np.uint64(vertices) << bits) | np.uint64(edges))
    return np.int64(before >> bits), np.int64(before & ((np.uint64(1) << bits) - np.uint64(1)))


@njit(inline="always")
def queue_found(arrays, queue, offsets, found, kept, edges):
    slot, offset = reserve(arrays, kept, edges)
    for i in range(kept):
        v = found[i]
        queue[slot + i] = v
        offsets[slot + i] = offset
        offset += arrays.degree[v]


@njit(inline="always")
def first_entry(offsets, count, edge):
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
def prefetch_entries(queue, entry, count, indptr, indices):
    """Prefetch data of later queue entries: first the offsets, then the neighbour lists."""
    if entry + 2 * _PREFETCH_DISTANCE < count:
        prefetch(indptr, queue[entry + 2 * _PREFETCH_DISTANCE])
    if entry + _PREFETCH_DISTANCE < count:
        u = queue[entry + _PREFETCH_DISTANCE]
        low, high = np.int64(indptr[u]), np.int64(indptr[u + 1])
        for k in range(low, min(high, low + _MOST_ITEMS), _LINE_ITEMS):
            prefetch(indices, k)


@kernel(counted=False, inner=True)
def claim_chunk(control, arrays, chunk, me):
    """Claim the unvisited ends of a chunk of the frontier's edges; return their number.

    They go to the thread's `found`, their parents to its `source`. The caller writes the parents,
    since stores that miss the cache would delay the next atomic. Parents and degrees are
    prefetched.
    """
    this, count = control[job.QUEUE], control[job.VERTICES]
    queue, offsets = arrays.queue[this], arrays.offsets[this]
    indptr, indices, degree = arrays.indptr, arrays.indices, arrays.degree
    visited, parent = arrays.visited[control[job.VISITED]], arrays.parent
    found, source = arrays.found[me], arrays.source[me]
    edge, end = edges_of(control, chunk)
    entry = first_entry(offsets, count, edge)
    taken = 0
    while edge < end:
        prefetch_entries(queue, entry, count, indptr, indices)
        u = queue[entry]
        start = np.int64(indptr[u]) + (edge - offsets[entry])
        stop = min(np.int64(indptr[u + 1]), start + (end - edge))
        for k in range(np.uint64(start), np.uint64(stop)):
            v = indices[k]
            bit = ONE << (v & WORD_MASK)
            if visited[v >> WORD_SHIFT] & bit:
                continue
            if atomic_or(visited, v >> WORD_SHIFT, bit) & bit:
                continue
            found[taken] = v
            source[taken] = u
            taken += 1
            prefetch(parent, v)
            prefetch(degree, v)
        edge += stop - start
        entry += 1
    return taken


@kernel(counted=False, inner=True)
def top_down_chunk(control, arrays, chunk, me):
    """Expand a chunk of the frontier's edges, while other threads expand other chunks.

    The vertices found go to the other queue, and are counted in `counter`.
    """
    that = 1 - control[job.QUEUE]
    found, source, degree = arrays.found[me], arrays.source[me], arrays.degree
    next_queue, next_offsets, parent = arrays.queue[that], arrays.offsets[that], arrays.parent
    taken = claim_chunk(control, arrays, chunk, me)
    for i in range(taken):
        parent[found[i]] = source[i]
    kept, edges = 0, np.uint64(0)
    for i in range(taken):
        v = found[i]
        found[kept] = v
        kept += np.int64(degree[v] > 0)
        edges += np.uint64(degree[v])
    if kept == 0:
        return job.NONE, job.NONE, job.NONE
    queue_found(arrays, next_queue, next_offsets, found, kept, edges)
    return job.NONE, job.NONE, job.NONE


@njit(inline="always")
def _resolve_sparse(word, pending, first, degree, visited, parent):
    """Like `resolve_word`, vertex by vertex, for words with few unvisited vertices."""
    fresh = np.uint32(0)
    edges = np.int64(0)
    while pending:
        position = trailing_zeros(pending)
        pending &= pending - ONE
        v = (np.uint32(word) << WORD_SHIFT) | position
        u = first[v]
        if is_visited(visited, u):
            parent[v] = u
            fresh |= ONE << position
            edges += np.int64(degree[v])
    return fresh, edges


@kernel(counted=False, inner=True)
def _resolve_by_first(control, arrays, low, high, late):
    """Check the first neighbours of the unvisited vertices in words [low, high).

    Vertices whose first neighbour is unvisited are listed in `late`. Returns the number of vertices
    visited, their edges, the number of neighbours read, and the length of `late`.
    """
    this = control[job.VISITED]
    visited, next_visited = arrays.visited[this], arrays.visited[1 - this]
    reached, parent = reached_of(control, arrays), arrays.parent
    first, degree = arrays.first, arrays.degree
    count, edges, scanned, left = 0, np.int64(0), 0, 0
    for word in range(np.uint64(low), np.uint64(high)):
        seen = visited[word]
        remain = parent.size - np.int64(word) * 32
        exist = FULL if remain >= 32 else np.uint32((ONE << np.uint32(remain)) - ONE)
        pending = np.uint32(~seen & exist)
        if pending == 0:
            next_visited[word] = seen
            continue
        number = np.int64(population_count(pending))
        if number >= _DENSE and remain >= 32:
            fresh, more = resolve_word(word, pending, first, degree, reached, parent)
        else:
            fresh, more = _resolve_sparse(word, pending, first, degree, reached, parent)
        next_visited[word] = seen | fresh
        scanned += number
        count += np.int64(population_count(fresh))
        edges += more
        rest = pending & ~fresh
        while rest:
            late[left] = (np.uint32(word) << WORD_SHIFT) | trailing_zeros(rest)
            rest &= rest - ONE
            left += 1
    return count, edges, scanned, left


@njit(inline="always")
def _find_in_list(begin, end, indices, visited):
    """Return the position of the first visited neighbour in [begin, end), else `end`."""
    k = begin
    while k + _LANES <= end:
        hits = visited_among_eight(indices, k, visited)
        if hits:
            return k + np.uint64(trailing_zeros(hits))
        k += _LANES
    while k < end and not is_visited(visited, indices[k]):
        k += np.uint64(1)
    return k


@kernel(counted=False, inner=True)
def _resolve_by_lists(control, arrays, late, left):
    """Scan the lists of the first `left` vertices in `late`, without first neighbours.

    Vertices that remain unvisited stay in `late`. Returns the number of vertices visited, their
    edges, the number of neighbours read, and how many vertices stay.
    """
    indptr, indices, degree = arrays.backward_indptr, arrays.backward_indices, arrays.degree
    reached, next_visited = reached_of(control, arrays), arrays.visited[1 - control[job.VISITED]]
    parent = arrays.parent
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
        k = _find_in_list(begin, end, indices, reached)
        scanned += k - begin
        if k < end:
            scanned += np.uint64(1)
            parent[v] = indices[k]
            next_visited[v >> WORD_SHIFT] |= ONE << (v & WORD_MASK)
            count += 1
            edges += np.int64(degree[v])
            remain -= 1
    return count, edges, np.int64(scanned), remain


@njit(inline="always")
def _list_unvisited(arrays, late, count):
    """Append `count` vertices to `unvisited_list` while it has room; count all in `counter`."""
    unvisited_list = arrays.unvisited_list
    slot = np.int64(atomic_add(arrays.counter, 0, np.uint64(count)))
    for i in range(min(count, unvisited_list.size - slot)):
        unvisited_list[slot + i] = late[i]


@kernel(counted=False, inner=True)
def unmask(control, arrays, state):
    """Write `reached` before a level of a masked search that needs it."""
    if control[job.MASKED]:
        visited = arrays.visited[np.int64(state[VISITED_INDEX])]
        mask, reached = arrays.mask, arrays.reached
        for word in range(mask.size):
            reached[word] = visited[word] & ~mask[word]


@kernel(counted=False, inner=True)
def bottom_up_words(control, arrays, chunk, me):
    """Look for a visited neighbour of every unvisited vertex in a chunk of the bitmap.

    Vertices without one are counted in `counter`, and listed in `unvisited_list` while it has room.
    Returns the number of vertices found, their edges, and edges scanned.
    """
    low, high = words_of(control, arrays, chunk)
    late = arrays.found[me]
    count, edges, scanned = np.int64(0), np.int64(0), np.int64(0)
    for start in range(low, high, BLOCK_WORDS):
        stop = min(high, start + BLOCK_WORDS)
        by_first, first_edges, looks, left = _resolve_by_first(control, arrays, start, stop, late)
        by_list, list_edges, more_looks, remain = _resolve_by_lists(control, arrays, late, left)
        if remain:
            _list_unvisited(arrays, late, remain)
        count += by_first + by_list
        edges += first_edges + list_edges
        scanned += looks + more_looks
    return count, edges, scanned


@kernel(counted=False, inner=True)
def bottom_up_by_list(control, arrays, state):
    """Look for a visited neighbour of each vertex in `unvisited_list`, by one thread.

    The list stays unchanged, since measurements repeat a level. Found vertices go to the other
    queue. Returns their number, and edges scanned.
    """
    unvisited_list, count = arrays.unvisited_list, np.int64(state[UNVISITED_LISTED])
    indptr, indices = arrays.backward_indptr, arrays.backward_indices
    visited, parent = arrays.visited[np.int64(state[VISITED_INDEX])], arrays.parent
    reached = arrays.reached if control[job.MASKED] else visited
    found = arrays.queue[1 - np.int64(state[QUEUE_INDEX])]
    taken, scanned = np.int64(0), np.uint64(0)
    for i in range(count):
        if i + _PREFETCH_DISTANCE < count:
            prefetch(indices, np.uint64(indptr[unvisited_list[i + _PREFETCH_DISTANCE]]))
        v = unvisited_list[i]
        if is_visited(visited, v):
            continue
        begin, end = np.uint64(indptr[v]), np.uint64(indptr[v + 1])
        k = _find_in_list(begin, end, indices, reached)
        scanned += k - begin
        if k < end:
            scanned += np.uint64(1)
            parent[v] = indices[k]
            found[taken] = v
            taken += 1
    for i in range(taken):  # not earlier: the scan must see the bitmap of the level's start
        visited[found[i] >> WORD_SHIFT] |= ONE << (found[i] & WORD_MASK)
    return taken, np.int64(scanned)


# The dense push of breadth-first search on the CPU: a large level without atomics.
#
# Threads write the parents of unvisited vertices at the same time. Then they visit the vertices
# that got a parent, word by word.


@kernel(counted=False, inner=True)
def push_dense_chunk(control, arrays, chunk, me):
    """Write a chunk of the frontier's edges to `parent` of their unvisited ends.

    Several threads may write to the same vertex. Each of these parents is right; the last one
    stays.
    """
    this, count = control[job.QUEUE], control[job.VERTICES]
    queue, offsets = arrays.queue[this], arrays.offsets[this]
    indptr, indices = arrays.indptr, arrays.indices
    visited, parent = arrays.visited[control[job.VISITED]], arrays.parent
    edge, end = edges_of(control, chunk)
    entry = first_entry(offsets, count, edge)
    while edge < end:
        prefetch_entries(queue, entry, count, indptr, indices)
        u = queue[entry]
        start = np.int64(indptr[u]) + (edge - offsets[entry])
        stop = min(np.int64(indptr[u + 1]), start + (end - edge))
        for k in range(np.uint64(start), np.uint64(stop)):
            v = indices[k]
            if not is_visited(visited, v):
                parent[v] = u
        edge += stop - start
        entry += 1
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False, inner=True)
def resolve_pushed_words(control, arrays, chunk, me):
    """Visit the unvisited vertices of a chunk of the bitmap whose parent is visited.

    Some parents are from an earlier search. That does no harm: such a parent is a neighbour with an
    edge to the vertex, or the vertex itself if it was a source. If a neighbour of an unvisited
    vertex is visited, it is in the frontier. Returns the number of vertices visited, and of their
    edges.
    """
    this = control[job.VISITED]
    visited, next_visited = arrays.visited[this], arrays.visited[1 - this]
    reached, degree, parent = reached_of(control, arrays), arrays.degree, arrays.parent
    low, high = words_of(control, arrays, chunk)
    count, edges = np.int64(0), np.int64(0)
    for word in range(np.uint64(low), np.uint64(high)):
        seen = visited[word]
        fresh, more = np.uint32(0), np.int64(0)
        begin, end = word * np.uint64(32), (word + np.uint64(1)) * np.uint64(32)
        if end > parent.size:
            for v in range(begin, np.uint64(parent.size)):
                bit = ONE << (np.uint32(v) & WORD_MASK)
                if not seen & bit and parent[v] != NO_ID and is_visited(reached, parent[v]):
                    fresh |= bit
                    more += np.int64(degree[v])
        elif seen != FULL:
            fresh, more = resolve_pushed_word(word, ~seen, degree, reached, parent)
        next_visited[word] = seen | fresh
        count += np.int64(population_count(fresh))
        edges += more
    return count, edges, job.NONE


# The conversion of a frontier, and the end of a search.


@kernel(counted=False, inner=True)
def queue_words(control, arrays, chunk, me):
    visited, old = arrays.visited[control[job.VISITED]], arrays.visited[1 - control[job.VISITED]]
    queue, offsets = arrays.queue[control[job.QUEUE]], arrays.offsets[control[job.QUEUE]]
    degree = arrays.degree
    low = chunk * control[job.SIZE]
    high = min(low + control[job.SIZE], arrays.written.size)
    count, edges = np.uint64(0), np.uint64(0)
    for word in range(low, high):
        fresh = visited[word] & ~old[word]
        while fresh:
            v = np.int64(word) * 32 + np.int64(trailing_zeros(fresh))
            fresh &= fresh - ONE
            if degree[v]:
                count += np.uint64(1)
                edges += np.uint64(degree[v])
    if count == 0:
        return job.NONE, job.NONE, job.NONE
    slot, offset = reserve(arrays, count, edges)
    for word in range(low, high):
        fresh = visited[word] & ~old[word]
        while fresh:
            v = np.int64(word) * 32 + np.int64(trailing_zeros(fresh))
            fresh &= fresh - ONE
            if degree[v]:
                queue[slot] = v
                offsets[slot] = offset
                slot += 1
                offset += degree[v]
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False)
def set_bits(bitmap, pairs):
    for i in range(pairs.shape[0]):
        v = pairs[i, 0]
        bitmap[v >> np.uint32(5)] |= ONE << (v & np.uint32(31))


@kernel(counted=False, inner=True)
def blank_words(control, arrays, chunk, me):
    low, high = words_of(control, arrays, chunk)
    arrays.visited[control[job.VISITED]][low:high] = 0
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False, inner=True)
def invalidate_words(control, arrays, chunk, me):
    """Set the parents of unvisited vertices in a chunk of the bitmap to NO_VERTEX.

    Only vertices in the bitmap `written` may have parents of earlier searches. Afterwards `written`
    equals `visited`.
    """
    low, high = words_of(control, arrays, chunk)
    visited, written, parent = arrays.visited[control[job.VISITED]], arrays.written, arrays.parent
    for word in range(low, high):
        stale = written[word] & ~visited[word]
        while stale:
            parent[np.int64(word) * 32 + np.int64(trailing_zeros(stale))] = NO_ID
            stale &= stale - ONE
        if written[word] != visited[word]:  # usually equal: then its line stays in all caches
            written[word] = visited[word]
    return job.NONE, job.NONE, job.NONE
