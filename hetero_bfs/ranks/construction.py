"""Construction on all ranks: each reads a share of the edges, and builds its vertices' lists."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import AgreedError, GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import (
    NO_VERTEX,
    EdgeSource,
    VertexArray,
    check_ends,
    typed_chunks,
)
from hetero_bfs.graph.kernels.buckets import order_by_falling_degree
from hetero_bfs.graph.kernels.sorting import sort_by_weight
from hetero_bfs.graph.relabel import Relabelling
from hetero_bfs.graph.search_graph import first_neighbours_of
from hetero_bfs.graph.weights import (
    DUPLICATES,
    SUM_BEYOND,
    Duplicates,
    WeightArray,
    weight_dtype_of,
    weighted_chunks,
)
from hetero_bfs.ranks.communicator import Communicator, agreed, parts_of
from hetero_bfs.ranks.owner_kernels import (
    columns_of_numbers,
    combine_duplicates,
    count_degrees,
    count_keys,
    lists_of_keys,
    make_keys,
    place_by_vertex,
    renumber_keys,
)
from hetero_bfs.ranks.partition import LINE_COLUMNS, Partition, RankGraph, count_owned
from hetero_bfs.support.memory import aligned_empty, shrink

CHUNK_EDGES = 1 << 20
"""Edges that a rank sends in a round: at most 16 MiB of keys."""

_LEAST_SHARED = 1 << 16  # fewest keys that are worth another thread

_OTHERS = "chunks() gave different edges the second time; it must give the same each time"

Keys = npt.NDArray[np.uint64]


def construct(
    communicator: Communicator,
    share: EdgeSource,
    num_input_edges: int,
    input_degree: VertexArray | None = None,
) -> RankGraph:
    """Build a rank's part of the graph of all ranks' edges: Graph500's kernel 1.

    share : the edges that this rank reads; all shares together are all edges, and `num_vertices` is
        the whole graph's; either all or none are directed, either all or none have weights
    num_input_edges : of the whole graph
    input_degree : uint32, of this rank's old ids; given if the edges have lost their duplicates

    Raises `AgreedError` on all ranks if an edge has an end that is not a vertex, a chunk is
    malformed, a sum of weights is beyond int32, or the vertices of all ranks need more than 32
    bits. Raises `GraphError`, only on the rank that reads them, if the edges change between two
    reads.
    """
    rank = communicator.rank
    duplicates: Duplicates = getattr(share, "duplicates", "min")
    ways = [
        _collect_keys(communicator, share, back) for back in (False, True)[: 1 + share.directed]
    ]
    owned = count_owned(share.num_vertices, communicator.size)
    raw_degrees = [_count_degrees(keys, int(owned[rank])) for keys, _ in ways]
    degree = sum(raw_degrees[1:], raw_degrees[0])
    own = np.empty(degree.size, np.uint32)
    old_of_own = np.empty(np.count_nonzero(degree), np.uint32)
    order_by_falling_degree(degree, own, old_of_own)
    first = parts_of(owned)
    all_numbers = np.empty(int(owned.sum()), np.uint32)
    communicator.gather_to_all(own, all_numbers, owned, first)
    _check_numbers(communicator, old_of_own.size)
    made = []
    while ways:
        keys, weights = ways.pop(0)
        renumber_keys(keys, own, all_numbers, first)
        sort = partial(_sorted_lists, keys, weights, duplicates, old_of_own.size)
        made.append(agreed(communicator, sort))
    leads = np.flatnonzero(made[0].degree > 1)  # the vertices with several edges
    leading = old_of_own.size if share.directed else int(leads[-1]) + 1 if leads.size else 0
    sizes = np.array(communicator.collect((old_of_own.size, leading)), np.int64)
    partition = Partition(share.num_vertices, rank, sizes[:, 0].copy(), sizes[:, 1].copy())
    graphs = [_as_graph(lists, partition, share.directed, num_input_edges) for lists in made]
    if share.directed:
        graphs[0].__dict__["_transposed"] = graphs[1]
    return RankGraph(
        graphs[0],
        Relabelling(own, _old_of_columns(partition, all_numbers, first, owned), "degree"),
        num_input_edges,
        raw_degrees[0] if input_degree is None else input_degree,
        graphs[0].input_degree,
        first_neighbours_of(graphs[-1]),
        partition,
    )


def _chunks(
    share: EdgeSource, back: bool
) -> Iterator[tuple[VertexArray, VertexArray, WeightArray | None]]:
    chunks: Iterator[tuple[VertexArray, VertexArray, WeightArray | None]]
    if weight_dtype_of(share) is None:
        chunks = ((src, dst, None) for src, dst in typed_chunks(share, CHUNK_EDGES))
    else:
        chunks = weighted_chunks(share, CHUNK_EDGES)
    for src, dst, weights in chunks:
        check_ends(src, dst, share.num_vertices)
        yield (dst, src, weights) if back else (src, dst, weights)


def _collect_keys(
    communicator: Communicator, share: EdgeSource, back: bool
) -> tuple[Keys, WeightArray | None]:
    """Return the keys of this rank's vertices, and weights; every rank reads its share twice.

    If the graph is directed, the keys are of one direction.
    """
    weight_dtype, ranks = weight_dtype_of(share), communicator.size
    both = not (share.both_directions or share.directed)
    by_part = np.empty((numba.get_num_threads(), ranks), np.int64)
    counts = np.zeros(ranks, np.int64)

    def count() -> int:
        rounds = 0
        for src, dst, _ in _chunks(share, back):
            count_keys(src, dst, both, by_part)
            counts[:] += by_part.sum(axis=0)
            rounds += 1
        return rounds

    rounds = np.array([agreed(communicator, count)])
    received = np.empty_like(counts)
    communicator.exchange(counts, received)
    communicator.reduce_to_all(rounds, "max")
    keys = aligned_empty(int(received.sum()), np.uint64)
    all_weights = None if weight_dtype is None else aligned_empty(keys.size, weight_dtype)
    filled = 0
    chunks = _chunks(share, back)
    no_ends, no_weights = np.empty(0, np.uint32), np.empty(0, weight_dtype or np.float32)
    sendable = np.empty(CHUNK_EDGES * (1 + both), np.uint64)
    for _ in range(int(rounds[0])):
        src, dst, weights = next(chunks, (no_ends, no_ends, None))
        count_keys(src, dst, both, by_part)
        by_part.sum(axis=0, out=counts)
        begins = parts_of(counts)
        places = begins + np.cumsum(by_part, axis=0) - by_part
        if (needed := int(counts.sum())) > sendable.size:  # a user's source with long chunks
            sendable = np.empty(needed, np.uint64)
        send = sendable[:needed]
        weights = no_weights if weights is None else weights
        sent = np.empty(needed if weights.size else 0, weights.dtype)
        make_keys(src, dst, weights, both, places, send, sent)
        communicator.exchange(counts, received)
        more = int(received.sum())
        if filled + more > keys.size:
            raise GraphError(_OTHERS)
        into = keys[filled : filled + more]
        communicator.exchange_parts(send, counts, begins, into, received)
        if all_weights is not None:
            there = all_weights[filled : filled + more]
            communicator.exchange_parts(sent, counts, begins, there, received)
        filled += more
    if filled < keys.size:
        raise GraphError(_OTHERS)
    return keys, all_weights


def _count_degrees(keys: Keys, owned: int) -> VertexArray:
    degree = np.zeros(owned, np.uint32)
    count_degrees(keys, degree)
    return degree


def _check_numbers(communicator: Communicator, size: int) -> None:
    """Refuse graphs that need numbers of more than 32 bits; `size` is this rank's."""
    largest = np.array([size])
    communicator.reduce_to_all(largest, "max")
    needed = communicator.size * (int(largest[0]) + LINE_COLUMNS)
    if needed >= 2**32:
        raise AgreedError(
            f"{communicator.size} ranks with up to {largest[0]} vertices need {needed} numbers; "
            f"32 bits hold {2**32 - 1}: choose a smaller graph"
        )


class _Lists(NamedTuple):
    """A rank's neighbour lists in one direction, made of sorting numbers."""

    degree: VertexArray
    indices: VertexArray
    weights: WeightArray | None


def _sorted_lists(
    keys: Keys, weights: WeightArray | None, duplicates: Duplicates, size: int
) -> _Lists:
    """Return the neighbour lists of `size` vertices; without weights, in the memory of `keys`."""
    if weights is not None:
        return _weighted_lists(keys, weights, duplicates, size)
    _sort(keys, numba.get_num_threads())
    degree = aligned_empty(size, np.uint32)
    indices = keys.view(np.uint32)
    stored = lists_of_keys(keys, degree, indices)
    return _Lists(degree, shrink(indices, stored), None)


def _sort(keys: Keys, threads: int) -> None:
    """Sort keys in place by `threads` threads, which recursively halve the keys."""
    if threads == 1 or keys.size < _LEAST_SHARED:
        keys.sort()
        return
    middle = keys.size // 2
    keys.partition(middle)
    lower = threading.Thread(target=_sort, args=(keys[:middle], threads // 2))
    lower.start()
    _sort(keys[middle:], threads - threads // 2)
    lower.join()


def _weighted_lists(keys: Keys, weights: WeightArray, duplicates: Duplicates, size: int) -> _Lists:
    """Return neighbour lists with weights; raise `GraphError` if a sum is beyond int32."""
    degree = _count_degrees(keys, size)
    indptr = np.zeros(size + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    neighbours, placed = np.empty(keys.size, np.uint32), np.empty(keys.size, weights.dtype)
    place_by_vertex(keys, weights, indptr[:-1].copy(), neighbours, placed)
    # Here lists are sorted by neighbour: the neighbours are passed as weights.
    placed, neighbours = sort_by_weight(indptr, placed, neighbours)
    stored = combine_duplicates(degree, neighbours, placed, DUPLICATES.index(duplicates))
    if stored < 0:
        raise GraphError(SUM_BEYOND)
    return _Lists(degree, neighbours[:stored].copy(), placed[:stored].copy())


def _as_graph(
    lists: _Lists, partition: Partition, directed: bool, num_input_edges: int
) -> CSRGraph:
    degree, indices, weights = lists
    columns_of_numbers(indices, partition.first_column)
    indptr = aligned_empty(degree.size + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    return CSRGraph.trusted(indptr, indices, directed, num_input_edges, degree, weights)


def _old_of_columns(
    partition: Partition,
    all_numbers: VertexArray,
    first: npt.NDArray[np.int64],
    owned: npt.NDArray[np.int64],
) -> VertexArray:
    old_of_column = np.full(partition.num_columns, NO_VERTEX, np.uint32)
    for owner in range(owned.size):
        number = all_numbers[first[owner] : first[owner] + owned[owner]]
        place = np.flatnonzero(number != NO_VERTEX)
        column = partition.first_column[owner] + number[place].astype(np.int64)
        old_of_column[column] = place * owned.size + owner
    return old_of_column
