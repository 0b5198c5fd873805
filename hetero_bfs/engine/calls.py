"""Functions for a graph that is used once: no engine to open and close."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import open_analysis
from hetero_bfs.algorithms.bfs.query import ManyWant, Vertices, Want, check_many, check_query
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.colouring.result import Colouring
from hetero_bfs.algorithms.components.algorithm import ComponentRuns
from hetero_bfs.algorithms.components.result import Components
from hetero_bfs.algorithms.multi_source.result import ManySearches
from hetero_bfs.algorithms.pagerank.algorithm import ranks_kind
from hetero_bfs.algorithms.pagerank.lists import check_settings
from hetero_bfs.algorithms.pagerank.result import PageRank
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.result import ShortestPaths
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource, check_edge_source, check_vertex
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.options import EngineOptions, refuses_devices
from hetero_bfs.support.checks import check_integer

Graph = CSRGraph | EdgeSource | SearchGraph

_MOST_EXACT = 255  # the last class is a uint8, too


@refuses_devices
def bfs(
    graph: Graph,
    source: Vertices,
    selector: str = "auto",
    *,
    depth_limit: int | None = None,
    target: int | None = None,
    mask: npt.ArrayLike | None = None,
    reverse: bool = False,
    want: Want = "parents",
    device: str | None = None,
    threads: int | None = None,
) -> BFSResult:
    """Search once. For many searches of one graph, keep an `Engine`.

    `Engine.bfs` describes the arguments, `EngineOptions` `device` and `threads`.
    """
    _check_graph(graph)
    # Before the graph is built:
    query = check_query(graph.num_vertices, source, depth_limit, target, mask, reverse, want)
    options = EngineOptions(selector, device=device, threads=threads)
    with Engine(_along(graph, query.reverse), **options.settings()) as engine:
        return engine.answer(query)


@refuses_devices
def bfs_many(
    graph: Graph,
    sources: Iterable[int],
    *,
    depth_limit: int | None = None,
    mask: npt.ArrayLike | None = None,
    reverse: bool = False,
    want: ManyWant = "levels",
    device: str | None = None,
    threads: int | None = None,
) -> ManySearches:
    """Search from many vertices, 64 side by side. For repeated calls, keep an `Engine`.

    `Engine.bfs_many` describes the arguments, `EngineOptions` `device` and `threads`.
    """
    _check_graph(graph)
    query = check_many(graph.num_vertices, sources, depth_limit, mask, reverse, want)
    options = EngineOptions(device=device, threads=threads)
    with Engine(_along(graph, query.reverse), **options.settings()) as engine:
        return engine.answer_many(query)


@refuses_devices
def colour(
    graph: Graph,
    device: str | None = None,
    threads: int | None = None,
) -> Colouring:
    """Colour a graph so that no edge joins two vertices of the same colour.

    Vertices are coloured by falling degree, equal ones by their id; each gets the first colour that
    no neighbour has (Welsh and Powell, 1967). The colours are those of NetworkX's
    `greedy_color(strategy="largest_first")` on nodes in the order of their ids, on any device and
    with any number of threads. A directed graph is coloured as if it were undirected; self-loops
    do not count.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
    device : str, optional
        Index or part of the name of an OpenCL device that colours; by default the CPU does.
    threads
        See `EngineOptions`.

    Raises
    ------
    GraphError
        There is not enough free memory.
    DeviceError
        The device is not there, or cannot hold the graph.
    """
    _check_graph(graph)
    options = _options(device, threads)
    with open_analysis(Colourings, graph, options) as colourings:
        return colourings.colour(None if device is None else "device")


def hybrid_classes(
    graph: Graph, num_exact: int = 4, threads: int | None = None
) -> npt.NDArray[np.uint8]:
    """Return the class of each vertex, uint8 (num_vertices,), for asynchronous execution.

    The first `num_exact` classes (1 to 255) are the first colours of `colour`: no edge joins two
    vertices of one of them. All other vertices are in the class numbered `num_exact` (Shi et al.,
    2017, "Frog: asynchronous graph processing on GPU with hybrid coloring model").
    """
    num_exact = check_integer("num_exact", num_exact, 1, _MOST_EXACT)
    found = colour(graph, threads=threads).colour
    return np.minimum(found, num_exact).astype(np.uint8)


@refuses_devices
def connected_components(
    graph: Graph,
    device: str | None = None,
    threads: int | None = None,
) -> Components:
    """Find the connected components; in a directed graph, the weakly connected ones.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
    device : str, optional
        Index or part of the name of an OpenCL device that finds them; by default the CPU does.
    threads
        See `EngineOptions`.

    Raises
    ------
    GraphError
        The graph takes more memory than there is.
    DeviceError
        The device is not there, or cannot hold the graph.
    """
    _check_graph(graph)
    options = _options(device, threads)
    with open_analysis(ComponentRuns, graph, options) as runs:
        return runs.find(None if device is None else "device")


@refuses_devices
def sssp(
    graph: Graph,
    source: int,
    device: str | None = None,
    threads: int | None = None,
) -> ShortestPaths:
    """Find the least distances from one vertex. For many searches of one graph, keep an `Engine`.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
        With weights of at least 0.
    source : int
    device : str, optional
        Index or part of the name of an OpenCL device that runs the search; by default the CPU does.
    threads
        See `EngineOptions`.

    Raises
    ------
    GraphError
        The vertex is not in the graph; the graph has no weights, or a negative one.
    DeviceError
        The device is not there, or cannot run the search.
    """
    _check_graph(graph)
    source = check_vertex(source, graph.num_vertices)
    options = _options(device, threads)
    with open_analysis(PathSearches, graph, options) as searches:
        result = searches.search(source, None if device is None else "device")
        _ = result.parent  # its lists are here now
        return result


@refuses_devices
def pagerank(
    graph: Graph,
    alpha: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    weighted: bool = False,
    personalization: Any = None,
    device: str | None = None,
    threads: int | None = None,
) -> PageRank:
    """Compute PageRank (Brin and Page, 1998) as NetworkX's `pagerank` defines it.

    Dangling vertices, those without outgoing edges, pass their rank to all vertices. Self-loops and
    duplicate edges do not count. For many runs on one graph, keep an `Engine`.

    Parameters
    ----------
    graph : CSRGraph, EdgeSource or SearchGraph
        The edges of an undirected graph lead both ways.
    alpha : float
        Share of a rank that edges pass on, between 0 and 1. The rest goes to all vertices.
    tol : float
        The sum of ``abs(rank - exact rank)`` is at most
        num_vertices * tol * alpha / (1 - alpha), which
        NetworkX promises by the same `tol`; see `PageRank.change`.
    max_iter : int
        If these iterations do not suffice, `PageRank.converged` is False.
    weighted : bool
        Whether a vertex divides its rank in proportion to its edges' weights (at least 0).
    personalization : float array, shape (num_vertices,), optional
        Shares of restarts and of the ranks of dangling vertices; by default equal for all vertices.
    device : str, optional
        Index or part of the name of an OpenCL device that iterates; by default the CPU does.
    threads
        See `EngineOptions`.

    Raises
    ------
    ArgumentError
        A wrong `alpha`, `tol`, `max_iter` or `personalization`.
    GraphError
        `weighted`, and the graph has no weights, or one that is negative or infinite.
    DeviceError
        The device is not there, or cannot hold the graph.
    """
    _check_graph(graph)
    settings = check_settings(graph.num_vertices, alpha, tol, max_iter, personalization)
    options = _options(device, threads)
    with open_analysis(ranks_kind(weighted), graph, options) as ranks:
        return ranks.rank(settings, "cpu" if device is None else "device")


def _check_graph(graph: Any) -> None:
    if not isinstance(graph, SearchGraph):
        check_edge_source(graph)


def _along(graph: Graph, reverse: bool) -> Graph:
    """Return the graph to search, with all edges transposed if `reverse`."""
    if not reverse:
        return graph
    return (graph if isinstance(graph, SearchGraph) else build_search_graph(graph)).reversed()


def _options(device: str | None, threads: int | None) -> EngineOptions:
    """Return an engine's settings; without a named device, those of the CPU alone."""
    return EngineOptions(device="cpu" if device is None else device, threads=threads)
