"""Compiled checks and copies of neighbour lists, and the union of both directions."""

from __future__ import annotations

import numpy as np
from numba import prange

from hetero_bfs.graph.generators.kronecker_kernels import splitmix
from hetero_bfs.support.compiling import kernel

_HALF = np.uint64(32)


@kernel
def first_out_of_order(indptr, indices):
    """Return the position of the first wrong entry, -1 if there is none.

    An entry is wrong if it is not greater than the entry before it in its list, or if it is the
    list's own vertex.
    """
    for u in range(indptr.size - 1):
        before = np.int64(-1)
        for i in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[i])
            if v <= before or v == u:
                return np.int64(i)
            before = v
    return np.int64(-1)


@kernel
def pairing(indptr, indices):
    """Return 0 if (v, u) is stored as often as (u, v), for all u and v.

    Otherwise the result is almost surely not 0. Each pair's hash is added for one direction and
    subtracted for the other.
    """
    total = np.uint64(0)
    for u in range(indptr.size - 1):
        for i in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[i])
            if v != u:
                drawn = splitmix(np.uint64(min(u, v)) << _HALF | np.uint64(max(u, v)))
                if u < v:
                    total += drawn
                else:
                    total -= drawn
    return total


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


# The largest of some ids: a check of a list before a loop follows it.
#
# This loop uses vector instructions, and afterwards the list is in the cache. A comparison in the
# loop that follows the ids costs more.


@kernel(inner=True)
def largest_of(indices, first, last):
    """Return the largest of indices[first:last], 0 if the range is empty."""
    largest = np.uint32(0)
    for k in range(np.uint64(first), np.uint64(last)):
        largest = max(largest, indices[k])
    return largest


_BY_ONE_THREAD = 1 << 16
"""Most entries that are copied by one thread: a parallel region would cost more than it saves."""


@kernel
def place_blocks(blocks, bounds, most_entries, rows):
    """Place the first of these blocks one after another, as many as there is room for.

    Writes a block's number and the position of its first entry to each row; `rows` is uint32 (any,
    2). `blocks` and `bounds` are int64. Returns the numbers of placed blocks and of their entries.
    """
    entries = np.int64(0)
    most = min(blocks.size, rows.shape[0])
    for i in range(most):
        after = entries + bounds[blocks[i] + 1] - bounds[blocks[i]]
        if after > most_entries:
            return i, entries
        rows[i, 0], rows[i, 1] = blocks[i], entries
        entries = after
    return most, entries


@kernel(counted=False, inner=True)
def _gather_block(block, begin, bounds, entries, gathered):
    first, begin = bounds[block], np.int64(begin)
    for k in range(bounds[block + 1] - first):
        gathered[begin + k] = entries[first + k]


@kernel(parallel=True)
def _gather_blocks(rows, bounds, entries, gathered):
    for i in prange(rows.shape[0]):
        _gather_block(rows[i, 0], rows[i, 1], bounds, entries, gathered)


@kernel
def gather_blocks(rows, bounds, entries, gathered):
    """Copy the entries of the blocks in `rows` (`place_blocks`) to their positions."""
    if rows.shape[0] > 1 and rows[rows.shape[0] - 1, 1] > _BY_ONE_THREAD:
        _gather_blocks(rows, bounds, entries, gathered)
        return
    for i in range(rows.shape[0]):
        _gather_block(rows[i, 0], rows[i, 1], bounds, entries, gathered)
