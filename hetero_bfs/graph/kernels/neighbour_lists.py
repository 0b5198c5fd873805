"""Compiled checks and copies of neighbour lists, their rows, and the union of both directions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit, prange

from hetero_bfs.graph.generators.kronecker_kernels import splitmix
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import bits_of
from hetero_bfs.support.parallel import in_parallel, parallel_kernel, part_of

Array = npt.NDArray[Any]

PARTS_PER_THREAD = 16  # of lists
_NO_VERTEX = np.uint32(0xFFFFFFFF)
_HALF = np.uint64(32)
_WEIGHT_STEP = np.uint64(0x9E3779B97F4A7C15)  # odd, so that unlike weights have unlike products


def cut_lists(indptr: Array, parts: int) -> Array:
    """Cut neighbour lists into parts with about as many entries; return the bounds, int64."""
    shares = np.linspace(0, indptr[-1], parts + 1).astype(np.int64)
    bounds = np.searchsorted(indptr, shares).astype(np.int64)
    bounds[0], bounds[-1] = 0, indptr.size - 1
    return bounds


def check_lists(indptr: Array, indices: Array) -> tuple[int, int]:
    """Return the position of the first wrong entry, -1 if there is none, and the pairing.

    An entry is wrong if it is not greater than the entry before it in its list, or if it is the
    list's own vertex. The pairing is 0 if (v, u) is stored as often as (u, v), for all u and v.
    Otherwise it is almost surely not 0. Each pair's hash is added for one direction and subtracted
    for the other.
    """
    parts = PARTS_PER_THREAD * numba.get_num_threads()
    wrong, pairing = np.full(parts, -1, np.int64), np.zeros(parts, np.uint64)
    bounds = cut_lists(indptr, parts)
    lists = {"bounds": bounds, "indptr": indptr, "indices": indices}
    in_parallel(_check_lists, parts, wrong=wrong, pairing=pairing, **lists)
    found = wrong[wrong >= 0]
    return int(found[0]) if found.size else -1, int(pairing.sum(dtype=np.uint64))


@kernel(counted=False, inner=True)
def _check_lists(given, part, parts):
    indptr, indices, total = given.indptr, given.indices, np.uint64(0)
    for u in range(given.bounds[part], given.bounds[part + 1]):
        before = np.int64(-1)
        for i in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = np.int64(indices[i])
            if (v <= before or v == u) and given.wrong[part] < 0:
                given.wrong[part] = i
            before = v
            total += _signed(splitmix(_pair(u, v)), u, v)
    given.pairing[part] = total


@njit(inline="always")
def _pair(u, v):
    return np.uint64(min(u, v)) << _HALF | np.uint64(max(u, v))


@njit(inline="always")
def _signed(drawn, u, v):
    backward = np.uint64(0) if u == v else np.uint64(0) - drawn
    return drawn if u < v else backward


def first_unlike(indptr: Array, indices: Array, weights: Array) -> int:
    """Return the first entry of sorted lists whose reverse has another weight, or -1.

    Hashes of pairs and weights are compared as in `check_lists`. Only if they differ, the entry is
    looked for.
    """
    parts = PARTS_PER_THREAD * numba.get_num_threads()
    pairing = np.zeros(parts, np.uint64)
    lists = {"bounds": cut_lists(indptr, parts), "indptr": indptr, "indices": indices}
    in_parallel(_pair_weights, parts, weights=weights, pairing=pairing, **lists)
    return int(_find_unlike(indptr, indices, weights)) if pairing.sum(dtype=np.uint64) else -1


@kernel(counted=False, inner=True)
def _pair_weights(given, part, parts):
    indptr, indices, weights, total = given.indptr, given.indices, given.weights, np.uint64(0)
    for u in range(given.bounds[part], given.bounds[part + 1]):
        for i in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = np.int64(indices[i])
            weight = weights[i] + weights.dtype.type(0)  # -0.0 becomes 0.0
            drawn = splitmix(_pair(u, v) + np.uint64(bits_of(weight)) * _WEIGHT_STEP)
            total += _signed(drawn, u, v)
    given.pairing[part] = total


@kernel
def _find_unlike(indptr, indices, weights):
    for u in range(indptr.size - 1):
        for k in range(indptr[u], indptr[u + 1]):
            if indices[k] > u:
                at = _find_neighbour(indptr, indices, np.int64(indices[k]), u)
                if at < 0 or weights[at] != weights[k]:
                    return np.int64(k)
    return np.int64(-1)


@njit(inline="always")
def _find_neighbour(indptr, indices, u, v):
    """Return the position of `v` in the sorted list of `u`, or -1."""
    low, high = indptr[u], indptr[u + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low if low < indptr[u + 1] and indices[low] == v else np.int64(-1)


@parallel_kernel("indptr start rows", counted=False)
def fill_rows(given, part, parts):
    """Set rows[i] to the vertex whose list has the entry start + i; `rows` is uint32.

    Offsets may change meanwhile: an entry of no list gets `NO_VERTEX`.
    """
    indptr, rows, start = given.indptr, given.rows, np.int64(given.start)
    begin, end = part_of(rows.size, part, parts)
    n = np.int64(indptr.size - 1)
    low, high = np.int64(-1), n  # the first entry is in the list of `low`
    while high - low > 1:
        middle = (low + high) >> 1
        if indptr[middle] <= start + begin:
            low = middle
        else:
            high = middle
    while begin < end:
        vertex, stop = _NO_VERTEX, end
        if 0 <= low < n:
            vertex, stop = np.uint32(low), min(end, indptr[low + 1] - start)
        for i in range(begin, stop):
            rows[np.uint64(i)] = vertex
        begin = max(begin, stop)
        low += 1


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
