"""Phases of a shortest-path search on the host; loop.py has the loop that runs them.

The search settles vertices in windows of distances, one after the other (Meyer and Sanders, 2003,
"Delta-stepping: a parallelizable shortest path algorithm"). There are three strategies:

    PREFIX  Neighbour lists are sorted by weight (sorting.py). A vertex relaxes the edges that
            end within the window, and keeps its position for the next window. No edge is relaxed
            for a later window. This suits graphs of high degree.
    PULL    Each unsettled vertex scans its neighbours for the best settled one. It stops where the
            weight of an edge is at least its distance. A search pulls once: when the settled
            vertices have more edges left than the unsettled vertices have in all.
    FULL    A vertex relaxes all its edges. Ends beyond the window wait in a list, the far pile
            (Davidson et al., 2014, "Work-efficient parallel GPU methods for single-source shortest
            paths"). This suits graphs of low degree, and the rest of a search after a pull.
            Its phase is below.

State (n vertices; D is int32, int64, float32 or float64):

    distance    D (n,)          smallest found so far, window[INFINITY] if none
    bits        int (n,)        the same memory as signed integers, for atomics
    relaxed     int (n,)        bits of the distance with which the vertex relaxed edges last; -1
                                before that
    position    uint32 (n,)     PREFIX: number of entries that it relaxed then
    queue       2 lists         PREFIX: vertices whose distance fell within the window; one list is
                                read and the other written
    active      2 lists         PREFIX: vertices that relaxed some of their edges; FULL: the far
                                pile
    queued      int32 (n,)      PREFIX: last round in whose queue the vertex was put; each phase
                                that queues vertices is a round
    listed      int8 (n,)       whether a vertex is in the active list; FULL: whether it ever was on
                                the far pile, which a vertex enters only once: distances
                                below the window's start are final
    window      D (8,)          START, END, INFINITY
    lowest      D (threads, 8)  smallest distance that waits for a later window, by thread
    cursor      int64 (threads, 8)  where a thread writes next in either list; 0: nowhere yet
    counters    int64 (NUM_COUNTERS, 8)  number of blocks of the written lists, QUEUED and KEPT;
                                OVERFLOW; numbers of buckets; each on its own cache line

A list is an array of blocks of BLOCK items. A thread writes into its own blocks. In the next phase
it gets them first (thread_pool.py), since their vertices are in its cache.

A distance that exceeds its type sets OVERFLOW and is not stored. If the type has 32 bits, the
caller searches again with a wider one. Distances beyond float64 are infinite.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import ITEMS, OWN, block_of, chunk_of, pause, push_item
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
from hetero_bfs.support.parallel import part_of

NUM_COUNTERS = 7
QUEUED, KEPT, OVERFLOW, TAKEN, DROPPED, BUSY, IDLE = range(NUM_COUNTERS)
"""Counters: the lists by number (thread_pool.py), whether a distance exceeded the type, and those
of buckets."""

QUEUE, ACTIVE = ITEMS + 1, ITEMS + 2
"""Words of a job: which queue and which list of active vertices are read."""

SOURCE, ROUND, BUCKETS, LISTED, LISTED_BLOCKS = range(OWN, OWN + 5)
"""Words that phases keep: the source, the number of the round, the buckets of a window, and the
numbers of items and blocks in the list of active vertices, or the far pile."""

START, END, INFINITY = range(3)

ZERO = np.int64(0)
ON, OFF = np.int8(1), np.int8(0)

PREFETCH_DISTANCE = 8


@njit(inline="always")
def note_lowest(arrays, me, candidate):
    lowest = arrays.lowest[me]
    if candidate < lowest[0]:
        lowest[0] = candidate


@njit(inline="always")
def is_dead_end(arrays, control, u, degree):
    """Tell whether the only edge of `u` leads back to the vertex that its distance came from."""
    return degree == 1 and arrays.is_directed == 0 and u != control[SOURCE]


@kernel(counted=False, inlined=True, inner=True)
def _relax_prefix(control, arrays, u, me, at):
    """Relax the edges of `u` that end within the window; queue their ends.

    Returns the thread's new cursor, the edges scanned, the edges left, and the vertex's degree, or
    0 if it was relaxed before.
    """
    distance, bits, window = arrays.distance, arrays.bits, arrays.window
    neighbours, weights = arrays.neighbours, arrays.weights
    first, last = np.int64(arrays.indptr[u]), np.int64(arrays.indptr[u + 1])
    end = window[END]
    key = bits[u]
    start = value_of(key, end)
    before = arrays.relaxed[u]
    k = first
    if before == key:
        k = first + np.int64(arrays.position[u])
    elif is_dead_end(arrays, control, u, last - first):
        k = last
    arrays.relaxed[u] = key
    begin = k
    round_number = np.int32(control[ROUND])
    while k < last:
        candidate = start + weights[k]
        if candidate >= end:
            break
        v = neighbours[k]
        if candidate < distance[v]:
            new = distance.dtype.type(candidate)
            if atomic_min(bits, v, bits_of(new)) > bits_of(new):
                if exchange(arrays.queued, v, round_number) != round_number:
                    queue = arrays.queue[1 - control[QUEUE]]
                    at = push_item(arrays, QUEUED, queue, at, v, me)
        k += 1
    arrays.position[u] = k - first
    if k < last:
        candidate = start + weights[k]
        if candidate < window[INFINITY]:
            note_lowest(arrays, me, distance.dtype.type(candidate))
        else:
            if weights[k] < window[INFINITY]:
                arrays.counters[OVERFLOW, 0] = 1
            k = last  # this edge and all later ones lead beyond the type
    return at, k - begin, last - k, last - first if before < 0 else ZERO


@kernel(counted=False, inner=True)
def reset(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    for v in range(begin, end):
        arrays.distance[v] = arrays.window[INFINITY]
        arrays.relaxed[v] = -1
        arrays.queued[v] = 0
        arrays.listed[v] = OFF
    return ZERO, ZERO, ZERO


@kernel(counted=False, inner=True)
def adopt(given, part, parts):
    """Take over a part of the distances of another search: all are final but those on a list.

    FULL does not read `queued` and `position`.
    """
    begin, end = part_of(given.distance.size, part, parts)
    for v in range(np.uint64(begin), np.uint64(end)):
        given.distance[v] = given.found[v]
        given.relaxed[v] = given.bits[v]
        given.listed[v] = OFF


@njit(inline="always")
def prefetch_lists(arrays, items, i, end):
    if i + 2 * PREFETCH_DISTANCE < end:
        u = items[i + 2 * PREFETCH_DISTANCE]
        prefetch(arrays.indptr, u)
        prefetch(arrays.bits, u)
        prefetch(arrays.relaxed, u)
    if i + PREFETCH_DISTANCE < end:
        k = np.int64(arrays.indptr[items[i + PREFETCH_DISTANCE]])
        prefetch(arrays.neighbours, k)
        prefetch(arrays.weights, k)


@njit(inline="always")
def _relax_all(control, arrays, chunk, me, items, lists, is_queue):
    """Relax a block of vertices; return edges scanned, edges left, and degrees of new vertices."""
    begin, end = block_of(lists, chunk)
    at, kept_at = arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT]
    kept = arrays.active[1 - control[ACTIVE]]
    scanned, left, fresh = ZERO, ZERO, ZERO
    for i in range(begin, end):
        prefetch_lists(arrays, items, i, end)
        u = np.int64(items[i])
        if not is_queue:
            arrays.listed[u] = OFF
        at, more, more_left, more_fresh = _relax_prefix(control, arrays, u, me, at)
        scanned += more
        left += more_left
        fresh += more_fresh
        if more_left and arrays.listed[u] == 0:
            arrays.listed[u] = ON
            kept_at = push_item(arrays, KEPT, kept, kept_at, u, me)
    arrays.cursor[me, QUEUED], arrays.cursor[me, KEPT] = at, kept_at
    return scanned, left, fresh


@kernel(counted=False, inner=True)
def relax_active(control, arrays, chunk, me):
    items = arrays.active[control[ACTIVE]]
    return _relax_all(control, arrays, chunk, me, items, arrays.active_blocks, False)


@kernel(counted=False, inner=True)
def relax_queue(control, arrays, chunk, me):
    items = arrays.queue[control[QUEUE]]
    return _relax_all(control, arrays, chunk, me, items, arrays.queue_blocks, True)


@kernel(counted=False, inner=True)
def find_unsettled(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    kept, at = arrays.active[1 - control[ACTIVE]], arrays.cursor[me, KEPT]
    for v in range(begin, end):
        if arrays.distance[v] >= arrays.window[END]:
            at = push_item(arrays, KEPT, kept, at, v, me)
    arrays.cursor[me, KEPT] = at
    return ZERO, ZERO, ZERO


@njit(inline="always")
def best_by_settled(arrays, v, settled, infinity):
    """Return the best distance of `v`, its own or one by a neighbour below `settled`.

    Also returns the edges scanned, and whether a sum exceeds the type. Distances are at least 0. So
    if the weight of an edge is at least the best distance, later edges are not needed.
    """
    distance, order = arrays.distance, arrays.backward_order
    neighbours, weights = arrays.backward_neighbours, arrays.backward_weights
    first = np.int64(arrays.backward_indptr[v])
    last = np.int64(arrays.backward_indptr[v + 1])
    best, is_beyond, k = distance[v], False, first
    while k < last:
        at = first + np.int64(order[k]) if arrays.is_directed != 0 else k
        if weights[at] >= best:
            break
        before = distance[neighbours[at]]
        if before < settled:
            candidate = before + weights[at]
            if candidate < best:
                best = distance.dtype.type(candidate)
            elif candidate >= infinity:
                is_beyond = True
        k += 1
    return best, k - first, is_beyond


@kernel(counted=False, inner=True)
def pull(control, arrays, chunk, me):
    """Give unsettled vertices the best distance by a settled neighbour; return edges scanned.

    The vertices that have been reached form the far pile. A vertex that has not must not be on it:
    relaxing would put it there a second time.
    """
    begin, end = block_of(arrays.active_blocks, chunk)
    settled, infinity = arrays.window[END], arrays.window[INFINITY]
    items, pile = arrays.active[control[ACTIVE]], arrays.active[1 - control[ACTIVE]]
    pile_at = arrays.cursor[me, KEPT]
    scanned = ZERO
    for i in range(begin, end):
        v = items[i]
        best, edges, is_beyond = best_by_settled(arrays, v, settled, infinity)
        scanned += edges
        if is_beyond:
            arrays.counters[OVERFLOW, 0] = 1
        arrays.listed[v] = OFF if best == infinity else ON
        if best < infinity:
            arrays.distance[v] = best
            pile_at = push_item(arrays, KEPT, pile, pile_at, v, me)
            note_lowest(arrays, me, best)
    arrays.cursor[me, KEPT] = pile_at
    return scanned, ZERO, ZERO


# Relaxes full neighbour lists in buckets of distances: the strategy FULL.
#
# A window is divided into buckets of distances, and each thread has its own buckets. A thread takes
# its share of the far pile and puts the vertices within the window into its buckets. Then it
# relaxes the buckets one after another. A vertex that gets a smaller distance goes into the bucket
# of this distance, or onto the far pile if that is beyond the window. So threads wait for each
# other once a window, not after each queue, and relax few vertices twice. Zhang et al. (2020,
# "Optimizing ordered graph algorithms with GraphIt") fuse buckets like this. If another thread
# finds a shorter path to a vertex meanwhile, it puts the vertex into one of its own buckets and
# relaxes it again.
#
# A vertex is put into a bucket each time its distance falls, so it may be in several. `relaxed`
# shows a thread which of them need no work. So no flag is cleared, and only `bits` needs atomics.
# Arrays in addition to those above:
#
#   pool    uint32 (blocks * POOL_BLOCK,)   items of all buckets, in the memory of `queue`; block 0
#                                           holds arbitrary vertices, which are only prefetched
#   link    int32 (blocks,)                 the next block of a bucket, or of a list of free blocks
#   top     int64 (threads, MOST_BUCKETS)   where a thread writes next in each bucket
#   free    int64 (threads, 8)              a thread's first free block
#   found   uint32 (threads, ENDS)          ends of edges that get a smaller distance
#   reached D (threads, ENDS)               that distance
#   offer   int64 (threads, 8)              work offered to a waiting thread: the `top` of a bucket
#                                           << _BUCKET_BITS | its number
#
# In `link`, `top`, `free` and `offer`, 0 means none. A thread whose buckets are empty is IDLE. It
# waits for an offer as long as another thread is BUSY. A busy thread offers a block of its bucket,
# or its next bucket.
#
# The pool has room for every vertex once. If it is full, an item is dropped. Then the next far pile
# has all vertices that have relaxed nothing since their distance fell last.

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
    block = fetch_add(arrays.counters[TAKEN], 0, 1) + 1
    if block < arrays.link.size:
        return block
    arrays.counters[DROPPED, 0] = 1
    return ZERO


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
    bucket = np.int64((reached - arrays.window[START]) * scale)
    return min(max(bucket, 0), control[BUCKETS] - 1)


@njit(inline="always")
def _find_ends(control, arrays, u, me, bucket, far_at, count, scale):
    """Find the ends of `u` that get a smaller distance, unless `u` relaxed its distance before.

    Returns the far pile's new cursor, the number of ends found and not yet lowered, and the edges
    scanned, or -1 if `u` needed no work. The inner loop has no branch for an end that is found: it
    would be mispredicted about once a vertex.
    """
    indptr, neighbours, weights = arrays.indptr, arrays.neighbours, arrays.weights
    found, reached, infinity = arrays.found[me], arrays.reached[me], arrays.window[INFINITY]
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
        arrays.counters[OVERFLOW, 0] = 1
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


@kernel(counted=False, inlined=True, inner=True)
def _lower(control, arrays, me, bucket, far_at, count, scale):
    """Lower the distances of the ends found, and put these into buckets or onto the far pile.

    Returns the far pile's new cursor.
    """
    bits, end = arrays.bits, arrays.window[END]
    found, reached = arrays.found[me], arrays.reached[me]
    for i in range(count):
        v, new = found[i], reached[i]
        if atomic_min(bits, v, bits_of(new)) <= bits_of(new):
            continue
        if new < end:
            _put(arrays, me, max(_bucket_of(control, arrays, scale, new), bucket), v)
        else:
            note_lowest(arrays, me, new)
            if exchange(arrays.listed, v, ON) == 0:
                pile = arrays.active[1 - control[ACTIVE]]
                far_at = push_item(arrays, KEPT, pile, far_at, v, me)
    return far_at


@njit(inline="always")
def _put_share(control, arrays, part, me, far_at, scale):
    """Put a part of the far pile into buckets, or onto the next pile; return that pile's cursor.

    Parts have equally many items. They order the pile by the threads that wrote its blocks.
    """
    items, pile = arrays.active[control[ACTIVE]], arrays.active[1 - control[ACTIVE]]
    stop, infinity = arrays.window[END], arrays.window[INFINITY]
    first = control[LISTED] * part // control[ITEMS]
    last = control[LISTED] * (part + 1) // control[ITEMS]
    before = ZERO
    for owner in range(arrays.threads):
        for position in range(owner, control[LISTED_BLOCKS], arrays.threads):
            begin, end = block_of(arrays.active_blocks, position)
            for i in range(begin + max(first - before, 0), min(begin + last - before, end)):
                v = np.int64(items[i])
                reached = arrays.distance[v]
                if reached < stop:
                    if arrays.relaxed[v] != arrays.bits[v]:
                        _put(arrays, me, _bucket_of(control, arrays, scale, reached), v)
                elif reached < infinity:
                    note_lowest(arrays, me, reached)
                    far_at = push_item(arrays, KEPT, pile, far_at, v, me)
            before += end - begin
    return far_at


@njit(inline="always")
def _offer(control, arrays, me, bucket, after):
    """If a thread waits for work, offer it the next block of this bucket, or else the next bucket.

    Returns the next block of this bucket that the caller keeps.
    """
    offer = arrays.offer[me]
    if load(arrays.counters[IDLE], 0) == 0 or load(offer, 0):
        return after
    if after:
        left = np.int64(arrays.link[after])
        arrays.link[after] = 0
        store(offer, 0, (after + 1) << _SHIFT << _BUCKET_BITS | bucket)
        return left
    for later in range(bucket + 1, control[BUCKETS]):
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
    later = i + np.uint64(2 * PREFETCH_DISTANCE)
    u = pool[later if later < end else later + skipped]
    prefetch(arrays.indptr, u)
    prefetch(arrays.bits, u)
    prefetch(arrays.relaxed, u)
    later = i + np.uint64(PREFETCH_DISTANCE)
    k = arrays.indptr[pool[later if later < end else later + skipped]]
    prefetch(arrays.neighbours, k)
    prefetch(arrays.weights, k)


@njit(inline="always")
def _empty(control, arrays, me, bucket, far_at, scale):
    """Relax the items of a bucket; return the far pile's cursor, edges scanned and vertices."""
    scanned, vertices = ZERO, ZERO
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
    fetch_add(arrays.counters[IDLE], 0, 1)
    fetch_add(arrays.counters[BUSY], 0, -1)
    offered, looks = ZERO, 0
    while True:
        for distance in range(arrays.threads):
            offer = arrays.offer[(me + distance) % arrays.threads]
            if load(offer, 0):
                offered = exchange(offer, 0, 0)
            if offered:
                break
        if offered or load(arrays.counters[BUSY], 0) == 0:
            break
        looks += 1
        pause(looks)
    fetch_add(arrays.counters[IDLE], 0, -1)
    if offered:
        fetch_add(arrays.counters[BUSY], 0, 1)
        arrays.top[me, offered & (MOST_BUCKETS - 1)] = offered >> _BUCKET_BITS
    return offered != 0


@kernel(counted=False, inner=True)
def settle(control, arrays, part, me):
    """Settle a part of a window; return edges scanned, and vertices."""
    fetch_add(arrays.counters[BUSY], 0, 1)
    width = np.float64(arrays.window[END]) - np.float64(arrays.window[START])
    scale = control[BUCKETS] / width
    scanned, vertices = ZERO, ZERO
    far_at = _put_share(control, arrays, part, me, arrays.cursor[me, KEPT], scale)
    busy = True
    while busy:
        for bucket in range(control[BUCKETS]):
            while arrays.top[me, bucket]:
                far_at, more, count = _empty(control, arrays, me, bucket, far_at, scale)
                scanned += more
                vertices += count
        busy = _await_work(arrays, me)
    arrays.cursor[me, KEPT] = far_at
    return scanned, vertices, ZERO


@kernel(counted=False, inner=True)
def find_waiting(control, arrays, chunk, me):
    """Make the next far pile: vertices that relaxed nothing since their distance fell last."""
    begin, end = chunk_of(control, chunk)
    pile, at = arrays.active[1 - control[ACTIVE]], arrays.cursor[me, KEPT]
    for v in range(begin, end):
        reached = arrays.distance[v]
        waits = reached < arrays.window[INFINITY] and arrays.relaxed[v] != arrays.bits[v]
        arrays.listed[v] = ON if waits else OFF
        if waits:
            note_lowest(arrays, me, reached)
            at = push_item(arrays, KEPT, pile, at, v, me)
    arrays.cursor[me, KEPT] = at
    return ZERO, ZERO, ZERO
