"""The largest of some ids: a check of a list before a loop follows it.

This loop uses vector instructions, and the list is then in the cache. A comparison in the loop that
follows the ids costs more.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel


@kernel(inner=True)
def largest_of(indices, first, last):
    """Return the largest of indices[first:last], uint32; 0 if there is none."""
    largest = np.uint32(0)
    for k in range(np.uint64(first), np.uint64(last)):
        largest = max(largest, indices[k])
    return largest
