"""The owners of vertices, and the numbers by which a rank knows all vertices.

Rank r of P owns the old ids (the caller's) r, r + P, r + 2 P and so on. A rank numbers its own
vertices by falling degree; vertices without edges get no number.

A rank searches with *columns*: its own vertices come first, then the vertices of the next rank, and
so on around the ring of ranks. Each rank's vertices begin at a multiple of 512, a cache line of a
bitmap. So the first words of a rank's bitmap are its own vertices, as in a search by one process,
and the same kernels search them. A neighbour list holds columns, with hubs of all ranks first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import NO_VERTEX, VertexArray
from hetero_bfs.graph.search_graph import SearchGraph

LINE_SHIFT = 9
_LINE_WORDS = (1 << LINE_SHIFT) // 32

LINE_COLUMNS = 1 << LINE_SHIFT
"""Columns whose bits share a cache line of a bitmap; they belong to one rank."""

Int64Array = npt.NDArray[np.int64]


def count_owned(num_vertices: int, ranks: int) -> Int64Array:
    """Return the number of old ids that each rank owns, int64 (ranks,)."""
    return np.maximum((num_vertices - np.arange(ranks) + ranks - 1) // ranks, 0)


@dataclass(frozen=True, eq=False)
class Partition:
    """The vertices of all ranks, as one rank numbers them.

    num_vertices : in old ids
    sizes : shape (ranks,); number of each rank's vertices with edges
    leading : shape (ranks,); number of each rank's vertices up to the last one with several edges;
        in a directed graph, all. A search does not go on from a vertex with a single undirected
        edge: only its one neighbour reads its bit.
    """

    num_vertices: int
    rank: int
    sizes: Int64Array
    leading: Int64Array

    @property
    def ranks(self) -> int:
        return int(self.sizes.size)

    @cached_property
    def words(self) -> Int64Array:
        """Words of a bitmap for each rank's vertices, in whole cache lines."""
        lines: Int64Array = -(-self.sizes // LINE_COLUMNS)
        return lines * _LINE_WORDS

    @cached_property
    def first_word(self) -> Int64Array:
        """Position of each rank's words in this rank's bitmap."""
        ring = (self.rank + np.arange(self.ranks)) % self.ranks
        first = np.zeros(self.ranks, np.int64)
        first[ring[1:]] = np.cumsum(self.words[ring])[:-1]
        return first

    @cached_property
    def sent_words(self) -> Int64Array:
        """Words that each rank sends in a dense exchange: the words of its leading vertices."""
        sent: Int64Array = -(-self.leading // 32)
        return sent

    @property
    def bitmap_words(self) -> int:
        return int(self.words.sum())

    @property
    def num_columns(self) -> int:
        """Number of all columns, including the gaps at the ends of ranks."""
        return 32 * self.bitmap_words

    @cached_property
    def first_column(self) -> Int64Array:
        return 32 * self.first_word

    @cached_property
    def owner_of_line(self) -> npt.NDArray[np.uint32]:
        """The rank of each cache line of a bitmap, uint32 (columns / 512,)."""
        owners = np.empty(self.num_columns // LINE_COLUMNS, np.uint32)
        for rank, (first, words) in enumerate(zip(self.first_word, self.words, strict=True)):
            owners[first // _LINE_WORDS : (first + words) // _LINE_WORDS] = rank
        return owners

    def owner(self, vertex: int) -> int:
        return vertex % self.ranks


@dataclass(frozen=True, eq=False)
class RankGraph(SearchGraph):
    """A rank's part of a graph: the neighbour lists of its own vertices, which hold columns.

    In a directed graph they hold out-edges, and in its transpose in-edges. Vertices are numbered by
    the sum of both degrees.

    `relabelling.old_of_new` has the old id of each column, of all ranks; `new_of_old` has the own
    number of each old id that the rank owns, in their order. `input_degree` is in that order, too.
    `num_input_edges` counts the edges of the whole graph.
    """

    partition: Partition

    @property
    def num_searched(self) -> int:
        """Number of the rank's own vertices with edges."""
        return int(self.degree.size)

    @property
    def num_vertices(self) -> int:
        """Number of vertices of the whole graph."""
        return self.partition.num_vertices

    def searched_id(self, vertex: int) -> int | None:
        """Return the own number of an old id; None if another rank owns it, or it is isolated."""
        part = self.partition
        if part.owner(vertex) != part.rank:
            return None
        own = int(self.relabelling.new_of_old[vertex // part.ranks])
        return None if own == NO_VERTEX else own

    def _by_old_id(self, degree: VertexArray) -> VertexArray:
        placed = np.zeros(self.relabelling.new_of_old.size, np.uint32)
        placed[self.relabelling.old_of_new[: degree.size] // self.partition.ranks] = degree
        return placed

    @property
    def replicated_bytes(self) -> int:
        """Bytes that do not shrink with more ranks: the old ids of all columns."""
        return int(self.relabelling.old_of_new.nbytes)
