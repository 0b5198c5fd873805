"""Construction by all ranks: each reads a share of the edges and gets its vertices' lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hetero_bfs.distributed.communicator import Communicator, parts_of
from hetero_bfs.distributed.partition import LINE_COLUMNS, Partition, RankGraph, count_owned
from hetero_bfs.errors import AgreedError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import NO_VERTEX, EdgeSource, VertexArray, check_ends
from hetero_bfs.graph.relabel import Relabelling
from hetero_bfs.support.memory import aligned_empty, shrink

CHUNK_EDGES = 1 << 20
"""Edges that a rank sends in a round: at most 16 MiB of keys."""

Keys = npt.NDArray[np.uint64]


def construct(
    communicator: Communicator,
    share: EdgeSource,
    num_input_edges: int,
    input_degree: VertexArray | None = None,
) -> RankGraph:
    """Build a rank's part of the graph of all ranks' edges: Graph500's kernel 1.

    Parameters
    ----------
    share : EdgeSource
        The edges that this rank reads, of an undirected graph; together the ranks' shares are all
        edges. Its `num_vertices` is that of the whole graph.
    num_input_edges : int
        Of the whole graph.
    input_degree : uint32 array, optional
        Of this rank's old ids, if the edges have lost their duplicates.

    Raises
    ------
    GraphError
        An edge has an end that is no vertex; only the rank that reads it raises this.
    AgreedError
        The vertices of all ranks need more than 32 bits; all ranks raise this.
    """
    rank = communicator.rank
    keys = _collect_keys(communicator, share)
    owned = count_owned(share.num_vertices, communicator.size)
    raw_degree, own, old_of_own = _number_own(keys, int(owned[rank]))
    first = parts_of(owned)
    all_numbers = np.empty(int(owned.sum()), np.uint32)
    communicator.gather_to_all(own, all_numbers, owned, first)
    degree, indices, leading = _lists(communicator, keys, own, all_numbers, first, old_of_own.size)
    sizes = np.array(communicator.collect((degree.size, leading)), np.int64)
    partition = Partition(share.num_vertices, rank, sizes[:, 0].copy(), sizes[:, 1].copy())
    _to_columns(indices, partition)
    old_of_column = _old_of_columns(partition, all_numbers, first, owned)
    return _rank_graph(
        partition,
        Relabelling(own, old_of_column, "degree"),
        num_input_edges,
        raw_degree if input_degree is None else input_degree,
        degree,
        indices,
    )


def _chunks(share: EdgeSource) -> Iterator[tuple[VertexArray, VertexArray]]:
    for src, dst in share.chunks(CHUNK_EDGES):
        check_ends(src, dst, share.num_vertices)
        yield src, dst


def _collect_keys(communicator: Communicator, share: EdgeSource) -> Keys:
    """Return the keys of this rank's vertices; every rank reads its share twice."""
    from hetero_bfs.distributed.kernels.owned_lists import count_keys, make_keys

    both = not share.both_directions
    counts = np.zeros(communicator.size, np.int64)
    rounds = np.zeros(1, np.int64)
    for src, dst in _chunks(share):
        count_keys(src, dst, both, counts)
        rounds[0] += 1
    received = np.empty_like(counts)
    communicator.exchange(counts, received)
    communicator.reduce_to_all(rounds, "max")
    keys = aligned_empty(int(received.sum()), np.uint64)
    filled = 0
    chunks = _chunks(share)
    nothing = np.empty(0, np.uint32), np.empty(0, np.uint32)
    for _ in range(int(rounds[0])):
        src, dst = next(chunks, nothing)
        counts[:] = 0
        count_keys(src, dst, both, counts)
        send = np.empty(int(counts.sum()), np.uint64)
        places = parts_of(counts)
        make_keys(src, dst, both, places.copy(), send)
        communicator.exchange(counts, received)
        more = int(received.sum())
        into = keys[filled : filled + more]
        communicator.exchange_parts(send, counts, places, into, received)
        filled += more
    return keys


def _number_own(keys: Keys, owned: int) -> tuple[VertexArray, VertexArray, VertexArray]:
    """Return input degrees and numbers of the own old ids, and the places of those numbered."""
    from hetero_bfs.distributed.kernels.owned_lists import count_degrees
    from hetero_bfs.graph.kernels.buckets import order_by_falling_degree

    degree = np.zeros(owned, np.uint32)
    count_degrees(keys, degree)
    own, old_of_own = np.empty(owned, np.uint32), np.empty(np.count_nonzero(degree), np.uint32)
    order_by_falling_degree(degree, own, old_of_own)
    return degree, own, old_of_own


def _lists(
    communicator: Communicator,
    keys: Keys,
    own: VertexArray,
    all_numbers: VertexArray,
    first: npt.NDArray[np.int64],
    size: int,
) -> tuple[VertexArray, VertexArray, int]:
    """Return degrees, lists of sorting numbers, and how many vertices may lead anywhere."""
    from hetero_bfs.distributed.kernels.owned_lists import lists_of_keys, renumber_keys

    ranks = np.uint32(communicator.size)
    largest = np.array([size])
    communicator.reduce_to_all(largest, "max")
    needed = communicator.size * (int(largest[0]) + LINE_COLUMNS)
    if needed >= 2**32:
        raise AgreedError(
            f"{communicator.size} ranks with up to {largest[0]} vertices need {needed} numbers; "
            f"32 bits hold {2**32 - 1}: choose a smaller graph"
        )
    renumber_keys(keys, own, all_numbers, first, ranks)
    keys.sort()
    degree = aligned_empty(size, np.uint32)
    indices = keys.view(np.uint32)
    stored = lists_of_keys(keys, degree, indices)
    leads = np.flatnonzero(degree > 1)
    return degree, shrink(indices, stored), int(leads[-1]) + 1 if leads.size else 0


def _to_columns(indices: VertexArray, partition: Partition) -> None:
    """Replace the sorting numbers in lists by columns."""
    from hetero_bfs.distributed.kernels.owned_lists import columns_of_numbers

    columns_of_numbers(indices, partition.first_column, np.uint32(partition.ranks))


def _old_of_columns(
    partition: Partition,
    all_numbers: VertexArray,
    first: npt.NDArray[np.int64],
    owned: npt.NDArray[np.int64],
) -> VertexArray:
    from hetero_bfs.distributed.kernels.owned_lists import old_of_columns

    old_of_column = np.full(partition.num_columns, NO_VERTEX, np.uint32)
    old_of_columns(all_numbers, first, owned, partition.first_column, old_of_column)
    return old_of_column


def _rank_graph(
    partition: Partition,
    relabelling: Relabelling,
    num_input_edges: int,
    input_degree: VertexArray,
    degree: VertexArray,
    indices: VertexArray,
) -> RankGraph:
    from hetero_bfs.graph.kernels.sorting import first_neighbours

    indptr = aligned_empty(degree.size + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    first = aligned_empty(degree.size, np.uint32)
    first_neighbours(indptr, indices, first)
    lists = CSRGraph.trusted(indptr, indices, False, num_input_edges, degree)
    return RankGraph(lists, relabelling, num_input_edges, input_degree, degree, first, partition)
