"""The reference search: one that tells what all searches of a graph are like."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.runtime.platform import Platform
from hetero_bfs.runtime.search import Search
from hetero_bfs.selection import schema
from hetero_bfs.selection.selectors import alpha_beta
from hetero_bfs.selection.strategies import available


def reference_source(platform: Platform) -> int:
    """Return a vertex of low degree beside the one of highest, as most search keys are.

    In a directed graph that may lead nowhere, so there it is the one of highest degree.
    """
    graph = platform.graph.graph
    hub = int(platform.graph.degree.argmax())
    neighbours = graph.indices[graph.indptr[hub] : graph.indptr[hub + 1]]
    if graph.directed or neighbours.size == 0:
        return hub
    return int(neighbours[platform.graph.degree[neighbours].argmin()])


def reference_states(platform: Platform) -> npt.NDArray[np.float64]:
    """Search once on the host; return the state before each level (cost_to_go.py's reference)."""
    if platform.graph.num_searched == 0:
        return np.empty((0, schema.RECORD_STATE))
    rule = alpha_beta(None, available(False))
    search = Search(platform, reference_source(platform), rule)
    search.run()
    return search.recording().records[:, : schema.RECORD_STATE].copy()


def has_high_diameter(states: npt.NDArray[np.float64]) -> bool:
    """Tell whether searches take many levels, from the states of `reference_states`.

    This alone decides by which formulas a model predicts, and what "auto" is. The order of the
    vertices says something else: which kernels of the host can run (`SearchGraph.is_local`).
    """
    return len(states) >= HIGH_DIAMETER_LEVELS
