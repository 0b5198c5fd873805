"""Results of distributed runs: a rank's own part, or gathered from all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.ranks.communicator import Communicator, parts_of
from hetero_bfs.ranks.partition import RankGraph, count_owned
from hetero_bfs.scheduling.strategies import Direction
from hetero_bfs.scheduling.trace import IterationTrace, LevelFeatures, LevelTrace


@dataclass(frozen=True)
class RankLevel:
    """A level as one rank ran it.

    `seconds` are the rank's own work, `exchange_seconds` exchanges and the reduction, including
    waits for other ranks. The frontier is the rank's own, before the level. `push_seconds` and
    `pull_seconds` are predicted for the slowest rank, including exchanges. `on_device`: whether the
    rank ran the level on its OpenCL device.
    """

    direction: Direction
    seconds: float
    exchange_seconds: float
    bytes_sent: int
    frontier_vertices: int
    frontier_edges: int
    push_seconds: float
    pull_seconds: float
    on_device: bool


@dataclass(eq=False)
class RankProgramResult:
    """The final states of a rank's vertices; `gathered` returns the states of all vertices.

    Parameters
    ----------
    communicator : Communicator
    state : mapping of name to array, shape (own old ids,)
        Rank r of P has the vertices r, r + P, r + 2 P and so on, in this order.
    num_vertices : int
        Number of vertices of the whole graph.
    seconds : float
        From the initial states to the last iteration, on the slowest rank.
    iterations : int
    converged : bool
        False if `max_iterations` ended the run.
    totals : mapping of name to float
        The program's sums after the last iteration.
    traces : list of IterationTrace
        Vertices and edges are of all ranks; the seconds are this rank's.
    """

    communicator: Communicator = field(repr=False)
    state: Mapping[str, npt.NDArray[Any]] = field(repr=False)
    num_vertices: int
    seconds: float
    iterations: int
    converged: bool
    totals: Mapping[str, float]
    traces: list[IterationTrace] = field(repr=False)

    def gathered(self, name: str) -> npt.NDArray[Any]:
        """Return a field of all vertices, by the caller's ids; all ranks must call this."""
        return gathered(self.communicator, self.state[name], self.num_vertices)


def edges_of_levels(
    communicator: Communicator, graph: RankGraph, levels: list[RankLevel]
) -> npt.NDArray[np.int64]:
    """Return the edges that leave each level, then the stored edges; all ranks must call this."""
    counts = [level.frontier_edges for level in levels]
    edges = np.array([*counts, graph.graph.num_stored_edges], np.int64)
    communicator.reduce_to_all(edges, "sum")
    return edges


def level_traces(
    levels: list[RankLevel],
    searched: int,
    edges: npt.NDArray[np.int64],
    level_of: npt.NDArray[np.int32],
) -> list[LevelTrace]:
    """Return the levels of a search: vertices and edges of all ranks, seconds of this one.

    `searched` is the number of vertices with edges, `edges` the result of `edges_of_levels`.
    `level_of` is -1 for unreached vertices. `transfer_seconds` is the time of exchanges.
    """
    vertices = np.bincount(level_of[level_of >= 0], minlength=len(levels) + 1).tolist()
    *leaving, stored = edges.tolist()
    growth, unvisited, left, traces = stored / max(searched, 1), searched, stored, []
    for number, level in enumerate(levels):
        unvisited, left = unvisited - vertices[number], left - leaving[number]
        if number:
            growth = leaving[number] / max(leaving[number - 1], 1)
        is_push, pull = level.direction == "top-down", "BG" if level.on_device else "BC"
        features = LevelFeatures(
            number, vertices[number], leaving[number], unvisited, left, searched, stored, growth,
            "cpu", "queue" if is_push else "bitmap",
        )  # fmt: skip
        predicted = {"TC": level.push_seconds, pull: level.pull_seconds}
        times = level.seconds, level.exchange_seconds, 0.0
        found, name = vertices[number + 1], "TC" if is_push else pull
        traces.append(
            LevelTrace(features, name, *times, found, predicted, "what the slowest rank expects")
        )
    return traces


def gathered(
    communicator: Communicator, mine: npt.NDArray[Any], num_vertices: int
) -> npt.NDArray[Any]:
    """Return an array of all vertices from each rank's own items; all ranks must call this."""
    ranks = communicator.size
    owned = count_owned(num_vertices, ranks)
    first = parts_of(owned)
    parts = np.empty(num_vertices, mine.dtype)
    communicator.gather_to_all(np.ascontiguousarray(mine), parts, owned, first)
    whole = np.empty_like(parts)
    for rank, (begin, count) in enumerate(zip(first, owned, strict=True)):
        whole[rank::ranks] = parts[begin : begin + count]
    return whole
