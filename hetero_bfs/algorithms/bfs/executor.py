"""What a device must be able to do to take part in searches, and one level run for measurements.

The host always takes part (cpu_executor.py); each device beside it has an executor of this kind:
opencl_executor.py where the device holds the graph, streamed_executor.py where its edges come in
pages. A search migrates between them by `receive` and `send`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.result import Found, Frontier
from hetero_bfs.devices.opencl.driver import OpenCLDevice
from hetero_bfs.selection import schema
from hetero_bfs.selection.policy import Policy
from hetero_bfs.selection.strategies import Strategy


class DeviceExecutor(Protocol):
    """Runs levels of searches of one graph on one device beside the host."""

    place: int
    """Number of this device on its platform, from 1 on."""

    device: OpenCLDevice
    unified: bool
    """Whether the search's arrays are the host's own."""

    ended_at: float | None
    """The clock when `run_levels` knew that the device was done, if it says so."""

    @property
    def one_launch(self) -> bool:
        """Whether one launch runs all levels."""
        ...

    @property
    def num_parts(self) -> int:
        """Parts, or pages, of the edge array."""
        ...

    def build_kernels(self) -> None:
        """Compile what searches need; called once, before all that follows."""
        ...

    def begin(self, source: int, frontier: Frontier) -> None:
        """Make `source` (a new id) the only visited vertex and the frontier."""
        ...

    def clear(self, frontier: Frontier) -> None:
        """Forget the last search: no vertex is visited, none has a parent."""
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
        """Begin a search that `run_levels` is about to be asked for, if that saves time."""
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
        """Run levels as long as the policy keeps the search here; true if it is over.

        The first level's strategy is chosen already; `source` (a new id) is where to start if the
        search has not. With `invalidate`, no stale parent is left once this returns. Raises
        `GridStalledError` if the search must begin again.
        """
        ...

    def run(self, strategy: Strategy, frontier: Frontier) -> tuple[Found, float]:
        """Run one level and move `frontier` on to the next; returns its seconds too."""
        ...

    def to_queue(self, frontier: Frontier) -> float:
        """Turn a frontier that is a bitmap into a queue; returns seconds."""
        ...

    def launch_nothing(self, frontier: Frontier) -> None:
        """Do what every stay on the device costs, without a level."""
        ...

    def acquire(self) -> None:
        """Give shared memory back to the device after the host used it."""
        ...

    def release(self) -> None:
        """Let the host use the shared memory."""
        ...

    def receive(self, frontier: Frontier, with_queue: bool) -> None:
        """Take the frontier over from the host."""
        ...

    def send(self, frontier: Frontier, with_queue: bool) -> None:
        """Hand the frontier over to the host."""
        ...

    def add_parents(
        self, vertices: npt.NDArray[np.uint32], parents: npt.NDArray[np.uint32]
    ) -> None:
        """Take over parents that the host found."""
        ...

    def read_visited(self, visited: npt.NDArray[np.uint32], index: int) -> None:
        """Copy one of the two bitmaps of visited vertices to the host."""
        ...

    def read_parents(self, parent: npt.NDArray[np.uint32]) -> None:
        """Copy the parents that this device found to the host."""
        ...


def run_one_level(
    executor: DeviceExecutor, policy: Policy, frontier: Frontier
) -> tuple[Found, float]:
    """Run one level by a policy of one candidate; return what it found, and its seconds."""
    record = np.zeros((1, schema.record_width(1)))
    level = float(frontier.level)
    frontier.state[schema.LEVEL] = frontier.state[schema.CHOSEN] = 0
    executor.run_levels(policy, 1, None, frontier, record, 1, invalidate=False)
    frontier.state[schema.LEVEL] += level
    return Found(frontier.vertices, frontier.edges), float(record[0, schema.SECONDS])
