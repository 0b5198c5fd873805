"""Turning a frontier from bitmap to queue, and ending a search, on the CPU (frontier.cl's twin).

See level.py for the encoding of the state.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, trailing_zeros

NO_VERTEX = np.uint32(0xFFFFFFFF)
_ONE = np.uint32(1)


@kernel(counted=False, inner=True)
def queue_words(low, high, visited, old, degree, edge_bits, counter, queue, offsets):
    """Queue the vertices in words [low, high) of `visited` that are not in `old`."""
    count = np.uint64(0)
    edges = np.uint64(0)
    for word in range(low, high):
        fresh = visited[word] & ~old[word]
        while fresh:
            v = np.int64(word) * 32 + np.int64(trailing_zeros(fresh))
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
            v = np.int64(word) * 32 + np.int64(trailing_zeros(fresh))
            fresh &= fresh - _ONE
            if degree[v]:
                queue[slot] = v
                offsets[slot] = offset
                slot += 1
                offset += degree[v]


@kernel(counted=False, inner=True)
def invalidate_stale_parents(low, high, visited, written, parent):
    """Set the parents of unvisited vertices in words [low, high) to NO_VERTEX.

    Only vertices in the bitmap `written` may have another parent, left by an earlier search;
    afterwards `written` is `visited`.
    """
    for word in range(low, high):
        stale = written[word] & ~visited[word]
        while stale:
            parent[np.int64(word) * 32 + np.int64(trailing_zeros(stale))] = NO_VERTEX
            stale &= stale - _ONE
        if written[word] != visited[word]:  # most often none: its line stays in many caches
            written[word] = visited[word]
