"""Numbers of components: by smallest ids of the caller, or in the order of first vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from hetero_bfs.graph.edge_source import NO_ID
from hetero_bfs.graph.relabel import Relabelling
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.intrinsics import atomic_min
from hetero_bfs.support.parallel import in_parallel, part_of


def smallest_ids(label: npt.NDArray[np.uint32], relabelling: Relabelling) -> npt.NDArray[np.int64]:
    """Return the smallest id of each vertex's component, by the caller's ids.

    `label`, shape (num_searched,), has a vertex of each vertex's component, which is its own label,
    in new ids. Vertices outside the searched range are components of their own.
    """
    component = np.empty(relabelling.new_of_old.size, np.int64)
    given: dict[str, Any] = {
        "label": label,
        "old_of_new": relabelling.old_of_new,
        "new_of_old": relabelling.new_of_old,
        "least": np.empty(label.size, np.int64),  # only labels' items are used
        "component": component,
    }
    for step in (_begin_with_labels, _find_least, _write_least):
        in_parallel(step, **given)
    return component


@njit(inline="always")
def _range_of(size, part, parts):
    """Return a part of a range, unsigned: loops would check signed indices for negative ones."""
    begin, end = part_of(size, part, parts)
    return range(np.uint64(begin), np.uint64(end))


@kernel(counted=False, inner=True)
def _begin_with_labels(given, part, parts):
    label, old_of_new, least = given.label, given.old_of_new, given.least
    for v in _range_of(label.size, part, parts):
        if label[v] == v:
            least[v] = old_of_new[v]


@kernel(counted=False, inner=True)
def _find_least(given, part, parts):
    label, old_of_new, least = given.label, given.old_of_new, given.least
    for v in _range_of(label.size, part, parts):
        old = np.int64(old_of_new[v])
        if old < least[label[v]]:
            atomic_min(least, label[v], old)


@kernel(counted=False, inner=True)
def _write_least(given, part, parts):
    label, new_of_old, least = given.label, given.new_of_old, given.least
    component = given.component
    for old in _range_of(component.size, part, parts):
        new = new_of_old[old]
        component[old] = np.int64(old) if new == NO_ID else least[label[new]]


# Connected components by one thread, numbered in the order of their first vertices.
#
# Sets are joined at the smaller root, so a root is the smallest vertex of its set (Tarjan, 1975,
# "Efficiency of a good but not linear set union algorithm"; paths are halved). An edge may be
# stored in one direction or in both.


@kernel
def number_components(indptr, indices, label):
    """Fill label, uint32 (n,), with the number of each vertex's component; return the count.

    In a directed graph the components are the weakly connected ones. The lists must be valid.
    """
    n = label.size
    for v in range(n):
        label[v] = v  # its parent, until the last loop
    for u in range(n):
        mine = _root(label, np.uint32(u))
        for k in range(indptr[u], indptr[u + 1]):
            other = _root(label, indices[k])
            if other < mine:
                label[mine] = other
                mine = other
            elif mine < other:
                label[other] = mine
    count = np.uint32(0)
    for v in range(n):
        if label[v] == v:
            label[v] = count
            count += np.uint32(1)
        else:  # the label is a smaller vertex, which is numbered already
            label[v] = label[label[v]]
    return np.int64(count)


@kernel(inner=True)
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v
