"""Searches by one thread, without an engine, in queue order as in NetworkX and SciPy."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.query import Query
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray
from hetero_bfs.graph.lists import Lists
from hetero_bfs.scheduling.trace import SERIAL, LevelFeatures, LevelTrace
from hetero_bfs.support.cold import is_cold, scipy_seconds


@dataclass(frozen=True)
class QueueSearch:
    """The vertices that a search found, in order; level i is queue[ends[i] : ends[i + 1]].

    `parent`, shape (num_vertices,), is `NO_VERTEX` where not reached. A source is its own parent,
    unless the caller gave the array.
    """

    queue: VertexArray
    parent: VertexArray
    ends: npt.NDArray[np.int64]

    def levels(self) -> npt.NDArray[np.int32]:
        level = np.full(self.parent.size, -1, np.int32)
        numbers = np.arange(self.ends.size - 1, dtype=np.int32)
        level[self.queue] = np.repeat(numbers, np.diff(self.ends))
        return level


def search_from(
    lists: Lists,
    sources: int | Sequence[int],
    most_levels: float | None = None,
    parent: VertexArray | None = None,
    target: int | None = None,
    mask: npt.NDArray[np.bool_] | None = None,
) -> QueueSearch:
    """Search from sources (ids without duplicates).

    `most_levels` is NetworkX's `depth_limit` or `cutoff`, which need not be an integer: a level is
    searched if the number of the previous level is below it. A given `parent` keeps its entries of
    sources and of vertices not reached. The search ends after the level that finds `target`, which
    is neither a source nor masked. It ignores the vertices of `mask`. The lists must be valid.
    """
    starts = np.atleast_1d(np.asarray(sources, np.uint32))
    n = lists.indptr.size - 1
    queue, ends = np.empty(n, np.uint32), np.empty(n + 2, np.int64)
    queue[: starts.size] = starts
    if parent is None:
        parent = np.full(n, NO_VERTEX, np.uint32)
        parent[starts] = starts
    most = n if most_levels is None else math.ceil(max(min(most_levels, n), 0))
    seconds = scipy_seconds(lists[1].size)
    if starts.size == 1 and mask is None and fits_scipy(lists) and is_cold("searches", seconds):
        return _search_by_scipy(lists, int(starts[0]), most, parent, target)
    from hetero_bfs.algorithms.bfs.kernels.queue_order import search_in_queue_order

    end = -1 if target is None else target
    seen = np.zeros(n, np.uint8) if mask is None else mask.astype(np.uint8)
    levels = search_in_queue_order(*lists, starts.size, most, end, seen, queue, parent, ends)
    return QueueSearch(queue[: ends[levels]], parent, ends[: levels + 1])


def fits_scipy(lists: Lists) -> bool:
    return lists.indptr.size > 1 and max(lists.indptr.size, lists.indices.size) < 2**31


def as_matrix(lists: Lists, weights: npt.NDArray[Any] | None = None) -> Any:
    """Return SciPy's matrix of lists with fewer than 2**31 entries; without weights of ones."""
    from scipy.sparse import csr_array

    n = lists.indptr.size - 1
    data = np.ones(lists.indices.size) if weights is None else weights.astype(np.float64)
    return csr_array((data, lists.indices.view(np.int32), lists.indptr.astype(np.int32)), (n, n))


def _search_by_scipy(
    lists: Lists, source: int, most_levels: int, parent: VertexArray, target: int | None
) -> QueueSearch:
    """Search as `search_from`, in the same order."""
    from scipy.sparse.csgraph import breadth_first_order

    queue, before = breadth_first_order(as_matrix(lists), source)
    place = np.empty(parent.size, np.int64)
    place[queue] = np.arange(queue.size)
    # By position in the queue: an ancestor's position, and how many levels above it is.
    above = place[np.concatenate(([source], before[queue[1:]]))]
    level = (np.arange(queue.size) > 0).astype(np.int64)
    while above.any():
        level += level[above]
        above = above[above]
    if target is not None and target in queue:
        most_levels = min(most_levels, int(level[place[target]]))
    queue = queue[: np.searchsorted(level, most_levels, side="right")].astype(np.uint32)
    parent[queue[1:]] = before[queue[1:]]
    ends = np.concatenate(([0], np.cumsum(np.bincount(level[: queue.size]))))
    return QueueSearch(queue, parent, ends)


def answer_serially(graph: CSRGraph, query: Query) -> BFSResult:
    """Run a query of `Engine.bfs`; the trace has one record, of the strategy "serial"."""
    began = time.perf_counter()
    along = graph.transpose if query.reverse else graph
    lists = Lists(along.indptr, along.indices)
    is_masked = query.target is not None and query.mask is not None and query.mask[query.target]
    search = search_from(
        lists,
        query.sources,
        query.max_levels,
        target=None if is_masked else query.target,
        mask=query.mask,
    )
    searched = time.perf_counter()
    levels = {"level": search.levels()} if query.want == "levels" else {}
    parent = np.empty(0, query.dtype) if levels else as_parents(search.parent, query.dtype)
    seconds, gather_seconds = searched - began, time.perf_counter() - searched
    num_sources, found = len(query.sources), int(search.queue.size) - len(query.sources)

    n, edges, starts = along.num_vertices, along.num_stored_edges, np.array(query.sources)
    degree = int((along.indptr[starts + 1] - along.indptr[starts]).sum())

    def traces() -> list[LevelTrace]:  # must not keep the graph
        unvisited = n - num_sources, edges - degree
        features = LevelFeatures(
            0, num_sources, degree, *unvisited, n, edges, edges / n, None, "queue"
        )
        reason = "one thread, no engine"
        return [LevelTrace(features, SERIAL, seconds, 0.0, 0.0, found, reason=reason)]

    result = BFSResult(
        query.sources[0],
        parent,
        seconds,
        gather_seconds,
        along.input_degree,
        along.directed,
        traces,
        sources=query.sources,
        reverse=query.reverse,
    )
    result.__dict__.update(levels)
    return result


def as_parents(parent: VertexArray, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Return parents as a signed type, -1 for `NO_VERTEX`."""
    if parent.size <= 2**31:  # NO_VERTEX is -1 as int32
        return parent.view(np.int32).astype(dtype, copy=False)
    return np.where(parent == NO_VERTEX, -1, parent.astype(np.int64))
