"""NetworkX's eccentricities and diameter, without weights."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.networkx_backend.converted_graph import ConvertedGraph
from hetero_bfs.networkx_backend.engine_pool import levels_from, reach_of

_BATCH = 1024  # searches between two checks for unreached nodes
_UNBOUNDED = np.iinfo(np.int32).max // 2


def eccentricity(G: ConvertedGraph, v: Any = None, sp: None = None, weight: None = None) -> Any:
    """Return the eccentricity of node `v`, or a dict of eccentricities."""
    infinite = "Found infinite path length because the "
    infinite += "digraph is not strongly connected" if G.directed else "graph is not connected"
    if v is None and not G.directed:
        return dict(zip(G.nodes, _bounded(G, False, infinite).tolist(), strict=True))
    nodes = list(nx.Graph.nbunch_iter(G, v))
    numbers = np.array([G._adj[node] for node in nodes], np.int64)
    found: list[int] = []
    # A first batch of one source is mostly enough to find an unreached node.
    for batch in np.split(numbers, range(1, numbers.size, _BATCH)):
        reached, eccentricities = reach_of(G, batch)
        if (reached < len(G)).any():
            raise nx.NetworkXError(infinite)
        found += eccentricities.tolist()
    largest = dict(zip(nodes, found, strict=True))
    return largest[v] if v in G else largest


def diameter(
    G: ConvertedGraph, e: None = None, usebounds: bool = False, weight: None = None
) -> int:
    if G.directed or not len(G):
        return int(max(eccentricity(G).values()))
    if usebounds is True:
        infinite = "Cannot compute metric because graph is not connected."
    else:
        infinite = "Found infinite path length because the graph is not connected"
    return int(_bounded(G, True, infinite).max())


def _bounded(G: ConvertedGraph, largest_only: bool, infinite: str) -> npt.NDArray[np.int32]:
    """Return the eccentricities of an undirected graph.

    With `largest_only` they are lower bounds whose maximum is exact. Each search bounds all
    eccentricities by the triangle inequality. With a source s at distance d from v, the
    eccentricity of v is at most ecc(s) + d, and at least the larger of d and ecc(s) - d (Takes and
    Kosters, 2013, "Computing the eccentricity distribution of large graphs"). Sources alternate
    between the node of the largest upper bound and the node of the smallest lower bound.
    """
    n = len(G)
    degree = np.diff(G.successors.indptr)
    lower, upper = np.zeros(n, np.int32), np.full(n, _UNBOUNDED, np.int32)
    open_nodes, take_upper = np.arange(n), False
    while open_nodes.size:
        bound = upper[open_nodes] if take_upper else -lower[open_nodes]
        best = open_nodes[bound == bound.max()]
        source = int(best[degree[best].argmax()])
        take_upper = not take_upper
        level = levels_from(G, source, open_nodes.size)
        _check_all_reached(level, infinite)
        own = level.max()
        np.maximum(lower, np.maximum(level, own - level), out=lower)
        np.minimum(upper, own + level, out=upper)
        undecided = lower[open_nodes] < upper[open_nodes]
        if largest_only:
            undecided &= upper[open_nodes] > lower.max()
        open_nodes = open_nodes[undecided]
    return lower


def _check_all_reached(level: npt.NDArray[np.int32], message: str) -> None:
    if level.min() < 0:
        raise nx.NetworkXError(message)
