"""Relaxes full neighbour lists in buckets of distances: the strategy FULL; see relax.py.

A window is divided into buckets of distances, and each thread has its own buckets. A thread takes
its share of the far pile and puts the vertices within the window into its buckets. Then it relaxes
the buckets one after another. A vertex that gets a smaller distance goes into the bucket of this
distance, or onto the far pile if that is beyond the window. So threads wait for each other once a
window, not after each queue, and relax few vertices twice. Zhang et al. (2020, "Optimizing ordered
graph algorithms with GraphIt") fuse buckets like this. If another thread finds a shorter path to a
vertex meanwhile, it puts the vertex into one of its own buckets and relaxes it again.

A vertex is put into a bucket each time its distance falls, so it may be in several. `relaxed` shows
a thread which of them need no work. So no flag is cleared, and only `bits` needs atomics. Arrays in
addition to those of relax.py:

    pool    uint32 (blocks * POOL_BLOCK,)   items of all buckets, in the memory of `queue`; block 0
                                            holds arbitrary vertices, which are only prefetched
    link    int32 (blocks,)                 the next block of a bucket, or of a list of free blocks
    top     int64 (threads, MOST_BUCKETS)   where a thread writes next in each bucket
    free    int64 (threads, 8)              a thread's first free block
    found   uint32 (threads, ENDS)          ends of edges that get a smaller distance
    reached D (threads, ENDS)               that distance
    offer   int64 (threads, 8)              work offered to a waiting thread: the `top` of a bucket
                                            << _BUCKET_BITS | its number

In `link`, `top`, `free` and `offer`, 0 means none. A thread whose buckets are empty is IDLE. It
waits for an offer as long as another thread is BUSY. A busy thread offers a block of its bucket, or
its next bucket.

The pool has room for every vertex once. If it is full, an item is dropped. Then the next far pile
has all vertices that have relaxed nothing since their distance fell last.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.sssp.kernels import relax
from hetero_bfs.algorithms.sssp.kernels.relax import is_dead_end, note_lowest
from hetero_bfs.devices.cpu.thread_pool import ITEMS, block_of, chunk_of, pause, push_item
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import (
    atomic_min,
    bits_of,
    exchange,
    fetch_add,
    load,
    prefetch,
    store,
    value_of,
)

POOL_BLOCK = 128

MOST_BUCKETS = 64

ENDS = 64
"""Capacity of `found`: a thread lowers distances at the latest when it is full."""

_MANY_ENDS = 16  # ends found that are worth lowering their distances

_BUCKET_BITS = (MOST_BUCKETS - 1).bit_length()
_SHIFT = POOL_BLOCK.bit_length() - 1
_MASK = POOL_BLOCK - 1


def pool_blocks(vertices: int, threads: int) -> int:
    """Return the number of blocks in the pool; block 0 is not used."""
    return vertices // POOL_BLOCK + threads * MOST_BUCKETS + 1


@njit(inline="always")
def _take_block(arrays, me):
    """Return a free block for the caller, 0 if none is left."""
    block = arrays.free[me, 0]
    if block:
        arrays.free[me, 0] = arrays.link[block]
        return block
    block = fetch_add(arrays.counters[relax.TAKEN], 0, 1) + 1
    if block < arrays.link.size:
        return block
    arrays.counters[relax.DROPPED, 0] = 1
    return relax.ZERO


@njit(inline="always")
def _put(arrays, me, bucket, v):
    top = arrays.top[me]
    at = top[np.uint64(bucket)]
    if at & _MASK == 0:
        full = max((at >> _SHIFT) - 1, 0)
        block = _take_block(arrays, me)
        if block == 0:
            return
        arrays.link[block] = full
        at = block << _SHIFT
    arrays.pool[np.uint64(at)] = v
    top[np.uint64(bucket)] = at + 1


@njit(inline="always")
def _bucket_of(control, arrays, scale, reached):
    """Return the bucket of a distance within the window; rounding does not matter."""
    bucket = np.int64((reached - arrays.window[relax.START]) * scale)
    return min(max(bucket, 0), control[relax.BUCKETS] - 1)


@njit(inline="always")
def _find_ends(control, arrays, u, me, bucket, far_at, count, scale):
    """Find the ends of `u` that get a smaller distance, unless `u` relaxed its distance before.

    Returns the far pile's new cursor, the number of ends found and not yet lowered, and the edges
    scanned, or -1 if `u` needed no work. The inner loop has no branch for an end that is found: it
    would be mispredicted about once a vertex.
    """
    indptr, neighbours, weights = arrays.indptr, arrays.neighbours, arrays.weights
    found, reached, infinity = arrays.found[me], arrays.reached[me], arrays.window[relax.INFINITY]
    distance, key = arrays.distance, arrays.bits[u]
    first, last = np.uint64(indptr[u]), np.uint64(indptr[u + np.uint32(1)])
    if arrays.relaxed[u] == key:
        return far_at, count, np.int64(-1)
    arrays.relaxed[u] = key
    start = value_of(key, infinity)
    if is_dead_end(arrays, control, u, last - first):
        last = first
    scanned = np.int64(last - first)
    while first < last and weights[last - np.uint64(1)] >= infinity:
        last -= np.uint64(1)
    if first < last and start + weights[last - np.uint64(1)] >= infinity:
        arrays.counters[relax.OVERFLOW, 0] = 1
    while first < last:
        stop = min(last, first + np.uint64(ENDS) - count)
        for k in range(first, stop):
            v = neighbours[k]
            candidate = start + weights[k]
            found[count], reached[count] = v, distance.dtype.type(candidate)
            count += np.uint64(candidate < distance[v])
        first = stop
        if count >= _MANY_ENDS:
            far_at = _lower(control, arrays, me, bucket, far_at, count, scale)
            count = np.uint64(0)
    return far_at, count, scanned


@njit(inline="always")
def _lower(control, arrays, me, bucket, far_at, count, scale):
    """Lower the distances of the ends found, and put these into buckets or onto the far pile.

    Returns the far pile's new cursor.
    """
    bits, end = arrays.bits, arrays.window[relax.END]
    found, reached = arrays.found[me], arrays.reached[me]
    for i in range(count):
        v, new = found[i], reached[i]
        if atomic_min(bits, v, bits_of(new)) <= bits_of(new):
            continue
        if new < end:
            _put(arrays, me, max(_bucket_of(control, arrays, scale, new), bucket), v)
        else:
            note_lowest(arrays, me, new)
            if exchange(arrays.listed, v, relax.ON) == 0:
                pile = arrays.active[1 - control[relax.ACTIVE]]
                far_at = push_item(arrays, relax.KEPT, pile, far_at, v, me)
    return far_at


@njit(inline="always")
def _put_share(control, arrays, part, me, far_at, scale):
    """Put a part of the far pile into buckets, or onto the next pile; return that pile's cursor.

    Parts have equally many items. They order the pile by the threads that wrote its blocks.
    """
    items, pile = arrays.active[control[relax.ACTIVE]], arrays.active[1 - control[relax.ACTIVE]]
    stop, infinity = arrays.window[relax.END], arrays.window[relax.INFINITY]
    first = control[relax.PILE] * part // control[ITEMS]
    last = control[relax.PILE] * (part + 1) // control[ITEMS]
    before = relax.ZERO
    for owner in range(arrays.threads):
        for position in range(owner, control[relax.PILE_BLOCKS], arrays.threads):
            begin, end = block_of(arrays.active_blocks, position)
            for i in range(begin + max(first - before, 0), min(begin + last - before, end)):
                v = np.int64(items[i])
                reached = arrays.distance[v]
                if reached < stop:
                    if arrays.relaxed[v] != arrays.bits[v]:
                        _put(arrays, me, _bucket_of(control, arrays, scale, reached), v)
                elif reached < infinity:
                    note_lowest(arrays, me, reached)
                    far_at = push_item(arrays, relax.KEPT, pile, far_at, v, me)
            before += end - begin
    return far_at


@njit(inline="always")
def _offer(control, arrays, me, bucket, after):
    """If a thread waits for work, offer it the next block of this bucket, or else the next bucket.

    Returns the next block of this bucket that the caller keeps.
    """
    offer = arrays.offer[me]
    if load(arrays.counters[relax.IDLE], 0) == 0 or load(offer, 0):
        return after
    if after:
        left = np.int64(arrays.link[after])
        arrays.link[after] = 0
        store(offer, 0, (after + 1) << _SHIFT << _BUCKET_BITS | bucket)
        return left
    for later in range(bucket + 1, control[relax.BUCKETS]):
        at = arrays.top[me, later]
        if at:
            arrays.top[me, later] = 0
            store(offer, 0, at << _BUCKET_BITS | later)
            break
    return after


@njit(inline="always")
def _prefetch_lists(arrays, i, end, after):
    """Prefetch the data of later items: offsets of their neighbour lists, then the entries.

    Beyond the end of a block it takes items of block `after`, or of block 0.
    """
    pool = arrays.pool
    skipped = (np.uint64(after) << np.uint64(_SHIFT)) - end
    later = i + np.uint64(2 * relax.PREFETCH_DISTANCE)
    u = pool[later if later < end else later + skipped]
    prefetch(arrays.indptr, u)
    prefetch(arrays.bits, u)
    prefetch(arrays.relaxed, u)
    later = i + np.uint64(relax.PREFETCH_DISTANCE)
    k = arrays.indptr[pool[later if later < end else later + skipped]]
    prefetch(arrays.neighbours, k)
    prefetch(arrays.weights, k)


@njit(inline="always")
def _empty(control, arrays, me, bucket, far_at, scale):
    """Relax the items of a bucket; return the far pile's cursor, edges scanned and vertices."""
    scanned, vertices = relax.ZERO, relax.ZERO
    at = arrays.top[me, bucket]
    arrays.top[me, bucket] = 0
    block = (at - 1) >> _SHIFT
    end = np.uint64(at)
    while block:
        count = np.uint64(0)
        for i in range(np.uint64(block << _SHIFT), end):
            _prefetch_lists(arrays, i, end, arrays.link[block])
            u = arrays.pool[i]
            far_at, count, more = _find_ends(control, arrays, u, me, bucket, far_at, count, scale)
            if more >= 0:
                scanned += more
                vertices += 1
        far_at = _lower(control, arrays, me, bucket, far_at, count, scale)
        after = _offer(control, arrays, me, bucket, np.int64(arrays.link[block]))
        arrays.link[block] = arrays.free[me, 0]
        arrays.free[me, 0] = block
        block = after
        end = np.uint64((block + 1) << _SHIFT)
    return far_at, scanned, vertices


@kernel(counted=False, inner=True)
def _await_work(arrays, me):
    """Wait for offered work, which may be the caller's own offer, and put it into a bucket.

    Returns False if no thread is busy any more.
    """
    fetch_add(arrays.counters[relax.IDLE], 0, 1)
    fetch_add(arrays.counters[relax.BUSY], 0, -1)
    offered, looks = relax.ZERO, 0
    while True:
        for distance in range(arrays.threads):
            offer = arrays.offer[(me + distance) % arrays.threads]
            if load(offer, 0):
                offered = exchange(offer, 0, 0)
            if offered:
                break
        if offered or load(arrays.counters[relax.BUSY], 0) == 0:
            break
        looks += 1
        pause(looks)
    fetch_add(arrays.counters[relax.IDLE], 0, -1)
    if offered:
        fetch_add(arrays.counters[relax.BUSY], 0, 1)
        arrays.top[me, offered & (MOST_BUCKETS - 1)] = offered >> _BUCKET_BITS
    return offered != 0


@kernel(counted=False, inner=True)
def settle(control, arrays, part, me):
    """Settle a part of a window; return edges scanned, and vertices."""
    fetch_add(arrays.counters[relax.BUSY], 0, 1)
    width = np.float64(arrays.window[relax.END]) - np.float64(arrays.window[relax.START])
    scale = control[relax.BUCKETS] / width
    scanned, vertices = relax.ZERO, relax.ZERO
    far_at = _put_share(control, arrays, part, me, arrays.cursor[me, relax.KEPT], scale)
    busy = True
    while busy:
        for bucket in range(control[relax.BUCKETS]):
            while arrays.top[me, bucket]:
                far_at, more, count = _empty(control, arrays, me, bucket, far_at, scale)
                scanned += more
                vertices += count
        busy = _await_work(arrays, me)
    arrays.cursor[me, relax.KEPT] = far_at
    return scanned, vertices, relax.ZERO


@kernel(counted=False, inner=True)
def find_waiting(control, arrays, chunk, me):
    """Make the next far pile: vertices that relaxed nothing since their distance fell last."""
    begin, end = chunk_of(control, chunk)
    pile, at = arrays.active[1 - control[relax.ACTIVE]], arrays.cursor[me, relax.KEPT]
    for v in range(begin, end):
        reached = arrays.distance[v]
        waits = reached < arrays.window[relax.INFINITY] and arrays.relaxed[v] != arrays.bits[v]
        arrays.listed[v] = relax.ON if waits else relax.OFF
        if waits:
            note_lowest(arrays, me, reached)
            at = push_item(arrays, relax.KEPT, pile, at, v, me)
    arrays.cursor[me, relax.KEPT] = at
    return relax.ZERO, relax.ZERO, relax.ZERO
