"""Compiled loops that move weights along with their edges, and sort lists by weight."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import bits_of
from hetero_bfs.support.parallel import in_parallel, part_of

Array = npt.NDArray[Any]

_MIN, _MAX, _SUM = range(3)  # as in `weights.DUPLICATES`
_LOST, _OVERFLOW = 1, 2
_INT32_LIMIT = 2**31
_RANGE_ENTRIES = 1 << 16  # a range's lists and weights fit in a core's own cache
_MOST_RANGES = 1 << 12  # a thread writes to all of them alternately


class WeightPlaces:
    """Combines the weights of edges with the weights at their positions in sorted neighbour lists.

    Finding each edge of a large graph misses the caches several times. So the edges of a chunk are
    first sorted into ranges of consecutive vertices, whose neighbour lists fit in a cache. Then
    each range is handled by one thread, which takes its edges in order. So no atomics are needed,
    and sums are the same in each run.

    lists : indptr and indices, in new ids
    new_of_old : uint32, shape (num_vertices,)
    both_ends : whether a weight belongs into the lists of both ends of its edge
    rule : for duplicates, an index into `weights.DUPLICATES`
    placed : the weights so far, shape (indptr[-1],)
    """

    def __init__(
        self,
        lists: tuple[Array, Array],
        new_of_old: Array,
        both_ends: bool,
        rule: int,
        placed: Array,
    ) -> None:
        indptr, indices = lists
        n = indptr.size - 1
        ranges = int(np.clip(indptr[-1] // _RANGE_ENTRIES, 1, _MOST_RANGES))
        starts = np.searchsorted(indptr, np.linspace(0, indptr[-1], ranges + 1)[1:-1])
        range_of = np.zeros(n, np.uint16)
        np.add.at(range_of, starts[starts < n], 1)
        self._ranges, self._both_ends = ranges, both_ends
        self._given = {
            "new_of_old": new_of_old,
            "both_ends": int(both_ends),
            "rule": rule,
            "indptr": indptr,
            "indices": indices,
            "placed": placed,
            "is_int32": int(placed.dtype == np.int32),
            "range_of": np.cumsum(range_of, dtype=np.uint16),
        }

    def combine(self, src: Array, dst: Array, weights: Array) -> str | None:
        """Combine the weights of a chunk of edges with the weights so far.

        Returns "lost" if an edge is not in the lists, "overflow" if a sum is beyond int32, else
        None.
        """
        parts = numba.get_num_threads()
        most = src.size * (1 + self._both_ends)
        ends = np.empty((2, src.size), np.uint32)
        counts = np.zeros((parts, self._ranges), np.int64)
        trouble = np.zeros(parts, np.int64)
        chunk = {"src": src, "dst": dst, "ends": ends, "counts": counts, "trouble": trouble}
        in_parallel(_count, parts, **chunk, **self._given)
        stops = np.cumsum(counts.T).reshape(self._ranges, parts)
        bounds = np.concatenate(([0], stops[:, -1]))
        cursor = np.ascontiguousarray(stops.T) - counts
        items = np.empty((2, most), np.uint32), np.empty(most, weights.dtype)
        moved = {"weights": weights, "ends": ends, "cursor": cursor}
        found = {"bounds": bounds, "trouble": trouble, "moved_ends": items[0], "moved": items[1]}
        in_parallel(_move, parts, **moved, **found, **self._given)
        in_parallel(_combine, parts, **found, **self._given)
        return (None, "lost", "overflow")[int(trouble.max())]


@kernel(counted=False, inner=True)
def _count(given, part, parts):
    """Renumber the ends of edges, and count the edges in the ranges of their vertices.

    Both ends of a loop, or of an edge with an end that is not a vertex, become NO_VERTEX.
    """
    src, dst, new_of_old, ends = given.src, given.dst, given.new_of_old, given.ends
    range_of, counts, both_ends = given.range_of, given.counts[part], given.both_ends != 0
    begin, end = part_of(src.size, part, parts)
    for i in range(np.uint64(begin), np.uint64(end)):
        a, b = src[i], dst[i]  # read once: other threads may write to them
        u, v = NO_ID, NO_ID
        if a != b and max(a, b) < new_of_old.size:
            u, v = new_of_old[a], new_of_old[b]
            if max(u, v) == NO_ID:  # a vertex that had no edge before
                u = v = NO_ID
                given.trouble[part] = _LOST
        ends[0, i], ends[1, i] = u, v
        if u != NO_ID:
            counts[range_of[u]] += 1
            if both_ends:
                counts[range_of[v]] += 1


@kernel(counted=False, inner=True)
def _move(given, part, parts):
    ends, weights, range_of = given.ends, given.weights, given.range_of
    moved_ends, moved, cursor = given.moved_ends, given.moved, given.cursor[part]
    both_ends = given.both_ends != 0
    begin, end = part_of(weights.size, part, parts)
    for i in range(np.uint64(begin), np.uint64(end)):
        u, v = ends[0, i], ends[1, i]
        if u == NO_ID:
            continue
        at = np.uint64(cursor[range_of[u]])
        cursor[range_of[u]] += 1
        moved_ends[0, at], moved_ends[1, at], moved[at] = u, v, weights[i]
        if both_ends:
            at = np.uint64(cursor[range_of[v]])
            cursor[range_of[v]] += 1
            moved_ends[0, at], moved_ends[1, at], moved[at] = v, u, weights[i]


@kernel(counted=False, inner=True)
def _combine(given, part, parts):
    moved_ends, moved, bounds = given.moved_ends, given.moved, given.bounds
    trouble = given.trouble[part]
    for one in range(part, bounds.size - 1, parts):
        for i in range(np.uint64(bounds[one]), np.uint64(bounds[one + 1])):
            u, v = np.int64(moved_ends[0, i]), np.int64(moved_ends[1, i])
            trouble = max(trouble, _place(given, u, v, moved[i], given.rule))
    given.trouble[part] = trouble


@njit(inline="always")
def _place(given, u, v, weight, rule):
    """Combine a weight with the weight of edge (u, v); return an error code or 0."""
    at = find_neighbour(given.indptr, given.indices, u, v)
    if at < 0:
        return _LOST
    placed = given.placed
    if rule == _SUM:
        total = placed[at] + weight
        if given.is_int32 and not -_INT32_LIMIT <= total < _INT32_LIMIT:
            return _OVERFLOW
        placed[at] = total
    elif (weight < placed[at]) == (rule == _MIN):
        placed[at] = weight
    return 0


@njit(inline="always")
def find_neighbour(indptr, indices, u, v):
    """Return the position of `v` in the sorted list of `u`, or -1."""
    low, high = indptr[u], indptr[u + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low if low < indptr[u + 1] and indices[low] == v else np.int64(-1)


@kernel
def first_unlike(indptr, indices, weights):
    """Return the first entry whose reverse has another weight, or -1."""
    for u in range(indptr.size - 1):
        for k in range(indptr[u], indptr[u + 1]):
            if indices[k] > u:
                at = find_neighbour(indptr, indices, np.int64(indices[k]), u)
                if at < 0 or weights[at] != weights[k]:
                    return np.int64(k)
    return np.int64(-1)


_INSERTION = 48  # longest list sorted by insertion
_PARTS_PER_THREAD = 16
_DIGIT_BITS = 8
_WORD_BITS = 64


def sort_by_weight(indptr: Array, indices: Array, weights: Array) -> tuple[Array, Array]:
    """Return neighbours and weights, shape (indptr[-1],), each list sorted stably by rising weight.

    Weights must not be negative.
    """
    neighbours, sorted_weights = indices.copy(), weights.copy()
    parts = _PARTS_PER_THREAD * numba.get_num_threads()
    shares = np.linspace(0, indptr[-1], parts + 1)
    bounds = np.searchsorted(indptr, shares).astype(np.int64)
    bounds[0], bounds[-1] = 0, indptr.size - 1
    in_parallel(
        _sort_lists,
        parts,
        bounds=bounds,
        indptr=indptr,
        neighbours=neighbours,
        weights=sorted_weights,
        longest=int(np.diff(indptr).max(initial=0)),
    )
    return neighbours, sorted_weights


@kernel(inner=True)
def _sort_lists(given, part, parts):
    indptr, neighbours, weights = given.indptr, given.neighbours, given.weights
    first, last = given.bounds[part], given.bounds[part + 1]
    other_neighbours = np.empty(0, neighbours.dtype)
    other_weights = np.empty(0, weights.dtype)
    for v in range(first, last):
        begin, end = indptr[v], indptr[v + 1]
        if end - begin <= _INSERTION:
            _insert(neighbours, weights, begin, end)
            continue
        if other_weights.size < end - begin:
            other_neighbours = np.empty(given.longest, neighbours.dtype)
            other_weights = np.empty(given.longest, weights.dtype)
        size = end - begin
        _radix_sort(
            neighbours[begin:end], weights[begin:end], other_neighbours[:size], other_weights[:size]
        )


@njit(inline="always")
def _insert(neighbours, weights, begin, end):
    for i in range(begin + 1, end):
        v, w = neighbours[i], weights[i]
        k = i
        while k > begin and weights[k - 1] > w:
            neighbours[k], weights[k] = neighbours[k - 1], weights[k - 1]
            k -= 1
        neighbours[k], weights[k] = v, w


@kernel(inner=True)
def _radix_sort(neighbours, weights, other_neighbours, other_weights):
    """Sort by the bits of the weights, digit by digit from the lowest; weights are at least 0."""
    differing = bits_of(weights[0]) ^ bits_of(weights[0])
    for i in range(weights.size):
        differing |= bits_of(weights[i]) ^ bits_of(weights[0])
    slot = np.empty((1 << _DIGIT_BITS) + 1, np.int64)
    mask = (1 << _DIGIT_BITS) - 1
    shift = 0
    while shift < _WORD_BITS and differing >> shift:
        if (differing >> shift) & mask:
            slot[:] = 0
            for i in range(weights.size):
                slot[((bits_of(weights[i]) >> shift) & mask) + 1] += 1
            for digit in range(1, slot.size):
                slot[digit] += slot[digit - 1]
            for i in range(weights.size):
                digit = (bits_of(weights[i]) >> shift) & mask
                other_neighbours[slot[digit]] = neighbours[i]
                other_weights[slot[digit]] = weights[i]
                slot[digit] += 1
            neighbours[:] = other_neighbours
            weights[:] = other_weights
        shift += _DIGIT_BITS
