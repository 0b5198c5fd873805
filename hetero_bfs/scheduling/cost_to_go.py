"""The cost-to-go table: least predicted seconds from each level of a search to its end, compiled.

Searches of one graph have similar levels, whatever the source, so one reference search stands for
all. Its `reference` holds the state before each level (schema.py), float64 (levels, RECORD_STATE).
A policy (policy.py) predicts the seconds of each level and migration. Going backwards from the last
level gives the exact minimum of the predicted seconds. A search of many levels keeps only a sample
of the table's rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling.columns import fill_columns, is_dense_push_level
from hetero_bfs.scheduling.policy import DENSE_PUSHES, MOST_COST_TO_GO_ROWS, Policy, dot, share_left
from hetero_bfs.scheduling.schema import FRONTIER_EDGES, UNVISITED_EDGES, UNVISITED_VERTICES
from hetero_bfs.scheduling.transitions import leaves_queue, transition_seconds
from hetero_bfs.support.compiling import kernel

_FIRST_LEVELS = 8  # a sample has all of them, since a search changes fastest there
_ROUNDING = 1e-9  # more than the error of a sum of shares


def with_cost_to_go(
    policy: Policy, num_vertices: int, num_edges: int, reference: npt.NDArray[np.float64]
) -> Policy:
    """Return the policy with `cost_to_go` filled by its predictions for a reference search."""
    levels = reference.shape[0]
    after = np.zeros((levels, policy.places.size))
    costs_after(policy, num_vertices, reference, after)
    kept = sampled_levels(reference[:, FRONTIER_EDGES], MOST_COST_TO_GO_ROWS)
    unvisited = reference[kept, UNVISITED_EDGES].tolist()
    left = [share_left.py_func(edges, num_edges) for edges in unvisited]  # only inlined if compiled
    return policy._replace(cost_to_go=np.column_stack((left, after[kept])))


def sampled_levels(sizes: npt.NDArray[np.float64], most: int) -> list[int]:
    """Return the numbers of at most `most` levels, in order: the first few and the last among them.

    `sizes` has the frontier edges of each level. Half of the other levels are spread evenly. The
    other half are drawn towards levels that differ most from their neighbours, as a core does
    between two tails.
    """
    if sizes.size <= most:
        return list(range(sizes.size))
    changes = np.abs(np.diff(np.log2(sizes + 1.0), append=0.0))
    shares = (changes[:-1] + changes[1:])[_FIRST_LEVELS - 1 :]
    shares = shares / max(shares.sum(), 1.0) + 1.0 / shares.size
    wanted = most - _FIRST_LEVELS
    falling = np.sort(shares)[::-1]
    left = falling[::-1].cumsum()[::-1]
    free = wanted - np.arange(falling.size)
    certain = int(np.argmax(free * falling <= left))  # levels whose share is more than one sample
    samples = np.minimum(shares * (free[certain] / left[certain]), 1.0).cumsum()
    samples[-1] = wanted
    chosen = np.flatnonzero(np.diff(np.floor(samples + _ROUNDING), prepend=0.0))
    return [*range(_FIRST_LEVELS), *(chosen + _FIRST_LEVELS).tolist()]


@kernel(counted=False)
def costs_after(policy, num_vertices, reference, after):
    """Fill `after`, float64 (levels, candidates): least seconds after a level by each candidate."""
    columns, places, top_down = policy.work, policy.places, policy.top_down
    for level in range(reference.shape[0] - 1, 0, -1):
        fill_columns(columns, num_vertices, reference[level])
        before = reference[level - 1]
        dense_push = is_dense_push_level(
            num_vertices, before[FRONTIER_EDGES], before[UNVISITED_VERTICES]
        )
        for last in range(places.size):
            is_queue = leaves_queue(
                top_down[last], policy.traits[last, DENSE_PUSHES] != 0, dense_push
            )
            least = np.inf
            for s in range(places.size):
                seconds = dot(policy.weights[s], columns) + after[level, s]
                seconds += transition_seconds(policy, columns, places[last], is_queue, s)
                least = min(least, seconds)
            after[level - 1, last] = least
