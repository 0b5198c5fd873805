"""Searches from one vertex after the other by one thread. Threads do not share a search."""

from __future__ import annotations

import numpy as np

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_add

_UNSEEN, _MASKED = np.int32(-1), np.int32(-2)


@kernel(counted=False, inner=True)
def search_apart(given, part, parts):
    """Take the next source until none is left; see `algorithm.py` for the fields."""
    while True:
        number = atomic_add(given.next_number, 0, 1)
        if number >= given.stop:
            break
        _search(given, number, given.queue[part], given.level[part])


@kernel(counted=False, inner=True)
def _search(given, number, queue, level):
    indptr, indices, mask, limit = given.indptr, given.indices, given.mask, given.limit
    source = given.sources[number]
    for v in range(np.uint64(level.size)):
        level[v] = _MASKED if mask.size and mask[v] else _UNSEEN
    first, last, total, deepest = np.uint64(0), np.uint64(0), np.int64(0), np.int32(0)
    if source != NO_ID:
        queue[0], level[source], last = source, 0, np.uint64(1)
    while first < last:
        u = queue[first]
        first += np.uint64(1)
        deepest = level[u]
        total += deepest
        if deepest >= limit:
            continue
        for k in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
            v = indices[k]
            if level[v] == _UNSEEN:
                level[v] = deepest + np.int32(1)
                queue[last] = v
                last += np.uint64(1)
    given.reached[number] = max(np.int64(last), 1)
    given.distance_sum[number] = total
    given.eccentricity[number] = deepest
    if given.rows.size:
        _write_row(given.new_of_old, level, given.rows[number])
        given.rows[number, given.old_sources[number]] = 0


@kernel(counted=False, inner=True)
def _write_row(new_of_old, level, row):
    for old in range(np.uint64(row.size)):
        new = new_of_old[old]
        row[old] = max(level[new], _UNSEEN) if new != NO_ID else _UNSEEN
