"""Parents of a shortest-path tree from the distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import NO_ID, NO_VERTEX
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import parallel_kernel, part_of

Array = npt.NDArray[Any]

_PARTS = 64


def tree_parents(lists: Any, distance: Array, infinity: Any, source: int) -> npt.NDArray[np.uint32]:
    """Return a parent of each reached vertex, `NO_VERTEX` for the others. The source is its own.

    A parent is nearer to the source by the weight of its edge. With weights of 0, a vertex may have
    no nearer neighbour. Then its parent is a neighbour at the same distance that has a parent
    already, so that parents form no cycle.

    `distance`, shape (num_searched,), has the sums as the search's arithmetic rounds them. It is
    `infinity` where not reached. `source` is a new id.
    """
    parent, orphans = nearer_parents(lists, distance, infinity)
    complete_tree(lists, distance, source, parent, orphans)
    return parent


def nearer_parents(
    lists: Any, distance: Array, infinity: Any
) -> tuple[npt.NDArray[np.uint32], int]:
    """Return parents that are nearer to the source, and the number of reached vertices without one.

    `distance` covers all neighbours: for the adjacency of a rank, all columns.
    """
    backward = lists.backward
    parent = np.full(lists.num_vertices, NO_VERTEX, np.uint32)
    orphans = np.zeros(_PARTS, np.int64)
    limit, in_order = np.array([infinity], distance.dtype), int(backward is lists.forward)
    _find_nearer(*backward, distance, limit, in_order, parent, orphans, parts=_PARTS)
    return parent, int(orphans.sum())


def complete_tree(lists: Any, distance: Array, source: int, parent: Array, orphans: int) -> None:
    """Give parents to the source and to other reached vertices that have no nearer neighbour."""
    parent[source] = source
    if orphans > 1:  # the source is one
        reached = np.flatnonzero(parent != NO_VERTEX).astype(np.uint32)
        queue = np.empty(distance.size, np.uint32)
        queue[: reached.size] = reached
        _adopt_equals(*lists.forward, distance, parent, queue, reached.size)


@parallel_kernel("indptr neighbours weights distance limit in_order parent orphans", counted=False)
def _find_nearer(given, part, parts):
    indptr, neighbours, weights = given.indptr, given.neighbours, given.weights
    distance, parent, infinity = given.distance, given.parent, given.limit[0]
    in_order = given.in_order != 0
    begin, end = part_of(parent.size, part, parts)
    orphans = 0
    for v in range(begin, end):
        mine = distance[v]
        if mine == infinity:
            continue
        k, last = np.int64(indptr[v]), np.int64(indptr[v + 1])
        found = NO_ID
        while k < last:
            u = neighbours[k]
            if distance[u] < mine and distance[u] + weights[k] == mine:
                found = u
                break
            if in_order and weights[k] > mine:
                break
            k += 1
        parent[v] = found
        orphans += found == NO_ID
    given.orphans[part] = orphans


@kernel
def _adopt_equals(indptr, neighbours, weights, distance, parent, queue, count):
    """Give parents to vertices as near as their neighbours; the queue has all with a parent."""
    at = 0
    while at < count:
        u = queue[at]
        at += 1
        for k in range(np.int64(indptr[u]), np.int64(indptr[u + 1])):
            v = neighbours[k]
            if parent[v] == NO_ID and distance[v] == distance[u]:
                if distance[u] + weights[k] == distance[v]:
                    parent[v] = u
                    queue[count] = v
                    count += 1
