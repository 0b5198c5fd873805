"""Whole searches on the host: the level loop, compiled.

The master calls `run_levels`. It chooses, converts, runs and records level after level. It returns
to Python only when the search ends or another device must take part. The table of strategies says
which kernel runs a level. phases.py has the strategies, and the functions that share work with the
workers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.expand import (
    add_owners_segment,
    finish_queue,
    follow_tiny,
    join_segments,
    set_one_segment,
)
from hetero_bfs.algorithms.bfs.kernels.phases import (
    DEFERRED,
    count_late,
    counted,
    is_dense_push_level,
    join,
    share,
    share_among_owners,
    share_out,
    share_words,
)
from hetero_bfs.devices.cpu.thread_pool import report_of
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import (
    FIXED,
    ROW,
    alike_levels,
    choose_level,
    is_alike,
    scheduled,
)
from hetero_bfs.scheduling.schema import advance, has_queue, is_over, row_of
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import clock_seconds, trailing_zeros
from hetero_bfs.support.parallel import call_level

_SCAN_WORDS = 4096  # minimum bitmap words per chunk, if most of them need no work
# Minimum per chunk and thread: the master scans this number of words before the workers come.
_SCAN_WORDS_BY_THREAD = 512
_RESTORED_VERTICES = 1 << 16  # in a chunk: sharing smaller ones is not faster

_advance = kernel(advance, counted=False, inner=True)
_has_queue = kernel(has_queue, counted=False, inner=True)
_is_over = kernel(is_over, counted=False, inner=True)
_row_of = kernel(row_of, counted=False, inner=True)

ENDED, LEAVES = 0, 1
"""Return values of `run_levels`: the search has ended, or Python must continue."""


@njit(inline="always")
def _may_wait(control, arrays, state, limit):
    """Tell whether deferred edges may wait until the owners expand the next level.

    There must be a next level, which a target could rule out, and its edges must fit in the outbox.
    Its size must also be known well enough to choose its strategy: at the mean degree, the deferred
    edges must not add more edges to it than are already counted, nor make it a dense push.
    """
    edges, deferred = state[schema.FRONTIER_EDGES], control[DEFERRED]
    most = edges + deferred * arrays.longest
    likely = edges + deferred * (arrays.indices.size / max(arrays.degree.size, 1))
    return (
        _row_of(state) < limit
        and state[schema.TARGET] == 0
        and edges >= schema.LEAST_SHARED_EDGES
        and deferred * arrays.indices.size <= edges * arrays.degree.size
        and most < arrays.outbox.shape[2]
        and not is_dense_push_level(arrays.degree.size, likely, state[schema.UNVISITED_VERTICES])
        and deferred < state[schema.UNVISITED_VERTICES]
    )


@kernel(counted=False, inner=True)
def _resolve_deferred(control, arrays, state, records):
    """Let the owners collect deferred edges, and make each owner's part a segment."""
    if control[DEFERRED]:
        _, _, _, late, late_edges = share_among_owners(control, arrays, state, job.COLLECT)
        count_late(state, records, late, late_edges)
    control[job.OWNED] = 0
    segments = arrays.segments[np.int64(state[schema.QUEUE_INDEX])]
    for owner in range(arrays.owned_ranges.size - 1):
        add_owners_segment(owner, report_of(control, owner), arrays.owned_ranges, segments)


@kernel(counted=False)
def convert(control, arrays, state):
    began = clock_seconds()
    words = arrays.written.size
    size = 256
    if state[schema.FRONTIER_VERTICES] <= 4096:
        size = max(_SCAN_WORDS, _SCAN_WORDS_BY_THREAD * arrays.threads)
    share(control, arrays, state, job.CONVERT, size, max((words + size - 1) // size, 1))
    vertices, edges = counted(arrays)
    set_one_segment(arrays.segments[np.int64(state[schema.QUEUE_INDEX])], vertices)
    state[schema.FRONTIER_VERTICES], state[schema.FRONTIER_EDGES] = vertices, edges
    state[schema.REPRESENTATION] = schema.QUEUE
    return clock_seconds() - began


@kernel(counted=False)
def invalidate(control, arrays, state):
    """Set the parent to NO_VERTEX wherever this search wrote none."""
    share_words(control, arrays, state, job.INVALIDATE)


@kernel(counted=False)
def restore_parents(control, arrays, address, num_vertices, narrow):
    """Fill the array of all old ids at an address with parents; see `fill_result`."""
    _begin_result(control, arrays, address, num_vertices, narrow)
    _share_vertices(control, arrays, job.RESTORE, arrays.parent.size)


@kernel(counted=False)
def restore_levels(control, arrays, address, num_vertices):
    """Fill the int32 array of all old ids at an address; see `restore_levels_chunk`."""
    _begin_result(control, arrays, address, num_vertices, True)
    _share_vertices(control, arrays, job.BLANK_DEPTHS, arrays.parent.size)
    _share_vertices(control, arrays, job.RESTORE_LEVELS, arrays.parent.size)


@kernel(counted=False)
def receive(control, arrays, sent, address, size, narrow):
    control[job.SENT] = sent
    control[job.ADDRESS] = address
    control[job.VERTICES] = size
    control[job.NARROW] = narrow
    _share_vertices(control, arrays, job.RECEIVE, size)


@kernel(counted=False, inner=True)
def _begin_result(control, arrays, address, num_vertices, narrow):
    control[job.ADDRESS] = address
    control[job.VERTICES] = num_vertices
    control[job.NARROW] = narrow
    if arrays.parent.size < num_vertices:
        _share_vertices(control, arrays, job.CLEAR, num_vertices)


@kernel(counted=False, inner=True)
def _share_vertices(control, arrays, task, count):
    size = _RESTORED_VERTICES
    share_out(control, arrays, task, size, max((count + size - 1) // size, 1))


@kernel(counted=False)
def start_at(control, arrays, sources, state):
    """Make `sources`, uint32 without duplicates, the frontier of a search; see `Seeds`.

    If control[MASKED] is set, the vertices of `arrays.mask` are ignored. On a rank the mask also
    has other ranks' vertices, behind its own; they have no parent here.
    """
    share_words(control, arrays, state, job.BLANK)
    this, degree, parent = np.int64(state[schema.QUEUE_INDEX]), arrays.degree, arrays.parent
    visited, mask = arrays.visited[np.int64(state[schema.VISITED_INDEX])], arrays.mask
    queue, offsets = arrays.queue[this], arrays.offsets[this]
    vertices, edges, masked, masked_edges = 0, np.int64(0), 0, np.int64(0)
    if control[job.MASKED]:
        for word in range(mask.size):
            visited[word] = mask[word]
        for word in range(arrays.written.size):
            rest = mask[word]
            while rest:
                v = (np.int64(word) << 5) + np.int64(trailing_zeros(rest))
                rest &= rest - np.uint32(1)
                parent[v] = NO_ID
                masked += 1
                masked_edges += np.int64(degree[v])
    for v in sources:
        visited[v >> 5] |= np.uint32(1) << np.uint32(v & 31)
        parent[v] = v
        queue[vertices] = v
        offsets[vertices] = edges
        vertices += np.int64(degree[v] > 0)
        edges += np.int64(degree[v])
    set_one_segment(arrays.segments[this], vertices)
    state[schema.PLACE] = schema.HOST
    state[schema.FRONTIER_VERTICES], state[schema.FRONTIER_EDGES] = vertices, edges
    state[schema.UNVISITED_VERTICES] = degree.size - sources.size - masked
    state[schema.UNVISITED_EDGES] = arrays.indices.size - edges - masked_edges
    state[schema.PREVIOUS_EDGES] = max(edges, 1) / max(
        arrays.indices.size / max(degree.size, 1), 1.0
    )
    if state[schema.FOUND_LISTED] >= 0:
        fits = sources.size <= arrays.found_list.shape[0]
        state[schema.FOUND_LISTED] = sources.size if fits else -1
        for i in range(sources.size if fits else 0):
            arrays.found_list[i] = sources[i]


@kernel(counted=False)
def start(control, arrays, source, state):
    queue = arrays.queue[np.int64(state[schema.QUEUE_INDEX])]
    queue[0] = source
    start_at(control, arrays, queue[:1], state)


@kernel(counted=False, inner=True)
def list_found(arrays, state, which, begin, end):
    """Append the entries from `begin` to `end` of a queue to `found_list`, or give up the list."""
    count, pairs = np.int64(state[schema.FOUND_LISTED]), arrays.found_list
    if count < 0:
        return
    after = count + end - begin
    state[schema.FOUND_LISTED] = after if after <= pairs.shape[0] else -1
    for i in range(end - begin if after <= pairs.shape[0] else 0):
        v = arrays.queue[which][begin + i]
        pairs[count + i, 0], pairs[count + i, 1] = v, arrays.parent[v]


@njit(inline="always")
def _run_level(control, arrays, row, state, records):
    record = records[_row_of(state)]
    address = arrays.levels[row]
    representation, found, edges, scanned = call_level(address, control, arrays, state, records)
    _advance(state, representation, found, edges)
    record[schema.FOUND_VERTICES] = found
    record[schema.EDGES_SCANNED] = scanned
    if control[job.OWNED]:
        state[schema.FOUND_LISTED] = -1  # edges that wait could not be listed yet
        if not _may_wait(control, arrays, state, records.shape[0]):
            _resolve_deferred(control, arrays, state, records)
    if state[schema.FOUND_LISTED] >= 0 and record[schema.FOUND_VERTICES] > 0:
        if _has_queue(state):
            list_found(arrays, state, np.int64(state[schema.QUEUE_INDEX]), 0, found)
        else:  # a bitmap does not list vertices
            state[schema.FOUND_LISTED] = -1
    if state[schema.TARGET] > 0:
        target = np.int64(state[schema.TARGET]) - 1
        visited = arrays.visited[np.int64(state[schema.VISITED_INDEX])]
        if visited[target >> 5] >> np.uint32(target & 31) & np.uint32(1):
            state[schema.TARGET] = schema.FOUND_TARGET


@njit(inline="always")
def _may_merge(control, top_down, state):
    """Tell whether a level may be the first of `run_tiny_levels`."""
    return (
        top_down
        and state[schema.MERGED] >= 0
        and state[schema.FRONTIER_EDGES] < schema.TINY_EDGES
        and state[schema.TARGET] == 0
        and not control[job.OWNED]
    )


@kernel(counted=False, inner=True)
def _run_tiny_levels(arrays, policy, state, records):
    """Run a tiny top-down level, and those after it for which its choice stays, as one record.

    The levels' vertices follow each other in one queue, which has room for all vertices. So a level
    takes little more than its edges.
    """
    bounds, record = alike_levels(policy, state, records), records[_row_of(state)]
    chosen = int(state[schema.CHOSEN])
    this, first = np.int64(state[schema.QUEUE_INDEX]), np.int64(state[schema.LEVEL])
    join_segments(arrays, this)
    vertices = np.int64(state[schema.FRONTIER_VERTICES])
    edges = np.int64(state[schema.FRONTIER_EDGES])
    left = np.int64(state[schema.UNVISITED_VERTICES])
    unvisited = np.int64(state[schema.UNVISITED_EDGES])
    begin, end, level, found, more = np.int64(0), vertices, first, np.int64(0), np.int64(0)
    while True:
        arrays.tiny[level, 0], arrays.tiny[level, 1] = vertices, edges
        found, more = follow_tiny(arrays, np.int64(state[schema.VISITED_INDEX]), this, begin, end)
        level += 1
        goes_on = (
            0 < more < schema.TINY_EDGES
            and left > found
            and is_alike(bounds, found, more, unvisited - more)
            and (policy.rule != FIXED or scheduled(policy, level) == chosen)
        )
        if not goes_on:
            break
        begin, end = end, end + found
        vertices, edges = found, more
        left -= found
        unvisited -= more
    further = level - first - 1
    list_found(arrays, state, this, np.int64(state[schema.FRONTIER_VERTICES]), end + found)
    record[schema.FURTHER_LEVELS] = further
    state[schema.LEVEL] += further
    state[schema.MERGED] += further
    state[schema.FRONTIER_VERTICES], state[schema.FRONTIER_EDGES] = vertices, edges
    state[schema.UNVISITED_VERTICES], state[schema.UNVISITED_EDGES] = left, unvisited
    queue, next_queue = arrays.queue[this], arrays.queue[1 - this]
    for i in range(found):
        next_queue[i] = queue[end + i]
    finish_queue(arrays, 1 - this, found)
    _advance(state, schema.QUEUE, found, more)
    record[schema.FOUND_VERTICES] = found
    record[schema.EDGES_SCANNED] = -1


@kernel(counted=False)
def run_levels(control, arrays, policy, interval, source, cpu_only, state, records):
    """Run a search on the host while the policy keeps it there.

    There are `interval` levels between two choices. If no other device takes part (`cpu_only`), the
    search starts at `source` and ends here, without Python; otherwise it has started. Each level
    advances `state`, float64 (STATE_SIZE,), and fills a row of `records`, float64 (rows,
    record_width); tiny levels may share one. The function returns when every row is used.

    Returns ENDED: there is no frontier, nothing unvisited, or no row left. Or LEAVES: the strategy
    of the next level is in its row and in `state[CHOSEN]`. It needs another device, or the search
    must migrate to the host first.
    """
    num_vertices, num_edges = arrays.degree.size, arrays.indices.size
    control[job.WHOLE] = cpu_only
    now = clock_seconds()
    while _row_of(state) < records.shape[0] and not _is_over(state):
        row = _row_of(state)
        record = records[row]
        if state[schema.CHOSEN] < 0:
            began = now
            if choose_level(policy, interval, num_vertices, num_edges, state, records):
                now = clock_seconds()
                record[schema.SELECT_SECONDS] = now - began
        chosen = int(state[schema.CHOSEN])
        if control[job.OWNED] and chosen != int(records[row - 1, schema.STRATEGY]):
            _resolve_deferred(control, arrays, state, records)
            settled = clock_seconds()
            records[row - 1, schema.SECONDS] += settled - now
            now = settled
        if policy.places[chosen] != schema.HOST or (
            state[schema.PLACE] != schema.HOST and not cpu_only
        ):
            join(arrays, state)
            return LEAVES
        ready = now
        if state[schema.PLACE] == schema.NOWHERE:
            start(control, arrays, source, state)
            ready = clock_seconds()
        elif policy.top_down[chosen] and not _has_queue(state):
            convert(control, arrays, state)
            ready = clock_seconds()
        record[schema.TRANSFER_SECONDS] += ready - now
        if _may_merge(control, policy.top_down[chosen], state):
            _run_tiny_levels(arrays, policy, state, records)
        else:
            _run_level(control, arrays, policy.traits[chosen, ROW], state, records)
        now = clock_seconds()
        record[schema.SECONDS] = now - ready
    if cpu_only:
        if state[schema.PLACE] == schema.NOWHERE:
            start(control, arrays, source, state)
        invalidate(control, arrays, state)
    join(arrays, state)
    return ENDED
