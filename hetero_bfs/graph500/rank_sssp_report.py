"""The report of shortest paths by several ranks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from hetero_bfs.graph500.rank_figures import imbalance
from hetero_bfs.graph500.rank_report import RanksReport
from hetero_bfs.graph500.report import KeyRecord


@dataclass(frozen=True, kw_only=True)
class WindowOfRanks:
    """A window of a search, with the combined figures of all ranks.

    Parameters
    ----------
    number : int
    start : float
        The least distance in it.
    strategy : str
        "prefix", "full" or "pull".
    rounds : int
        Exchanges of distances.
    seconds, mean_seconds : float
        Own work: the slowest rank's, and the mean over ranks.
    exchange_seconds : float
        Exchanges, reductions and waiting: the maximum over ranks.
    bytes_sent : int
        From rank to rank, by all ranks.
    vertices, edges : int
        Vertices that relaxed or scanned edges, and these edges, of all ranks.
    most_edges : int
        Of the rank with the most.
    ranks : int
    """

    number: int
    start: float
    strategy: str
    rounds: int
    seconds: float
    mean_seconds: float
    exchange_seconds: float
    bytes_sent: int
    vertices: int
    edges: int
    most_edges: int
    ranks: int

    @property
    def imbalance(self) -> float:
        """Largest number of edges of a rank, divided by the mean."""
        return imbalance(self.most_edges, self.edges, self.ranks)

    def row(self) -> dict[str, Any]:
        """Return the window as a record of the trace."""
        return {
            "window": self.number,
            "start": self.start,
            "strategy": self.strategy,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "mean_seconds": self.mean_seconds,
            "exchange_seconds": self.exchange_seconds,
            "bytes_sent": self.bytes_sent,
            "vertices": self.vertices,
            "edges": self.edges,
            "imbalance": self.imbalance,
        }


@dataclass(kw_only=True)
class RankSSSPReport(RanksReport):
    """Results of a run of shortest-path searches on several ranks."""

    kernel = "sssp"
    steps = "windows"

    weights: str
    """Type of the weights."""
    sort_seconds: float
    """Part of the construction: sorting lists by weight, on the slowest rank."""

    def own_figures(self) -> dict[str, Any]:
        """Return the figures that only this kernel's JSON has."""
        own = {"weights": self.weights, "sort_time_seconds": self.sort_seconds}
        return super().own_figures() | own

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        """Return the figures of a search that only this kernel's JSON has."""
        traces = record.result.traces
        return {
            "largest_distance": record.furthest,
            "windows": len(traces),
            "rounds": sum(trace.rounds for trace in traces),
            "edges_scanned": sum(trace.edges for trace in traces),
            "exchange_seconds": sum(trace.exchange_seconds for trace in traces),
            "bytes_sent": sum(trace.bytes_sent for trace in traces),
        }

    def machine_lines(self) -> list[str]:
        """Return the ranks, what was timed, and the memory."""
        return [
            *super().machine_lines(),
            f"weights: {self.weights}",
            "timed: from the key to distances and parents, complete on all ranks",
            f"lists by weight: sorted in {self.sort_seconds:.3f} s of the construction",
        ]

    def schedule(self) -> str:
        """Sum up each strategy over all searches."""
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 7)
        for record in self.sources:
            for w in record.result.traces:
                own = w.rounds, w.vertices, w.edges, w.seconds, w.exchange_seconds, w.bytes_sent
                so_far = sums[w.strategy]
                sums[w.strategy] = [a + b for a, b in zip(so_far, (1, *own), strict=True)]
        count = len(self.sources)
        lines = [
            "strategy windows  rounds   vertices       edges        ms  exch ms  bytes sent"
            "  means of a search"
        ]
        for strategy, figures in sums.items():
            windows, rounds, vertices, edges, seconds, exchange, sent = (
                figure / count for figure in figures
            )
            lines.append(
                f"{strategy:<8} {windows:>7.1f} {rounds:>7.1f} {vertices:>10.0f} {edges:>11.0f} "
                f"{1e3 * seconds:>9.3f} {1e3 * exchange:>8.3f} {sent:>11.0f}"
            )
        rest = sum(record.result.seconds for record in self.sources)
        rest -= sum(figures[4] + figures[5] for figures in sums.values())
        lines.append(f"{'parents, rest':<47}{1e3 * rest / count:>10.3f}")
        return "\n".join(lines)

    def details(self, record: KeyRecord) -> str:
        """Return a table of the windows of a search."""
        lines = [
            "window    starts at strategy  rounds   vertices       edges        ms  exch ms"
            "  bytes sent  imbalance"
        ]
        lines += [
            f"{w.number:>6} {w.start:>12.6g} {w.strategy:<8} {w.rounds:>7} {w.vertices:>10} "
            f"{w.edges:>11} {1e3 * w.seconds:>9.3f} {1e3 * w.exchange_seconds:>8.3f} "
            f"{w.bytes_sent:>11} {w.imbalance:>10.2f}"
            for w in record.result.traces
        ]
        return "\n".join(lines)
