"""The report of a Graph500 run: the reference's lines, our own blocks, and JSON."""

from __future__ import annotations

import datetime
import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hetero_bfs import energy
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.streamed_executor import Streaming
from hetero_bfs.algorithms.bfs.validation import Validation
from hetero_bfs.devices.machine import describe_machine
from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.graph.relabel import Order
from hetero_bfs.graph500.statistics import graph500_lines, statistics, teps_statistics
from hetero_bfs.selection.objective import Objective
from hetero_bfs.selection.speed_model import SpeedModel
from hetero_bfs.selection.trace import format_levels
from hetero_bfs.support.files import printable
from hetero_bfs.support.memory import format_bytes


@dataclass(frozen=True)
class KeyRecord:
    """One timed search and its validation; `levels` is the largest distance.

    `validate_seconds` is the time to add the search to its group, plus an equal share of the
    group's pass over the edges. It includes generating the edges if they are not held. It is -1
    without validation.
    """

    result: BFSResult
    levels: int
    reached: int
    validation: Validation | None
    validate_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the search for JSON."""
        return {
            "root": self.result.source,
            "time_seconds": self.result.seconds,
            "gather_seconds": self.result.gather_seconds,
            "nedge": self.result.nedge,
            "teps": self.result.teps,
            "levels": self.levels,
            "reached": self.reached,
            "streamed_bytes": self.result.streamed_bytes,
            "strategies": [trace.strategy for trace in self.result.traces],
            "valid": None if self.validation is None else self.validation.valid,
        }


@dataclass
class Graph500Report:
    """Everything a run produced."""

    scale: float
    edgefactor: float
    selector: str
    model: SpeedModel | None
    """This machine's model, for predictions and the tuning of kernels; None without one."""
    objective: Objective | None
    """The selector's objective; None for time."""
    device: DeviceInfo | None
    parts: int
    streaming: Streaming | None
    order: Order
    searched_vertices: int
    num_vertices: int
    generation_seconds: float
    construction_seconds: float
    upload_seconds: float
    compile_seconds: float
    edge_passes: int | None
    """Passes for which the edges were generated; None if they were held in memory."""
    searches_back_to_back: int
    """Searches of a group, before any of its results is inspected; the first group also ran before
    all others, untimed."""
    notes: list[str]
    sources: list[KeyRecord] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    corrections: dict[str, float] = field(default_factory=dict)
    """Correction factors after the last search, by strategy or migration, without those of 1."""
    energy: energy.EnergyReport | None = None

    @property
    def valid(self) -> bool:
        """True unless a validation failed."""
        return not self.failures

    def lines(self) -> list[str]:
        """Return the reference's lines; none for an invalid run or one without searches."""
        if self.failures or not self.sources:
            return []
        return graph500_lines(
            self.scale,
            self.edgefactor,
            self.generation_seconds,
            self.construction_seconds,
            [r.result.seconds for r in self.sources],
            [r.result.nedge for r in self.sources],
            None
            if self.sources[0].validation is None
            else [r.validate_seconds for r in self.sources],
        )

    def mean_streamed_bytes(self) -> float:
        """Return the mean bytes of edges that a search sent to the device."""
        return sum(r.result.streamed_bytes for r in self.sources) / max(len(self.sources), 1)

    def typical(self) -> KeyRecord:
        """Return the search of median time."""
        return sorted(self.sources, key=lambda r: r.result.seconds)[len(self.sources) // 2]

    def objective_figures(self) -> dict[str, Any]:
        """Return the objective, and the mean joules of a search by the model's watts.

        Metered joules are in `energy`; they include the host's work between searches.
        """
        if self.objective is None:
            return {"aim": "time"}
        traces = [record.result.traces for record in self.sources]
        joules, net = (
            float(np.mean([of(t) for t in traces])) if traces else None
            for of in (self.objective.joules, self.objective.net_joules)
        )
        figures = {"model_joules_per_search": joules, "model_net_joules_per_search": net}
        return self.objective.to_dict() | figures

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        from hetero_bfs import __version__

        seconds = [r.result.seconds for r in self.sources]
        nedges = [r.result.nedge for r in self.sources]
        bfs: dict[str, float | None] = {}
        if self.sources:
            values = {f"{k}_time_seconds": v for k, v in statistics(seconds).items()}
            values |= {k.lower(): v for k, v in teps_statistics(seconds, nedges).items()}
            bfs = {k: v if math.isfinite(v) else None for k, v in values.items()}
            bfs["mean_gather_seconds"] = float(
                np.mean([r.result.gather_seconds for r in self.sources])
            )
        return {
            "scale": self.scale,
            "edgefactor": self.edgefactor,
            "nbfs": len(self.sources),
            "valid": self.valid,
            "failures": self.failures,
            "generation_time_seconds": self.generation_seconds,
            "construction_time_seconds": self.construction_seconds,
            "upload_time_seconds": self.upload_seconds,
            "compile_time_seconds": self.compile_seconds,
            "selector": self.selector,
            "rules": self.rules(),
            "model": None if self.model is None else self.model.origin,
            "optimize": self.objective_figures(),
            "corrections": self.corrections,
            "devices": ["cpu"] + ([] if self.device is None else [self.device.name]),
            "parts": self.parts,
            "streaming": None
            if self.streaming is None
            else self.streaming.to_dict()
            | {"mean_bytes_moved_per_search": self.mean_streamed_bytes()},
            "order": self.order,
            "num_vertices": self.num_vertices,
            "searched_vertices": self.searched_vertices,
            "bfs": bfs,
            "roots": [r.to_dict() for r in self.sources],
            "energy": None if self.energy is None else self.energy.to_dict(),
            "notes": self.notes,
            "edge_passes": self.edge_passes,
            "searches_in_a_row": self.searches_back_to_back,
            "machine": describe_machine(self.device),
            "version": __version__,
            "command": command_line(),
            "date": datetime.date.today().isoformat(),
        }

    def rules(self) -> dict[str, int]:
        """Count searches by their selector's rule for all levels; {} if there is no such rule."""
        return dict(Counter(r.result.rule for r in self.sources if r.result.rule).most_common())

    def trace_rows(self) -> list[dict[str, Any]]:
        """Return one record per level of every search."""
        return [
            {"root": record.result.source, **trace.row()}
            for record in self.sources
            for trace in record.result.traces
        ]


def format_report(report: Graph500Report, every_key: bool = False) -> str:
    """Return the report for the terminal: the reference's lines first, then our own blocks."""
    if report.failures:
        shown = report.failures[:20]
        return "\n".join(
            [
                f"INVALID: {len(report.failures)} of {len(report.sources)} searches failed",
                *shown,
                "No results printed for invalid run.",
            ]
        )
    blocks = ["\n".join(report.lines()), _machine_block(report), _schedule_block(report)]
    for record in report.sources if every_key else [report.typical()]:
        title = "levels of source" if every_key else "levels of the search of median time, source"
        result = record.result
        blocks.append(
            f"{title} {result.source}: {1e3 * result.seconds:.3f} ms, "
            f"{result.teps / 1e9:.3f} GTEPS, gather and restore "
            f"{1e3 * result.gather_seconds:.3f} ms\n{format_levels(result.traces)}"
        )
    if report.energy is not None:
        blocks.append("energy\n" + energy.format_report(report.energy))
    return "\n\n".join(blocks)


_ORDERS: dict[Order, str] = {
    "degree": "by falling degree",
    "locality": "by locality",
    "compact": "the given order",
    "given": "off",
}


def _rules(report: Graph500Report) -> str:
    """Return the selector's rules for all levels, with counts of searches if they changed."""
    rules = report.rules()
    total = len(report.sources)
    counted = (rule if n == total else f"{rule} ({n} of {total})" for rule, n in rules.items())
    return f": {'; '.join(counted)}" if rules else ""


def _corrections(report: Graph500Report) -> str:
    """Return the correction factors after the last search in words."""
    factors = ", ".join(f"{name} x{value:.2g}" for name, value in report.corrections.items())
    return f"; predictions corrected by what was measured: {factors}" if factors else ""


def _machine_block(report: Graph500Report) -> str:
    machine = describe_machine(report.device)
    device = report.device
    removed = report.num_vertices - report.searched_vertices
    checked = report.sources[0].validation is not None
    lines = [
        f"validation: {'all five checks passed for every key' if checked else 'not done'}",
        f"host: {machine['cpu']}, {machine['threads']} threads",
        "device: none" if device is None else f"device: {device.name} ({device.platform})",
        f"selector: {report.selector}{_rules(report)}{_corrections(report)}",
        f"speed model: {report.model.origin_text if report.model else 'none of this machine'}",
        *([] if report.objective is None else _objective_lines(report, report.objective)),
        f"edge array: {_edge_array(report)}",
        f"relabelling: {_ORDERS[report.order]}; {removed} of {report.num_vertices} vertices have "
        "no edges and left the searched range",
        "edges: held in memory"
        if report.edge_passes is None
        else f"edges: not held; generated anew for each of {report.edge_passes} passes, "
        f"{report.generation_seconds:.3f} s a pass",
        f"searches: {report.searches_back_to_back} back-to-back before any result is "
        f"inspected, after {report.searches_back_to_back} untimed",
        f"construction: {report.construction_seconds:.3f} s, "
        f"{report.upload_seconds:.3f} s of it upload; kernels compiled and warmed up in "
        f"{report.compile_seconds:.3f} s (not counted)",
    ]
    return "\n".join(lines)


def _objective_lines(report: Graph500Report, objective: Objective) -> list[str]:
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


def _edge_array(report: Graph500Report) -> str:
    if report.streaming is None:
        return f"{report.parts} part{'s' if report.parts > 1 else ''}"
    sent = format_bytes(report.mean_streamed_bytes())
    return f"{report.streaming}; {sent} sent per search"


def _schedule_block(report: Graph500Report) -> str:
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


def command_line() -> str:
    """Return the running command; absolute paths are shortened to the file's name."""
    arguments = (Path(a).name if a.startswith("/") else a for a in sys.argv[1:])
    return " ".join(["hetero-bfs", *map(printable, arguments)])
