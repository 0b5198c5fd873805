"""Plans by a graph's reference search: the cost-to-go table, thresholds, and a policy's cost.

The levels of a search do not depend on the strategies. So the states of one reference search show
the choices of a policy (policy.py) at each level, and a model predicts their seconds. A reference
search is the state before each level (schema.py), float64 (levels, RECORD_STATE). Searches from
other sources have frontiers of other sizes. A threshold that suits one of them may be far off for
the next. So policies are compared on searches like the reference, too.

The cost-to-go table has the least predicted seconds from each level to the end. Going backwards
from the last level gives the exact minimum. A search of many levels keeps only a sample of rows.

Many pairs of thresholds of Beamer's rule make the same choices. Among pairs of nearly equal cost
the alpha nearest to a usual value is taken, since it suits other sources best. Then the beta is
taken that returns to top-down the latest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.columns import (
    dot,
    fill_columns,
    is_dense_push_level,
    leaves_queue,
    share_left,
    size_of_level,
    transition_seconds,
)
from hetero_bfs.scheduling.policy import (
    DENSE_PUSHES,
    LEAST_ALIKE,
    MODEL,
    MOST_COST_TO_GO_ROWS,
    Policy,
    are_near,
    choose,
)
from hetero_bfs.scheduling.schema import has_queue
from hetero_bfs.support.compiling import kernel

ASKING_SECONDS = (2e-7, 1.5e-6)
"""Seconds of one evaluation of a model, on the host and on a device."""

KEEPING_SECONDS = (1e-8, 1.2e-7)
"""Seconds of finding out that a choice can be kept, on the host and on a device."""

_LATER = 1.0 + 1.0 / 32.0
"""A later transition counts this many times. If it counted once, a search whose frontier is larger
than the reference's would expect a cheaper migration at the next level, again and again."""

_MOST_ALIKE_SEARCHES = 7
"""Searches whose levels lie between the reference's. Where its frontier grows a
thousandfold, theirs have all sizes: each is at most 2.4 times as large as the one before."""

_MOST_REHEARSED = 64
"""Most levels of a search that are rehearsed. In a longer one each level stands for several."""

COUNT = schema.RECORD_STATE
"""Column of a level to rehearse, after its state: the number of levels that it stands for."""

_SIZES = (
    (schema.FRONTIER_VERTICES, schema.UNVISITED_VERTICES),
    (schema.FRONTIER_EDGES, schema.UNVISITED_EDGES),
)

_USUAL_ALPHA = 8.0
_ALPHAS = np.append(0.0, 2.0 ** np.arange(-2.0, 6.5, 0.5))  # the first means: never bottom-up
_BETAS = np.array([8.0, 18.0, 64.0, 256.0, 2.0**32])  # the last means: never top-down again
_NEGLIGIBLE = 0.01  # relative difference of predicted costs


def with_alike(reference: npt.NDArray[np.float64]) -> list[npt.NDArray[np.float64]]:
    """Return a reference search, and searches whose levels lie between two of its levels.

    A frontier of a core grows a hundredfold from one level to the next. From another source it may
    have any size between the two. The ratio of visited to unvisited vertices grows evenly between
    two levels, and that of edges; a frontier is the part that a level adds.

    reference : float64 (levels, RECORD_STATE), the state before each level

    Each result is float64 (at most `_MOST_REHEARSED`, RECORD_STATE + 1), with the column `COUNT`.
    """
    kept = sampled_levels(reference[:, schema.FRONTIER_EDGES], _MOST_REHEARSED)
    counts = np.diff(np.append(kept, len(reference)))
    many = range(1, 1 + (_MOST_ALIKE_SEARCHES if len(reference) > 2 else 0))
    found = [_between(reference, number / (1 + _MOST_ALIKE_SEARCHES)) for number in many]
    return [np.column_stack((search[kept], counts)) for search in (reference, *found)]


def _between(reference: npt.NDArray[np.float64], phase: float) -> npt.NDArray[np.float64]:
    """Return a search whose levels lie between the reference's: at 0 they are the same."""
    other = reference.copy()
    for frontier, unvisited in _SIZES:
        left = np.maximum(reference[:, unvisited], 0.5)
        total = reference[0, frontier] + reference[0, unvisited]
        visited = np.maximum(total - left, 0.5)
        grown = np.log(visited / left)
        grown[1:-1] = (1.0 - phase) * grown[1:-1] + phase * grown[2:]
        other[1:-1, unvisited] = total / (1.0 + np.exp(grown[1:-1]))
        other[1:, frontier] = np.maximum(-np.diff(other[:, unvisited]), 1.0)
    other[2:, schema.PREVIOUS_EDGES] = other[1:-1, schema.FRONTIER_EDGES]
    return other


def _check_columns(search: npt.NDArray[np.float64]) -> None:
    """Compiled code would read beyond the rows of a search that is not one of `with_alike`."""
    assert search.shape[1] == COUNT + 1, "a search to rehearse has the column COUNT"


_has_queue = njit(inline="always")(has_queue)
_grows = njit(inline="always")(schema.grows)


@njit(inline="always")
def _leaves_queue(policy, num_vertices, level, s):
    dense_push = is_dense_push_level(
        num_vertices, level[schema.FRONTIER_EDGES], level[schema.UNVISITED_VERTICES]
    )
    return leaves_queue(policy.top_down[s], policy.traits[s, DENSE_PUSHES] != 0, dense_push)


@njit(inline="always")
def _keeps_choice(level, before):
    """Tell whether a search very likely keeps the choice of the level before, without asking."""
    same_size = size_of_level(level[schema.FRONTIER_EDGES]) == size_of_level(
        before[schema.FRONTIER_EDGES]
    )
    return same_size and are_near(level, before, LEAST_ALIKE)


@njit(inline="always")
def _choosing_seconds(place, keeps, levels):
    """Return the seconds of choosing for levels of one kind: only the first may ask the model."""
    there = 1 if place > schema.HOST else 0
    first = KEEPING_SECONDS[there] if keeps else ASKING_SECONDS[there]
    return first + (levels - 1.0) * KEEPING_SECONDS[there]


def rehearse(
    policy: Policy,
    costs: Policy,
    num_vertices: int,
    num_edges: int,
    reference: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.int64], float]:
    """Return a policy's choices in a search, int64 (levels,), and the predicted cost.

    `reference` is one of the searches of `with_alike`. `policy` chooses. `costs` predicts, with the
    same candidates and rule MODEL. The cost is the seconds of all levels and migrations, and of
    choosing.
    """
    _check_columns(reference)
    chosen = np.zeros(len(reference), np.int64)
    predicted = np.zeros((2, policy.places.size))
    seconds = _rehearse(policy, costs, num_vertices, num_edges, reference.copy(), predicted, chosen)
    return chosen, float(seconds)


@kernel(counted=False)
def _rehearse(policy, costs, num_vertices, num_edges, levels, predicted, chosen):
    """Fill `chosen`; place and representation of `levels` are replaced."""
    columns = costs.work
    place, representation = schema.NOWHERE, schema.QUEUE
    total = 0.0
    for i in range(levels.shape[0]):
        state = levels[i]
        state[schema.PLACE], state[schema.REPRESENTATION] = place, representation
        keeps = i > 0 and _keeps_choice(state, levels[i - 1])
        if keeps and policy.rule == MODEL:
            s = chosen[i - 1]
        else:
            s = choose(policy, num_vertices, num_edges, state, predicted[0], predicted[1])
        if policy.rule == MODEL:
            total += _choosing_seconds(place, keeps, state[COUNT])
        chosen[i] = s
        fill_columns(columns, num_vertices, state)
        size = size_of_level(state[schema.FRONTIER_EDGES])
        total += state[COUNT] * dot(costs.weights[size, s], columns)
        total += transition_seconds(costs, columns, place, _has_queue(state), s)
        place = policy.places[s]
        if _leaves_queue(policy, num_vertices, state, s):
            representation = schema.QUEUE
        else:
            representation = schema.DENSE_PUSH_BITMAP if policy.top_down[s] else schema.BITMAP
    return total


def with_cost_to_go(
    policy: Policy, num_vertices: int, num_edges: int, reference: npt.NDArray[np.float64]
) -> Policy:
    """Return the policy with `cost_to_go` filled by its predictions for a reference search."""
    after = np.zeros((len(reference), policy.places.size))
    _costs_after(policy, num_vertices, reference, after)
    kept = sampled_levels(reference[:, schema.FRONTIER_EDGES], MOST_COST_TO_GO_ROWS)
    unvisited = reference[kept, schema.UNVISITED_EDGES].tolist()
    left = [share_left.py_func(edges, num_edges) for edges in unvisited]  # only inlined if compiled
    return policy._replace(cost_to_go=np.column_stack((left, after[kept])))


def sampled_levels(frontier_edges: npt.ArrayLike, most: int) -> list[int]:
    """Return the numbers of at most `most` levels, given the frontier's edges at each level.

    A third of them is spread evenly. A third is where the frontier grows or shrinks, as in the core
    of a graph with long tails. A third is where few edges are left: near the end of a tail.
    """
    edges = np.maximum(np.asarray(frontier_edges, np.float64), 1.0)
    if edges.size <= most:
        return list(range(edges.size))
    passed = np.linspace(0.0, 1.0, edges.size)
    for numbers in (edges, np.cumsum(edges[::-1])[::-1]):
        change = np.abs(np.diff(np.log(numbers)))
        passed[1:] += np.cumsum(change) / max(float(change.sum()), 1e-9)
    wanted = np.linspace(0.0, passed[-1], most)
    kept: list[int] = np.unique(np.searchsorted(passed, wanted).clip(0, edges.size - 1)).tolist()
    return kept


@kernel(counted=False)
def _costs_after(policy, num_vertices, reference, after):
    """Fill `after`, float64 (levels, candidates): least seconds after a level by each candidate."""
    columns, places = policy.work, policy.places
    for level in range(reference.shape[0] - 1, 0, -1):
        state, before = reference[level], reference[level - 1]
        fill_columns(columns, num_vertices, state)
        weights = policy.weights[size_of_level(state[schema.FRONTIER_EDGES])]
        keeps = _keeps_choice(state, before)
        for last in range(places.size):
            is_queue = _leaves_queue(policy, num_vertices, before, last)
            least = np.inf
            for s in range(places.size):
                move = transition_seconds(policy, columns, places[last], is_queue, s)
                seconds = dot(weights[s], columns) + _LATER * move + after[level, s]
                least = min(least, seconds)
            after[level - 1, last] = least + _choosing_seconds(places[last], keeps, 1.0)


Rule = tuple[int, int, float, float]
"""Beamer's rule: numbers of the candidates for top-down and bottom-up, and the thresholds."""


def find_rule(
    policy: Policy,
    num_vertices: int,
    searches: Sequence[npt.NDArray[np.float64]],
    pairs: Sequence[tuple[int, int]],
) -> tuple[Rule, npt.NDArray[np.float64]]:
    """Return the rule of least predicted cost in all of these searches, and each pair's least cost.

    `searches` are from `with_alike`. `policy` predicts seconds. `pairs` are candidates for
    top-down and bottom-up on one device.
    """
    costs = np.zeros((len(pairs), _ALPHAS.size, _BETAS.size))
    chosen = np.array(pairs, np.int64)
    for search in searches:
        _check_columns(search)
        bottom_up = np.zeros(costs.shape, np.bool_)
        _add_up(policy, num_vertices, search, chosen, _ALPHAS, _BETAS, bottom_up, costs)
    pair = int(costs.min(axis=(1, 2)).argmin())
    alike = np.argwhere(costs[pair] <= (1.0 + _NEGLIGIBLE) * costs[pair].min())
    distance = np.abs(np.log(np.maximum(_ALPHAS, 1e-9) / _USUAL_ALPHA))
    a, b = min(alike.tolist(), key=lambda places: (distance[places[0]], -places[1]))
    return (*pairs[pair], float(_ALPHAS[a]), float(_BETAS[b])), costs.min(axis=(1, 2))


@kernel(counted=False)
def _add_up(policy, num_vertices, reference, pairs, alphas, betas, bottom_up, costs):
    """Add every rule's cost of all levels to `costs`, float64 (pairs, alphas, betas).

    `bottom_up`, bool of the same shape, has each rule's last direction, False at first.
    """
    columns = policy.work
    for level in range(reference.shape[0]):
        state, before = reference[level], reference[max(level - 1, 0)]
        fill_columns(columns, num_vertices, state)
        weights = policy.weights[size_of_level(state[schema.FRONTIER_EDGES])]
        for p in range(pairs.shape[0]):
            first, second = pairs[p, 0], pairs[p, 1]
            kind = policy.places[first] if level else schema.NOWHERE
            down = state[COUNT] * dot(weights[first], columns)
            from_queue = down + transition_seconds(policy, columns, kind, True, first)
            from_bitmap = down + transition_seconds(policy, columns, kind, False, first)
            up = state[COUNT] * dot(weights[second], columns)
            up += transition_seconds(policy, columns, kind, True, second)  # the same from a bitmap
            stays_queue = _leaves_queue(policy, num_vertices, before, first)
            may_rise = _grows(state)
            for a in range(alphas.size):
                scaled = state[schema.FRONTIER_EDGES] * alphas[a]
                rises = may_rise and scaled > state[schema.UNVISITED_EDGES]
                for b in range(betas.size):
                    was = bottom_up[p, a, b]
                    stays = state[schema.FRONTIER_VERTICES] * betas[b] >= num_vertices
                    now = stays if was else rises
                    down = from_queue if stays_queue and not was else from_bitmap
                    costs[p, a, b] += up if now else down
                    bottom_up[p, a, b] = now
