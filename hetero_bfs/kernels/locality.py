"""Order vertices by locality: breadth first from the far end of each component.

That is Cuthill and McKee's order (1969) without their sorting by degree: neighbours, and the
frontier of a search from anywhere, end up near each other in memory.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from hetero_bfs.kernels.compile import kernel

_UNSEEN = np.uint32(0xFFFFFFFF)
_SEEN = np.uint32(0xFFFFFFFE)
_CHUNK = 4096


@kernel
def _walk(indptr, indices, start, first, position, wanted, final, order):
    """Append to `order`, from `first` on, `start` and the `wanted` vertices that it reaches.

    Marks them in `position`, with their place if `final`. Returns the end and the levels walked.
    """
    order[first] = start
    position[start] = first if final else _SEEN
    end = first + 1
    level_end, levels = end, 1
    i = first
    while i < end:
        if i == level_end:
            level_end = end
            levels += 1
        u = order[i]
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            if position[v] == wanted:
                position[v] = end if final else _SEEN
                order[end] = v
                end += 1
        i += 1
    return end, levels


@kernel
def order_by_locality(indptr, indices, directed, order, position):
    """Fill order (uint32: old id at each position) and position, its inverse.

    Returns the most levels of any walk. Of a directed graph each walk begins anywhere.
    """
    position[:] = _UNSEEN
    filled, most = 0, 0
    for start in range(order.size):
        if position[start] != _UNSEEN:
            continue
        wanted, begin = _UNSEEN, start
        if not directed:
            end, _ = _walk(indptr, indices, start, filled, position, _UNSEEN, False, order)
            wanted, begin = _SEEN, np.int64(order[end - 1])
        filled, levels = _walk(indptr, indices, begin, filled, position, wanted, True, order)
        most = max(most, levels)
    return most


@kernel(parallel=True)
def permute_lists(indptr, indices, order, position, new_indptr, new_indices):
    """Renumber sorted neighbour lists: vertex order[v] becomes v."""
    n = order.size
    for chunk in prange((n + _CHUNK - 1) // _CHUNK):
        for v in range(chunk * _CHUNK, min(n, (chunk + 1) * _CHUNK)):
            begin = new_indptr[v]
            old = order[v]
            for k in range(indptr[old], indptr[old + 1]):
                new_indices[begin + k - indptr[old]] = position[indices[k]]
            new_indices[begin : new_indptr[v + 1]].sort()
