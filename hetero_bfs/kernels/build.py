"""Compiled loops that turn edges into sorted neighbour lists: count, partition, sort.

A random scatter of 2 m edges into n lists misses the cache once per edge. Instead the edges are
first partitioned into buckets of consecutive vertices, each small enough to stay in the cache,
through write-combining buffers of one cache line per thread and bucket; a bucket is then sorted
by radix (stable, first by neighbour, then by vertex). A pair is one uint64:
vertex << 32 | neighbour.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hetero_bfs.kernels.intrinsics import atomic_add

LINE = 8  # pairs in a 64-byte cache line
_RADIX_BITS = 11
_LOW_WORD = np.uint64(0xFFFFFFFF)
_WORD_BITS = np.uint64(32)


@njit(cache=True, nogil=True, parallel=True)
def count_degrees(src, dst, out_degree, in_degree, threads):
    """Add every edge that is no loop to out_degree[src] and in_degree[dst] (may be one array)."""
    for t in prange(threads):
        for i in range(src.size * t // threads, src.size * (t + 1) // threads):
            if src[i] != dst[i]:
                atomic_add(out_degree, src[i], 1)
                atomic_add(in_degree, dst[i], 1)


@njit(cache=True, nogil=True)
def order_by_falling_degree(degree, new_of_old, old_of_new):
    """Counting sort, stable by id; vertices of degree 0 get no new id."""
    largest = np.int64(0)
    for v in range(degree.size):
        largest = max(largest, np.int64(degree[v]))
    slot = np.zeros(largest + 2, np.int64)
    for v in range(degree.size):
        slot[degree[v]] += 1
    position = np.int64(0)
    for d in range(largest, 0, -1):
        count = slot[d]
        slot[d] = position
        position += count
    for v in range(degree.size):
        d = degree[v]
        if d == 0:
            new_of_old[v] = np.uint32(0xFFFFFFFF)
        else:
            new_of_old[v] = slot[d]
            old_of_new[slot[d]] = v
            slot[d] += 1


@njit(inline="always")
def _push(pair, bucket, lines, fill, cursor, pairs):
    count = fill[bucket]
    lines[bucket, count] = pair
    count += 1
    if count == LINE:
        position = atomic_add(cursor, bucket, LINE)
        for k in range(LINE):
            pairs[position + k] = lines[bucket, k]
        count = 0
    fill[bucket] = count


@njit(cache=True, nogil=True, parallel=True)
def partition_edges(src, dst, new_of_old, bucket_of, forward, backward, cursor, pairs, lines, fill):
    """Move edges into their buckets: (src, dst) if `forward`, (dst, src) if `backward`.

    `bucket_of` is uint16 per new id; `cursor` int64 per bucket, the next free position in `pairs`;
    `lines` uint64 (threads, buckets, LINE) and `fill` int64 (threads, buckets) keep what is not yet
    written between calls.
    """
    threads = lines.shape[0]
    for t in prange(threads):
        for i in range(src.size * t // threads, src.size * (t + 1) // threads):
            if src[i] == dst[i]:
                continue
            u = np.uint64(new_of_old[src[i]])
            v = np.uint64(new_of_old[dst[i]])
            if forward:
                _push((u << _WORD_BITS) | v, bucket_of[u], lines[t], fill[t], cursor, pairs)
            if backward:
                _push((v << _WORD_BITS) | u, bucket_of[v], lines[t], fill[t], cursor, pairs)


@njit(cache=True, nogil=True)
def flush_lines(cursor, pairs, lines, fill):
    """Write what the threads' buffers still hold."""
    for t in range(lines.shape[0]):
        for bucket in range(lines.shape[1]):
            for k in range(fill[t, bucket]):
                pairs[cursor[bucket]] = lines[t, bucket, k]
                cursor[bucket] += 1
            fill[t, bucket] = 0


@njit(inline="always")
def _radix_pass(keys, result, shift, mask):
    slot = np.zeros(np.int64(mask) + 2, np.int64)
    for i in range(keys.size):
        slot[((keys[i] >> shift) & mask) + np.uint64(1)] += 1
    for d in range(1, slot.size):
        slot[d] += slot[d - 1]
    for i in range(keys.size):
        digit = (keys[i] >> shift) & mask
        result[slot[digit]] = keys[i]
        slot[digit] += 1


@njit(cache=True, nogil=True)
def _sort_bucket(keys, first_vertex, starts, compact, degree):
    """Sort one bucket's pairs and drop duplicates.

    `starts` int64 (vertices + 1,): where each vertex's list begins, relative to the bucket;
    the lists go to `compact` (uint32, a view of the same memory), their lengths to `degree`.
    """
    vertices = degree.size
    largest = np.uint64(0)
    for i in range(keys.size):
        largest |= keys[i] & _LOW_WORD
    source = keys
    target = np.empty(keys.size, np.uint64)
    shift = np.uint64(0)
    while largest >> shift:
        _radix_pass(source, target, shift, np.uint64((1 << _RADIX_BITS) - 1))
        source, target = target, source
        shift += np.uint64(_RADIX_BITS)
    sorted_lists = np.empty(keys.size, np.uint32)
    slot = starts[:vertices].copy()
    for i in range(keys.size):
        v = np.int64(source[i] >> _WORD_BITS) - first_vertex
        sorted_lists[slot[v]] = source[i] & _LOW_WORD
        slot[v] += 1
    written = 0
    for v in range(vertices):
        begin = written
        for i in range(starts[v], starts[v + 1]):
            if i == starts[v] or sorted_lists[i] != sorted_lists[i - 1]:
                compact[written] = sorted_lists[i]
                written += 1
        degree[v] = written - begin


@njit(cache=True, nogil=True, parallel=True)
def sort_buckets(low, high, bucket_vertices, raw_indptr, pairs, compact, degree):
    """Sort buckets [low, high); bucket b holds vertices bucket_vertices[b] to [b + 1].

    The unique neighbours of bucket b end up contiguous in `compact` (uint32 view of `pairs`)
    from 2 * raw_indptr[bucket_vertices[b]] on, their counts in `degree`.
    """
    for b in prange(low, high):
        first, last = bucket_vertices[b], bucket_vertices[b + 1]
        if first < last:
            begin, end = raw_indptr[first], raw_indptr[last]
            _sort_bucket(
                pairs[begin:end],
                first,
                raw_indptr[first : last + 1] - begin,
                compact[2 * begin : 2 * end],
                degree[first:last],
            )


@njit(cache=True, nogil=True, parallel=True)
def gather_lists(bucket_vertices, raw_indptr, indptr, compact, indices):
    """Copy the buckets' unique neighbours to their final place."""
    for b in prange(bucket_vertices.size - 1):
        first, last = bucket_vertices[b], bucket_vertices[b + 1]
        begin = 2 * raw_indptr[first]
        length = indptr[last] - indptr[first]
        indices[indptr[first] : indptr[last]] = compact[begin : begin + length]
