"""The edges that a rank reads: its share of a generated graph or of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import CHUNK_EDGES, EdgeSource, VertexArray
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.weights import WeightArray, weight_dtype_of
from hetero_bfs.ranks.communicator import Communicator, agreed, parts_of
from hetero_bfs.ranks.partition import count_owned


@dataclass(frozen=True)
class KroneckerShare:
    """A range of a Graph500 graph's edges, generated whenever they are read (an `EdgeSource`).

    Rank r of P reads the edges from r M / P to (r + 1) M / P. Any range can be generated
    separately.
    """

    edges: KroneckerEdges
    rank: int
    ranks: int

    @property
    def num_vertices(self) -> int:
        """Number of vertices of the whole graph."""
        return self.edges.num_vertices

    @property
    def bounds(self) -> tuple[int, int]:
        """The first edge of the share, and the end of the share."""
        m = self.edges.num_input_edges
        return m * self.rank // self.ranks, m * (self.rank + 1) // self.ranks

    @property
    def num_input_edges(self) -> int:
        """Number of edges of the share."""
        begin, end = self.bounds
        return end - begin

    @property
    def directed(self) -> bool:
        return False

    @property
    def both_directions(self) -> bool:
        return False

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        begin, end = self.bounds
        for start in range(begin, end, size):
            yield self.edges.range(start, min(start + size, end))

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        return self.edges.weight_dtype

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        begin, end = self.bounds
        for start in range(begin, end, size):
            yield self.edges.weighted_range(start, min(start + size, end))

    def materialise(self) -> EdgeList:
        """Generate the share into memory: 8 bytes per edge, 12 with weights."""
        if not self.edges.weighted:
            return EdgeList.trusted(*self.edges.range(*self.bounds), self.num_vertices, False)
        src, dst, weights = self.edges.weighted_range(*self.bounds)
        return EdgeList.trusted(src, dst, self.num_vertices, False, weights)


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
    communicator: Communicator, path: Path, weighted: bool = False, directed: bool = False
) -> FileShare:
    """Read a graph file; return this rank's share, with weights and directions if wanted.

    Rank 0 reads the whole file, and needs the memory that one process needs for the edges. It sends
    the other ranks their neighbour lists during construction. Raises `AgreedError` on all ranks if
    the file cannot be read.
    """
    rank = communicator.rank
    edges = agreed(communicator, lambda: read(path, directed, weighted) if rank == 0 else None)
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
