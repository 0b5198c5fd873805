"""Records of an algorithm's iterations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class IterationTrace(NamedTuple):
    """One iteration.

    Parameters
    ----------
    iteration : int
    strategy : str
        The algorithm's name for it, after "device " if an OpenCL device ran it.
    vertices : int
        Vertices that the iteration worked on.
    edges_scanned : int
        Neighbour-list entries that it read.
    seconds : float
    migrated_bytes : int
        Bytes transferred by a migration before the iteration.
    migration_seconds : float
        Seconds of that migration, not included in `seconds`.
    """

    iteration: int
    strategy: str
    vertices: int
    edges_scanned: int
    seconds: float
    migrated_bytes: int = 0
    migration_seconds: float = 0.0

    def row(self) -> dict[str, Any]:
        """Return the fields for CSV."""
        return self._asdict()


def numbered(records: Iterable[tuple[str, int, int, float]]) -> list[IterationTrace]:
    """Return traces, given strategy, vertices, edges and seconds of each iteration."""
    return [IterationTrace(number, *record) for number, record in enumerate(records)]


class Iterated:
    """Properties of results that have `traces`, a list of IterationTrace."""

    traces: list[IterationTrace]

    @property
    def iterations(self) -> int:
        """Number of iterations, or of an algorithm's phases."""
        return len(self.traces)

    @property
    def used_device(self) -> bool:
        """Whether an OpenCL device took part."""
        return any(trace.strategy.startswith("device") for trace in self.traces)


def format_iterations(traces: Sequence[IterationTrace]) -> str:
    """Return a table of the iterations for a terminal of 100 columns."""
    lines = [f"{'iteration':>9} {'strategy':<20} {'vertices':>11} {'edges':>13} {'ms':>9}"]
    for trace in traces:
        lines.append(
            f"{trace.iteration:>9} {trace.strategy:<20} {trace.vertices:>11} "
            f"{trace.edges_scanned:>13} {1e3 * trace.seconds:>9.3f}"
        )
    return "\n".join(lines)
