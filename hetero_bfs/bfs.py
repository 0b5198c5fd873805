"""State and result of one search."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hetero_bfs.strategy import Direction, Form
from hetero_bfs.trace import LevelTrace


@dataclass
class Frontier:
    """Where the frontier is kept, between two levels.

    A device has two bitmaps and two queues. `visited_index` names the bitmap that holds all
    visited vertices (the other may hold them as they were one level earlier), `queue_index` the
    queue that holds the frontier if `form` is "queue".
    """

    form: Form = "queue"
    vertices: int = 1
    edges: int = 0
    visited_index: int = 0
    queue_index: int = 0

    def advance(self, direction: Direction, found: Found) -> None:
        """Move on a level: top-down filled the other queue, bottom-up the other bitmap."""
        if direction == "top-down":
            self.queue_index ^= 1
            self.form = "queue"
        else:
            self.visited_index ^= 1
            self.form = "bitmap"
        self.vertices, self.edges = found.vertices, found.edges

    def became_queue(self, found: Found) -> None:
        """Note that the bitmap was turned into a queue of these vertices and edges."""
        self.form, self.vertices, self.edges = "queue", found.vertices, found.edges


@dataclass(frozen=True)
class Found:
    """What a level found: vertices, and the edges that leave them."""

    vertices: int
    edges: int
    examined: int | None = None
    """Neighbours that bottom-up looked at, where it counts them (BC)."""


@dataclass(eq=False)
class BFSResult:
    """The outcome of one search, in the caller's vertex ids.

    Parameters
    ----------
    root : int
    parent : int64 array, shape (num_vertices,)
        The root is its own parent; -1 for vertices not reached.
    seconds : float
        From the key to the complete parent array in the memory that finished, initialisation
        included.
    gather_seconds : float
        Bringing the parents to the host and restoring the caller's ids.
    nedge : int
        Input edges of the traversed component, duplicates counted, self-loops not.
    traces : list of LevelTrace
    """

    root: int
    parent: npt.NDArray[np.int64]
    seconds: float
    gather_seconds: float
    nedge: int
    traces: list[LevelTrace] = field(repr=False)

    @cached_property
    def level(self) -> npt.NDArray[np.int32]:
        """Distance from the root, int32, shape (num_vertices,); -1 for vertices not reached."""
        from hetero_bfs.kernels.restore import levels_from_parents

        level = np.full(self.parent.size, -1, np.int32)
        levels_from_parents(self.parent, self.root, level)
        return level

    def forget_parents(self) -> None:
        """Drop the arrays, 12 bytes per vertex, and keep times and traces."""
        self.parent = np.empty(0, np.int64)
        self.__dict__.pop("level", None)

    @property
    def reached(self) -> int:
        """Number of vertices reached, the root included."""
        return int(np.count_nonzero(self.parent >= 0))

    @property
    def teps(self) -> float:
        """Traversed edges per second."""
        return self.nedge / self.seconds if self.seconds > 0 else 0.0
