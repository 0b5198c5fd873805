"""The host's strategies: top-down and bottom-up levels on the thread pool.

The table of strategies (scheduling/strategies.py) names `top_down_level` and `bottom_up_level`. The
level loop calls them by address. Owners of partitions may leave deferred edges after a level. If
the next level has another strategy, the level loop first has the owners collect these edges.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels import job
from hetero_bfs.algorithms.bfs.kernels.expand import finish_queue, set_one_segment
from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES, bottom_up_by_list, unmask
from hetero_bfs.algorithms.bfs.kernels.phases import (
    CHUNKS_PER_THREAD,
    counted,
    join,
    run_by_master,
    share,
    share_among_owners,
    share_words,
)
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.schema import is_dense_push, row_of
from hetero_bfs.support.compiling import kernel

_PART_EDGES = schema.LEAST_SHARED_EDGES // 2  # minimum in a chunk
# Largest mean degree of the vertices in a full `unvisited_list`, which one thread scans.
_UNVISITED_LIST_DEGREE = 16

_UNCOUNTED = np.int64(-1)

DEFERRED = job.NEXT_OWN
"""Control word: the number of deferred edges while `OWNED` is set. Phases do not change it."""

_row_of = kernel(row_of, counted=False, inner=True)
_is_dense_push_level = kernel(is_dense_push, counted=False, inner=True)


@kernel(counted=False, inner=True)
def top_down_level(control, arrays, state, records):
    """Run a top-down level.

    Returns the representation of the next frontier, vertices and edges found, and -1, since scanned
    edges are not counted.
    """
    if _is_dense_push(arrays, state):
        found, edges = _dense_push(control, arrays, state)
        return schema.DENSE_PUSH_BITMAP, found, edges, _UNCOUNTED
    found, edges = _top_down(control, arrays, state, records)
    return schema.QUEUE, found, edges, _UNCOUNTED


@njit(inline="always")
def _expand_among_owners(control, arrays, state, records):
    """Run a top-down level with the owners; return vertices and edges found.

    Vertices at the ends of deferred edges are not counted.
    """
    found, edges, deferred, late, late_edges = share_among_owners(
        control, arrays, state, job.EXPAND
    )
    count_late(state, records, late, late_edges)
    control[job.OWNED], control[DEFERRED] = 1, deferred
    return found, edges


@njit(inline="always")
def _top_down(control, arrays, state, records):
    """Run a top-down level that leaves a queue; return vertices and edges found.

    Vertices at the ends of deferred edges are not counted.
    """
    edges = np.int64(state[schema.FRONTIER_EDGES])
    threads, owners = arrays.threads, arrays.owned_ranges.size - 1
    if edges < schema.LEAST_SHARED_EDGES or threads == 1:
        return run_by_master(control, arrays, state)
    if owners > 1 and edges < arrays.outbox.shape[2]:
        return _expand_among_owners(control, arrays, state, records)
    join(arrays, state)
    size = min(_edges_of_a_chunk(edges, threads), CHUNK_EDGES)
    share(control, arrays, state, job.TOP_DOWN, size, (edges + size - 1) // size)
    vertices, edges = counted(arrays)
    set_one_segment(arrays.segments[1 - np.int64(state[schema.QUEUE_INDEX])], vertices)
    return vertices, edges


@njit(inline="always")
def _edges_of_a_chunk(edges, threads):
    return max(edges // (threads * CHUNKS_PER_THREAD) + 1, _PART_EDGES)


@njit(inline="always")
def _is_dense_push(arrays, state):
    """Tell whether a level is a dense push: several threads have much to find.

    With owners of partitions it never is, since the levels of high-diameter graphs are narrow.
    """
    return (
        arrays.threads > 1
        and arrays.owned_ranges.size == 2
        and _is_dense_push_level(
            arrays.degree.size, state[schema.FRONTIER_EDGES], state[schema.UNVISITED_VERTICES]
        )
    )


@njit(inline="always")
def _dense_push(control, arrays, state):
    """Run a top-down level that leaves a bitmap, as a dense push; return vertices and edges found.

    Threads write parents without claiming vertices. A second phase finds the vertices that got a
    parent. Claims would take longer: the bitmap has few cache lines, which would move from core to
    core.
    """
    join(arrays, state)
    edges = np.int64(state[schema.FRONTIER_EDGES])
    size = _edges_of_a_chunk(edges, arrays.threads)
    share(control, arrays, state, job.PUSH_DENSE, size, (edges + size - 1) // size)
    unmask(control, arrays, state)
    found, edges, _ = share_words(control, arrays, state, job.RESOLVE_PUSH)
    return found, edges


@kernel(counted=False, inner=True)
def bottom_up_level(control, arrays, state, records):
    """Run a bottom-up level.

    Returns the representation of the next frontier, vertices and edges found, and edges scanned.
    Once few vertices are unvisited, the master scans the list of them by itself.
    """
    unmask(control, arrays, state)
    if state[schema.UNVISITED_LISTED] >= 0:
        found, scanned = bottom_up_by_list(control, arrays, state)
        found, edges = finish_queue(arrays, 1 - np.int64(state[schema.QUEUE_INDEX]), found)
        return schema.BOTTOM_UP_QUEUE, found, edges, scanned
    found, edges, scanned = share_words(control, arrays, state, job.BOTTOM_UP)
    unvisited_list = np.int64(arrays.counter[0])
    few_edges = (
        state[schema.UNVISITED_EDGES] - edges <= _UNVISITED_LIST_DEGREE * arrays.unvisited_list.size
    )
    if unvisited_list <= arrays.unvisited_list.size and few_edges:
        state[schema.UNVISITED_LISTED] = unvisited_list
    return schema.BITMAP, found, edges, scanned


@kernel(counted=False, inner=True)
def count_late(state, records, vertices, edges):
    """Add late vertices and their edges to the frontier, and to the records of levels.

    The previous level found them at the ends of deferred edges, after it counted its other
    vertices.
    """
    row = _row_of(state)
    if vertices:
        records[row - 1, schema.FOUND_VERTICES] += vertices
        _count_more(state, vertices, edges)
        if row < records.shape[0]:
            _count_more(records[row], vertices, edges)


@njit(inline="always")
def _count_more(state, vertices, edges):
    state[schema.FRONTIER_VERTICES] += vertices
    state[schema.FRONTIER_EDGES] += edges
    state[schema.UNVISITED_VERTICES] -= vertices
    state[schema.UNVISITED_EDGES] -= edges
