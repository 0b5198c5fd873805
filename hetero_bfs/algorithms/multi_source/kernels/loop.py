"""The loop of 64 searches at once on the host; phases.py has its phases."""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.multi_source.kernels import phases
from hetero_bfs.algorithms.multi_source.kernels.phases import add_list_to_rows, count_lanes
from hetero_bfs.devices.cpu.thread_pool import even_size, share
from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.scheduling.algorithm_decision import choose_pushed, is_for_one_thread
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add, clock_seconds, prefetch

LEVEL, VERTICES, EDGES, LEFT, LOG_END, NUM_SEGMENTS, OVER = range(7)
STATE_SIZE = 7
"""Words of a run's state: the next level; the vertices of the last level, and their edges; the
edges of vertices that lack a search; the end and the number of the kept lists; whether the searches
have ended."""

RECORD_STRATEGY, RECORD_VERTICES, RECORD_EDGES, RECORD_SECONDS = range(4)
"""Columns of a level's record. A pull reads only a part of the edges."""

PULLS, PUSHES, BOTH = range(3)

PHASES = phases.PHASES

MOST_LEVELS = phases.PLANES + phases.SEGMENTS
"""Most levels of one call of `run_planes`."""

_LEAST_CHUNK = 1 << 12
_NONE = np.uint64(0)
_ONE = np.uint64(1)


@kernel(counted=False)
def begin(control, arrays, sources, state):
    """Start search i at sources[i], uint32 (at most 64,), unless that is NO_VERTEX."""
    n = arrays.seen.size
    share(control, arrays, phases.START, n, even_size(arrays, n, _LEAST_CHUNK))
    state[:] = 0
    state[LEFT] = arrays.backward_indices.size
    arrays.job[phases.CURRENT] = 0
    _forget_levels(arrays, state)
    arrays.frontier_list[phases.LIST_BEGIN] = arrays.frontier_list[phases.LIST_END] = 0
    place = 0
    for i in range(sources.size):
        v = sources[i]
        if v != NO_ID:
            if arrays.fresh[v] == _NONE:
                arrays.listed[place] = v
                place += 1
            arrays.fresh[v] |= _ONE << np.uint64(i)
    _end_list(arrays, state, 0, place)


@njit(inline="always")
def _forget_levels(arrays, state):
    arrays.plane_level[:] = -1
    arrays.counts[:] = 0
    state[LOG_END] = state[NUM_SEGMENTS] = 0


@kernel(counted=False, inner=True)
def _end_list(arrays, state, begin, end):
    """End a level whose vertices, with words in `fresh`, are listed from `begin` to `end`."""
    listed, words, fresh, seen = arrays.listed, arrays.words, arrays.fresh, arrays.seen
    segment, lane_edges = state[NUM_SEGMENTS], arrays.lane_edges[arrays.threads]
    counts = arrays.counts[0, phases.PLANES + segment]
    going, edges, left = _NONE, np.int64(0), state[LEFT]
    lane_edges[:] = 0
    for i in range(begin, end):
        v = listed[i]
        word = fresh[v]
        words[i], fresh[v] = word, _NONE
        seen[v] |= word
        going |= word
        edges += np.int64(arrays.degree[v])
        count_lanes(counts, word, 1)
        count_lanes(lane_edges, word, arrays.degree[v])
    arrays.active[arrays.threads, phases.GOING] = going
    arrays.segments[segment, 0] = state[LEVEL]
    arrays.segments[segment, 1], arrays.segments[segment, 2] = begin, end
    arrays.frontier_list[phases.LIST_BEGIN], arrays.frontier_list[phases.LIST_END] = begin, end
    state[VERTICES], state[EDGES], state[LEFT] = end - begin, edges, left
    state[NUM_SEGMENTS] += end > begin
    state[LOG_END] = end


@kernel(counted=False, inner=True)
def _push_list(arrays, state):
    """Push the frontier's list by one thread, and list the vertices found."""
    listed, words, fresh, seen = arrays.listed, arrays.words, arrays.fresh, arrays.seen
    indptr, indices = arrays.indptr, arrays.indices
    end = arrays.frontier_list[phases.LIST_END]
    place = end
    for i in range(arrays.frontier_list[phases.LIST_BEGIN], end):
        if i + phases.PREFETCH_DISTANCE < end:
            prefetch(indices, np.uint64(indptr[np.uint64(listed[i + phases.PREFETCH_DISTANCE])]))
        u, word = np.uint64(listed[i]), words[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + _ONE])):
            v = indices[k]
            new = word & ~seen[v]
            if new:
                if fresh[v] == _NONE:
                    listed[place] = v
                    place += 1
                fresh[v] |= new
    _end_list(arrays, state, end, place)


@kernel(counted=False, inner=True)
def _find_plane(control, arrays, state, size):
    n, job, threads = arrays.seen.size, arrays.job, arrays.threads
    if arrays.active[threads, phases.PUSHED]:
        share(control, arrays, phases.PUSH, arrays.ranges.size - 1, 1)
    state[VERTICES], state[EDGES], state[LEFT] = share(control, arrays, phases.PULL, n, size)
    going, lane_edges = _NONE, arrays.lane_edges[threads]
    lane_edges[:] = 0
    for thread in range(threads):
        going |= arrays.active[thread, 0]
        arrays.active[thread, 0] = _NONE
        for i in range(LANES):
            lane_edges[i] += arrays.lane_edges[thread, i]
            arrays.lane_edges[thread, i] = 0
    arrays.active[threads, phases.GOING] = going
    job[phases.CURRENT] = (job[phases.CURRENT] + 1) % phases.PLANES
    arrays.plane_level[job[phases.CURRENT]] = state[LEVEL] if state[VERTICES] else -1
    arrays.frontier_list[phases.LIST_BEGIN] = arrays.frontier_list[phases.LIST_END] = 0


@njit(inline="always")
def _has_room(arrays, state):
    has_plane = arrays.plane_level[(arrays.job[phases.CURRENT] + 1) % phases.PLANES] < 0
    segments = state[NUM_SEGMENTS]
    is_short = segments == 0 or 2 * state[LOG_END] <= arrays.seen.size
    return has_plane and segments < phases.SEGMENTS and is_short


@kernel(counted=False)
def run_planes(control, arrays, state, most_levels, records):
    """Run levels until no more can be kept, all searches have ended, or `most_levels` are done.

    Each level fills a row of `records`; returns the number of levels. `state` shows whether the
    searches have ended. `plane_level` and `segments` show where the levels are.
    """
    n, job = arrays.seen.size, arrays.job
    size = even_size(arrays, n, _LEAST_CHUNK)
    frontier_list, active = arrays.frontier_list, arrays.active[arrays.threads]
    ran = 0
    while state[VERTICES] and state[LEVEL] < most_levels and _has_room(arrays, state):
        began = clock_seconds()
        is_list = frontier_list[phases.LIST_BEGIN] < frontier_list[phases.LIST_END]
        to_list = is_for_one_thread(state[EDGES], arrays.threads, n)
        pushed = active[phases.GOING]
        if not (is_list or to_list):
            edges, left = np.float64(state[EDGES]), np.float64(state[LEFT])
            stored = arrays.backward_indices.size
            pushed = choose_pushed(
                pushed, arrays.lane_edges[arrays.threads], edges, left, n, stored
            )
        active[phases.PUSHED], active[phases.PULLED] = pushed, active[phases.GOING] & ~pushed
        if pushed and not is_list:
            job[phases.LISTED] = state[LOG_END]
            share(control, arrays, phases.LIST, n, size)
            frontier_list[phases.LIST_BEGIN] = state[LOG_END]
            frontier_list[phases.LIST_END] = job[phases.LISTED]
        pulls = active[phases.PULLED] != _NONE
        records[ran, RECORD_STRATEGY] = (BOTH if pushed else PULLS) if pulls else PUSHES
        records[ran, RECORD_VERTICES] = state[VERTICES]
        records[ran, RECORD_EDGES] = state[LEFT] if pulls else state[EDGES]
        state[LEVEL] += 1
        if to_list:
            _push_list(arrays, state)
        else:
            _find_plane(control, arrays, state, size)
        records[ran, RECORD_SECONDS] = clock_seconds() - began
        ran += 1
    state[OVER] = state[VERTICES] == 0 or state[LEVEL] >= most_levels
    return ran


@kernel(counted=False)
def forget_levels(arrays, state):
    begin = arrays.frontier_list[phases.LIST_BEGIN]
    count = arrays.frontier_list[phases.LIST_END] - begin
    for i in range(count):
        arrays.listed[i], arrays.words[i] = arrays.listed[begin + i], arrays.words[begin + i]
    _forget_levels(arrays, state)
    arrays.frontier_list[phases.LIST_BEGIN], arrays.frontier_list[phases.LIST_END] = 0, count
    state[LOG_END] = count


@kernel(counted=False)
def write_rows(control, arrays, address, stride, item_bytes, keep, segments):
    """Write the levels of the planes, and of this number of lists, to all rows.

    The first row begins at `address`, and each next one after `stride` bytes. Rows have 64 items
    and are in the order of the old ids. Without `keep`, other items become -1.
    """
    job = arrays.job
    job[phases.ADDRESS], job[phases.STRIDE] = address, stride
    job[phases.ITEM_BYTES], job[phases.KEEP] = item_bytes, keep
    n, isolated = arrays.seen.size, arrays.isolated.size
    share(control, arrays, phases.ROWS, n, even_size(arrays, n, _LEAST_CHUNK))
    if not keep:
        share(control, arrays, phases.ISOLATED, isolated, even_size(arrays, isolated, _LEAST_CHUNK))
    for i in range(segments):
        level, begin, end = arrays.segments[i, 0], arrays.segments[i, 1], arrays.segments[i, 2]
        add_list_to_rows(arrays, level, begin, end)


# Searches from one vertex after the other by one thread. Threads do not share a search.

_UNSEEN, _MASKED = np.int32(-1), np.int32(-2)


@kernel(counted=False, inner=True)
def search_apart(given, part, parts):
    """Take the next source until none is left; see `_given` for the fields."""
    while True:
        number = atomic_add(given.next_number, 0, 1)
        if number >= given.stop:
            break
        _search(given, number, given.queue[part], given.level[part])


@kernel(counted=False, inner=True)
def _search(given, number, queue, level):
    indptr, indices, mask, limit = given.indptr, given.indices, given.mask, given.limit
    source = given.sources[number]
    for v in range(np.uint64(level.size)):
        level[v] = _MASKED if mask.size and mask[v] else _UNSEEN
    first, last, total, deepest = np.uint64(0), np.uint64(0), np.int64(0), np.int32(0)
    if source != NO_ID:
        queue[0], level[source], last = source, 0, np.uint64(1)
    while first < last:
        u = queue[first]
        first += np.uint64(1)
        deepest = level[u]
        total += deepest
        if deepest >= limit:
            continue
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            if level[v] == _UNSEEN:
                level[v] = deepest + np.int32(1)
                queue[last] = v
                last += np.uint64(1)
    given.reached[number] = max(np.int64(last), 1)
    given.distance_sum[number] = total
    given.eccentricity[number] = deepest
    if given.rows.size:
        _write_row(given.new_of_old, level, given.rows[number])
        given.rows[number, given.old_sources[number]] = 0


@kernel(counted=False, inner=True)
def _write_row(new_of_old, level, row):
    for old in range(np.uint64(row.size)):
        new = new_of_old[old]
        row[old] = max(level[new], _UNSEEN) if new != NO_ID else _UNSEEN
