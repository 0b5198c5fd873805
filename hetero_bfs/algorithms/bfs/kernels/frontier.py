"""Converts a frontier from bitmap to queue, and ends a search, on the CPU.

frontier.cl does the same on OpenCL devices. level.py describes the arrays, job.py the parameters.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels.job import (
    BLANK,
    INVALIDATE,
    NONE,
    QUEUE,
    SIZE,
    TASK,
    VISITED,
    words_of,
)
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, trailing_zeros

_ONE = np.uint32(1)


@njit(inline="always")
def reserve(arrays, vertices, edges):
    """Make room in a queue for so many vertices with so many edges in all.

    Returns the place of the first vertex, and the number of edges before it.
    """
    bits = np.uint64(arrays.edge_bits)
    before = atomic_add(arrays.counter, 0, (np.uint64(vertices) << bits) | np.uint64(edges))
    return np.int64(before >> bits), np.int64(before & ((np.uint64(1) << bits) - np.uint64(1)))


@kernel(counted=False, inner=True)
def queue_words(control, arrays, chunk, me):
    """Queue the vertices of a chunk of the bitmap that the last level found."""
    visited, old = arrays.visited[control[VISITED]], arrays.visited[1 - control[VISITED]]
    queue, offsets = arrays.queue[control[QUEUE]], arrays.offsets[control[QUEUE]]
    degree = arrays.degree
    low = chunk * control[SIZE]
    high = min(low + control[SIZE], arrays.written.size)
    count, edges = np.uint64(0), np.uint64(0)
    for word in range(low, high):
        fresh = visited[word] & ~old[word]
        while fresh:
            v = np.int64(word) * 32 + np.int64(trailing_zeros(fresh))
            fresh &= fresh - _ONE
            if degree[v]:
                count += np.uint64(1)
                edges += np.uint64(degree[v])
    if count == 0:
        return NONE, NONE, NONE
    slot, offset = reserve(arrays, count, edges)
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
    return NONE, NONE, NONE


@kernel(counted=False, inner=True)
def blank_or_invalidate(control, arrays, chunk, me):
    """End a search for a chunk of the bitmap: invalidate stale parents, make it blank, or both."""
    low, high = words_of(control, arrays, chunk)
    visited = arrays.visited[control[VISITED]]
    if control[TASK] != BLANK:
        invalidate_stale_parents(low, high, visited, arrays.written, arrays.parent)
    if control[TASK] != INVALIDATE:
        visited[low:high] = 0
    return NONE, NONE, NONE


@kernel(counted=False, inner=True)
def invalidate_stale_parents(low, high, visited, written, parent):
    """Set the parents of unvisited vertices in words [low, high) to NO_VERTEX.

    An earlier search may have left parents, but only of vertices in the bitmap `written`. In the
    end `written` is `visited`.
    """
    for word in range(low, high):
        stale = written[word] & ~visited[word]
        while stale:
            parent[np.int64(word) * 32 + np.int64(trailing_zeros(stale))] = NO_ID
            stale &= stale - _ONE
        if written[word] != visited[word]:  # most often equal: then its line stays in all caches
            written[word] = visited[word]
