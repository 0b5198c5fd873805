"""Neighbour lists in any order, with self-loops and duplicates, as in other packages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hetero_bfs.graph.edge_source import CHUNK_EDGES, OffsetArray, VertexArray
from hetero_bfs.graph.weights import WeightArray, needed_weights


class Lists(NamedTuple):
    """CSR arrays.

    indptr : int64, shape (num_vertices + 1,)
    indices : uint32, shape (indptr[-1],)
    """

    indptr: OffsetArray
    indices: VertexArray


@dataclass(frozen=True)
class ListedEdges:
    """The edges of such neighbour lists, as an `EdgeSource` for `Engine`.

    lists : an undirected graph stores every edge twice
    weights : shape (num_entries,)
    """

    lists: Lists
    directed: bool
    weights: WeightArray | None = None

    @property
    def num_vertices(self) -> int:
        return int(self.lists.indptr.size - 1)

    @property
    def num_input_edges(self) -> int:
        entries = int(self.lists.indices.size)
        return entries if self.directed else -(-entries // 2)

    @property
    def both_directions(self) -> bool:
        return not self.directed

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        return None if self.weights is None else self.weights.dtype

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        for _, src, dst in self._cut(size):
            yield src, dst

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
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
