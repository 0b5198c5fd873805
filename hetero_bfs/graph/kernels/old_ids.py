"""Results by the caller's ids ("old" ids), from arrays by new ids.

Searches of one engine write theirs with the engine's own threads (algorithms/bfs/kernels/restore.py
and algorithms/multi_source/kernels/phases.py), and PageRank in its last pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.relabel import Relabelling
from hetero_bfs.support.compiling import kernel
from hetero_bfs.support.parallel import in_parallel, part_of, parts_for

Array = npt.NDArray[Any]


def by_old_ids(found: Array, old_of_new: VertexArray, size: int, outside: Any = 0) -> Array:
    """Return values by old ids, of the type of `found`, in a first dimension of `size`.

    `found` has the values or rows of the vertices `old_of_new`; other vertices get the value
    `outside`, or theirs in this array.
    """
    shape = size, *found.shape[1:]
    if len(found) < size:
        restored = np.full(shape, outside, found.dtype)
    else:
        restored = np.empty(shape, found.dtype)
    parts = parts_for(len(found))
    if parts == 1 or found.ndim > 1:
        restored[old_of_new] = found
    else:
        bits = np.dtype(f"u{found.itemsize}")  # so that few types are compiled
        given = {"found": found.view(bits), "restored": restored.view(bits)}
        in_parallel(_scatter, parts, **given, old_of_new=old_of_new)
    return restored


def distances_by_old_ids(
    found: Array, infinity: Any, new_of_old: VertexArray
) -> npt.NDArray[np.float64]:
    """Return distances by old ids, infinite where not reached.

    `found`, shape (num_searched,), has distances by new ids, and `infinity` where not reached.
    `new_of_old` (uint32, shape (num_vertices,)) is beyond `found` for vertices outside the search.
    """
    distance = np.empty(new_of_old.size)
    unreached = np.array([infinity], found.dtype)
    _share(_distances, new_of_old, found=found, unreached=unreached, restored=distance)
    return distance


def parents_by_old_ids(
    up: Array, relabelling: Relabelling, dtype: npt.DTypeLike = np.int64
) -> Array:
    """Return parents by old ids, -1 where there is none. `up` has new ids, by new ids.

    In an unsigned type -1 is `NO_VERTEX`.
    """
    parent = np.empty(relabelling.new_of_old.size, dtype)
    new_of_old, old_of_new = relabelling.new_of_old, relabelling.old_of_new
    _share(_parents, new_of_old, found=up, old_of_new=old_of_new, restored=parent)
    return parent


def _share(work: Any, new_of_old: Array, **given: Any) -> None:
    in_parallel(work, parts_for(new_of_old.size), new_of_old=new_of_old, **given)


@kernel(counted=False, inner=True)
def _scatter(given, part, parts):
    found, restored, old_of_new = given.found, given.restored, given.old_of_new
    begin, end = part_of(found.size, part, parts)
    for v in range(np.uint64(begin), np.uint64(end)):
        restored[old_of_new[v]] = found[v]


@kernel(counted=False, inner=True)
def _distances(given, part, parts):
    new_of_old, found, restored = given.new_of_old, given.found, given.restored
    unreached = given.unreached[0]
    begin, end = part_of(new_of_old.size, part, parts)
    for v in range(np.uint64(begin), np.uint64(end)):
        far, new = np.inf, new_of_old[v]
        if new < found.size and found[new] != unreached:
            far = np.float64(found[new])
        restored[v] = far


@kernel(counted=False, inner=True)
def _parents(given, part, parts):
    new_of_old, found, restored = given.new_of_old, given.found, given.restored
    old_of_new = given.old_of_new
    begin, end = part_of(new_of_old.size, part, parts)
    for v in range(np.uint64(begin), np.uint64(end)):
        up, new = np.int64(-1), new_of_old[v]
        if new < found.size and found[new] < old_of_new.size:
            up = np.int64(old_of_new[found[new]])
        restored[v] = up
