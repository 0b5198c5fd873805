"""Starting a search, and turning a frontier from bitmap to queue, on the CPU (frontier.cl's twin).

See bfs.py for the encoding of the state.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hetero_bfs.kernels.intrinsics import atomic_add, trailing_zeros

_NO_VERTEX = np.uint32(0xFFFFFFFF)
_ONE = np.uint32(1)
_CHUNK_WORDS = 256


@njit(cache=True, nogil=True, parallel=True)
def clear(parent, visited):
    """Forget the last search."""
    for v in prange(parent.size):
        parent[v] = _NO_VERTEX
    visited[:] = 0


@njit(cache=True, nogil=True)
def set_root(root, parent, visited, queue, offsets):
    """Make `root` the only visited vertex and the frontier."""
    parent[root] = root
    visited[root >> 5] |= _ONE << np.uint32(root & 31)
    queue[0] = root
    offsets[0] = 0


@njit(cache=True, nogil=True)
def _append_words(low, high, visited, old, degree, edge_bits, counter, queue, offsets):
    count = np.uint64(0)
    edges = np.uint64(0)
    for word in range(low, high):
        fresh = visited[word] & ~old[word]
        while fresh:
            v = np.int64(word) * 32 + trailing_zeros(fresh)
            fresh &= fresh - _ONE
            if degree[v]:
                count += np.uint64(1)
                edges += np.uint64(degree[v])
    if count == 0:
        return
    base = atomic_add(counter, 0, (count << np.uint64(edge_bits)) | edges)
    slot = np.int64(base >> np.uint64(edge_bits))
    offset = np.int64(base & ((np.uint64(1) << np.uint64(edge_bits)) - np.uint64(1)))
    for word in range(low, high):
        fresh = visited[word] & ~old[word]
        while fresh:
            v = np.int64(word) * 32 + trailing_zeros(fresh)
            fresh &= fresh - _ONE
            if degree[v]:
                queue[slot] = v
                offsets[slot] = offset
                slot += 1
                offset += degree[v]


@njit(cache=True, nogil=True, parallel=True)
def bitmap_to_queue(visited, old, degree, edge_bits, counter, queue, offsets):
    """Queue the vertices that are in `visited` and not in `old` (both uint32 bitmaps)."""
    words = visited.size
    chunks = (words + _CHUNK_WORDS - 1) // _CHUNK_WORDS
    for chunk in prange(chunks):
        low = chunk * _CHUNK_WORDS
        high = min(words, low + _CHUNK_WORDS)
        _append_words(low, high, visited, old, degree, edge_bits, counter, queue, offsets)
