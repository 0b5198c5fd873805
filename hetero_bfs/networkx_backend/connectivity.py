"""NetworkX's functions of connected components; in directed graphs, weakly connected ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from hetero_bfs.networkx_backend.converted_graph import ConvertedGraph


def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    """Components are ordered by their first nodes."""
    label, count = G.components
    nodes = G.objects_of(np.argsort(label, kind="stable"))
    ends = np.cumsum(np.bincount(label, minlength=count)).tolist()
    for begin, end in zip([0, *ends], ends, strict=False):
        yield set(nodes[begin:end])


def number_connected_components(G: ConvertedGraph) -> int:
    return G.components[1]


def is_connected(G: ConvertedGraph) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return G.components[1] == 1


def node_connected_component(G: ConvertedGraph, n: Any) -> set[Any]:
    number = G.id_of_hashable(n)
    if number is None:
        raise KeyError(n)
    label, _ = G.components
    return set(G.objects_of(np.flatnonzero(label == label[number])))


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected
