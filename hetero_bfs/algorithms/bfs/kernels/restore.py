"""Compiled loops that bring a result back to the caller's vertex ids."""

from __future__ import annotations

import numpy as np
from numba import prange

from hetero_bfs.support.compiling import kernel

_NO_VERTEX = np.uint32(0xFFFFFFFF)


@kernel(counted=False, inner=True)
def restore_range(low, high, parent, old_of_new, restored):
    """Write the parents of new ids [low, high) to restored, int64 (old ids,): old ids, or -1.

    In the order of the new ids, of which neighbours and parents lie close together. A parent that
    is no vertex, which no sound search leaves, stays none, for validation to find.
    """
    for v in range(low, high):
        up = parent[v]
        if up < parent.size:
            restored[old_of_new[v]] = old_of_new[up]
        else:
            restored[old_of_new[v]] = -1 if up == _NO_VERTEX else restored.size


@kernel(parallel=True)
def merge_parents(parent, other, visited):
    """Take from `other` what it has, keep `parent` for the other visited vertices.

    Both are uint32, of which each visited vertex has one; `visited` is the bitmap of all visited
    vertices (level.py). Unvisited vertices end up without a parent.
    """
    for v in prange(parent.size):
        if other[v] != _NO_VERTEX:
            parent[v] = other[v]
        elif not (visited[v >> 5] >> np.uint32(v & 31)) & np.uint32(1):
            parent[v] = _NO_VERTEX


@kernel
def levels_from_parents(parent, source, level):
    """Fill level (int32, all -1) with the distance of each reached vertex from the source.

    Vertices whose parents do not lead to the source, which no sound search leaves, keep -1.
    """
    on_path, lost = -2, -3
    path = np.empty(parent.size, np.int64)
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
