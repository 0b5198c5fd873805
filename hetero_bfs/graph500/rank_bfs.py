"""Graph500's kernel 2, breadth-first search, on several ranks."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hetero_bfs.algorithms.bfs.ranks import DistributedSearch, RankResult
from hetero_bfs.algorithms.bfs.ranks_check import RankValidator
from hetero_bfs.algorithms.bfs.ranks_device import open_rank_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph500.rank_figures import SearchOfRanks, combined
from hetero_bfs.graph500.rank_report import LevelOfRanks, RankBFSReport, RanksReport
from hetero_bfs.graph500.report import KeyRecord
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.faults import agreed
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.ranks.shares import FileShare


class RankBFS:
    """Breadth-first searches of one graph by all ranks."""

    held_bytes = 8  # parents, of both numberings
    shared_bytes = 12  # words for other ranks 4, for validation 8

    @staticmethod
    def compile(communicator: Communicator, edges: EdgeList, threads: int, validate: bool) -> None:
        """Search a tiny graph in both directions, and validate."""
        graph = construct(communicator, edges, edges.num_input_edges)
        search = DistributedSearch(communicator, graph, "fixed:TC,BC,TC", threads)
        try:
            result = search.search(0)
            if validate:
                RankValidator(communicator, edges, None).validate(0, result.parent)
        finally:
            search.close()

    def __init__(
        self, communicator: Communicator, graph: RankGraph, options: EngineOptions, threads: int
    ) -> None:
        self._communicator, self._selector = communicator, str(options.selector)
        self._device, note = agreed(
            communicator,
            lambda: open_rank_device(options, communicator.host_rank, graph, threads),
        )
        noted = enumerate(communicator.collect(note))
        self.notes = [f"rank {rank}: {text}" for rank, text in noted if text is not None]
        self._search = DistributedSearch(
            communicator, graph, self._selector, threads, device=self._device
        )

    def close(self) -> None:
        """End the rank's threads."""
        self._search.close()

    def search(self, keys: list[int]) -> list[RankResult]:
        """Search from keys back-to-back."""
        return self._search.search_in_a_row(keys)

    def make_validator(self, share: FileShare) -> RankValidator:
        """Return the validator of the five checks."""
        return RankValidator(self._communicator, share.edges, share.input_degree)

    def validate(self, validator: RankValidator, result: RankResult) -> Any:
        """Check a search."""
        return validator.validate(result.source, result.parent)

    def record(self, result: RankResult, outcome: Any, seconds: float) -> KeyRecord:
        """Return a search with the combined figures of all ranks, and its validation."""
        traces = self._levels(result)
        found = SearchOfRanks(result.source, result.seconds, 0.0, result.nedge, traces)
        return KeyRecord(found, len(traces), result.reached, outcome, seconds)

    def _levels(self, result: RankResult) -> list[LevelOfRanks]:
        """Return the levels of a search, with the figures of all ranks combined."""
        communicator = self._communicator
        figures = [
            (
                level.seconds,
                level.exchange_seconds,
                level.bytes_sent,
                level.frontier_vertices,
                level.frontier_edges,
                level.on_device,
            )
            for level in result.levels
        ]
        rows = zip(result.levels, *combined(communicator, figures), strict=True)
        return [
            LevelOfRanks(
                number=number,
                direction=level.direction,
                seconds=float(m[0]),
                mean_seconds=float(t[0]) / communicator.size,
                exchange_seconds=float(m[1]),
                bytes_sent=int(t[2]),
                frontier_vertices=int(t[3]),
                frontier_edges=int(t[4]),
                most_frontier_edges=int(m[4]),
                ranks=communicator.size,
                on_devices=int(t[5]),
                push_seconds=level.push_seconds,
                pull_seconds=level.pull_seconds,
            )
            for number, (level, m, t) in enumerate(rows)
        ]

    def make_report(self, **shared: Any) -> RanksReport:
        """Return the report after the last search."""
        device = self._device
        name = None if device is None else f"{device.info.index}: {device.info.name}"
        names = self._communicator.collect(name)
        return RankBFSReport(
            device=None if device is None else device.info,
            selector=self._selector,
            devices=dict(Counter(name for name in names if name is not None)),
            costs=self._search.costs,
            **shared,
        )
