"""Single-threaded searches in queue order, as in NetworkX and SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray
from hetero_bfs.graph.lists import Lists


@dataclass(frozen=True)
class QueueSearch:
    """The result of a search.

    Parameters
    ----------
    queue : uint32 array
        The vertices found, in order.
    parent : uint32 array, shape (num_vertices,)
        `NO_VERTEX` where not reached. A source is its own parent, unless the caller gave the array.
    ends : int64 array, shape (num_levels + 1,)
        Level i is queue[ends[i] : ends[i + 1]].
    """

    queue: VertexArray
    parent: VertexArray
    ends: npt.NDArray[np.int64]

    def levels(self) -> npt.NDArray[np.int32]:
        """Return each vertex's distance from the sources, -1 where not reached."""
        level = np.full(self.parent.size, -1, np.int32)
        numbers = np.arange(self.ends.size - 1, dtype=np.int32)
        level[self.queue] = np.repeat(numbers, np.diff(self.ends))
        return level


def search_from(
    lists: Lists,
    sources: int | Sequence[int],
    most_levels: float | None = None,
    parent: VertexArray | None = None,
) -> QueueSearch:
    """Search from sources (ids without duplicates).

    `most_levels` is NetworkX's `depth_limit` or `cutoff`, which need not be an integer: a level is
    searched if the number of the previous level is below it. A given `parent` keeps its entries of
    sources and of vertices not reached. The lists must be valid.
    """
    from hetero_bfs.algorithms.bfs.kernels.queue_order import search_in_queue_order

    starts = np.atleast_1d(np.asarray(sources, np.uint32))
    n = lists.indptr.size - 1
    queue, ends = np.empty(n, np.uint32), np.empty(n + 2, np.int64)
    queue[: starts.size] = starts
    if parent is None:
        parent = np.full(n, NO_VERTEX, np.uint32)
        parent[starts] = starts
    most = n if most_levels is None else math.ceil(max(min(most_levels, n), 0))
    levels = search_in_queue_order(*lists, starts.size, most, queue, parent, ends)
    return QueueSearch(queue[: ends[levels]], parent, ends[: levels + 1])
