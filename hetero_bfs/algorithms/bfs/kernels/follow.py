"""What one thread does with a part of the frontier: it follows the edges and claims their ends.

There are two ways. Where most vertices have equally many edges, as in a grid, the processor
foretells well which ends are visited. In other high-diameter graphs, such as road networks, it does
not, and a branch foretold wrongly costs more than all else of an edge. There edges are packed
first, without branches, if the processor has instructions for that: the way back to a vertex's
parent is left out, then all that lead to visited vertices, so that few of the rest lead to one that
is visited after all. In low-diameter graphs, whose small levels take little of a search, it makes
no difference.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES
from hetero_bfs.algorithms.bfs.kernels.partitions import owner_of, partition_bits
from hetero_bfs.devices.cpu.vectors import append_edges, keep_unvisited
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import prefetch

_PREFETCH_DISTANCE = 16  # queue entries between fetching a list and reading it
_BLOCK_WORDS = np.uint64(4)  # of the bitmap: vertices whose data is fetched together
_BLOCK_VERTICES = _BLOCK_WORDS * np.uint64(32)
_LINE_ITEMS = np.uint64(16)
_MOST_ITEMS = np.uint64(1024)  # fetched of a block's lists
_LANES = np.uint64(8)
# Edges, at least, that are packed before any is followed, and at most of one list at a time: so
# fewer than twice as many, and eight, lie in the scratch.
_PACKED = np.uint64(CHUNK_EDGES // 8)
_ZERO = np.uint64(0)
_ONE = np.uint32(1)
_WORD_MASK = np.uint32(31)
_WORD_SHIFT = np.uint32(5)


@njit(inline="always")
def _fetch_block(word, indptr, indices, visited, parent):
    """Fetch what is read of a block of vertices, if the search has just come among them.

    The next levels will find the others of it. It is the bitmap's `word`, one vertex of which is
    visited now, and the words beside it. Of long lists only the first ones are fetched.
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
    """Make `u` the parent of `v` if that is not visited; tell whether, and the edges of `v`."""
    word = v >> _WORD_SHIFT
    bit = _ONE << (v & _WORD_MASK)
    seen = visited[word]
    if seen & bit:
        return False, np.int64(0)
    visited[word] = seen | bit
    if is_local and seen == 0:
        _fetch_block(word, indptr, indices, visited, parent)
    parent[v] = u
    return True, np.int64(indptr[v + _ONE]) - np.int64(indptr[v])


@njit(inline="always")
def follow_by_branches(
    begin,
    end,
    queue,
    indptr,
    indices,
    is_local,
    visited,
    parent,
    next_queue,
    found,
    owner,
    owners,
    mixed,
    box,
    is_whole,
    ends,
    sources,
):
    """Expand the queue's entries [begin, end), for one of the owners.

    What it finds goes to `next_queue` from `found` on, edges to others' vertices to `box`, uint32
    (edges, 2). `mixed` is 1 if vertices of others are among the entries, else 0. `is_local` is as
    in HostArrays (phases.py), `is_whole` as in `expand_owned`; that, `ends` and `sources`, which
    are scratch, serve `follow_packed` alone. Returns the end of both, and the edges that leave what
    was found.
    """
    deferred, edges, bits = 0, np.int64(0), partition_bits(owners)
    for i in range(begin, end):
        if i + _PREFETCH_DISTANCE < end:
            prefetch(indices, np.uint64(indptr[queue[i + _PREFETCH_DISTANCE]]))
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            beyond = (u ^ v) >> bits | mixed  # the partition of a vertex that is the owner's
            if beyond and owner_of(v, owners, bits) != owner:
                box[deferred, 0] = v
                box[deferred, 1] = u
                deferred += 1
                continue
            is_new, more = claim(v, u, indptr, indices, is_local, visited, parent)
            if is_new:
                next_queue[found] = v
                found += 1
                edges += more
    return found, deferred, edges


@kernel(counted=False, inner=True)
def follow_packed(
    begin,
    end,
    queue,
    indptr,
    indices,
    is_local,
    visited,
    parent,
    next_queue,
    found,
    owner,
    owners,
    mixed,
    box,
    is_whole,
    ends,
    sources,
):
    """Do what `follow_by_branches` does, on a processor that packs vectors (`can_pack`)."""
    deferred, edges, bits = 0, np.int64(0), partition_bits(owners)
    i, k = np.int64(begin), _ZERO
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
                i += 1
                if i < end:
                    k = np.uint64(indptr[queue[i]])
        for j in range(_ZERO, taken, _LANES):
            count = min(taken - j, _LANES)
            kept += keep_unvisited(ends, sources, j, count, visited, bits, mixed, kept)
        for j in range(kept):
            v, u = ends[j], sources[j]
            beyond = (u ^ v) >> bits | mixed
            if beyond and owner_of(v, owners, bits) != owner:
                box[deferred, 0] = v
                box[deferred, 1] = u
                deferred += 1
                continue
            is_new, more = claim(v, u, indptr, indices, is_local, visited, parent)
            if is_new:
                next_queue[found] = v
                found += 1
                edges += more
    return found, deferred, edges
