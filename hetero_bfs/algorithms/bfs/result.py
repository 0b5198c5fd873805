"""The state and the result of one search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.query import as_mask
from hetero_bfs.algorithms.run_report import Report
from hetero_bfs.errors import ArgumentError, CheckOutcome, GraphError
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.vertex_names import Named, name_of
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import Direction, plain
from hetero_bfs.scheduling.trace import LEVELS, ON_RANKS, Columns, LevelTrace
from hetero_bfs.support.messages import number_of
from hetero_bfs.timeline.rendering import as_html, with_unit

_START = np.zeros(schema.STATE_SIZE)
_START[schema.FRONTIER_VERTICES] = 1
_START[schema.PLACE] = schema.NOWHERE
_START[schema.REPRESENTATION] = schema.QUEUE
_START[schema.CHOSEN] = -1
_START[schema.UNVISITED_LISTED] = _START[schema.MERGED] = -1


class _Item:
    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, frontier: Frontier, owner: Any = None) -> int:
        return int(frontier.state[self._index])

    def __set__(self, frontier: Frontier, value: int) -> None:
        frontier.state[self._index] = value


class Frontier:
    """The state of a search between two levels: names for the items of `state` (schema.py).

    A device has two bitmaps and two queues. `visited_index` names the bitmap of all visited
    vertices; the other one may hold the visited vertices of the previous level. `queue_index`
    names the queue that holds the frontier, if the frontier is a queue (`has_queue`). `chosen` is
    the candidate chosen for the next level. `found_list` and `unvisited_list` are the lengths of
    the host's lists of found vertices, and of vertices that may be unvisited; -1 without one.
    `merged` counts the levels that share an earlier one's record; -1 if none may.
    """

    vertices, edges = _Item(schema.FRONTIER_VERTICES), _Item(schema.FRONTIER_EDGES)
    visited_index, queue_index = _Item(schema.VISITED_INDEX), _Item(schema.QUEUE_INDEX)
    level, chosen = _Item(schema.LEVEL), _Item(schema.CHOSEN)
    found_list, unvisited_list = _Item(schema.FOUND_LISTED), _Item(schema.UNVISITED_LISTED)
    merged = _Item(schema.MERGED)

    def __init__(self, degree: int = 0, num_vertices: int = 0, num_edges: int = 0) -> None:
        """Start at a source of this degree; the graph has these searched vertices, stored edges."""
        mean_degree = max(num_edges / max(num_vertices, 1), 1.0)
        previous_edges = max(degree, 1) / mean_degree
        self.state = _START.copy()
        self.state[schema.FRONTIER_EDGES] = degree
        self.state[schema.UNVISITED_VERTICES] = num_vertices - 1
        self.state[schema.UNVISITED_EDGES] = num_edges - degree
        self.state[schema.PREVIOUS_EDGES] = previous_edges

    def copy(self) -> Frontier:
        other = Frontier()
        other.state[:] = self.state
        return other

    @property
    def row(self) -> int:
        """The row of records for the next level; rows are levels, unless levels are `merged`."""
        return schema.row_of(self.state)

    @property
    def has_queue(self) -> bool:
        return schema.has_queue(self.state)

    @property
    def place(self) -> int | None:
        """Place of the frontier: 0 for the host, 1 for the first device; None before level 0."""
        number = int(self.state[schema.PLACE])
        return None if number == schema.NOWHERE else number

    @place.setter
    def place(self, place: int) -> None:
        self.state[schema.PLACE] = place

    @property
    def target(self) -> int | None:
        """The vertex whose discovery ends the search; None without one, or once it is found."""
        number = int(self.state[schema.TARGET])
        return None if number <= 0 else number - 1

    @target.setter
    def target(self, vertex: int | None) -> None:
        self.state[schema.TARGET] = 0 if vertex is None else vertex + 1

    @property
    def is_over(self) -> bool:
        return bool(schema.is_over(self.state))

    def became_queue(self, found: Found) -> None:
        self.state[schema.REPRESENTATION] = schema.QUEUE
        self.state[schema.FRONTIER_VERTICES] = found.vertices
        self.state[schema.FRONTIER_EDGES] = found.edges


@dataclass(frozen=True)
class Found:
    """Counts of a level: the vertices it found, and the edges that leave them."""

    vertices: int
    edges: int
    edges_scanned: int | None = None
    """Neighbours that bottom-up read; None if it does not count them (only BC does)."""


class RankLevel(NamedTuple):
    """A level as one rank ran it, or all ranks (`of_all_ranks`).

    The frontier is that before the level, on one rank the rank's own. In a directed graph vertices
    without outgoing edges may be left out. `on_devices` ranks ran the level on their OpenCL device.
    `push_seconds` and `pull_seconds` are predicted for the slowest rank, including exchanges.
    `seconds` are own work. `exchange_seconds` are exchanges and the reduction, including waits for
    other ranks.
    """

    level: int
    direction: Direction
    frontier_vertices: int
    frontier_edges: int
    push_seconds: float
    pull_seconds: float
    on_devices: int
    seconds: float
    exchange_seconds: float
    bytes_sent: int
    mean_seconds: float = 0.0
    imbalance: float = 1.0

    def row(self) -> dict[str, Any]:
        return self._asdict()

    @property
    def strategy(self) -> str:
        """The strategy of this direction, on the device if one rank at least used its device."""
        return plain(self.direction, "device" if self.on_devices else "cpu").name


SUMMED = "frontier_edges", "frontier_vertices", "on_devices"
"""Fields that `of_all_ranks` sums."""

RANK_LEVELS: Columns = {
    "level": ("d", lambda level: level.level),
    "frontier": ("d", lambda level: level.frontier_vertices),
    "its edges": ("d", lambda level: level.frontier_edges),
    "direction": ("", lambda level: level.direction),
    "ms": (".3f", lambda level: 1e3 * level.seconds),
    **ON_RANKS,
    "push us": (".0f", lambda level: 1e6 * level.push_seconds),
    "pull us": (".0f", lambda level: 1e6 * level.pull_seconds),
}


@dataclass(eq=False)
class BFSResult(Named):
    """The outcome of one search, in the caller's vertex ids.

    Parameters
    ----------
    source : int
        The first source.
    parent : int64 or int32 array, shape (num_vertices,)
        A source is its own parent; -1 for vertices not reached. Empty if only levels were
        requested.
    seconds : float
        Time from the source to the complete parent array in the memory of the device that finished,
        including initialisation.
    gather_seconds : float
        Time to gather the parents on the host and to restore the caller's ids.
    input_degree, directed
        Properties of the graph; see `CSRGraph`.
    make_traces : callable
        Computes `traces` at the first access.
    streamed_bytes : int
        Bytes of edges that streamed to the device in this search.
    rule : str
        Strategies and thresholds, if the selector has one rule for all levels.
    sources : tuple of int
        All sources, without duplicates.
    reverse : bool
        Whether the search followed the edges of a directed graph from their ends to their starts.
    """

    source: int
    parent: npt.NDArray[Any]
    seconds: float
    gather_seconds: float
    input_degree: npt.NDArray[np.uint32] = field(repr=False)
    directed: bool
    make_traces: Callable[[], list[LevelTrace]] = field(repr=False)
    streamed_bytes: int = 0
    rule: str = ""
    sources: tuple[int, ...] = ()
    reverse: bool = False

    def __post_init__(self) -> None:
        self.sources = self.sources or (self.source,)

    @cached_property
    def traces(self) -> list[LevelTrace]:
        """One record per level; one in all if one thread searched without an engine.

        On several ranks a record has other fields (`RankLevel`).
        """
        return self.make_traces()

    @cached_property
    def level(self) -> npt.NDArray[np.int32]:
        """Edges from the nearest source, int32, shape (num_vertices,); -1 where not reached.

        Empty after `drop_parents`.
        """
        from hetero_bfs.algorithms.bfs.kernels.restore import levels_from_parents

        level = np.full(self.parent.size, -1, np.int32)
        if self.parent.size:  # else the parents were dropped
            levels_from_parents(self.parent, np.array(self.sources, np.int64), level)
        return level

    @cached_property
    def nedge(self) -> int:
        """Input edges of the traversed component; duplicates count, self-loops do not.

        If the search did not reach the whole component, an edge with one end reached counts half.
        """
        ends = int(self.input_degree.sum(where=self._is_reached, dtype=np.int64))
        return ends if self.directed else ends // 2

    @cached_property
    def reached(self) -> int:
        """Number of vertices reached, including sources."""
        return int(np.count_nonzero(self._is_reached))

    @property
    def _is_reached(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.parent if self.parent.size else self.level) >= 0)

    def path(self, vertex: int) -> npt.NDArray[np.int64]:
        """Return a shortest path, along edges, between a source and a vertex, both included.

        The result is int64, shape (level[vertex] + 1,). It leads from the nearest source to the
        vertex. If the search was `reverse`, it leads from the vertex to the nearest source.

        Raises
        ------
        ArgumentError
            Only levels were requested.
        GraphError
            The vertex is not in the graph, or was not reached.
        """
        if self.parent.size == 0:
            raise ArgumentError("the search has no parents; search with want='parents'")
        v = check_vertex(vertex, self.parent.size)
        if self.parent[v] < 0:
            raise GraphError(f"vertex {v} was not reached, so no path leads to it")
        path = [v]
        while self.parent[v] != v:
            v = int(self.parent[v])
            path.append(v)
        return np.array(path if self.reverse else path[::-1], np.int64)

    def drop_parents(self) -> None:
        """Free the arrays, 8 or 12 bytes per vertex, and keep times, counts and traces."""
        _ = self.nedge, self.reached  # computed from the parents and cached
        self.parent = np.empty(0, self.parent.dtype)
        self.__dict__.pop("level", None)

    @property
    def teps(self) -> float:
        """Traversed edges per second."""
        return self.nedge / self.seconds if self.seconds > 0 else 0.0

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the figures, and the timeline of the levels."""
        facts = {
            "reached": f"{self.reached:,} of {self.input_degree.size:,} vertices",
            "edges": self.nedge,
            "levels": int(self.level.max(initial=-1)) + 1 or len(self.traces),
            "time": with_unit(self.seconds),
            "speed": f"{self.teps / 1e9:.3g} GTEPS",
        }
        many = len(self.sources) > 1
        start = f"{len(self.sources)} vertices" if many else f"vertex {self.source}"
        way = ", against the edges" if self.reverse else ""
        return as_html(f"Breadth-first search from {start}{way}", facts, self.traces, self.seconds)


class SearchReport(Report[BFSResult]):
    """The text of `hetero-bfs bfs` for a search."""

    columns = LEVELS
    selector: str | None = None
    model: SpeedModel | None = None

    def note_runs(self, runs: Any) -> None:
        """`runs` is the open engine."""
        self.device = runs.device_info
        self.selector, self.model = runs.selector.name, runs.selector.model

    def note_ranks(self, engine: Any) -> None:
        self.device, self.selector = engine.device_info, engine.options.selector
        self.columns = RANK_LEVELS

    def check(self) -> CheckOutcome:
        from hetero_bfs.algorithms.bfs.check import validate

        result, given, mask = self.result, self.arguments, self.values.get("mask")
        return validate(
            self.edges,
            result.sources if len(result.sources) > 1 else result.source,
            result.parent,
            result.level,
            depth_limit=given["depth_limit"],
            target=given["target"],
            mask=None if mask is None else as_mask(mask, self.edges.num_vertices),
            reverse=given["reverse"],
        )

    def notes(self) -> list[str]:
        limits = ("depth_limit", "target", "mask")
        if self.result.reached > 1 or any(self.arguments[name] is not None for name in limits):
            return []
        source = name_of(self.edges, self.result.source)
        return [f"vertex {source} has no edge to another vertex"]

    @cached_property
    def _path(self) -> list[int | str] | None:
        target = self.arguments["target"]
        if target is None or self.result.parent[target] < 0:
            return None
        return [name_of(self.edges, vertex) for vertex in self.result.path(target).tolist()]

    def summary(self) -> dict[str, Any]:
        edges, result = self.edges, self.result
        return {
            "source": name_of(edges, result.source),
            "sources": [name_of(edges, source) for source in result.sources],
            "path": self._path,
            "num_vertices": edges.num_vertices,
            "num_input_edges": edges.num_input_edges,
            "reached": result.reached,
            "depth": int(result.level.max()),
            "nedge": result.nedge,
            "time_seconds": result.seconds,
            "gather_seconds": result.gather_seconds,
            "teps": result.teps,
            "selector": self.selector,
            "rule": result.rule or None,
            "model": None if self.model is None else self.model.origin,
            "device": self.device_name,
            "strategies": [trace.strategy for trace in result.traces],
        }

    def text(self, valid: str = "") -> list[str]:
        result, target = self.result, self.arguments["target"]
        lines = [
            f"reached {result.reached} of {self.edges.num_vertices} vertices in "
            f"{number_of(int(result.level.max()), 'level')}",
            f"{number_of(result.nedge, 'edge')} in {1e3 * result.seconds:.3f} ms, "
            f"{result.teps / 1e6:.1f} MTEPS{valid}",
        ]
        if target is not None:
            found = (
                "is not reached" if self._path is None else f"path {' '.join(map(str, self._path))}"
            )
            lines.append(f"target {name_of(self.edges, target)}: {found}")
        rule = result.rule and f" ({result.rule})"
        lines.append(
            f"selector {self.selector or 'none'}{rule}, device {self.device_name or 'none'}"
        )
        return lines


def format_factors(corrections: Mapping[str, float]) -> str:
    """Return correction factors as a report prints them; empty if there are none."""
    factors = ", ".join(f"{name} x{value:.2g}" for name, value in corrections.items())
    return factors and f"predictions corrected by measured seconds: {factors}"
