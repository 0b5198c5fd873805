"""PageRank of a prepared graph, on the faster of host and device."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.base import Analysis, Ran, RankedGraph, Request
from hetero_bfs.algorithms.bfs.serial import as_matrix
from hetero_bfs.algorithms.pagerank.device import DevicePageRank, StreamedPageRank
from hetero_bfs.algorithms.pagerank.host import (
    HostPageRank,
    PageRankLists,
    PageRankSettings,
    check_settings,
    scaled_lists,
    sum_weights,
    sums_fit,
)
from hetero_bfs.algorithms.pagerank.result import PageRank, PageRankReport
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.lists import Lists
from hetero_bfs.graph.weights import needed_weights, refuse_negative
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.scheduling.trace import SERIAL, numbered
from hetero_bfs.support.checks import check_flag
from hetero_bfs.support.cold import is_cold


def weighted_part(graph: RankGraph) -> tuple[RankGraph, npt.NDArray[np.float64]]:
    """Return a rank's part, and the sum of each own vertex's weights.

    The weights are scaled if their sums are very large or small. The sums, float64 (num_vertices,),
    are by old ids, and 0 for vertices of other ranks.

    Raises `GraphError` if the graph has no weights, or this rank has one that is negative or
    infinite.
    """
    names = graph.relabelling.old_of_new
    refuse_negative(graph.graph, names, "weighted ranks", are_finite=True)
    sums = sum_weights(graph.graph)
    if not sums_fit(sums):
        graph = replace(graph, graph=scaled_lists(graph.graph))
        sums = sum_weights(graph.graph)
    given = np.zeros(graph.num_vertices)
    given[names[: sums.size]] = sums
    return graph, given


def rank_by_scipy(graph: CSRGraph, settings: PageRankSettings, weighted: bool) -> PageRank:
    """Run the power method on a graph of fewer than 2**31 entries, in the caller's ids."""
    began = time.perf_counter()
    n = graph.num_vertices
    if weighted:
        refuse_negative(graph, np.arange(n, dtype=np.uint32), "weighted ranks", are_finite=True)
    matrix = as_matrix(
        Lists(graph.indptr, graph.indices), needed_weights(graph) if weighted else None
    )
    if weighted and matrix.nnz:  # only ratios count, and sums then neither overflow nor vanish
        largest = np.repeat(matrix.max(axis=1).toarray(), np.diff(graph.indptr))
        matrix.data /= np.where(largest > 0, largest, 1)
    total = matrix.sum(axis=1)
    restart = settings.personalization
    restart = np.full(n, 1 / max(n, 1)) if restart is None else restart
    rank, change, seconds = restart, np.inf, [began]
    passed_on = matrix.T.tocsr()
    while not change < settings.change and len(seconds) <= settings.max_iter:
        given = np.divide(rank, total, out=np.zeros(n), where=total > 0)
        dangling = rank[total == 0].sum()
        new = settings.alpha * (passed_on @ given)
        new += (settings.alpha * dangling + 1 - settings.alpha) * restart
        new /= new.sum() or 1.0
        change, rank = float(np.abs(new - rank).sum()), new
        seconds.append(time.perf_counter())
    records = [(SERIAL, n, matrix.nnz, float(taken)) for taken in np.diff(seconds)]
    converged = change < settings.change
    return PageRank(rank, seconds[-1] - began, change, converged, numbered(records))


_USUAL_STEPS, _SECONDS_PER_ENTRY = 30, 3e-9  # of SciPy's product; guesses
_NEGLIGIBLE = 1e-30  # a share of restarts that counts as 0


class PageRanks(Analysis[PageRank]):
    """Runs of PageRank on one graph. A query is a `PageRankSettings`."""

    what = "PageRank"
    report: ClassVar = PageRankReport
    executors = HostPageRank, DevicePageRank, StreamedPageRank
    weighted: ClassVar[bool] = False

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, settings: PageRankSettings) -> PageRank:
        entries = graph.num_stored_edges
        if (
            max(entries, graph.num_vertices) < 2**31
            and graph.num_vertices
            and is_cold(cls.__name__, _USUAL_STEPS * _SECONDS_PER_ENTRY * entries)
        ):
            return rank_by_scipy(graph, settings, cls.weighted)
        return super().by_one_thread(graph, settings)

    def _make_lists(self) -> PageRankLists:
        return PageRankLists(self.graph, self.weighted)

    def _known(self, settings: PageRankSettings) -> PageRank | None:
        n, rank = self.graph.num_vertices, settings.personalization
        if self.lists.shares(rank)[0] >= _NEGLIGIBLE:
            return None
        return PageRank(np.full(n, 1.0 / max(n, 1)) if rank is None else rank, 0.0, 0.0, True, [])

    def _kept(self, found: Any, executor: Any) -> Any:
        return found if executor is self.host else found._replace(rank=found.rank.copy())

    def _result(self, ran: Ran, settings: PageRankSettings) -> PageRank:
        found, edges, n = ran.found, self.lists.num_stored_edges, self.graph.num_searched
        traces = numbered((strategy, n, edges, seconds) for strategy, seconds in found.records)
        converged = found.change < settings.change
        return PageRank(
            found.rank, ran.seconds, found.change, converged, traces, found.streamed_bytes
        )

    @classmethod
    def by_ranks(cls, engine: RankedGraph, settings: PageRankSettings) -> PageRank:
        from hetero_bfs.programs.built_in import PowerRanks, WeightedPowerRanks
        from hetero_bfs.programs.options import RunOptions
        from hetero_bfs.ranks.communicator import agreed

        start = 1.0 / max(engine.num_vertices, 1)
        parameters = {
            "start": start,
            "restart": start if settings.personalization is None else settings.personalization,
            "alpha": settings.alpha,
            "goal": settings.change,
        }
        options = RunOptions(max_iterations=settings.max_iter)
        if cls.weighted:
            graph, given = engine.keep(
                cls, lambda: agreed(engine.communicator, lambda: weighted_part(engine.graph))
            )
            program = WeightedPowerRanks()
            result = engine.run_part(graph, program, options, given=given, **parameters)
        else:
            result = engine.run(PowerRanks(), options, **parameters)
        change = result.totals["change"] if result.iterations else np.inf
        rank = result.gathered("rank")
        return PageRank(rank, result.seconds, change, result.converged, result.traces)


class WeightedPageRanks(PageRanks):
    """Runs in which a vertex divides its score by its edges' weights of at least 0."""

    needs_weights = True
    shared_lists = 0.5  # the neighbours, not the weights
    weighted = True


def requested(
    num_vertices: int, alpha: float, tol: float, max_iter: int, weighted: bool, personalization: Any
) -> Request[PageRank]:
    settings = check_settings(num_vertices, alpha, tol, max_iter, personalization)
    check_flag("weighted", weighted)
    return Request(WeightedPageRanks if weighted else PageRanks, (settings,))
