"""The reports of several ranks: what both kernels share, and the one of breadth-first searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hetero_bfs.graph500.rank_figures import imbalance
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.ranks.exchange import ExchangeCosts
from hetero_bfs.scheduling.strategies import Direction
from hetero_bfs.support.memory import format_bytes


@dataclass(frozen=True, kw_only=True)
class LevelOfRanks:
    """A level of a search, with the combined figures of all ranks.

    Parameters
    ----------
    number : int
    direction : str
    seconds, mean_seconds : float
        Own work: the slowest rank's, and the mean over ranks.
    exchange_seconds : float
        Exchange, reduction and waiting: the maximum over ranks.
    bytes_sent : int
        From rank to rank, by all ranks.
    frontier_vertices, frontier_edges : int
        Before the level, of all ranks.
    most_frontier_edges : int
        Of the rank with the most.
    ranks : int
    on_devices : int
        Ranks that ran it on their OpenCL device.
    push_seconds, pull_seconds : float
        Predicted for the slowest rank in both directions, exchange included.
    """

    number: int
    direction: Direction
    seconds: float
    mean_seconds: float
    exchange_seconds: float
    bytes_sent: int
    frontier_vertices: int
    frontier_edges: int
    most_frontier_edges: int
    ranks: int
    on_devices: int
    push_seconds: float
    pull_seconds: float

    @property
    def imbalance(self) -> float:
        """Largest number of frontier edges of a rank, divided by the mean."""
        return imbalance(self.most_frontier_edges, self.frontier_edges, self.ranks)

    def row(self) -> dict[str, Any]:
        """Return the level as a record of the trace."""
        return {
            "level": self.number,
            "direction": self.direction,
            "seconds": self.seconds,
            "mean_seconds": self.mean_seconds,
            "exchange_seconds": self.exchange_seconds,
            "bytes_sent": self.bytes_sent,
            "frontier_vertices": self.frontier_vertices,
            "frontier_edges": self.frontier_edges,
            "imbalance": self.imbalance,
            "on_devices": self.on_devices,
            "push_seconds": self.push_seconds,
            "pull_seconds": self.pull_seconds,
        }


@dataclass(kw_only=True)
class RanksReport(Graph500Report):
    """Results that both kernels produce on several ranks."""

    hosts: int
    threads: int
    """Of each rank."""
    rank_bytes: int
    """Bytes of lists and arrays, of the rank with the most."""
    replicated_bytes: int
    """Bytes of each rank that do not shrink with more ranks."""

    def own_figures(self) -> dict[str, Any]:
        """Return the figures that only the JSON of several ranks has."""
        return {
            "hosts": self.hosts,
            "threads_per_rank": self.threads,
            "rank_bytes": self.rank_bytes,
            "replicated_bytes": self.replicated_bytes,
        }

    def machine_lines(self) -> list[str]:
        """Return the ranks, and their memory."""
        return [
            f"ranks: {self.processes} on {self.hosts} host{'s' if self.hosts > 1 else ''}, "
            f"{self.threads} thread{'s' if self.threads > 1 else ''} each",
            f"memory of the graph: {format_bytes(self.rank_bytes)} of a rank, and "
            f"{format_bytes(self.replicated_bytes)} that do not shrink with more ranks",
        ]


@dataclass(kw_only=True)
class RankBFSReport(RanksReport):
    """Results of a run of breadth-first searches on several ranks."""

    kernel = "bfs"
    steps = "levels"

    selector: str
    devices: dict[str, int]
    """Ranks that have each OpenCL device, by its number on their host and its name."""
    costs: ExchangeCosts

    def own_figures(self) -> dict[str, Any]:
        """Return the figures that only this kernel's JSON has."""
        return super().own_figures() | {
            "selector": self.selector,
            "rank_devices": self.devices,
            "exchange": {
                "dense_seconds": self.costs.dense,
                "sparse_latency_seconds": self.costs.latency,
                "sparse_seconds_per_byte": self.costs.per_byte,
            },
        }

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        """Return the figures of a search that only this kernel's JSON has."""
        traces = record.result.traces
        return {
            "levels": record.furthest,
            "directions": [trace.direction for trace in traces],
            "exchange_seconds": sum(trace.exchange_seconds for trace in traces),
            "bytes_sent": sum(trace.bytes_sent for trace in traces),
        }

    def machine_lines(self) -> list[str]:
        """Return lines on the ranks, the selector, and the memory."""
        ranks, memory = super().machine_lines()
        costs = self.costs
        devices = [
            f"{name} of {count} rank{'s' if count > 1 else ''}"
            for name, count in self.devices.items()
        ]
        return [
            ranks,
            *([f"levels also on: {', '.join(devices)}"] if devices else []),
            f"selector: {self.selector}, one direction for all ranks, by the slowest one",
            f"exchange: dense {1e6 * costs.dense:.1f} us; sparse {1e6 * costs.latency:.1f} us and "
            f"{1e9 * costs.per_byte:.3g} ns a byte",
            memory,
        ]

    def schedule(self) -> str:
        """Sum up the levels over all searches."""
        lines = [
            "level  top-down  bottom-up  on devices   mean ms  exchange ms  bytes sent  imbalance"
        ]
        depth = max((len(record.result.traces) for record in self.sources), default=0)
        for number in range(min(depth, 32)):
            levels = [
                r.result.traces[number] for r in self.sources if len(r.result.traces) > number
            ]
            count = len(levels)
            down = sum(level.direction == "top-down" for level in levels)
            lines.append(
                f"{number:>5} {down:>9} {count - down:>10} "
                f"{sum(level.on_devices for level in levels) / levels[0].ranks:>11.4g} "
                f"{1e3 * sum(level.seconds for level in levels) / count:>9.3f} "
                f"{1e3 * sum(level.exchange_seconds for level in levels) / count:>12.3f} "
                f"{sum(level.bytes_sent for level in levels) / count:>11.0f} "
                f"{sum(level.imbalance for level in levels) / count:>10.2f}"
            )
        if depth > 32:
            lines.append(f"... and {depth - 32} more levels (--trace has them all)")
        return "\n".join(lines)

    def details(self, record: KeyRecord) -> str:
        """Return a table of the levels of a search."""
        lines = [
            "level   frontier   its edges  direction        ms  exch ms  bytes sent  imbalance"
            "  push us  pull us"
        ]
        lines += [
            f"{level.number:>5} {level.frontier_vertices:>10} {level.frontier_edges:>11} "
            f"{level.direction:>10} {1e3 * level.seconds:>9.3f} "
            f"{1e3 * level.exchange_seconds:>8.3f} {level.bytes_sent:>11} "
            f"{level.imbalance:>10.2f} {1e6 * level.push_seconds:>8.0f} "
            f"{1e6 * level.pull_seconds:>8.0f}"
            for level in record.result.traces
        ]
        return "\n".join(lines)
