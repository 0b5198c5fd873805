"""Searches of a graph that is used once: no engine to open and close."""

from __future__ import annotations

from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.sssp.paths import ShortestPaths
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource, check_edge_source, check_vertex
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.runtime.path_searches import open_paths


def bfs(graph: CSRGraph | EdgeSource, source: int, selector: str = "auto") -> BFSResult:
    """Search once; for many searches of one graph keep an `Engine`."""
    if not isinstance(graph, SearchGraph):
        check_edge_source(graph)
    check_vertex(source, graph.num_vertices)  # before the graph is built
    with Engine(graph, selector=selector) as engine:
        return engine.bfs(source)


def sssp(
    graph: CSRGraph | EdgeSource,
    source: int,
    device: str | None = None,
    devices: str = "all",
    threads: int | None = None,
) -> ShortestPaths:
    """Find the least distances from one vertex; for many searches of one graph keep an `Engine`.

    Parameters
    ----------
    graph : CSRGraph or EdgeSource
        With weights of at least 0.
    source : int
    device : str, optional
        Index or part of the name of an OpenCL device that runs the search; by default the CPU does.
    devices, threads
        See `EngineOptions`.

    Raises
    ------
    GraphError
        The vertex is not in the graph; the graph has no weights, or a negative one.
    DeviceError
        The device is not there, or cannot run the search.
    """
    check_edge_source(graph)
    source = check_vertex(source, graph.num_vertices)
    used = "cpu" if device is None else devices
    with open_paths(graph, device, used, threads) as searches:
        result = searches.search(source, None if device is None else "device")
        _ = result.parent  # its lists are here now
        return result
