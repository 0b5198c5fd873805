"""The dense push of breadth-first search on the CPU: a large level without atomics.

Threads write the parents of unvisited vertices at the same time. Then they visit the vertices that
got a parent, word by word. level.py describes the arrays, job.py the parameters.
"""

from __future__ import annotations

import numpy as np

from hetero_bfs.algorithms.bfs.kernels.job import NONE, QUEUE, VERTICES, VISITED, edges_of, words_of
from hetero_bfs.algorithms.bfs.kernels.level import (
    FULL,
    ONE,
    WORD_MASK,
    first_entry,
    is_visited,
    prefetch_entries,
    reached_of,
)
from hetero_bfs.devices.cpu.vectors import resolve_pushed_word
from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import population_count


@kernel(counted=False, inner=True)
def push_dense_chunk(control, arrays, chunk, me):
    """Write a chunk of the frontier's edges to `parent` of their unvisited ends.

    Several threads may write to the same vertex. Each of these parents is right; the last one
    stays.
    """
    this, count = control[QUEUE], control[VERTICES]
    queue, offsets = arrays.queue[this], arrays.offsets[this]
    indptr, indices = arrays.indptr, arrays.indices
    visited, parent = arrays.visited[control[VISITED]], arrays.parent
    edge, end = edges_of(control, chunk)
    entry = first_entry(offsets, count, edge)
    while edge < end:
        prefetch_entries(queue, entry, count, indptr, indices)
        u = queue[entry]
        start = np.int64(indptr[u]) + (edge - offsets[entry])
        stop = min(np.int64(indptr[u + 1]), start + (end - edge))
        for k in range(np.uint64(start), np.uint64(stop)):
            v = indices[k]
            if not is_visited(visited, v):
                parent[v] = u
        edge += stop - start
        entry += 1
    return NONE, NONE, NONE


@kernel(counted=False, inner=True)
def resolve_pushed_words(control, arrays, chunk, me):
    """Visit the unvisited vertices of a chunk of the bitmap whose parent is visited.

    Some parents are from an earlier search. That does no harm: such a parent is a neighbour with an
    edge to the vertex, or the vertex itself if it was a source. If a neighbour of an unvisited
    vertex is visited, it is in the frontier. Returns the number of vertices visited, and of their
    edges.
    """
    visited, next_visited = arrays.visited[control[VISITED]], arrays.visited[1 - control[VISITED]]
    reached, degree, parent = reached_of(control, arrays), arrays.degree, arrays.parent
    low, high = words_of(control, arrays, chunk)
    count, edges = np.int64(0), np.int64(0)
    for word in range(np.uint64(low), np.uint64(high)):
        seen = visited[word]
        fresh, more = np.uint32(0), np.int64(0)
        begin, end = word * np.uint64(32), (word + np.uint64(1)) * np.uint64(32)
        if end > parent.size:
            for v in range(begin, np.uint64(parent.size)):
                bit = ONE << (np.uint32(v) & WORD_MASK)
                if not seen & bit and parent[v] != NO_ID and is_visited(reached, parent[v]):
                    fresh |= bit
                    more += np.int64(degree[v])
        elif seen != FULL:
            fresh, more = resolve_pushed_word(word, ~seen, degree, reached, parent)
        next_visited[word] = seen | fresh
        count += np.int64(population_count(fresh))
        edges += more
    return count, edges, NONE
