"""Compiled loops that turn edges into sorted neighbour lists: count, partition, sort, close up.

A random scatter of 2 m edges into n lists misses the cache once per edge. Instead the edges are
first partitioned into buckets of consecutive vertices, each small enough to stay in the cache,
through write-combining lines, one for each thread and bucket; a bucket is then sorted by radix.

A key is one uint32: (vertex << neighbour_bits | neighbour) modulo 2**32, where neighbour_bits are
enough for every vertex. What the shift cuts off is equal for all vertices of a bucket, because
none crosses a multiple of 2**(32 - neighbour_bits); sorted keys are thus sorted lists, and they
turn into the final neighbour array where they lie.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from hetero_bfs.kernels.intrinsics import atomic_add, trailing_zeros

BLOCK_VERTICES = 64
_BLOCK_BITS = np.uint64(6)
_AHEAD = 512
_KEY_BITS = 32
_MANY_KEYS = 4096
_ONE = np.uint64(1)
_WORD_BITS = np.uint64(6)
_BIT_MASK = np.uint64(63)


@njit(cache=True, nogil=True, parallel=True)
def count_edges(src, dst, out_degree, in_degree, count_dst):
    """Add every edge that is no loop to out_degree[worker, src] and in_degree[worker, dst].

    Both are uint32, shape (workers, vertices), and may be one array; the second stays as it is
    without `count_dst`. Private counters need no atomics, which would bare every cache miss.
    """
    workers = out_degree.shape[0]
    for w in prange(workers):
        out = out_degree[w]
        into = in_degree[w]
        for i in range(src.size * w // workers, src.size * (w + 1) // workers):
            if src[i] != dst[i]:
                out[src[i]] += np.uint32(1)
                if count_dst:
                    into[dst[i]] += np.uint32(1)


@njit(cache=True, nogil=True, parallel=True)
def add_up(counts):
    """Add to every row of uint32 (workers, vertices) the rows behind it: row 0 is the sum."""
    for v in prange(counts.shape[1]):
        for w in range(counts.shape[0] - 1, 0, -1):
            counts[w - 1, v] += counts[w, v]


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
def _entry(vertex, num_single):
    """Return where bucket_of speaks of a vertex: alone if below num_single, else of 64."""
    block = (vertex >> _BLOCK_BITS) + num_single - (num_single >> _BLOCK_BITS)
    return vertex if vertex < num_single else block


@njit(cache=True, nogil=True)
def count_single(degree, old_of_new, most_edges):
    """Return how many vertices come before only such blocks of 64 as fit into a bucket whole."""
    num_single = np.int64(0)
    edges = np.int64(0)
    for v in range(old_of_new.size):
        if v % BLOCK_VERTICES == 0:
            edges = np.int64(0)
        edges += np.int64(degree[old_of_new[v]])
        if edges > most_edges:
            num_single = np.int64(v // BLOCK_VERTICES + 1) * BLOCK_VERTICES
    return num_single


@njit(cache=True, nogil=True)
def cut_buckets(
    degree, old_of_new, num_single, most_edges, most_vertices, first_vertex, first_key, bucket_of
):
    """Cut the vertices into buckets; return how many, with the ends behind the last one.

    `degree` is by old id. A bucket has at most `most_edges` edges unless one vertex has more, and
    crosses no multiple of `most_vertices`. For the use of `bucket_of` see `_entry`.
    """
    buckets = np.int64(0)
    edges = np.int64(0)
    total = np.int64(0)
    v = np.int64(0)
    while v < old_of_new.size:
        stop = v + 1 if v < num_single else min(v + BLOCK_VERTICES, old_of_new.size)
        more = np.int64(0)
        for u in range(v, stop):
            more += np.int64(degree[old_of_new[u]])
        if v % most_vertices == 0 or edges + more > most_edges:
            first_vertex[buckets] = v
            first_key[buckets] = total
            buckets += 1
            edges = np.int64(0)
        bucket_of[_entry(np.uint64(v), np.uint64(num_single))] = buckets - 1
        edges += more
        total += more
        v = stop
    first_vertex[buckets] = old_of_new.size
    first_key[buckets] = total
    return buckets


@njit(cache=True, nogil=True, parallel=True)
def find_runs(counts, old_of_new, num_single, bucket_of, first_key, run):
    """Set run[worker, bucket] to where the worker's own keys begin; `counts` as added up."""
    workers, buckets = run.shape
    for w in prange(workers):
        for b in range(buckets):
            run[w, b] = first_key[b]
        if w + 1 < workers:
            for v in range(old_of_new.size):
                bucket = bucket_of[_entry(np.uint64(v), np.uint64(num_single))]
                run[w, bucket] += counts[w + 1, old_of_new[v]]


@njit(cache=True, nogil=True)
def _collect(vertices, neighbours, num_single, bucket_of, neighbour_bits, run, cursor, lines, keys):
    """Put keys into one worker's lines, and into `keys` where a line is full."""
    # All unsigned: of a signed index Numba asks each time whether it counts from the end.
    shift = np.uint64(neighbour_bits)
    last = np.uint64(lines.shape[1] - 1)
    for i in range(vertices.size):
        u = np.uint64(vertices[i])
        v = np.uint64(neighbours[i])
        if u == v:
            continue
        key = np.uint32((u << shift) | v)
        bucket = bucket_of[_entry(u, np.uint64(num_single))]
        position = np.uint64(cursor[bucket])
        cursor[bucket] = position + _ONE
        if position & last != last:
            lines[bucket, position & last] = key
            continue
        # The last key is not read back: a wide load right behind its store would wait for it.
        begin = max(position - last, np.uint64(run[bucket]))
        offset = begin & last
        for k in range(position - begin):
            keys[begin + k] = lines[bucket, offset + k]
        keys[position] = key


@njit(cache=True, nogil=True, parallel=True)
def partition_edges(
    src,
    dst,
    new_of_old,
    num_single,
    bucket_of,
    neighbour_bits,
    forward,
    backward,
    run,
    cursor,
    lines,
    keys,
):
    """Move edges into their buckets: (src, dst) if `forward`, (dst, src) if `backward`.

    Every worker takes the part of the edges that it took in `count_edges`, and has a run of its own
    in each bucket: `run` int64 (workers, buckets) is where it begins, `cursor` the next position.
    `lines` uint32 (workers, buckets, keys of a line, a power of two) keeps what is not yet written
    between calls.
    """
    workers = run.shape[0]
    for w in prange(workers):
        # Looked up ahead, so that many cache misses run at once.
        u = np.empty(_AHEAD, np.uint32)
        v = np.empty(_AHEAD, np.uint32)
        stop = src.size * (w + 1) // workers
        for start in range(src.size * w // workers, stop, _AHEAD):
            n = min(_AHEAD, stop - start)
            for i in range(n):
                u[i] = new_of_old[src[start + i]]
                v[i] = new_of_old[dst[start + i]]
            # No inlined function takes arrays here: each edge would count references to them.
            if forward:
                _collect(
                    u[:n],
                    v[:n],
                    num_single,
                    bucket_of,
                    neighbour_bits,
                    run[w],
                    cursor[w],
                    lines[w],
                    keys,
                )
            if backward:
                _collect(
                    v[:n],
                    u[:n],
                    num_single,
                    bucket_of,
                    neighbour_bits,
                    run[w],
                    cursor[w],
                    lines[w],
                    keys,
                )


@njit(cache=True, nogil=True)
def flush_lines(run, cursor, lines, keys):
    """Write what the workers' lines still hold."""
    line = lines.shape[2]
    for w in range(run.shape[0]):
        for b in range(run.shape[1]):
            position = cursor[w, b]
            for p in range(max(position & -line, run[w, b]), position):
                keys[p] = lines[w, b, p & (line - 1)]


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


@njit(cache=True, nogil=True)
def _sort(keys, scratch, slot):
    """Sort by radix, passing over digits that no two keys differ in; return where the keys are."""
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


@njit(cache=True, nogil=True)
def _write_lists(sorted_keys, lists, vertex_base, neighbour_bits, degree):
    """Write the unique neighbours to `lists` (may be the keys), their counts to `degree`."""
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


@njit(cache=True, nogil=True)
def _write_long_list(keys, neighbour_bits, bitmap):
    """Sort one vertex's list in place by a bitmap (uint64) of all neighbours."""
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


@njit(cache=True, nogil=True, parallel=True)
def sort_buckets(
    next_bucket, stop, first_vertex, first_key, neighbour_bits, keys, scratch, degree, unique
):
    """Sort buckets next_bucket[0], ... up to `stop` and drop duplicates.

    Bucket b holds vertices first_vertex[b] to [b + 1] and keys first_key[b] to [b + 1]. Its lists
    end up one behind the other from `first_key[b]` on, their lengths in `degree` (zero before),
    the sum of these in unique[b]. `scratch` is uint32 (workers, size); a bucket larger than `size`
    holds one vertex, and its neighbours as a bitmap fit.
    """
    for w in prange(scratch.shape[0]):
        slot = np.empty((1 << 11) + 1, np.int64)
        while True:
            b = atomic_add(next_bucket, 0, 1)
            if b >= stop:
                break
            bucket = keys[first_key[b] : first_key[b + 1]]
            if bucket.size == 0:
                continue
            vertex = first_vertex[b] >> (_KEY_BITS - neighbour_bits) << (_KEY_BITS - neighbour_bits)
            if bucket.size <= scratch.shape[1]:
                ordered = _sort(bucket, scratch[w], slot)
                unique[b] = _write_lists(ordered, bucket, vertex, neighbour_bits, degree)
            else:
                vertex += np.int64(np.uint64(bucket[0]) >> np.uint64(neighbour_bits))
                bitmap = scratch[w].view(np.uint64)[: (degree.size + 63) >> 6]
                unique[b] = _write_long_list(bucket, neighbour_bits, bitmap)
                degree[vertex] = unique[b]
    next_bucket[0] = stop


@njit(cache=True, nogil=True)
def close_up(first_key, unique, indices):
    """Move the buckets' lists down so that no gaps are left; return the length."""
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


@njit(cache=True, nogil=True, parallel=True)
def first_neighbours(indptr, indices, absent, first):
    """Set first[v] to the first of each list, to `absent` where a list is empty."""
    for v in prange(first.size):
        if indptr[v] < indptr[v + 1]:
            first[v] = indices[indptr[v]]
        else:
            first[v] = absent
