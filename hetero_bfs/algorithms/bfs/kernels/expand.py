"""Top-down levels without atomics: by one thread, or by owners of partitions (see level.py for
state).

Where vertices are numbered by partitions (locality.py), each partition has an owner: a share of the
work that is the same in every level, and one thread's unless that is late. Owners expand their own
part of the frontier and claim their own vertices; of the others', which are few, they post the
edges. Each collects what was deferred to it when the next level begins, or, if the owners do not
run that, in a phase of its own: so the owners meet once a level. Hardly a line of the graph, of the
bitmap, the parents or the queue crosses from core to core.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels.follow import claim
from hetero_bfs.algorithms.bfs.kernels.partitions import owner_of, partition_bits
from hetero_bfs.support.compiling import kernel

SEGMENT_START, SEGMENT_VERTICES, SEGMENT_COUNT = range(3)
"""Rows of `segments`: where each segment begins in the queue; vertices of the frontier before it,
and one entry more with the total; the number of segments as first entry."""

_FOUND, _EDGES, _DEFERRED, _LATE, _LATE_EDGES = range(5)  # of an owner's report
_ONE = np.uint32(1)


@njit(inline="always")
def expand_by_master(
    follow,
    queue,
    segments,
    indptr,
    indices,
    is_local,
    visited,
    parent,
    next_queue,
    next_offsets,
    next_segments,
    box,
    is_whole,
    ends,
    sources,
):
    """Expand a small frontier by one thread, by a function of follow.py.

    Returns vertices and edges found.
    """
    found = 0
    for s in range(segments[SEGMENT_COUNT, 0]):
        begin = segments[SEGMENT_START, s]
        end = begin + segments[SEGMENT_VERTICES, s + 1] - segments[SEGMENT_VERTICES, s]
        found, _, _ = follow(
            begin,
            end,
            queue,
            indptr,
            indices,
            is_local,
            visited,
            parent,
            next_queue,
            found,
            0,
            1,
            np.uint32(0),
            box,
            is_whole,
            ends,
            sources,
        )
    return finish_queue(found, indptr, next_queue, next_offsets, next_segments)


@kernel(counted=False, inner=True)
def finish_queue(found, indptr, queue, offsets, segments):
    """Make the first `found` vertices of a queue a frontier in one piece, but for those without
    edges; return the number of its vertices and edges.
    """
    vertices, edges = _add_offsets(0, found, indptr, queue, offsets)
    set_one_segment(segments, vertices)
    return vertices, edges


@njit(inline="always")
def expand_owned(
    follow,
    owner,
    owners,
    report,
    is_owned,
    is_whole,
    queue,
    segments,
    indptr,
    indices,
    visited,
    parent,
    next_queue,
    owned_ranges,
    outbox,
    last_outbox,
    ends,
    sources,
):
    """Expand an owner's part of the frontier.

    Parameters
    ----------
    follow : function
        Of follow.py.
    report : int64 (6,)
        What the owner found, `_FOUND` vertices and `_EDGES` edges of them, queued from
        owned_ranges[owner] on (`split_among_owners`); edges `_DEFERRED`; and `_LATE` vertices of
        the frontier with `_LATE_EDGES` edges, which were not counted before as they had to be
        collected.
    is_owned : int
        Whether the frontier is as the owners left it, with edges deferred in `last_outbox`. Else it
        lies in `segments`: the owners', or one piece, of which each takes a share.
    is_whole : int
        Whether this host has found all that is visited, so that the parents are here.
    outbox, last_outbox : uint32 (owners, edges + 1, 2)
        What each owner posts: ends and parents, behind their number; in this level and the last.
    ends, sources : uint32 (CHUNK_EDGES + 64,)
        The owner's scratch.
    """
    late, late_edges, mixed = 0, np.int64(0), np.uint32(0)
    if is_owned:
        begin = owned_ranges[owner]
        end = begin + report[_FOUND]
        late, late_edges = _collect(
            owner, owners, end, indptr, indices, visited, parent, queue, last_outbox
        )
        end += late
    elif segments[SEGMENT_COUNT, 0] == owners:
        begin, end = segments[SEGMENT_START, owner], segments[SEGMENT_VERTICES, owner + 1]
        end += begin - segments[SEGMENT_VERTICES, owner]
    else:
        vertices = segments[SEGMENT_VERTICES, 1]
        begin, end = vertices * owner // owners, vertices * (owner + 1) // owners
        mixed = _ONE
    first, box = owned_ranges[owner], outbox[owner, 1:]
    end_found, deferred, edges = follow(
        begin,
        end,
        queue,
        indptr,
        indices,
        True,
        visited,
        parent,
        next_queue,
        first,
        owner,
        owners,
        mixed,
        box,
        is_whole,
        ends,
        sources,
    )
    outbox[owner, 0, 0] = deferred
    report[_FOUND] = end_found - first
    report[_EDGES] = edges
    report[_DEFERRED] = deferred
    report[_LATE], report[_LATE_EDGES] = late, late_edges


@njit(inline="always")
def collect_owned(
    owner, owners, report, indptr, indices, visited, parent, queue, owned_ranges, last_outbox
):
    """Add to an owner's part of the frontier what was deferred to it; see `expand_owned`."""
    end = owned_ranges[owner] + report[_FOUND]
    late, late_edges = _collect(
        owner, owners, end, indptr, indices, visited, parent, queue, last_outbox
    )
    report[_LATE], report[_LATE_EDGES] = late, late_edges
    report[_FOUND] += late


@kernel(counted=False, inner=True)
def _collect(owner, owners, end, indptr, indices, visited, parent, queue, outbox):
    """Claim what others deferred to an owner, queued from `end` on; return vertices and edges."""
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
    """Return vertices and edges found, edges deferred, and vertices and edges that came late."""
    return report[_FOUND], report[_EDGES], report[_DEFERRED], report[_LATE], report[_LATE_EDGES]


@kernel(counted=False, inner=True)
def _add_offsets(begin, found, indptr, queue, offsets):
    """Fill the offsets of `found` queue entries from `begin` on; drop those without edges."""
    kept, edges = begin, np.int64(0)
    for i in range(begin, begin + found):
        v = queue[i]
        degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
        queue[kept] = v
        offsets[kept] = edges
        kept += np.int64(degree > 0)
        edges += degree
    return kept - begin, edges


@kernel(counted=False)
def set_one_segment(segments, vertices):
    """Note that a queue lies in one piece, from its start on."""
    segments[SEGMENT_COUNT, 0] = 1
    segments[SEGMENT_START, 0] = 0
    segments[SEGMENT_VERTICES, 0] = 0
    segments[SEGMENT_VERTICES, 1] = vertices


@kernel(counted=False, inner=True)
def add_owners_segment(owner, report, owned_ranges, segments):
    """Note that an owner's part is the frontier's next segment; owners come in their order."""
    before = segments[SEGMENT_VERTICES, owner] if owner else 0
    segments[SEGMENT_START, owner] = owned_ranges[owner]
    segments[SEGMENT_VERTICES, owner] = before
    segments[SEGMENT_VERTICES, owner + 1] = before + report[_FOUND]
    segments[SEGMENT_COUNT, 0] = owner + 1


@kernel(counted=False, inner=True)
def copy_segments(segments, queue, target):
    """Copy the vertices of all segments of a queue, one behind the other."""
    for s in range(segments[SEGMENT_COUNT, 0]):
        source, place = segments[SEGMENT_START, s], segments[SEGMENT_VERTICES, s]
        for i in range(segments[SEGMENT_VERTICES, s + 1] - place):
            target[place + i] = queue[source + i]


@kernel(counted=False, inner=True)
def join_segments(segments, queue, indptr, offsets):
    """Move the segments of a queue together and fill its offsets, as others want it."""
    count = segments[SEGMENT_COUNT, 0]
    if count == 1:
        return
    for s in range(count):
        source, place = segments[SEGMENT_START, s], segments[SEGMENT_VERTICES, s]
        for i in range(segments[SEGMENT_VERTICES, s + 1] - place):
            queue[place + i] = queue[source + i]
    finish_queue(segments[SEGMENT_VERTICES, count], indptr, queue, offsets, segments)
