"""Compiled loops that convert a result to the caller's vertex ids."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hetero_bfs.algorithms.bfs.kernels.job import (
    ADDRESS,
    CLEAR,
    FIND_DEPTHS,
    NARROW,
    NONE,
    RECEIVE,
    RESTORE,
    SENT,
    SIZE,
    TASK,
    VERTICES,
)
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    array_at,
    end_stream,
    int32_array_at,
    stream,
    uint32_array_at,
)


@kernel(counted=False, inner=True)
def fill_result(control, arrays, chunk, me):
    """Fill a chunk of a result by old ids: int64, or int32 if control[NARROW] is set.

    The job has the result's address and size. CLEAR writes -1. RECEIVE copies what a device sent.
    RESTORE writes the parents' old ids, and RESTORE_LEVELS the depths of `find_depths`: of a chunk
    of the new ids, since neighbours and parents are close together in that order.
    """
    begin = chunk * control[SIZE]
    end = begin + control[SIZE]
    if control[NARROW]:
        _fill(control, arrays, int32_array_at(control[ADDRESS], control[VERTICES]), begin, end)
    else:
        _fill(control, arrays, array_at(control[ADDRESS], control[VERTICES]), begin, end)
    return NONE, NONE, NONE


@njit
def _fill(control, arrays, result, begin, end):
    task = control[TASK]
    if task == CLEAR:
        result[begin : min(end, result.size)] = -1
    elif task == RECEIVE:
        _receive(uint32_array_at(control[SENT], control[VERTICES]), result, begin, end)
    elif task == RESTORE:
        _restore_parents(arrays.parent, arrays.old_of_new, result, begin, end)
    else:
        depth, old_of_new = arrays.queue[0], arrays.old_of_new
        for v in range(begin, min(end, depth.size)):
            result[old_of_new[v]] = np.int32(depth[v])


@njit
def _receive(sent, result, begin, end):
    """Convert uint32 to the result's type; NO_VERTEX becomes -1."""
    for v in range(begin, min(end, result.size)):
        stream(result, v, np.int64(np.uint32(sent[v] + np.uint32(1))) - 1)
    end_stream()


@njit
def _restore_parents(parent, old_of_new, result, begin, end):
    """Write old ids. A parent that is not a vertex becomes an invalid id, which validation finds.

    A correct search leaves none.
    """
    for v in range(begin, min(end, parent.size)):
        up = parent[v]
        if up < parent.size:
            result[old_of_new[v]] = old_of_new[up]
        else:
            result[old_of_new[v]] = -1 if up == NO_ID else result.size


@kernel(counted=False, inner=True)
def find_depths(control, arrays, chunk, me):
    """Write the depths of a chunk of the new ids to the first queue's memory; NO_ID for none.

    BLANK_DEPTHS writes NO_ID. FIND_DEPTHS needs the parents of a correct search: if they form a
    cycle, a depth is wrong. Threads may find the same depth; they write the same number. Most
    parents have lower numbers than their children, so their depths are already known.
    """
    parent, depth = arrays.parent, arrays.queue[0]
    begin = chunk * control[SIZE]
    end = min(begin + control[SIZE], parent.size)
    if control[TASK] != FIND_DEPTHS:
        depth[begin:end] = NO_ID
        return NONE, NONE, NONE
    for v in range(begin, end):
        up = parent[v]
        if up < parent.size:
            if up != v and depth[up] != NO_ID:
                depth[v] = depth[up] + np.uint32(1)
            else:
                _find_depth(v, parent, depth)
    return NONE, NONE, NONE


@njit
def _find_depth(v, parent, depth):
    """Set the depths of a vertex and of its ancestors."""
    u, steps = np.int64(v), 0
    while depth[u] == NO_ID and parent[u] != u and steps < parent.size:
        u = np.int64(parent[u])
        steps += 1
    left = (0 if depth[u] == NO_ID else np.int64(depth[u])) + steps
    u = np.int64(v)
    for _ in range(steps):
        depth[u] = left
        left -= 1
        u = np.int64(parent[u])
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
