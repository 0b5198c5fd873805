"""Order vertices by locality, so that neighbours, and a search's frontier, share pages and caches.

The first order is breadth first from the far end of each component: Cuthill and McKee's (1969)
without sorting by degree. In this order the vertices of a frontier are on different pages. So the
vertices of a large component are placed in a plane. One coordinate is the distance from the far
end, the other the distance from a second landmark at one side. Then vertices are numbered along
Morton's curve (1966) through the plane. A few thousand consecutive vertices are a partition with
few edges to the outside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hetero_bfs.graph.kernels.sorting import SLOTS, radix_sort
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import parallel_kernel, part_of

_UNSEEN = np.uint32(0xFFFFFFFF)
_SEEN = np.uint32(0xFFFFFFFE)
_SMALL_COMPONENT = 1 << 11  # vertices that fit in the caches in any order
_THIN = 16  # vertices of a mean level; such levels share cache lines, and a walk's order is local
_ONE = np.uint64(1)


class _Marks(NamedTuple):
    """How a walk marks vertices.

    position : uint32 (vertices,); the walk visits vertices whose entry is `wanted`, and changes it
    final : whether the new entry is the vertex's position in the order, else it is _SEEN
    """

    position: Any
    wanted: Any
    final: Any


@kernel(inner=True)
def _walk(indptr, indices, start, first, marks, order, distance):
    """Append `start` and the wanted vertices that it reaches to `order`, at positions from `first`.

    Fills their `distance` from the start. Returns the end position and the number of levels.
    """
    position, wanted, final = marks
    order[first] = start
    position[start] = first if final else _SEEN
    distance[start] = 0
    i, end = np.uint64(first), np.uint64(first + 1)  # unsigned: indices are not tested
    while i < end:
        u = np.uint64(order[i])
        further = distance[u] + np.uint32(1)
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + _ONE])):
            v = indices[k]
            if position[v] == wanted:
                position[v] = np.uint32(end) if final else _SEEN
                distance[v] = further
                order[end] = v
                end += _ONE
        i += _ONE
    return np.int64(end), np.int64(distance[order[end - _ONE]]) + 1


@kernel
def order_by_locality(indptr, indices, directed, order, position, distance):
    """Fill `order` (uint32: old id at each position) and `position`, its inverse: breadth first.

    `distance`, uint32, gets each vertex's distance from the start of its walk. Returns the largest
    number of levels. In a directed graph walks do not look for a far end to start from.
    """
    position[:] = _UNSEEN
    filled, most = 0, 0
    for start in range(order.size):
        if position[start] != _UNSEEN:
            continue
        wanted, begin = _UNSEEN, start
        if not directed:
            seen = _Marks(position, _UNSEEN, False)
            end, _ = _walk(indptr, indices, start, filled, seen, order, distance)
            wanted, begin = _SEEN, np.int64(order[end - 1])
        placed = _Marks(position, wanted, True)
        filled, levels = _walk(indptr, indices, begin, filled, placed, order, distance)
        most = max(most, levels)
    return most


@kernel
def order_by_partitions(indptr, indices, order, position, distance):
    """Reorder each large component of an undirected graph by partitions, unless it is thin.

    `order`, `position` and `distance` are from `order_by_locality`.
    """
    n = order.size
    aside, place = np.empty(n, np.uint32), np.full(n, _UNSEEN)
    keys, walked = np.empty((2, n), np.uint64), np.empty(n, np.uint32)
    slot = np.empty(SLOTS, np.int64)
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and distance[order[end]]:
            end += 1
        levels = np.int64(distance[order[end - 1]]) + 1
        if end - begin > _SMALL_COMPONENT and end - begin > _THIN * levels:
            _measure_aside(indptr, indices, order[begin:end], distance, aside, place, walked)
            size = end - begin
            for i in range(size):
                v = order[begin + i]
                keys[0, i] = (_spread(distance[v]) << np.uint64(1)) | _spread(aside[v])
            others = keys[1, :size], walked[:size]
            _, sorted_ids = radix_sort(keys[0, :size], order[begin:end], *others, slot)
            for i in range(size):
                order[begin + i] = sorted_ids[i]
                position[order[begin + i]] = begin + i
        begin = end


@kernel(inner=True)
def _measure_aside(indptr, indices, component, distance, aside, place, walked):
    """Fill `aside` with distances from a second landmark, for a component in its order.

    The second landmark is as far from the first landmark as the middle vertex of the order. Among
    these vertices it is the farthest from the middle vertex. `place` (all unseen before) and
    `walked` are scratch.
    """
    middle = component[component.size // 2]
    _walk(indptr, indices, middle, 0, _Marks(place, _UNSEEN, False), walked, aside)
    last = component.size - 1
    while distance[walked[last]] != distance[middle]:
        last -= 1
    _walk(indptr, indices, walked[last], 0, _Marks(place, _SEEN, True), walked, aside)


@njit(inline="always")
def _spread(number):
    """Move bit i of a 32-bit number to bit 2 i."""
    bits = np.uint64(number)
    bits = (bits | (bits << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    bits = (bits | (bits << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    bits = (bits | (bits << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    bits = (bits | (bits << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (bits | (bits << np.uint64(1))) & np.uint64(0x5555555555555555)


@parallel_kernel(
    "indptr indices weights order position new_indptr new_indices new_weights", counted=False
)
def permute_lists(given, part, parts):
    """Renumber neighbour lists: vertex order[v] becomes v; `position` inverts `order`.

    The new indptr is given, the new indices and weights are filled; lists are not sorted again. The
    arrays of weights may be empty. Vertices beyond `indptr` have no edges.
    """
    indptr, indices, order, position = given.indptr, given.indices, given.order, given.position
    new_indptr, new_indices = given.new_indptr, given.new_indices
    weights, new_weights = given.weights, given.new_weights
    begin, end = part_of(order.size, part, parts)
    for v in range(begin, end):
        old = np.int64(order[v])
        if old >= indptr.size - 1:
            continue
        shift = new_indptr[v] - indptr[old]
        for k in range(indptr[old], indptr[old + 1]):
            new_indices[k + shift] = position[indices[k]]
            if weights.size:
                new_weights[k + shift] = weights[k]


@kernel
def order_by_level(indptr, indices, root, order, distance):
    """Fill the beginning of `order` with the vertices that the root reaches, by level.

    Fills their `distance`, too; both are uint32 (n,). Returns the number of these vertices. Those
    beyond `indptr` have no edges.
    """
    if root >= indptr.size - 1:
        order[0], distance[root] = root, 0
        return 1
    marks = _Marks(np.full(order.size, _UNSEEN), _UNSEEN, False)
    return _walk(indptr, indices, root, 0, marks, order, distance)[0]
