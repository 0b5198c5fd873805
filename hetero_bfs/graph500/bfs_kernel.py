"""Graph500's kernel 2, breadth-first search, by an engine, and its report."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetero_bfs.algorithms.bfs.check import Validator, group_size, validate
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.streamed import Streaming
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.kernel import Kernel
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.objective import Objective
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.trace import format_levels
from hetero_bfs.support.memory import format_bytes

_HELD_BYTES_PER_VERTEX = 12  # saved parents 4, the result's parents 8


class BFSKernel(Kernel):
    """Breadth-first searches of one graph."""

    @staticmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        """Compile the validation; the engine compiles everything else before it searches."""
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

    def make_validator(self, size: int) -> Validator:
        return Validator(self._edges, size)

    def search(self, keys: list[int]) -> list[BFSResult]:
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


@dataclass(kw_only=True)
class BFSReport(Graph500Report):
    """Everything a run of breadth-first searches produced."""

    kernel = "bfs"
    steps = "levels"

    selector: str
    model: SpeedModel | None
    """This machine's model, for predictions and the tuning of kernels; None without one."""
    objective: Objective | None
    """The selector's objective; None for time."""
    parts: int
    streaming: Streaming | None
    corrections: dict[str, float]
    """Correction factors after the last search, by strategy or migration, without those of 1."""

    def mean_streamed_bytes(self) -> float:
        sent = sum(int(r.result.streamed_bytes) for r in self.sources)
        return sent / max(len(self.sources), 1)

    def objective_figures(self) -> dict[str, Any]:
        """Return the objective, and the mean joules of a search predicted by the model's watts.

        Metered joules are in `energy`; they include the host's work between searches.
        """
        if self.objective is None:
            return {"objective": "time"}
        traces = [record.result.traces for record in self.sources]
        joules, net = (
            float(np.mean([of(t) for t in traces])) if traces else None
            for of in (self.objective.joules, self.objective.net_joules)
        )
        figures = {"model_joules_per_search": joules, "model_net_joules_per_search": net}
        return self.objective.to_dict() | figures

    def rules(self) -> dict[str, int]:
        """Count searches by their selector's rule for all levels; {} if there is no such rule."""
        return dict(Counter(r.result.rule for r in self.sources if r.result.rule).most_common())

    def own_figures(self) -> dict[str, Any]:
        streaming = self.streaming
        return {
            "selector": self.selector,
            "rules": self.rules(),
            "model": None if self.model is None else self.model.origin,
            "optimize": self.objective_figures(),
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
            f"speed model: {self.model.origin_text if self.model else 'none of this machine'}",
            *([] if self.objective is None else _objective_lines(self, self.objective)),
            f"edge array: {_edge_array(self)}",
        ]

    def schedule(self) -> str:
        by_level: list[Counter[str]] = []
        seconds: list[float] = []
        for record in self.sources:
            for level, trace in enumerate(record.result.traces):
                if level == len(by_level):
                    by_level.append(Counter())
                    seconds.append(0.0)
                by_level[level][trace.strategy] += 1
                seconds[level] += trace.seconds + trace.transfer_seconds
        lines = ["level  mean ms  strategies over all searches"]
        for level, counts in enumerate(by_level[:32]):
            named = ", ".join(f"{name} {count}" for name, count in counts.most_common())
            mean = 1e3 * seconds[level] / counts.total()
            lines.append(f"{level:>5} {mean:>8.3f}  {named}")
        if len(by_level) > 32:
            lines.append(f"... and {len(by_level) - 32} more levels (--trace has them all)")
        return "\n".join(lines)

    def details(self, record: KeyRecord) -> str:
        return format_levels(record.result.traces)


def _rules(report: BFSReport) -> str:
    rules = report.rules()
    total = len(report.sources)
    counted = (rule if n == total else f"{rule} ({n} of {total})" for rule, n in rules.items())
    return f": {'; '.join(counted)}" if rules else ""


def _corrections(report: BFSReport) -> str:
    factors = ", ".join(f"{name} x{value:.2g}" for name, value in report.corrections.items())
    return f"; predictions corrected by what was measured: {factors}" if factors else ""


def _objective_lines(report: BFSReport, objective: Objective) -> list[str]:
    """Return the objective, its watts, and the modelled and metered joules per search."""
    figures = report.objective_figures()
    line = (
        f"energy of a search: {1e3 * figures['model_joules_per_search']:.4g} mJ by these watts, "
        f"{1e3 * figures['model_net_joules_per_search']:.4g} above idle"
    )
    totals = [] if report.energy is None else report.energy.totals
    for total in totals:
        if total.domain in objective.domains:
            net = total.net_joules
            above = "" if net is None else f", {1e3 * net / total.searches:.4g} above idle"
            line += f"; metered {total.domain} {1e3 * total.joules_per_search:.4g} mJ{above}"
    return [f"objective: least {objective}", line]


def _edge_array(report: BFSReport) -> str:
    if report.streaming is None:
        return f"{report.parts} part{'s' if report.parts > 1 else ''}"
    sent = format_bytes(report.mean_streamed_bytes())
    return f"{report.streaming}; {sent} sent per search"
