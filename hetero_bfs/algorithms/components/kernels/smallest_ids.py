"""Converts the labels of components to the caller's vertex ids."""

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
