"""What is known before a level and what was measured in it: log line, report row, training row.

The names of `LevelFeatures`' fields are the speed model's columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.selection import schema as layout
from hetero_bfs.selection.strategies import (
    DEVICE_KINDS,
    REPRESENTATIONS,
    STRATEGIES,
    DeviceKind,
    Representation,
)
from hetero_bfs.support.files import replacing


@dataclass(frozen=True)
class LevelFeatures:
    """The state before a level, all of it free at run time.

    Edges are stored edges (an undirected edge counts at both ends); `num_vertices` counts the
    searched range. `growth` is the frontier's edges over those one level earlier, at the first
    level the graph's mean degree. `device_kind` and `representation` say where and how the frontier
    is stored; before the first level it is nowhere yet (None).
    """

    level: int
    frontier_vertices: int
    frontier_edges: int
    unvisited_vertices: int
    unvisited_edges: int
    num_vertices: int
    num_edges: int
    growth: float
    device_kind: DeviceKind | None
    representation: Representation

    @classmethod
    def from_state(
        cls, state: npt.NDArray[np.float64], num_vertices: int, num_edges: int
    ) -> LevelFeatures:
        """Read the state of a search, or a record of one of its levels (schema.py)."""
        kind = int(state[layout.KIND])
        edges = int(state[layout.FRONTIER_EDGES])
        return cls(
            level=int(state[layout.LEVEL]),
            frontier_vertices=int(state[layout.FRONTIER_VERTICES]),
            frontier_edges=edges,
            unvisited_vertices=int(state[layout.UNVISITED_VERTICES]),
            unvisited_edges=int(state[layout.UNVISITED_EDGES]),
            num_vertices=num_vertices,
            num_edges=num_edges,
            growth=edges / float(state[layout.PREVIOUS_EDGES]),
            device_kind=None if kind == layout.NOWHERE else DEVICE_KINDS[min(kind, layout.DEVICE)],
            representation=REPRESENTATIONS[int(state[layout.REPRESENTATION])],
        )

    def write_state(self, state: npt.NDArray[np.float64]) -> None:
        """Write what `from_state` reads."""
        state[layout.LEVEL] = self.level
        state[layout.FRONTIER_VERTICES] = self.frontier_vertices
        state[layout.FRONTIER_EDGES] = self.frontier_edges
        state[layout.UNVISITED_VERTICES] = self.unvisited_vertices
        state[layout.UNVISITED_EDGES] = self.unvisited_edges
        state[layout.PREVIOUS_EDGES] = self.frontier_edges / self.growth if self.growth else 1.0
        kind = self.device_kind
        state[layout.KIND] = layout.NOWHERE if kind is None else DEVICE_KINDS.index(kind)
        state[layout.REPRESENTATION] = REPRESENTATIONS.index(self.representation)

    @property
    def expected_examined(self) -> float:
        """Neighbours that bottom-up is expected to look at.

        A search draws ends of edges: what an unvisited vertex's neighbours can be are unvisited
        ends, or ends of the frontier that nobody has drawn yet; p is the latter's share. A vertex
        of degree d has a neighbour in the frontier with probability 1 - (1 - p)**d, and looks at
        (1 - (1 - p)**d) / p neighbours until then; d is taken as the mean of the unvisited ones.
        Two corrections: a frontier of hubs is met at once, as lists begin with them where degrees
        are skewed; and in graphs that are not so well mixed (grids, small worlds, crawls) a
        frontier's neighbours are each other's too. How mixed this one is, the level before tells:
        vertices found over those expected, 1 at most. The others are far from the frontier and
        look at all their neighbours.
        """
        return self._expectations()[0]

    @property
    def expected_found(self) -> float:
        """Vertices that the level is expected to reach; see `expected_examined`."""
        return self._expectations()[1]

    @property
    def expected_length(self) -> float:
        """Neighbours that bottom-up is expected to look at for an unvisited vertex, in the mean.

        They are looked at one after another, so a device with threads for all vertices takes time
        by this, not by the sum.
        """
        return self.expected_examined / max(self.unvisited_vertices, 1)

    @property
    def expected_claims(self) -> float:
        """Vertices that top-down on the host is expected to claim one by one."""
        return 0.0 if self.is_dense_push else self.expected_found

    @property
    def wide_vertices(self) -> float:
        """Vertices that top-down on the host looks through for those it has reached."""
        return float(self.num_vertices) if self.is_dense_push else 0.0

    @property
    def shared_level(self) -> float:
        """1 if several of the host's threads would expand the frontier top-down, else 0."""
        return float(self.frontier_edges >= layout.LEAST_SHARED_EDGES)

    @property
    def is_dense_push(self) -> bool:
        """Whether top-down on the host claims nothing; see schema.py."""
        return layout.is_dense_push(self.num_vertices, self.frontier_edges, self.unvisited_vertices)

    @property
    def was_bottom_up(self) -> bool:
        """Whether the level before was bottom-up, whatever it left; see schema.py."""
        return layout.was_bottom_up(self._state())

    def _expectations(self) -> tuple[float, float]:
        from hetero_bfs.selection.columns import expectations

        edges_scanned, found = expectations(self._state())
        return float(edges_scanned), float(found)

    def _state(self) -> npt.NDArray[np.float64]:
        state = np.zeros(layout.STATE_SIZE)
        self.write_state(state)
        return state


@dataclass(frozen=True)
class LevelTrace:
    """One level as it was chosen and run.

    Parameters
    ----------
    strategy : str
    seconds : float
        The level itself, launch and read-back included.
    transfer_seconds : float
        Moving the frontier to the other device, and turning a bitmap into a queue.
    select_seconds : float
    found_vertices : int
        Vertices that this level reached; of a directed graph, a level that leaves a queue counts
        only those that have edges of their own.
    predicted_seconds : mapping from strategy name to seconds
        What the selector expected of each candidate, switching included; empty if it predicts
        nothing.
    reason : str
        Why the strategy was chosen, in a few words.
    """

    features: LevelFeatures
    strategy: str
    seconds: float
    transfer_seconds: float
    select_seconds: float
    found_vertices: int
    predicted_seconds: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    def row(self) -> dict[str, Any]:
        """Return one flat record, with a column predicted_<strategy> for every strategy."""
        record = asdict(self.features)
        record["expected_examined"] = self.features.expected_examined
        record["expected_found"] = self.features.expected_found
        record["expected_length"] = self.features.expected_length
        record["strategy"] = self.strategy
        record["seconds"] = self.seconds
        record["transfer_seconds"] = self.transfer_seconds
        record["select_seconds"] = self.select_seconds
        record["found_vertices"] = self.found_vertices
        for name in STRATEGIES:
            record[f"predicted_{name}"] = self.predicted_seconds.get(name, "")
        record["reason"] = self.reason
        return record


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write records of equal keys as CSV, all or nothing."""
    import csv

    records = list(rows)
    with replacing(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(records[0]) if records else [])
        writer.writeheader()
        writer.writerows(records)


def format_levels(traces: Iterable[LevelTrace]) -> str:
    """Return a table of the levels of one search for a terminal of 100 columns."""
    lines = [
        f"{'level':>5} {'frontier':>10} {'its edges':>11} {'unvisited':>10} {'strategy':>8} "
        f"{'ms':>8} {'migr ms':>8} {'pred ms':>8}  why"
    ]
    for trace in traces:
        features = trace.features
        predicted = trace.predicted_seconds.get(trace.strategy)
        lines.append(
            f"{features.level:>5} {features.frontier_vertices:>10} {features.frontier_edges:>11} "
            f"{features.unvisited_vertices:>10} {trace.strategy:>8} {1e3 * trace.seconds:>8.3f} "
            f"{1e3 * trace.transfer_seconds:>8.3f} "
            f"{'' if predicted is None else format(1e3 * predicted, '.3f'):>8}  {trace.reason}"
        )
    return "\n".join(lines)
