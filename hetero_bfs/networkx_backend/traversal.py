"""NetworkX's searches: orders, trees, and shortest paths, without weights and with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.serial import QueueSearch, search_from
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.serial import HeapSearch, distances_by_weight, search_by_weight
from hetero_bfs.engine.engine import Engine
from hetero_bfs.engine.kept import kept_of
from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray
from hetero_bfs.graph.lists import Lists
from hetero_bfs.networkx_backend.conversion import ConvertedGraph


def bfs_edges(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of the search tree, (parent, child)."""
    start = G.id_of_hashable(source)
    if start is None:
        kind = "digraph" if G.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {source} is not in the {kind}.")
    lists = G.predecessors if reverse else G.successors
    search = search_from(lists, start, depth_limit)
    children = search.queue[1:]
    yield from zip(G.objects_of(search.parent[children]), G.objects_of(children), strict=True)


def bfs_layers(G: ConvertedGraph, sources: Any) -> Iterator[list[Any]]:
    yield from _layers(G, _search_from_any(G, sources))


def descendants_at_distance(G: ConvertedGraph, source: Any, distance: Any) -> set[Any]:
    start = G.id_of(source)
    if start is None:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    search = search_from(G.successors, start, distance if isinstance(distance, int) else None)
    for number, layer in enumerate(_layers(G, search)):
        if number == distance:
            return set(layer)
    return set()


def _layers(G: ConvertedGraph, search: QueueSearch) -> Iterator[list[Any]]:
    for begin, end in zip(search.ends[:-1], search.ends[1:], strict=True):
        if begin < end:  # without sources the first level is empty
            yield G.objects_of(search.queue[begin:end])


def _search_from_any(G: ConvertedGraph, sources: Any) -> QueueSearch:
    """Several sources start in the order of a set, as in NetworkX."""
    objects = [sources] if sources in G else list(set(sources))
    starts = []
    for node in objects:
        start = G.id_of(node)
        if start is None:
            raise nx.NetworkXError(f"The node {node} is not in the graph.")
        starts.append(start)
    return search_from(G.successors, starts)


def levels_from(graph: ConvertedGraph, source: int, coming: int = 1) -> npt.NDArray[np.int32]:
    """Return each node's distance from the source, int32, -1 where not reached.

    `source` is an id. `coming` is the number of searches that the caller will make, this one
    included.
    """
    with kept_of(graph) as kept:
        return kept.answer(
            graph.edges,
            Engine,
            graph.options,
            lambda engine: engine.bfs(source).level,
            lambda: search_from(graph.successors, source).levels(),
            further=coming - 1,
        )


def reach_of(
    graph: ConvertedGraph, sources: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Return, for each source, the number of reached nodes and the largest distance."""

    def by_engine(engine: Engine) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        sums = engine.bfs_many(sources.tolist(), want="sums")
        return sums.reached, sums.eccentricity

    def by_one_thread() -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
        found = np.empty((2, sources.size), np.int64)
        for i, source in enumerate(sources.tolist()):
            search = search_from(graph.successors, source)
            found[:, i] = search.queue.size, search.ends.size - 2
        return found[0], found[1]

    with kept_of(graph) as kept:
        return kept.answer(
            graph.edges, Engine, graph.options, by_engine, by_one_thread, sources.size
        )


Paths = dict[Any, list[Any]]
Lengths = dict[Any, int]


def single_source_shortest_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None
) -> Lengths:
    """Nearest first, then in the graph's node order."""
    start = _known(G, source, f"Source {source} is not in G")
    return _lengths(G, G.successors, start, cutoff)


def single_target_shortest_path_length(
    G: ConvertedGraph, target: Any, cutoff: float | None = None
) -> Lengths:
    start = _known(G, target, f"Target {target} is not in G")
    return _lengths(G, G.predecessors, start, cutoff)


def all_pairs_shortest_path_length(
    G: ConvertedGraph, cutoff: float | None = None
) -> Iterator[tuple[Any, Lengths]]:
    for i, node in enumerate(G):
        yield node, _lengths(G, G.successors, i, cutoff, len(G) - i)


def single_source_shortest_path(
    G: ConvertedGraph, source: Any, cutoff: float | None = None
) -> Paths:
    """NetworkX's paths, in NetworkX's order."""
    start = _known(G, source, f"Source {source} not in G")
    return _paths(G, G.successors, start, cutoff)


def single_target_shortest_path(
    G: ConvertedGraph, target: Any, cutoff: float | None = None
) -> Paths:
    start = _known(G, target, f"Target {target} not in G")
    return _paths(G, G.predecessors, start, cutoff, to_start=True)


def bidirectional_shortest_path(G: ConvertedGraph, source: Any, target: Any) -> list[Any]:
    from hetero_bfs.algorithms.bfs.kernels.queue_order import search_from_both_ends

    start = _known(G, source, f"Source {source} is not in G")
    end = _known(G, target, f"Target {target} is not in G")
    before, after = np.full((2, len(G)), NO_VERTEX, np.uint32)
    met = search_from_both_ends(G.successors, G.predecessors, start, end, before, after)
    if met == NO_VERTEX:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    path = [int(met)]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    path.reverse()
    while path[-1] != end:
        path.append(int(after[path[-1]]))
    return [G.nodes[v] for v in path]


def _known(G: ConvertedGraph, node: Any, message: str) -> int:
    number = G.id_of(node)
    if number is None:
        raise nx.NodeNotFound(message)
    return number


def _lengths(
    G: ConvertedGraph, lists: Lists, start: int, cutoff: float | None, coming: int = 1
) -> Lengths:
    """`coming` is as for `levels_from`."""
    if cutoff is None and lists is G.successors:
        level = levels_from(G, start, coming)
    else:
        level = search_from(lists, start, cutoff).levels()
    counts, order = by_level(level)
    numbers = chain.from_iterable(map(repeat, range(counts.size), counts.tolist()))
    return dict(zip(G.objects_of(order), numbers, strict=False))


def by_level(
    level: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    counts = np.bincount(level + 1)
    narrow = level.astype(np.int16) if counts.size < 1 << 15 else level  # int16 sorts faster
    return counts[1:], np.argsort(narrow, kind="stable")[counts[0] :]


def _paths(
    G: ConvertedGraph, lists: Lists, start: int, cutoff: float | None, to_start: bool = False
) -> Paths:
    search = search_from(lists, start, cutoff)
    return _paths_of(G, search.queue, search.parent, to_start)


def _paths_of(
    G: ConvertedGraph, order: VertexArray, parent: VertexArray, to_start: bool = False
) -> Paths:
    nodes = G.objects_of(order)
    paths = {nodes[0]: [nodes[0]]}
    parents = G.objects_of(parent[order[1:]])
    for parent_node, node in zip(parents, nodes[1:], strict=True):
        paths[node] = [node, *paths[parent_node]] if to_start else [*paths[parent_node], node]
    return paths


Distances = dict[Any, float]


def single_source_dijkstra(
    G: ConvertedGraph,
    source: Any,
    target: Any = None,
    cutoff: float | None = None,
    weight: Any = "weight",
) -> tuple[Any, Any]:
    """NetworkX's paths, in NetworkX's order."""
    start = _known_node(G, source)
    if target == source:
        return 0, [target]
    end = None if target is None else G.id_of(target)
    search = _by_weight(G, start, end, cutoff, weight)
    if target is None:
        lengths = _weighted_lengths(G, search.distance, search.order, weight)
        return lengths, _paths_of(G, search.order, search.parent)
    if end is None or search.parent[end] == NO_VERTEX:
        raise nx.NetworkXNoPath(f"No path to {target}.")
    path = [end]
    while path[-1] != start:
        path.append(int(search.parent[path[-1]]))
    [length] = _weighted_lengths(G, search.distance, np.array([end]), weight).values()
    return length, [G.nodes[v] for v in reversed(path)]


def single_source_dijkstra_path(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> Paths:
    """NetworkX's paths, in NetworkX's order."""
    search = _by_weight(G, _known_node(G, source), None, cutoff, weight)
    return _paths_of(G, search.order, search.parent)


def single_source_dijkstra_path_length(
    G: ConvertedGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> Distances:
    """Nearest first; equal distances in any order."""
    start = _known_node(G, source)
    if G.weights is not None and weight is not None and not G.may_overflow:
        found = _distances_from(G, G.weights, start, math.inf if cutoff is None else cutoff)
        order = np.argsort(found, kind="stable")[: np.count_nonzero(found < np.inf)]
        return _weighted_lengths(G, found, order, weight)
    search = _by_weight(G, start, None, cutoff, weight)
    return _weighted_lengths(G, search.distance, search.order, weight)


def _distances_from(
    G: ConvertedGraph, weights: npt.NDArray[np.float64], source: int, limit: float
) -> npt.NDArray[np.float64]:
    def by_one_thread() -> npt.NDArray[np.float64]:
        distance, parent = np.full(len(G), np.inf), np.empty(len(G), np.uint32)
        distances_by_weight(G.successors, weights, [source], limit, distance, parent)
        return distance

    if limit < math.inf:
        return by_one_thread()
    with kept_of(G) as kept:
        return kept.answer(
            G.edges,
            PathSearches,
            G.options,
            lambda searches: searches.run(source).distance,
            by_one_thread,
        )


def _known_node(G: ConvertedGraph, node: Any) -> int:
    number = G.id_of_hashable(node)
    if number is None:
        raise nx.NodeNotFound(f"Node {node} not found in graph")
    return number


def _by_weight(
    G: ConvertedGraph, start: int, end: int | None, cutoff: float | None, weight: Any
) -> HeapSearch:
    weights = G.weights
    if weight is None or weights is None:
        weights = np.ones(G.num_entries)
    limit = math.inf if cutoff is None else cutoff
    return search_by_weight(G.successors, weights, start, end, limit)


def _weighted_lengths(
    G: ConvertedGraph, distance: npt.NDArray[np.float64], nodes: npt.NDArray[Any], weight: Any
) -> Distances:
    """Integers where NetworkX returns integers."""
    lengths = distance[nodes]
    integral = weight is None or G.integral
    values = (lengths.astype(np.int64) if integral else lengths).tolist()
    return dict(zip(G.objects_of(nodes), values, strict=True))
