"""Compiled loops that bring a result back to the caller's vertex ids."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

_NO_VERTEX = np.uint32(0xFFFFFFFF)


@njit(cache=True, nogil=True, parallel=True)
def restore_parents(parent, old_of_new, restored):
    """restored[old id] = old id of the parent, for every reached vertex."""
    for v in prange(parent.size):
        if parent[v] != _NO_VERTEX:
            restored[old_of_new[v]] = old_of_new[parent[v]]


@njit(cache=True, nogil=True, parallel=True)
def merge_parents(parent, other):
    """Take from `other` the parents that `parent` lacks (both uint32; each vertex has one)."""
    for v in prange(parent.size):
        if parent[v] == _NO_VERTEX:
            parent[v] = other[v]


@njit(cache=True, nogil=True)
def levels_from_parents(parent, root, level):
    """Fill level (int32, all -1) with the distance of each reached vertex from the root."""
    path = np.empty(parent.size, np.int64)
    level[root] = 0
    for start in range(parent.size):
        if parent[start] < 0:
            continue
        length = 0
        v = start
        while level[v] < 0:
            path[length] = v
            length += 1
            v = parent[v]
        depth = level[v]
        for k in range(length - 1, -1, -1):
            depth += 1
            level[path[k]] = depth
