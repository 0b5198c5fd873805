"""Graph500's kernel 2, breadth-first search, on several ranks, and its report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hetero_bfs.algorithms.bfs.check_report import RankValidator
from hetero_bfs.algorithms.bfs.ranks import DistributedSearch, RankResult
from hetero_bfs.algorithms.bfs.ranks_device import open_rank_device
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph500.kernel import RankKernel, RanksReport, RankStep
from hetero_bfs.graph500.report import KeyRecord
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.partition import FileShare, RankGraph
from hetero_bfs.scheduling.rank_decision import ExchangeCosts
from hetero_bfs.scheduling.strategies import Direction


class RankBFS(RankKernel):
    """Breadth-first searches of one graph by all ranks."""

    held_bytes_per_vertex = 8  # parents, of both numberings
    shared_bytes_per_vertex = 12  # messages to other ranks 4, for validation 8

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
        self,
        communicator: Communicator,
        graph: RankGraph,
        share: FileShare,
        options: EngineOptions,
        threads: int,
    ) -> None:
        super().__init__(communicator, graph, share)
        self._selector = str(options.selector)
        device, note = agreed(
            communicator,
            lambda: open_rank_device(options, communicator.host_rank, graph, threads),
        )
        self.device_info = None if device is None else device.info
        noted = enumerate(communicator.collect(note))
        self.notes = [f"rank {rank}: {text}" for rank, text in noted if text is not None]
        self._search = DistributedSearch(
            communicator, graph, self._selector, threads, device=device
        )

    def close(self) -> None:
        self._search.close()

    def search(self, keys: list[int]) -> list[RankResult]:
        return self._search.search_in_a_row(keys)

    def open_validator(self, share: FileShare) -> RankValidator:
        return RankValidator(self.communicator, share.edges, share.input_degree)

    def found(self, result: RankResult) -> tuple[Any, ...]:
        return (result.parent,)

    def figures(self, result: RankResult) -> tuple[float, int, int, list[RankLevel]]:
        rows = self.combined(
            result.levels,
            lambda level: (level.frontier_vertices, level.frontier_edges, level.on_device),
        )
        levels = [
            RankLevel(
                level=number,
                direction=level.direction,
                frontier_vertices=vertices,
                frontier_edges=edges,
                on_devices=on_devices,
                push_seconds=level.push_seconds,
                pull_seconds=level.pull_seconds,
                **fields,
            )
            for number, (level, (vertices, edges, on_devices), fields) in enumerate(rows)
        ]
        return len(levels), result.reached, result.nedge, levels

    def make_report(self, **shared: Any) -> RanksReport:
        info = self.device_info
        names = self.communicator.collect(None if info is None else f"{info.index}: {info.name}")
        return RankBFSReport(
            upload_seconds=0.0,
            compile_seconds=self.open_seconds,
            selector=self._selector,
            devices=dict(Counter(name for name in names if name is not None)),
            costs=self._search.costs,
            **shared,
        )


@dataclass(frozen=True, kw_only=True)
class RankLevel(RankStep):
    """A level of a search; see `RankStep`.

    The frontier is that before the level. `on_devices` ranks ran it on their OpenCL device. The
    seconds of push and pull are predicted for the slowest rank, exchange included.
    """

    level: int
    direction: Direction
    frontier_vertices: int
    frontier_edges: int
    on_devices: int
    push_seconds: float
    pull_seconds: float


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
        directions = [trace.direction for trace in record.result.traces]
        own = {"levels": record.furthest, "directions": directions}
        return own | super().figures_of(record)

    def machine_lines(self) -> list[str]:
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
                f"{sum(level.on_devices for level in levels) / self.processes:>11.4g} "
                f"{1e3 * sum(level.seconds for level in levels) / count:>9.3f} "
                f"{1e3 * sum(level.exchange_seconds for level in levels) / count:>12.3f} "
                f"{sum(level.bytes_sent for level in levels) / count:>11.0f} "
                f"{sum(level.imbalance for level in levels) / count:>10.2f}"
            )
        if depth > 32:
            lines.append(f"... and {depth - 32} more levels (--trace has them all)")
        return "\n".join(lines)

    def details(self, record: KeyRecord) -> str:
        lines = [
            "level   frontier   its edges  direction        ms  exch ms  bytes sent  imbalance"
            "  push us  pull us"
        ]
        lines += [
            f"{level.level:>5} {level.frontier_vertices:>10} {level.frontier_edges:>11} "
            f"{level.direction:>10} {1e3 * level.seconds:>9.3f} "
            f"{1e3 * level.exchange_seconds:>8.3f} {level.bytes_sent:>11} "
            f"{level.imbalance:>10.2f} {1e6 * level.push_seconds:>8.0f} "
            f"{1e6 * level.pull_seconds:>8.0f}"
            for level in record.result.traces
        ]
        return "\n".join(lines)
