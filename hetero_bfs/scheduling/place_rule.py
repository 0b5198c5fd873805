"""The rule by which a vertex program's run migrates to another place.

A run does not know how many iterations remain. Before each iteration it adds the seconds predicted
here, minus those at the other place, to a sum that never falls below 0. It migrates once the sum
exceeds the seconds of a migration (the ski-rental rule: Karlin et al. 1988, "Competitive snoopy
caching"). So a single large iteration moves a run to the device at once. Many small ones move it
back, a few do not.

place_costs.py describes `costs`. loop.cl does the same.
"""

from __future__ import annotations

from numba import njit

from hetero_bfs.scheduling.place_costs import (
    ALL_STATES,
    BITMAP,
    CHANGED_VERTEX,
    CHANGES_PER_EDGE,
    ITERATION_COST,
    LISTED_VERTEX,
    LOST,
    MIGRATION,
    NUM_CHANGED,
    OTHER,
    PULL_EDGE,
    PULL_MISS,
    PULL_VERTEX,
    PUSH_CHANGE,
    PUSH_EDGE,
    PUSH_VERTEX,
)
from hetero_bfs.support.compiling import kernel


@njit(inline="always")
def push_seconds(costs, place, senders, edges):
    of_edge = costs[place + PUSH_EDGE] + costs[CHANGES_PER_EDGE] * costs[place + PUSH_CHANGE]
    return senders * costs[place + PUSH_VERTEX] + edges * of_edge


@njit(inline="always")
def pull_seconds(costs, place, edges, receivers, searched, stored, has_identity):
    """Return the predicted seconds of a pull.

    `place` is 0 or OTHER. `edges` counts the active vertices' edges, `receivers` the expected
    receivers, `searched` the vertices with edges, `stored` all edges. Without an identity a pull
    ends with a vertex's first message, as in a random graph.
    """
    searched, stored = max(searched, 1), max(stored, 1)
    degree, share = stored / searched, min(edges / stored, 1.0)
    scans = receivers * degree
    if not has_identity:
        hit = min(max(edges, 1) / stored, 1.0)  # probability that a neighbour is active
        scans = receivers * min(degree, (1.0 - (1.0 - hit) ** degree) / hit)
    misses = scans * share * (1.0 - share)
    return (
        searched * costs[place + PULL_VERTEX]
        + scans * costs[place + PULL_EDGE]
        + misses * costs[place + PULL_MISS]
    )


@njit(inline="always")
def iteration_seconds(costs, place, direction, senders, edges, receivers, sizes, has_identity):
    """Return the predicted seconds of a push (1), a pull (2), or the faster one (0)."""
    pushed = push_seconds(costs, place, senders, edges)
    pulled = pull_seconds(costs, place, edges, receivers, sizes[0], sizes[1], has_identity)
    best = min(pushed, pulled)
    chosen = pushed if direction == 1 else (pulled if direction == 2 else best)
    return costs[place + ITERATION_COST] + chosen


@njit(inline="always")
def seconds_to_migrate(costs, active):
    states = min(costs[NUM_CHANGED] * costs[CHANGED_VERTEX], costs[ALL_STATES])
    return costs[MIGRATION] + states + min(active * costs[LISTED_VERTEX], costs[BITMAP])


@njit(inline="always")
def leaves(costs, direction, active, senders, edges, receivers, sizes, has_identity):
    """Add the next iteration's loss to LOST; tell whether to migrate before it."""
    here = iteration_seconds(costs, 0, direction, senders, edges, receivers, sizes, has_identity)
    there = iteration_seconds(
        costs, OTHER, direction, senders, edges, receivers, sizes, has_identity
    )
    costs[LOST] = max(costs[LOST] + here - there, 0.0)
    if costs[LOST] > seconds_to_migrate(costs, active):
        return True
    costs[NUM_CHANGED] += active
    return False


@kernel(counted=False)
def expect_iterations(costs, known, sizes, has_identity, seconds):
    """Write the predicted seconds of each iteration of a run; see `iteration_seconds`.

    Rows of `known` have senders, edges, receivers and changes per edge. `costs` keeps the last
    row's changes per edge.
    """
    for i in range(seconds.size):
        senders, edges, receivers, costs[CHANGES_PER_EDGE] = known[i]
        seconds[i] = iteration_seconds(costs, 0, 0, senders, edges, receivers, sizes, has_identity)
