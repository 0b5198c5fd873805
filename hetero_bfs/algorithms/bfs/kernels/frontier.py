"""Converts a frontier from bitmap to queue, and ends a search, on the CPU.

common.cl does the same on OpenCL devices. level.py describes the arrays, job.py the parameters.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.job import words_of
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, trailing_zeros

_ONE = np.uint32(1)


@njit(inline="always")
def reserve(arrays, vertices, edges):
    """Reserve queue slots for these numbers of vertices and edges.

    Returns the first slot, and the number of edges before it.
    """
    bits = np.uint64(arrays.edge_bits)
    before = atomic_add(arrays.counter, 0, (np.uint64(vertices) << bits) | np.uint64(edges))
    return np.int64(before >> bits), np.int64(before & ((np.uint64(1) << bits) - np.uint64(1)))


@kernel(counted=False, inner=True)
def queue_words(control, arrays, chunk, me):
    """Queue the vertices that the last level found in a chunk of the bitmap."""
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
            fresh &= fresh - _ONE
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
            fresh &= fresh - _ONE
            if degree[v]:
                queue[slot] = v
                offsets[slot] = offset
                slot += 1
                offset += degree[v]
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False)
def set_bits(bitmap, pairs):
    """Set the bits of the first items of pairs, uint32 (pairs, 2), in a bitmap."""
    for i in range(pairs.shape[0]):
        v = pairs[i, 0]
        bitmap[v >> np.uint32(5)] |= _ONE << (v & np.uint32(31))


@kernel(counted=False, inner=True)
def blank_or_invalidate(control, arrays, chunk, me):
    """Invalidate stale parents, clear the bitmap, or both, for a chunk of the bitmap."""
    low, high = words_of(control, arrays, chunk)
    visited = arrays.visited[control[job.VISITED]]
    if control[job.TASK] != job.BLANK:
        invalidate_stale_parents(low, high, visited, arrays.written, arrays.parent)
    if control[job.TASK] != job.INVALIDATE:
        visited[low:high] = 0
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False, inner=True)
def invalidate_stale_parents(low, high, visited, written, parent):
    """Set the parents of unvisited vertices in words [low, high) to NO_VERTEX.

    Only vertices in the bitmap `written` may have parents of earlier searches. Afterwards `written`
    equals `visited`.
    """
    for word in range(low, high):
        stale = written[word] & ~visited[word]
        while stale:
            parent[np.int64(word) * 32 + np.int64(trailing_zeros(stale))] = NO_ID
            stale &= stale - _ONE
        if written[word] != visited[word]:  # usually equal: then its line stays in all caches
            written[word] = visited[word]
