"""The reference search of a graph, which represents all of its searches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.platform import Platform
from hetero_bfs.algorithms.bfs.search import Search
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.selectors import alpha_beta
from hetero_bfs.scheduling.strategies import available


def reference_source(platform: Platform) -> int:
    """Return a typical source: the neighbour of lowest degree of the vertex of highest degree.

    In a directed graph that neighbour may have no out-edges. Then the vertex of highest degree is
    returned.
    """
    graph = platform.graph.graph
    hub = int(platform.graph.degree.argmax())
    neighbours = graph.indices[graph.indptr[hub] : graph.indptr[hub + 1]]
    if graph.directed or neighbours.size == 0:
        return hub
    return int(neighbours[platform.graph.degree[neighbours].argmin()])


def reference_states(platform: Platform) -> npt.NDArray[np.float64]:
    """Search once on the host; return the state before each level, as cost_to_go.py needs it."""
    if platform.graph.num_searched == 0:
        return np.empty((0, schema.RECORD_STATE))
    rule = alpha_beta(None, available(False))
    search = Search(platform, reference_source(platform), rule)
    search.run()
    return search.recording().records[:, : schema.RECORD_STATE].copy()


def has_high_diameter(states: npt.NDArray[np.float64]) -> bool:
    """Tell whether searches take many levels, given the states of `reference_states`.

    This decides the model's formulas and the selector behind "auto". It does not decide which
    kernels of the host can run; the order of the vertices does (`SearchGraph.is_local`).
    """
    return len(states) >= HIGH_DIAMETER_LEVELS
