"""Joins neighbour lists with their transpose, so that each edge is in the lists of both ends."""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.kernels.largest import largest_of
from hetero_bfs.support.compiling import kernel

_CHECKED_IDS = 4096  # per block, so that they are in the cache when they are counted


@kernel
def join_with_transpose(indptr, indices, weights, joined_indptr, joined_indices, joined_weights):
    """Fill each neighbour list with its own entries, then the transpose's, both in order.

    The joined arrays are int64 (n + 1,), uint32 and float64 (2 * indptr[-1],). Weights are float64.
    If `weights` is empty, so is `joined_weights`. The offsets must be valid. Returns False if an id
    is not below n.
    """
    n = indptr.size - 1
    joined_indptr[:] = 0
    for first in range(0, indices.size, _CHECKED_IDS):
        last = min(first + _CHECKED_IDS, indices.size)
        if largest_of(indices, first, last) >= n:
            return False
        for v in indices[first:last]:
            joined_indptr[np.int64(v) + 1] += 1
    for v in range(n):
        joined_indptr[v + 1] += joined_indptr[v] + indptr[v + 1] - indptr[v]
    after = np.empty(n, np.uint64)  # position of the next transposed entry of each list
    for v in range(n):
        to = np.uint64(joined_indptr[v])
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            joined_indices[to] = indices[k]
            if weights.size > 0:
                joined_weights[to] = weights[k]
            to += np.uint64(1)
        after[v] = to
    for v in range(n):
        for k in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            u = indices[k]
            to = after[u]
            joined_indices[to] = v
            if weights.size > 0:
                joined_weights[to] = weights[k]
            after[u] = to + np.uint64(1)
    return True
