"""NetworkX's functions of shortest paths with weights from one source."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.sssp.serial import HeapSearch, search_by_weight
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.networkx_backend.conversion import ConvertedGraph
from hetero_bfs.networkx_backend.engine_pool import distances_from

Lengths = dict[Any, float]
Paths = dict[Any, list[Any]]


def single_source_dijkstra(
    G: ConvertedGraph,
    source: Any,
    target: Any = None,
    cutoff: float | None = None,
    weight: Any = "weight",
) -> tuple[Any, Any]:
    """NetworkX's paths, in NetworkX's order."""
    start = _known(G, source)
    if target == source:
        return 0, [target]
    end = None if target is None else G.id_of(target)
    search = _search(G, start, end, cutoff, weight)
    if target is None:
        return _lengths(G, search.distance, search.order, weight), _paths(G, search)
    if end is None or search.parent[end] == NO_VERTEX:
        raise nx.NetworkXNoPath(f"No path to {target}.")
    path = [end]
    while path[-1] != start:
        path.append(int(search.parent[path[-1]]))
    [length] = _lengths(G, search.distance, np.array([end]), weight).values()
    return length, [G.nodes[v] for v in reversed(path)]


def single_source_dijkstra_path(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> Paths:
    """NetworkX's paths, in NetworkX's order."""
    return _paths(G, _search(G, _known(G, source), None, cutoff, weight))


def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> Lengths:
    """Nearest first; equal distances in any order."""
    start = _known(G, source)
    if G.weights is not None and weight is not None and not G.may_overflow:
        found = distances_from(G, G.weights, start, math.inf if cutoff is None else cutoff)
        order = np.argsort(found, kind="stable")[: np.count_nonzero(found < np.inf)]
        return _lengths(G, found, order, weight)
    search = _search(G, start, None, cutoff, weight)
    return _lengths(G, search.distance, search.order, weight)


def _known(G: ConvertedGraph, node: Any) -> int:
    number = G.id_of_hashable(node)
    if number is None:
        raise nx.NodeNotFound(f"Node {node} not found in graph")
    return number


def _search(
    G: ConvertedGraph, start: int, end: int | None, cutoff: float | None, weight: Any
) -> HeapSearch:
    weights = G.weights
    if weight is None or weights is None:
        weights = np.ones(G.num_entries)
    limit = math.inf if cutoff is None else cutoff
    return search_by_weight(G.successors, weights, start, end, limit)


def _lengths(
    G: ConvertedGraph, distance: npt.NDArray[np.float64], nodes: npt.NDArray[Any], weight: Any
) -> Lengths:
    """Integers where NetworkX returns integers."""
    lengths = distance[nodes]
    integral = weight is None or G.integral
    values = (lengths.astype(np.int64) if integral else lengths).tolist()
    return dict(zip(G.objects_of(nodes), values, strict=True))


def _paths(G: ConvertedGraph, search: HeapSearch) -> Paths:
    nodes = G.objects_of(search.order)
    paths = {nodes[0]: [nodes[0]]}
    parents = G.objects_of(search.parent[search.order[1:]])
    for parent, node in zip(parents, nodes[1:], strict=True):
        paths[node] = [*paths[parent], node]
    return paths
