"""The validation of one search: checks 1 and 2 of its tree, failures, and the outcome.

check.py runs the other checks, which need all edges, for many searches at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs import check_kernels as loops

CHECK_NAMES = {
    1: "parents form a tree",
    2: "tree edges span one level",
    3: "edges span at most one level",
    4: "tree covers the component",
    5: "tree edges are input edges",
}
"""The specification's checks by number."""

_Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Validation:
    """Outcome of `validate`.

    `check`, `check_name` and `vertex` name the first check that failed and a vertex where it did.
    They are None if the result is valid.

    `nedge` counts the input edges for TEPS: both ends are reached (directed: the start of the
    edge). Duplicates count, self-loops do not. It is 0 if check 1 or 2 failed. `reached` counts the
    vertices with a parent. `depth` is the greatest depth along the parents, 0 if check 1 failed.
    """

    valid: bool
    check: int | None
    check_name: str | None
    vertex: int | None
    message: str
    nedge: int
    reached: int
    depth: int


class Failure(NamedTuple):
    check: int
    vertex: int
    detail: str


@dataclass
class CheckedSearch:
    """The figures of a search. `column` is its column in the group, None if check 1 or 2 failed."""

    source: int
    reached: int
    depth: int
    failure: Failure | None
    column: int | None = None
    nedge: int = 0

    def outcome(self) -> Validation:
        counts = self.nedge, self.reached, self.depth
        if self.failure is None:
            message = f"source {self.source}: valid; {self.reached} vertices reached, "
            return Validation(True, None, None, None, f"{message}depth {self.depth}", *counts)
        check, vertex, detail = self.failure
        name = CHECK_NAMES[check]
        message = f"source {self.source}: check {check} ({name}) fails at vertex {vertex}: {detail}"
        return Validation(False, check, name, vertex, message, *counts)


def depth_dtype(deepest: int) -> np.dtype[Any]:
    """Return the smallest dtype for depths up to `deepest`; see check_kernels.py."""
    return np.min_scalar_type(deepest + 3)


def unreached_depth(dtype: np.dtype[Any]) -> int:
    """Return the depth that marks unreached vertices; see check_kernels.py."""
    return int(np.iinfo(dtype).max) - 1


def check_tree(
    source: int, parent: npt.NDArray[Any], level: npt.NDArray[Any] | None, packed: _Int64Array
) -> CheckedSearch:
    """Run checks 1 and 2 and fill `packed`."""
    reached, suspect = loops.pack(parent, source, packed)
    failure = _check_parents(parent, source, suspect)
    depth = 0 if failure else int(loops.compute_depths(packed, reached))
    if depth < 0:
        cycle = int(loops.find_cycle(packed, source))
        failure = Failure(1, cycle, f"following the parents from vertex {cycle} leads back to it")
    if failure is None and level is not None:
        failure = _check_levels(level, packed)
    return CheckedSearch(source, int(reached), max(depth, 0), failure)


def _check_parents(parent: npt.NDArray[Any], source: int, suspect: int) -> Failure | None:
    """Run check 1 except for cycles; `suspect` is from `pack`."""
    if parent[source] != source:
        return Failure(1, source, f"the source has parent {parent[source]} instead of itself")
    if suspect == parent.size:
        return None
    wrong = int(parent[suspect])
    if 0 <= wrong < parent.size:
        return Failure(1, suspect, f"its parent {wrong} is unreached")
    return Failure(1, suspect, f"its parent {wrong} is not -1 and not in 0..{parent.size - 1}")


def _check_levels(level: npt.NDArray[Any], packed: _Int64Array) -> Failure | None:
    """Run check 2. If levels are right across all tree edges, they equal the depths."""
    vertex = int(loops.first_wrong_level(level, packed))
    if vertex == level.size:
        return None
    if packed[vertex] == loops.UNREACHED:
        return Failure(2, vertex, f"it has level {level[vertex]} but no parent")
    depth, parent = int(packed[vertex]) >> 32, int(packed[vertex]) & 0xFFFFFFFF
    detail = f"it has level {level[vertex]}, but depth {depth} along the parents"
    if depth > 0:
        detail += f"; its parent {parent} has level {level[parent]}"
    return Failure(2, vertex, detail)


def level_failure(u: int, v: int, depth: npt.NDArray[Any]) -> Failure:
    return Failure(3, u, f"edge ({u}, {v}) joins levels {depth[u]} and {depth[v]}")


def component_failure(u: int, v: int, depth: npt.NDArray[Any]) -> Failure:
    reached, vertex = (v, u) if depth[u] == unreached_depth(depth.dtype) else (u, v)
    detail = f"edge ({u}, {v}) joins it, unreached, to {reached}, reached"
    return Failure(4, vertex, detail)
