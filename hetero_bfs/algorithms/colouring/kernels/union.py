"""Undirected adjacency of a directed graph: the neighbours in either direction."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import in_parallel

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
