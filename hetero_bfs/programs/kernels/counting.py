"""Counts of equal messages in a hash table with open addressing; counting.cl does the same.

A vertex has SLOTS slots for each of its messages. A slot holds a message and its count, or `none`,
a number that is never a message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.programs.schema import HASH_FACTOR

_FACTOR = np.uint64(HASH_FACTOR)
_HALF = np.uint64(32)


@njit(inline="always")
def count_message(messages, counts, size, message, none):
    """Count a message in the first `size` slots; return its count so far."""
    mixed = np.uint64(message) * _FACTOR >> _HALF
    slot = np.int64(mixed * np.uint64(size) >> _HALF)
    while messages[slot] != none:
        if messages[slot] == message:
            counts[slot] += 1
            return counts[slot]
        slot += 1
        if slot == size:
            slot = 0
    messages[slot] = message
    counts[slot] = 1
    return counts[slot]
