"""NetworkX's eccentricities, PageRank, greedy colouring and connected components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Request
from hetero_bfs.algorithms.colouring import colour as ask_colour
from hetero_bfs.algorithms.pagerank import pagerank as ask_pagerank
from hetero_bfs.engine.kept import kept_of
from hetero_bfs.errors import ForkError, GraphError
from hetero_bfs.networkx_backend.conversion import ConvertedGraph
from hetero_bfs.networkx_backend.traversal import levels_from, reach_of

R = TypeVar("R")

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


def pagerank(
    G: ConvertedGraph,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-06,
    nstart: None = None,
    weight: Any = "weight",
    dangling: None = None,
) -> dict[Any, float]:
    """Return each node's score, as exact as NetworkX promises.

    Raises `NotImplementedError` for self-loops and numbers that only NetworkX takes; NetworkX then
    runs the function itself.
    """
    if not len(G):
        return {}
    _refuse_loops(G)
    restart = None if personalization is None else _restart(G, personalization)
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    try:
        weighted = weight is not None and G.weights is not None
        found = _run(G, ask_pagerank(len(G), alpha, tol, max_iter, weighted, restart))
    except (ValueError, ForkError) as error:  # GraphError and ArgumentError are ValueErrors
        raise NotImplementedError(str(error)) from error
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G.nodes, found.rank.tolist(), strict=True))


def _run(G: ConvertedGraph, request: Request[R]) -> R:
    with kept_of(G) as kept:
        return kept.run(G.edges, request, G.options)


def _restart(G: ConvertedGraph, personalization: dict[Any, float]) -> npt.NDArray[np.float64]:
    share = np.array([personalization.get(node, 0) for node in G], np.float64)
    if share.sum() == 0:
        raise ZeroDivisionError
    return share


def greedy_color(
    G: ConvertedGraph, strategy: str = "largest_first", interchange: bool = False
) -> dict[Any, int]:
    """Return each node's colour, by falling degree.

    Raises `NotImplementedError` for self-loops: NetworkX counts them in degrees.
    """
    if not len(G):
        return {}
    _refuse_loops(G)
    try:
        colour = _run(G, ask_colour(len(G))).colour
    except (GraphError, ForkError) as error:
        raise NotImplementedError(str(error)) from error
    order = np.argsort(-np.diff(G.successors.indptr), kind="stable")
    return dict(zip(G.objects_of(order), colour[order].tolist(), strict=True))


def _refuse_loops(G: ConvertedGraph) -> None:
    indptr, indices = G.successors
    if (np.repeat(np.arange(len(G)), np.diff(indptr)) == indices).any():
        raise NotImplementedError("the graph has self-loops, which searches leave out")


def connected_components(G: ConvertedGraph) -> Iterator[set[Any]]:
    """Components are ordered by their first nodes."""
    label, count = G.components
    nodes = G.objects_of(np.argsort(label, kind="stable"))
    ends = np.cumsum(np.bincount(label, minlength=count)).tolist()
    for begin, end in zip([0, *ends], ends, strict=False):
        yield set(nodes[begin:end])


def number_connected_components(G: ConvertedGraph) -> int:
    return G.components.total


def is_connected(G: ConvertedGraph) -> bool:
    if not len(G):
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    return G.components.total == 1


def node_connected_component(G: ConvertedGraph, n: Any) -> set[Any]:
    number = G.id_of_hashable(n)
    if number is None:
        raise KeyError(n)
    label, _ = G.components
    return set(G.objects_of(np.flatnonzero(label == label[number])))


weakly_connected_components = connected_components
number_weakly_connected_components = number_connected_components
is_weakly_connected = is_connected
