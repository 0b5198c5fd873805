"""Copies lists of many blocks one after another, for a device to which they are sent."""

from __future__ import annotations

import numpy as np
from numba import prange

from hetero_bfs.support.compiling import kernel


@kernel(parallel=True)
def gather_blocks(blocks, bounds, begins, entries, gathered):
    """Copy entries[bounds[b]:bounds[b + 1]] to begins[i] on, for each b = blocks[i]; int64."""
    for i in prange(blocks.size):
        first, size = bounds[blocks[i]], bounds[blocks[i] + 1] - bounds[blocks[i]]
        begin = np.int64(begins[i])
        for k in range(size):
            gathered[begin + k] = entries[first + k]
