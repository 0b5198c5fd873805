"""Top-down levels without atomics: by one thread, or by owners of partitions.

level.py describes the arrays, job.py the parameters.

If vertices are numbered by partitions (locality.py), each partition has an owner. An owner is a
share of the work that is the same in every level. Always the same thread does it, unless that
thread is late. Owners expand their own part of the frontier and claim their own vertices. Few edges
lead to other owners' vertices; an owner defers them in its outbox. When the next level starts, each
owner collects the edges that were deferred to it. If the owners do not run the next level, they
collect in a separate phase. So the owners synchronise once per level, and few cache lines of the
graph, the bitmap, the parents or the queue move from core to core.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.follow import Part, claim, follow_by_branches, follow_packed
from hetero_bfs.algorithms.bfs.kernels.job import owner_of, partition_bits
from hetero_bfs.devices.cpu.thread_pool import CHUNKS, report_of
from hetero_bfs.scheduling.schema import FRONTIER_VERTICES, QUEUE_INDEX
from hetero_bfs.support.compiling import kernel

SEGMENT_START, SEGMENT_VERTICES, SEGMENT_COUNT = range(3)
"""Rows of `segments`: the start of each segment in the queue; the number of frontier vertices
before each segment, and then their total; the number of segments, in the first item."""

_FOUND, _EDGES, _DEFERRED, _LATE, _LATE_EDGES = range(5)  # words of an owner's report
_FIRST, _ONLY = np.int64(0), np.int64(1)
_OWN, _MIXED = np.uint32(0), np.uint32(1)


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
    """Make the frontier's queue one segment with offsets."""
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
    """Return vertices and edges found, edges deferred, and late vertices with their edges."""
    return report[_FOUND], report[_EDGES], report[_DEFERRED], report[_LATE], report[_LATE_EDGES]


@kernel(counted=False)
def set_one_segment(segments, vertices):
    """Mark a queue as a single segment that starts at 0."""
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
def list_segments(segments, queue, parent, pairs):
    """Fill `pairs` with the vertices of all segments of a queue and their parents."""
    for s in range(segments[SEGMENT_COUNT, 0]):
        source, place = segments[SEGMENT_START, s], segments[SEGMENT_VERTICES, s]
        for i in range(segments[SEGMENT_VERTICES, s + 1] - place):
            v = queue[source + i]
            pairs[place + i, 0], pairs[place + i, 1] = v, parent[v]


@kernel(counted=False, inner=True)
def join_segments(arrays, which):
    """Join the segments of a queue and fill its offsets, as other strategies need it."""
    segments, queue = arrays.segments[which], arrays.queue[which]
    count = segments[SEGMENT_COUNT, 0]
    if count > 1:
        copy_segments(segments, queue, queue)
        finish_queue(arrays, which, segments[SEGMENT_VERTICES, count])
