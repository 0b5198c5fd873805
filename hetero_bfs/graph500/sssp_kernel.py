"""Graph500's kernel 3, shortest paths, in one process, and its report."""

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
from hetero_bfs.algorithms.sssp.result import ShortestPaths, format_windows
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.kernel import Kernel
from hetero_bfs.graph500.report import Graph500Report, KeyRecord, SearchFigures, means_by_strategy
from hetero_bfs.options import EngineOptions
from hetero_bfs.support import memory

_HELD_BYTES_PER_VERTEX = 24  # distances and parents in new ids 4 + 4, in the caller's ids 8 + 8
_USABLE_SHARE = 0.5  # share of the free memory for a group of searches to validate


@dataclass(frozen=True)
class PathFigures(SearchFigures):
    """Figures of a search; `traces` has windows."""

    used_device: bool
    edges_scanned: int


class SSSPKernel(Kernel):
    """Shortest-path searches of one weighted graph."""

    @staticmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        """Sort the lists, search on the CPU and validate."""
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

    def record(self, key: int, result: ShortestPaths, validator: PathChecker | None) -> KeyRecord:
        graph, reached, seconds = self.searches.graph, np.isfinite(result.distance), -1.0
        if validator is not None:
            started = time.perf_counter()
            validator.add(key, result.distance, result.parent)
            seconds = time.perf_counter() - started
        ends = int(graph.input_degree.sum(where=reached, dtype=np.int64))
        figures = PathFigures(
            result.source,
            result.seconds,
            result.restore_seconds,
            ends if result.directed else ends // 2,
            result.traces,
            result.used_device,
            result.edges_scanned,
        )
        furthest = float(result.distance[reached].max())
        return KeyRecord(figures, furthest, int(np.count_nonzero(reached)), None, seconds)


@dataclass(kw_only=True)
class SSSPReport(Graph500Report):
    """Results of a run of shortest-path searches."""

    kernel = "sssp"
    steps = "windows"

    weights: str
    """Type of the weights."""
    sort_seconds: float
    """Part of the construction: sorting lists by weight."""

    def device_searches(self) -> int:
        return sum(record.result.used_device for record in self.sources)

    def own_figures(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "sort_time_seconds": self.sort_seconds,
            "device_searches": self.device_searches(),
        }

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        return {
            "largest_distance": record.furthest,
            "windows": len(record.result.traces),
            "edges_scanned": record.result.edges_scanned,
            "used_device": record.result.used_device,
        }

    def machine_lines(self) -> list[str]:
        on_device = self.device_searches()
        return [
            f"places: {len(self.sources) - on_device} searches on the CPU, {on_device} on the "
            "device, chosen by predicted and measured seconds",
            f"weights: {self.weights}",
            "timed: from the key to distances and parents, both complete in the host's memory",
            f"lists by weight: sorted in {self.sort_seconds:.3f} s of the construction",
        ]

    def schedule(self) -> str:
        means = means_by_strategy(
            self.sources, lambda window: (window.vertices, window.edges_scanned, window.seconds)
        )
        lines = ["strategy       windows     vertices        edges        ms  means of a search"]
        for strategy, (windows, vertices, edges, seconds) in means.items():
            lines.append(
                f"{strategy:<13} {windows:>8.1f} {vertices:>12.0f} {edges:>12.0f} "
                f"{1e3 * seconds:>9.3f}"
            )
        rest = sum(record.result.seconds for record in self.sources) / len(self.sources)
        rest -= sum(seconds for *_, seconds in means.values())
        lines.append(f"{'parents, rest':<48}{1e3 * rest:>10.3f}")
        return "\n".join(lines)

    def details(self, record: KeyRecord) -> str:
        return format_windows(record.result.traces)
