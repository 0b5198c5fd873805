"""Check of PageRank by one step of the power method in SciPy. Its code is independent.

Exact scores do not change. Except 1, no eigenvalue of a step exceeds alpha. So scores that a step
changes by r in L1 are at most r / (1 - alpha) from the exact scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import CheckOutcome
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.weights import needed_weights
from hetero_bfs.support.checks import numbers_of_vertices


@dataclass(frozen=True)
class PageRankCheck(CheckOutcome):
    """The outcome of a check; `residual` is the L1 change of one step of the power method."""

    residual: float


def check_pagerank(
    graph: Any,
    rank: npt.NDArray[np.floating[Any]],
    alpha: float = 0.85,
    tol: float = 1e-6,
    weighted: bool = False,
    personalization: npt.NDArray[np.floating[Any]] | None = None,
) -> PageRankCheck:
    """Check that one more step of the power method changes the scores little enough.

    The limit is alpha * num_vertices * tol. A last step that changed them by less than
    num_vertices * tol guarantees it.

    Parameters
    ----------
    graph : CSRGraph or EdgeSource
    rank : float array, shape (num_vertices,)
    alpha, tol, weighted, personalization
        As for `hetero_bfs.pagerank`.

    Raises
    ------
    ArgumentError
        An array of a wrong shape, or one that does not hold numbers.
    GraphError
        `weighted`, and the graph has no weights.
    """
    lists = graph if isinstance(graph, CSRGraph) else CSRGraph.from_edge_source(graph)
    n = lists.num_vertices
    x = np.asarray(numbers_of_vertices("rank", rank, n, "biuf"), np.float64)
    if personalization is not None:
        personalization = numbers_of_vertices("personalization", personalization, n, "biuf")
    bad = ~np.isfinite(x) | (x < 0)
    if bad.any():
        v = int(bad.argmax())
        return PageRankCheck(False, f"vertex {v} has rank {x[v]}", np.inf)
    if n and abs(x.sum() - 1) > 1e-9:
        return PageRankCheck(False, f"the ranks add up to {x.sum()}, not to 1", np.inf)
    residual = float(np.abs(_step(lists, x, alpha, weighted, personalization) - x).sum())
    allowed = alpha * n * tol + 1e-14  # with the rounding of this step
    words = f"another step changes the ranks by {residual:.3g}, at most {allowed:.3g} is allowed"
    return PageRankCheck(residual <= allowed, words, residual)


def _step(
    lists: CSRGraph,
    rank: npt.NDArray[np.float64],
    alpha: float,
    weighted: bool,
    personalization: npt.NDArray[np.floating[Any]] | None,
) -> npt.NDArray[np.float64]:
    """Return the scores after one step, as NetworkX defines it."""
    import scipy.sparse

    n = lists.num_vertices
    weights = needed_weights(lists) if weighted else np.ones(lists.num_stored_edges, np.float32)
    arrays = weights.astype(np.float64), lists.indices.astype(np.int64), lists.indptr
    matrix = scipy.sparse.csr_array(arrays, (n, n))
    if n:
        largest = np.repeat(matrix.max(axis=1).toarray(), np.diff(lists.indptr))
        matrix.data /= np.where(largest > 0, largest, 1)  # sums then neither overflow nor vanish
    total = matrix.sum(axis=1)
    restart = np.full(n, 1 / max(n, 1)) if personalization is None else personalization
    restart = np.asarray(restart, np.float64) / np.sum(restart)
    given = np.divide(rank, total, out=np.zeros(n), where=total > 0)
    dangling = rank[total == 0].sum()
    passed_on = given @ matrix + dangling * restart
    step: npt.NDArray[np.float64] = alpha * passed_on + (1 - alpha) * restart
    return step
