"""Neighbour lists in any order, with self-loops and duplicates, as in other packages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hetero_bfs.graph.edge_source import CHUNK_EDGES, OffsetArray, VertexArray
from hetero_bfs.graph.weights import WeightArray, needed_weights


class Lists(NamedTuple):
    """Neighbour lists.

    Parameters
    ----------
    indptr : int64 array, shape (num_vertices + 1,)
    indices : uint32 array, shape (indptr[-1],)
    """

    indptr: OffsetArray
    indices: VertexArray


@dataclass(frozen=True)
class ListedEdges:
    """The edges of such lists, as a source for `Engine`; see `EdgeSource`.

    Parameters
    ----------
    lists : Lists
        If they are those of an undirected graph, they hold every edge twice.
    directed : bool
    weights : array, shape (num_entries,), optional
    """

    lists: Lists
    directed: bool
    weights: WeightArray | None = None

    @property
    def num_vertices(self) -> int:
        """Number of lists."""
        return int(self.lists.indptr.size - 1)

    @property
    def num_input_edges(self) -> int:
        """Number of edges; an undirected one counts once."""
        entries = int(self.lists.indices.size)
        return entries if self.directed else -(-entries // 2)

    @property
    def both_directions(self) -> bool:
        """True for an undirected graph."""
        return not self.directed

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """Type of the weights, None without weights."""
        return None if self.weights is None else self.weights.dtype

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield every entry as (src, dst)."""
        for _, src, dst in self._cut(size):
            yield src, dst

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        """Yield every entry as (src, dst, weights)."""
        weights = needed_weights(self)
        for where, src, dst in self._cut(size):
            yield src, dst, weights[where]

    def _cut(self, size: int) -> Iterator[tuple[slice, VertexArray, VertexArray]]:
        indptr, indices = self.lists
        for start in range(0, indices.size, size):
            where = slice(start, min(start + size, indices.size))
            first, last = np.searchsorted(indptr, (start, where.stop - 1), side="right") - 1
            cut = np.clip(indptr[first : last + 2], start, where.stop)
            src = np.repeat(np.arange(first, last + 1, dtype=np.uint32), np.diff(cut))
            yield where, src, indices[where]
