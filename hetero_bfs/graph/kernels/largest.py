"""The largest of some ids: a check of a list before a loop follows it.

This loop uses vector instructions, and afterwards the list is in the cache. A comparison in the
loop that follows the ids costs more.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel


@kernel(inner=True)
def largest_of(indices, first, last):
    """Return the largest of indices[first:last], 0 if the range is empty."""
    largest = np.uint32(0)
    for k in range(np.uint64(first), np.uint64(last)):
        largest = max(largest, indices[k])
    return largest
