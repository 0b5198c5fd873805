"""Orders of vertices in parts, and a graph's CSR arrays in that order."""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel


@kernel
def order_by_level(indptr, indices, root, order, ends):
    """Fill `order` with vertices by level from the root, then with unreached vertices.

    `order` is uint32 (n,), `ends` int64 (n,). Level i ends before order[ends[i]]. Returns the
    number of levels. Vertices beyond `indptr` have no edges.
    """
    seen = np.zeros(order.size, np.bool_)
    seen[root] = True
    order[0] = root
    end, i, levels = 1, 0, 0
    while i < end:
        ends[levels] = end
        while i < ends[levels]:
            u = np.int64(order[i])
            i += 1
            if u >= indptr.size - 1:
                continue
            for k in range(indptr[u], indptr[u + 1]):
                v = indices[k]
                if not seen[v]:
                    seen[v] = True
                    order[end] = v
                    end += 1
        levels += 1
    for v in range(order.size):
        if not seen[v]:
            order[end] = v
            end += 1
    return levels


@kernel
def arrange_lists(graph, order, position, new_graph):
    """Fill `new_graph`, where vertex v is vertex order[v] of `graph`; `position` inverts `order`.

    A graph is (indptr, indices, weights); `weights` is as long as `indices` or empty.
    """
    indptr, indices, weights = graph
    new_indptr, new_indices, new_weights = new_graph
    end = 0
    new_indptr[0] = 0
    for v in range(order.size):
        old = np.int64(order[v])
        if old < indptr.size - 1:
            for k in range(indptr[old], indptr[old + 1]):
                new_indices[end] = position[indices[k]]
                if new_weights.size:
                    new_weights[end] = weights[k]
                end += 1
        new_indptr[v + 1] = end
