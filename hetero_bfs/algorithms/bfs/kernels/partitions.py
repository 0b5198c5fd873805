"""Patches of vertices that lie close together, and their owners (expand.py).

A partition is a power of two of vertices, from a multiple of that on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

_SCATTER, _SCATTER_SHIFT = np.uint64(0x9E3779B1), np.uint64(20)


@njit(inline="always")
def partition_bits(owners):
    """Return log2 of a partition's vertices: 8,192 for two owners, 4,096 for four, 2,048 for more.

    Of large partitions fewer edges lead to others' vertices; of small ones the many that a frontier
    crosses are more evenly shared. Measured for two and sixteen owners. One needs no partitions.
    """
    if owners == 1:
        return np.uint32(31)
    return np.uint32(13 if owners == 2 else 12 if owners == 4 else 11)


@njit(inline="always")
def owner_of(vertex, owners, bits):
    """Return the owner of a vertex, of a power of two of owners; `bits` are `partition_bits` of
    them.

    Of as many partitions as there are owners, from a multiple of that on, each has one, in an order
    that is scattered: if it were always the same, the partitions that a frontier crosses side by
    side, as it does in a grid, would be few owners'.
    """
    partition, within = np.uint64(vertex >> bits), np.uint64(owners - 1)
    order = (partition & ~within) * _SCATTER >> _SCATTER_SHIFT
    return np.int64((partition ^ order) & within)


def split_among_owners(num_vertices: int, owners: int) -> npt.NDArray[np.int64]:
    """Return where in a queue each owner's part begins, with room for all its vertices; int64."""
    bits = partition_bits.py_func(owners)
    owner = owner_of.py_func(np.arange(num_vertices, dtype=np.uint32), owners, bits)
    starts = np.zeros(owners + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=owners), out=starts[1:])
    return starts
