"""Neighbour lists for colouring: the order of the vertices, and the lists of both directions.

Vertices are coloured by falling degree, then by the caller's id."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import in_parallel, part_of


@kernel
def rank_vertices(degree, new_of_old, order, rank):
    """Fill order and rank by a counting sort.

    `degree`, uint32 (n,), is by new id, and `new_of_old` is uint32 (num_vertices,). `order`, uint32
    (n,), gets the vertices (new ids) by rank, and `rank`, uint32 (n,), the rank of each vertex.
    """
    largest = np.int64(0)
    for v in range(degree.size):
        largest = max(largest, np.int64(degree[v]))
    slot = np.zeros(largest + 1, np.int64)
    for v in range(degree.size):
        slot[degree[v]] += 1
    place = np.int64(0)
    for d in range(largest, -1, -1):
        count = slot[d]
        slot[d] = place
        place += count
    for old in range(new_of_old.size):
        v = new_of_old[old]
        if v != NO_ID:
            d = degree[v]
            place = slot[d]
            slot[d] = place + 1
            order[place] = v
            rank[v] = place


@kernel(counted=False, inner=True)
def renumber_lists(given, part, parts):
    """Write a part of the adjacency by rank: row r has the neighbours of order[r], as ranks."""
    indptr, indices, rank = given.indptr, given.indices, given.rank
    begin, end = part_of(given.order.size, part, parts)
    for r in range(begin, end):
        v, at = given.order[r], given.new_indptr[r]
        for k in range(indptr[v], indptr[v + 1]):
            given.new_indices[at] = rank[indices[k]]
            at += 1


_PARTS_PER_THREAD = 16


def unite_lists(there: Any, back: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """Return indptr and indices of the union of a CSR graph and its transpose, sorted."""
    n = there.num_vertices
    parts = _PARTS_PER_THREAD * numba.get_num_threads()
    entries = there.indptr + back.indptr
    bounds = np.searchsorted(entries, np.linspace(0, entries[-1], parts + 1)).astype(np.int64)
    bounds[0], bounds[-1] = 0, n
    given = {
        "bounds": bounds,
        "indptr": there.indptr,
        "indices": there.indices,
        "back_indptr": back.indptr,
        "back_indices": back.indices,
    }
    united = aligned_empty(n + 1, np.int64)
    united[0] = 0
    in_parallel(_count, parts, **given, united=united)
    np.cumsum(united, out=united)
    found = aligned_empty(int(united[-1]), np.uint32)
    in_parallel(_fill, parts, **given, united=united, found=found)
    return united, found


@njit(inline="always")
def _next(a, i, i_end, b, j, j_end):
    """Return the smaller of the next entries of two sorted lists, and the positions after it."""
    if j == j_end or (i < i_end and a[i] < b[j]):
        return a[i], i + 1, j
    if i == i_end or b[j] < a[i]:
        return b[j], i, j + 1
    return a[i], i + 1, j + 1


@kernel(counted=False, inner=True)
def _count(given, part, parts):
    a, b = given.indices, given.back_indices
    for v in range(given.bounds[part], given.bounds[part + 1]):
        i, i_end = given.indptr[v], given.indptr[v + 1]
        j, j_end = given.back_indptr[v], given.back_indptr[v + 1]
        count = 0
        while i < i_end or j < j_end:
            _, i, j = _next(a, i, i_end, b, j, j_end)
            count += 1
        given.united[v + 1] = count


@kernel(counted=False, inner=True)
def _fill(given, part, parts):
    a, b, found = given.indices, given.back_indices, given.found
    for v in range(given.bounds[part], given.bounds[part + 1]):
        i, i_end = given.indptr[v], given.indptr[v + 1]
        j, j_end = given.back_indptr[v], given.back_indptr[v + 1]
        at = given.united[v]
        while i < i_end or j < j_end:
            found[at], i, j = _next(a, i, i_end, b, j, j_end)
            at += 1
