"""Expands a part of the frontier by one thread: follows the edges and claims their ends.

There are two methods. `follow_by_branches` tests for each edge whether its end is visited. If most
vertices have the same degree, as in a grid, the processor predicts the branch well. In other
high-diameter graphs, such as road networks, it does not, and a mispredicted branch costs more than
all other work for an edge. `follow_packed` is for these graphs, if the processor can pack vectors.
It copies edges without branches: first all but the edge back to the vertex's parent, then the edges
whose end is not visited yet. Few of the remaining edges lead to a vertex that is visited after all.
In low-diameter graphs small levels take little of a search, so the method does not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels.job import WHOLE, owner_of, partition_bits
from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES, ONE, WORD_MASK, WORD_SHIFT
from hetero_bfs.devices.cpu.vectors import append_edges, keep_unvisited
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import prefetch

_PREFETCH_DISTANCE = np.uint64(16)  # queue entries between fetching a list and reading it
_BLOCK_WORDS = np.uint64(4)  # bitmap words whose vertices' data is fetched together
_BLOCK_VERTICES = _BLOCK_WORDS * np.uint64(32)
_LINE_ITEMS = np.uint64(16)
_MOST_ITEMS = np.uint64(1024)  # list items of a block to prefetch
_LANES = np.uint64(8)
# Minimum edges to pack before any is followed, and maximum edges of one list to pack at a time. So
# the scratch holds fewer than 2 * _PACKED + 8 edges.
_PACKED = np.uint64(CHUNK_EDGES // 8)
_ZERO, _NEXT = np.uint64(0), np.uint64(1)


@njit(inline="always")
def _fetch_block(word, indptr, indices, visited, parent):
    """Prefetch the data of a block of vertices, if the search has just reached the block.

    The next levels will find the block's other vertices, in a graph by locality or along a chain
    whose vertices have consecutive numbers. The block is the bitmap's `word` and the
    words next to it. One vertex of `word` is visited now. If the neighbour lists are long, only the
    first ones are prefetched.
    """
    first = np.uint64(word) & ~(_BLOCK_WORDS - np.uint64(1))
    for other in range(first, min(first + _BLOCK_WORDS, np.uint64(visited.size))):
        if other != np.uint64(word) and visited[other]:
            return
    low = first * np.uint64(32)
    high = min(low + _BLOCK_VERTICES, np.uint64(parent.size))
    for v in range(low, high, _LINE_ITEMS):
        prefetch(parent, v)
        prefetch(indptr, v)
    start = np.uint64(indptr[low]) & ~(_LINE_ITEMS - np.uint64(1))
    for k in range(start, min(np.uint64(indptr[high]), start + _MOST_ITEMS), _LINE_ITEMS):
        prefetch(indices, k)


@njit(inline="always")
def claim(v, u, indptr, indices, is_local, visited, parent):
    """Visit `v` with the parent `u`, if it is unvisited; return whether it was, and its edges."""
    word = v >> WORD_SHIFT
    bit = ONE << (v & WORD_MASK)
    seen = visited[word]
    if seen & bit:
        return False, np.int64(0)
    visited[word] = seen | bit
    if seen == 0 and (is_local or v - u == ONE or u - v == ONE):
        _fetch_block(word, indptr, indices, visited, parent)
    parent[v] = u
    return True, np.int64(indptr[v + ONE]) - np.int64(indptr[v])


class Part(NamedTuple):
    """An owner's part of the frontier.

    Parameters
    ----------
    queue, visited : int64
        The numbers of the queue and of the bitmap that hold the frontier.
    begin, end : int64
        Its entries in the queue are [begin, end).
    found : int64
        Index in the other queue for the first vertex that the owner finds.
    owner, owners : int64
        The owner's number, and how many owners there are.
    mixed : uint32
        1 if other owners' vertices are among the entries, else 0.
    """

    queue: Any
    visited: Any
    begin: Any
    end: Any
    found: Any
    owner: Any
    owners: Any
    mixed: Any


@njit(inline="always")
def follow_by_branches(control, arrays, part):
    """Expand a part of the frontier, for its owner.

    Edges that lead to other owners' vertices are deferred: their ends and parents go to the owner's
    outbox, after its first entry. Returns the end of the found vertices in the other queue, the
    number of edges deferred, and the number of edges of the found vertices.
    """
    queue, next_queue = arrays.queue[part.queue], arrays.queue[1 - part.queue]
    indptr, indices, is_local = arrays.indptr, arrays.indices, arrays.is_local != 0
    visited, parent = arrays.visited[part.visited], arrays.parent
    # All unsigned: Numba tests each signed index, since a negative one counts from the end.
    begin, end, found = np.uint64(part.begin), np.uint64(part.end), np.uint64(part.found)
    owner, owners, mixed = part.owner, part.owners, part.mixed
    outbox = arrays.outbox[part.queue, owner]
    deferred, edges, bits = _ZERO, np.int64(0), partition_bits(owners)
    for i in range(begin, end):
        if i + _PREFETCH_DISTANCE < end:
            prefetch(indices, np.uint64(indptr[queue[i + _PREFETCH_DISTANCE]]))
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            beyond = (u ^ v) >> bits | mixed  # 0 only if `v` is in the partition of the owner's `u`
            if beyond and owner_of(v, owners, bits) != owner:
                deferred += _NEXT
                outbox[deferred, 0] = v
                outbox[deferred, 1] = u
                continue
            is_new, more = claim(v, u, indptr, indices, is_local, visited, parent)
            if is_new:
                next_queue[found] = v
                found += _NEXT
                edges += more
    return np.int64(found), np.int64(deferred), edges


@kernel(counted=False, inner=True)
def follow_packed(control, arrays, part):
    """Like `follow_by_branches`, on a processor that packs vectors (`can_pack`)."""
    queue, next_queue = arrays.queue[part.queue], arrays.queue[1 - part.queue]
    indptr, indices, is_local = arrays.indptr, arrays.indices, arrays.is_local != 0
    visited, parent = arrays.visited[part.visited], arrays.parent
    # All unsigned, as in `follow_by_branches`.
    begin, end, found = np.uint64(part.begin), np.uint64(part.end), np.uint64(part.found)
    owner, owners, mixed = part.owner, part.owners, part.mixed
    outbox = arrays.outbox[part.queue, owner]
    ends, sources, is_whole = arrays.found[owner], arrays.source[owner], control[WHOLE]
    deferred, edges, bits = _ZERO, np.int64(0), partition_bits(owners)
    i, k = begin, _ZERO
    if i < end:
        k = np.uint64(indptr[queue[i]])
    while i < end:
        taken, kept = _ZERO, _ZERO
        while i < end and taken < _PACKED:
            if i + _PREFETCH_DISTANCE < end:
                prefetch(indices, np.uint64(indptr[queue[i + _PREFETCH_DISTANCE]]))
            u = queue[i]
            but = parent[u] if is_whole else u
            list_end = np.uint64(indptr[u + 1])
            stop = min(list_end, k + _PACKED)
            while k < stop:
                count = min(stop - k, _LANES)
                taken += append_edges(indices, k, count, u, but, ends, sources, taken)
                k += _LANES
            k = stop
            if k >= list_end:
                i += _NEXT
                if i < end:
                    k = np.uint64(indptr[queue[i]])
        for j in range(_ZERO, taken, _LANES):
            count = min(taken - j, _LANES)
            kept += keep_unvisited(ends, sources, j, count, visited, bits, mixed, kept)
        for j in range(kept):
            v, u = ends[j], sources[j]
            beyond = (u ^ v) >> bits | mixed
            if beyond and owner_of(v, owners, bits) != owner:
                deferred += _NEXT
                outbox[deferred, 0] = v
                outbox[deferred, 1] = u
                continue
            is_new, more = claim(v, u, indptr, indices, is_local, visited, parent)
            if is_new:
                next_queue[found] = v
                found += _NEXT
                edges += more
    return np.int64(found), np.int64(deferred), edges
