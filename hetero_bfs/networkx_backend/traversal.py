"""NetworkX's functions of breadth-first search, in NetworkX's order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import networkx as nx

from hetero_bfs.algorithms.bfs.serial import QueueSearch, search_from
from hetero_bfs.networkx_backend.converted_graph import ConvertedGraph


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


def bfs_tree(
    G: ConvertedGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Any = None,
) -> nx.DiGraph:
    tree = nx.DiGraph()
    tree.add_node(source)
    tree.add_edges_from(bfs_edges(G, source, reverse, depth_limit))
    return tree


def bfs_predecessors(
    G: ConvertedGraph, source: Any, depth_limit: float | None = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, Any]]:
    """Yield (node, its parent)."""
    for parent, child in bfs_edges(G, source, depth_limit=depth_limit):
        yield child, parent


def bfs_successors(
    G: ConvertedGraph, source: Any, depth_limit: float | None = None, sort_neighbors: Any = None
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield (node, its children in the tree)."""
    found = False
    edges = bfs_edges(G, source, depth_limit=depth_limit)
    for parent, group in groupby(edges, key=_first):
        found = True
        yield parent, [child for _, child in group]
    if not found:
        yield source, []


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


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
