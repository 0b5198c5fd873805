"""Phases cut into chunks, for any algorithm whose arrays name their work by address.

`arrays` is a struct (by_address.py) with `threads`, an integer, and `work`, int64 (tasks,), the
addresses of kernels. A kernel takes (control, arrays, chunk, me) and returns three int64, which are
summed over the chunks. The master calls `share`; each worker runs `run_worker` until the pool is
shut down.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import (
    CHUNKS,
    JOB,
    await_phase,
    begin_phase,
    end_chunks,
    end_share,
    report_of,
    take_chunk,
    take_share,
)
from hetero_bfs.support.by_address import call_at
from hetero_bfs.support.compiling import kernel

TASK, SIZE, ITEMS = JOB + 1, JOB + 2, JOB + 3
"""Words of a job after its number of chunks: the task, items per chunk, items in total."""

_CHUNKS_PER_THREAD = 8


@njit(inline="always")
def even_size(arrays, items, least):
    """Return the items per chunk, at least `least`, so that each thread gets several chunks."""
    return max(least, -(-items // (_CHUNKS_PER_THREAD * arrays.threads)))


@njit(inline="always")
def chunk_of(control, chunk):
    """Return begin and end of a chunk's items."""
    begin = chunk * control[SIZE]
    return begin, min(begin + control[SIZE], control[ITEMS])


@kernel(counted=False, inner=True)
def _take_part(control, arrays, me):
    """Take chunks of the phase until none is left; return the sums of their results."""
    address = arrays.work[control[TASK]]
    first, second, third = np.int64(0), np.int64(0), np.int64(0)
    while True:
        chunk = take_chunk(control, me, arrays.threads)
        if chunk < 0:
            return first, second, third
        more = call_at(address, control, arrays, chunk, me)
        first += more[0]
        second += more[1]
        third += more[2]


@kernel(counted=False)
def run_worker(control, arrays, me):
    """Run worker number `me` (from 1) until the thread pool is shut down."""
    phase = np.int64(0)
    while True:
        phase = await_phase(control, me, phase)
        if phase < 0:
            return
        if take_share(control, me, phase):
            report = report_of(control, me)
            report[0], report[1], report[2] = _take_part(control, arrays, me)
            end_share(control, me, phase)


@kernel(counted=False, inner=True)
def share(control, arrays, task, items, size):
    """Run a task on `items` items with the thread pool, in chunks of `size` items.

    The job's other words must be written before. Returns the sums of the chunks' results.
    """
    chunks = -(-items // size)
    control[CHUNKS], control[TASK], control[SIZE], control[ITEMS] = chunks, task, size, items
    if chunks == 0:
        return np.int64(0), np.int64(0), np.int64(0)
    if chunks == 1 or arrays.threads == 1:
        address = arrays.work[task]
        first, second, third = np.int64(0), np.int64(0), np.int64(0)
        for chunk in range(chunks):
            more = call_at(address, control, arrays, chunk, 0)
            first += more[0]
            second += more[1]
            third += more[2]
        return first, second, third
    phase = begin_phase(control, min(chunks, arrays.threads), arrays.threads)
    first, second, third = _take_part(control, arrays, 0)
    more = end_chunks(control, phase)
    return first + more[0], second + more[1], third + more[2]
