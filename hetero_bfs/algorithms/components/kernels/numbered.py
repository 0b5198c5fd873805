"""Connected components by one thread, numbered in the order of their first vertices.

Sets are joined at the smaller root, so a root is the smallest vertex of its set (Tarjan, 1975,
"Efficiency of a good but not linear set union algorithm"; paths are halved). An edge may be stored
in one direction or in both.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel


@kernel
def number_components(indptr, indices, label):
    """Fill label, uint32 (n + 1,), with the number of each vertex's component; return the count.

    In a directed graph the components are the weakly connected ones. The caller has checked the
    offsets. Ids out of range count as one more vertex, n. If that has a neighbour, return -1.
    """
    n = np.uint32(label.size - 1)
    for v in range(label.size):
        label[v] = v  # its parent, until the last loop
    for u in range(n):
        mine = _root(label, np.uint32(u))
        for k in range(indptr[u], indptr[u + 1]):
            other = _root(label, min(indices[k], n))
            if other < mine:
                label[mine] = other
                mine = other
            elif mine < other:
                label[other] = mine
    if label[n] != n:
        return np.int64(-1)
    count = np.uint32(0)
    for v in range(n):
        if label[v] == v:
            label[v] = count
            count += np.uint32(1)
        else:  # the label is a smaller vertex, which is numbered already
            label[v] = label[label[v]]
    return np.int64(count)


@kernel(inner=True)
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
