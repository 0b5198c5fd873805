"""Compiled loops that bring weights to the places of their edges in sorted neighbour lists."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import in_parallel, part_of

Array = npt.NDArray[Any]

_MIN, _MAX, _SUM = range(3)  # as in `weights.DUPLICATES`
_LOST, _OVERFLOW = 1, 2
_INT32_LIMIT = 2**31


def combine_weights(
    chunk: tuple[Array, Array, Array],
    new_of_old: Array,
    both_ends: bool,
    rule: int,
    indptr: Array,
    indices: Array,
    placed: Array,
) -> str | None:
    """Combine the weights of a chunk of edges (src, dst, weights) with those in `placed`.

    Each thread owns a range of vertices with about as many list entries as the others' ranges. It
    reads all edges of the chunk and places those of its vertices. So no atomics are needed, and
    sums are the same in each run.

    Returns
    -------
    {None, "lost", "overflow"}
        "lost" if an edge is not in the lists, "overflow" if a sum is beyond int32.
    """
    src, dst, weights = chunk
    ends = np.empty((2, src.size), np.uint32)
    in_parallel(_map_ends, src=src, dst=dst, new_of_old=new_of_old, ends=ends)
    parts = numba.get_num_threads()
    shares = np.linspace(0, indptr[-1], parts + 1)
    bounds = np.searchsorted(indptr, shares).astype(np.int64)
    bounds[0], bounds[-1] = 0, indptr.size - 1
    trouble = np.zeros(parts, np.int64)
    in_parallel(
        _combine,
        parts,
        ends=ends,
        weights=weights,
        both_ends=int(both_ends),
        rule=rule,
        bounds=bounds,
        indptr=indptr,
        indices=indices,
        placed=placed,
        is_int32=int(placed.dtype == np.int32),
        trouble=trouble,
    )
    return (None, "lost", "overflow")[int(trouble.max())]


@kernel(counted=False, inner=True)
def _map_ends(given, part, parts):
    """Renumber the ends of edges; both of a loop, or of one with a stray end, become NO_VERTEX."""
    src, dst, new_of_old, ends = given.src, given.dst, given.new_of_old, given.ends
    begin, end = part_of(src.size, part, parts)
    vertices = np.uint32(new_of_old.size)
    none = np.uint32(NO_VERTEX)
    for i in range(begin, end):
        u, v = src[i], dst[i]
        keeps = u != v and u < vertices and v < vertices
        ends[0, i] = new_of_old[u] if keeps else none
        ends[1, i] = new_of_old[v] if keeps else none


@kernel(counted=False, inner=True)
def _combine(given, part, parts):
    ends, weights, rule = given.ends, given.weights, given.rule
    low, high = given.bounds[part], given.bounds[part + 1]
    trouble = 0
    for i in range(weights.size):
        u, v = np.int64(ends[0, i]), np.int64(ends[1, i])
        if low <= u < high:
            trouble = max(trouble, _place(given, u, v, weights[i], rule))
        if given.both_ends and low <= v < high:
            trouble = max(trouble, _place(given, v, u, weights[i], rule))
    given.trouble[part] = trouble


@njit(inline="always")
def _place(given, u, v, weight, rule):
    """Combine a weight with that of the edge (u, v); return what trouble there was."""
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
    """Return where `v` is in the sorted list of `u`, -1 if it is not there."""
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
    """Return the first entry whose reverse has another weight, -1 if there is none."""
    for u in range(indptr.size - 1):
        for k in range(indptr[u], indptr[u + 1]):
            if indices[k] > u:
                at = find_neighbour(indptr, indices, np.int64(indices[k]), u)
                if at < 0 or weights[at] != weights[k]:
                    return np.int64(k)
    return np.int64(-1)
