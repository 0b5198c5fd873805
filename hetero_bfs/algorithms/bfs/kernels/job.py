"""The control words that describe a phase of a search, and a chunk's part of the work.

A phase runs one kernel for each of its chunks, or for each owner of partitions. The kernel takes
(control, arrays, chunk, me): the thread pool's control block (thread_pool.py), the `HostArrays`
(phases.py), the number of the chunk or of the owner, and the number of the thread. It returns three
int64, which the phase adds up. Phases call these kernels by address.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import CHUNKS, JOB, OWN

# Control words of a job. They follow its number of chunks (thread_pool.py).
TASK, VISITED, QUEUE, VERTICES, EDGES, SIZE = range(JOB + 1, JOB + 7)
SENT, NARROW = EDGES, VISITED
"""If a phase restores results: the address of an array that a device sent, and whether the items of
the array at `ADDRESS` have 32 bits."""

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
    CLEAR,
    RECEIVE,
    RESTORE,
    BLANK_DEPTHS,
    RESTORE_LEVELS,
    ALONE,  # not a phase: the master runs a small top-down level by itself
) = range(15)
NUM_TASKS = 15

OWNED = OWN
"""Whether the owners still hold the frontier in their own parts of the queue (expand.py)."""

WHOLE = OWN + 1
"""Whether the host has run all levels of this search, so that `parent` has every parent."""

ADDRESS = OWN + 2
"""The address of an array that a phase fills and that is not in the `HostArrays`."""

MASKED = OWN + 3
"""Whether the search has a mask: masked vertices count as visited and are never parents."""

LONE_VISITED, LONE_QUEUE = OWN + 4, OWN + 5
"""VISITED and QUEUE of a small level that the master runs by itself. Waiting workers poll the line
of the job, so writing there would take longer than the level."""

NEXT_OWN = OWN + 6
"""The first word that is free for other modules. Phases do not change it."""

NONE = np.int64(0)
"""Return value of a kernel without anything to add up."""


@njit(inline="always")
def edges_of(control, chunk):
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


# Partitions of vertices, and their owners (expand.py).
#
# The vertices of a partition have consecutive numbers and are close together in the graph. All
# partitions have the same size, a power of two, and start at multiples of it.

_SCATTER, _SCATTER_SHIFT = np.uint64(0x9E3779B1), np.uint64(20)


@njit(inline="always")
def partition_bits(owners):
    """Return log2 of a partition's vertices: 8,192 for two owners, 4,096 for four, 2,048 for more.

    Large partitions have fewer edges between them. Small ones share a frontier more evenly, since
    it crosses more of them. Two and sixteen owners were measured. One owner needs no partitions.
    """
    if owners == 1:
        return np.uint32(31)
    return np.uint32(13 if owners == 2 else 12 if owners == 4 else 11)


@njit(inline="always")
def owner_of(vertex, owners, bits):
    """Return the owner of a vertex. `owners` is a power of two, `bits` is `partition_bits(owners)`.

    Consecutive partitions form groups, with one partition per owner. The order of the owners
    changes from group to group. With the same order in all groups, a frontier that crosses
    partitions at regular distances, as in a grid, would meet few owners.
    """
    partition, within = np.uint64(vertex >> bits), np.uint64(owners - 1)
    order = (partition & ~within) * _SCATTER >> _SCATTER_SHIFT
    return np.int64((partition ^ order) & within)


def split_among_owners(num_vertices: int, owners: int) -> npt.NDArray[np.int64]:
    """Return where in a queue each owner's part starts, int64 (owners + 1,).

    A part has room for all vertices of its owner.
    """
    bits = partition_bits.py_func(owners)
    begin = np.arange(0, num_vertices, 1 << int(bits), dtype=np.uint32)
    size = np.diff(begin, append=np.uint32(num_vertices))
    starts = np.zeros(owners + 1, np.int64)
    np.add.at(starts, owner_of.py_func(begin, owners, bits) + 1, size)
    np.cumsum(starts, out=starts)
    return starts
