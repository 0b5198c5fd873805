"""Copies the neighbour lists of several blocks into one array, to send them to a device."""

from __future__ import annotations

from numba import prange

from hetero_bfs.support.compiling import kernel

_BY_ONE_THREAD = 1 << 16
"""Most entries that are copied by one thread: a parallel region would cost more than it saves."""


@kernel(counted=False, inner=True)
def _gather_block(block, begin, bounds, entries, gathered):
    first = bounds[block]
    for k in range(bounds[block + 1] - first):
        gathered[begin + k] = entries[first + k]


@kernel(parallel=True)
def _gather_blocks(blocks, begins, bounds, entries, gathered):
    for i in prange(blocks.size):
        _gather_block(blocks[i], begins[i], bounds, entries, gathered)


@kernel
def gather_blocks(blocks, begins, bounds, entries, gathered):
    """Copy entries[bounds[b]:bounds[b + 1]] to gathered[begins[i]:], for each b = blocks[i].

    `blocks`, `begins` and `bounds` are int64. `begins` rises.
    """
    if blocks.size > 1 and begins[blocks.size - 1] > _BY_ONE_THREAD:
        _gather_blocks(blocks, begins, bounds, entries, gathered)
        return
    for i in range(blocks.size):
        _gather_block(blocks[i], begins[i], bounds, entries, gathered)
