"""PageRank on the host's cores: the arrays of a run, and the thread pool."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.host_run import HostRun
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.csr import CSRGraph, replace_weights
from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph.weights import needed_weights, refuse_negative
from hetero_bfs.support.checks import as_array, check_integer, check_real
from hetero_bfs.support.memory import Recycler, aligned_empty
from hetero_bfs.support.messages import setting

_MOST_GIVEN = 2.0**64
"""Larger sums of a vertex's weights, and sums below the inverse, are scaled: a score divided by an
unscaled sum must fit into float32. Sums of integers never exceed this."""

_MOST_EXPONENT = 1000
"""Larger exponents of two, and those below the negative, are too near to the limits of float64."""


class PageRankSettings(NamedTuple):
    """Settings of the iterations; see `hetero_bfs.pagerank`.

    The iterations end when the L1 change is below `change`, which is `num_vertices * tol`.
    `personalization`, float64 (num_vertices,), is in the caller's ids and has sum 1.
    """

    alpha: float
    change: float
    max_iter: int
    personalization: npt.NDArray[np.float64] | None = None


class Scores(NamedTuple):
    """The result of a run.

    `rank`, float64 (num_vertices,), has the scores in the caller's ids. `change` is explained in
    `PageRank`. `records` have the strategy of each iteration, and its seconds. `streamed_bytes` are
    the bytes of the adjacency sent to a device that does not hold it.
    """

    rank: npt.NDArray[np.float64]
    change: float
    records: list[tuple[str, float]]
    streamed_bytes: int = 0


def check_settings(
    num_vertices: int,
    alpha: Any,
    tol: Any,
    max_iter: Any,
    personalization: Any = None,
) -> PageRankSettings:
    """Return validated settings.

    Raises `ArgumentError` if one is wrong, and `GraphError` if entries of `personalization` are
    masked.
    """
    alpha, tol = check_real("alpha", alpha), check_real("tol", tol)
    if not 0 < alpha < 1:
        raise ArgumentError(f"{setting('alpha')} is {alpha}; give a number between 0 and 1")
    if not 0 <= tol < np.inf:
        raise ArgumentError(f"{setting('tol')} is {tol}; give a finite number of at least 0")
    max_iter = check_integer("max_iter", max_iter, 1, 10**6)
    if personalization is not None:
        personalization = _normalised(personalization, num_vertices)
    return PageRankSettings(alpha, num_vertices * tol, max_iter, personalization)


def _normalised(personalization: Any, num_vertices: int) -> npt.NDArray[np.float64]:
    array = as_array("personalization", personalization)
    try:
        if array.size and array.dtype.kind not in "biufO":
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError("personalization holds no numbers; give one for each vertex") from None
    if array.shape != (num_vertices,):
        raise ArgumentError(
            f"personalization has shape {array.shape}; give one number for each of the "
            f"{num_vertices} vertices"
        )
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        v = int(wrong.argmax())
        raise ArgumentError(
            f"personalization[{v}] is {array[v]}; give finite numbers of at least 0"
        )
    with np.errstate(over="ignore"):
        total = array.sum()
    if num_vertices and not 0 < total < np.inf:
        raise ArgumentError(f"personalization adds up to {total}; give a finite sum above 0")
    normalised: npt.NDArray[np.float64] = array / total
    return normalised


class PageRankLists:
    """The incoming edges of each vertex, in new ids.

    `num_vertices` are in the searched range; all others are isolated. If `weighted`, a vertex
    divides its score by the edges' weights instead of equally. If sums of weights are very large or
    small, `graph` is replaced by one whose weights are scaled.

    Raises `GraphError` if `weighted` and the graph has no weights, or one that is negative or
    infinite.
    """

    def __init__(self, graph: SearchGraph, weighted: bool) -> None:
        self.graph, self.weighted = graph, weighted
        self.is_symmetric = not graph.graph.directed
        """Whether the graph is symmetric. If so, the iteration's spectrum is real."""
        self.given: npt.NDArray[Any] = graph.degree
        """The divisor of each vertex's score, 0 if it is dangling.

        uint32 degrees, or float64 sums of weights.
        """
        if weighted:
            names = graph.relabelling.old_of_new
            refuse_negative(graph.graph, names, "weighted ranks", are_finite=True)
            self.given = sum_weights(graph.graph)
            if not sums_fit(self.given):
                self.graph = _scaled(graph)
                self.given = sum_weights(self.graph.graph)
        self.backward = self.graph.graph.transpose
        self.num_vertices = graph.num_searched
        self.num_stored_edges = self.backward.num_stored_edges

    def shares(self, personalization: npt.NDArray[np.float64] | None) -> tuple[float, float]:
        """Return the shares of restarts that lead into the searched range, and out of it."""
        n = max(self.graph.num_vertices, 1)
        if personalization is None:
            return self.num_vertices / n, 1.0 - self.num_vertices / n
        within = personalization[self.graph.relabelling.old_of_new].sum()
        return float(within), float(personalization[self.outside].sum())

    @cached_property
    def outside(self) -> npt.NDArray[np.int64]:
        """The vertices outside the searched range, in the caller's ids."""
        return np.flatnonzero(self.graph.relabelling.new_of_old == NO_VERTEX)


def sum_weights(lists: CSRGraph) -> npt.NDArray[np.float64]:
    total, has_edges = np.zeros(lists.num_vertices), np.diff(lists.indptr) > 0
    weights = needed_weights(lists).astype(np.float64, copy=False)
    total[has_edges] = np.add.reduceat(weights, lists.indptr[:-1][has_edges])
    return total


def sums_fit(sums: npt.NDArray[np.float64]) -> bool:
    """Tell whether all positive sums are far from the limits of float32."""
    least = sums.min(where=sums > 0, initial=1.0)
    return bool(least >= 1 / _MOST_GIVEN and sums.max(initial=0.0) <= _MOST_GIVEN)


def _scaled(graph: SearchGraph) -> SearchGraph:
    """Return a graph in which the largest weight of each vertex's outgoing edges is about 1."""
    lists, transpose = graph.graph, graph.graph.transpose
    factor = _near_one(lists)
    forward = _times(lists, np.repeat(factor, np.diff(lists.indptr)))
    # Both directions of an undirected edge have their own weight now.
    forward.__dict__["directed"] = True
    forward.__dict__["_transposed"] = _times(transpose, factor[transpose.indices])
    return replace(graph, graph=forward)


def scaled_lists(lists: CSRGraph) -> CSRGraph:
    """Return a graph whose largest weight at each vertex is about 1; the transpose is the same."""
    forward = _times(lists, np.repeat(_near_one(lists), np.diff(lists.indptr)))
    forward.__dict__["_transposed"] = lists.transpose
    return forward


def _near_one(lists: CSRGraph) -> npt.NDArray[np.float64]:
    """Return for each vertex the factor that makes its largest weight about 1.

    Only ratios of a vertex's weights matter, and a factor is a power of two, so it keeps them. A
    weight that is smaller than the largest by more than the type's range becomes 0. The error is
    within the rounding of scores.
    """
    degree = np.diff(lists.indptr)
    has_edges = degree > 0
    largest = np.zeros(degree.size)
    largest[has_edges] = np.maximum.reduceat(needed_weights(lists), lists.indptr[:-1][has_edges])
    exponent = np.clip(np.frexp(largest)[1], -_MOST_EXPONENT, _MOST_EXPONENT)
    factor: npt.NDArray[np.float64] = np.ldexp(1.0, -exponent)
    return factor


def _times(lists: CSRGraph, factors: npt.NDArray[np.float64]) -> CSRGraph:
    weights = needed_weights(lists)
    return replace_weights(lists, (weights * factors).astype(weights.dtype))


_POOL_EDGES = 1 << 14
"""In graphs with fewer stored edges, no sweep is worth waking another thread."""

_CHUNK_EDGES = 1 << 13  # least work of a chunk, in edges
_CHUNKS_PER_THREAD = 16
_VERTEX_EDGES = 4  # work of a vertex in addition to its edges, in edges

_STRATEGIES = ("in place", "over-relaxed", "in place, double", "over-relaxed, double")
"""By the number in records of kernels.py."""


class HostPageRank(HostRun):
    """Runs on the host's cores. `threads` includes the caller's thread."""

    _name = "PageRank"
    _module = "hetero_bfs.algorithms.pagerank.kernels"

    def __init__(self, lists: PageRankLists, threads: int) -> None:
        super().__init__(threads if lists.num_stored_edges >= _POOL_EDGES else 1)
        self.lists = lists
        self._numbers = np.zeros(8)
        self._restart = aligned_empty(lists.num_vertices, np.float64)
        self._place = np.zeros(1, np.int64)
        self._results = Recycler()

    def _make_fields(self) -> dict[str, Any]:
        backward, n = self.lists.backward, self.lists.num_vertices
        bounds = _cut(backward, self.threads)
        fields: dict[str, Any] = {
            "threads": self.threads,
            "indptr": backward.indptr,
            "neighbours": backward.indices,
            "given": self.lists.given,
            "single": aligned_empty(n, np.float32),
            "double": aligned_empty(n, np.float64),
            "restart": self._restart,
            "numbers": self._numbers,
            "bounds": bounds,
            "sums": np.zeros((bounds.size - 1, 8)),
            "new_of_old": self.lists.graph.relabelling.new_of_old,
            "place": self._place,
            "work": np.zeros(self._kernels.NUM_TASKS, np.int64),
        }
        if self.lists.weighted:
            fields["weights"] = backward.weights
        return fields

    def _phases(self) -> Any:
        return self._kernels.WEIGHTED_PHASES if self.lists.weighted else super()._phases()

    def _visible(self, struct: Any) -> Any:
        """Only sweeps see weights, so all else is compiled once for all types of weights."""
        from hetero_bfs.support.parallel import Head

        return Head(self._name, struct, len(self.fields) - int(self.lists.weighted))

    def _sees_all(self, phase: Any) -> bool:
        return phase not in self._kernels.PHASES.values()

    def run(self, settings: PageRankSettings) -> Scores:
        """Compute the scores of a graph with edges."""
        kernels, numbers = self._kernels, self._numbers
        personalization, relabelling = settings.personalization, self.lists.graph.relabelling
        numbers[kernels.ALPHA] = settings.alpha
        numbers[kernels.RESTART_STEP] = personalization is not None
        if personalization is None:
            self._restart[0] = 1.0 / relabelling.new_of_old.size
        else:
            np.take(personalization, relabelling.old_of_new, out=self._restart)
        rank = self._results.empty(relabelling.new_of_old.size, np.float64)
        self._place[0] = rank.ctypes.data
        records = np.empty((settings.max_iter, kernels.RECORD_WIDTH))
        sweeps, change = kernels.iterate(
            self.control,
            self.shared,
            settings.change,
            *self.lists.shares(personalization),
            self.lists.is_symmetric,
            records,
        )
        if personalization is not None:
            outside = self.lists.outside
            scale = numbers[kernels.BASE] * numbers[kernels.SCALE]
            rank[outside] = scale * personalization[outside]
        sweeps_made = [
            (_STRATEGIES[int(row[kernels.STRATEGY])], float(row[kernels.SECONDS]))
            for row in records[:sweeps]
        ]
        return Scores(rank, change, sweeps_made)


def _cut(graph: CSRGraph, threads: int) -> npt.NDArray[np.int64]:
    """Return the bounds of chunks of vertices with about equal work."""
    n = graph.num_vertices
    cost = graph.indptr + _VERTEX_EDGES * np.arange(n + 1)
    chunks = min(_CHUNKS_PER_THREAD * threads, -(-int(cost[-1]) // _CHUNK_EDGES))
    bounds = np.searchsorted(cost, np.linspace(0, cost[-1], chunks + 1).astype(np.int64))
    return bounds.astype(np.int64)
