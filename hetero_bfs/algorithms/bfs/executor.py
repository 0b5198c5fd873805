"""The protocol of a device's executor, and one level run for measurements.

The host has its own executor (host.py). Each device has one that follows this protocol:
device.py if the device holds the graph, streamed.py if edges stream through it.
A search migrates between executors by `receive` and `send`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.opencl.opencl_device import OpenCLDevice
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.policy import Policy
from hetero_bfs.scheduling.strategies import Strategy


class DeviceExecutor(Protocol):
    """Runs levels of searches of one graph on one device beside the host."""

    place: int
    """Number of this device on its platform, from 1 on."""

    device: OpenCLDevice
    unified: bool
    """Whether the search's arrays are the host's arrays."""

    ended_at: float | None
    """The clock when `run_levels` learned that the device was done; None if unknown."""

    @property
    def one_launch(self) -> bool:
        """Whether one launch runs all levels."""
        ...

    @property
    def num_parts(self) -> int:
        """Parts, or pages, of the edge array."""
        ...

    def build_kernels(self) -> None:
        """Compile the kernels; called once, before the methods below."""
        ...

    def begin(self, source: int, frontier: Frontier) -> None:
        """Make `source` (a new id) the only visited vertex and the frontier."""
        ...

    def clear(self, frontier: Frontier) -> None:
        """Reset the arrays after a search: no vertex is visited, none has a parent."""
        ...

    def receive_policy(self, policy: Policy, interval: int) -> None:
        """Receive the policy of the next searches beforehand, if that saves time."""
        ...

    def start_early(
        self,
        policy: Policy,
        interval: int,
        source: int,
        chosen: int,
        frontier: Frontier,
        limit: int,
    ) -> None:
        """Launch a search before `run_levels` is called for it, if that saves time."""
        ...

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
        """Run levels as long as the policy keeps the search here; return true if it is over.

        The first level's strategy is chosen already. `source` (a new id) is given if the search has
        not started. With `invalidate` no stale parents remain. Raises `GridStalledError` if the
        search must begin again.
        """
        ...

    def run(self, strategy: Strategy, frontier: Frontier) -> tuple[Found, float]:
        """Run one level and advance `frontier`; return the vertices found and the seconds."""
        ...

    def to_queue(self, frontier: Frontier) -> float:
        """Convert a frontier from a bitmap to a queue; return the seconds."""
        ...

    def launch_nothing(self, frontier: Frontier) -> None:
        """Launch and read back without a level: the fixed cost of a stay on the device."""
        ...

    def acquire(self) -> None:
        """Give shared memory back to the device after the host used it."""
        ...

    def release(self) -> None:
        """Let the host use the shared memory."""
        ...

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Receive the frontier from the host."""
        ...

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        """Send the frontier to the host."""
        ...

    def add_parents(
        self, vertices: npt.NDArray[np.uint32], parents: npt.NDArray[np.uint32]
    ) -> None:
        """Add parents that the host found."""
        ...

    def read_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy one of the two bitmaps of visited vertices to the host."""
        ...

    def has_visited(self, vertex: int, index: int) -> bool:
        """Tell whether a vertex (a new id) is in one of the two bitmaps of visited vertices."""
        ...

    def receive_mask(self, mask: npt.NDArray[np.uint32]) -> None:
        """Ignore the vertices of a bitmap until `end_mask`.

        The search has begun on the host: the vertices are in its bitmap of visited ones.
        """
        ...

    def end_mask(self) -> None:
        """Remove the mask."""
        ...

    def read_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents that this device found to the host."""
        ...


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
