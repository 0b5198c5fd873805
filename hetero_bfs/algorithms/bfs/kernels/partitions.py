"""Partitions of vertices, and their owners (expand.py).

The vertices of a partition have consecutive numbers and are close together in the graph. All
partitions have the same size, a power of two, and start at multiples of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

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
    owner = owner_of.py_func(np.arange(num_vertices, dtype=np.uint32), owners, bits)
    starts = np.zeros(owners + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=owners), out=starts[1:])
    return starts
