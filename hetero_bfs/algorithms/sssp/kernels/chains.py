"""Contracts chains of vertices with two edges to single edges, and fills in their distances.

A *core* vertex has at least three edges, or none. A *chain* leads from a core vertex over vertices
with two edges. It ends at a core vertex, or at a vertex with one edge. In a component without core
vertices, one vertex becomes a core vertex. The weight of a chain is the sum of its edges' weights.

Arrays (n vertices):

    core        uint32 (n,)     number among the core vertices; NO_VERTEX for other vertices
    ends        uint32 (n, 2)   core vertices at the ends of the vertex's chain; the same one twice
                                if there is only one, and for a core vertex itself
    along       int32 (n, 2)    distances to these along the chain
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import parallel_kernel, part_of


@njit(inline="always")
def _next_entry(indptr, neighbours, v, before):
    """Return the entry of `v` that does not lead back; -1 at the end of a chain."""
    first, last = np.int64(indptr[v]), np.int64(indptr[v + np.uint32(1)])
    if last - first < 2:
        return np.int64(-1)
    return first + 1 if neighbours[first] == before else first


@njit(inline="always")
def _follow(lists, core, ends, along, start, k):
    """Walk a chain from entry `k` of a core vertex; note its ends and distances.

    Returns the vertex where the chain ends, and the chain's weight.
    """
    indptr, neighbours, weights = lists
    before, v, far = start, neighbours[k], np.int64(weights[k])
    while core[v] == NO_ID:
        if ends[v, 0] == NO_ID:
            ends[v, 0], along[v, 0] = core[start], far
        ends[v, 1], along[v, 1] = core[start], far
        k = _next_entry(indptr, neighbours, v, before)
        if k < 0:
            break
        before, v, far = v, neighbours[k], far + np.int64(weights[k])
    return v, far


@njit(inline="always")
def _contract_list(lists, core, ends, along, core_lists, v, filled):
    """Append the chains from a core vertex to other core vertices.

    Returns the new number of entries of the core, and the weight of the heaviest chain.
    """
    core_indptr, core_neighbours, core_weights = core_lists
    ends[v, 0], ends[v, 1], along[v, 0], along[v, 1] = core[v], core[v], 0, 0
    heaviest, indptr = np.int64(0), lists[0]
    for k in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
        end, far = _follow(lists, core, ends, along, np.uint32(v), k)
        heaviest = max(heaviest, far)
        if core[end] != NO_ID and core[end] != core[v]:
            core_neighbours[filled], core_weights[filled] = core[end], far
            filled += 1
    core_indptr[np.int64(core[v]) + 1] = filled
    return filled, heaviest


@kernel(counted=False)
def contract(lists, core, ends, along, core_lists):
    """Fill core, ends, along and the adjacency of the core; core and ends are NO_VERTEX at first.

    `lists` and `core_lists` are tuples (indptr, neighbours, weights).

    Returns the core's numbers of vertices and entries, and the weight of the heaviest chain. If
    that weight exceeds int32, the arrays hold wrong values.
    """
    indptr = lists[0]
    count, filled, heaviest = 0, 0, np.int64(0)
    for v in range(core.size):
        if not 1 <= indptr[v + 1] - indptr[v] <= 2:
            core[v] = count
            count += 1
    for v in range(core.size):
        if core[v] != NO_ID:
            filled, far = _contract_list(lists, core, ends, along, core_lists, v, filled)
            heaviest = max(heaviest, far)
    for v in range(core.size):
        if ends[v, 0] == NO_ID:
            core[v] = count
            count += 1
            filled, far = _contract_list(lists, core, ends, along, core_lists, v, filled)
            heaviest = max(heaviest, far)
    return count, filled, heaviest


@kernel(counted=False)
def walk_from(lists, core, source, distance, starts):
    """Walk from a vertex to both ends of its chain, and lower the distances on the way.

    `starts`, int64 (2, 2), gets the core vertex at each end and its distance. Both rows are equal
    for a core vertex, and for a chain with a single core vertex.
    """
    indptr, neighbours, weights = lists
    distance[source] = 0
    if core[source] != NO_ID:
        starts[0, 0], starts[0, 1] = core[source], 0
        starts[1, 0], starts[1, 1] = core[source], 0
        return
    found = 0
    for first in range(np.int64(indptr[source]), np.int64(indptr[source + 1])):
        before, v, far = np.uint32(source), neighbours[first], np.int64(weights[first])
        while core[v] == NO_ID:
            distance[v] = min(np.int64(distance[v]), far)
            k = _next_entry(indptr, neighbours, v, before)
            if k < 0:
                break
            before, v, far = v, neighbours[k], far + np.int64(weights[k])
        if core[v] != NO_ID:
            if found == 0:
                starts[0, 0], starts[0, 1] = core[v], far
            starts[1, 0], starts[1, 1] = core[v], far
            found += 1


@parallel_kernel("ends along found infinity distance too_far", counted=False)
def fill_in(given, part, parts):
    """Set the distances of a part of all vertices from the core's.

    `too_far[part]` becomes 1 if a distance exceeds the type.
    """
    ends, along, found, distance = given.ends, given.along, given.found, given.distance
    infinity = given.infinity[0]
    begin, end = part_of(distance.size, part, parts)
    too_far = 0
    for v in range(np.uint64(begin), np.uint64(end)):
        first, second = np.int64(found[ends[v, 0]]), np.int64(found[ends[v, 1]])
        if first >= infinity and second >= infinity:
            distance[v] = infinity
            continue
        if first < infinity:
            first += np.int64(along[v, 0])
        if second < infinity:
            second += np.int64(along[v, 1])
        least = min(first, second)
        too_far |= least >= infinity
        distance[v] = min(least, infinity)
    given.too_far[part] = too_far
