"""Compiled checks of neighbour lists from a file, before searches follow them."""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.generators.kronecker_kernels import splitmix
from hetero_bfs.support.compiling import kernel

_HALF = np.uint64(32)


@kernel
def first_out_of_order(indptr, indices):
    """Return the position of the first wrong entry, -1 if there is none.

    An entry is wrong if it is not greater than the entry before it in its list, or if it is the
    list's own vertex.
    """
    for u in range(indptr.size - 1):
        before = np.int64(-1)
        for i in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[i])
            if v <= before or v == u:
                return np.int64(i)
            before = v
    return np.int64(-1)


@kernel
def pairing(indptr, indices):
    """Return 0 if (v, u) is stored as often as (u, v), for all u and v.

    Otherwise the result is almost surely not 0. Each pair's hash is added for one direction and
    subtracted for the other.
    """
    total = np.uint64(0)
    for u in range(indptr.size - 1):
        for i in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[i])
            if v != u:
                drawn = splitmix(np.uint64(min(u, v)) << _HALF | np.uint64(max(u, v)))
                if u < v:
                    total += drawn
                else:
                    total -= drawn
    return total
