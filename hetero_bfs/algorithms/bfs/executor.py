"""The base class of device executors, and the run of a single level for measurements.

The host has its own executor (host.py). A device has one of two: device.py if the device holds the
graph, streamed.py if edges stream through it. A search migrates between executors by `receive` and
`send`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.device_results import DeviceResults
from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.devices.opencl.tuning import Tuning, default_tuning
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import Policy, fixed_policy
from hetero_bfs.scheduling.strategies import Strategy


class DeviceExecutor:
    """Runs levels of searches of one graph on one device.

    A subclass creates the buffers `parent` and `visited` (the two bitmaps of visited vertices). The
    default tuning depends on the type of the device.
    """

    place: int = schema.DEVICE
    """Number of this device on its platform, starting at 1."""

    ended_at: float | None = None
    """Clock reading when `run_levels` learned that the device was done; None if unknown."""

    parent: Any
    visited: list[Any]

    def __init__(self, device: OpenCLDevice, graph: SearchGraph, tuning: Tuning | None) -> None:
        self.device, self.graph = device, graph
        tuning = (tuning or default_tuning(device.info.type)).fitting(device.info)
        self.tuning = tuning.for_graph(graph.num_searched)
        self.unified = device.info.unified_memory
        """Whether the search's arrays are the host's arrays."""
        self.notes: list[str] = []
        """Lines for the user."""

    @property
    def results(self) -> DeviceResults | None:
        """Restores results on the device; None if the host must do it."""
        return None

    @property
    def one_launch(self) -> bool:
        """Whether one launch runs all levels."""
        return False

    @property
    def num_parts(self) -> int:
        """Parts, or pages, of the edge array."""
        raise NotImplementedError

    def build_kernels(self) -> None:
        """Compile the kernels; called once, before any method below."""
        raise NotImplementedError

    def begin(self, source: int, frontier: Frontier) -> None:
        """Make `source` (a new id) the only visited vertex and the frontier."""
        raise NotImplementedError

    def clear(self, frontier: Frontier) -> None:
        """Reset the arrays after a search: no vertex is visited, none has a parent."""
        self.acquire()
        self.device.fill(self.parent, 0xFF)
        self.device.fill(self.visited[frontier.visited_index], 0)

    def receive_policy(self, policy: Policy, interval: int) -> None:
        """Optionally receive the policy of the next searches in advance."""

    def start_early(
        self,
        policy: Policy,
        interval: int,
        source: int,
        chosen: int,
        frontier: Frontier,
        limit: int,
    ) -> None:
        """Optionally launch a search before `run_levels` is called for it."""

    def run_levels(
        self,
        policy: Policy,
        interval: int,
        source: int | None,
        frontier: Frontier,
        records: npt.NDArray[np.float64],
        limit: int,
        invalidate: bool = True,
    ) -> bool:
        """Run levels while the policy keeps the search here; return true if it is over.

        The first level's strategy is already chosen. `source` (a new id) is given if the search has
        not started. With `invalidate` no stale parents remain. If the next level is chosen for
        another place, its record has begun. Raises `GridStalledError` if the search must restart.
        """
        raise NotImplementedError

    def run(self, strategy: Strategy, frontier: Frontier) -> tuple[Found, float]:
        """Run one level and advance `frontier`; return the vertices found and the seconds.

        For measurements; stale parents may remain.
        """
        return run_one_level(self, self._policy_of(strategy), frontier)

    def _policy_of(self, strategy: Strategy) -> Policy:
        return fixed_policy([0], [strategy.on(self.place)])

    def to_queue(self, frontier: Frontier) -> float:
        """Convert a frontier from a bitmap to a queue; return the seconds."""
        raise NotImplementedError

    def launch_nothing(self, frontier: Frontier) -> None:
        """Launch and read back without running a level: the fixed cost of a stay on the device."""
        raise NotImplementedError

    def acquire(self) -> None:
        """Return shared memory, if any, to the device after the host used it."""

    def release(self) -> None:
        """Let the host use the shared memory."""

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Receive the frontier from the host."""
        raise NotImplementedError

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        """Send the frontier to the host, which notes a queue."""
        raise NotImplementedError

    def add_parents(self, pairs: npt.NDArray[np.uint32]) -> None:
        """Add vertices that the host found and their parents, shape (pairs, 2)."""
        raise NotImplementedError

    def read_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy bitmap number `index` to the host."""
        self.device.read(visited, self.visited[index])

    def has_visited(self, vertex: int, index: int) -> bool:
        """Tell whether a vertex (a new id) is set in bitmap number `index`."""
        word = np.empty(1, np.uint32)
        self.device.read(word, self.visited[index], 4 * (vertex // 32))
        return bool(int(word[0]) >> vertex % 32 & 1)

    def read_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents that this device found to the host."""
        self.device.read(parent, self.parent)

    def receive_mask(self, mask: npt.NDArray[np.uint32]) -> None:
        """Ignore the vertices of a bitmap until `end_mask`.

        The search started on the host, whose bitmap of visited vertices already includes them.
        """
        raise NotImplementedError

    def end_mask(self) -> None:
        raise NotImplementedError


def run_one_level(
    executor: DeviceExecutor, policy: Policy, frontier: Frontier
) -> tuple[Found, float]:
    """Run one level by a policy of one candidate; return the vertices found and the seconds."""
    record = np.zeros((1, schema.record_width(1)))
    level = float(frontier.level)
    frontier.state[schema.LEVEL] = frontier.state[schema.CHOSEN] = 0
    executor.run_levels(policy, 1, None, frontier, record, 1, invalidate=False)
    frontier.state[schema.LEVEL] += level
    return Found(frontier.vertices, frontier.edges), float(record[0, schema.SECONDS])
