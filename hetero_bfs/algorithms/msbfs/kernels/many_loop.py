"""The loop of 64 searches side by side on the host; planes.py has its phases."""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.msbfs.kernels.planes import (
    ADDRESS,
    ALONE,
    COUNT,
    CURRENT,
    FIRST,
    ITEM_BYTES,
    KEEP,
    LIST,
    PLANES,
    PULL,
    PUSH,
    QUEUED,
    ROWS,
    START,
    STRIDE,
    USED,
)
from hetero_bfs.devices.cpu.sharing import even_size, share
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds

LEVEL, VERTICES, EDGES, LEFT = range(4)
"""Words of a run's state: the coming level, the vertices of its plane, their edges, and the edges
of the vertices that lack a search, by which a pull is estimated."""

PUSHED, RECORD_VERTICES, RECORD_EDGES, RECORD_SECONDS = range(4)
"""Columns of a level's record. The edges are those of the lists that it went along; a pull looks at
a part of them."""

_LEAST_CHUNK = 1 << 12
PUSH_COST = 4
"""A push takes as long for an edge as a pull for so many edges of vertices that lack a search: most
of their lists are not read to the end."""

_NONE = np.uint64(0)
_NO_VERTEX = np.uint32(0xFFFFFFFF)


@kernel(counted=False)
def begin(control, arrays, sources, state):
    """Begin search i at sources[i], uint32 (at most 64,), for all i but where that is NO_VERTEX."""
    n = arrays.seen.size
    share(control, arrays, START, n, even_size(arrays, n, _LEAST_CHUNK))
    plane, indptr, queued, edges = arrays.planes[0], arrays.indptr, 0, np.int64(0)
    active = _NONE
    for i in range(sources.size):
        v = sources[i]
        if v == _NO_VERTEX:
            continue
        active |= np.uint64(1) << np.uint64(i)
        if plane[v] == _NONE:
            arrays.queue[queued] = v
            queued += 1
            edges += np.int64(indptr[np.int64(v) + 1]) - np.int64(indptr[v])
        plane[v] |= np.uint64(1) << np.uint64(i)
        arrays.seen[v] |= np.uint64(1) << np.uint64(i)
    arrays.active[arrays.threads, 0] = active
    arrays.job[CURRENT], arrays.job[QUEUED] = 0, queued
    state[LEVEL], state[VERTICES], state[EDGES] = 0, queued, edges
    state[LEFT] = arrays.backward_indices.size


@njit(inline="always")
def _take_active(arrays):
    """Note which searches the new plane has."""
    alive = _NONE
    for thread in range(arrays.threads):
        alive |= arrays.active[thread, 0]
        arrays.active[thread, 0] = _NONE
    arrays.active[arrays.threads, 0] = alive


@kernel(counted=False)
def run_planes(control, arrays, state, most_levels, records):
    """Run levels until all planes are used, all searches have ended, or `most_levels` are done.

    Returns how many planes are used, from plane 0 on, and whether the searches have ended. In a
    later call the first plane follows the last one of the call before. `records` gets a row for
    each level that ran.
    """
    n, job = arrays.seen.size, arrays.job
    size = even_size(arrays, n, _LEAST_CHUNK)
    used = 1 if state[LEVEL] == 0 else 0
    ran = 0
    while state[VERTICES] and state[LEVEL] < most_levels and used < PLANES:
        began = clock_seconds()
        pushes = state[EDGES] * PUSH_COST + n < state[LEFT]
        records[ran, PUSHED] = pushes
        records[ran, RECORD_VERTICES] = state[VERTICES]
        records[ran, RECORD_EDGES] = state[EDGES] if pushes else state[LEFT]
        if pushes:
            if job[QUEUED] == 0:
                share(control, arrays, LIST, n, size)
            ranges = arrays.ranges.size - 1
            vertices, edges, left = share(control, arrays, PUSH, ranges, 1)
        else:
            vertices, edges, left = share(control, arrays, PULL, n, size)
        _take_active(arrays)
        job[QUEUED] = 0
        job[CURRENT] = (job[CURRENT] + 1) % PLANES
        state[VERTICES], state[EDGES], state[LEFT] = vertices, edges, left
        state[LEVEL] += 1
        used += vertices > 0
        records[ran, RECORD_SECONDS] = clock_seconds() - began
        ran += 1
    return used, ran, state[VERTICES] == 0 or state[LEVEL] >= most_levels


@kernel(counted=False)
def write_rows(control, arrays, address, stride, item_bytes, first, used):
    """Write the levels of `used` planes, the first of which is level `first`, to all rows.

    A row of 64 items begins every `stride` bytes from an address on, in the order of the old ids.
    """
    job = arrays.job
    job[ADDRESS], job[STRIDE], job[ITEM_BYTES] = address, stride, item_bytes
    job[FIRST], job[USED], job[KEEP] = first, used, first > 0
    n, alone = arrays.seen.size, arrays.alone.size
    share(control, arrays, ROWS, n, even_size(arrays, n, _LEAST_CHUNK))
    if first == 0:
        share(control, arrays, ALONE, alone, even_size(arrays, alone, _LEAST_CHUNK))


@kernel(counted=False)
def count_planes(control, arrays, used):
    """Add to `counts` how many vertices each search has in each of `used` planes."""
    arrays.job[USED] = used
    n = arrays.seen.size
    share(control, arrays, COUNT, n, even_size(arrays, n, _LEAST_CHUNK))
