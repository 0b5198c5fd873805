"""The host's strategies, and the phases of a search on the thread pool.

The table of strategies (scheduling/strategies.py) names `top_down_level` and `bottom_up_level`. The
level loop calls them by address. Owners of partitions may leave deferred edges after a level. If
the next level has another strategy, the level loop first has the owners collect these edges.

The master does small pieces of work by itself, since a phase takes time to start and to end. Larger
pieces become phases (thread_pool.py); host.py lists their kernels. The master calls `share` and the
functions after it. Each worker runs `run_worker` from the engine's start to its end.

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
                            by their rows in the table
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.expand import (
    finish_queue,
    join_segments,
    read_report,
    set_one_segment,
)
from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES, bottom_up_by_list, unmask
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
from hetero_bfs.scheduling.schema import is_dense_push, row_of
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import call_at

CHUNKS_PER_THREAD = 8
"""Chunks of a phase per thread. A thread that finishes early takes chunks of others."""

_MIN_CHUNK_WORDS = 32
_SMALLER_CHUNK_WORDS = 64  # mean of the chunks of a bottom-up level by many threads
_PART_EDGES = schema.LEAST_SHARED_EDGES // 2  # minimum in a chunk
# Largest mean degree of the vertices in a full `unvisited_list`, which one thread scans.
_UNVISITED_LIST_DEGREE = 16

_UNCOUNTED = np.int64(-1)

DEFERRED = job.NEXT_OWN
"""Control word: the number of deferred edges while `OWNED` is set. Phases do not change it."""

_row_of = kernel(row_of, counted=False, inner=True)
is_dense_push_level = kernel(is_dense_push, counted=False, inner=True)


@njit(inline="always")
def _run(control, arrays, chunk, me):
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
    control[job.VISITED] = np.int64(state[schema.VISITED_INDEX])
    control[job.QUEUE] = np.int64(state[schema.QUEUE_INDEX])


@kernel(counted=False, inner=True)
def share(control, arrays, state, task, size, chunks):
    """Run a phase of a search on the thread pool; return the sums over its chunks."""
    _note_places(control, state)
    control[job.VERTICES] = np.int64(state[schema.FRONTIER_VERTICES])
    control[job.EDGES] = np.int64(state[schema.FRONTIER_EDGES])
    return share_out(control, arrays, task, size, chunks)


@kernel(counted=False, inner=True)
def share_words(control, arrays, state, task):
    threads, words = arrays.threads, arrays.written.size
    chunks = min(words // _MIN_CHUNK_WORDS, threads * CHUNKS_PER_THREAD)
    if task == job.BOTTOM_UP:
        # It reads all lists of a part of the graph that the search reaches late, or never. The
        # lists of that part's hubs are close together, and many threads would wait for one.
        chunks = max(chunks, min(words // _SMALLER_CHUNK_WORDS, 4 * threads * threads))
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


# The strategies.


@kernel(counted=False, inner=True)
def top_down_level(control, arrays, state, records):
    """Run a top-down level.

    Returns the representation of the next frontier, vertices and edges found, and -1, since scanned
    edges are not counted.
    """
    if _is_dense_push(control, arrays, state):
        found, edges = _dense_push(control, arrays, state)
        return schema.DENSE_PUSH_BITMAP, found, edges, _UNCOUNTED
    found, edges = _top_down(control, arrays, state, records)
    return schema.QUEUE, found, edges, _UNCOUNTED


@njit(inline="always")
def _top_down(control, arrays, state, records):
    """Run a top-down level that leaves a queue; return vertices and edges found.

    Vertices at the ends of deferred edges are not counted.
    """
    edges = np.int64(state[schema.FRONTIER_EDGES])
    threads, owners = arrays.threads, arrays.owned_ranges.size - 1
    if edges < schema.LEAST_SHARED_EDGES or threads == 1:
        control[job.LONE_VISITED] = np.int64(state[schema.VISITED_INDEX])
        control[job.LONE_QUEUE] = np.int64(state[schema.QUEUE_INDEX])
        vertices, edges, _ = call_at(arrays.work[job.ALONE], control, arrays, 0, 0)
        return vertices, edges
    if owners > 1 and edges < arrays.outbox.shape[2]:
        vertices, edges, deferred, late, late_edges = share_among_owners(
            control, arrays, state, job.EXPAND
        )
        count_late(state, records, late, late_edges)
        control[job.OWNED], control[DEFERRED] = 1, deferred
        return vertices, edges
    join(arrays, state)
    size = min(_edges_of_a_chunk(edges, threads), CHUNK_EDGES)
    share(control, arrays, state, job.TOP_DOWN, size, (edges + size - 1) // size)
    vertices, edges = counted(arrays)
    set_one_segment(arrays.segments[1 - np.int64(state[schema.QUEUE_INDEX])], vertices)
    return vertices, edges


@njit(inline="always")
def _edges_of_a_chunk(edges, threads):
    return max(edges // (threads * CHUNKS_PER_THREAD) + 1, _PART_EDGES)


@njit(inline="always")
def _is_dense_push(control, arrays, state):
    """Tell whether a level is a dense push: several threads have much to find.

    Edges that wait for the owners are theirs to follow. They wait only before levels that are
    expected to be too small for a dense push (`_may_wait` in level_loop.py).
    """
    return (
        arrays.threads > 1
        and not control[job.OWNED]
        and is_dense_push_level(
            arrays.degree.size, state[schema.FRONTIER_EDGES], state[schema.UNVISITED_VERTICES]
        )
    )


@njit(inline="always")
def _dense_push(control, arrays, state):
    """Run a top-down level that leaves a bitmap, as a dense push; return vertices and edges found.

    Threads write parents without claiming vertices. A second phase finds the vertices that got a
    parent. Claims would take longer: the bitmap has few cache lines, which would move from core to
    core.
    """
    join(arrays, state)
    edges = np.int64(state[schema.FRONTIER_EDGES])
    size = _edges_of_a_chunk(edges, arrays.threads)
    share(control, arrays, state, job.PUSH_DENSE, size, (edges + size - 1) // size)
    unmask(control, arrays, state)
    found, edges, _ = share_words(control, arrays, state, job.RESOLVE_PUSH)
    return found, edges


@kernel(counted=False, inner=True)
def bottom_up_level(control, arrays, state, records):
    """Run a bottom-up level.

    Returns the representation of the next frontier, vertices and edges found, and edges scanned.
    Once few vertices are unvisited, the master scans the list of them by itself.
    """
    unmask(control, arrays, state)
    if state[schema.UNVISITED_LISTED] >= 0:
        found, scanned = bottom_up_by_list(control, arrays, state)
        found, edges = finish_queue(arrays, 1 - np.int64(state[schema.QUEUE_INDEX]), found)
        return schema.BOTTOM_UP_QUEUE, found, edges, scanned
    found, edges, scanned = share_words(control, arrays, state, job.BOTTOM_UP)
    unvisited_list = np.int64(arrays.counter[0])
    few_edges = (
        state[schema.UNVISITED_EDGES] - edges <= _UNVISITED_LIST_DEGREE * arrays.unvisited_list.size
    )
    if unvisited_list <= arrays.unvisited_list.size and few_edges:
        state[schema.UNVISITED_LISTED] = unvisited_list
    return schema.BITMAP, found, edges, scanned


@kernel(counted=False, inner=True)
def count_late(state, records, vertices, edges):
    """Add late vertices and their edges to the frontier, and to the records of levels.

    The previous level found them at the ends of deferred edges, after it counted its other
    vertices.
    """
    row = _row_of(state)
    if vertices:
        records[row - 1, schema.FOUND_VERTICES] += vertices
        _count_more(state, vertices, edges)
        if row < records.shape[0]:
            _count_more(records[row], vertices, edges)


@njit(inline="always")
def _count_more(state, vertices, edges):
    state[schema.FRONTIER_VERTICES] += vertices
    state[schema.FRONTIER_EDGES] += edges
    state[schema.UNVISITED_VERTICES] -= vertices
    state[schema.UNVISITED_EDGES] -= edges
