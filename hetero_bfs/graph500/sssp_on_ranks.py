"""Graph500's kernel 3, shortest paths, on several ranks, and its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hetero_bfs.algorithms.sssp.ranks import RankPaths, RankPathSearch
from hetero_bfs.algorithms.sssp.ranks_check import RankPathValidator
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph500.kernel import RankKernel, RanksReport, RankStep
from hetero_bfs.graph500.report import KeyRecord, means_by_strategy
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.partition import FileShare, RankGraph


class RankSSSP(RankKernel):
    """Shortest-path searches of one weighted graph on all ranks."""

    held_bytes_per_vertex = 12  # distances 8, parents 4
    shared_bytes_per_vertex = 16  # for validation

    @staticmethod
    def compile(communicator: Communicator, edges: EdgeList, threads: int, validate: bool) -> None:
        """Search a tiny graph, and validate."""
        graph = construct(communicator, edges, edges.num_input_edges)
        found = RankPathSearch(communicator, graph).search(0)
        if validate:
            validator = RankPathValidator(communicator, edges, None)
            validator.validate(0, found.distance, found.parent)

    def __init__(
        self,
        communicator: Communicator,
        graph: RankGraph,
        share: FileShare,
        options: EngineOptions,
        threads: int,
    ) -> None:
        super().__init__(communicator, graph, share)
        self._search = RankPathSearch(communicator, graph)
        self.construction_seconds = max(communicator.collect(self._search.sort_seconds))

    def close(self) -> None:
        """Do nothing: the kernel has no threads."""

    def search(self, keys: list[int]) -> list[RankPaths]:
        return [self._search.search(key) for key in keys]

    def open_validator(self, share: FileShare) -> RankPathValidator:
        return RankPathValidator(self.communicator, share.edges, share.input_degree)

    def found(self, result: RankPaths) -> tuple[Any, ...]:
        return result.distance, result.parent

    def figures(self, result: RankPaths) -> tuple[float, int, int, list[RankWindow]]:
        reached = np.isfinite(result.distance)
        ends = self.graph.input_degree.sum(where=reached, dtype=np.int64)
        totals = np.array([np.count_nonzero(reached), ends], np.int64)
        furthest = np.array([result.distance.max(where=reached, initial=0.0)])
        self.communicator.reduce_to_all(totals, "sum")
        self.communicator.reduce_to_all(furthest, "max")
        count, ends = totals.tolist()
        nedge = ends // (1 if self.graph.graph.directed else 2)
        return float(furthest[0]), count, nedge, self._windows(result)

    def _windows(self, result: RankPaths) -> list[RankWindow]:
        rows = self.combined(result.windows, lambda window: (window.vertices, window.edges))
        return [
            RankWindow(
                window=number,
                start=window.start,
                strategy=window.strategy,
                rounds=window.rounds,
                vertices=vertices,
                edges=edges,
                **fields,
            )
            for number, (window, (vertices, edges), fields) in enumerate(rows)
        ]

    def make_report(self, **shared: Any) -> RanksReport:
        return RankSSSPReport(
            upload_seconds=0.0,
            compile_seconds=self.open_seconds - self.construction_seconds,
            weights=str(self._search.weight_dtype),
            sort_seconds=self.construction_seconds,
            **shared,
        )


@dataclass(frozen=True, kw_only=True)
class RankWindow(RankStep):
    """A window of a search; see `RankStep`.

    `start` is the least distance in it, `strategy` "prefix", "full" or "pull". Ranks exchanged
    distances in `rounds` rounds. `vertices` relaxed or scanned `edges`.
    """

    window: int
    start: float
    strategy: str
    rounds: int
    vertices: int
    edges: int


@dataclass(kw_only=True)
class RankSSSPReport(RanksReport):
    """Results of a run of shortest-path searches on several ranks."""

    kernel = "sssp"
    steps = "windows"

    weights: str
    """Type of the weights."""
    sort_seconds: float
    """Part of the construction: sorting neighbour lists by weight, on the slowest rank."""

    def own_figures(self) -> dict[str, Any]:
        own = {"weights": self.weights, "sort_time_seconds": self.sort_seconds}
        return super().own_figures() | own

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        traces = record.result.traces
        own = {
            "largest_distance": record.furthest,
            "windows": len(traces),
            "rounds": sum(trace.rounds for trace in traces),
            "edges_scanned": sum(trace.edges for trace in traces),
        }
        return own | super().figures_of(record)

    def machine_lines(self) -> list[str]:
        return [
            *super().machine_lines(),
            f"weights: {self.weights}",
            "timed: from the key to distances and parents, complete on all ranks",
            f"lists by weight: sorted in {self.sort_seconds:.3f} s of the construction",
        ]

    def schedule(self) -> str:
        means = means_by_strategy(
            self.sources,
            lambda w: (
                w.rounds, w.vertices, w.edges, w.seconds, w.exchange_seconds, w.bytes_sent,
            ),
        )  # fmt: skip
        lines = [
            "strategy windows  rounds   vertices       edges        ms  exch ms  bytes sent"
            "  means of a search"
        ]
        for strategy, mean in means.items():
            windows, rounds, vertices, edges, seconds, exchange, sent = mean
            lines.append(
                f"{strategy:<8} {windows:>7.1f} {rounds:>7.1f} {vertices:>10.0f} {edges:>11.0f} "
                f"{1e3 * seconds:>9.3f} {1e3 * exchange:>8.3f} {sent:>11.0f}"
            )
        rest = sum(record.result.seconds for record in self.sources) / len(self.sources)
        rest -= sum(mean[4] + mean[5] for mean in means.values())
        lines.append(f"{'parents, rest':<47}{1e3 * rest:>10.3f}")
        return "\n".join(lines)

    def details(self, record: KeyRecord) -> str:
        lines = [
            "window    starts at strategy  rounds   vertices       edges        ms  exch ms"
            "  bytes sent  imbalance"
        ]
        lines += [
            f"{w.window:>6} {w.start:>12.6g} {w.strategy:<8} {w.rounds:>7} {w.vertices:>10} "
            f"{w.edges:>11} {1e3 * w.seconds:>9.3f} {1e3 * w.exchange_seconds:>8.3f} "
            f"{w.bytes_sent:>11} {w.imbalance:>10.2f}"
            for w in record.result.traces
        ]
        return "\n".join(lines)
