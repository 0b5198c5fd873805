"""What is known of a search between two levels, and the record of a level, as arrays.

Both are float64, so that compiled code and Python share them; counts stay exact up to 2**53.

The state of a search (`STATE_SIZE` items) says where the frontier is and how much is left.
`KIND` is 0 on the host, 1 on the first device beside it, 2 on the next, -1 before the first level.
`REPRESENTATION` is 0 for a queue, 1 for a bitmap that bottom-up left, 2 for one that top-down left
(level.py has their encoding), 3 for a queue that the host's bottom-up left of a few vertices. Rules
of Beamer's kind go by the last direction, so they tell these apart.

A record is one row per level: the state before it, what was chosen and measured, then the
predicted seconds of each candidate, then the seconds that decided (the rest of the search
included).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

StateArray = npt.NDArray[np.float64]

(
    FRONTIER_VERTICES,
    FRONTIER_EDGES,
    UNVISITED_VERTICES,
    UNVISITED_EDGES,
    PREVIOUS_EDGES,  # the frontier's edges one level earlier
    KIND,
    REPRESENTATION,
    LEVEL,
    VISITED_INDEX,  # which of two bitmaps has all visited vertices
    QUEUE_INDEX,  # which of two queues has the frontier
    CHOSEN,  # candidate chosen for the coming level, -1 if none is yet
    FOUND_LISTED,  # vertices in the list of all that the host found, -1 if that is given up
    UNVISITED_LISTED,  # vertices in the host's list of all that may be unvisited, -1 without one
) = range(13)
STATE_SIZE = 13

COLUMNS = (
    "constant",
    "num_vertices",
    "frontier_vertices",
    "frontier_edges",
    "unvisited_vertices",
    "unvisited_edges",
    "expected_examined",
    "expected_found",
    "expected_length",
    "expected_claims",
    "wide_vertices",
    "shared_level",
)
"""What a speed model sees of a level, in the order in which compiled code fills the columns."""

MIGRATION_COLUMNS = COLUMNS[:3]
"""What it sees of starting, switching and converting."""

LEAST_SHARED_EDGES = 512
"""Fewest edges of a frontier that several of the host's threads expand top-down."""

LEAST_DENSE_PUSH_EDGES = 8192
"""Fewest edges of a dense-push frontier: small graphs, searched by one thread, hardly have one."""

DENSE_PUSH_SHARE = 10
"""A dense-push frontier's edges times this are more than all vertices."""

DENSE_PUSH_CROWD = 4
"""A dense-push frontier's edges are fewer than the unvisited vertices times this."""

HOST, DEVICE, NOWHERE = 0, 1, -1
QUEUE, BITMAP, DENSE_PUSH_BITMAP, BOTTOM_UP_QUEUE = 0, 1, 2, 3

RECORD_STATE = LEVEL + 1
"""Columns of a record that are the state's first items; FRONTIER_VERTICES to LEVEL."""

(
    STRATEGY,
    SECONDS,
    TRANSFER_SECONDS,
    SELECT_SECONDS,
    FOUND_VERTICES,
    EDGES_SCANNED,  # neighbours that bottom-up looked at, -1 where nobody counts them
    CHOSEN_AT,  # level whose choice this is, if the selector had no need to choose again
    WITHIN,  # ratio within which the levels that follow have to be to keep it
) = range(RECORD_STATE, RECORD_STATE + 8)
PREDICTED = WITHIN + 1
"""First column of the predictions; the totals follow them."""

OPENCL = {
    "FRONTIER_VERTICES": FRONTIER_VERTICES,
    "FRONTIER_EDGES": FRONTIER_EDGES,
    "UNVISITED_VERTICES": UNVISITED_VERTICES,
    "UNVISITED_EDGES": UNVISITED_EDGES,
    "PREVIOUS_EDGES": PREVIOUS_EDGES,
    "REPRESENTATION": REPRESENTATION,
    "LEVEL": LEVEL,
    "VISITED_INDEX": VISITED_INDEX,
    "QUEUE_INDEX": QUEUE_INDEX,
    "CHOSEN": CHOSEN,
    "BITMAP": BITMAP,
    "LEAST_SHARED_EDGES": LEAST_SHARED_EDGES,
    "LEAST_DENSE_PUSH_EDGES": LEAST_DENSE_PUSH_EDGES,
    "DENSE_PUSH_SHARE": DENSE_PUSH_SHARE,
    "DENSE_PUSH_CROWD": DENSE_PUSH_CROWD,
    "NUM_COLUMNS": len(COLUMNS),
    "MIGRATION_COLUMNS": len(MIGRATION_COLUMNS),
}
"""What OpenCL code needs of this (header.py)."""


def advance(state: StateArray, representation: int, found: int, edges: int) -> None:
    """Move a search on a level, which left what it found in this form.

    Plain Python; the host's compiled loop compiles it too.
    """
    if representation in (QUEUE, BOTTOM_UP_QUEUE):
        state[QUEUE_INDEX] = 1 - state[QUEUE_INDEX]
    else:
        state[VISITED_INDEX] = 1 - state[VISITED_INDEX]
    state[REPRESENTATION] = representation
    state[PREVIOUS_EDGES] = state[FRONTIER_EDGES]
    state[FRONTIER_VERTICES] = found
    state[FRONTIER_EDGES] = edges
    state[UNVISITED_VERTICES] -= found
    state[UNVISITED_EDGES] -= edges
    state[LEVEL] += 1
    state[CHOSEN] = -1


def has_queue(state: StateArray) -> bool:
    """Tell whether a frontier, as a state or a record has it, is a queue. Plain Python, too."""
    return bool(state[REPRESENTATION] == QUEUE or state[REPRESENTATION] == BOTTOM_UP_QUEUE)


def was_bottom_up(state: StateArray) -> bool:
    """Tell whether the level before was bottom-up, whatever it left. Plain Python, too."""
    return bool(state[REPRESENTATION] == BITMAP or state[REPRESENTATION] == BOTTOM_UP_QUEUE)


def is_dense_push(num_vertices: float, frontier_edges: float, unvisited_vertices: float) -> bool:
    """Tell whether top-down on the host does better not to claim vertices (level_loop.py).

    So many edges that looking through all vertices for whom they reached is worth it, but not so
    many for each unvisited vertex that all threads write to the same ones. Plain Python, too.
    """
    return (
        frontier_edges >= LEAST_DENSE_PUSH_EDGES
        and frontier_edges * DENSE_PUSH_SHARE > num_vertices
        and frontier_edges < DENSE_PUSH_CROWD * unvisited_vertices
    )


def is_over(state: StateArray) -> bool:
    """Tell whether no level is left that could find anything."""
    return bool(state[FRONTIER_EDGES] <= 0 or state[UNVISITED_VERTICES] <= 0)


def record_width(candidates: int) -> int:
    """Return the columns of a record for so many candidates."""
    return PREDICTED + 2 * candidates
