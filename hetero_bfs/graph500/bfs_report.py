"""The report of Graph500's kernel 2: selector, strategies of each level, and one search."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from hetero_bfs.algorithms.bfs.paged_graph import Streaming
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.scheduling.objective import Objective
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.trace import format_levels
from hetero_bfs.support.memory import format_bytes


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
        """Return the mean bytes of edges that a search sent to the device."""
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
        """Return the figures that only this kernel's JSON has."""
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
        """Return the figures of a search that only this kernel's JSON has."""
        return {
            "levels": record.furthest,
            "streamed_bytes": record.result.streamed_bytes,
            "strategies": [trace.strategy for trace in record.result.traces],
        }

    def machine_lines(self) -> list[str]:
        """Return lines on the selector and on the storage of edges."""
        return [
            f"selector: {self.selector}{_rules(self)}{_corrections(self)}",
            f"speed model: {self.model.origin_text if self.model else 'none of this machine'}",
            *([] if self.objective is None else _objective_lines(self, self.objective)),
            f"edge array: {_edge_array(self)}",
        ]

    def schedule(self) -> str:
        """Count which strategies ran at each level over all searches."""
        return _schedule(self)

    def details(self, record: KeyRecord) -> str:
        """Return a table of the levels of a search."""
        return format_levels(record.result.traces)


def _rules(report: BFSReport) -> str:
    """Return the selector's rules for all levels, with counts of searches if they changed."""
    rules = report.rules()
    total = len(report.sources)
    counted = (rule if n == total else f"{rule} ({n} of {total})" for rule, n in rules.items())
    return f": {'; '.join(counted)}" if rules else ""


def _corrections(report: BFSReport) -> str:
    """Return the correction factors after the last search in words."""
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


def _schedule(report: BFSReport) -> str:
    """Count which strategies ran at each level over all searches."""
    by_level: list[Counter[str]] = []
    seconds: list[float] = []
    for record in report.sources:
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
