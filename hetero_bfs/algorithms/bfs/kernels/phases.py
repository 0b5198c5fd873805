"""Runs the phases of a search on the host's thread pool; link.py lists their kernels.

The master does small pieces of work by itself, since a phase takes time to start and to end. Larger
pieces become phases (thread_pool.py). The master calls `share` and the functions after it
(level_loop.py). Each worker runs `run_worker` from the engine's start to its end.

Kernels take the `HostArrays`, a struct (parallel.py) of a graph and the state of its search. Fields
that level.py does not describe:

    threads, longest    the pool's threads, and the maximum degree
    backward_indptr, backward_indices, first    the CSR arrays of the transposed graph, and the
                                                first neighbour in each list
    visited, queue, offsets, segments   pairs: an array for this level's frontier, and for the next
    written         a bitmap of the vertices whose parent an earlier search may have left
    found_list      uint32 (room, 2)    the vertices that the host found and their parents, for a
                                        device, while they are few
    unvisited_list  all vertices that bottom-up leaves unvisited, if it has room for them
    mask, reached   bitmaps of a masked search: the ignored vertices, and the visited ones without
    found, source   uint32 (threads, CHUNK_EDGES + 64)  scratch of each thread
    outbox          uint32 (2, owners, edges + 1, 2)    the edges that owners of partitions defer
                                                        from each of the two queues (expand.py)
    owned_ranges    int64 (owners + 1,)     where each owner's part of a queue begins
    old_of_new, is_local    the relabelling, and whether it is by locality
    tiny            uint8 (n + 1, 2)    vertices and edges of each tiny frontier, by level
    work, levels    int64   addresses of the kernels of phases by task, and of the host's strategies
                            by their rows in the table (link.py)
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.expand import join_segments, read_report
from hetero_bfs.devices.cpu.thread_pool import (
    CHUNKS,
    await_phase,
    await_share,
    begin_phase,
    end_share,
    report_of,
    run_chunks,
    take_part,
    take_share,
)
from hetero_bfs.scheduling import schema
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import call_at

CHUNKS_PER_THREAD = 8
"""Chunks of a phase per thread. A thread that finishes early takes chunks of others."""

_MIN_CHUNK_WORDS = 32


@njit(inline="always")
def _run(control, arrays, chunk, me):
    """Run a chunk of the phase, or an owner's part; return its terms of the phase's sums."""
    return call_at(arrays.work[control[job.TASK]], control, arrays, chunk, me)


@kernel(counted=False)
def run_worker(control, arrays, me):
    """Run worker number `me` (1 and up) until the thread pool is shut down."""
    phase = np.int64(0)
    while True:
        phase = await_phase(control, me, phase)
        if phase < 0:
            return
        if take_share(control, me, phase):
            if control[job.TASK] == job.EXPAND or control[job.TASK] == job.COLLECT:
                _run(control, arrays, me, me)
            else:
                report = report_of(control, me)
                report[0], report[1], report[2] = take_part(control, arrays, me)
            end_share(control, me, phase)


@njit(inline="always")
def _note_places(control, state):
    """Store which array of each pair has the frontier."""
    control[job.VISITED] = np.int64(state[schema.VISITED_INDEX])
    control[job.QUEUE] = np.int64(state[schema.QUEUE_INDEX])


@njit(inline="always")
def run_by_master(control, arrays, state):
    """Run a small top-down level on the master only; return vertices and edges found."""
    control[job.LONE_VISITED] = np.int64(state[schema.VISITED_INDEX])
    control[job.LONE_QUEUE] = np.int64(state[schema.QUEUE_INDEX])
    found, edges, _ = call_at(arrays.work[job.ALONE], control, arrays, 0, 0)
    return found, edges


@kernel(counted=False, inner=True)
def share(control, arrays, state, task, size, chunks):
    """Run a phase of a search on the thread pool; return the sums over its chunks."""
    _note_places(control, state)
    control[job.VERTICES] = np.int64(state[schema.FRONTIER_VERTICES])
    control[job.EDGES] = np.int64(state[schema.FRONTIER_EDGES])
    return share_out(control, arrays, task, size, chunks)


@kernel(counted=False, inner=True)
def share_words(control, arrays, state, task):
    threads = arrays.threads
    chunks = min(arrays.written.size // _MIN_CHUNK_WORDS, threads * CHUNKS_PER_THREAD)
    return share(control, arrays, state, task, 0, max(chunks, 1))


@kernel(counted=False, inner=True)
def share_out(control, arrays, task, size, chunks):
    """Run a phase whose other control words are set; return the sums over its chunks.

    The thread pool runs it, or the master if it is one chunk. Its reports overwrite the reports
    that owners keep from level to level, so deferred edges must be resolved before
    (`_resolve_deferred`).
    """
    control[job.SIZE] = size
    arrays.counter[0] = 0
    return run_chunks(control, arrays, task, chunks)


@kernel(counted=False, inner=True)
def share_among_owners(control, arrays, state, task):
    """Run a phase in which each owner does its part.

    Returns vertices and edges found, edges deferred, and late vertices with their edges
    (`expand_owned`).
    """
    owners = arrays.owned_ranges.size - 1
    control[CHUNKS] = owners
    control[job.TASK] = task
    _note_places(control, state)
    phase = begin_phase(control, owners, arrays.threads)
    _run(control, arrays, 0, 0)
    found, edges, deferred, late, late_edges = read_report(report_of(control, 0))
    for owner in range(1, owners):
        if await_share(control, owner, phase):
            _run(control, arrays, owner, owner)
            end_share(control, owner, phase)
        more = read_report(report_of(control, owner))
        found += more[0]
        edges += more[1]
        deferred += more[2]
        late += more[3]
        late_edges += more[4]
    return found, edges, deferred, late, late_edges


@njit(inline="always")
def counted(arrays):
    packed, bits = arrays.counter[0], np.uint64(arrays.edge_bits)
    return np.int64(packed >> bits), np.int64(packed & ((np.uint64(1) << bits) - np.uint64(1)))


@kernel(counted=False, inner=True)
def join(arrays, state):
    """Join the segments of the frontier's queue, for strategies and devices that need that."""
    join_segments(arrays, np.int64(state[schema.QUEUE_INDEX]))
