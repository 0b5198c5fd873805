"""The host's strategies: how a level is computed top-down and bottom-up by the thread pool of
threads.

`top_down_level` and `bottom_up_level` are rows' kernels (selection/strategies.py), which the level
loop calls by address. Owners may leave a frontier as they have it; only the strategy that did takes
it so, for any other the level loop settles it first.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hetero_bfs.algorithms.bfs.kernels.expand import finish_queue, set_one_segment
from hetero_bfs.algorithms.bfs.kernels.job import (
    BOTTOM_UP,
    EXPAND,
    NEXT_OWN,
    OWNED,
    PUSH_DENSE,
    RESOLVE_PUSH,
    TOP_DOWN,
)
from hetero_bfs.algorithms.bfs.kernels.level import CHUNK_EDGES, bottom_up_by_list
from hetero_bfs.algorithms.bfs.kernels.phases import (
    CHUNKS_PER_THREAD,
    counted,
    join,
    run_by_master,
    share,
    share_among_owners,
    share_words,
)
from hetero_bfs.selection.schema import (
    BITMAP,
    BOTTOM_UP_QUEUE,
    DENSE_PUSH_BITMAP,
    FOUND_VERTICES,
    FRONTIER_EDGES,
    FRONTIER_VERTICES,
    LEAST_SHARED_EDGES,
    LEVEL,
    QUEUE,
    QUEUE_INDEX,
    UNVISITED_EDGES,
    UNVISITED_LISTED,
    UNVISITED_VERTICES,
    is_dense_push,
)
from hetero_bfs.support.compiling import kernel

_PART_EDGES = LEAST_SHARED_EDGES // 2  # in a chunk, at least
_UNVISITED_LIST_DEGREE = (
    16  # of vertices in a list, in the mean: all their edges are one thread's work
)

_UNCOUNTED = np.int64(-1)

DEFERRED = NEXT_OWN
"""Word that stays: how many edges are deferred where the frontier is the owners'."""

_is_dense_push_level = kernel(is_dense_push, counted=False, inner=True)


@kernel(counted=False, inner=True)
def top_down_level(control, arrays, state, records):
    """Run a top-down level; return its form, vertices and edges found, and -1: none is counted."""
    if _is_dense_push(arrays, state):
        found, edges = _dense_push(control, arrays, state)
        return DENSE_PUSH_BITMAP, found, edges, _UNCOUNTED
    found, edges = _top_down(control, arrays, state, records)
    return QUEUE, found, edges, _UNCOUNTED


@njit(inline="always")
def _expand_among_owners(control, arrays, state, records):
    """Run a top-down level; return vertices and edges found, but for those that are deferred."""
    found, edges, deferred, late, late_edges = share_among_owners(control, arrays, state, EXPAND)
    count_late(state, records, late, late_edges)
    control[OWNED], control[DEFERRED] = 1, deferred
    return found, edges


@njit(inline="always")
def _top_down(control, arrays, state, records):
    """Run a top-down level whose frontier the next one finds in a queue.

    Returns vertices and edges found, but for what waits for owners.
    """
    edges = np.int64(state[FRONTIER_EDGES])
    threads, owners = arrays.found.shape[0], arrays.owned_ranges.size - 1
    if edges < LEAST_SHARED_EDGES or threads == 1:
        return run_by_master(control, arrays, state)
    if owners > 1 and edges < arrays.outbox.shape[2]:
        return _expand_among_owners(control, arrays, state, records)
    join(arrays, state)
    size = min(_edges_of_a_chunk(edges, threads), CHUNK_EDGES)
    share(control, arrays, state, TOP_DOWN, size, (edges + size - 1) // size)
    vertices, edges = counted(arrays)
    set_one_segment(arrays.segments[1 - np.int64(state[QUEUE_INDEX])], vertices)
    return vertices, edges


@njit(inline="always")
def _edges_of_a_chunk(edges, threads):
    return max(edges // (threads * CHUNKS_PER_THREAD) + 1, _PART_EDGES)


@njit(inline="always")
def _is_dense_push(arrays, state):
    """Tell whether several threads have so much to find that they propose parents.

    Not where vertices have owners: the levels of high-diameter graphs are narrow.
    """
    return (
        arrays.found.shape[0] > 1
        and arrays.owned_ranges.size == 2
        and _is_dense_push_level(
            arrays.degree.size, state[FRONTIER_EDGES], state[UNVISITED_VERTICES]
        )
    )


@njit(inline="always")
def _dense_push(control, arrays, state):
    """Run a top-down level whose frontier the next one finds in the other bitmap.

    Returns vertices and edges found. Threads write parents without asking who else does, and then
    look who has got one: claims wait for the bitmap's few lines, which go to and fro between them.
    """
    join(arrays, state)
    edges = np.int64(state[FRONTIER_EDGES])
    size = _edges_of_a_chunk(edges, arrays.found.shape[0])
    share(control, arrays, state, PUSH_DENSE, size, (edges + size - 1) // size)
    found, edges, _ = share_words(control, arrays, state, RESOLVE_PUSH)
    return found, edges


@kernel(counted=False, inner=True)
def bottom_up_level(control, arrays, state, records):
    """Run a bottom-up level; return the form it leaves, vertices and edges found, and neighbours
    edges_scanned.

    The last levels, with few left to find, are the master's, who has a list of those.
    """
    if state[UNVISITED_LISTED] >= 0:
        found, scanned = bottom_up_by_list(arrays, state)
        found, edges = finish_queue(arrays, 1 - np.int64(state[QUEUE_INDEX]), found)
        return BOTTOM_UP_QUEUE, found, edges, scanned
    found, edges, scanned = share_words(control, arrays, state, BOTTOM_UP)
    unvisited_list = np.int64(arrays.counter[0])
    few_edges = (
        state[UNVISITED_EDGES] - edges <= _UNVISITED_LIST_DEGREE * arrays.unvisited_list.size
    )
    if unvisited_list <= arrays.unvisited_list.size and few_edges:
        state[UNVISITED_LISTED] = unvisited_list
    return BITMAP, found, edges, scanned


@kernel(counted=False, inner=True)
def count_late(state, records, vertices, edges):
    """Count vertices of the frontier, and their edges, that the level before left deferred."""
    level = int(state[LEVEL])
    if vertices:
        records[level - 1, FOUND_VERTICES] += vertices
        _count_more(state, vertices, edges)
        if level < records.shape[0]:
            _count_more(records[level], vertices, edges)


@njit(inline="always")
def _count_more(state, vertices, edges):
    state[FRONTIER_VERTICES] += vertices
    state[FRONTIER_EDGES] += edges
    state[UNVISITED_VERTICES] -= vertices
    state[UNVISITED_EDGES] -= edges
