"""Result of a shortest-path search, in the caller's vertex ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.algorithms.sssp.check import check_paths
from hetero_bfs.errors import CheckOutcome, GraphError
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.scheduling.trace import ON_RANKS, Columns, Traced
from hetero_bfs.support.messages import number_of
from hetero_bfs.timeline.rendering import as_html, with_unit

MOST_RECORDS = 1 << 14
"""Most records of a search; the last one sums up all windows that have none of their own."""


class Windows(NamedTuple):
    """The result of a search: distances in new ids, and a record per window (loop.py).

    `distance` may be the executor's own array, which the next search overwrites. `streamed_bytes`
    is the volume sent to a device that does not hold the neighbour lists.
    """

    distance: npt.NDArray[Any]
    infinity: Any
    records: npt.NDArray[np.float64]
    streamed_bytes: int = 0


class Unfinished(NamedTuple):
    """A search that left a device between two windows, in new ids; the host continues it.

    Distances below `start` are final. `waiting` has all vertices that wait for a later window, some
    perhaps twice, and may have others. `distance` and `records` are as in `Windows`. `seconds` is
    the time that it took to read `waiting`.
    """

    distance: npt.NDArray[Any]
    start: Any
    waiting: npt.NDArray[np.uint32]
    records: npt.NDArray[np.float64]
    seconds: float


class WindowTrace(NamedTuple):
    """One step of a search.

    Parameters
    ----------
    start : float
        Smallest distance of the window; NaN where the adjacency streams to the device.
    strategy : str
        "prefix", "full" or "pull" (kernels/phases.py), after "device " if an OpenCL device ran it;
        "serial" if one thread ran the search without an engine.
    vertices, edges_scanned : int
        Vertices whose neighbour lists were read, each time anew, and the entries read. If the host
        contracted chains (host.py), they count the contracted graph's.
    rounds : int
        Number of queues of vertices that were relaxed. It is 1 if the host relaxes full neighbour
        lists, since its threads then do not wait for each other within a window.
    seconds : float
    """

    start: float
    strategy: str
    vertices: int
    edges_scanned: int
    rounds: int
    seconds: float

    def row(self) -> dict[str, Any]:
        return self._asdict()


class RankWindow(NamedTuple):
    """A `WindowTrace` on one rank, or on all of them (`of_all_ranks`).

    `strategy` is "prefix", "full" or "pull", and `rounds` counts exchanges of distances. `vertices`
    are own vertices that relaxed or scanned edges, and `edges_scanned` these edges. `seconds` are
    own work, `exchange_seconds` include waiting for other ranks.
    """

    start: float
    strategy: str
    vertices: int
    edges_scanned: int
    rounds: int
    seconds: float
    exchange_seconds: float
    bytes_sent: int
    mean_seconds: float = 0.0
    imbalance: float = 1.0

    def row(self) -> dict[str, Any]:
        return self._asdict()


WINDOWS: Columns = {
    "starts at": (".6g", lambda window: window.start),
    "strategy": ("<", lambda window: window.strategy),
    "vertices": ("d", lambda window: window.vertices),
    "edges": ("d", lambda window: window.edges_scanned),
    "rounds": ("d", lambda window: window.rounds),
    "ms": (".3f", lambda window: 1e3 * window.seconds),
}

RANK_WINDOWS: Columns = {**WINDOWS, **ON_RANKS}


@dataclass(eq=False)
class ShortestPaths(Traced):
    """Shortest distances from one vertex.

    Parameters
    ----------
    source : int
    distance : float64 array, shape (num_vertices,)
        Infinity for vertices not reached. Sums of float32 weights are rounded to float32. If one
        exceeds float32, all are computed in float64. A vertex whose distance exceeds float64 counts
        as not reached.
    seconds : float
        Time of the search, until the distances are in the memory of the place that ran it. In
        `PathSearches.run_with_parents` it includes the parents.
    traces : list of WindowTrace
        On several ranks a record has more fields (`RankWindow`).
    directed : bool
    find_parents : callable
        Computes `parent` when it is first read. Until then it keeps the neighbour lists.
    restore_seconds : float
        Time to convert distances to the caller's ids, with the parents if the search found them.
    streamed_bytes : int
        Bytes of the adjacency sent to the device, if the device does not hold it.
    """

    source: int
    distance: npt.NDArray[np.float64]
    seconds: float
    traces: list[WindowTrace] = field(repr=False)
    directed: bool
    find_parents: Callable[[], npt.NDArray[np.int64]] | None = field(repr=False)
    restore_seconds: float = 0.0
    streamed_bytes: int = 0

    @cached_property
    def parent(self) -> npt.NDArray[np.int64]:
        """The vertex before each one on a shortest path, int64 (num_vertices,).

        The source is its own parent. Vertices not reached have -1. The array is computed when it is
        first read.
        """
        assert self.find_parents is not None
        found = self.find_parents()
        self.find_parents = None  # it keeps the neighbour lists
        return found

    @property
    def reached(self) -> int:
        """Number of vertices at a finite distance, the source included."""
        return int(np.isfinite(self.distance).sum())

    @property
    def largest_distance(self) -> float:
        """The largest finite distance."""
        return float(self.distance.max(where=np.isfinite(self.distance), initial=0.0))

    def path_to(self, vertex: int) -> list[int]:
        """Return the vertices of a shortest path, the source first and `vertex` last.

        Raises
        ------
        GraphError
            The vertex is not in the graph, or no path leads to it.
        """
        vertex = check_vertex(vertex, self.distance.size)
        if not np.isfinite(self.distance[vertex]):
            raise GraphError(
                f"no path of finite length leads from vertex {self.source} to vertex {vertex}"
            )
        path = [vertex]
        while path[-1] != self.source:
            path.append(int(self.parent[path[-1]]))
        return path[::-1]

    def _repr_html_(self) -> str:
        facts = {
            "reached": f"{self.reached:,} of {self.distance.size:,} vertices",
            "largest distance": self.largest_distance,
            "windows": len(self.traces),
            "edges scanned": self.edges_scanned,
            "time": with_unit(self.seconds),
        }
        title = f"Shortest paths from vertex {self.source}"
        return as_html(title, facts, self.traces, self.seconds)


class PathReport(Report[ShortestPaths]):
    columns = WINDOWS

    def check(self) -> CheckOutcome:
        result = self.result
        return check_paths(self.edges, result.source, result.distance, result.parent)

    def notes(self) -> list[str]:
        alone = self.result.reached == 1
        return [f"no edge leads from vertex {self.result.source} to another"] * alone

    def figures(self) -> dict[str, Any]:
        return {
            "weights": str(self.edges.weight_dtype),
            "reached": self.result.reached,
            "largest_distance": self.result.largest_distance,
            "edges_scanned": self.result.edges_scanned,
        }

    def lines(self) -> list[str]:
        result = self.result
        return [
            f"reached {result.reached} of {result.distance.size} vertices, the furthest at "
            f"distance {result.largest_distance:.9g}",
            f"{number_of(len(result.traces), 'window')}, "
            f"{number_of(result.edges_scanned, 'edge')} scanned",
        ]

    def note_ranks(self, engine: Any) -> None:
        self.columns = RANK_WINDOWS
