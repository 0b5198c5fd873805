"""Each rank's part: own vertices, with its numbers, their values, and the edges that it reads.

Rank r of P owns the old ids (the caller's) r, r + P, r + 2 P and so on. A rank numbers its own
vertices by falling degree; vertices without edges get no number.

A rank searches with *columns*: its own vertices come first, then the vertices of the next rank, and
so on around the ring of ranks. Each rank's vertices begin at a multiple of 512, a cache line of a
bitmap. So the first words of a rank's bitmap are its own vertices, as in a search by one process,
and the same kernels search them. A neighbour list holds columns, with hubs of all ranks first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import NO_VERTEX, EdgeSource, VertexArray
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.search_graph import SearchGraph, packed_words
from hetero_bfs.graph.weights import weight_dtype_of
from hetero_bfs.ranks.communicator import Communicator, agreed, parts_of

LINE_SHIFT = 9
_LINE_WORDS = (1 << LINE_SHIFT) // 32

LINE_COLUMNS = 1 << LINE_SHIFT
"""Columns whose bits share a cache line of a bitmap; they belong to one rank."""

Int64Array = npt.NDArray[np.int64]


def count_owned(num_vertices: int, ranks: int) -> Int64Array:
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
        lines: Int64Array = -(-self.sizes // LINE_COLUMNS)
        return lines * _LINE_WORDS

    @cached_property
    def first_word(self) -> Int64Array:
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
        return int(self.degree.size)

    @property
    def num_vertices(self) -> int:
        return self.partition.num_vertices

    def searched_id(self, vertex: int) -> int | None:
        """Return the own number of an old id; None if another rank owns it, or it is isolated."""
        part = self.partition
        if part.owner(vertex) != part.rank:
            return None
        own = int(self.relabelling.new_of_old[vertex // part.ranks])
        return None if own == NO_VERTEX else own

    def searched_ids(self, vertices: Sequence[int]) -> VertexArray:
        """Return own numbers of old ids, without those that others own or that are isolated."""
        part, asked = self.partition, np.array(vertices, np.int64)
        own = asked[asked % part.ranks == part.rank] // part.ranks
        numbers = self.relabelling.new_of_old[own]
        return np.ascontiguousarray(numbers[numbers != NO_VERTEX])

    def bitmap_of(self, flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
        """Return the bitmap of all columns, of all ranks, of flags by old ids."""
        old = self.relabelling.old_of_new
        columns = np.flatnonzero(old != NO_VERTEX)
        by_column = np.zeros(old.size, np.bool_)
        by_column[columns] = flags[old[columns]]
        return packed_words(by_column)

    def _by_old_id(self, degree: VertexArray) -> VertexArray:
        placed = np.zeros(self.relabelling.new_of_old.size, np.uint32)
        placed[self.relabelling.old_of_new[: degree.size] // self.partition.ranks] = degree
        return placed

    @property
    def replicated_bytes(self) -> int:
        """Bytes that do not shrink with more ranks: the old ids of all columns."""
        return int(self.relabelling.old_of_new.nbytes)


@dataclass(frozen=True)
class KroneckerShare(KroneckerEdges):
    """A Graph500 graph's edges that a rank reads: of M edges, rank r of P reads r M / P and on."""

    rank: int = 0
    ranks: int = 1

    @property
    def _bounds(self) -> tuple[int, int]:
        _, m = super()._bounds
        return m * self.rank // self.ranks, m * (self.rank + 1) // self.ranks


@dataclass(frozen=True)
class FileShare:
    """A rank's share of a graph file, and facts about the whole graph.

    edges : all edges on rank 0, none on other ranks
    input_degree : uint32, of this rank's old ids; given if the file's neighbour lists have lost the
        duplicates, which it counts
    """

    edges: EdgeSource
    num_input_edges: int
    input_degree: VertexArray | None


def read_share(
    communicator: Communicator,
    path: str | os.PathLike[str],
    directed: bool = False,
    weighted: bool = False,
    renumber: bool = False,
    columns: Sequence[str] | None = None,
    format: str | None = None,
) -> FileShare:
    """Read a graph file as `hetero_bfs.load` does; return this rank's share.

    Rank 0 reads the whole file, and needs the memory that one process needs for the edges. It sends
    the other ranks their neighbour lists during construction. Raises `AgreedError` on all ranks if
    the file cannot be read.
    """
    rank = communicator.rank
    wanted = directed, weighted, renumber, columns, format
    edges = agreed(communicator, lambda: read(path, *wanted) if rank == 0 else None)
    return share_out(communicator, edges)


def share_out(communicator: Communicator, edges: EdgeSource | None) -> FileShare:
    """Return this rank's share of edges that rank 0 has; other ranks pass None."""
    rank, ranks = communicator.rank, communicator.size
    degree: VertexArray | None = getattr(edges, "input_degree", None)
    facts = edges and (
        edges.num_vertices,
        edges.num_input_edges,
        degree is not None,
        edges.directed,
        weight_dtype_of(edges),
        getattr(edges, "duplicates", "min"),
    )
    every = communicator.collect(facts)
    num_vertices, num_edges, knows_degree, directed, weight_dtype, duplicates = every[0]
    if edges is None:
        nothing = np.empty(0, np.uint32)
        weights = None if weight_dtype is None else np.empty(0, weight_dtype)
        edges = EdgeList.trusted(nothing, nothing, num_vertices, directed, weights, duplicates)
    mine = None
    if knows_degree:
        owned = count_owned(num_vertices, ranks)
        send = np.empty(0, np.uint32)
        if degree is not None:
            send = np.concatenate([degree[r::ranks] for r in range(ranks)])
        received = np.zeros(ranks, np.int64)
        received[0] = owned[rank]
        counts = owned if rank == 0 else np.zeros_like(owned)
        mine = np.empty(int(owned[rank]), np.uint32)
        communicator.exchange_parts(send, counts, parts_of(counts), mine, received)
    return FileShare(edges, num_edges, mine)


def gathered(
    communicator: Communicator, mine: npt.NDArray[Any], num_vertices: int
) -> npt.NDArray[Any]:
    """Return an array of all vertices from each rank's own items; all ranks must call this."""
    ranks = communicator.size
    owned = count_owned(num_vertices, ranks)
    first = parts_of(owned)
    parts = np.empty(num_vertices, mine.dtype)
    communicator.gather_to_all(np.ascontiguousarray(mine), parts, owned, first)
    whole = np.empty_like(parts)
    for rank, (begin, count) in enumerate(zip(first, owned, strict=True)):
        whole[rank::ranks] = parts[begin : begin + count]
    return whole
