"""Compiled loops that sort edges into buckets of consecutive vertices: count, cut, partition.

Writing 2 m edges into n neighbour lists in random order misses the cache once per edge. So edges
first go to buckets. A bucket is a range of vertices whose edges fit in the cache. Each thread has a
line for each bucket: it collects edges there and writes them out together (write combining).
sorting.py then sorts each bucket.

In a bucket an edge is a key, one uint32: (vertex << neighbour_bits | neighbour) modulo 2**32. Any
vertex fits in `neighbour_bits`. The shift may cut off high bits of the vertex. These bits are the
same for all vertices of a bucket, because no bucket crosses a multiple of 2**(32 - neighbour_bits).
So sorted keys are sorted neighbour lists. They are converted to the final array in place. The
weights of edges, if there are any, move along with the keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

from hetero_bfs.graph.edge_source import NO_ID, NO_VERTEX
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import parallel_kernel, part_of

Array = npt.NDArray[Any]

BLOCK_VERTICES = 64
_BLOCK_BITS = np.uint64(6)
_PREFETCH_DISTANCE = 512
_ONE = np.uint64(1)
_NO_VERTEX = np.uint64(NO_VERTEX)


class Buckets(NamedTuple):
    """Ranges of vertices, and the layout of keys.

    first_vertex : int64 (buckets + 1,); bucket b holds the new ids first_vertex[b] to
        first_vertex[b + 1] - 1
    first_key : int64 (buckets + 1,); the positions of its keys before duplicates are dropped
    bucket_of : uint32; bucket of each of the first `num_single` vertices, then of each block of 64
    run : int64 (workers, buckets); first position of each worker's keys in a bucket
    """

    first_vertex: Array
    first_key: Array
    num_single: int
    bucket_of: Array
    run: Array
    neighbour_bits: int


class KeyLines(NamedTuple):
    """The arrays to which workers write keys and weights.

    cursor : int64 (workers, buckets); position of a worker's next key in a bucket
    lines : uint32 (workers, buckets, keys per line); the last keys, not yet written to `keys`; the
        number of keys per line is a power of two
    keys : uint32; all keys, bucket by bucket
    weight_lines, weights : the same for the weights of edges, empty without weights
    """

    cursor: Array
    lines: Array
    keys: Array
    weight_lines: Array
    weights: Array


@parallel_kernel("src dst out_degree in_degree count_dst strays", counted=False)
def count_edges(given, worker, workers):
    """Add every edge that is not a loop to out_degree[worker, src] and in_degree[worker, dst].

    Both are uint32 (workers, vertices), and may be the same array. Without `count_dst`, `in_degree`
    is unchanged. Each worker has its own counters, since atomics would wait for every cache miss.
    An edge with an end that is not a vertex is counted in strays[worker], int64, instead.
    """
    src, dst, count_dst = given.src, given.dst, given.count_dst != 0
    out, into, strays = given.out_degree[worker], given.in_degree[worker], np.int64(0)
    begin, end = part_of(src.size, worker, workers)
    # Unsigned: Numba tests each signed index, as a negative one counts from the end.
    for i in range(np.uint64(begin), np.uint64(end)):
        u, v = src[i], dst[i]  # read once: other threads may write to them
        if max(u, v) >= out.size:
            strays += 1
        elif u != v:
            out[u] += np.uint32(1)
            if count_dst:
                into[v] += np.uint32(1)
    given.strays[worker] += strays


@parallel_kernel("counts", counted=False)
def add_up(given, part, parts):
    counts = given.counts
    begin, end = part_of(counts.shape[1], part, parts)
    for w in range(counts.shape[0] - 1, 0, -1):
        for v in range(begin, end):
            counts[w - 1, v] += counts[w, v]


@kernel
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
            new_of_old[v] = NO_ID
        else:
            new_of_old[v] = slot[d]
            old_of_new[slot[d]] = v
            slot[d] += 1


@njit(inline="always")
def _entry(vertex, num_single):
    """Return the index into `bucket_of`; vertices from `num_single` share one in blocks of 64."""
    block = (vertex >> _BLOCK_BITS) + num_single - (num_single >> _BLOCK_BITS)
    return vertex if vertex < num_single else block


@kernel
def count_single(degree, old_of_new, most_edges):
    """Return the number of vertices that have their own entry in `bucket_of`.

    It is a multiple of 64. After them every block of 64 vertices fits into a bucket.
    """
    num_single = np.int64(0)
    edges = np.int64(0)
    for v in range(old_of_new.size):
        if v % BLOCK_VERTICES == 0:
            edges = np.int64(0)
        edges += np.int64(degree[old_of_new[v]])
        if edges > most_edges:
            num_single = np.int64(v // BLOCK_VERTICES + 1) * BLOCK_VERTICES
    return num_single


@kernel
def cut_buckets(
    degree, old_of_new, num_single, most_edges, most_vertices, first_vertex, first_key, bucket_of
):
    """Cut the vertices into buckets; return the number of buckets.

    `first_vertex` and `first_key` get one more entry, the end of the last bucket. `degree` is
    indexed by old id. A bucket has at most `most_edges` edges, unless a single vertex has more. It
    does not cross a multiple of `most_vertices`. `_entry` explains `bucket_of`.
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


@parallel_kernel("counts old_of_new num_single bucket_of first_key run", counted=False)
def find_runs(given, worker, workers):
    """Set run[worker, bucket] to the first position of the worker's keys.

    `counts` is as `add_up` leaves it.
    """
    run, bucket_of, num_single = given.run[worker], given.bucket_of, np.uint64(given.num_single)
    for b in range(run.size):
        run[b] = given.first_key[b]
    if worker + 1 < workers:
        counts, old_of_new = given.counts[worker + 1], given.old_of_new
        for v in range(old_of_new.size):
            bucket = bucket_of[_entry(np.uint64(v), num_single)]
            run[bucket] += counts[old_of_new[v]]


@intrinsic
def are_weights(typing_context: Any, array: Any) -> Any:
    """are_weights(array): False for `weights.NO_WEIGHTS`, a constant of the compiled code."""
    held = array.dtype != types.uint8

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(types.boolean, held)

    return types.boolean(array), codegen


@kernel(counted=False, inner=True)
def _collect(given, worker, vertices, neighbours, chunk_weights):
    """Put the keys of edges into a worker's lines, and full lines into `keys`.

    Loops are left out. If the source now has more edges than were counted, nothing is written
    outside the arrays, and `cursor` does not end where the next run begins.
    """
    run, cursor, lines = given.run[worker], given.cursor[worker], given.lines[worker]
    bucket_of, keys, num_single = given.bucket_of, given.keys, np.uint64(given.num_single)
    weight_lines, weights = given.weight_lines[worker], given.weights
    # All unsigned: Numba tests each signed index, as a negative one counts from the end.
    shift = np.uint64(given.neighbour_bits)
    last = np.uint64(lines.shape[1] - 1)
    for i in range(np.uint64(vertices.size)):
        u = np.uint64(vertices[i])
        v = np.uint64(neighbours[i])
        if u == v:
            continue
        key = np.uint32((u << shift) | v)
        bucket = bucket_of[_entry(u, num_single)]
        position = np.uint64(cursor[bucket])
        cursor[bucket] = position + _ONE
        if position & last != last:
            lines[bucket, position & last] = key
            if are_weights(weights):
                weight_lines[bucket, position & last] = chunk_weights[i]
            continue
        if position >= np.uint64(keys.size):  # more edges than were counted
            continue
        # The last key is not read back: a wide load right after its store would wait for it.
        begin = max(position - last, np.uint64(run[bucket]))
        offset = begin & last
        for k in range(position - begin):
            keys[begin + k] = lines[bucket, offset + k]
        keys[position] = key
        if are_weights(weights):
            for k in range(position - begin):
                weights[begin + k] = weight_lines[bucket, offset + k]
            weights[position] = chunk_weights[i]


@kernel(inner=True)
def partition_edges(given, worker, workers):
    """Move edges into their buckets: (src, dst) if `forward`, (dst, src) if `backward`.

    `given` has these, `src`, `dst`, `chunk_weights`, `new_of_old`, and the fields of `Buckets` and
    `KeyLines`. Every worker takes the same part of the edges as in `count_edges`, and has its own
    run in each bucket. After the last call `flush_lines` writes the keys that remain in the lines.
    Loops and edges with an end that is not a vertex are left out.
    """
    src, dst, new_of_old = given.src, given.dst, given.new_of_old
    if new_of_old.size == 0:
        return
    # New ids are looked up a block ahead, so that their cache misses overlap.
    u = np.empty(_PREFETCH_DISTANCE, np.uint32)
    v = np.empty(_PREFETCH_DISTANCE, np.uint32)
    begin, stop = part_of(src.size, worker, workers)
    for start in range(begin, stop, _PREFETCH_DISTANCE):
        n = min(_PREFETCH_DISTANCE, stop - start)
        _look_up(src[start : start + n], dst[start : start + n], new_of_old, u, v)
        chunk_weights = given.chunk_weights[start : start + n]
        if given.forward and given.backward:
            _put_lesser_first(u, v, n)
        if given.forward:
            _collect(given, worker, u[:n], v[:n], chunk_weights)
        if given.backward:
            _collect(given, worker, v[:n], u[:n], chunk_weights)


@kernel(counted=False, inner=True)
def _put_lesser_first(u, v, n):
    """Swap ends of edges, so that the weights of an edge are added up alike for both its ends."""
    for i in range(np.uint64(n)):
        u[i], v[i] = min(u[i], v[i]), max(u[i], v[i])


@kernel(counted=False, inner=True)
def _look_up(src, dst, new_of_old, u, v):
    """Fill `u` and `v` with the new ids of the ends of edges.

    An edge that must be left out becomes a loop: one end is not a vertex, or has no new id because
    it had no edge when edges were counted. Such edges are rare, so the largest id shows whether
    there are any; vector instructions find it. Each end is read once, since other threads may write
    to the arrays at any time.
    """
    n = np.uint64(src.size)
    largest, largest_new = np.uint32(0), np.uint32(0)
    for i in range(n):
        a, b = src[i], dst[i]
        largest = max(largest, max(a, b))
        u[i], v[i] = a, b
    if largest >= new_of_old.size:
        _make_loops(u, v, n, new_of_old.size)
    for i in range(n):
        a, b = new_of_old[u[i]], new_of_old[v[i]]
        largest_new = max(largest_new, max(a, b))
        u[i], v[i] = a, b
    if largest_new == _NO_VERTEX:
        _make_loops(u, v, n, _NO_VERTEX)


@kernel(counted=False, inner=True)
def _make_loops(u, v, n, limit):
    for i in range(n):
        if max(u[i], v[i]) >= limit:
            u[i] = v[i] = np.uint32(0)


@kernel
def flush_lines(run, cursor, lines, keys, weight_lines, weights):
    """Write the keys and weights that remain in the workers' lines."""
    line = lines.shape[2]
    for w in range(run.shape[0]):
        for b in range(run.shape[1]):
            position = cursor[w, b]
            for p in range(max(position & -line, run[w, b]), position):
                keys[p] = lines[w, b, p & (line - 1)]
                if are_weights(weights):
                    weights[p] = weight_lines[w, b, p & (line - 1)]
