"""The report of Graph500's kernel 3: where searches ran, their strategies, and one search."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from hetero_bfs.algorithms.sssp.result import format_windows
from hetero_bfs.graph500.report import Graph500Report, KeyRecord


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
        """Count the searches that the OpenCL device ran."""
        return sum(record.result.used_device for record in self.sources)

    def own_figures(self) -> dict[str, Any]:
        """Return the figures that only this kernel's JSON has."""
        return {
            "weights": self.weights,
            "sort_time_seconds": self.sort_seconds,
            "device_searches": self.device_searches(),
        }

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        """Return the figures of a search that only this kernel's JSON has."""
        return {
            "largest_distance": record.furthest,
            "windows": len(record.result.traces),
            "edges_scanned": record.result.edges_scanned,
            "used_device": record.result.used_device,
        }

    def machine_lines(self) -> list[str]:
        """Return lines on where searches ran, and what was timed."""
        on_device = self.device_searches()
        return [
            f"places: {len(self.sources) - on_device} searches on the CPU, {on_device} on the "
            "device; each was tried twice, then the faster one was taken",
            f"weights: {self.weights}",
            "timed: from the key to distances and parents, both complete in the host's memory",
            f"lists by weight: sorted in {self.sort_seconds:.3f} s of the construction",
        ]

    def schedule(self) -> str:
        """Sum up each strategy over all searches."""
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 4)
        for record in self.sources:
            for trace in record.result.traces:
                figures = 1, trace.vertices, trace.edges_scanned, trace.seconds
                sums[trace.strategy] = [
                    a + b for a, b in zip(sums[trace.strategy], figures, strict=True)
                ]
        count = len(self.sources)
        lines = ["strategy       windows     vertices        edges        ms  means of a search"]
        for strategy, (windows, vertices, edges, seconds) in sums.items():
            lines.append(
                f"{strategy:<13} {windows / count:>8.1f} {vertices / count:>12.0f} "
                f"{edges / count:>12.0f} {1e3 * seconds / count:>9.3f}"
            )
        rest = sum(record.result.seconds for record in self.sources)
        rest -= sum(seconds for *_, seconds in sums.values())
        lines.append(f"{'parents, rest':<48}{1e3 * rest / count:>10.3f}")
        return "\n".join(lines)

    def details(self, record: KeyRecord) -> str:
        """Return a table of the windows of a search."""
        return format_windows(record.result.traces)
