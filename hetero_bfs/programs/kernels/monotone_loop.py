"""The loop of a monotone program on the host; monotone.py has its phases.

A run goes from bucket to bucket of priorities. In a graph with long neighbour lists, vertices first
send only the messages that belong to the bucket. Once the begun lists have more unread edges than
all other lists have edges, the receivers pull along the begun lists. After that pull, vertices send
to their whole lists, and buckets are wider. Graphs with short lists do so from the start. So, apart
from the pull, a message is sent once per state, and most messages that would change nothing are not
sent.

`arrays` is described in loop.py. Further words of `limits` are below.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import close_list, even_size, share
from hetero_bfs.programs.kernels import loop
from hetero_bfs.programs.kernels.loop import add_sums, begin_run, flip, is_finished, next_round
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds

LIMIT, FLOOR, LOWEST_SENDER, IS_LAST, FULL_WIDTH, SENDS_ALL = range(2, 8)
"""Messages below LIMIT are pushed. In a pull no message is below FLOOR, or below the message of
LOWEST_SENDER along the same weight. IS_LAST: the vertices that wait with a part of their lists
are all taken. FULL_WIDTH: width of buckets of whole lists. SENDS_ALL: the run begins with whole
lists."""

SENDER_PRIORITY, SENDER = 1, 2
"""Columns of `lowest`: lowest priority of a sender and that sender, by thread."""

_FIRST_CHUNK = 1 << 9


@njit(inline="always")
def _next_bucket(control, arrays, is_last, sends_all):
    """Move the bucket to the lowest priority that waits; return blocks and vertices.

    If `is_last`, the bucket stays, and all vertices that sent a part of their lists are taken. The
    vertex of the lowest priority may no longer wait: then the loop moves on.
    """
    limits = arrays.limits
    while True:
        lowest = np.inf
        for thread in range(arrays.threads):
            lowest = min(lowest, arrays.lowest[thread, 0])
            arrays.lowest[thread, 0] = np.inf
        far, _ = close_list(arrays, loop.FAR, arrays.far_blocks)
        flip(control, loop.FAR)
        limits[IS_LAST] = np.float64(is_last)
        if not is_last:
            limits[loop.END] = lowest + (limits[FULL_WIDTH] if sends_all else limits[loop.WIDTH])
            if not limits[loop.END] > lowest:  # the width is lost in rounding
                limits[loop.END] = np.inf
            limits[LIMIT] = np.inf if sends_all else limits[loop.END]
        active, _, _ = share(control, arrays, loop.SELECT, far, 1)
        blocks, _ = close_list(arrays, loop.NEXT, arrays.next_blocks)
        flip(control, loop.NEXT)
        if blocks != 0 or is_last or lowest == np.inf:
            return blocks, active


@njit(inline="always")
def _pull(control, arrays, blocks, floor):
    """Gather from listed vertices; return scanned edges, and both results of `_mark_senders`."""
    arrays.active[control[loop.SIDES] >> loop.ACTIVE & 1][:] = 0
    for thread in range(arrays.threads):
        arrays.lowest[thread, SENDER_PRIORITY] = np.inf
    left, fresh, _ = share(control, arrays, loop.MARK, blocks, 1)
    first, limits = 0, arrays.limits
    for thread in range(arrays.threads):
        if arrays.lowest[thread, SENDER_PRIORITY] < arrays.lowest[first, SENDER_PRIORITY]:
            first = thread
    limits[LOWEST_SENDER] = arrays.lowest[first, SENDER]
    limits[FLOOR] = max(floor, arrays.lowest[first, SENDER_PRIORITY])
    searched = arrays.searched
    size = even_size(arrays, searched, _FIRST_CHUNK)
    scanned, _, _ = share(control, arrays, loop.GATHER, searched, size)
    return scanned, left, fresh


@kernel(counted=False)
def run(control, arrays, planned, max_iterations, records):
    blocks, _, _, _ = begin_run(control, arrays, -np.inf)
    always_pulls = planned != 0 and records[0, loop.STRATEGY] != 0.0
    sends_all = arrays.limits[SENDS_ALL] != 0.0 or always_pulls
    unmet, left = np.int64(arrays.num_edges), np.int64(0)
    active = np.int64(0)
    iteration = 0
    while iteration < max_iterations:
        pulls, floor = always_pulls, -np.inf
        if blocks == 0 and planned == 0 and not sends_all and left > unmet:
            sends_all = True
            floor = arrays.limits[loop.END]
            blocks, active = _next_bucket(control, arrays, True, True)
            pulls = blocks != 0
        if blocks == 0:
            blocks, active = _next_bucket(control, arrays, False, sends_all)
            if blocks == 0:
                return iteration, True
        began = clock_seconds()
        sent = active
        if pulls:
            scanned, more_left, fresh = _pull(control, arrays, blocks, floor)
        else:
            control[loop.ROUND] = next_round(control, arrays)
            scanned, more_left, fresh = share(control, arrays, loop.PUSH, blocks, 1)
        left += more_left
        unmet -= fresh
        touched, _ = close_list(arrays, loop.TOUCHED, arrays.touched_blocks)
        active, _, _ = share(control, arrays, loop.APPLY, touched, 1)
        add_sums(arrays, touched)
        blocks, _ = close_list(arrays, loop.NEXT, arrays.next_blocks)
        flip(control, loop.NEXT)
        if iteration < records.shape[0]:
            record = records[iteration]
            record[loop.STRATEGY], record[loop.VERTICES], record[loop.EDGES] = pulls, sent, scanned
            record[loop.SECONDS] = clock_seconds() - began
        iteration += 1
        arrays.loop[loop.ITERATION], arrays.loop[loop.NUM_ACTIVE] = iteration, active
        if is_finished(control, arrays):
            return iteration, True
    if blocks == 0:
        blocks, _ = _next_bucket(control, arrays, False, sends_all)
    return iteration, blocks == 0
