"""Chooses within a run of a built-in algorithm: windows of shortest paths, push and pull of many.

`plan_windows` chooses the first strategy of shortest paths, and the widths of windows.

`Leaving` decides when a run that began on a device ends on the host, since few vertices are left.
A window costs the device some steps. It costs the host a constant, and seconds for its edges. The
device adds the seconds by which each window was slower than on the host to a sum that never falls
below 0. The run leaves once the sum exceeds the seconds of leaving (ski rental again). The edges
that no vertex has relaxed yet count as work of the host, so a run does not leave before a second
large part of a graph. Runs correct all of these costs but that of an edge. The result's transfer to
the host does not count, since a run that stays needs it, too.

`choose_pushed` divides the searches of a level, 64 at once, into those that push and those that
pull. Costs are in edges that a thread pulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.devices.cpu.vectors import LANES
from hetero_bfs.graph.relabel import HIGH_DIAMETER_LEVELS
from hetero_bfs.scheduling.program_decision import LEARNING, MigrationCosts
from hetero_bfs.scheduling.speed_model import GraphSize, RunCosts
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.support.compiling import kernel

_PREFIX_EDGES, _FULL_EDGES, _AFTER_PULL_EDGES = 4.0, 16.0, 64.0
"""Mean number of edges, of a vertex of mean degree, that end within a window: for windows with
prefixes, with whole lists from the start, and with whole lists after a pull. Wider windows relax
edges twice, narrower windows leave threads idle.
"""

_LONG_LISTS = 8.0
"""From this mean degree a search relaxes prefixes of neighbour lists."""

_LEAST_WIDTHS = {"int32": 1.0, "float32": 2.0**-126, "float64": 2.0**-900}
"""Least widths of windows: the number of buckets divided by a width must be finite."""


class WindowStrategy(IntEnum):
    """Strategies of a window, by their number in its record; sssp/kernels/phases.py explains them.

    The numbers count from 0 without gaps: `ON_DEVICE` in sssp/device.py follows the last.
    """

    PREFIX = 0
    FULL = 1
    PULL = 2

    @property
    def label(self) -> str:
        """The name in traces."""
        return self.name.lower()


class WindowPlan(NamedTuple):
    """The strategy of a search's first window, and the widths of windows; see sssp/kernels/loop.py.

    strategy : PREFIX or FULL; a search with PREFIX pulls once, and goes on with FULL. A search that
        leaves a device goes on with FULL on the host
    prefix_width : of a window with PREFIX
    full_width : with FULL the host divides this width into buckets, and takes more or fewer of them
        for a window
    """

    strategy: WindowStrategy
    prefix_width: float
    full_width: float


def plan_windows(
    weight_dtype: np.dtype[Any], total: float, finite: float, entries: float, vertices: float
) -> WindowPlan:
    mean = total / finite if finite else 1.0
    degree = max(entries / max(vertices, 1), 1.0)
    least = _LEAST_WIDTHS[weight_dtype.name]
    strategy = WindowStrategy.FULL if degree < _LONG_LISTS else WindowStrategy.PREFIX
    full_edges = _FULL_EDGES if strategy is WindowStrategy.FULL else _AFTER_PULL_EDGES
    wanted = _PREFIX_EDGES, full_edges
    widths = (max(mean * edges / degree, least) for edges in wanted)
    return WindowPlan(strategy, *widths)


_STEP_SECONDS = {True: 4e-6, False: 4e-5}
"""First guess for a step of the device, by whether one launch runs all steps."""

_WINDOW_SECONDS = 2e-6  # first guess for a small window on the host
_EDGE_SECONDS = 2e-9  # of the host, if no model is known


def loss_after(lost, rounds, edges, step_cost, window_cost, edge_cost):
    """Return the nanoseconds that a device lost in all windows, after one of these sizes."""
    return max(lost + step_cost * rounds - (window_cost + edge_cost * edges), 0.0)


def leaves_device(lost, unsettled, edge_cost, leaving_cost):
    return lost > leaving_cost + edge_cost * unsettled


def pulls_next(waiting, unsettled):
    """Tell whether a search with PREFIX pulls: more edges wait than unsettled vertices have."""
    return waiting > unsettled


WINDOW_FUNCTIONS = (loss_after, leaves_device, pulls_next)
WINDOW_KINDS = {"waiting": "int64", "unsettled": "int64"}
"""Functions that sssp/kernels/loop.cl calls (device_code.py), and their parameters that are not
floats."""


class Leaving:
    """When runs of an algorithm leave a device; `costs` are the arguments of `leaves_device`."""

    def __init__(
        self, size: GraphSize, costs: Mapping[DeviceKind, RunCosts], one_launch: bool
    ) -> None:
        host, edges = costs.get("cpu"), max(size.edges, 1.0)
        self._step, self._window = _STEP_SECONDS[one_launch], _WINDOW_SECONDS
        self._edge = _EDGE_SECONDS if host is None else host.run.seconds(size) / edges
        self._leaving = MigrationCosts.to("cpu", None).seconds
        self._is_compiled = False

    def costs(self, may_leave: bool) -> npt.NDArray[np.float32]:
        """Return nanoseconds of a step, a window, an edge, and of leaving (inf: never)."""
        leaving = self._leaving if may_leave else np.inf
        return (1e9 * np.array([self._step, self._window, self._edge, leaving])).astype(np.float32)

    def learn_device(
        self, steps: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64]
    ) -> None:
        """Learn from windows on the device: the least seconds of a step."""
        each = seconds[steps > 0] / steps[steps > 0]
        if each.size and each.min() > 0.0:
            self._step += LEARNING * (float(each.min()) - self._step)

    def learn_host(
        self, edges: npt.NDArray[np.float64], seconds: npt.NDArray[np.float64], leaving: float
    ) -> None:
        """Learn from windows that the host continued, and from the seconds of leaving.

        The first run is ignored, as it compiles kernels.
        """
        if not self._is_compiled:
            self._is_compiled = True
            return
        own = np.maximum(seconds - self._edge * edges, 0.0)
        if own.size:
            self._window += LEARNING * (float(own.mean()) - self._window)
        self._leaving += LEARNING * (leaving - self._leaving)


_PATIENCE = 64  # rounds launched together
_LEAST_EDGES = 1 << 10
"""Entries that the host reads in the time of a round without work."""


def has_long_chains(rounds: int, edges: int) -> bool:
    """Tell whether the host colours the rest of a graph, after the last rounds on a device.

    If these read few edges on average, chains of waiting vertices are long.
    """
    return rounds >= _PATIENCE and edges < rounds * _LEAST_EDGES


def is_searched_apart(levels: float) -> bool:
    """Tell whether many sources are searched one by one, and not 64 at once.

    On high-diameter graphs threads that share a search mostly wait for each other.
    """
    return levels >= HIGH_DIAMETER_LEVELS


def is_faster_by_thread(
    searches: int, threads: int, thread_seconds: float, engine_seconds: float
) -> bool:
    """Tell whether threads with a search each are faster than searches by the whole engine.

    With few searches, many threads or a fast device the engine may be faster. The seconds are those
    of a search by one thread, and of one by the engine.
    """
    return -(-searches // threads) * thread_seconds <= searches * engine_seconds


_PUSH_COST = 4
"""Edges of a pull that take as long as an edge of a push."""

_HUBS_FIRST = 4
"""A pull finds a search earlier by this factor than with neighbours in random order."""

_LIST_COST = 2
"""Vertices of a pass by one thread that take as long as an edge of a push by one thread."""

_NONE, _ONE = np.uint64(0), np.uint64(1)


@njit(inline="always")
def is_for_one_thread(edges, threads, num_vertices):
    """Tell whether one thread pushes a level from a list, since the others would mostly wait."""
    return edges * _LIST_COST * threads < num_vertices


@kernel(counted=False, inner=True)
def choose_pushed(going, lane_edges, edges, left, num_vertices, stored):
    """Return the searches to push: those with the fewest edges, as many as minimise the cost.

    `going` has a bit for each search that continues, and so has the result. `lane_edges` has the
    edges of each search's frontier, and `edges` the edges of all frontiers, each vertex once;
    `left` counts the edges of vertices that lack a search, and `stored` all edges.
    """
    reach = num_vertices * (stored / _HUBS_FIRST)
    pushed, best, total, least = _NONE, _NONE, 0.0, np.inf
    while True:
        slowest = -1  # of the pulled searches, the one with the fewest edges
        for i in range(LANES):
            is_pulled = (going & ~pushed) >> np.uint64(i) & _ONE != _NONE
            if is_pulled and (slowest < 0 or lane_edges[i] < lane_edges[slowest]):
                slowest = i
        cost = _PUSH_COST * min(total, edges)
        if slowest >= 0:
            cost += min(left, reach / max(lane_edges[slowest], 1.0))
        if cost < least:
            best, least = pushed, cost
        if slowest < 0:
            return best
        total += lane_edges[slowest]
        pushed |= _ONE << np.uint64(slowest)
