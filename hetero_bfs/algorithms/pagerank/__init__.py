"""PageRank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hetero_bfs.algorithms.base import Request
    from hetero_bfs.algorithms.pagerank.result import PageRank


def pagerank(
    num_vertices: int,
    alpha: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    weighted: bool = False,
    personalization: Any = None,
) -> Request[PageRank]:
    """Compute PageRank (Brin and Page, 1998) as NetworkX's `pagerank` defines it.

    Dangling vertices have no outgoing edges; they pass their score to all vertices. Self-loops and
    duplicate edges do not count. The edges of an undirected graph lead in both directions.

    Parameters
    ----------
    alpha : float
        Share of a score that edges pass on, between 0 and 1. The rest goes to all vertices.
    tol : float
        The sum of ``abs(rank - exact rank)`` is at most
        num_vertices * tol * alpha / (1 - alpha), which
        NetworkX promises by the same `tol`; see `PageRank.change`.
    max_iter : int
        Most iterations. If they do not suffice, `PageRank.converged` is False.
    weighted : bool
        Whether a vertex divides its score in proportion to its edges' weights (at least 0).
    personalization : float array, shape (num_vertices,), optional
        Shares of restarts and of the scores of dangling vertices. By default all are equal.

    Raises
    ------
    ArgumentError
        A wrong `alpha`, `tol`, `max_iter`, `weighted` or `personalization`.
    GraphError
        `weighted`, and the graph has no weights, or one that is negative or infinite.
    """
    from hetero_bfs.algorithms.pagerank.algorithm import requested

    return requested(num_vertices, alpha, tol, max_iter, weighted, personalization)
