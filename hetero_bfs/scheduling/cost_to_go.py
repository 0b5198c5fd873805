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

from hetero_bfs.scheduling.columns import fill_columns, is_dense_push_level, size_of_level
from hetero_bfs.scheduling.policy import (
    DENSE_PUSHES,
    MOST_COST_TO_GO_ROWS,
    Policy,
    dot,
    share_left,
)
from hetero_bfs.scheduling.rehearsal import choosing_seconds, keeps_choice
from hetero_bfs.scheduling.schema import (
    FRONTIER_EDGES,
    UNVISITED_EDGES,
    UNVISITED_VERTICES,
)
from hetero_bfs.scheduling.transitions import leaves_queue, transition_seconds
from hetero_bfs.support.compiling import kernel


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


def sampled_levels(frontier_edges: npt.ArrayLike, most: int) -> list[int]:
    """Return the numbers of at most `most` levels, given the frontier's edges at each level.

    Half of them are spread evenly. The other half are where the frontier grows or shrinks, as in
    the core of a graph with long tails.
    """
    edges = np.maximum(np.asarray(frontier_edges, np.float64), 1.0)
    if edges.size <= most:
        return list(range(edges.size))
    change = np.abs(np.diff(np.log(edges)))
    passed = np.linspace(0.0, 1.0, edges.size)
    passed[1:] += np.cumsum(change) / max(float(change.sum()), 1e-9)
    wanted = np.linspace(0.0, passed[-1], most)
    kept: list[int] = np.unique(np.searchsorted(passed, wanted).clip(0, edges.size - 1)).tolist()
    return kept


@kernel(counted=False)
def costs_after(policy, num_vertices, reference, after):
    """Fill `after`, float64 (levels, candidates): least seconds after a level by each candidate."""
    columns, places, top_down = policy.work, policy.places, policy.top_down
    for level in range(reference.shape[0] - 1, 0, -1):
        state, before = reference[level], reference[level - 1]
        fill_columns(columns, num_vertices, state)
        weights = policy.weights[size_of_level(state[FRONTIER_EDGES])]
        keeps = keeps_choice(state, before)
        dense_push = is_dense_push_level(
            num_vertices, before[FRONTIER_EDGES], before[UNVISITED_VERTICES]
        )
        for last in range(places.size):
            is_queue = leaves_queue(
                top_down[last], policy.traits[last, DENSE_PUSHES] != 0, dense_push
            )
            least = np.inf
            for s in range(places.size):
                seconds = dot(weights[s], columns) + after[level, s]
                seconds += transition_seconds(policy, columns, places[last], is_queue, s)
                least = min(least, seconds)
            after[level - 1, last] = least + choosing_seconds(places[last], keeps)
