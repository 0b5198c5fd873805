"""The module that NetworkX loads to run a function: checks of calls, and all functions.

Functions that search are in traversal.py; here are eccentricities, PageRank, greedy colouring and
connected components.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from inspect import Signature, signature
from typing import Any, TypeVar

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Request
from hetero_bfs.algorithms.colouring import colour as ask_colour
from hetero_bfs.algorithms.pagerank import pagerank as ask_pagerank
from hetero_bfs.engine.kept import kept_of
from hetero_bfs.errors import ForkError, GraphError
from hetero_bfs.networkx_backend import traversal
from hetero_bfs.networkx_backend.backend_info import FUNCTIONS
from hetero_bfs.networkx_backend.conversion import ConvertedGraph, convert_from_nx, convert_to_nx
from hetero_bfs.networkx_backend.traversal import levels_from, reach_of
from hetero_bfs.support.checks import MOST_EXACT
from hetero_bfs.support.messages import shown

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]

# NetworkX looks up each function in this module.
globals().update({n: vars(traversal)[n] for n in FUNCTIONS if n in vars(traversal)})

# NetworkX's own code of these calls the others, which NetworkX dispatches here.
_BY_OTHERS = (
    "all_pairs_shortest_path",
    "bfs_predecessors",
    "bfs_successors",
    "bfs_tree",
    "has_path",
    "shortest_path",
    "shortest_path_length",
)
globals().update({n: getattr(nx, n).orig_func for n in _BY_OTHERS})

Answer = bool | str
"""True, or the reason why not."""

_LEFT_TO_NETWORKX = ("sort_neighbors", "sp", "e", "nstart", "dangling")
"""Arguments that only NetworkX supports."""

_LIMITS = ("cutoff", "depth_limit", "distance")


_WEIGHTED = {
    "pagerank",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
}

_PAIR = {"bidirectional_shortest_path", "has_path", "shortest_path", "shortest_path_length"}
"""Functions that search between two nodes; NetworkX does this faster than any conversion."""

_FROM_ALL = {
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "diameter",
    "eccentricity",
}
"""Functions that search from every node."""


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    try:
        given = _signature(name).bind(*args, **kwargs).arguments
    except TypeError as error:
        return str(error)
    for argument in _LEFT_TO_NETWORKX:
        if given.get(argument) is not None:
            return f"{argument} is given"
    for argument in _LIMITS:
        if not _is_usual_limit(given.get(argument), name in _WEIGHTED):
            return f"{argument} is {shown(given[argument])}"
    if not isinstance(given.get("max_iter", 1), int | np.integer):
        return f"max_iter is {shown(given['max_iter'])}"
    for argument in ("alpha", "tol"):
        value = given.get(argument, 1.0)
        if not isinstance(value, int | float) or (argument == "tol" and not value > 0):
            return f"{argument} is {shown(value)}"
    weight = given.get("weight")
    if callable(weight) or (weight is not None and name not in _WEIGHTED):
        return f"weight is {shown(weight)}"
    if name in _WEIGHTED and given["G"].is_multigraph():
        return "the graph may have parallel edges"
    if name == "greedy_color":
        return _can_color(**given)
    return True


def _is_usual_limit(value: Any, is_distance: bool) -> bool:
    """Whether compiled loops compare with the limit as NetworkX does."""
    if value is None:
        return True
    if isinstance(value, float) and (is_distance or math.isinf(value)):
        return not math.isnan(value)
    is_number = isinstance(value, int | float | np.integer)
    return is_number and bool(-MOST_EXACT <= value <= MOST_EXACT)


def _can_color(G: Any, strategy: Any = "largest_first", interchange: bool = False) -> Answer:
    if G.is_directed() or G.is_multigraph():
        return "the graph is directed or may have parallel edges"
    if strategy != "largest_first" or interchange:
        return "the strategy is another than largest_first"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    given = _signature(name).bind(*args, **kwargs).arguments
    graph = given["G"]
    cached = getattr(graph, "__networkx_cache__", None) or {}
    if cached.get("backends", {}).get("hetero"):  # it is converted
        return True
    if name in _PAIR and given.get("source") is not None and given.get("target") is not None:
        return "a search between two nodes takes less time than to convert the graph"
    work = sum(map(len, graph._adj.values()))
    if name in _FROM_ALL and given.get("v") is None:
        work *= len(graph)
    least = nx.config.backends.hetero.least_edges
    return True if work >= least else f"it reads {work} edges, fewer than {least}"


@cache
def _signature(name: str) -> Signature:
    """Return the function's parameters, which are NetworkX's."""
    return signature(globals()[name])


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
        if level.min() < 0:
            raise nx.NetworkXError(infinite)
        own = level.max()
        np.maximum(lower, np.maximum(level, own - level), out=lower)
        np.minimum(upper, own + level, out=upper)
        undecided = lower[open_nodes] < upper[open_nodes]
        if largest_only:
            undecided &= upper[open_nodes] > lower.max()
        open_nodes = open_nodes[undecided]
    return lower


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
    """Return each node's score, as exact as NetworkX promises."""
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
    """Return each node's colour, by falling degree."""
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
