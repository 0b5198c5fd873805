"""Whole searches on the host: the level loop, compiled.

`run_levels` is the leader's: it chooses, converts, runs and records level after level, and returns
to Python only when the search ends or another device must take part. phases.py has what the leader
and its helpers do together.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels.chunks import (
    ADDRESS,
    ADOPT,
    BLANK,
    BOTTOM_UP,
    CLEAR,
    COLLECT,
    CONVERT,
    END,
    EXPAND,
    FORGET,
    NEXT_OWN,
    OWNED,
    PROPOSE,
    RESTORE,
    TOP_DOWN,
    VERTICES,
    WHOLE,
)
from hetero_bfs.algorithms.bfs.kernels.expand import (
    add_owners_segment,
    copy_segments,
    finish_queue,
    join_segments,
    set_one_segment,
)
from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES, bottom_up_listed
from hetero_bfs.algorithms.bfs.kernels.phases import (
    CHUNKS_PER_THREAD,
    run_alone,
    share,
    share_among_owners,
    share_out,
    share_words,
)
from hetero_bfs.devices.cpu.thread_pool import report_of
from hetero_bfs.selection.policy import choose_level
from hetero_bfs.selection.schema import (
    BITMAP,
    BOTTOM_UP_QUEUE,
    CHOSEN,
    EXAMINED,
    FORM,
    FOUND_VERTICES,
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    HOST,
    KIND,
    LEAST_SHARED_EDGES,
    LEVEL,
    LISTED,
    NOWHERE,
    QUEUE,
    QUEUE_INDEX,
    REMAINING,
    SECONDS,
    SELECT_SECONDS,
    TRANSFER_SECONDS,
    UNVISITED_EDGES,
    UNVISITED_VERTICES,
    VISITED_INDEX,
    WIDE_BITMAP,
    advance,
    has_queue,
    is_over,
    is_wide,
)
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds

_PART_EDGES = LEAST_SHARED_EDGES // 2  # in a chunk, at least
_SCAN_WORDS = 4096  # bitmap words per chunk, at least, where most of them need no work
_SCAN_WORDS_BY_THREAD = 512  # times the threads, at least: one scans them before the others come
_REMAINING_DEGREE = 16  # of vertices in a list, in the mean: all their edges are one thread's work
_RESTORED_VERTICES = 1 << 16  # in a chunk: smaller ones by several threads are no faster

# Words that stay: how many edges are posted where the frontier is the owners'; and which bitmap the
# search before left blank, plus 1, or 0 for none. Only a search that no other device took part in
# leaves one, so that nobody writes to it before the next `start`, which takes it.
_POSTED, _BLANK_BITMAP = NEXT_OWN, NEXT_OWN + 1

_advance = kernel(advance, counted=False, inner=True)
_has_queue = kernel(has_queue, counted=False, inner=True)
_is_over = kernel(is_over, counted=False, inner=True)
_is_wide_level = kernel(is_wide, counted=False, inner=True)

ENDED, LEAVES = 0, 1
"""What `run_levels` returns: the search ended (or the limit), or Python has the next move."""


@njit(inline="always")
def _expand_among_owners(control, arrays, state, records):
    """Run a top-down level; return vertices and edges found, but for those that are posted."""
    found, edges, posted, late, late_edges = share_among_owners(control, arrays, state, EXPAND)
    _count_late(state, records, late, late_edges)
    control[OWNED], control[_POSTED] = 1, posted
    return found, edges


@njit(inline="always")
def _may_wait(control, arrays, state, limit):
    """Tell whether what owners posted may wait until they expand the next level.

    That must come, fit in the boxes, and be known well enough to choose its strategy: what is
    posted must not lead to more edges than are counted, taking degrees as they are in the mean.
    """
    edges, posted = state[FRONTIER_EDGES], control[_POSTED]
    most = edges + posted * arrays.longest
    return (
        state[LEVEL] < limit
        and state[LISTED] < 0
        and edges >= LEAST_SHARED_EDGES
        and posted * arrays.indices.size <= edges * arrays.degree.size
        and most < arrays.boxes.shape[2]
        and posted < state[UNVISITED_VERTICES]
    )


@kernel(counted=False, inner=True)
def _settle(control, arrays, state, records):
    """Have the owners collect what is posted; the frontier then lies in segments, one for each."""
    if control[_POSTED]:
        _, _, _, late, late_edges = share_among_owners(control, arrays, state, COLLECT)
        _count_late(state, records, late, late_edges)
    control[OWNED] = 0
    segments = arrays.segments[np.int64(state[QUEUE_INDEX])]
    for owner in range(arrays.territory.size - 1):
        add_owners_segment(owner, report_of(control, owner), arrays.territory, segments)


@kernel(counted=False, inner=True)
def _count_late(state, records, vertices, edges):
    """Count vertices of the frontier, and their edges, that the level before left posted."""
    level = int(state[LEVEL])
    if vertices:
        records[level - 1, FOUND_VERTICES] += vertices
        _count_more(state, vertices, edges)
        if level < records.shape[0]:
            _count_more(records[level], vertices, edges)


@njit(inline="always")
def _count_more(state, vertices, edges):
    state[FRONTIER_VERTICES] += vertices
    state[FRONTIER_EDGES] += edges
    state[UNVISITED_VERTICES] -= vertices
    state[UNVISITED_EDGES] -= edges


@njit(inline="always")
def _counted(arrays):
    """Return vertices and edges of the packed counter."""
    packed, bits = arrays.counter[0], np.uint64(arrays.edge_bits)
    return np.int64(packed >> bits), np.int64(packed & ((np.uint64(1) << bits) - np.uint64(1)))


@njit(inline="always")
def _top_down(control, arrays, state, records):
    """Run a top-down level whose frontier the next one finds in a queue.

    Returns vertices and edges found, but for what waits for owners.
    """
    edges = np.int64(state[FRONTIER_EDGES])
    threads, owners = arrays.found.shape[0], arrays.territory.size - 1
    if edges < LEAST_SHARED_EDGES or threads == 1:
        return run_alone(control, arrays, state)
    if owners > 1 and edges < arrays.boxes.shape[2]:
        return _expand_among_owners(control, arrays, state, records)
    join(arrays, state)
    size = min(_edges_of_a_chunk(edges, threads), CHUNK_EDGES)
    share(control, arrays, state, TOP_DOWN, size, (edges + size - 1) // size)
    vertices, edges = _counted(arrays)
    set_one_segment(arrays.segments[1 - np.int64(state[QUEUE_INDEX])], vertices)
    return vertices, edges


@njit(inline="always")
def _edges_of_a_chunk(edges, threads):
    return max(edges // (threads * CHUNKS_PER_THREAD) + 1, _PART_EDGES)


@njit(inline="always")
def _is_wide(arrays, state):
    """Tell whether several threads have so much to find that they propose parents.

    Not where vertices have owners: the levels of deep graphs are narrow.
    """
    return (
        arrays.found.shape[0] > 1
        and arrays.territory.size == 2
        and _is_wide_level(arrays.degree.size, state[FRONTIER_EDGES], state[UNVISITED_VERTICES])
    )


@njit(inline="always")
def _top_down_by_proposals(control, arrays, state):
    """Run a top-down level whose frontier the next one finds in the other bitmap.

    Returns vertices and edges found. Threads write parents without asking who else does, and then
    look who has got one: claims wait for the bitmap's few lines, which go to and fro between them.
    """
    join(arrays, state)
    edges = np.int64(state[FRONTIER_EDGES])
    size = _edges_of_a_chunk(edges, arrays.found.shape[0])
    share(control, arrays, state, PROPOSE, size, (edges + size - 1) // size)
    found, edges, _ = share_words(control, arrays, state, ADOPT)
    return found, edges


@njit(inline="always")
def _bottom_up(control, arrays, state):
    """Run a bottom-up level; return the form it leaves, vertices and edges found, and neighbours
    examined.

    The last levels, with few left to find, are the leader's, who has a list of those.
    """
    if state[REMAINING] >= 0:
        this = np.int64(state[QUEUE_INDEX])
        found, looked = bottom_up_listed(
            arrays.remaining,
            np.int64(state[REMAINING]),
            arrays.backward_indptr,
            arrays.backward_indices,
            arrays.visited[np.int64(state[VISITED_INDEX])],
            arrays.parent,
            arrays.queue[1 - this],
        )
        found, edges = finish_queue(
            found,
            arrays.indptr,
            arrays.queue[1 - this],
            arrays.offsets[1 - this],
            arrays.segments[1 - this],
        )
        return BOTTOM_UP_QUEUE, found, edges, looked
    found, edges, looked = share_words(control, arrays, state, BOTTOM_UP)
    remaining = np.int64(arrays.counter[0])
    few_edges = state[UNVISITED_EDGES] - edges <= _REMAINING_DEGREE * arrays.remaining.size
    if remaining <= arrays.remaining.size and few_edges:
        state[REMAINING] = remaining
    return BITMAP, found, edges, looked


@kernel(counted=False)
def convert(control, arrays, state):
    """Turn the frontier that is a bitmap into a queue; return seconds."""
    began = clock_seconds()
    words = arrays.visited[0].size
    size = 256
    if state[FRONTIER_VERTICES] <= 4096:
        size = max(_SCAN_WORDS, _SCAN_WORDS_BY_THREAD * arrays.found.shape[0])
    share(control, arrays, state, CONVERT, size, max((words + size - 1) // size, 1))
    vertices, edges = _counted(arrays)
    set_one_segment(arrays.segments[np.int64(state[QUEUE_INDEX])], vertices)
    state[FRONTIER_VERTICES], state[FRONTIER_EDGES] = vertices, edges
    state[FORM] = QUEUE
    return clock_seconds() - began


@kernel(counted=False)
def forget(control, arrays, state):
    """Leave NO_VERTEX as parent wherever this search wrote none."""
    share_words(control, arrays, state, FORGET)


@njit(inline="always")
def _end(control, arrays, state):
    """Forget what this search wrote no parent to; leave a blank bitmap to the next if it is over.

    For searches that no other device takes part in, so that none writes to the bitmap until then.
    """
    if _is_over(state):
        share_words(control, arrays, state, END)
        control[_BLANK_BITMAP] = 1 + np.int64(state[VISITED_INDEX])
    else:
        forget(control, arrays, state)


@kernel(counted=False)
def restore(control, arrays, address, num_vertices):
    """Fill the array of all old ids at an address with parents; see `restore_range`."""
    control[ADDRESS] = address
    control[VERTICES] = num_vertices
    if arrays.parent.size < num_vertices:
        _restore_part(control, arrays, CLEAR, num_vertices)
    _restore_part(control, arrays, RESTORE, arrays.parent.size)


@kernel(counted=False, inner=True)
def _restore_part(control, arrays, task, count):
    size = _RESTORED_VERTICES
    share_out(control, arrays, task, size, max((count + size - 1) // size, 1))


@kernel(counted=False)
def start(control, arrays, root, state):
    """Make `root` the only visited vertex and the frontier."""
    if control[_BLANK_BITMAP]:
        state[VISITED_INDEX] = control[_BLANK_BITMAP] - 1
        control[_BLANK_BITMAP] = 0
    else:
        share_words(control, arrays, state, BLANK)
    visited = arrays.visited[np.int64(state[VISITED_INDEX])]
    this = np.int64(state[QUEUE_INDEX])
    visited[root >> 5] = np.uint32(1) << np.uint32(root & 31)
    arrays.parent[root] = root
    arrays.queue[this][0] = root
    arrays.offsets[this][0] = 0
    set_one_segment(arrays.segments[this], 1)
    state[KIND] = HOST
    if state[LISTED] >= 0:
        arrays.listed[0] = root
        state[LISTED] = 1


@kernel(counted=False, inner=True)
def join(arrays, state):
    """Make the frontier's queue one piece, as others than this loop want it."""
    this = np.int64(state[QUEUE_INDEX])
    join_segments(arrays.segments[this], arrays.queue[this], arrays.indptr, arrays.offsets[this])


@njit(inline="always")
def _list_found(arrays, state, found):
    """Add what a level found to the host's list, or give the list up."""
    if found == 0 or state[LISTED] < 0:
        return
    count = np.int64(state[LISTED])
    if _has_queue(state) and count + found <= arrays.listed.size:
        this = np.int64(state[QUEUE_INDEX])
        copy_segments(arrays.segments[this], arrays.queue[this], arrays.listed[count:])
        state[LISTED] = count + found
    else:
        state[LISTED] = -1


@njit(inline="always")
def _run_level(control, arrays, state, top_down, records, limit):
    """Run the chosen level and move the state on to the next."""
    record = records[int(state[LEVEL])]
    looked = -1
    if not top_down:
        form, found, edges, looked = _bottom_up(control, arrays, state)
    elif _is_wide(arrays, state):
        form = WIDE_BITMAP
        found, edges = _top_down_by_proposals(control, arrays, state)
    else:
        form = QUEUE
        found, edges = _top_down(control, arrays, state, records)
    _advance(state, form, found, edges)
    record[FOUND_VERTICES] = found
    record[EXAMINED] = looked
    if control[OWNED] and not _may_wait(control, arrays, state, limit):
        _settle(control, arrays, state, records)
    _list_found(arrays, state, np.int64(record[FOUND_VERTICES]))


@kernel(counted=False)
def run_levels(control, arrays, policy, interval, root, alone, state, records, limit):
    """Run a search on the host as long as the policy keeps it there.

    Parameters
    ----------
    control : int64 (team.control_words(threads),)
    arrays : HostArrays
    policy : Policy
    interval : int
        Levels between two choices.
    root : int
        Where the search starts, if it has not yet and may start here: if it is `alone`.
    alone : bool
        Whether no other device takes part, so that starting and ending need no Python.
    state : float64 (STATE_SIZE,)
        Moved on.
    records : float64 (rows, record_width)
        One row per level.
    limit : int
        Levels after which to return, at most `rows`.

    Returns
    -------
    int
        ENDED: no frontier, nothing unvisited, or the limit is reached. LEAVES: the row of the
        coming level has the strategy chosen, `state[CHOSEN]` too; it needs another device, or
        the search must be brought here first.
    """
    num_vertices, num_edges = arrays.degree.size, arrays.indices.size
    control[WHOLE] = alone
    now = clock_seconds()
    while state[LEVEL] < limit and not _is_over(state):
        level = int(state[LEVEL])
        record = records[level]
        if state[CHOSEN] < 0:
            began = now
            choose_level(policy, interval, num_vertices, num_edges, state, records)
            now = clock_seconds()
            record[SELECT_SECONDS] = now - began
        chosen = int(state[CHOSEN])
        if control[OWNED] and (not policy.top_down[chosen] or policy.kinds[chosen] != HOST):
            _settle(control, arrays, state, records)
            settled = clock_seconds()
            records[level - 1, SECONDS] += settled - now
            now = settled
        if policy.kinds[chosen] != HOST or (state[KIND] != HOST and not alone):
            join(arrays, state)
            return LEAVES
        ready = now
        if state[KIND] == NOWHERE:
            start(control, arrays, root, state)
            ready = clock_seconds()
        elif policy.top_down[chosen] and not _has_queue(state):
            convert(control, arrays, state)
            ready = clock_seconds()
        record[TRANSFER_SECONDS] += ready - now
        _run_level(control, arrays, state, policy.top_down[chosen], records, limit)
        now = clock_seconds()
        record[SECONDS] = now - ready
    if alone:
        if state[KIND] == NOWHERE:
            start(control, arrays, root, state)
        _end(control, arrays, state)
    join(arrays, state)
    return ENDED
