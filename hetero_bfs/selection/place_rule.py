"""When a vertex program's run migrates to another place.

A run does not know how many iterations are to come. Before each of them it adds up what it loses by
staying: the seconds expected here less those expected there, never less than 0 in all. It migrates
when the sum, with the next iteration, exceeds the seconds of the way. (To rent or to buy: Karlin et
al. 1988, "Competitive snoopy caching".) So a single large iteration takes it to the device at once,
and a long tail of small ones brings it back, but a few of them do not.

`costs` are those of place_costs.py. loop.cl is the twin.
"""

from __future__ import annotations

from numba import njit

from hetero_bfs.selection.place_costs import (
    ALL_STATES,
    BITMAP,
    CHANGED_VERTEX,
    CHANGES_PER_EDGE,
    ITERATION_COST,
    LISTED_VERTEX,
    LOST,
    NUM_CHANGED,
    OTHER,
    PULL_EDGE,
    PULL_MISS,
    PULL_VERTEX,
    PUSH_CHANGE,
    PUSH_EDGE,
    PUSH_VERTEX,
    WAY,
)
from hetero_bfs.support.compiling import kernel


@njit(inline="always")
def push_seconds(costs, place, senders, edges):
    """Return the seconds expected of a push by listed vertices along so many edges."""
    of_edge = costs[place + PUSH_EDGE] + costs[CHANGES_PER_EDGE] * costs[place + PUSH_CHANGE]
    return senders * costs[place + PUSH_VERTEX] + edges * of_edge


@njit(inline="always")
def pull_seconds(costs, place, edges, receivers, searched, stored, has_identity):
    """Return the seconds expected of a pull.

    Parameters
    ----------
    costs : float array
    place : int
        0, or OTHER.
    edges, receivers : float
        Edges of the active vertices, and vertices that are expected to receive.
    searched, stored : int
        Vertices with edges, and edges.
    has_identity : bool
        If not, a pull ends with a vertex's first message, as in a random graph.
    """
    searched, stored = max(searched, 1), max(stored, 1)
    degree, share = stored / searched, min(edges / stored, 1.0)
    scans = receivers * degree
    if not has_identity:
        hit = min(max(edges, 1) / stored, 1.0)  # chance that an entry leads to an active vertex
        scans = receivers * min(degree, (1.0 - (1.0 - hit) ** degree) / hit)
    misses = scans * share * (1.0 - share)
    return (
        searched * costs[place + PULL_VERTEX]
        + scans * costs[place + PULL_EDGE]
        + misses * costs[place + PULL_MISS]
    )


@njit(inline="always")
def iteration_seconds(costs, place, direction, senders, edges, receivers, sizes, has_identity):
    """Return the seconds expected of an iteration: in the direction given, or the better one."""
    pushed = push_seconds(costs, place, senders, edges)
    pulled = pull_seconds(costs, place, edges, receivers, sizes[0], sizes[1], has_identity)
    best = min(pushed, pulled)
    chosen = pushed if direction == 1 else (pulled if direction == 2 else best)
    return costs[place + ITERATION_COST] + chosen


@njit(inline="always")
def way_seconds(costs, active):
    """Return the seconds expected of the way to the other place."""
    states = min(costs[NUM_CHANGED] * costs[CHANGED_VERTEX], costs[ALL_STATES])
    return costs[WAY] + states + min(active * costs[LISTED_VERTEX], costs[BITMAP])


@njit(inline="always")
def leaves(costs, direction, active, senders, edges, receivers, sizes, has_identity):
    """Tell whether to migrate before the next iteration; if not, take it into account."""
    here = iteration_seconds(costs, 0, direction, senders, edges, receivers, sizes, has_identity)
    there = iteration_seconds(
        costs, OTHER, direction, senders, edges, receivers, sizes, has_identity
    )
    costs[LOST] = max(costs[LOST] + here - there, 0.0)
    if costs[LOST] > way_seconds(costs, active):
        return True
    costs[NUM_CHANGED] += active
    return False


@kernel(counted=False)
def expect_iterations(costs, known, sizes, has_identity, seconds):
    """Write the seconds expected of each iteration of a run; see `iteration_seconds`.

    Rows of `known` have senders, edges, receivers and changes per edge; `costs` are left with the
    last row's.
    """
    for i in range(seconds.size):
        senders, edges, receivers, costs[CHANGES_PER_EDGE] = known[i]
        seconds[i] = iteration_seconds(costs, 0, 0, senders, edges, receivers, sizes, has_identity)
