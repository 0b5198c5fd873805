"""Top-down levels without atomics: by one thread, or by owners of patches (see bfs.py for state).

Where vertices are numbered by patches (locality.py), each patch has an owner: a share of the work
that is the same in every level, and one thread's unless that is late. Owners expand their own part
of the frontier and claim their own vertices; of the others', which are few, they post the edges.
When all have expanded, each collects what was posted to it. So hardly a line of the graph, of the
bitmap, the parents or the queue crosses from core to core.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.kernels.compile import kernel
from hetero_bfs.kernels.intrinsics import prefetch
from hetero_bfs.kernels.locality import PATCH_VERTICES

SEGMENT_START, SEGMENT_VERTICES, SEGMENT_EDGES, SEGMENT_COUNT = range(4)
"""Rows of `segments`: where each segment begins in the queue; vertices and edges of the frontier
before it, and one entry more with the totals; the number of segments as first entry."""

AHEAD = 8
"""Queue entries between prefetching a list and reading it."""

_FOUND, _EDGES, _POSTED = range(3)  # of a row of `sizes`
_PATCH_SHIFT = np.uint32(PATCH_VERTICES.bit_length() - 1)
_ONE = np.uint32(1)
_WORD_MASK = np.uint32(31)
_WORD_SHIFT = np.uint32(5)


@njit(inline="always")
def _owner_of(vertex, owners):
    """Return the owner of a vertex, of a power of two of owners."""
    return (vertex >> _PATCH_SHIFT) & np.uint32(owners - 1)


def territories(num_vertices: int, owners: int) -> npt.NDArray[np.int64]:
    """Return where in a queue each owner's part begins, with room for all its vertices; int64."""
    owner = np.arange(num_vertices, dtype=np.uint32) >> _PATCH_SHIFT & np.uint32(owners - 1)
    starts = np.zeros(owners + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=owners), out=starts[1:])
    return starts


@njit(inline="always")
def _expand(
    begin, end, queue, indptr, indices, visited, parent, next_queue, found, owner, owners, box
):
    """Expand the queue's entries [begin, end), for one of the owners.

    What it finds goes to `next_queue` from `found` on, edges to others' vertices to `box`, uint32
    (edges, 2). Returns the end of both, and the edges that leave what was found.
    """
    posted, edges = 0, np.int64(0)
    for i in range(begin, end):
        if i + AHEAD < end:
            prefetch(indices, np.uint64(indptr[queue[i + AHEAD]]))
        u = queue[i]
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            if _owner_of(v, owners) != owner:
                box[posted, 0] = v
                box[posted, 1] = u
                posted += 1
                continue
            word = v >> _WORD_SHIFT
            bit = _ONE << (v & _WORD_MASK)
            seen = visited[word]
            if not seen & bit:
                visited[word] = seen | bit
                parent[v] = u
                next_queue[found] = v
                found += 1
                edges += np.int64(indptr[v + _ONE]) - np.int64(indptr[v])
    return found, posted, edges


@kernel(counted=False)
def top_down_alone(
    queue, segments, indptr, indices, visited, parent, next_queue, next_offsets, next_segments, box
):
    """Expand a small frontier by one thread; return vertices and edges found."""
    found = 0
    for s in range(segments[SEGMENT_COUNT, 0]):
        begin = segments[SEGMENT_START, s]
        end = begin + segments[SEGMENT_VERTICES, s + 1] - segments[SEGMENT_VERTICES, s]
        found, _, _ = _expand(
            begin, end, queue, indptr, indices, visited, parent, next_queue, found, 0, 1, box
        )
    kept, edges = _add_offsets(0, found, indptr, next_queue, next_offsets)
    set_one_segment(next_segments, kept, edges)
    return kept, edges


@kernel(counted=False)
def expand_owned(
    owner,
    owners,
    queue,
    segments,
    indptr,
    indices,
    visited,
    parent,
    next_queue,
    territory,
    box,
    sizes,
):
    """Expand an owner's segment of the frontier, or its share of a frontier in one piece.

    What it finds is queued from territory[owner] on (`territories`); the number of it, of its edges
    and of the edges posted in `box` go to sizes[owner], int64 (owners, 8).
    """
    begin, end = segments[SEGMENT_START, owner], segments[SEGMENT_VERTICES, owner + 1]
    end += begin - segments[SEGMENT_VERTICES, owner]
    if segments[SEGMENT_COUNT, 0] != owners:
        vertices = segments[SEGMENT_VERTICES, 1]
        begin, end = vertices * owner // owners, vertices * (owner + 1) // owners
    first = territory[owner]
    end_found, posted, edges = _expand(
        begin, end, queue, indptr, indices, visited, parent, next_queue, first, owner, owners, box
    )
    sizes[owner, _FOUND] = end_found - first
    sizes[owner, _EDGES] = edges
    sizes[owner, _POSTED] = posted


@kernel(counted=False)
def collect_owned(owner, owners, indptr, visited, parent, next_queue, territory, boxes, sizes):
    """Claim what others posted to an owner.

    `boxes` are all owners' boxes; vertices and edges found are added to sizes[owner].
    """
    first = territory[owner]
    end, edges = first + sizes[owner, _FOUND], sizes[owner, _EDGES]
    for other in range(owners):
        if other == owner:
            continue
        for i in range(sizes[other, _POSTED]):
            v = boxes[other, i, 0]
            word = v >> _WORD_SHIFT
            bit = _ONE << (v & _WORD_MASK)
            if _owner_of(v, owners) == owner and not visited[word] & bit:
                visited[word] |= bit
                parent[v] = boxes[other, i, 1]
                next_queue[end] = v
                end += 1
                edges += np.int64(indptr[v + _ONE]) - np.int64(indptr[v])
    sizes[owner, _FOUND], sizes[owner, _EDGES] = end - first, edges


@kernel(counted=False)
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
def set_one_segment(segments, vertices, edges):
    """Note that a queue lies in one piece, from its start on."""
    segments[SEGMENT_COUNT, 0] = 1
    segments[SEGMENT_START, 0] = 0
    segments[SEGMENT_VERTICES, 0] = segments[SEGMENT_EDGES, 0] = 0
    segments[SEGMENT_VERTICES, 1] = vertices
    segments[SEGMENT_EDGES, 1] = edges


@kernel(counted=False)
def set_owners_segments(owners, territory, sizes, segments):
    """Make segments of what the owners found; return vertices and edges."""
    vertices, edges = np.int64(0), np.int64(0)
    segments[SEGMENT_COUNT, 0] = owners
    for s in range(owners):
        segments[SEGMENT_START, s] = territory[s]
        segments[SEGMENT_VERTICES, s], segments[SEGMENT_EDGES, s] = vertices, edges
        vertices += sizes[s, _FOUND]
        edges += sizes[s, _EDGES]
    segments[SEGMENT_VERTICES, owners], segments[SEGMENT_EDGES, owners] = vertices, edges
    return vertices, edges


@kernel(counted=False)
def copy_segments(segments, queue, target):
    """Copy the vertices of all segments of a queue, one behind the other."""
    for s in range(segments[SEGMENT_COUNT, 0]):
        source, place = segments[SEGMENT_START, s], segments[SEGMENT_VERTICES, s]
        for i in range(segments[SEGMENT_VERTICES, s + 1] - place):
            target[place + i] = queue[source + i]


@kernel(counted=False)
def join_segments(segments, queue, indptr, offsets):
    """Move the segments of a queue together and fill its offsets, as others want it."""
    count = segments[SEGMENT_COUNT, 0]
    if count == 1:
        return
    for s in range(count):
        source, place = segments[SEGMENT_START, s], segments[SEGMENT_VERTICES, s]
        for i in range(segments[SEGMENT_VERTICES, s + 1] - place):
            queue[place + i] = queue[source + i]
    vertices, edges = _add_offsets(0, segments[SEGMENT_VERTICES, count], indptr, queue, offsets)
    set_one_segment(segments, vertices, edges)
