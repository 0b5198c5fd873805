"""Dijkstra's search (1959) by one thread with a binary heap, in NetworkX's order.

Of vertices with equal distances, the one that was pushed first is settled first. So the paths are
unique.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel


@kernel
def search_in_heap_order(indptr, indices, weights, source, target, limit, distance, parent, order):
    """Fill distance, parent and order, in which vertices are settled; return their number.

    At first distance (float64 (n,)) is infinite and parent (uint32 (n,)) is NO_VERTEX. The source
    becomes its own parent. Weights are float64, finite, at least 0. The search stops at distances
    above `limit`, and once `target` is settled; NO_VERTEX means no target. As in NetworkX, vertices
    whose distance exceeds float64 are also settled, last, at distance infinity.
    """
    vertex = np.empty(indices.size + 1, np.uint32)  # of each entry ever pushed
    heap = np.empty(indices.size + 1, np.int64)  # entries; `at` has their distances
    at = np.empty(indices.size + 1, np.float64)
    settled = np.zeros(parent.size, np.bool_)
    distance[source], parent[source] = 0.0, source
    vertex[0], heap[0], at[0] = source, 0, 0.0
    size, entries, found = 1, 1, 0
    while size > 0:
        v = vertex[_pop(heap, at, size)]
        size -= 1
        if settled[v]:
            continue
        settled[v] = True
        order[found] = v
        found += 1
        if v == target:
            break
        for k in range(indptr[v], indptr[v + 1]):
            u = indices[k]
            new = distance[v] + weights[k]
            is_first = new == np.inf and parent[u] == NO_ID
            if (new < distance[u] or is_first) and new <= limit:  # settled vertices are no farther
                distance[u], parent[u] = new, v
                vertex[entries] = u
                push(heap, at, size, entries, new)
                size += 1
                entries += 1
    return found


@kernel(inner=True)
def push(heap, at, size, entry, distance):
    """Push an entry, the newest, on a heap."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if at[up] <= distance:  # of equal distances, the older entry comes first
            break
        heap[i], at[i] = heap[up], at[up]
        i = up
    heap[i], at[i] = entry, distance


@kernel(inner=True)
def _pop(heap, at, size):
    """Pop the smallest entry of a heap; of equal distances, the oldest."""
    least = heap[0]
    last, distance = heap[size - 1], at[size - 1]
    size -= 1
    i = 0
    while 2 * i + 1 < size:
        down = 2 * i + 1
        if down + 1 < size and _before(at[down + 1], heap[down + 1], at[down], heap[down]):
            down += 1
        if _before(distance, last, at[down], heap[down]):
            break
        heap[i], at[i] = heap[down], at[down]
        i = down
    heap[i], at[i] = last, distance
    return least


@kernel(inner=True)
def _before(distance, entry, other_distance, other):
    return distance < other_distance or (distance == other_distance and entry < other)
