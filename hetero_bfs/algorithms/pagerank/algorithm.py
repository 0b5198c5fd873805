"""PageRank of a prepared graph, on the faster of host and device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hetero_bfs.algorithms.base import Analysis, Ran, RankDoor, Request
from hetero_bfs.algorithms.pagerank.device import DeviceRanks
from hetero_bfs.algorithms.pagerank.host import HostRanks
from hetero_bfs.algorithms.pagerank.lists import RankLists, RankSettings, check_settings
from hetero_bfs.algorithms.pagerank.result import PageRank, PageRankReport
from hetero_bfs.algorithms.pagerank.serial import rank_by_scipy
from hetero_bfs.algorithms.pagerank.streamed import StreamedRanks
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.scheduling.trace import numbered
from hetero_bfs.support.checks import check_flag
from hetero_bfs.support.cold import is_cold

if TYPE_CHECKING:
    from hetero_bfs.programs.options import RunOptions
    from hetero_bfs.ranks.gathered_result import RankProgramResult

_USUAL_STEPS, _SECONDS_PER_ENTRY = 30, 3e-9  # of SciPy's product; guesses
_NEGLIGIBLE = 1e-30  # a share of restarts that counts as 0


class PageRanks(Analysis[PageRank]):
    """Runs of PageRank on one graph. A query is a `RankSettings`."""

    what = "PageRank"
    report: ClassVar = PageRankReport
    executors = HostRanks, DeviceRanks, StreamedRanks
    weighted: ClassVar[bool] = False

    @classmethod
    def by_one_thread(cls, graph: CSRGraph, settings: RankSettings) -> PageRank:
        """See `Analysis`, and serial.py."""
        entries = graph.num_stored_edges
        if (
            max(entries, graph.num_vertices) < 2**31
            and graph.num_vertices
            and is_cold(cls.__name__, _USUAL_STEPS * _SECONDS_PER_ENTRY * entries)
        ):
            return rank_by_scipy(graph, settings, cls.weighted)
        return super().by_one_thread(graph, settings)

    def _make_lists(self) -> RankLists:
        return RankLists(self.graph, self.weighted)

    def _known(self, settings: RankSettings) -> PageRank | None:
        n, rank = self.graph.num_vertices, settings.personalization
        if self.lists.shares(rank)[0] >= _NEGLIGIBLE:
            return None
        return PageRank(np.full(n, 1.0 / max(n, 1)) if rank is None else rank, 0.0, 0.0, True, [])

    def _kept(self, found: Any, executor: Any) -> Any:
        return found if executor is self.host else found._replace(rank=found.rank.copy())

    def _result(self, ran: Ran, settings: RankSettings) -> PageRank:
        found, edges, n = ran.found, self.lists.num_stored_edges, self.graph.num_searched
        traces = numbered((strategy, n, edges, seconds) for strategy, seconds in found.records)
        converged = found.change < settings.change
        return PageRank(
            found.rank, ran.seconds, found.change, converged, traces, found.streamed_bytes
        )

    @classmethod
    def by_ranks(cls, engine: RankDoor, settings: RankSettings) -> PageRank:
        """Compute the scores with a vertex program on all ranks."""
        from hetero_bfs.programs.options import RunOptions

        start = 1.0 / max(engine.num_vertices, 1)
        parameters = {
            "start": start,
            "restart": start if settings.personalization is None else settings.personalization,
            "alpha": settings.alpha,
            "goal": settings.change,
        }
        result = cls._program_by_ranks(
            engine, RunOptions(max_iterations=settings.max_iter), parameters
        )
        change = result.totals["change"] if result.iterations else np.inf
        rank = result.gathered("rank")
        return PageRank(rank, result.seconds, change, result.converged, result.traces)

    @classmethod
    def _program_by_ranks(
        cls, engine: RankDoor, options: RunOptions, parameters: dict[str, Any]
    ) -> RankProgramResult:
        from hetero_bfs.programs.built_in import PowerRanks

        return engine.run(PowerRanks(), options, **parameters)


class WeightedPageRanks(PageRanks):
    """Runs in which a vertex divides its score by its edges' weights of at least 0."""

    needs_weights = True
    weighted = True

    @classmethod
    def _program_by_ranks(
        cls, engine: RankDoor, options: RunOptions, parameters: dict[str, Any]
    ) -> RankProgramResult:
        from hetero_bfs.algorithms.pagerank.ranks import weighted_part
        from hetero_bfs.programs.built_in import WeightedPowerRanks
        from hetero_bfs.ranks.communicator import agreed

        if cls not in engine.kept:
            engine.kept[cls] = agreed(engine.communicator, lambda: weighted_part(engine.graph))
        graph, given = engine.kept[cls]
        return engine.run_part(graph, WeightedPowerRanks(), options, given=given, **parameters)


def requested(
    num_vertices: int, alpha: float, tol: float, max_iter: int, weighted: bool, personalization: Any
) -> Request[PageRank]:
    settings = check_settings(num_vertices, alpha, tol, max_iter, personalization)
    check_flag("weighted", weighted)
    return Request(WeightedPageRanks if weighted else PageRanks, (settings,))
