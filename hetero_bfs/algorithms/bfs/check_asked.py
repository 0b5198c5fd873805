"""Validation of searches with several sources, a limit, a target, a mask, or reversed edges.

The five checks are unchanged. Only the edges differ (`AskedEdges`):

- Several sources get a common root, an additional vertex.
- Edges at masked vertices are omitted, and edges are reversed for a reverse search.
- Nothing must be reached beyond the depth limit, so edges that lead there are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.check_report import CheckedSearch, Failure, Validation
from hetero_bfs.graph.edge_source import (
    CHUNK_EDGES,
    EdgeSource,
    VertexArray,
    check_ends,
    typed_chunks,
)


@dataclass
class AskedEdges:
    """The edges that a search had to follow.

    If there are several `sources`, vertex `edges.num_vertices` is a root with an edge to each of
    them. `mask`, bool (num_vertices,), has the vertices that the search ignores. `reverse` means
    that the search follows the edges of a directed graph backwards.
    """

    edges: EdgeSource
    sources: tuple[int, ...]
    mask: npt.NDArray[np.bool_]
    reverse: bool

    def __post_init__(self) -> None:
        self.has_root = len(self.sources) > 1
        self.num_vertices = self.edges.num_vertices + self.has_root
        self.num_input_edges = self.edges.num_input_edges + self.has_root * len(self.sources)
        self.directed = self.edges.directed
        self.both_directions = self.edges.both_directions
        self._last: npt.NDArray[np.bool_] | None = None
        self._unreached = np.zeros(self.num_vertices, np.bool_)

    def source(self) -> int:
        return self.num_vertices - 1 if self.has_root else self.sources[0]

    def parent(self, parent: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the parents including the root's; sources become its children."""
        if not self.has_root:
            return parent
        root = self.num_vertices - 1
        parents = np.append(parent.astype(np.int64), root)
        here = np.array(self.sources)
        parents[here[parents[here] == here]] = root
        return parents

    def level(self, level: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
        """Return the levels below the root, if there is one: one more than `level`."""
        if level is None or not self.has_root:
            return level
        below = np.where(level >= 0, level.astype(np.int64) + 1, level.astype(np.int64))
        return np.append(below, 0)

    def end_at(
        self,
        search: CheckedSearch,
        depth: npt.NDArray[Any],
        unreached: int,
        depth_limit: int | None,
        target: int | None,
    ) -> None:
        """End the search at its limit or its target's depth; reaching more is a failure.

        `depth` has the depths of all vertices; `unreached` is the value for unreached ones.
        """
        limits = [] if depth_limit is None else [depth_limit + self.has_root]
        if target is not None and depth[target] != unreached:
            limits.append(int(depth[target]))
        if not limits:
            return
        limit = min(limits)
        self._unreached = depth == unreached
        self._last = depth == limit
        beyond = np.flatnonzero(~self._unreached & (depth > limit))
        if beyond.size:
            v = int(beyond[0])
            detail = f"it has depth {depth[v]}, and the search was to end at {limit}"
            search.failure = Failure(4, v, detail)

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        if self.has_root:
            below = np.array(self.sources, np.uint32)
            root = np.full(below.size, self.num_vertices - 1, np.uint32)
            yield root, below
            if self.both_directions and not self.directed:
                yield below, root
        for src, dst in typed_chunks(self.edges):
            check_ends(src, dst, self.edges.num_vertices)
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

    def without_root(self, outcome: Validation) -> Validation:
        if not self.has_root:
            return outcome
        root, many = self.num_vertices - 1, len(self.sources)
        message = outcome.message.replace(f"source {root}", f"{many} sources", 1)
        if outcome.valid:
            message = f"{many} sources: valid; {outcome.reached - 1} vertices reached, "
            message += f"depth {outcome.depth - 1}"
        else:
            message += f" (vertex {root} at depth 0 stands for the root above all sources)"
        return replace(
            outcome,
            message=message,
            reached=outcome.reached - 1,
            depth=max(outcome.depth - 1, 0),
            nedge=max(outcome.nedge - many, 0),
        )
