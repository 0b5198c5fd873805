"""Graph500's kernel 3, shortest paths, in one process or on several ranks, and its reports."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetero_bfs.algorithms.base import open_analysis
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.check import (
    BYTES_PER_VERTEX,
    MAX_SEARCHES,
    PathChecker,
    check_paths,
)
from hetero_bfs.algorithms.sssp.ranks import RankPaths, RankPathSearch
from hetero_bfs.algorithms.sssp.ranks_check import RankPathValidator
from hetero_bfs.algorithms.sssp.result import RANK_WINDOWS, WINDOWS, ShortestPaths
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.kernel import Kernel, RankKernel
from hetero_bfs.graph500.report import Graph500Report, Group, KeyRecord, SearchFigures, mean_of
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.rank_run import of_all_ranks, slowest
from hetero_bfs.scheduling.trace import Columns, format_table
from hetero_bfs.support import memory

_HELD_BYTES_PER_VERTEX = 24  # distances and parents in new ids 4 + 4, in the caller's ids 8 + 8
_USABLE_SHARE = 0.5  # share of the free memory for a group of searches to validate


class SSSPKernel(Kernel):
    @staticmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        with PathSearches(graph, 1) as searches:
            (paths,) = searches.run_with_parents([0])
        check_paths(edges, 0, paths.distance, paths.parent)

    def __init__(self, edges: EdgeSource, graph: SearchGraph, options: EngineOptions) -> None:
        started = time.perf_counter()
        self.searches = open_analysis(PathSearches, graph, options, MAX_SEARCHES)
        self.held_bytes = _HELD_BYTES_PER_VERTEX * graph.num_vertices
        self.notes = self.searches.notes
        device = self.searches.device
        self.device_info = None if device is None else device.device.info
        self.uses_host_memory = self.device_info is None or self.device_info.unified_memory
        self._upload_seconds = 0.0 if device is None else float(device.upload_seconds)
        self.construction_seconds = self.searches.lists.sort_seconds + self._upload_seconds
        self._open_seconds = time.perf_counter() - started - self.construction_seconds
        self._edges = edges

    def close(self) -> None:
        self.searches.close()

    def make_report(self, **shared: Any) -> Graph500Report:
        return SSSPReport(
            weights=str(self.searches.lists.weight_dtype),
            sort_seconds=self.searches.lists.sort_seconds,
            upload_seconds=self._upload_seconds,
            compile_seconds=self._open_seconds,
            **shared,
        )

    def get_ready(self, keys: list[int]) -> int:
        """Search twice on each place; return how many searches to validate together."""
        for place in list(self.searches.places):
            for _ in range(2):
                self.searches.run(keys[0], True, place=place)
        usable = int(_USABLE_SHARE * memory.free_bytes())
        fits = usable // (BYTES_PER_VERTEX * self.searches.graph.num_vertices)
        return max(min(fits, MAX_SEARCHES, len(keys)), 1)

    def make_validator(self, size: int) -> PathChecker:
        return PathChecker(self._edges, size)

    def search(self, keys: list[int]) -> list[ShortestPaths]:
        return self.searches.run_with_parents(keys)

    def found(self, result: ShortestPaths) -> tuple[Any, ...]:
        return result.distance, result.parent

    def figures(self, result: ShortestPaths) -> tuple[SearchFigures, float, int]:
        graph, reached = self.searches.graph, np.isfinite(result.distance)
        ends = int(graph.input_degree.sum(where=reached, dtype=np.int64))
        nedge = ends if result.directed else ends // 2
        search = SearchFigures(
            result.source, result.seconds, result.restore_seconds, nedge, result.traces
        )
        return search, float(result.distance[reached].max()), int(np.count_nonzero(reached))


class RankSSSP(RankKernel):
    held_bytes_per_vertex = 12  # distances 8, parents 4
    shared_bytes_per_vertex = 16  # for validation
    validator = RankPathValidator
    _search: RankPathSearch

    def open(self, options: EngineOptions, threads: int) -> None:
        self._search = RankPathSearch(self.communicator, self.graph)
        self.construction_seconds = slowest(self.communicator, self._search.sort_seconds)

    def search(self, keys: list[int]) -> list[RankPaths]:
        return [self._search.search(key) for key in keys]

    def found(self, result: RankPaths) -> tuple[Any, ...]:
        return result.distance, result.parent

    def figures(self, result: RankPaths) -> tuple[SearchFigures, float, int]:
        reached = np.isfinite(result.distance)
        furthest = np.array([result.distance.max(where=reached, initial=0.0)])
        self.communicator.reduce_to_all(furthest, "max")
        count, nedge = self._search.count(reached)
        windows = of_all_ranks(self.communicator, result.windows, "edges_scanned", "vertices")
        search = SearchFigures(result.source, result.seconds, 0.0, nedge, windows)
        return search, float(furthest[0]), count

    def make_report(self, **shared: Any) -> Graph500Report:
        return SSSPReport(
            upload_seconds=0.0,
            compile_seconds=self.open_seconds - self.construction_seconds,
            weights=str(self._search.weight_dtype),
            sort_seconds=self.construction_seconds,
            **shared,
        )


@dataclass(kw_only=True)
class SSSPReport(Graph500Report):
    kernel = "sssp"
    steps = "windows"

    weights: str
    """Type of the weights."""
    sort_seconds: float
    """Part of the construction: sorting lists by weight, on ranks by the slowest one."""

    def device_searches(self) -> int:
        return sum(record.result.used_device for record in self.sources)

    def own_figures(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "sort_time_seconds": self.sort_seconds,
            "device_searches": self.device_searches(),
        }

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        windows = record.result.traces
        return {
            "largest_distance": record.furthest,
            "windows": len(windows),
            "rounds": sum(window.rounds for window in windows),
            "edges_scanned": record.result.edges_scanned,
            "used_device": record.result.used_device,
        }

    def machine_lines(self) -> list[str]:
        lines = [
            f"weights: {self.weights}",
            "timed: from the key to distances and parents, both complete "
            + ("in the host's memory" if self.ranks is None else "on all ranks"),
            f"lists by weight: sorted in {self.sort_seconds:.3f} s of the construction",
        ]
        if self.ranks is not None:
            return lines
        on_device = self.device_searches()
        return [
            f"places: {len(self.sources) - on_device} searches on the CPU, {on_device} on the "
            "device, chosen by predicted and measured seconds",
            *lines,
        ]

    def schedule(self) -> str:
        count = len(self.sources)
        by_strategy: dict[str, list[Any]] = {}
        for record in self.sources:
            for window in record.result.traces:
                by_strategy.setdefault(window.strategy, []).append(window)
        groups = [Group(name, windows, count) for name, windows in by_strategy.items()]
        exchanges: Columns = {
            "exch ms": (".3f", mean_of("exchange_seconds", unit=1e3)),
            "bytes sent": (".0f", mean_of("bytes_sent")),
        }
        columns: Columns = {
            "strategy": ("<", lambda group: group.name),
            "windows": (".1f", lambda group: len(group.steps) / count),
            "rounds": (".1f", mean_of("rounds")),
            "vertices": (".0f", mean_of("vertices")),
            "edges": (".0f", mean_of("edges_scanned")),
            "ms": (".3f", mean_of("seconds", unit=1e3)),
            **({} if self.ranks is None else exchanges),
        }
        times = ["seconds", *([] if self.ranks is None else ["exchange_seconds"])]
        rest = sum(record.result.seconds for record in self.sources) / count
        rest -= sum(map(mean_of(*times), groups))
        table = format_table(columns, groups)
        return f"means of a search\n{table}\nparents, rest: {1e3 * rest:.3f} ms"

    def details(self, record: KeyRecord) -> str:
        columns = WINDOWS if self.ranks is None else RANK_WINDOWS
        return format_table(columns, record.result.traces)
