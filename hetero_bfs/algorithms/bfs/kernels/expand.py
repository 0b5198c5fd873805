"""Top-down levels without atomics: by one thread, or by owners of partitions.

level.py describes the arrays, job.py the parameters.

If vertices are numbered by partitions (locality.py), each partition has an owner. An owner is a
fixed set of partitions. The same thread does its work in every level, unless that thread is late.
Owners expand their own part of the frontier and claim their own vertices. Few edges
lead to other owners' vertices; an owner defers them in its outbox. When the next level starts, each
owner collects the edges that were deferred to it. If the owners do not run the next level, they
collect in a separate phase. So the owners synchronise once per level, and few cache lines of the
graph, the bitmap, the parents or the queue move from core to core.

A thread follows the edges of its part by one of two methods. `follow_by_branches` tests for each
edge whether its end is visited. If most vertices have the same degree, as in a grid, the processor
predicts the branch well. In other high-diameter graphs, such as road networks, it does not, and a
mispredicted branch costs more than all other work for an edge. `follow_packed` is for these graphs,
if the processor can pack vectors. It copies edges without branches: first all but the edge back to
the vertex's parent, then the edges whose end is not visited yet. Few of the remaining edges lead to
a vertex that is visited after all. In low-diameter graphs small levels take little of a search, so
the method does not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.job import owner_of, partition_bits
from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES, ONE, WORD_MASK, WORD_SHIFT
from hetero_bfs.devices.cpu.thread_pool import CHUNKS, report_of
from hetero_bfs.devices.cpu.vectors import append_edges, keep_unvisited
from hetero_bfs.scheduling.schema import FRONTIER_VERTICES, QUEUE_INDEX
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import prefetch

SEGMENT_START, SEGMENT_VERTICES, SEGMENT_COUNT = range(3)
"""Rows of `segments`: the start of each segment in the queue; the number of frontier vertices
before each segment, and then their total; the number of segments, in the first item."""

_FOUND, _EDGES, _DEFERRED, _LATE, _LATE_EDGES = range(5)  # words of an owner's report
_FIRST, _ONLY = np.int64(0), np.int64(1)
_OWN, _MIXED = np.uint32(0), np.uint32(1)


_PREFETCH_DISTANCE = np.uint64(16)  # queue entries between fetching a list and reading it
_BLOCK_WORDS = np.uint64(4)  # bitmap words whose vertices' data is fetched together
_BLOCK_VERTICES = _BLOCK_WORDS * np.uint64(32)
_LINE_ITEMS = np.uint64(16)
_MOST_ITEMS = np.uint64(1024)  # list items of a block to prefetch
_LANES = np.uint64(8)
# Minimum edges to pack before any is followed, and maximum edges of one list to pack at a time. So
# the scratch holds fewer than 2 * _PACKED + 8 edges.
_PACKED = np.uint64(CHUNK_EDGES // 8)
_ZERO, _NEXT = np.uint64(0), np.uint64(1)


@njit(inline="always")
def _fetch_block(word, indptr, indices, visited, parent):
    """Prefetch the data of a block of vertices, if the search has just reached the block.

    The next levels will find the block's other vertices, in a graph by locality or along a chain
    whose vertices have consecutive numbers. The block is the bitmap's `word` and the
    words next to it. One vertex of `word` is visited now. If the neighbour lists are long, only the
    first ones are prefetched.
    """
    first = np.uint64(word) & ~(_BLOCK_WORDS - np.uint64(1))
    for other in range(first, min(first + _BLOCK_WORDS, np.uint64(visited.size))):
        if other != np.uint64(word) and visited[other]:
            return
    low = first * np.uint64(32)
    high = min(low + _BLOCK_VERTICES, np.uint64(parent.size))
    for v in range(low, high, _LINE_ITEMS):
        prefetch(parent, v)
        prefetch(indptr, v)
    start = np.uint64(indptr[low]) & ~(_LINE_ITEMS - np.uint64(1))
    for k in range(start, min(np.uint64(indptr[high]), start + _MOST_ITEMS), _LINE_ITEMS):
        prefetch(indices, k)


@njit(inline="always")
def claim(v, u, indptr, indices, is_local, visited, parent):
    """Visit `v` with the parent `u`, if it is unvisited; return whether it was, and its edges."""
    word = v >> WORD_SHIFT
    bit = ONE << (v & WORD_MASK)
    seen = visited[word]
    if seen & bit:
        return False, np.int64(0)
    visited[word] = seen | bit
    if seen == 0 and (is_local or v - u == ONE or u - v == ONE):
        _fetch_block(word, indptr, indices, visited, parent)
    parent[v] = u
    return True, np.int64(indptr[v + ONE]) - np.int64(indptr[v])


class Part(NamedTuple):
    """An owner's part of the frontier, the entries `begin` to `end` of a queue.

    `queue` and `visited` are the numbers of the queue and of the bitmap that hold the frontier. The
    first vertex that the owner finds goes to index `found` in the other queue. `mixed`, uint32, is
    1 if other owners' vertices are among the entries, else 0.
    """

    queue: Any
    visited: Any
    begin: Any
    end: Any
    found: Any
    owner: Any
    owners: Any
    mixed: Any


@njit(inline="always")
def follow_by_branches(control, arrays, part):
    """Expand a part of the frontier, for its owner.

    Edges that lead to other owners' vertices are deferred: their ends and parents go to the owner's
    outbox, after its first entry. Returns the end of the found vertices in the other queue, the
    number of edges deferred, and the number of edges of the found vertices.
    """
    queue, next_queue = arrays.queue[part.queue], arrays.queue[1 - part.queue]
    indptr, indices, is_local = arrays.indptr, arrays.indices, arrays.is_local != 0
    visited, parent = arrays.visited[part.visited], arrays.parent
    # All unsigned: Numba tests each signed index, since a negative one counts from the end.
    begin, end, found = np.uint64(part.begin), np.uint64(part.end), np.uint64(part.found)
    owner, owners, mixed = part.owner, part.owners, part.mixed
    outbox = arrays.outbox[part.queue, owner]
    deferred, edges, bits = _ZERO, np.int64(0), partition_bits(owners)
    for i in range(begin, end):
        if i + _PREFETCH_DISTANCE < end:
            prefetch(indices, np.uint64(indptr[queue[i + _PREFETCH_DISTANCE]]))
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            beyond = (u ^ v) >> bits | mixed  # 0 only if `v` is in the partition of the owner's `u`
            if beyond and owner_of(v, owners, bits) != owner:
                deferred += _NEXT
                outbox[deferred, 0] = v
                outbox[deferred, 1] = u
                continue
            is_new, more = claim(v, u, indptr, indices, is_local, visited, parent)
            if is_new:
                next_queue[found] = v
                found += _NEXT
                edges += more
    return np.int64(found), np.int64(deferred), edges


@kernel(counted=False, inner=True)
def follow_packed(control, arrays, part):
    """Like `follow_by_branches`, on a processor that packs vectors (`can_pack`)."""
    queue, next_queue = arrays.queue[part.queue], arrays.queue[1 - part.queue]
    indptr, indices, is_local = arrays.indptr, arrays.indices, arrays.is_local != 0
    visited, parent = arrays.visited[part.visited], arrays.parent
    # All unsigned, as in `follow_by_branches`.
    begin, end, found = np.uint64(part.begin), np.uint64(part.end), np.uint64(part.found)
    owner, owners, mixed = part.owner, part.owners, part.mixed
    outbox = arrays.outbox[part.queue, owner]
    ends, sources, is_whole = arrays.found[owner], arrays.source[owner], control[job.WHOLE]
    deferred, edges, bits = _ZERO, np.int64(0), partition_bits(owners)
    i, k = begin, _ZERO
    if i < end:
        k = np.uint64(indptr[queue[i]])
    while i < end:
        taken, kept = _ZERO, _ZERO
        while i < end and taken < _PACKED:
            if i + _PREFETCH_DISTANCE < end:
                prefetch(indices, np.uint64(indptr[queue[i + _PREFETCH_DISTANCE]]))
            u = queue[i]
            but = parent[u] if is_whole else u
            list_end = np.uint64(indptr[u + 1])
            stop = min(list_end, k + _PACKED)
            while k < stop:
                count = min(stop - k, _LANES)
                taken += append_edges(indices, k, count, u, but, ends, sources, taken)
                k += _LANES
            k = stop
            if k >= list_end:
                i += _NEXT
                if i < end:
                    k = np.uint64(indptr[queue[i]])
        for j in range(_ZERO, taken, _LANES):
            count = min(taken - j, _LANES)
            kept += keep_unvisited(ends, sources, j, count, visited, bits, mixed, kept)
        for j in range(kept):
            v, u = ends[j], sources[j]
            beyond = (u ^ v) >> bits | mixed
            if beyond and owner_of(v, owners, bits) != owner:
                deferred += _NEXT
                outbox[deferred, 0] = v
                outbox[deferred, 1] = u
                continue
            is_new, more = claim(v, u, indptr, indices, is_local, visited, parent)
            if is_new:
                next_queue[found] = v
                found += _NEXT
                edges += more
    return np.int64(found), np.int64(deferred), edges


@njit(inline="always")
def follow_tiny(arrays, visited_index, which, begin, end):
    """Expand the entries from `begin` to `end` of a queue, by one thread.

    What they find, without vertices that have no edge, goes to the same queue, from `end` on.
    Returns the number of these vertices, and of their edges.
    """
    queue, indptr, indices = arrays.queue[which], arrays.indptr, arrays.indices
    visited, parent, is_local = arrays.visited[visited_index], arrays.parent, arrays.is_local != 0
    found, edges = np.uint64(end), np.int64(0)
    for i in range(np.uint64(begin), np.uint64(end)):
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + ONE])):
            v = indices[k]
            is_new, more = claim(v, u, indptr, indices, is_local, visited, parent)
            if is_new and more:
                queue[found] = v
                found += _NEXT
                edges += more
    return np.int64(found) - end, edges


@kernel(counted=False, inner=True)
def expand_by_master(control, arrays, chunk, me):
    """Expand a small frontier by one thread; return vertices and edges found."""
    return _expand_by_master(follow_by_branches, control, arrays)


@kernel(counted=False, inner=True)
def expand_by_master_packed(control, arrays, chunk, me):
    """Like `expand_by_master`, on a processor that packs vectors."""
    return _expand_by_master(follow_packed, control, arrays)


@njit(inline="always")
def _expand_by_master(follow, control, arrays):
    this, visited = control[job.LONE_QUEUE], control[job.LONE_VISITED]
    segments = arrays.segments[this]
    found = np.int64(0)
    for s in range(segments[SEGMENT_COUNT, 0]):
        begin = segments[SEGMENT_START, s]
        end = begin + segments[SEGMENT_VERTICES, s + 1] - segments[SEGMENT_VERTICES, s]
        part = Part(this, visited, begin, end, found, _FIRST, _ONLY, _OWN)
        found, _, _ = follow(control, arrays, part)
    vertices, edges = finish_queue(arrays, 1 - this, found)
    return vertices, edges, job.NONE


@kernel(counted=False, inner=True)
def finish_queue(arrays, which, found):
    """Make the first `found` vertices of a queue a frontier in one segment, with offsets.

    Vertices without edges are dropped. Returns the number of vertices and of their edges.
    """
    indptr, queue, offsets = arrays.indptr, arrays.queue[which], arrays.offsets[which]
    vertices, edges = np.int64(0), np.int64(0)
    for i in range(found):
        v = queue[i]
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        queue[vertices] = v
        offsets[vertices] = edges
        vertices += np.int64(degree > 0)
        edges += degree
    set_one_segment(arrays.segments[which], vertices)
    return vertices, edges


@kernel(counted=False)
def finish_frontier(arrays, state):
    finish_queue(arrays, np.int64(state[QUEUE_INDEX]), np.int64(state[FRONTIER_VERTICES]))


@kernel(counted=False, inner=True)
def expand_owned(control, arrays, owner, me):
    """Expand an owner's part of the frontier, and fill its report.

    If the frontier is `OWNED`, it is as the owners left it, and the outboxes of the last level have
    deferred edges. Otherwise it is in `segments`: one for each owner, or a single one that the
    owners share. The first entry of an owner's outbox is the number of edges that it deferred;
    their ends and parents follow. The vertices that an owner finds go to the other queue, starting
    at owned_ranges[owner].

    The report has five words: `_FOUND` vertices with `_EDGES` edges; `_DEFERRED` edges; and `_LATE`
    vertices with `_LATE_EDGES` edges. The late vertices belong to this level's frontier, but were
    still deferred when it was counted.
    """
    return _expand_owned(follow_by_branches, control, arrays, owner)


@kernel(counted=False, inner=True)
def expand_owned_packed(control, arrays, owner, me):
    """Like `expand_owned`, on a processor that packs vectors."""
    return _expand_owned(follow_packed, control, arrays, owner)


@njit(inline="always")
def _expand_owned(follow, control, arrays, owner):
    owners, report, this = control[CHUNKS], report_of(control, owner), control[job.QUEUE]
    segments, first = arrays.segments[this], arrays.owned_ranges[owner]
    late, late_edges, mixed = np.int64(0), np.int64(0), _OWN
    if control[job.OWNED]:
        begin = first
        end = begin + report[_FOUND]
        late, late_edges = _collect(control, arrays, owner, end)
        end += late
    elif segments[SEGMENT_COUNT, 0] == owners:
        begin, end = segments[SEGMENT_START, owner], segments[SEGMENT_VERTICES, owner + 1]
        end += begin - segments[SEGMENT_VERTICES, owner]
    else:
        vertices = segments[SEGMENT_VERTICES, 1]
        begin, end = vertices * owner // owners, vertices * (owner + 1) // owners
        mixed = _MIXED
    part = Part(this, control[job.VISITED], begin, end, first, owner, owners, mixed)
    end_found, deferred, edges = follow(control, arrays, part)
    arrays.outbox[this, owner, 0, 0] = deferred
    report[_FOUND] = end_found - first
    report[_EDGES] = edges
    report[_DEFERRED] = deferred
    report[_LATE], report[_LATE_EDGES] = late, late_edges
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False, inner=True)
def collect_owned(control, arrays, owner, me):
    """Add the vertices deferred to an owner to its part of the frontier; see `expand_owned`."""
    report = report_of(control, owner)
    end = arrays.owned_ranges[owner] + report[_FOUND]
    late, late_edges = _collect(control, arrays, owner, end)
    report[_LATE], report[_LATE_EDGES] = late, late_edges
    report[_FOUND] += late
    return job.NONE, job.NONE, job.NONE


@kernel(counted=False, inner=True)
def _collect(control, arrays, owner, end):
    """Claim the vertices deferred to an owner, queue them at `end`; return vertices and edges."""
    queue, outbox = arrays.queue[control[job.QUEUE]], arrays.outbox[1 - control[job.QUEUE]]
    indptr, indices = arrays.indptr, arrays.indices
    visited, parent = arrays.visited[control[job.VISITED]], arrays.parent
    owners = control[CHUNKS]
    begin, edges, bits = end, np.int64(0), partition_bits(owners)
    for other in range(owners):
        if other == owner:
            continue
        for i in range(1, 1 + np.int64(outbox[other, 0, 0])):
            v = outbox[other, i, 0]
            if owner_of(v, owners, bits) != owner:
                continue
            u = outbox[other, i, 1]
            is_new, more = claim(v, u, indptr, indices, True, visited, parent)
            if is_new:
                queue[end] = v
                end += 1
                edges += more
    return end - begin, edges


@njit(inline="always")
def read_report(report):
    return report[_FOUND], report[_EDGES], report[_DEFERRED], report[_LATE], report[_LATE_EDGES]


@kernel(counted=False)
def set_one_segment(segments, vertices):
    segments[SEGMENT_COUNT, 0] = 1
    segments[SEGMENT_START, 0] = 0
    segments[SEGMENT_VERTICES, 0] = 0
    segments[SEGMENT_VERTICES, 1] = vertices


@kernel(counted=False, inner=True)
def add_owners_segment(owner, report, owned_ranges, segments):
    """Add an owner's part as the frontier's next segment. Call it for the owners in their order."""
    before = segments[SEGMENT_VERTICES, owner] if owner else 0
    segments[SEGMENT_START, owner] = owned_ranges[owner]
    segments[SEGMENT_VERTICES, owner] = before
    segments[SEGMENT_VERTICES, owner + 1] = before + report[_FOUND]
    segments[SEGMENT_COUNT, 0] = owner + 1


@kernel(counted=False, inner=True)
def copy_segments(segments, queue, target):
    """Copy the vertices of all segments of a queue to `target`, without gaps.

    `target` may be the queue itself: no vertex moves to a higher index.
    """
    for s in range(segments[SEGMENT_COUNT, 0]):
        source, place = segments[SEGMENT_START, s], segments[SEGMENT_VERTICES, s]
        for i in range(segments[SEGMENT_VERTICES, s + 1] - place):
            target[place + i] = queue[source + i]


@kernel(counted=False, inner=True)
def join_segments(arrays, which):
    """Join the segments of a queue and fill its offsets, as other strategies need it."""
    segments, queue = arrays.segments[which], arrays.queue[which]
    count = segments[SEGMENT_COUNT, 0]
    if count > 1:
        copy_segments(segments, queue, queue)
        finish_queue(arrays, which, segments[SEGMENT_VERTICES, count])
