"""The order in which vertices are coloured: by falling degree, equal ones by the caller's id."""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel

_NONE = np.uint32(0xFFFFFFFF)


@kernel
def rank_vertices(degree, new_of_old, order, rank):
    """Sort by counting.

    Parameters
    ----------
    degree : uint32 (n,)
        By new id.
    new_of_old : uint32 (num_vertices,)
    order : uint32 (n,)
        Gets the vertices (new ids) in the order of their ranks.
    rank : uint32 (n,)
        Gets the rank of each vertex.
    """
    largest = np.int64(0)
    for v in range(degree.size):
        largest = max(largest, np.int64(degree[v]))
    slot = np.zeros(largest + 1, np.int64)
    for v in range(degree.size):
        slot[degree[v]] += 1
    place = np.int64(0)
    for d in range(largest, -1, -1):
        count = slot[d]
        slot[d] = place
        place += count
    for old in range(new_of_old.size):
        v = new_of_old[old]
        if v != _NONE:
            d = degree[v]
            place = slot[d]
            slot[d] = place + 1
            order[place] = v
            rank[v] = place
