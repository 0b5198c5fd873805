"""Compiled loops that bring a result back to the caller's vertex ids."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

_NO_VERTEX = np.uint32(0xFFFFFFFF)


@njit(cache=True, nogil=True, parallel=True)
def restore_parents(parent, old_of_new, restored):
    """restored[old id] = old id of the parent, for every reached vertex.

    A parent that is no vertex, which no sound search leaves, stays none, for validation to find.
    """
    for v in prange(parent.size):
        if parent[v] < parent.size:
            restored[old_of_new[v]] = old_of_new[parent[v]]
        elif parent[v] != _NO_VERTEX:
            restored[old_of_new[v]] = restored.size


@njit(cache=True, nogil=True, parallel=True)
def merge_parents(parent, other):
    """Take from `other` the parents that `parent` lacks (both uint32; each vertex has one)."""
    for v in prange(parent.size):
        if parent[v] == _NO_VERTEX:
            parent[v] = other[v]


@njit(cache=True, nogil=True)
def levels_from_parents(parent, root, level):
    """Fill level (int32, all -1) with the distance of each reached vertex from the root.

    Vertices whose parents do not lead to the root, which no sound search leaves, keep -1.
    """
    on_path, lost = -2, -3
    path = np.empty(parent.size, np.int64)
    level[root] = 0
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
