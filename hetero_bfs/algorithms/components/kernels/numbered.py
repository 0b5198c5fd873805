"""Connected components by one thread, numbered by their first vertices.

Sets are joined at the lesser root, so a root is its set's least vertex (Tarjan, 1975, "Efficiency
of a good but not linear set union algorithm"; paths are halved). Edges may be listed in one
direction or in both.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.kernels.largest import largest_of
from hetero_bfs.support.compiling import kernel


@kernel
def number_components(indptr, indices, label):
    """Fill label, uint32 (n,), with the number of each vertex's component; return how many.

    In a directed graph these are the weakly connected ones. The offsets are sound. Return -1 if an
    id is not below n.
    """
    for v in range(label.size):
        label[v] = v  # its parent, until the last loop
    for u in range(label.size):
        mine = _root(label, np.uint32(u))
        first, last = indptr[u], indptr[u + 1]
        if last > first and largest_of(indices, first, last) >= label.size:
            return np.int64(-1)
        for k in range(first, last):
            other = _root(label, indices[k])
            if other < mine:
                label[mine] = other
                mine = other
            elif mine < other:
                label[other] = mine
    count = np.uint32(0)
    for v in range(label.size):
        if label[v] == v:
            label[v] = count
            count += np.uint32(1)
        else:  # a lesser vertex, which has its number
            label[v] = label[label[v]]
    return np.int64(count)


@kernel(inner=True)
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
