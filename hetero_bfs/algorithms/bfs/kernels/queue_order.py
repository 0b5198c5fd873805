"""Single-threaded searches in queue order, whose results are unique.

A vertex is found from the first vertex of the queue that has it as a neighbour. Neighbours are
found in the order of the list, which need not be sorted. NetworkX and SciPy search in this order.
Parallel searches find the same levels, but other parents.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import prefetch

_AHEAD = 2  # vertices of the queue between a list's prefetch and its use
_LINE = 16  # ids in a cache line


@kernel
def search_in_queue_order(
    indptr, indices, num_sources, most_levels, target, seen, queue, parent, ends
):
    """Fill `queue` and `parent`; return the number of levels.

    `queue`, uint32 (n,), begins with the sources. `parent`, uint32 (n,), keeps its entries of
    sources and of vertices that are not reached. Level i is queue[ends[i] : ends[i + 1]]; `ends`,
    int64, has room for n + 2 entries. No level above `most_levels` is searched, and none after the
    level that finds `target` (-1 for none). `seen`, uint8 (n,), is 1 at vertices to ignore and 0
    elsewhere; the search changes it. Offsets and ids must be valid; a pass before the search checks
    ids faster than this loop could.
    """
    for i in range(num_sources):
        seen[queue[i]] = 1
    begin, end, levels = 0, num_sources, 1
    ends[0] = 0
    ends[1] = end
    while levels <= most_levels and begin < end < parent.size:
        stop = end
        for i in range(begin, stop):
            u = queue[i]
            if i + _AHEAD < stop:
                ahead = np.int64(indptr[queue[i + _AHEAD]])
                prefetch(indices, ahead)
                prefetch(indices, ahead + _LINE)
            end = _append_unseen(indices, indptr[u], indptr[u + 1], u, seen, queue, end, parent)
            if end == parent.size:
                break
        if end == stop:
            break
        begin = stop
        levels += 1
        ends[levels] = end
        if target >= 0 and seen[target] == 1:
            break
    return levels


@kernel(inner=True)
def _append_unseen(indices, first, last, u, seen, queue, end, parent):
    end = np.uint64(end)
    for k in range(np.uint64(first), np.uint64(last)):  # signed indices would cost a test for < 0
        v = indices[k]
        if seen[v] == 0:
            seen[v] = 1
            parent[v] = u
            queue[end] = v
            end += np.uint64(1)
    return np.int64(end)


@kernel
def search_from_both_ends(forward_lists, backward_lists, source, target, before, after):
    """Search from source and target until they meet; return the vertex where, or NO_VERTEX.

    The side with the smaller frontier continues, the source's if they are equal. The path leads
    along before[v] back to the source and along after[v] to the target. Both, uint32 (n,), must be
    NO_VERTEX at first. The source and the target are their own entries.
    """
    before[source] = source
    after[target] = target
    if source == target:
        return np.uint32(source)
    ahead, behind = np.empty(before.size, np.uint32), np.empty(before.size, np.uint32)
    ahead[0], behind[0] = source, target
    first, last, first_behind, last_behind = 0, 1, 0, 1
    while first < last and first_behind < last_behind:
        if last - first <= last_behind - first_behind:
            end, met = _next_level(forward_lists, ahead, first, last, before, after)
            first, last = last, end
        else:
            end, met = _next_level(backward_lists, behind, first_behind, last_behind, after, before)
            first_behind, last_behind = last_behind, end
        if met != NO_ID:
            return met
    return NO_ID


@kernel(inner=True)
def _next_level(lists, queue, first, last, own, other):
    """Append the next level to a side's queue; return its end, and a vertex of the other side."""
    indptr, indices = lists
    end = last
    for i in range(first, last):
        u = queue[i]
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            if own[v] == NO_ID:
                own[v] = u
                queue[end] = v
                end += 1
            if other[v] != NO_ID:
                return end, v
    return end, NO_ID
