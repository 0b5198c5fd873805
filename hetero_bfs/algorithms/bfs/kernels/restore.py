"""Compiled loops that convert a result to the caller's vertex ids."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    array_at,
    end_stream,
    int32_array_at,
    stream,
    uint32_array_at,
)

_LEAST_STREAMED = 1 << 20
"""Fewer items may stay in the caches for the caller. More are written past the caches, so that the
memory is not read before it is written.
"""


@kernel(counted=False, inner=True)
def fill_result(control, arrays, chunk, me):
    """Fill a chunk of a result by old ids: int64, or int32 if control[NARROW] is set.

    The job has the result's address and size. CLEAR writes -1. RECEIVE copies values that a device
    sent. RESTORE writes the old ids of the parents, of a chunk of the new ids: neighbours and
    parents are close together in that order.
    """
    begin = chunk * control[job.SIZE]
    end = begin + control[job.SIZE]
    if control[job.NARROW]:
        _fill(
            control, arrays, int32_array_at(control[job.ADDRESS], control[job.VERTICES]), begin, end
        )
    else:
        _fill(control, arrays, array_at(control[job.ADDRESS], control[job.VERTICES]), begin, end)
    return job.NONE, job.NONE, job.NONE


@njit
def _fill(control, arrays, result, begin, end):
    task = control[job.TASK]
    if task == job.CLEAR:
        result[begin : min(end, result.size)] = -1
    elif task == job.RECEIVE:
        _receive(uint32_array_at(control[job.SENT], control[job.VERTICES]), result, begin, end)
    else:
        _restore_parents(arrays.parent, arrays.old_of_new, result, begin, end)


@njit
def _receive(sent, result, begin, end):
    """Convert uint32 to the result's type; NO_VERTEX becomes -1."""
    end = min(end, result.size)
    if result.size < _LEAST_STREAMED:
        for v in range(begin, end):
            result[v] = np.int64(np.uint32(sent[v] + np.uint32(1))) - 1
    else:
        for v in range(begin, end):
            stream(result, v, np.int64(np.uint32(sent[v] + np.uint32(1))) - 1)
        end_stream()


@njit
def _restore_parents(parent, old_of_new, result, begin, end):
    """Write old ids. A parent that is not a vertex becomes an invalid id, which validation finds.

    A correct search leaves none.
    """
    n = np.uint64(parent.size)
    for v in range(np.uint64(begin), min(np.uint64(end), n)):
        up = np.uint64(parent[v])
        if up < n:
            result[old_of_new[v]] = old_of_new[up]
        else:
            result[old_of_new[v]] = -1 if parent[v] == NO_ID else result.size


@kernel(counted=False, inner=True)
def blank_depths(control, arrays, chunk, me):
    begin = chunk * control[job.SIZE]
    arrays.queue[0][begin : min(begin + control[job.SIZE], arrays.parent.size)] = NO_ID
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False, inner=True)
def restore_levels_chunk(control, arrays, chunk, me):
    """Find the depths of a chunk of the new ids, and write them to the result, int32 by old ids.

    The parents must be from a correct search: if they form a cycle, a depth is wrong. Several
    threads may find the same depth; they write the same number. Most parents have lower numbers
    than their children, so their depths are already known.
    """
    parent, depth, old_of_new = arrays.parent, arrays.queue[0], arrays.old_of_new
    level = int32_array_at(control[job.ADDRESS], control[job.VERTICES])
    begin, n = np.uint64(chunk * control[job.SIZE]), np.uint64(parent.size)
    for v in range(begin, min(begin + np.uint64(control[job.SIZE]), n)):
        up = np.uint64(parent[v])
        if up >= n:
            level[old_of_new[v]] = -1
            continue
        if up != v and depth[up] != NO_ID:
            depth[v] = depth[up] + np.uint32(1)
        else:
            _find_depth(v, parent, depth)
        level[old_of_new[v]] = depth[v]
    return job.NONE, job.NONE, job.NONE


@njit
def _find_depth(v, parent, depth):
    u, steps = v, 0
    while depth[u] == NO_ID and parent[u] != u and steps < parent.size:
        u = np.uint64(parent[u])
        steps += 1
    left = (0 if depth[u] == NO_ID else np.int64(depth[u])) + steps
    u = v
    for _ in range(steps):
        depth[u] = left
        left -= 1
        u = np.uint64(parent[u])
    if depth[u] == NO_ID:
        depth[u] = 0


@kernel(parallel=True)
def merge_parents(parent, other, visited):
    """Write the parents that `other` has to `parent`; both are uint32 (n,).

    Each visited vertex has a parent in one of them. `visited` is the bitmap of all visited vertices
    (level.py). Unvisited vertices end up without a parent.
    """
    for v in prange(parent.size):
        if other[v] != NO_ID:
            parent[v] = other[v]
        elif not (visited[v >> 5] >> np.uint32(v & 31)) & np.uint32(1):
            parent[v] = NO_ID


@kernel
def levels_from_parents(parent, sources, level):
    """Fill `level`, int32 and all -1 before, with each vertex's distance from the nearest source.

    A vertex keeps -1 if its parents do not lead to a source. In a correct search such vertices have
    no parent.
    """
    on_path, lost = -2, -3
    path = np.empty(parent.size, np.int64)
    for source in sources:
        level[source] = 0
    for start in range(parent.size):
        length = 0
        v = start
        while 0 <= v < parent.size and level[v] == -1 and parent[v] >= 0:
            level[v] = on_path
            path[length] = v
            length += 1
            v = parent[v]
        depth = level[v] if 0 <= v < parent.size else lost
        for k in range(length - 1, -1, -1):
            depth = depth + 1 if depth >= 0 else lost
            level[path[k]] = depth
    for v in range(parent.size):
        if level[v] < 0:
            level[v] = -1
