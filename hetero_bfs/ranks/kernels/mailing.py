"""Sorts messages to columns by the ranks that own the columns."""

from __future__ import annotations

import numpy as np

from hetero_bfs.ranks.partition import LINE_SHIFT
from hetero_bfs.support.compiling import kernel

_LINE_SHIFT = np.uint32(LINE_SHIFT)


@kernel(counted=False)
def count_by_owner(columns, owner_of_line, counts):
    """Count the columns of each rank in `counts`, int64 (ranks,)."""
    counts[:] = 0
    for i in range(columns.size):
        counts[owner_of_line[columns[i] >> _LINE_SHIFT]] += 1


@kernel(counted=False)
def sort_by_owner(columns, messages, owner_of_line, first_column, places, numbers, sorted_messages):
    """Write messages, and vertices by their owners' numbers, each owner's starting at its position.

    `places`, the owners' positions, is advanced.
    """
    for i in range(columns.size):
        owner = owner_of_line[columns[i] >> _LINE_SHIFT]
        place = places[owner]
        numbers[place] = np.int64(columns[i]) - first_column[owner]
        sorted_messages[place] = messages[i]
        places[owner] = place + 1
