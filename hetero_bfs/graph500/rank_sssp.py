"""Graph500's kernel 3, shortest paths, on several ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetero_bfs.algorithms.sssp.ranks import RankPaths, RankPathSearch
from hetero_bfs.algorithms.sssp.ranks_check import RankPathValidator
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph500.rank_figures import SearchOfRanks, combined
from hetero_bfs.graph500.rank_report import RanksReport
from hetero_bfs.graph500.rank_sssp_report import RankSSSPReport, WindowOfRanks
from hetero_bfs.graph500.report import KeyRecord
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.ranks.shares import FileShare


class RankSSSP:
    """Shortest-path searches of one weighted graph on all ranks."""

    held_bytes = 12  # distances 8, parents 4
    shared_bytes = 16  # for validation

    @staticmethod
    def compile(communicator: Communicator, edges: EdgeList, threads: int, validate: bool) -> None:
        """Search a tiny graph, and validate."""
        graph = construct(communicator, edges, edges.num_input_edges)
        found = RankPathSearch(communicator, graph).search(0)
        if validate:
            validator = RankPathValidator(communicator, edges, None)
            validator.validate(0, found.distance, found.parent)

    def __init__(
        self, communicator: Communicator, graph: RankGraph, options: EngineOptions, threads: int
    ) -> None:
        self._communicator, self._graph = communicator, graph
        self._search = RankPathSearch(communicator, graph)
        self.notes: list[str] = []

    def close(self) -> None:
        """Do nothing: the kernel has no threads."""

    def search(self, keys: list[int]) -> list[RankPaths]:
        """Search from keys back-to-back."""
        return [self._search.search(key) for key in keys]

    def make_validator(self, share: FileShare) -> RankPathValidator:
        """Return the validator of the five checks."""
        return RankPathValidator(self._communicator, share.edges, share.input_degree)

    def validate(self, validator: RankPathValidator, result: RankPaths) -> Any:
        """Check a search."""
        return validator.validate(result.source, result.distance, result.parent)

    def record(self, result: RankPaths, outcome: Any, seconds: float) -> KeyRecord:
        """Return a search with the combined figures of all ranks, and its validation."""
        reached = np.isfinite(result.distance)
        ends = self._graph.input_degree.sum(where=reached, dtype=np.int64)
        totals = np.array([np.count_nonzero(reached), ends], np.int64)
        furthest = np.array([result.distance.max(where=reached, initial=0.0)])
        self._communicator.reduce_to_all(totals, "sum")
        self._communicator.reduce_to_all(furthest, "max")
        count = int(totals[0])
        nedge = int(totals[1]) // (1 if self._graph.graph.directed else 2)
        windows = self._windows(result)
        found = SearchOfRanks(result.source, result.seconds, 0.0, nedge, windows)
        return KeyRecord(found, float(furthest[0]), count, outcome, seconds)

    def _windows(self, result: RankPaths) -> list[WindowOfRanks]:
        """Return the windows of a search, with the figures of all ranks combined."""
        communicator = self._communicator
        figures = [
            (w.seconds, w.exchange_seconds, w.bytes_sent, w.vertices, w.edges)
            for w in result.windows
        ]
        rows = zip(result.windows, *combined(communicator, figures), strict=True)
        return [
            WindowOfRanks(
                number=number,
                start=window.start,
                strategy=window.strategy,
                rounds=window.rounds,
                seconds=float(m[0]),
                mean_seconds=float(t[0]) / communicator.size,
                exchange_seconds=float(m[1]),
                bytes_sent=int(t[2]),
                vertices=int(t[3]),
                edges=int(t[4]),
                most_edges=int(m[4]),
                ranks=communicator.size,
            )
            for number, (window, m, t) in enumerate(rows)
        ]

    def make_report(self, **shared: Any) -> RanksReport:
        """Return the report after the last search."""
        search = self._search
        sort_seconds = max(self._communicator.collect(search.sort_seconds))
        shared["construction_seconds"] += sort_seconds
        shared["compile_seconds"] -= sort_seconds
        return RankSSSPReport(
            device=None, weights=str(search.weight_dtype), sort_seconds=sort_seconds, **shared
        )
