"""Compiled loops that turn buckets of keys into neighbour lists: sort, drop duplicates, close up.

A key is one uint32 that holds a vertex and a neighbour; see buckets.py.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.kernels.buckets import are_weights
from hetero_bfs.graph.kernels.neighbour_lists import PARTS_PER_THREAD, cut_lists
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, bits_of, population_count, trailing_zeros
from hetero_bfs.support.parallel import in_parallel, parallel_kernel, part_of

Array = npt.NDArray[Any]

_KEY_BITS = 32
_MANY_KEYS = 4096  # for more keys a digit has 11 bits instead of 8
SLOTS = (1 << 11) + 1
_ONE = np.uint64(1)
_WORD_BITS = np.uint64(6)
_BIT_MASK = np.uint64(63)
_MIN, _MAX, _SUM = range(3)  # as in `weights.DUPLICATES`
_INT32_LIMIT = 2**31
_INSERTION = 48  # longest list sorted by insertion


@njit(inline="always")
def _radix_pass(keys, items, sorted_keys, sorted_items, shift, mask, slot):
    slot[: mask + np.uint32(2)] = 0
    for i in range(keys.size):
        slot[((bits_of(keys[i]) >> shift) & mask) + np.uint32(1)] += 1
    for d in range(1, mask + np.uint32(1)):
        slot[d] += slot[d - 1]
    for i in range(keys.size):
        digit = (bits_of(keys[i]) >> shift) & mask
        sorted_keys[slot[digit]] = keys[i]
        if are_weights(items):
            sorted_items[slot[digit]] = items[i]
        slot[digit] += 1


@kernel(inner=True)
def radix_sort(keys, items, other_keys, other_items, slot):
    """Sort stably by the bits of keys of at least 0; `slot` is int64 (`SLOTS`,).

    Returns the arrays that hold the result, the first or the others. Digits that are the same in
    all keys are skipped. The arrays of items may be `weights.NO_WEIGHTS`.
    """
    differing = bits_of(keys[0]) ^ bits_of(keys[0])
    for i in range(keys.size):
        differing |= bits_of(keys[i]) ^ bits_of(keys[0])
    digit_bits = 11 if keys.size > _MANY_KEYS else 8
    mask = np.uint32((1 << digit_bits) - 1)
    for low_bit in range(0, 8 * keys.itemsize, digit_bits):
        shift = np.uint32(low_bit)
        if (differing >> shift) & mask:
            _radix_pass(keys, items, other_keys, other_items, shift, mask, slot)
            keys, other_keys = other_keys, keys
            items, other_items = other_items, items
    return keys, items


@njit(inline="always")
def _combined(given, worker, before, weight):
    """Combine two weights of an edge; a sum beyond int32 is noted in `given.overflow`."""
    result = before
    if given.duplicates == _SUM:
        total = before + weight
        if given.is_int32 and not -_INT32_LIMIT <= total < _INT32_LIMIT:
            given.overflow[worker] = 1
        else:
            result = total
    elif (weight < before) == (given.duplicates == _MIN):
        result = weight
    return result


@kernel(inner=True)
def _write_lists(given, worker, ordered, bucket, vertex_base):
    """Write each vertex's neighbours without duplicates to the bucket, their number to `degree`.

    `ordered` and `bucket` are (keys, weights), and may be the same. Returns the number of
    neighbours written.
    """
    sorted_keys, sorted_weights = ordered
    lists, weights = bucket
    shift, degree = np.uint64(given.neighbour_bits), given.degree
    mask = np.uint32((_ONE << shift) - _ONE)
    written = 0
    begin = 0
    local = np.uint64(sorted_keys[0]) >> shift
    previous = ~sorted_keys[0]
    for i in range(sorted_keys.size):
        key = sorted_keys[i]
        if key == previous:
            if are_weights(weights):
                weight = _combined(given, worker, weights[written - 1], sorted_weights[i])
                weights[written - 1] = weight
            continue
        previous = key
        if np.uint64(key) >> shift != local:
            degree[vertex_base + np.int64(local)] = written - begin
            begin = written
            local = np.uint64(key) >> shift
        lists[written] = key & mask
        if are_weights(weights):
            weights[written] = sorted_weights[i]
        written += 1
    degree[vertex_base + np.int64(local)] = written - begin
    return written


@kernel(inner=True)
def _write_long_list(given, worker, keys, weights, bitmap):
    """Turn one vertex's keys into its sorted list, in place, by a bitmap (uint64) of all vertices.

    Returns the length of the list.
    """
    mask = np.uint64((_ONE << np.uint64(given.neighbour_bits)) - _ONE)
    bitmap[:] = 0
    for i in range(keys.size):
        neighbour = np.uint64(keys[i]) & mask
        bitmap[neighbour >> _WORD_BITS] |= _ONE << (neighbour & _BIT_MASK)
    if are_weights(weights):
        _combine_long_list(given, worker, keys, weights, bitmap)
    written = 0
    for word in range(bitmap.size):
        bits = bitmap[word]
        while bits:
            keys[written] = np.uint64(word << 6) + trailing_zeros(bits)
            written += 1
            bits &= bits - _ONE
    return written


@kernel(inner=True)
def _combine_long_list(given, worker, keys, weights, bitmap):
    """Move the weights of a long list to its start, combined and ordered by neighbour."""
    mask = np.uint64((_ONE << np.uint64(given.neighbour_bits)) - _ONE)
    first = np.empty(bitmap.size, np.uint32)  # position of each word's first neighbour in the list
    size = np.uint32(0)
    for word in range(bitmap.size):
        first[word] = size
        size += np.uint32(population_count(bitmap[word]))
    combined = np.empty(size, weights.dtype)
    combined[:] = given.identity[0]
    for i in range(keys.size):
        neighbour = np.uint64(keys[i]) & mask
        below = bitmap[neighbour >> _WORD_BITS] & ((_ONE << (neighbour & _BIT_MASK)) - _ONE)
        at = np.uint64(first[neighbour >> _WORD_BITS]) + np.uint64(population_count(below))
        combined[at] = _combined(given, worker, combined[at], weights[i])
    for i in range(np.uint64(size)):
        weights[i] = combined[i]


@kernel(inner=True)
def sort_buckets(given, worker, workers):
    """Sort the buckets from next_bucket[0] up to `stop`, and combine duplicates.

    The neighbour lists of bucket b are then contiguous, starting at first_key[b]. Their lengths go
    to `degree` (zero before), their sum to unique[b]. `scratch` and `weight_scratch` have shape
    (workers, size). A bucket of more keys than `size` holds a single vertex; a bitmap of its
    neighbours fits into the scratch. Arrays of weights are empty if edges have none.

    Weights of an edge that occurs several times are combined by `duplicates`, an index into
    `weights.DUPLICATES`; `identity`, shape (1,), changes no weight. A sum beyond int32 sets an
    entry of `overflow`, int64 (workers,), if `is_int32`.
    """
    first_key, degree, unique = given.first_key, given.degree, given.unique
    bits, scratch = given.neighbour_bits, given.scratch[worker]
    weight_scratch = given.weight_scratch[worker]
    slot = np.empty(SLOTS, np.int64)
    while True:
        b = atomic_add(given.next_bucket, 0, 1)
        if b >= given.stop:
            break
        keys = given.keys[first_key[b] : first_key[b + 1]]
        weights = given.weights[first_key[b] : first_key[b + 1]]
        if keys.size == 0:
            continue
        vertex = given.first_vertex[b] >> (_KEY_BITS - bits) << (_KEY_BITS - bits)
        if keys.size <= scratch.size:
            other_weights = weight_scratch[: weights.size]
            ordered = radix_sort(keys, weights, scratch[: keys.size], other_weights, slot)
            unique[b] = _write_lists(given, worker, ordered, (keys, weights), vertex)
        else:
            vertex += np.int64(np.uint64(keys[0]) >> np.uint64(bits))
            bitmap = scratch.view(np.uint64)[: (degree.size + 63) >> 6]
            unique[b] = _write_long_list(given, worker, keys, weights, bitmap)
            degree[vertex] = unique[b]


@kernel
def close_up(first_key, unique, entries):
    """Move the buckets' lists, or their weights, down to close gaps; return the total length."""
    written = np.int64(0)
    for b in range(unique.size):
        source = first_key[b]
        if source == written:
            written += unique[b]
            continue
        for i in range(unique[b]):
            entries[written + i] = entries[source + i]
        written += unique[b]
    return written


@parallel_kernel("indptr indices first", counted=False)
def first_neighbours(given, part, parts):
    """Set first[v] to the first neighbour of vertex v, or to v if it has none."""
    indptr, indices, first = given.indptr, given.indices, given.first
    begin, end = part_of(first.size, part, parts)
    for v in range(begin, end):
        if indptr[v] < indptr[v + 1]:
            first[v] = indices[indptr[v]]
        else:
            first[v] = v


def sort_by_weight(indptr: Array, indices: Array, weights: Array) -> tuple[Array, Array]:
    """Return neighbours and weights, shape (indptr[-1],), each list sorted stably by rising weight.

    Weights must not be negative.
    """
    neighbours, sorted_weights = indices.copy(), weights.copy()
    sort_lists(indptr, neighbours, sorted_weights)
    return neighbours, sorted_weights


def sort_lists(indptr: Array, items: Array, keys: Array) -> None:
    """Sort each list in place, stably by rising key; keys must not be negative.

    `items`, shape (indptr[-1],), move along with the keys, unless they are `weights.NO_WEIGHTS`.
    """
    parts = PARTS_PER_THREAD * numba.get_num_threads()
    in_parallel(
        _sort_lists,
        parts,
        bounds=cut_lists(indptr, parts),
        indptr=indptr,
        items=items,
        keys=keys,
        longest=int(np.diff(indptr).max(initial=0)),
    )


@kernel(inner=True)
def _sort_lists(given, part, parts):
    indptr, items, keys = given.indptr, given.items, given.keys
    first, last = given.bounds[part], given.bounds[part + 1]
    other_items, other_keys = np.empty(0, items.dtype), np.empty(0, keys.dtype)
    slot = np.empty(SLOTS, np.int64)
    for v in range(first, last):
        begin, end = indptr[v], indptr[v + 1]
        size = end - begin
        if size <= _INSERTION:
            _insert(items, keys, begin, end)
            continue
        if other_keys.size < size:
            other_items = np.empty(min(given.longest, items.size), items.dtype)
            other_keys = np.empty(given.longest, keys.dtype)
        others = other_keys[:size], other_items[:size]
        ordered = radix_sort(keys[begin:end], items[begin:end], *others, slot)
        for i in range(size):  # to assign an array takes Numba 1.5 s to compile
            keys[begin + i] = ordered[0][i]
            if are_weights(items):
                items[begin + i] = ordered[1][i]


@njit(inline="always")
def _insert(items, keys, begin, end):
    for i in range(begin + 1, end):
        key, k = keys[i], i
        if keys[i - 1] <= key:
            continue
        item = items[i] if are_weights(items) else items.dtype.type(0)
        while k > begin and keys[k - 1] > key:
            keys[k] = keys[k - 1]
            if are_weights(items):
                items[k] = items[k - 1]
            k -= 1
        keys[k] = key
        if are_weights(items):
            items[k] = item
