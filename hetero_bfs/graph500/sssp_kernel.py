"""Graph500's kernel 3, shortest paths: distances and parents of a weighted graph."""

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
from hetero_bfs.algorithms.sssp.result import ShortestPaths, WindowTrace
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.kernel import Kernel
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.graph500.sssp_report import SSSPReport
from hetero_bfs.options import EngineOptions
from hetero_bfs.support import memory

_USABLE_SHARE = 0.5  # share of the free memory for a group of searches to validate


@dataclass(frozen=True)
class PathFigures:
    """Figures that are kept of a search when its distances and parents are dropped."""

    source: int
    seconds: float
    gather_seconds: float
    nedge: int
    traces: list[WindowTrace]
    used_device: bool
    edges_scanned: int

    @property
    def teps(self) -> float:
        """Traversed edges per second."""
        return self.nedge / self.seconds if self.seconds > 0 else 0.0


class SSSPKernel(Kernel):
    """Shortest-path searches of one weighted graph."""

    name = "sssp"
    held_bytes = 24  # distances and parents in new ids 4 + 4, in the caller's ids 8 + 8

    @staticmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        """Sort the lists, search on the CPU and validate."""
        with PathSearches(graph, 1) as searches:
            (paths,) = searches.run_with_parents([0])
        check_paths(edges, 0, paths.distance, paths.parent)

    def __init__(self, graph: SearchGraph, options: EngineOptions) -> None:
        started = time.perf_counter()
        self.searches = open_analysis(PathSearches, graph, options)
        self.notes = self.searches.notes
        self._open_seconds = time.perf_counter() - started - self.construction_seconds

    def close(self) -> None:
        """End the threads and release the device."""
        self.searches.close()

    @property
    def device_info(self) -> DeviceInfo | None:
        """The OpenCL device in use."""
        device = self.searches.device
        return None if device is None else device.device.info

    @property
    def uses_host_memory(self) -> bool:
        """Whether the data of all searches is in the host's memory."""
        return self.device_info is None or self.device_info.unified_memory

    @property
    def upload_seconds(self) -> float:
        """Seconds of uploading."""
        device = self.searches.device
        return 0.0 if device is None else float(device.upload_seconds)

    @property
    def construction_seconds(self) -> float:
        """Seconds of sorting lists by weight, and of uploading."""
        return self.searches.lists.sort_seconds + self.upload_seconds

    def make_report(self, **shared: Any) -> Graph500Report:
        """Return the report after the last search."""
        return SSSPReport(
            weights=str(self.searches.lists.weight_dtype),
            sort_seconds=self.searches.lists.sort_seconds,
            upload_seconds=self.upload_seconds,
            compile_seconds=self._open_seconds,
            **shared,
        )

    def get_ready(self, keys: list[int]) -> int:
        """Search on each place; return how many searches to validate together."""
        self.searches.run_with_parents(keys[:1] * 2 * len(list(self.searches.places)))
        usable = int(_USABLE_SHARE * memory.free_bytes())
        fits = usable // (BYTES_PER_VERTEX * self.searches.graph.num_vertices)
        return max(min(fits, MAX_SEARCHES, len(keys)), 1)

    def make_validator(self, edges: EdgeSource, size: int) -> PathChecker:
        """Return the validator of the five checks."""
        return PathChecker(edges, size)

    def search(self, keys: list[int]) -> list[ShortestPaths]:
        """Search from keys back-to-back; return distances and parents."""
        return self.searches.run_with_parents(keys)

    def search_only(self, key: int) -> None:
        """Search once."""
        self.searches.run_with_parents([key])

    def record(self, key: int, result: ShortestPaths, validator: PathChecker | None) -> KeyRecord:
        """Pass a search's result to the validator, and keep its figures."""
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
