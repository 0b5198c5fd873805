"""The control words that describe a phase of a search, and a chunk's part of the work.

A phase runs one kernel for each of its chunks, or for each owner of partitions. The kernel takes
(control, arrays, chunk, me): the thread pool's control block (thread_pool.py), the `HostArrays`
(phases.py), the number of the chunk or of the owner, and the number of the thread. It returns three
int64, which the phase adds up. Phases call these kernels by address (link.py).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import CHUNKS, JOB, OWN

# Control words of a job. They follow its number of chunks (thread_pool.py).
TASK, VISITED, QUEUE, VERTICES, EDGES, SIZE = range(JOB + 1, JOB + 7)
(
    TOP_DOWN,
    PUSH_DENSE,
    RESOLVE_PUSH,
    EXPAND,
    COLLECT,
    BOTTOM_UP,
    CONVERT,
    BLANK,
    INVALIDATE,
    END,  # INVALIDATE, then BLANK
    CLEAR,
    RESTORE,
    ALONE,  # not a phase: the master runs a small top-down level by itself
) = range(13)
NUM_TASKS = 13

OWNED = OWN
"""Whether the owners still hold the frontier in their own parts of the queue (expand.py)."""

WHOLE = OWN + 1
"""Whether the host has run all levels of this search, so that `parent` has every parent."""

ADDRESS = OWN + 2
"""The address of an array that a phase fills and that is not in the `HostArrays`."""

MASKED = OWN + 3
"""Whether the search has a mask: masked vertices count as visited and are never parents."""

NEXT_OWN = OWN + 4
"""The first word that is free for other modules. Phases do not change it."""

NONE = np.int64(0)
"""Return value of a kernel without anything to add up."""


@njit(inline="always")
def edges_of(control, chunk):
    """Return the range of a chunk's edges of the frontier."""
    begin = chunk * control[SIZE]
    return begin, min(begin + control[SIZE], control[EDGES])


@njit(inline="always")
def words_of(control, arrays, chunk):
    """Return the range of a chunk's words of the bitmap.

    The range depends only on the number of chunks, so a thread gets the same words in every phase.
    Chunks grow: after relabelling, the first words belong to the hubs, which have the longest
    lists.
    """
    words, chunks = arrays.written.size, control[CHUNKS]
    return np.int64(words * (chunk / chunks) ** 2), np.int64(words * ((chunk + 1) / chunks) ** 2)
