"""Compiled loops that turn buckets of keys into neighbour lists: sort, drop duplicates, close up.

A key is one uint32 that holds a vertex and a neighbour; see buckets.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.kernels.buckets import Buckets
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, trailing_zeros
from hetero_bfs.support.parallel import in_parallel, part_of

Array = npt.NDArray[Any]

_KEY_BITS = 32
_MANY_KEYS = 4096  # for more keys a digit has 11 bits instead of 8
_ONE = np.uint64(1)
_WORD_BITS = np.uint64(6)
_BIT_MASK = np.uint64(63)


@njit(inline="always")
def _radix_pass(keys, result, shift, mask, slot):
    slot[: mask + np.uint32(2)] = 0
    for i in range(keys.size):
        slot[((keys[i] >> shift) & mask) + np.uint32(1)] += 1
    for d in range(1, mask + np.uint32(1)):
        slot[d] += slot[d - 1]
    for i in range(keys.size):
        digit = (keys[i] >> shift) & mask
        result[slot[digit]] = keys[i]
        slot[digit] += 1


@kernel(inner=True)
def _sort(keys, scratch, slot):
    """Radix sort; return the array that holds the result, `keys` or `scratch`.

    Digits that are the same in all keys are skipped.
    """
    differing = np.uint32(0)
    for i in range(keys.size):
        differing |= keys[i] ^ keys[0]
    digit_bits = 11 if keys.size > _MANY_KEYS else 8
    mask = np.uint32((1 << digit_bits) - 1)
    source, target = keys, scratch[: keys.size]
    for low_bit in range(0, _KEY_BITS, digit_bits):
        shift = np.uint32(low_bit)
        if (differing >> shift) & mask:
            _radix_pass(source, target, shift, mask, slot)
            source, target = target, source
    return source


@kernel(inner=True)
def _write_lists(sorted_keys, lists, vertex_base, neighbour_bits, degree):
    """Write each vertex's neighbours without duplicates to `lists`, and their number to `degree`.

    `lists` may be the array of the keys. Returns the number of neighbours written.
    """
    shift = np.uint64(neighbour_bits)
    mask = np.uint32((_ONE << shift) - _ONE)
    written = 0
    begin = 0
    local = np.uint64(sorted_keys[0]) >> shift
    previous = ~sorted_keys[0]
    for i in range(sorted_keys.size):
        key = sorted_keys[i]
        if key == previous:
            continue
        previous = key
        if np.uint64(key) >> shift != local:
            degree[vertex_base + np.int64(local)] = written - begin
            begin = written
            local = np.uint64(key) >> shift
        lists[written] = key & mask
        written += 1
    degree[vertex_base + np.int64(local)] = written - begin
    return written


@kernel(inner=True)
def _write_long_list(keys, neighbour_bits, bitmap):
    """Turn one vertex's keys into its sorted list, in place, by a bitmap (uint64) of all vertices.

    Returns the length of the list.
    """
    mask = np.uint64((_ONE << np.uint64(neighbour_bits)) - _ONE)
    bitmap[:] = 0
    for i in range(keys.size):
        neighbour = np.uint64(keys[i]) & mask
        bitmap[neighbour >> _WORD_BITS] |= _ONE << (neighbour & _BIT_MASK)
    written = 0
    for word in range(bitmap.size):
        bits = bitmap[word]
        while bits:
            keys[written] = np.uint64(word << 6) + trailing_zeros(bits)
            written += 1
            bits &= bits - _ONE
    return written


def sort_buckets(
    next_bucket: Array,
    stop: int,
    buckets: Buckets,
    keys: Array,
    scratch: Array,
    degree: Array,
    unique: Array,
) -> None:
    """Sort the buckets from next_bucket[0] up to `stop`, and drop duplicates.

    The neighbour lists of bucket b are then contiguous, starting at first_key[b]. Their lengths go
    to `degree` (zero before), the sum of the lengths to unique[b]. `scratch` is uint32 (workers,
    size). A bucket of more keys than `size` holds a single vertex; a bitmap of its neighbours fits
    into the scratch.
    """
    in_parallel(
        _sort_buckets,
        scratch.shape[0],
        next_bucket=next_bucket,
        stop=stop,
        keys=keys,
        scratch=scratch,
        degree=degree,
        unique=unique,
        **buckets._asdict(),
    )
    next_bucket[0] = stop


@kernel(inner=True)
def _sort_buckets(given, worker, workers):
    first_key, degree, unique = given.first_key, given.degree, given.unique
    bits, scratch = given.neighbour_bits, given.scratch[worker]
    slot = np.empty((1 << 11) + 1, np.int64)
    while True:
        b = atomic_add(given.next_bucket, 0, 1)
        if b >= given.stop:
            break
        bucket = given.keys[first_key[b] : first_key[b + 1]]
        if bucket.size == 0:
            continue
        vertex = given.first_vertex[b] >> (_KEY_BITS - bits) << (_KEY_BITS - bits)
        if bucket.size <= scratch.size:
            ordered = _sort(bucket, scratch, slot)
            unique[b] = _write_lists(ordered, bucket, vertex, bits, degree)
        else:
            vertex += np.int64(np.uint64(bucket[0]) >> np.uint64(bits))
            bitmap = scratch.view(np.uint64)[: (degree.size + 63) >> 6]
            unique[b] = _write_long_list(bucket, bits, bitmap)
            degree[vertex] = unique[b]


@kernel
def close_up(first_key, unique, indices):
    """Move the buckets' lists down to close gaps; return the total length."""
    written = np.int64(0)
    for b in range(unique.size):
        source = first_key[b]
        if source == written:
            written += unique[b]
            continue
        for i in range(unique[b]):
            indices[written + i] = indices[source + i]
        written += unique[b]
    return written


def first_neighbours(indptr: Array, indices: Array, first: Array) -> None:
    """Set first[v] to the first neighbour of vertex v, or to v if it has none."""
    in_parallel(_first_neighbours, indptr=indptr, indices=indices, first=first)


@kernel(counted=False, inner=True)
def _first_neighbours(given, part, parts):
    indptr, indices, first = given.indptr, given.indices, given.first
    begin, end = part_of(first.size, part, parts)
    for v in range(begin, end):
        if indptr[v] < indptr[v + 1]:
            first[v] = indices[indptr[v]]
        else:
            first[v] = v
