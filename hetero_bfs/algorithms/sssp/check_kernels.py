"""Compiled loops of the check of shortest paths, for a group of searches at a time.

`distance` (float32 or float64, shape (num_vertices, searches)) is infinity where not reached. A row
has the distances of all searches at one vertex, so 16 searches of float32 cost one cache line at
either end of an edge. `parent` (uint32) has the same shape. `MET` stands for a parent whose edge
was found, and for no parent. Unused columns have distances 0 and no parents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import prefetch
from hetero_bfs.support.parallel import parallel_kernel, part_of

Array = npt.NDArray[Any]

MET = NO_ID
_PARTS = 64
_AHEAD = 16  # edges whose distances are prefetched
_ZERO = np.int32(0)
_WRONG, _LOSSY, _UNCERTAIN = range(3)


def take(found: Array, tree: Array, column: int, distance: Array, parent: Array) -> list[int]:
    """Store one search (`found` float64, `tree` int64, shape (num_vertices,)) in its column.

    Returns the first vertex of each of three kinds, or num_vertices if there is none: its distance
    and parent contradict each other or are out of range; `distance` cannot hold its distance
    exactly; its parent is not nearer than itself.
    """
    first = np.full((_PARTS, 3), found.size, np.int64)
    _take(found, tree, column, distance, parent, first, parts=_PARTS)
    return [int(v) for v in first.min(axis=0)]


@parallel_kernel("found tree column distance parent first", counted=False)
def _take(given, part, parts):
    found, tree, column = given.found, given.tree, given.column
    distance, parent, first = given.distance, given.parent, given.first
    begin, end = part_of(found.size, part, parts)
    for v in range(begin, end):
        far, up = found[v], tree[v]
        if not far >= 0 or up < -1 or up >= found.size or (far < np.inf) != (up >= 0):
            first[part, _WRONG] = min(first[part, _WRONG], v)
            continue
        distance[v, column] = far
        if distance[v, column] != far:
            first[part, _LOSSY] = min(first[part, _LOSSY], v)
        parent[v, column] = MET if up < 0 else np.uint32(up)
        if up >= 0 and up != v and not found[up] < far:
            first[part, _UNCERTAIN] = min(first[part, _UNCERTAIN], v)


def scan(chunk: tuple[Array, Array, Array], directed: bool, distance: Array, parent: Array) -> Any:
    """Compare a chunk of edges (src, dst, weights) with all searches.

    Sums are rounded to the type of `distance`. Parents that an edge confirms become `MET`.

    Returns for each search the first edge that gives a shorter distance, or the chunk's size if
    there is none (int64, shape (searches,)).
    """
    src, dst, weights = chunk
    lanes = distance.shape[1]
    first = np.full((_PARTS, lanes), src.size, np.int64)
    _scan(src, dst, weights, int(directed), distance, parent, first, parts=_PARTS)
    return first.min(axis=0)


@parallel_kernel("src dst weights directed distance parent first", counted=False)
def _scan(given, part, parts):
    src, dst, weights, distance = given.src, given.dst, given.weights, given.distance
    number, lanes = distance.dtype.type, distance.shape[1]
    both_ways = given.directed == 0
    rows = distance.reshape(-1)
    begin, end = part_of(src.size, part, parts)
    for i in range(begin, end):
        ahead = min(i + _AHEAD, end - 1)
        prefetch(rows, np.int64(src[ahead]) * lanes)
        prefetch(rows, np.int64(dst[ahead]) * lanes)
        u, v, weight = np.int64(src[i]), np.int64(dst[i]), number(weights[i])
        if u == v:
            continue
        shorter, shorter_back, tight, tight_back = _ZERO, _ZERO, _ZERO, _ZERO
        missed = _missed(distance, weight)
        for k in range(lanes):
            at_u, at_v = distance[u, k], distance[v, k]
            there, back = number(at_u + weight), number(at_v + weight)
            shorter = np.int32(shorter | np.int32(_is_shorter(at_u, there, at_v, missed)))
            shorter_back = np.int32(shorter_back | np.int32(_is_shorter(at_v, back, at_u, missed)))
            tight = np.int32(tight | np.int32(there == at_v))
            tight_back = np.int32(tight_back | np.int32(back == at_u))
        if shorter or (both_ways and shorter_back):
            _note(given, part, i, u, v, weight, lanes)
        if tight:
            _meet(given, u, v, weight, lanes)
        if tight_back and both_ways:
            _meet(given, v, u, weight, lanes)


@njit(inline="always")
def _missed(distance, weight):
    """Return the distance that the end of an edge cannot have if its start is reached.

    That is infinity, since even a sum beyond float32 is finite. If the sums are float64, or the
    weight is infinite, any distance is possible, and the value is NaN.
    """
    is_finite = distance.itemsize < 8 and weight < np.inf
    return distance.dtype.type(np.inf if is_finite else np.nan)


@njit(inline="always")
def _is_shorter(before, there, behind, missed):
    return (there < behind) | ((behind == missed) & (before < behind))


@njit(inline="always")
def _note(given, part, i, u, v, weight, lanes):
    distance, first = given.distance, given.first
    number, missed = distance.dtype.type, _missed(distance, weight)
    for k in range(lanes):
        at_u, at_v = distance[u, k], distance[v, k]
        shorter = _is_shorter(at_u, number(at_u + weight), at_v, missed)
        back = _is_shorter(at_v, number(at_v + weight), at_u, missed)
        if shorter or (given.directed == 0 and back):
            first[part, k] = min(first[part, k], i)


@njit(inline="always")
def _meet(given, u, v, weight, lanes):
    """Note that the edge (u, v) exists. Threads may race: all of them write `MET`."""
    distance, parent = given.distance, given.parent
    number = distance.dtype.type
    for k in range(lanes):
        if parent[v, k] == u and number(distance[u, k] + weight) == distance[v, k]:
            parent[v, k] = MET


@kernel
def count_ends(src, dst, one_way, ends):
    """Count the edges that start at each vertex, or unless `one_way`, start or end; no loops."""
    for i in range(src.size):
        u, v = np.int64(src[i]), np.int64(dst[i])
        is_edge = np.int64(u != v)
        ends[u] += is_edge
        if not one_way:
            ends[v] += is_edge


def summarise(distance: Array, parent: Array, ends: Array) -> tuple[Array, Array, Array]:
    """Return three numbers for each search, int64 arrays of shape (searches,).

    They are the number of vertices reached, the sum of their `ends` (int64, shape
    (num_vertices,)), and the first vertex whose parent is not `MET`, or num_vertices.
    """
    shape = _PARTS, distance.shape[1]
    reached, sums = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    unmet = np.full(shape, ends.size, np.int64)
    _summarise(distance, parent, ends, reached, sums, unmet, parts=_PARTS)
    return reached.sum(axis=0), sums.sum(axis=0), unmet.min(axis=0)


@parallel_kernel("distance parent ends reached sums unmet", counted=False)
def _summarise(given, part, parts):
    distance, parent, ends = given.distance, given.parent, given.ends
    reached, sums, unmet = given.reached[part], given.sums[part], given.unmet[part]
    begin, end = part_of(ends.size, part, parts)
    for v in range(begin, end):
        for k in range(reached.size):
            found = np.int64(distance[v, k] < np.inf)
            reached[k] += found
            sums[k] += found * ends[v]
            if parent[v, k] != MET:
                unmet[k] = min(unmet[k], v)
