"""Features of a level and its measurements, records of iterations, and their tables.

The names of `LevelFeatures`' fields are the speed model's columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.vertex_names import Named
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.strategies import (
    DEVICE_KINDS,
    REPRESENTATIONS,
    STRATEGIES,
    DeviceKind,
    Representation,
)
from hetero_bfs.support.files import replacing

SERIAL = "serial"
"""Strategy of the only record of a run by one thread, without an engine."""

_COUNTS = {
    "level": schema.LEVEL,
    "frontier_vertices": schema.FRONTIER_VERTICES,
    "frontier_edges": schema.FRONTIER_EDGES,
    "unvisited_vertices": schema.UNVISITED_VERTICES,
    "unvisited_edges": schema.UNVISITED_EDGES,
}
"""Features that are items of a state."""


@dataclass(frozen=True)
class LevelFeatures:
    """The state before a level, which a search knows without extra work.

    Edges are stored edges: an undirected edge counts at both ends. `num_vertices` counts the
    searched range. `growth` is the number of the frontier's edges, divided by that of the previous
    level; at the first level it is the graph's mean degree. `device_kind` is the device that holds
    the frontier, None before the first level. `representation` is how it is stored.
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
        kind = int(state[schema.PLACE])
        return cls(
            **{name: int(state[item]) for name, item in _COUNTS.items()},
            num_vertices=num_vertices,
            num_edges=num_edges,
            growth=float(state[schema.FRONTIER_EDGES] / state[schema.PREVIOUS_EDGES]),
            device_kind=None if kind == schema.NOWHERE else DEVICE_KINDS[min(kind, schema.DEVICE)],
            representation=REPRESENTATIONS[int(state[schema.REPRESENTATION])],
        )

    def write_state(self, state: npt.NDArray[np.float64]) -> None:
        """Write these features to a state or record, the inverse of `from_state`."""
        for name, item in _COUNTS.items():
            state[item] = getattr(self, name)
        state[schema.PREVIOUS_EDGES] = self.frontier_edges / self.growth if self.growth else 1.0
        kind = self.device_kind
        state[schema.PLACE] = schema.NOWHERE if kind is None else DEVICE_KINDS.index(kind)
        state[schema.REPRESENTATION] = REPRESENTATIONS.index(self.representation)

    @property
    def expected_examined(self) -> float:
        """Edges that bottom-up is expected to scan.

        The model matches ends of edges at random (the configuration model). An unvisited vertex's
        neighbour is an unmatched end, of an unvisited vertex or of the frontier; p is the
        frontier's share of these ends. A vertex of degree d has a neighbour in the frontier with
        probability 1 - (1 - p)**d, and is expected to scan (1 - (1 - p)**d) / p neighbours. d is
        taken as the mean degree of the unvisited vertices.

        Two adjustments follow. First, scans find a frontier of hubs at once, since neighbour lists
        begin with hubs if degrees are skewed. Second, in clustered graphs (grids, small worlds,
        crawls) many neighbours of the frontier are in the frontier, too. The previous level shows
        how clustered a graph is: vertices found over vertices expected, at most 1. The remaining
        share of the unvisited vertices is far from the frontier and scans all its neighbours.
        """
        return self.columns["expected_examined"]

    @property
    def expected_found(self) -> float:
        """Vertices that the level is expected to find; see `expected_examined`."""
        return self.columns["expected_found"]

    @property
    def expected_length(self) -> float:
        """Mean number of edges that bottom-up is expected to scan for an unvisited vertex.

        A thread scans them one after another. So a device with a thread for each vertex takes time
        in proportion to this mean, not to the sum.
        """
        return self.columns["expected_length"]

    @cached_property
    def columns(self) -> dict[str, float]:
        """A speed model's input: a number for each of `schema.COLUMNS`, in that order.

        Each of the last six is about one direction:

        - `expected_claims`: vertices that top-down on the host claims one by one
        - `wide_vertices`: vertices that a dense push scans for newly reached ones
        - `unsteadiness`: for top-down, 0 if the frontier has as many edges as the previous one,
          near 1 if it has many times more or fewer
        - `scattered_finds`: vertices that top-down on the host finds, fewer if the frontier has
          only a few vertices
        - `unvisited_words`: words of the bitmap that may have unvisited vertices, for bottom-up on
          the host
        - `opened_lists`: vertices whose first neighbour is expected to be unvisited, for bottom-up
          on the host
        """
        from hetero_bfs.scheduling import columns

        n, unvisited, edges = self.num_vertices, self.unvisited_vertices, self.frontier_edges
        state = np.zeros(schema.STATE_SIZE)
        self.write_state(state)
        examined, found = columns.expectations(state)
        is_dense = schema.is_dense_push(n, edges, unvisited)
        sizes = 1, n, self.frontier_vertices, edges, unvisited, self.unvisited_edges
        claims, scanned = (0, n) if is_dense else (found, 0)
        expected = examined, found, examined / max(unvisited, 1), claims, scanned
        unsteadiness = 1 - min(self.growth, 1 / self.growth) if self.growth else 1
        scattered = columns.scattered_finds.py_func(found, self.frontier_vertices)
        words = min(n / columns.WORD_BITS, unvisited)
        opened = columns.opened_lists.py_func(unvisited, examined)
        numbers = (*sizes, *expected, unsteadiness, scattered, words, opened)
        return dict(zip(schema.COLUMNS, map(float, numbers), strict=True))


@dataclass(frozen=True)
class LevelTrace:
    """The choice and the measurements of one level.

    Parameters
    ----------
    features : LevelFeatures
        The state before the level.
    strategy : str
    seconds : float
        Time of the level itself, launch and read-back included.
    transfer_seconds : float
        Time before the level to start the search, to migrate the frontier to the other device, and
        to convert a bitmap to a queue.
    select_seconds : float
        Time to choose the strategy.
    found_vertices : int
        Vertices that this level found. In a directed graph a level that leaves a queue counts only
        vertices with outgoing edges.
    predicted_seconds : mapping from strategy name to seconds
        The selector's predictions for each candidate, migration included; empty if it predicts
        nothing.
    compared_seconds : mapping from strategy name to seconds
        The seconds that a model compared; the least decides. They are the predicted ones and those
        of the rest of the search after the candidate. Bottom-up on the CPU counts 1.4 times early
        in a search (`CAUTION` in policy.py). Empty with thresholds, a schedule and "zhang".
    reason : str
        Reason for the choice, in a few words.
    """

    features: LevelFeatures
    strategy: str
    seconds: float
    transfer_seconds: float
    select_seconds: float
    found_vertices: int
    predicted_seconds: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    compared_seconds: Mapping[str, float] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """Return one flat record, with columns predicted_X and compared_X for every strategy X."""
        record = asdict(self.features)
        for name in ("expected_examined", "expected_found", "expected_length"):
            record[name] = self.features.columns[name]
        names = "strategy", "seconds", "transfer_seconds", "select_seconds", "found_vertices"
        record |= {name: getattr(self, name) for name in names}
        for name in STRATEGIES:
            record[f"predicted_{name}"] = self.predicted_seconds.get(name, "")
        for name in STRATEGIES:
            record[f"compared_{name}"] = self.compared_seconds.get(name, "")
        record["reason"] = self.reason
        return record


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write records with equal keys as CSV, all or nothing."""
    import csv

    records = list(rows)
    with replacing(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(records[0]) if records else [])
        writer.writeheader()
        writer.writerows(records)


Columns = Mapping[str, tuple[str, Callable[[Any], Any]]]
"""Columns of a table by their titles: a format, and a function that returns a row's value or None.
"""


def format_table(columns: Columns, rows: Iterable[Any]) -> str:
    """Return a table as wide as its values. Format "<" is for texts, which begin at the left."""
    lines = [list(columns)]
    for row in rows:
        values = [(format_, of(row)) for format_, of in columns.values()]
        lines.append(["" if value is None else format(value, how) for how, value in values])
    sides = ["<" if format_ == "<" else ">" for format_, _ in columns.values()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{c:{side}{w}}" for c, side, w in zip(line, sides, widths, strict=True)).rstrip()
        for line in lines
    )


def _predicted_ms(level: LevelTrace) -> float | None:
    seconds = level.predicted_seconds.get(level.strategy)
    return None if seconds is None else 1e3 * seconds


LEVELS: Columns = {
    "level": ("d", lambda level: level.features.level),
    "frontier": ("d", lambda level: level.features.frontier_vertices),
    "its edges": ("d", lambda level: level.features.frontier_edges),
    "unvisited": ("d", lambda level: level.features.unvisited_vertices),
    "strategy": ("", lambda level: level.strategy),
    "ms": (".3f", lambda level: 1e3 * level.seconds),
    "migr ms": (".3f", lambda level: 1e3 * level.transfer_seconds),
    "pred ms": (".3f", _predicted_ms),
    "why": ("<", lambda level: level.reason),
}


ON_RANKS: Columns = {
    "exch ms": (".3f", lambda step: 1e3 * step.exchange_seconds),
    "bytes sent": ("d", lambda step: step.bytes_sent),
    "imbalance": (".2f", lambda step: step.imbalance),
}
"""More columns of steps on ranks."""


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
    return [IterationTrace(number, *record) for number, record in enumerate(records)]


class Traced(Named):
    """Properties of results that have `traces`, steps with a strategy and the edges scanned."""

    traces: list[Any]

    @property
    def used_device(self) -> bool:
        """Whether an OpenCL device took part."""
        return any(trace.strategy.startswith("device") for trace in self.traces)

    @property
    def edges_scanned(self) -> int:
        """Entries of neighbour lists that were read."""
        return sum(trace.edges_scanned for trace in self.traces)


class Iterated(Traced):
    """Properties of results that have `traces`, a list of IterationTrace."""

    @property
    def iterations(self) -> int:
        """Number of iterations, or of an algorithm's phases."""
        return len(self.traces)


ITERATIONS: Columns = {
    "iteration": ("d", lambda one: one.iteration),
    "strategy": ("<", lambda one: one.strategy),
    "vertices": ("d", lambda one: one.vertices),
    "edges": ("d", lambda one: one.edges_scanned),
    "ms": (".3f", lambda one: 1e3 * one.seconds),
}
