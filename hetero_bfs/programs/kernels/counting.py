"""A pull that takes the most frequent message to each vertex; counting.cl does the same.

Equal messages are counted in a hash table with open addressing.

A vertex has SLOTS slots for each of its messages. A slot holds a message and its count, or `none`,
a number that is never a message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.devices.cpu.thread_pool import chunk_of
from hetero_bfs.programs.kernels.adapters import IDENTITY, WEIGHTED, receives, send, takes
from hetero_bfs.programs.kernels.host import PHASES
from hetero_bfs.programs.kernels.loop import GATHER
from hetero_bfs.programs.schema import HASH_FACTOR, SLOTS
from hetero_bfs.support.compiling import kernel

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


# A pull that takes the most frequent message to each vertex, on the host.
#
# host_code.py appends this text to host.py. Arrays in addition to those of host.py:
#
#     slot_messages, slot_counts      (threads, any)  hash tables that count messages to a vertex

_NONE = np.int64(0)


@kernel(counted=False, inner=True)
def _count(control, arrays, chunk, me):
    """Take the most frequent message to each vertex; of equally frequent ones, the least."""
    begin, end = chunk_of(control, chunk)
    indptr, neighbours = arrays.backward_indptr, arrays.backward_neighbours
    weights, outgoing = arrays.backward_weights, arrays.outgoing
    messages, counts = arrays.slot_messages[me], arrays.slot_counts[me]
    edges, receivers = _NONE, _NONE
    for v in range(begin, end):
        best, most = IDENTITY, np.uint32(0)
        if receives(arrays, v):
            receivers += 1
            first, last = np.int64(indptr[v]), np.int64(indptr[v + 1])
            edges += last - first
            size = SLOTS * (last - first)
            messages[:size] = IDENTITY
            for k in range(first, last):
                u = np.int64(neighbours[k])
                message = send(arrays, u, weights[k]) if WEIGHTED else outgoing[u]
                if message == IDENTITY or not takes(arrays, v, message):
                    continue
                count = count_message(messages, counts, size, message, IDENTITY)
                if count > most or (count == most and message < best):
                    best, most = message, count
        arrays.combined[v] = best
    return edges, receivers, _NONE


PHASES = PHASES | {GATHER: _count}
