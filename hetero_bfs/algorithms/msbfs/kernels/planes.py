"""Phases of 64 searches side by side on the host; many_loop.py has the loop that runs them.

After Then et al. (2014), "The more the merrier: efficient multi-source graph traversal". Search i
has bit i of a word for each vertex. A *plane* has the words of one level: which searches reach
which vertices there. Level by level the next plane is found from the last one, so one look at an
edge serves all searches. State (n vertices):

    seen        uint64 (n,)             which searches reached the vertex, or pass over it
    planes      uint64 (PLANES, n)      the last levels, by turns
    queue       uint32 (n,)             the vertices of a plane, if the next level is a push
    ranges      int64 (ranges + 1,)     where ranges of vertices begin, with equally many edges
    active      uint64 (threads + 1, 8) a thread's OR of the words that it found; the last row has
                                        that of the whole plane: searches that still go on
    job         int64 (8,)              the words named below

A *push* goes along the lists of the queue. A thread takes a range of vertices and the part of each
list that leads there, which is contiguous since lists are sorted. So no two threads write to one
word, and there are no atomics. A *pull* looks through the list of each vertex that lacks some
search, until it lacks none: after relabelling the first neighbours are the hubs, which have most
searches early.

The planes are what the levels are made of at the end: the word of a vertex in each plane says which
items of its row get that level. If there are more levels than planes, this is done in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types

from hetero_bfs.devices.cpu.rows import (
    LANES,
    add_to_row_8,
    add_to_row_16,
    add_to_row_32,
    count_bits,
    finish_rows,
    write_row_8,
    write_row_16,
    write_row_32,
)
from hetero_bfs.devices.cpu.sharing import chunk_of
from hetero_bfs.support.by_address import Struct, chunk_address
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, prefetch

PLANES = 8
"""Levels whose planes are kept."""

START, PUSH, PULL, LIST, ROWS, ALONE, COUNT = range(7)
NUM_TASKS = 7

CURRENT, QUEUED, ADDRESS, STRIDE, ITEM_BYTES, FIRST, USED, KEEP = range(8)
"""Words of `job`. CURRENT: the number of the frontier's plane. QUEUED: vertices in the queue.
Then what rows need: where the first one begins, bytes from one to the next, bytes of an item, the
level of the first plane, how many planes are used, and whether the rows have earlier levels."""

_NONE = np.uint64(0)
_ONE, _FOUR = np.uint64(1), np.uint64(4)
_ZERO = np.int64(0)
_PREFETCH_DISTANCE = np.uint64(16)  # vertices between fetching a list and reading it
_MOST_COUNTED = 255  # words, before a byte overflows


@kernel(counted=False, inner=True)
def _start(control, arrays, chunk, me):
    """Have no search reach anything; masked vertices count as reached."""
    begin, end = chunk_of(control, chunk)
    seen, plane, mask = arrays.seen, arrays.planes[0], arrays.mask
    for v in range(begin, end):
        plane[v] = _NONE
        seen[v] = _NONE
    if arrays.has_mask[0]:
        for v in range(begin, end):
            seen[v] = ~_NONE if mask[v] else _NONE
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _edges(indptr, v):
    return np.int64(indptr[v + _ONE]) - np.int64(indptr[v])


@njit(inline="always")
def _first_in_list(indices, begin, end, vertex):
    """Return the place of the first neighbour that is not below a vertex."""
    while begin < end:
        middle = (begin + end) >> _ONE
        if indices[middle] < vertex:
            begin = middle + _ONE
        else:
            end = middle
    return begin


@kernel(counted=False, inner=True)
def _push(control, arrays, chunk, me):
    """Push the queue's words to a range of vertices; see `_pull` for what it returns."""
    frontier = arrays.planes[arrays.job[CURRENT]]
    found = arrays.planes[(arrays.job[CURRENT] + 1) % PLANES]
    low, high = np.uint64(arrays.ranges[chunk]), np.uint64(arrays.ranges[chunk + 1])
    queue, indptr, indices, seen = arrays.queue, arrays.indptr, arrays.indices, arrays.seen
    for v in range(low, high):
        found[v] = _NONE
    for i in range(arrays.job[QUEUED]):
        u = np.uint64(queue[i])
        word, end = frontier[u], np.uint64(indptr[u + _ONE])
        k = _first_in_list(indices, np.uint64(indptr[u]), end, low)
        while k < end and indices[k] < high:
            found[indices[k]] |= word
            k += _ONE
    active, alive = arrays.active[arrays.threads, 0], _NONE
    vertices, edges, left = _ZERO, _ZERO, _ZERO
    for v in range(low, high):
        new = found[v] & ~seen[v]
        if new:
            seen[v] |= new
            alive |= new
            vertices += 1
            edges += _edges(indptr, v)
        found[v] = new
        if active & ~seen[v]:
            left += _edges(arrays.backward_indptr, v)
    arrays.active[me, 0] |= alive
    return vertices, edges, left


@kernel(counted=False, inner=True)
def _pull(control, arrays, chunk, me):
    """Look through the lists of vertices that lack some search.

    Returns how many vertices some search reaches at this level, their edges, and the edges of
    vertices that still lack a search.
    """
    begin, end = chunk_of(control, chunk)
    frontier = arrays.planes[arrays.job[CURRENT]]
    found = arrays.planes[(arrays.job[CURRENT] + 1) % PLANES]
    indptr, lists, indices = arrays.indptr, arrays.backward_indptr, arrays.backward_indices
    seen, active, alive = arrays.seen, arrays.active[arrays.threads, 0], _NONE
    vertices, edges, left = _ZERO, _ZERO, _ZERO
    last = np.uint64(end)
    for v in range(np.uint64(begin), last):
        ahead = v + _PREFETCH_DISTANCE
        if ahead < last:
            prefetch(indices, np.uint64(lists[ahead]))
        wanted, new = active & ~seen[v], _NONE
        if wanted:
            k, stop = np.uint64(lists[v]), np.uint64(lists[v + _ONE])
            while k + _FOUR <= stop and new & wanted != wanted:
                new |= frontier[indices[k]] | frontier[indices[k + _ONE]]
                new |= frontier[indices[k + np.uint64(2)]] | frontier[indices[k + np.uint64(3)]]
                k += _FOUR
            if new & wanted != wanted:
                while k < stop:
                    new |= frontier[indices[k]]
                    k += _ONE
            new &= wanted
            if new:
                seen[v] |= new
                alive |= new
                vertices += 1
                edges += _edges(indptr, v)
            if new != wanted:
                left += _edges(lists, v)
        found[v] = new
    arrays.active[me, 0] |= alive
    return vertices, edges, left


@kernel(counted=False, inner=True)
def _list(control, arrays, chunk, me):
    """Queue the vertices of a chunk of the frontier's plane."""
    begin, end = chunk_of(control, chunk)
    plane, queue = arrays.planes[arrays.job[CURRENT]], arrays.queue
    count = 0
    for v in range(begin, end):
        count += plane[v] != _NONE
    if count:
        place = atomic_add(arrays.job, QUEUED, count)
        for v in range(begin, end):
            if plane[v]:
                queue[place] = v
                place += 1
    return _ZERO, _ZERO, _ZERO


@njit(inline="always")
def _words(planes, used, v):
    """Return a vertex's words in all planes, 0 for planes that are not used."""
    return (
        planes[0, v],
        planes[1, v] if used > 1 else _NONE,
        planes[2, v] if used > 2 else _NONE,
        planes[3, v] if used > 3 else _NONE,
        planes[4, v] if used > 4 else _NONE,
        planes[5, v] if used > 5 else _NONE,
        planes[6, v] if used > 6 else _NONE,
        planes[7, v] if used > 7 else _NONE,
    )


@njit(inline="always")
def _write(address, words, first, item_bytes, keep):
    if item_bytes == 1:
        if keep:
            add_to_row_8(address, words, first)
        else:
            write_row_8(address, words, first)
    elif item_bytes == 2:
        if keep:
            add_to_row_16(address, words, first)
        else:
            write_row_16(address, words, first)
    elif keep:
        add_to_row_32(address, words, first)
    else:
        write_row_32(address, words, first)


@kernel(counted=False, inner=True)
def _rows(control, arrays, chunk, me):
    """Write the planes' levels to the rows of a chunk of vertices."""
    begin, end = chunk_of(control, chunk)
    planes, old_of_new, job = arrays.planes, arrays.old_of_new, arrays.job
    base, stride, item_bytes = job[ADDRESS], job[STRIDE], job[ITEM_BYTES]
    first, used, keep = job[FIRST], job[USED], job[KEEP] != 0
    for v in range(begin, end):
        words = _words(planes, used, v)
        some = words[0] | words[1] | words[2] | words[3]
        some |= words[4] | words[5] | words[6] | words[7]
        if some or not keep:
            _write(base + np.int64(old_of_new[v]) * stride, words, first, item_bytes, keep)
    finish_rows()
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _alone(control, arrays, chunk, me):
    """Write the rows of vertices that left the searched range: nothing reaches them."""
    begin, end = chunk_of(control, chunk)
    alone, job = arrays.alone, arrays.job
    words = (_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)
    for i in range(begin, end):
        address = job[ADDRESS] + np.int64(alone[i]) * job[STRIDE]
        _write(address, words, _ZERO, job[ITEM_BYTES], False)
    finish_rows()
    return _ZERO, _ZERO, _ZERO


@kernel(counted=False, inner=True)
def _count(control, arrays, chunk, me):
    """Count in how many words of a chunk of each plane each search has a bit."""
    begin, end = chunk_of(control, chunk)
    planes, counts, bytes_ = arrays.planes, arrays.counts, arrays.bytes_[me]
    for p in range(arrays.job[USED]):
        for start in range(begin, end, _MOST_COUNTED):
            for v in range(start, min(start + _MOST_COUNTED, end)):
                count_bits(bytes_, 0, planes[p, v])
            for i in range(LANES):
                counts[me, p, i] += np.int64(bytes_[i])
                bytes_[i] = 0
    return _ZERO, _ZERO, _ZERO


def link_phases(arrays: Struct, work: npt.NDArray[np.int64]) -> None:
    """Compile the phases for these arrays, and fill their `work` with them."""
    control: Any = types.Array(types.int64, 1, "C")
    tasks = (_start, _push, _pull, _list, _rows, _alone, _count)
    for task, function in enumerate(tasks):
        work[task] = chunk_address(function, control, arrays.numba_type)
