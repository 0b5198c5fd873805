"""The order in which vertices are coloured: by falling degree, then by the caller's id."""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import part_of


@kernel
def rank_vertices(degree, new_of_old, order, rank):
    """Fill order and rank by a counting sort.

    `degree`, uint32 (n,), is by new id, and `new_of_old` is uint32 (num_vertices,). `order`, uint32
    (n,), gets the vertices (new ids) by rank, and `rank`, uint32 (n,), the rank of each vertex.
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
        if v != NO_ID:
            d = degree[v]
            place = slot[d]
            slot[d] = place + 1
            order[place] = v
            rank[v] = place


@kernel(counted=False, inner=True)
def renumber_lists(given, part, parts):
    """Write a part of the adjacency by rank: row r has the neighbours of order[r], as ranks."""
    indptr, indices, rank = given.indptr, given.indices, given.rank
    begin, end = part_of(given.order.size, part, parts)
    for r in range(begin, end):
        v, at = given.order[r], given.new_indptr[r]
        for k in range(indptr[v], indptr[v + 1]):
            given.new_indices[at] = rank[indices[k]]
            at += 1
