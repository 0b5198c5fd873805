"""Finds the best two thresholds of Beamer's rule for a graph, by a model.

The levels of a search do not depend on the strategies. So one reference search (see cost_to_go.py)
shows the choices of any pair of thresholds, and the model predicts their seconds. Searches whose
frontiers have other sizes count, too (rehearsal.py). A search has few levels; many pairs make the
same choices. Among pairs of nearly equal cost the alpha nearest to a usual value is taken, since it
suits other sources best. Then the beta is taken that returns to top-down the latest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import fill_columns, is_dense_push_level, size_of_level
from hetero_bfs.scheduling.policy import DENSE_PUSHES, Policy, dot
from hetero_bfs.scheduling.transitions import leaves_queue, transition_seconds
from hetero_bfs.support.compiling import kernel

_USUAL_ALPHA = 8.0
_ALPHAS = np.append(0.0, 2.0 ** np.arange(-2.0, 6.5, 0.5))  # the first means: never bottom-up
_BETAS = np.array([8.0, 18.0, 64.0, 256.0, 2.0**32])  # the last means: never top-down again
_NEGLIGIBLE = 0.01  # relative difference of predicted costs


class Rule(NamedTuple):
    """Beamer's rule: numbers of the candidates for top-down and bottom-up, and the thresholds."""

    top_down: int
    bottom_up: int
    alpha: float
    beta: float


def find_rule(
    policy: Policy,
    num_vertices: int,
    searches: Sequence[npt.NDArray[np.float64]],
    pairs: Sequence[tuple[int, int]],
) -> Rule:
    """Return the rule of least predicted cost in all of these searches.

    `policy` counts seconds or costs under an objective. Each search, float64 (levels,
    RECORD_STATE), has the state before each level. `pairs` are candidates for top-down and
    bottom-up on one device.
    """
    costs = np.zeros((len(pairs), _ALPHAS.size, _BETAS.size))
    chosen = np.array(pairs, np.int64)
    for search in searches:
        bottom_up = np.zeros(costs.shape, np.bool_)
        _add_up(policy, num_vertices, search, chosen, _ALPHAS, _BETAS, bottom_up, costs)
    pair = int(costs.min(axis=(1, 2)).argmin())
    alike = np.argwhere(costs[pair] <= (1.0 + _NEGLIGIBLE) * costs[pair].min())
    distance = np.abs(np.log(np.maximum(_ALPHAS, 1e-9) / _USUAL_ALPHA))
    a, b = min(alike.tolist(), key=lambda places: (distance[places[0]], -places[1]))
    return Rule(*pairs[pair], float(_ALPHAS[a]), float(_BETAS[b]))


@kernel(counted=False)
def _add_up(policy, num_vertices, reference, pairs, alphas, betas, bottom_up, costs):
    """Add every rule's cost of all levels to `costs`, float64 (pairs, alphas, betas).

    `bottom_up`, bool of the same shape, has each rule's last direction, False at first.
    """
    columns = policy.work
    was_dense_push = False
    for level in range(reference.shape[0]):
        state = reference[level]
        fill_columns(columns, num_vertices, state)
        weights = policy.weights[size_of_level(state[schema.FRONTIER_EDGES])]
        for p in range(pairs.shape[0]):
            first, second = pairs[p, 0], pairs[p, 1]
            kind = policy.places[first] if level else schema.NOWHERE
            down = dot(weights[first], columns)
            from_queue = down + transition_seconds(policy, columns, kind, True, first)
            from_bitmap = down + transition_seconds(policy, columns, kind, False, first)
            up = dot(weights[second], columns)
            up += transition_seconds(policy, columns, kind, True, second)  # the same from a bitmap
            stays_queue = leaves_queue(
                True, policy.traits[first, DENSE_PUSHES] != 0, was_dense_push
            )
            for a in range(alphas.size):
                rises = state[schema.FRONTIER_EDGES] * alphas[a] > state[schema.UNVISITED_EDGES]
                for b in range(betas.size):
                    was = bottom_up[p, a, b]
                    stays = state[schema.FRONTIER_VERTICES] * betas[b] >= num_vertices
                    now = stays if was else rises
                    down = from_queue if stays_queue and not was else from_bitmap
                    costs[p, a, b] += up if now else down
                    bottom_up[p, a, b] = now
        was_dense_push = is_dense_push_level(
            num_vertices, state[schema.FRONTIER_EDGES], state[schema.UNVISITED_VERTICES]
        )
