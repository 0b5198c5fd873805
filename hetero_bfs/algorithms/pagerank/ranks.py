"""A rank's part of a graph for weighted PageRank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.pagerank.lists import scaled_lists, sum_weights, sums_fit
from hetero_bfs.graph.weights import refuse_negative
from hetero_bfs.ranks.partition import RankGraph


def weighted_part(graph: RankGraph) -> tuple[RankGraph, npt.NDArray[np.float64]]:
    """Return a rank's part, and the sum of each own vertex's weights.

    The weights are scaled if their sums are very large or small. The sums, float64 (num_vertices,),
    are by old ids, and 0 for vertices of other ranks.

    Raises `GraphError` if the graph has no weights, or this rank has one that is negative or
    infinite.
    """
    names = graph.relabelling.old_of_new
    refuse_negative(graph.graph, names, "weighted ranks", are_finite=True)
    sums = sum_weights(graph.graph)
    if not sums_fit(sums):
        graph = replace(graph, graph=scaled_lists(graph.graph))
        sums = sum_weights(graph.graph)
    given = np.zeros(graph.num_vertices)
    given[names[: sums.size]] = sums
    return graph, given
