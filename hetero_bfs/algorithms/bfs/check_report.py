"""The validation of one search: checks 1 and 2 of its tree, failures, and the outcome.

check.py runs the other checks, which need all edges, for many searches at once. On ranks each host
has the tree of one search in memory that its ranks share, 8 bytes per vertex, and each rank checks
its share of the edges (`RankValidator`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs import check_kernels as loops
from hetero_bfs.errors import CheckOutcome
from hetero_bfs.graph.edge_source import (
    CHUNK_EDGES,
    EdgeSource,
    VertexArray,
    check_ends,
    typed_chunks,
)
from hetero_bfs.ranks.host_tree import MET, HostTree, check_edges, find_levels


@dataclass
class AskedEdges:
    """The edges that a search had to follow.

    Edges at the vertices of `mask`, bool (num_vertices,), are left out. `reverse` means that the
    search follows the edges of a directed graph backwards. Nothing must be reached beyond the end
    of a search (`end_at`), so edges that lead there are left out, too.
    """

    edges: EdgeSource
    mask: npt.NDArray[np.bool_]
    reverse: bool

    def __post_init__(self) -> None:
        self.num_vertices = self.edges.num_vertices
        self.num_input_edges = self.edges.num_input_edges
        self.directed = self.edges.directed
        self.both_directions = self.edges.both_directions
        self._last: npt.NDArray[np.bool_] | None = None
        self._unreached = np.zeros(self.num_vertices, np.bool_)

    def end_at(
        self,
        search: CheckedSearch,
        depth: npt.NDArray[Any],
        depth_limit: int | None,
        target: int | None,
    ) -> None:
        """End the search at its limit or its target's depth; reaching more is a failure.

        `depth` has the depths of all vertices.
        """
        self._unreached = depth == unreached_depth(depth.dtype)
        limits = [] if depth_limit is None else [depth_limit]
        if target is not None and not self._unreached[target]:
            limits.append(int(depth[target]))
        if not limits:
            return
        limit = min(limits)
        self._last = depth == limit
        beyond = np.flatnonzero(~self._unreached & (depth > limit))
        if beyond.size:
            v = int(beyond[0])
            detail = f"it has depth {depth[v]}, and the search was to end at {limit}"
            search.failure = Failure(4, v, detail)

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        for src, dst in typed_chunks(self.edges):
            check_ends(src, dst, self.num_vertices)
            ends = (dst, src) if self.reverse and self.directed else (src, dst)
            keep = ~(self.mask[src] | self.mask[dst])
            if self._last is not None:
                keep &= ~self._leads_beyond(*ends)
                if not self.directed:
                    keep &= ~self._leads_beyond(*ends[::-1])
            yield ends[0][keep], ends[1][keep]

    def _leads_beyond(self, src: VertexArray, dst: VertexArray) -> npt.NDArray[np.bool_]:
        assert self._last is not None
        return np.asarray(self._last[src] & self._unreached[dst])


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
class Validation(CheckOutcome):
    """Outcome of `validate`.

    `check`, `check_name` and `vertex` name the first check that failed and a vertex where it did.
    They are None if the result is valid.

    `nedge` counts the input edges for TEPS: both ends are reached (directed: the start of the
    edge). Duplicates count, self-loops do not. It is 0 if check 1 or 2 failed. `reached` counts the
    vertices with a parent. `depth` is the greatest depth along the parents, 0 if check 1 failed.
    """

    check: int | None
    check_name: str | None
    vertex: int | None
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

    sources: tuple[int, ...]
    reached: int
    depth: int
    failure: Failure | None
    column: int | None = None
    nedge: int = 0

    def outcome(self) -> Validation:
        counts = self.nedge, self.reached, self.depth
        many = len(self.sources)
        of = f"source {self.sources[0]}" if many == 1 else f"{many} sources"
        if self.failure is None:
            message = f"{of}: valid; {self.reached} vertices reached, depth {self.depth}"
            return Validation(True, message, None, None, None, *counts)
        check, vertex, detail = self.failure
        name = CHECK_NAMES[check]
        message = f"{of}: check {check} ({name}) fails at vertex {vertex}: {detail}"
        return Validation(False, message, check, name, vertex, *counts)


def depth_dtype(deepest: int) -> np.dtype[Any]:
    return np.min_scalar_type(deepest + 3)


def unreached_depth(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).max) - 1


def check_tree(
    sources: tuple[int, ...],
    parent: npt.NDArray[Any],
    level: npt.NDArray[Any] | None,
    packed: _Int64Array,
) -> CheckedSearch:
    roots = np.array(sources, np.int64)
    reached, suspect = loops.pack(parent, roots, packed)
    failure = _check_parents(parent, roots, suspect)
    depth = 0 if failure else int(loops.compute_depths(packed, reached))
    if depth < 0:
        cycle = int(loops.find_cycle(packed, roots))
        failure = Failure(1, cycle, f"following the parents from vertex {cycle} leads back to it")
    if failure is None and level is not None:
        failure = _check_levels(level, packed)
    return CheckedSearch(sources, int(reached), max(depth, 0), failure)


def _check_parents(parent: npt.NDArray[Any], roots: _Int64Array, suspect: int) -> Failure | None:
    """Run check 1 except for cycles; `suspect` is from `pack`."""
    for source in roots[parent[roots] != roots].tolist():
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


class RankValidator(HostTree):
    """Validates successive searches; all ranks make the same calls."""

    def validate(self, source: int, parent: npt.NDArray[np.uint32]) -> Validation:
        """Check a search; `parent` has the parents of this rank's old ids, 2**32 - 1 for none.

        Levels come from the parents, so check 2 holds by construction.
        """
        communicator = self._communicator
        self._share_tree(source, parent)
        reached, deepest, failure = self._check_tree(source)
        failures = [one for one in communicator.collect(failure) if one is not None]
        nedge = 0
        if not failures:
            nedge, failure = self._check_edges(source)
            failures = [one for one in communicator.collect(failure) if one is not None]
        # Each host's ranks divide all vertices among them. All ranks together divide the edges.
        totals = np.array([reached, nedge], np.int64)
        communicator.reduce_to_all(totals, "sum")
        depth = np.array([deepest], np.int64)
        communicator.reduce_to_all(depth, "max")
        first = Failure(*min(failures)) if failures else None
        counted_twice = self._input_degree is not None and not self._share.directed
        nedge = int(totals[1]) // (1 + counted_twice)
        reached = int(totals[0]) // communicator.num_hosts
        return CheckedSearch((source,), reached, int(depth[0]), first, nedge=nedge).outcome()

    def _check_tree(self, source: int) -> tuple[int, int, tuple[int, int, str] | None]:
        parents = self._parents
        if int(parents[source]) != source + 1:
            detail = f"the source has parent {int(parents[source]) - 1} instead of itself"
            return 0, 0, (1, source, detail)
        found = find_levels(parents, self._levels, self._begin, self._end)
        reached, deepest, wrong = (int(number) for number in found)
        failure = None
        if wrong >= 0:
            failure = 1, wrong, "following its parents does not lead to the source"
        self._communicator.barrier()
        return reached, deepest, failure

    def _check_edges(self, source: int) -> tuple[int, tuple[int, int, str] | None]:
        parents, levels = self._parents, self._levels
        share, communicator = self._share, self._communicator
        nedge, failure = 0, None
        for src, dst in typed_chunks(share):
            check_ends(src, dst, share.num_vertices)
            found = check_edges(src, dst, share.directed, parents, levels)
            edges, half, long = (int(number) for number in found)
            nedge += edges
            if long >= 0:
                u, v = int(src[long]), int(dst[long])
                failure = 3, u, f"edge ({u}, {v}) spans more than one level"
            elif half >= 0 and failure is None:
                u, v = int(src[half]), int(dst[half])
                failure = 4, u, f"edge ({u}, {v}) joins a reached and an unreached vertex"
        communicator.combine_hosts(levels, "max")
        here = slice(self._begin, self._end)
        child = self._begin + np.flatnonzero((parents[here] > 0) & (levels[here] < MET))
        child = child[child != source]
        if failure is None and child.size:
            unmet = int(child[0])
            detail = f"its tree edge ({int(parents[unmet]) - 1}, {unmet}) is not an input edge"
            failure = 5, unmet, detail
        degree = self._input_degree
        if degree is not None:
            mine = levels[communicator.rank :: communicator.size]
            nedge = int(degree.sum(where=mine > 0, dtype=np.int64))
        return nedge, failure
