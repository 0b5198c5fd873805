"""Compiled loops that convert a result to the caller's vertex ids."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hetero_bfs.algorithms.bfs.kernels.job import ADDRESS, CLEAR, NONE, SIZE, TASK, VERTICES
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import array_at


@kernel(counted=False, inner=True)
def clear_or_restore(control, arrays, chunk, me):
    """Fill a chunk of the result, int64 by old ids, with -1 or with the parents' old ids.

    The job has the result's address. Parents are read in the order of the new ids, since neighbours
    and parents are close together in that order. A parent that is not a vertex becomes an invalid
    old id, which validation finds; a correct search leaves none.
    """
    restored = array_at(control[ADDRESS], control[VERTICES])
    begin = chunk * control[SIZE]
    end = begin + control[SIZE]
    if control[TASK] == CLEAR:
        restored[begin : min(end, restored.size)] = -1
        return NONE, NONE, NONE
    parent, old_of_new = arrays.parent, arrays.old_of_new
    for v in range(begin, min(end, parent.size)):
        up = parent[v]
        if up < parent.size:
            restored[old_of_new[v]] = old_of_new[up]
        else:
            restored[old_of_new[v]] = -1 if up == NO_ID else restored.size
    return NONE, NONE, NONE


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
def restore_levels(parent, old_of_new, depth, level):
    """Fill `level`, int32 by old ids, from `parent`, uint32 by new ids, of a correct search.

    `depth` is int32 scratch, as long as `parent`. If the parents form a cycle, a depth is wrong.
    Most parents have lower numbers than their children, so their depths are already known.
    """
    level[:] = -1
    depth[:] = -1
    n = np.uint64(parent.size)
    for v in range(n):
        up = np.uint64(parent[v])
        if up < n:
            if up != v and depth[up] >= 0:
                depth[v] = depth[up] + 1
            else:
                _find_depth(v, parent, depth)
    for v in range(n):
        level[old_of_new[v]] = depth[v]


@njit
def _find_depth(v, parent, depth):
    """Set the depths of a vertex and of its ancestors."""
    u, steps = v, 0
    while depth[u] < 0 and parent[u] != u and steps < parent.size:
        u = np.uint64(parent[u])
        steps += 1
    left = max(depth[u], 0) + steps
    u = v
    for _ in range(steps):
        depth[u] = left
        left -= 1
        u = np.uint64(parent[u])
    if depth[u] < 0:
        depth[u] = 0


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
