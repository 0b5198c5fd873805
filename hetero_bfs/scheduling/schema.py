"""The state of a search between two levels, and the record of a level, as arrays.

Both are float64, so that compiled code and Python share them; counts are exact up to 2**53.

The state of a search has `STATE_SIZE` items. `PLACE` is the frontier's place: 0 on the host, 1 on
the first device, 2 on the next, -1 before the first level. `REPRESENTATION` is

    0   a queue
    1   a bitmap that bottom-up left
    2   a bitmap that top-down left (a dense push)
    3   a queue of a few vertices that the host's bottom-up left

level.py has their encoding. They also give the last direction, by which Beamer's rule decides.

A record is a row for a level, or for several tiny ones: the state before it, the choice, the
measurements, then the predicted seconds of each candidate, then the deciding seconds (cost-to-go
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
    PLACE,
    REPRESENTATION,
    LEVEL,
    VISITED_INDEX,  # which of two bitmaps has all visited vertices
    QUEUE_INDEX,  # which of two queues has the frontier
    CHOSEN,  # candidate chosen for the next level, -1 for none
    FOUND_LISTED,  # length of the found list (all vertices that the host found), -1 without one
    UNVISITED_LISTED,  # length of the unvisited list (may hold visited vertices), -1 without one
    TARGET,  # 1 plus the vertex that ends the search, 0 without one, -1 once it is found
    MERGED,  # levels that share the record of an earlier one, -1 if each level has its own
) = range(15)
STATE_SIZE = 15
FOUND_TARGET = -1

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
    "unsteadiness",
    "scattered_finds",
    "unvisited_words",
    "opened_lists",
)
"""Columns of a level for a speed model, in the order in which compiled code fills them."""

MIGRATION_COLUMNS = COLUMNS[:3]
"""Columns for starting, switching and converting."""

LEAST_SHARED_EDGES = 512
"""Least edges of a frontier that several of the host's threads, or all work-groups of a device,
expand top-down. A level with fewer is *small*: other kernels run it, and a model has a formula of
its own for it."""

SMALL, LARGE = 0, 1
"""Sizes of levels (`size_of`)."""

TINY_EDGES = 64
"""A frontier with fewer edges is tiny: a level of it takes about as long as its record and the
choice of its strategy. So the host runs tiny levels in a row as one (`run_tiny_levels`)."""

LEAST_DENSE_PUSH_EDGES = 8192
"""Least edges of a dense-push frontier. Small graphs, which have one thread, rarely reach it."""

DENSE_PUSH_SHARE = 10
"""A dense-push frontier's edges times this exceed the number of vertices."""

DENSE_PUSH_CROWD = 4
"""A dense-push frontier has fewer edges than the unvisited vertices times this."""

HOST, DEVICE, NOWHERE = 0, 1, -1
QUEUE, BITMAP, DENSE_PUSH_BITMAP, BOTTOM_UP_QUEUE = 0, 1, 2, 3

RECORD_STATE = LEVEL + 1
"""Columns of a record that equal the state's first items: FRONTIER_VERTICES to LEVEL."""

(
    STRATEGY,
    SECONDS,
    TRANSFER_SECONDS,
    SELECT_SECONDS,
    FOUND_VERTICES,
    EDGES_SCANNED,  # neighbours that bottom-up read, -1 if not counted
    CHOSEN_AT,  # row in which the selector made this choice; later levels may keep it
    WITHIN,  # later levels keep the choice while their ratio to this one is within this
    FURTHER_LEVELS,  # tiny levels after this one that the row stands for, too
) = range(RECORD_STATE, RECORD_STATE + 9)
PREDICTED = FURTHER_LEVELS + 1
"""First column of the predictions; the totals follow them."""

_SHARED = (
    "FRONTIER_VERTICES FRONTIER_EDGES UNVISITED_VERTICES UNVISITED_EDGES PREVIOUS_EDGES "
    "REPRESENTATION LEVEL VISITED_INDEX QUEUE_INDEX CHOSEN BITMAP RECORD_STATE"
)
OPENCL = {
    **{name: int(globals()[name]) for name in _SHARED.split()},
    "NUM_COLUMNS": len(COLUMNS),
    "MIGRATION_COLUMNS": len(MIGRATION_COLUMNS),
}
"""Numbers that OpenCL code shares (built_programs.py)."""


def advance(state: StateArray, representation: int, found: int, edges: int) -> None:
    """Advance a state by a level that left its frontier in this representation.

    Plain Python; the host's level loop also compiles it.
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


def row_of(state: StateArray) -> int:
    """Return the row of records for the next level. Plain Python, also compiled."""
    return int(state[LEVEL] - max(state[MERGED], 0.0))


def has_queue(state: StateArray) -> bool:
    """Tell whether the frontier of a state or record is a queue. Plain Python, also compiled."""
    return bool(state[REPRESENTATION] == QUEUE or state[REPRESENTATION] == BOTTOM_UP_QUEUE)


def was_bottom_up(state: StateArray) -> bool:
    """Tell whether the previous level was bottom-up. Plain Python, also compiled."""
    return bool(state[REPRESENTATION] == BITMAP or state[REPRESENTATION] == BOTTOM_UP_QUEUE)


def grows(state: StateArray) -> bool:
    """Tell whether the frontier has more edges than the one before. Plain Python, also compiled."""
    return bool(state[FRONTIER_EDGES] > state[PREVIOUS_EDGES])


def is_dense_push(num_vertices: float, frontier_edges: float, unvisited_vertices: float) -> bool:
    """Tell whether top-down on the host is a dense push, which claims no vertices (level_loop.py).

    It needs enough edges to pay for scanning all vertices for newly reached ones. It must not have
    many edges per unvisited vertex, since threads would write to the same ones. Plain Python, also
    compiled.
    """
    return (
        frontier_edges >= LEAST_DENSE_PUSH_EDGES
        and frontier_edges * DENSE_PUSH_SHARE > num_vertices
        and frontier_edges < DENSE_PUSH_CROWD * unvisited_vertices
    )


def size_of(frontier_edges: float) -> int:
    """Return the size of a level, SMALL or LARGE. Plain Python, also compiled."""
    return LARGE if frontier_edges >= LEAST_SHARED_EDGES else SMALL


def is_over(state: StateArray) -> bool:
    return bool(
        state[FRONTIER_EDGES] <= 0
        or state[UNVISITED_VERTICES] <= 0
        or state[TARGET] == FOUND_TARGET
    )


def record_width(candidates: int) -> int:
    return PREDICTED + 2 * candidates
