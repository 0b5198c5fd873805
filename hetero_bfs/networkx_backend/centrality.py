"""NetworkX's PageRank and greedy colouring."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ForkError, GraphError
from hetero_bfs.networkx_backend.converted_graph import ConvertedGraph
from hetero_bfs.networkx_backend.engine_pool import engine_of


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
        with engine_of(G) as engine:
            weighted = weight is not None and G.weights is not None
            found = engine.pagerank(alpha, tol, max_iter, weighted, restart)
    except (ValueError, ForkError) as error:  # GraphError and ArgumentError are ValueErrors
        raise NotImplementedError(str(error)) from error
    if not found.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return dict(zip(G.nodes, found.rank.tolist(), strict=True))


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
        with engine_of(G) as engine:
            colour = engine.colour().colour
    except (GraphError, ForkError) as error:
        raise NotImplementedError(str(error)) from error
    order = np.argsort(-np.diff(G.successors.indptr), kind="stable")
    return dict(zip(G.objects_of(order), colour[order].tolist(), strict=True))


def _refuse_loops(G: ConvertedGraph) -> None:
    indptr, indices = G.successors
    if (np.repeat(np.arange(len(G)), np.diff(indptr)) == indices).any():
        raise NotImplementedError("the graph has self-loops, which searches leave out")
