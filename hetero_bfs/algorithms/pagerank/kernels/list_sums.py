"""Sums of the weights of each vertex's edges."""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel


@kernel
def sum_lists(indptr, weights, total):
    """Set total[v], float64, to the sum of the weights of v's edges."""
    for v in range(total.size):
        one = 0.0
        for k in range(indptr[v], indptr[v + 1]):
            one += np.float64(weights[k])
        total[v] = one
