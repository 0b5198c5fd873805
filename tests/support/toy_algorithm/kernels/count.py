"""The loop on the host."""

from __future__ import annotations

from numba import njit


@njit
def count_busy(indptr, neighbours, degree, least, count):
    """Set count[v] to the neighbours of v with at least `least` edges."""
    for v in range(count.size):
        count[v] = 0
        for k in range(indptr[v], indptr[v + 1]):
            count[v] += degree[neighbours[k]] >= least
