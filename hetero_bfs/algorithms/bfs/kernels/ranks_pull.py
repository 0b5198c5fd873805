"""A bottom-up level of a rank, and the start and the result of its search."""

from __future__ import annotations

import numpy as np

from hetero_bfs.algorithms.bfs.kernels.job import BLANK, NONE
from hetero_bfs.algorithms.bfs.kernels.phases import share_words
from hetero_bfs.devices.cpu.thread_pool import CHUNKS
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.scheduling.schema import advance
from hetero_bfs.support.by_address import call_level
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import part_of

_advance = kernel(advance, counted=False, inner=True)


@kernel(counted=False)
def pull(control, arrays, row, state, records):
    """Run a level by the strategy in a row of the table; return the edges scanned."""
    address = arrays.levels[row]
    representation, found, edges, scanned = call_level(address, control, arrays, state, records)
    _advance(state, representation, found, edges)
    return scanned


@kernel(counted=False)
def copy_words(source, target, first):
    for i in range(first, source.size):
        target[i] = source[i]


@kernel(counted=False, inner=True)
def blank_chunk(control, arrays, chunk, me):
    """Clear a chunk of both bitmaps of all columns."""
    low, high = part_of(arrays.visited[0].size, chunk, control[CHUNKS])
    for bitmap in arrays.visited:
        bitmap[low:high] = 0
    return NONE, NONE, NONE


@kernel(counted=False)
def blank(control, arrays, state):
    share_words(control, arrays, state, BLANK)


@kernel(counted=False)
def restore(own, parent, old_of_column, restored):
    """Fill `restored`, uint32 by own old ids, with the parents' old ids; NO_VERTEX for none.

    `own` has the own number of each old id, `parent` the column of each number's parent.
    """
    for i in range(own.size):
        number = own[i]
        column = NO_ID if number == NO_ID else parent[number]
        restored[i] = NO_ID if column == NO_ID else old_of_column[column]


@kernel(counted=False)
def reached_ends(restored, input_degree):
    """Count the vertices that have a parent, and the input edges at them."""
    reached, ends = np.int64(0), np.int64(0)
    for i in range(restored.size):
        if restored[i] != NO_ID:
            reached += 1
            ends += np.int64(input_degree[i])
    return reached, ends
