"""Contracts the chains of a graph: paths of vertices with one or two edges; kernels/chains.py.

Most vertices of a road network are in chains. Weights are integers, so the sum of a chain does not
depend on the order of its additions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.weighted_lists import ByWeight, Plan, WeightedLists, planned

_LEAST_EDGES = 1 << 15  # stored edges below which the passes before and after cost too much
_LEAST_SHARE = 0.5  # of the vertices have one edge or two


class Core:
    """The adjacency of a core, and of an extra last vertex from which a search starts.

    That vertex has an edge to each end of the source's chain. No edge leads to it, so the adjacency
    is directed. Searches relax all edges of a vertex and need no transpose.

    `numbers`, `ends` and `along` are the arrays `core`, `ends` and `along` of kernels/chains.py.
    """

    def __init__(
        self,
        numbers: npt.NDArray[np.uint32],
        ends: npt.NDArray[np.uint32],
        along: npt.NDArray[np.int32],
        forward: ByWeight,
        plan: Plan,
        distance_dtypes: list[np.dtype[Any]],
    ) -> None:
        self.numbers, self.ends, self.along = numbers, ends, along
        self.forward, self.plan, self.distance_dtypes = forward, plan, distance_dtypes
        self.backward, self.backward_order = ByWeight(*forward), np.zeros(1, np.uint32)
        self.num_vertices, self.num_stored_edges = forward.indptr.size - 1, forward.neighbours.size

    def start_from(self, starts: npt.NDArray[np.int64]) -> int:
        """Give the last vertex edges to two core vertices; `starts` has rows (vertex, distance)."""
        nearest_first = starts[np.argsort(starts[:, 1])]
        self.forward.neighbours[-2:], self.forward.weights[-2:] = nearest_first.T
        return self.num_vertices - 1


def contracted(lists: WeightedLists) -> Core | None:
    """Return the core of a graph; None if chains are few, or a chain's weight exceeds int32."""
    if not _is_of_chains(lists):
        return None
    from hetero_bfs.algorithms.sssp.kernels.chains import contract
    from hetero_bfs.graph.kernels.by_weight import sort_by_weight

    n, degree = lists.num_vertices, np.diff(lists.forward.indptr)
    most = int(degree[degree > 2].sum()) + 2
    numbers, ends = np.full(n, NO_VERTEX, np.uint32), np.full((n, 2), NO_VERTEX, np.uint32)
    along, indptr = np.zeros((n, 2), np.int32), np.zeros(n + 2, np.int64)
    made = indptr, np.zeros(most, np.uint32), np.zeros(most, np.int32)
    vertices, entries, heaviest = contract(tuple(lists.forward), numbers, ends, along, made)
    total = float(made[2].sum(dtype=np.float64))
    plan = planned(lists.weight_dtype, total, entries, entries, vertices)
    if heaviest >= np.iinfo(np.int32).max or not plan.is_full:
        return None
    indptr = indptr[: vertices + 2].copy()
    indptr[-1] = entries + 2
    forward = sort_by_weight(indptr, made[1][: entries + 2], made[2][: entries + 2])
    core = ByWeight(indptr, *forward)
    return Core(numbers, ends, along, core, plan, lists.distance_dtypes)


def _is_of_chains(lists: WeightedLists) -> bool:
    graph = lists.graph.graph
    if graph.directed or graph.num_stored_edges < _LEAST_EDGES or not lists.plan.is_full:
        return False
    few = int(np.count_nonzero(np.diff(graph.indptr) <= 2))
    is_int32 = bool(lists.distance_dtypes[0] == np.int32)
    return is_int32 and few >= _LEAST_SHARE * lists.num_vertices
