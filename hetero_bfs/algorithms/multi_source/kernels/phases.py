"""Phases of 64 searches at once on the host; loop.py has the loop that runs them.

After Then et al. (2014), "The more the merrier: efficient multi-source graph traversal". Each
vertex has a word, in which bit i belongs to search i. A *plane* has the words of one level: bits
are set for the searches that reach the vertex there. Each plane is computed from the one before, so
reading an edge once serves all searches. A level that finds few vertices has a list of them with
their words, instead of a plane. State (n vertices):

    seen        uint64 (n,)             searches that reached the vertex, or ignore it
    planes      uint64 (PLANES, n)      last levels with many vertices, used cyclically
    plane_level int64 (PLANES,)         the level of a plane; -1 if it is delivered
    listed      uint32 (2 n,)           the lists of levels, one after another
    words       uint64 (2 n,)           the words of the listed vertices
    segments    int64 (SEGMENTS, 3)     level, begin and end of a list
    frontier_list int64 (2,)            begin and end of the frontier's list, if it has one
    fresh       uint64 (n,)             words that are listed at the end of a level; otherwise 0
    ranges      int64 (ranges + 1,)     starts of ranges of vertices with equally many edges
    pending     int64 (threads, BLOCK)  a thread's vertices of a block that lack a search
    active      uint64 (threads + 1, 8) OR of the words that a thread found; the last row has the
                                        words named below
    counts      int64 (threads, PLANES + SEGMENTS, 64)
                                        vertices that each search reaches in planes and lists
    lane_edges  float64 (threads + 1, 64)
                                        estimated edges of each search's frontier, by thread; the
                                        last row has the sums
    job         int64 (8,)              the words named below

A *pull* scans the neighbours of vertices that lack some search. A *push* follows the edges of the
frontier. For searches with few frontier edges, a pull would scan most neighbour lists to the end.
So one level may push these and pull the others. Levels are delivered to the caller at the end. Each
vertex has a row of 64 items, and a plane or list writes its level to the items of its searches. If
there are more levels than fit, they are delivered in between.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import chunk_of
from hetero_bfs.devices.cpu.vectors import (
    LANES,
    add_to_row_8,
    add_to_row_16,
    add_to_row_32,
    count_bits,
    write_row_8,
    write_row_16,
    write_row_32,
)
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, end_stream, prefetch, trailing_zeros

PLANES = 8

SEGMENTS = 8

BLOCK = 248
"""Vertices of a block: a multiple of 8, and at most 255, so that a byte can count them."""

PREFETCH_DISTANCE = 8
"""Number of vertices by which prefetching runs ahead."""

START, PUSH, PULL, LIST, ROWS, ISOLATED = range(6)
NUM_TASKS = 6

CURRENT, LISTED, ADDRESS, STRIDE, ITEM_BYTES, KEEP = range(6)
"""Words of `job`. CURRENT: number of the frontier's plane. LISTED: end of the list being written.
For rows: address of the first row, bytes from one to the next, bytes of an item, and whether the
rows hold earlier levels."""

GOING, PUSHED, PULLED = range(3)
"""Words of the last row of `active`: searches that continue, and those that a level pushes and
pulls."""

LIST_BEGIN, LIST_END = range(2)

_NONE = np.uint64(0)
_ONE, _FOUR = np.uint64(1), np.uint64(4)
_ZERO = np.int64(0)


@kernel(counted=False, inner=True)
def _start(control, arrays, chunk, me):
    """Reset all searches. Masked vertices count as reached."""
    begin, end = chunk_of(control, chunk)
    seen, mask = arrays.seen, arrays.mask
    for v in range(begin, end):
        seen[v] = _NONE
    if arrays.has_mask[0]:
        for v in range(begin, end):
            seen[v] = ~_NONE if mask[v] else _NONE
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _first_in_list(indices, begin, end, vertex):
    """Return the position of the first neighbour that is not below a vertex."""
    while begin < end:
        middle = (begin + end) >> _ONE
        if indices[middle] < vertex:
            begin = middle + _ONE
        else:
            end = middle
    return begin


@kernel(counted=False, inner=True)
def _push(control, arrays, chunk, me):
    """Push the words of the frontier's list to a range of vertices of the next plane."""
    found = arrays.planes[(arrays.job[CURRENT] + 1) % PLANES]
    low, high = np.uint64(arrays.ranges[chunk]), np.uint64(arrays.ranges[chunk + 1])
    listed, words, indptr, indices = arrays.listed, arrays.words, arrays.indptr, arrays.indices
    for v in range(low, high):
        found[v] = _NONE
    for i in range(arrays.frontier_list[LIST_BEGIN], arrays.frontier_list[LIST_END]):
        u = np.uint64(listed[i])
        word, end = words[i], np.uint64(indptr[u + _ONE])
        k = _first_in_list(indices, np.uint64(indptr[u]), end, low)
        while k < end and indices[k] < high:
            found[indices[k]] |= word
            k += _ONE
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _pull(control, arrays, chunk, me):
    """Complete a chunk of the next plane: pushed words and words of neighbours.

    Returns the vertices that some search reaches at this level, their edges, and the edges of
    vertices that still lack a search.
    """
    begin, end = chunk_of(control, chunk)
    number = (arrays.job[CURRENT] + 1) % PLANES
    vertices, edges, left = _ZERO, _ZERO, _ZERO
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        pending = _take_first(arrays, number, start, stop, me)
        _look_through_lists(arrays, number, pending, me)
        more = _settle(arrays, number, start, stop, me)
        vertices += more[0]
        edges += more[1]
        left += more[2]
        _count_block(arrays, number, start, stop, me)
    return vertices, edges, left


@njit(inline="always")
def _take_first(arrays, number, start, stop, me):
    """Take the words pushed to a block, and the first neighbours' words.

    Returns the number of vertices that lack a pulled search; they are in `pending`.
    """
    frontier, found = arrays.planes[arrays.job[CURRENT]], arrays.planes[number]
    seen, first, pending = arrays.seen, arrays.first, arrays.pending[me]
    going, pulled = arrays.active[arrays.threads, GOING], arrays.active[arrays.threads, PULLED]
    if arrays.active[arrays.threads, PUSHED] == _NONE:
        for v in range(np.uint64(start), np.uint64(stop)):
            found[v] = _NONE
    if pulled == _NONE:
        for v in range(np.uint64(start), np.uint64(stop)):
            found[v] &= going & ~seen[v]
        return _ZERO
    count = _ZERO
    for v in range(np.uint64(start), np.uint64(stop)):
        lacks = going & ~seen[v]
        new = (found[v] | frontier[first[v]]) & lacks
        found[v] = new
        pending[count] = v
        count += (lacks & pulled & ~new) != _NONE
    return count


@njit(inline="always")
def _look_through_lists(arrays, number, count, me):
    """Scan the neighbours of pending vertices until they lack no pulled search."""
    frontier, found, seen = arrays.planes[arrays.job[CURRENT]], arrays.planes[number], arrays.seen
    lists, indices, pending = arrays.backward_indptr, arrays.backward_indices, arrays.pending[me]
    going, pulled = arrays.active[arrays.threads, GOING], arrays.active[arrays.threads, PULLED]
    for i in range(min(count, PREFETCH_DISTANCE)):
        prefetch(indices, np.uint64(lists[np.uint64(pending[i])]))
    for i in range(count):
        if i + PREFETCH_DISTANCE < count:
            prefetch(indices, np.uint64(lists[np.uint64(pending[i + PREFETCH_DISTANCE])]))
        v = np.uint64(pending[i])
        lacks, new = going & ~seen[v], found[v]
        wanted = lacks & pulled
        k, end = np.uint64(lists[v]) + _ONE, np.uint64(lists[v + _ONE])
        while k + _FOUR <= end and wanted & ~new:
            new |= frontier[indices[k]] | frontier[indices[k + _ONE]]
            new |= frontier[indices[k + np.uint64(2)]] | frontier[indices[k + np.uint64(3)]]
            k += _FOUR
        if wanted & ~new:
            while k < end:
                new |= frontier[indices[k]]
                k += _ONE
        found[v] = new & lacks


@njit(inline="always")
def _settle(arrays, number, start, stop, me):
    """Mark the vertices of a block as reached; see `_pull` for the results."""
    found, seen = arrays.planes[number], arrays.seen
    degree, backward_degree = arrays.degree, arrays.backward_degree
    going, alive = arrays.active[arrays.threads, GOING], _NONE
    vertices, edges, left = _ZERO, _ZERO, _ZERO
    for v in range(np.uint64(start), np.uint64(stop)):
        new = found[v]
        now = seen[v] | new
        seen[v] = now
        alive |= new
        vertices += new != _NONE
        edges += np.int64(degree[v]) if new else _ZERO
        left += np.int64(backward_degree[v]) if going & ~now else _ZERO
    arrays.active[me, 0] |= alive
    return vertices, edges, left


@njit(inline="always")
def _count_block(arrays, number, start, stop, me):
    """Count the vertices of a block that each search reaches, and estimate their edges."""
    plane, bytes_ = arrays.planes[number], arrays.bytes_[me]
    counts, lane_edges = arrays.counts[me, number], arrays.lane_edges[me]
    v = start
    while v + 8 <= stop:
        count_bits(bytes_, plane, v)
        v += 8
    for u in range(v, stop):
        count_lanes(bytes_, plane[u], 1)
    edges = np.int64(arrays.indptr[stop]) - np.int64(arrays.indptr[start])
    mean = edges / (stop - start)
    for i in range(LANES):
        counts[i] += np.int64(bytes_[i])
        lane_edges[i] += mean * bytes_[i]
        bytes_[i] = 0


@njit(inline="always")
def count_lanes(counts, word, weight):
    """Add a weight to the items of a word's bits."""
    while word:
        counts[trailing_zeros(word)] += weight
        word &= word - _ONE


@kernel(counted=False, inner=True)
def _list(control, arrays, chunk, me):
    """List the vertices of a chunk of the frontier's plane that have a search to push."""
    begin, end = chunk_of(control, chunk)
    plane, listed, words = arrays.planes[arrays.job[CURRENT]], arrays.listed, arrays.words
    pushed, count = arrays.active[arrays.threads, PUSHED], 0
    for v in range(begin, end):
        count += (plane[v] & pushed) != _NONE
    if count:
        place = atomic_add(arrays.job, LISTED, count)
        for v in range(begin, end):
            word = plane[v] & pushed
            if word:
                listed[place], words[place] = v, word
                place += 1
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _words(planes, level, v):
    """Return a vertex's words in all planes, 0 for delivered planes."""
    return (
        planes[0, v] if level[0] >= 0 else _NONE,
        planes[1, v] if level[1] >= 0 else _NONE,
        planes[2, v] if level[2] >= 0 else _NONE,
        planes[3, v] if level[3] >= 0 else _NONE,
        planes[4, v] if level[4] >= 0 else _NONE,
        planes[5, v] if level[5] >= 0 else _NONE,
        planes[6, v] if level[6] >= 0 else _NONE,
        planes[7, v] if level[7] >= 0 else _NONE,
    )


@njit(inline="always")
def _write(address, words, levels, item_bytes, keep):
    if item_bytes == 1:
        if keep:
            add_to_row_8(address, words, levels)
        else:
            write_row_8(address, words, levels)
    elif item_bytes == 2:
        if keep:
            add_to_row_16(address, words, levels)
        else:
            write_row_16(address, words, levels)
    elif keep:
        add_to_row_32(address, words, levels)
    else:
        write_row_32(address, words, levels)


@kernel(counted=False, inner=True)
def _rows(control, arrays, chunk, me):
    begin, end = chunk_of(control, chunk)
    planes, level = arrays.planes, arrays.plane_level
    old_of_new, job = arrays.old_of_new, arrays.job
    base, stride, item_bytes = job[ADDRESS], job[STRIDE], job[ITEM_BYTES]
    keep = job[KEEP] != 0
    levels = level[0], level[1], level[2], level[3], level[4], level[5], level[6], level[7]
    for v in range(begin, end):
        words = _words(planes, level, v)
        some = words[0] | words[1] | words[2] | words[3]
        some |= words[4] | words[5] | words[6] | words[7]
        if some or not keep:
            _write(base + np.int64(old_of_new[v]) * stride, words, levels, item_bytes, keep)
    end_stream()
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def add_list_to_rows(arrays, level, begin, end):
    job, listed, words = arrays.job, arrays.listed, arrays.words
    levels = level, level, level, level, level, level, level, level
    for i in range(begin, end):
        address = job[ADDRESS] + np.int64(arrays.old_of_new[listed[i]]) * job[STRIDE]
        row = (words[i], _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)
        _write(address, row, levels, job[ITEM_BYTES], True)


@kernel(counted=False, inner=True)
def _alone(control, arrays, chunk, me):
    """Write the rows of isolated vertices, which no search reaches."""
    begin, end = chunk_of(control, chunk)
    isolated, job = arrays.isolated, arrays.job
    words = (_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)
    levels = (_ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
    for i in range(begin, end):
        address = job[ADDRESS] + np.int64(isolated[i]) * job[STRIDE]
        _write(address, words, levels, job[ITEM_BYTES], False)
    end_stream()
    return _ZERO, _ZERO, _ZERO


PHASES = dict(enumerate((_start, _push, _pull, _list, _rows, _alone)))
