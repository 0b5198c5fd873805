"""Sorts messages to columns by the ranks that own these."""

from __future__ import annotations

import numpy as np

from hetero_bfs.support.compiling import kernel

_LINE_SHIFT = np.uint32(9)


@kernel(counted=False)
def count_by_owner(columns, owner_of_line, counts):
    """Count the columns of each rank, int64 (ranks,)."""
    counts[:] = 0
    for i in range(columns.size):
        counts[owner_of_line[columns[i] >> _LINE_SHIFT]] += 1


@kernel(counted=False)
def sort_by_owner(columns, messages, owner_of_line, first_column, places, numbers, sorted_messages):
    """Write owners' own numbers, and the messages, each owner's from its place on, which moves."""
    for i in range(columns.size):
        owner = owner_of_line[columns[i] >> _LINE_SHIFT]
        place = places[owner]
        numbers[place] = np.int64(columns[i]) - first_column[owner]
        sorted_messages[place] = messages[i]
        places[owner] = place + 1
