"""Single-source shortest paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from hetero_bfs.algorithms.sssp.result import ShortestPaths


def sssp(num_vertices: int, source: int) -> Request[ShortestPaths]:
    """Find the shortest distances from one vertex. The graph needs weights of at least 0.

    Parameters
    ----------
    source : int
        Vertex id of the caller.

    Raises
    ------
    GraphError
        The vertex is not in the graph, or the graph has no weights or a negative one.
    """
    from hetero_bfs.algorithms.sssp.algorithm import requested

    return requested(num_vertices, source)
