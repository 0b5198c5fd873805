"""Graph500's kernel 2, breadth-first search, by an engine."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hetero_bfs.algorithms.bfs.check import Validator, group_size, validate
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.bfs_report import BFSReport
from hetero_bfs.graph500.kernel import Kernel
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.named_selectors import model_of


class BFSKernel(Kernel):
    """Breadth-first searches of one graph."""

    name = "bfs"
    held_bytes = 12  # saved parents 4, the result's parents 8

    @staticmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        """Compile the validation; the engine compiles everything else before it searches."""
        validate(edges, 0, np.zeros(2, np.int64), np.arange(2, dtype=np.int32))

    def __init__(self, graph: SearchGraph, options: EngineOptions) -> None:
        self.engine = Engine(graph, **options.settings())
        self.notes = self.engine.notes

    def close(self) -> None:
        """End the engine."""
        self.engine.close()

    @property
    def device_info(self) -> DeviceInfo | None:
        """The OpenCL device in use."""
        return self.engine.device_info

    @property
    def uses_host_memory(self) -> bool:
        """Whether the data of all searches is in the host's memory."""
        accelerator = self.engine.accelerator
        return accelerator is None or bool(accelerator.unified)

    @property
    def construction_seconds(self) -> float:
        """Seconds of uploading."""
        return self.engine.upload_seconds

    def make_report(self, **shared: Any) -> Graph500Report:
        """Return the report after the last search."""
        engine = self.engine
        return BFSReport(
            selector=engine.selector.name,
            model=model_of(engine.device_info),
            objective=engine.objective,
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

    def make_validator(self, edges: EdgeSource, size: int) -> Validator:
        """Return the validator of the five checks."""
        return Validator(edges, size)

    def search(self, keys: list[int]) -> list[BFSResult]:
        """Search from keys back-to-back."""
        return self.engine.bfs_back_to_back(keys)

    def search_only(self, key: int) -> None:
        """Search without gathering the parents."""
        self.engine.search(key)

    def record(self, key: int, result: BFSResult, validator: Validator | None) -> KeyRecord:
        """Pass a search's result to the validator, and drop it."""
        levels, reached, seconds = int(result.level.max()), result.reached, -1.0
        if validator is not None:
            started = time.perf_counter()
            validator.add(key, result.parent, result.level)
            seconds = time.perf_counter() - started
        result.drop_parents()
        return KeyRecord(result, levels, reached, None, seconds)
