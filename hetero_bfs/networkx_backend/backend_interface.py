"""The module that NetworkX loads to run a function: functions, conversions and checks."""

from __future__ import annotations

import math
from functools import cache
from inspect import Signature, signature
from typing import Any

import networkx as nx
import numpy as np

from hetero_bfs.networkx_backend import measures, traversal
from hetero_bfs.networkx_backend.backend_info import FUNCTIONS
from hetero_bfs.networkx_backend.conversion import convert_from_nx, convert_to_nx
from hetero_bfs.support.messages import shown

__all__ = ["can_run", "convert_from_nx", "convert_to_nx", "should_run"]

_MODULES = (measures, traversal)
# NetworkX looks up each function in this module.
globals().update({n: vars(m)[n] for m in _MODULES for n in FUNCTIONS if n in vars(m)})

Answer = bool | str
"""True, or the reason why not."""

_LEFT_TO_NETWORKX = ("sort_neighbors", "sp", "e", "nstart", "dangling")
"""Arguments that only NetworkX supports."""

_LIMITS = ("cutoff", "depth_limit", "distance")

_MOST_EXACT = 2**53  # integers up to it are exact as float64

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
    return is_number and bool(-_MOST_EXACT <= value <= _MOST_EXACT)


def _can_color(G: Any, strategy: Any = "largest_first", interchange: bool = False) -> Answer:
    if G.is_directed() or G.is_multigraph():
        return "the graph is directed or may have parallel edges"
    if strategy != "largest_first" or interchange:
        return "the strategy is another than largest_first"
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    given = _signature(name).bind(*args, **kwargs).arguments
    graph = given["G"]
    if _is_converted(graph):
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


def _is_converted(graph: Any) -> bool:
    cache = getattr(graph, "__networkx_cache__", None) or {}
    return bool(cache.get("backends", {}).get("hetero"))
