"""Graph500's kernel 2, breadth-first search, by an engine or on several ranks, and its reports."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetero_bfs.algorithms.bfs.check import Validator, group_size, validate
from hetero_bfs.algorithms.bfs.check_report import RankValidator
from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.ranks import DistributedSearch, RankResult, open_search
from hetero_bfs.algorithms.bfs.result import RANK_LEVELS, SUMMED, BFSResult, format_factors
from hetero_bfs.algorithms.bfs.streamed import Streaming
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.kernel import Kernel, RankKernel
from hetero_bfs.graph500.report import Graph500Report, Group, KeyRecord, SearchFigures, mean_of
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.rank_run import of_all_ranks
from hetero_bfs.scheduling.rank_decision import ExchangeCosts
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.trace import LEVELS, Columns, format_table
from hetero_bfs.support.memory import format_bytes
from hetero_bfs.support.messages import number_of

_HELD_BYTES_PER_VERTEX = 12  # saved parents 4, the result's parents 8


class BFSKernel(Kernel):
    @staticmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        validate(edges, 0, np.zeros(2, np.int64), np.arange(2, dtype=np.int32))

    def __init__(self, edges: EdgeSource, graph: SearchGraph, options: EngineOptions) -> None:
        self.engine = engine = Engine(graph, **options.settings())
        self.held_bytes = _HELD_BYTES_PER_VERTEX * graph.num_vertices
        self.notes, self.device_info = engine.notes, engine.device_info
        self.uses_host_memory = engine.accelerator is None or bool(engine.accelerator.unified)
        self.construction_seconds = engine.upload_seconds
        self._edges = edges

    def close(self) -> None:
        self.engine.close()

    def make_report(self, **shared: Any) -> Graph500Report:
        engine = self.engine
        return EngineBFSReport(
            selector=engine.selector.name,
            model=engine.selector.model,
            parts=engine.num_parts,
            streaming=engine.streaming,
            corrections=engine.corrections,
            upload_seconds=engine.upload_seconds,
            compile_seconds=engine.compile_seconds,
            **shared,
        )

    def get_ready(self, keys: list[int]) -> int:
        """Search once, to learn the number of levels; return the size of groups."""
        deepest = 2 * int(self.engine.bfs(keys[0]).level.max())  # a bound in an undirected one
        return group_size(self.engine.graph.num_vertices, len(keys), deepest)

    def make_validator(self, size: int) -> Validator:
        return Validator(self._edges, size)

    def search(self, keys: list[int]) -> list[BFSResult]:
        return self.engine.bfs_back_to_back(keys)

    def search_only(self, key: int) -> None:
        self.engine.search(key)

    def found(self, result: BFSResult) -> tuple[Any, ...]:
        return result.parent, result.level

    def figures(self, result: BFSResult) -> tuple[BFSResult, float, int]:
        levels, reached = int(result.level.max()), result.reached
        result.drop_parents()
        return result, levels, reached


_MOST_LEVELS = 32


@dataclass(kw_only=True)
class BFSReport(Graph500Report):
    kernel = "bfs"
    steps = "levels"

    selector: str

    @abstractmethod
    def columns(self) -> Columns:
        """Return the columns of `schedule`; a row is the `Group` of a level."""

    def schedule(self) -> str:
        every = [record.result.traces for record in self.sources]
        by_level = [[one[i] for one in every if i < len(one)] for i in range(_MOST_LEVELS)]
        groups = [Group(i, steps, len(steps)) for i, steps in enumerate(by_level) if steps]
        table = format_table({"level": ("d", lambda group: group.name), **self.columns()}, groups)
        more = max(map(len, every)) - _MOST_LEVELS
        return f"{table}\n... and {more} more levels (--trace has them all)" if more > 0 else table


@dataclass(kw_only=True)
class EngineBFSReport(BFSReport):
    model: SpeedModel | None
    """This machine's model, for predictions and the tuning of kernels; None without one."""
    parts: int
    streaming: Streaming | None
    corrections: dict[str, float]
    """Correction factors after the last search, by strategy or migration, without factors of 1."""

    def mean_streamed_bytes(self) -> float:
        sent = sum(int(r.result.streamed_bytes) for r in self.sources)
        return sent / len(self.sources)

    def rules(self) -> dict[str, int]:
        """Count searches by their selector's rule for all levels; {} if there is no such rule."""
        return dict(Counter(r.result.rule for r in self.sources if r.result.rule).most_common())

    def own_figures(self) -> dict[str, Any]:
        streaming = self.streaming
        return {
            "selector": self.selector,
            "rules": self.rules(),
            "model": None if self.model is None else self.model.origin,
            "corrections": self.corrections,
            "parts": self.parts,
            "streaming": None
            if streaming is None
            else streaming.to_dict() | {"mean_bytes_moved_per_search": self.mean_streamed_bytes()},
        }

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        return {
            "levels": record.furthest,
            "streamed_bytes": record.result.streamed_bytes,
            "strategies": [trace.strategy for trace in record.result.traces],
        }

    def machine_lines(self) -> list[str]:
        return [
            f"selector: {self.selector}{_rules(self)}{_corrections(self)}",
            f"speed model: {self.model.origin_text if self.model else 'none in use'}",
            f"edge array: {_edge_array(self)}",
        ]

    def columns(self) -> Columns:
        return {
            "mean ms": (".3f", mean_of("seconds", "transfer_seconds", unit=1e3)),
            "strategies over all searches": ("<", _strategies),
        }

    def details(self, record: KeyRecord) -> str:
        return format_table(LEVELS, record.result.traces)


def _strategies(group: Group) -> str:
    counts = Counter(trace.strategy for trace in group.steps)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def _rules(report: EngineBFSReport) -> str:
    rules = report.rules()
    total = len(report.sources)
    counted = (rule if n == total else f"{rule} ({n} of {total})" for rule, n in rules.items())
    return f": {'; '.join(counted)}" if rules else ""


def _corrections(report: EngineBFSReport) -> str:
    factors = format_factors(report.corrections)
    return factors and f"; {factors}"


def _edge_array(report: EngineBFSReport) -> str:
    if report.streaming is None:
        return f"{report.parts} part{'s' if report.parts > 1 else ''}"
    sent = format_bytes(report.mean_streamed_bytes())
    return f"{report.streaming}; {sent} sent per search"


class RankBFS(RankKernel):
    held_bytes_per_vertex = 8  # parents, of both numberings
    shared_bytes_per_vertex = 12  # messages to other ranks 4, for validation 8
    validator = RankValidator
    _search: DistributedSearch

    def open(self, options: EngineOptions, threads: int) -> None:
        self._selector = str(options.selector)
        self._search, self.notes = open_search(self.communicator, self.graph, options, threads)
        device = self._search.device
        self.device_info = None if device is None else device.info

    def search(self, keys: list[int]) -> list[RankResult]:
        return self._search.search_in_a_row([Query((key,)) for key in keys])

    def found(self, result: RankResult) -> tuple[Any, ...]:
        return (result.parent,)

    def figures(self, result: RankResult) -> tuple[SearchFigures, float, int]:
        levels = of_all_ranks(self.communicator, result.levels, *SUMMED)
        search = SearchFigures(result.source, result.seconds, 0.0, result.nedge, levels)
        return search, len(levels), result.reached

    def make_report(self, **shared: Any) -> Graph500Report:
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


@dataclass(kw_only=True)
class RankBFSReport(BFSReport):
    devices: dict[str, int]
    """Ranks that have each OpenCL device, by its number on their host and its name."""
    costs: ExchangeCosts

    def own_figures(self) -> dict[str, Any]:
        return {
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
        return {"levels": record.furthest, "directions": directions}

    def machine_lines(self) -> list[str]:
        costs = self.costs
        devices = [f"{name} of {number_of(n, 'rank')}" for name, n in self.devices.items()]
        return [
            *([f"levels also on: {', '.join(devices)}"] if devices else []),
            f"selector: {self.selector}, one direction for all ranks, by the slowest one",
            f"exchange: dense {1e6 * costs.dense:.1f} us; sparse {1e6 * costs.latency:.1f} us and "
            f"{1e9 * costs.per_byte:.3g} ns a byte",
        ]

    def columns(self) -> Columns:
        return {
            "top-down": ("d", lambda group: sum(x.direction == "top-down" for x in group.steps)),
            "bottom-up": ("d", lambda group: sum(x.direction == "bottom-up" for x in group.steps)),
            "on devices": (".4g", lambda g: sum(x.on_devices for x in g.steps) / self.processes),
            "mean ms": (".3f", mean_of("seconds", unit=1e3)),
            "exchange ms": (".3f", mean_of("exchange_seconds", unit=1e3)),
            "bytes sent": (".0f", mean_of("bytes_sent")),
            "imbalance": (".2f", mean_of("imbalance")),
        }

    def details(self, record: KeyRecord) -> str:
        return format_table(RANK_LEVELS, record.result.traces)
