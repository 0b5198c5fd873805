"""A bottom-up level of a rank, and the start and the result of its search."""

from __future__ import annotations

import numpy as np

from hetero_bfs.selection.schema import advance
from hetero_bfs.support.by_address import call_level
from hetero_bfs.support.compiling import kernel

_NO_VERTEX = np.uint32(0xFFFFFFFF)

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
    """Copy the words from `first` on."""
    for i in range(first, source.size):
        target[i] = source[i]


@kernel(counted=False)
def blank(one, other):
    """Clear two bitmaps."""
    for i in range(one.size):
        one[i] = 0
    for i in range(other.size):
        other[i] = 0


@kernel(counted=False)
def restore(own, parent, old_of_column, restored):
    """Fill the parents of the own old ids, old ids themselves, uint32; NO_VERTEX for none.

    `own` has the own number of each, `parent` the column of each number's parent.
    """
    for i in range(own.size):
        number = own[i]
        column = _NO_VERTEX if number == _NO_VERTEX else parent[number]
        restored[i] = _NO_VERTEX if column == _NO_VERTEX else old_of_column[column]


@kernel(counted=False)
def reached_ends(restored, input_degree):
    """Count the vertices that have a parent, and the input edges at them."""
    reached, ends = np.int64(0), np.int64(0)
    for i in range(restored.size):
        if restored[i] != _NO_VERTEX:
            reached += 1
            ends += np.int64(input_degree[i])
    return reached, ends
