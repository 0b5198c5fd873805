"""Builds sorted neighbour lists from an edge source, and reads lists in any order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_source import (
    CHUNK_EDGES,
    EdgeSource,
    OffsetArray,
    VertexArray,
    check_edge_source,
    check_ends,
    cut_rows,
    typed_chunks,
)
from hetero_bfs.graph.list_checks import frozen, integer_array
from hetero_bfs.graph.relabel import Relabelling, relabel
from hetero_bfs.graph.weights import (
    DUPLICATES,
    NO_WEIGHTS,
    SUM_BEYOND,
    Duplicates,
    WeightArray,
    identity_of,
    needed_weights,
    weight_dtype_of,
    weighted_chunks,
)
from hetero_bfs.support import processes
from hetero_bfs.support.cold import is_cold
from hetero_bfs.support.memory import aligned_empty, check_free_memory, shrink
from hetero_bfs.support.messages import progress

if TYPE_CHECKING:
    from hetero_bfs.graph.kernels.buckets import Buckets

_BUCKET_EDGES = 1 << 15  # two copies of a bucket's keys fit in a core's own cache
_MAX_BUCKETS = 2048  # from the number of edges; the 32 bits of a key may need more
_LINE_KEYS = 16  # keys in a 64-byte cache line
_SORT_BATCHES = 32  # most steps of the progress bar
_BATCH_BUCKETS = 8  # per thread and batch; after a batch threads wait for each other
_KEY_BYTES = 4
_NUMPY_SECONDS_PER_EDGE = 2e-7  # an entry by NumPy; a guess


class Steps:
    """Times the steps of a construction; `seconds` has their names in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    def end(self, step: str) -> None:
        """Count the time since the last step's end for this one; steps may come again."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._started
        self._started = now


COUNTING, PLACING, SORTING = "counting edges", "placing edges", "sorting lists"
"""Steps of a construction; the other steps of `build_search_graph` are around them."""


def build_lists(edges: EdgeSource) -> dict[str, Any]:
    """Return the fields of a `CSRGraph`, in the caller's vertex ids."""
    check_edge_source(edges)
    check_memory(edges)
    if _is_cold(edges):
        return _build_by_numpy(edges)
    counts = count_ends(edges, transpose=False)[0]
    identity = relabel(counts[0], "given")
    buckets = cut_into_buckets(counts, identity)
    input_degree = input_degree_of(edges, shrink(counts, edges.num_vertices))
    indptr, indices, _, weights = place_and_sort(edges, identity, buckets, transposed=False)
    return _fields(edges, indptr, indices, input_degree, weights)


def _fields(
    edges: EdgeSource,
    indptr: OffsetArray,
    indices: VertexArray,
    input_degree: VertexArray,
    weights: WeightArray | None,
) -> dict[str, Any]:
    return {
        "indptr": frozen(indptr),
        "indices": frozen(indices),
        "directed": edges.directed,
        "num_input_edges": edges.num_input_edges,
        "input_degree": frozen(input_degree),
        "weights": None if weights is None else frozen(weights),
    }


def _is_cold(edges: EdgeSource) -> bool:
    """Whether NumPy builds the lists, while the kernels are compiled."""
    job = "graphs"
    if weight_dtype_of(edges) is not None:
        job = "weighted graphs"
        if getattr(edges, "duplicates", "min") == "sum":  # both directions need the same rounding
            return False
    return is_cold(job, _NUMPY_SECONDS_PER_EDGE * 2 * _yielded(edges))


def _build_by_numpy(edges: EdgeSource) -> dict[str, Any]:
    n, dtype = edges.num_vertices, weight_dtype_of(edges)
    chunks = [*_chunks(edges, "reading edges")]
    for src, dst, _ in chunks:
        check_ends(src, dst, n)
    starts, ends, weights = (
        np.concatenate([chunk[i] for chunk in chunks]) if chunks else np.empty(0, np.uint32)
        for i in range(3)
    )
    if _stored_twice(edges):
        starts, ends = np.concatenate((starts, ends)), np.concatenate((ends, starts))
        weights = np.concatenate((weights, weights))
    kept = starts != ends
    keys = starts[kept].astype(np.uint64) << np.uint64(32) | ends[kept]
    counted = np.bincount(starts[kept], minlength=n).astype(np.uint32)
    if dtype is None:
        keys, combined = np.unique(keys), None
    else:
        order = np.argsort(keys, kind="stable")
        keys, firsts = np.unique(keys[order], return_index=True)
        combine = np.maximum if getattr(edges, "duplicates", "min") == "max" else np.minimum
        sorted_weights = weights[kept][order].astype(dtype, copy=False)
        combined = frozen(combine.reduceat(sorted_weights, firsts) if keys.size else sorted_weights)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=n), out=indptr[1:])
    indices = (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return _fields(edges, indptr, indices, input_degree_of(edges, counted), combined)


def build_bytes(edges: EdgeSource) -> int:
    """Return an upper bound of the bytes that construction takes, without its source."""
    import numba

    n = edges.num_vertices
    threads: int = numba.get_num_threads()
    # Keys of both directions, or of the graph and its transpose.
    keys = _yielded(edges) * (1 if edges.both_directions else 2)
    graphs = 2 if edges.directed else 1
    # By the caller's ids: raw degrees, new_of_old. By new ids: old_of_new, first. For each graph:
    # list lengths, indptr.
    of_a_vertex = 4 * graphs + 4 + 4 + 4 + (4 + 8) * graphs
    buckets = graphs * _most_buckets(n, keys)
    dtype = weight_dtype_of(edges)
    of_weight = 0 if dtype is None else dtype.itemsize
    of_key = _KEY_BYTES + of_weight
    line = of_key * _line_keys(threads * buckets, keys)
    of_a_thread = (line + 16) * buckets + of_key * _scratch_keys(n, keys)
    # Weights of long lists are combined apart, for each of them at the rank of its neighbour.
    long_lists = of_weight and of_weight * min(keys, threads * n) + threads * n // 16
    return of_key * keys + long_lists + of_a_vertex * n + 24 * buckets + threads * of_a_thread


def check_memory(edges: EdgeSource) -> None:
    """Raise `GraphError` if less than `build_bytes` is free."""
    processes.use_loops()  # the estimate depends on the number of threads
    check_free_memory(
        build_bytes(edges),
        f"building a graph of {edges.num_vertices} vertices and {_yielded(edges)} edges",
        "take a smaller graph or a machine with more memory",
    )


def count_ends(edges: EdgeSource, transpose: bool) -> list[VertexArray]:
    """Count edges at each vertex; with `transpose` also of the transpose, in a second array.

    Returns uint32 arrays, shape (workers, num_vertices), after `add_up`.
    """
    import numba

    from hetero_bfs.graph.kernels.buckets import add_up, count_edges

    n = edges.num_vertices
    num_arrays = 1 + transpose
    # Private counters must not take more memory than keys and lists do later.
    workers = min(numba.get_num_threads(), 2 * _yielded(edges) // max(num_arrays * n, 1) + 4)
    shape = (workers, n)
    counts = [aligned_empty(workers * n, np.uint32).reshape(shape) for _ in range(num_arrays)]
    both_ends = transpose or _stored_twice(edges)
    strays = np.zeros(workers, np.int64)
    for src, dst, _ in _chunks(edges, "counting edges"):
        count_edges(src, dst, counts[0], counts[-1], both_ends, strays, parts=workers)
        if strays.any():
            check_ends(src, dst, n)
    for rows in counts:
        add_up(rows)
    return counts


def _stored_twice(edges: EdgeSource) -> bool:
    return not edges.directed and not edges.both_directions


def input_degree_of(edges: EdgeSource, counted: VertexArray) -> VertexArray:
    remembered: VertexArray | None = getattr(edges, "input_degree", None)
    if remembered is None:
        return counted
    held = integer_array(remembered, "the graph's input_degree")
    if held.size != edges.num_vertices or held.dtype != np.uint32:
        raise GraphError(
            f"the graph's input_degree has {held.size} entries of {held.dtype}; give "
            f"{edges.num_vertices} of uint32, or none"
        )
    return held


def cut_into_buckets(counts: VertexArray, relabelling: Relabelling) -> Buckets:
    from hetero_bfs.graph.kernels.buckets import (
        BLOCK_VERTICES,
        Buckets,
        count_single,
        cut_buckets,
        find_runs,
    )

    old_of_new = relabelling.old_of_new
    n = old_of_new.size
    num_keys = int(counts[0].sum(dtype=np.int64))
    neighbour_bits = _neighbour_bits(n)
    first_vertex, first_key = np.empty((2, _most_buckets(n, num_keys) + 1), np.int64)
    most_edges = _bucket_edges(num_keys)
    most_vertices = 1 << (32 - neighbour_bits)
    num_single = n
    if most_vertices >= BLOCK_VERTICES:
        num_single = count_single(counts[0], old_of_new, most_edges)
    bucket_of = np.empty(num_single + -(-(n - num_single) // BLOCK_VERTICES), np.uint32)
    num_buckets = cut_buckets(
        counts[0],
        old_of_new,
        num_single,
        most_edges,
        most_vertices,
        first_vertex,
        first_key,
        bucket_of,
    )
    ends = slice(0, num_buckets + 1)
    run = np.empty((counts.shape[0], num_buckets), np.int64)
    parts = counts.shape[0]
    find_runs(counts, old_of_new, num_single, bucket_of, first_key, run, parts=parts)
    return Buckets(first_vertex[ends], first_key[ends], num_single, bucket_of, run, neighbour_bits)


def _neighbour_bits(num_vertices: int) -> int:
    return max(num_vertices - 1, 0).bit_length()


def _bucket_edges(num_keys: int) -> int:
    return max(_BUCKET_EDGES, -(-num_keys // _MAX_BUCKETS))


def _most_buckets(num_vertices: int, num_keys: int) -> int:
    """Return an upper bound of the number of buckets.

    Two adjacent buckets together exceed `_bucket_edges` edges, or the bits of a key.
    """
    for_room = num_vertices >> (32 - _neighbour_bits(num_vertices))
    return 2 * num_keys // _bucket_edges(num_keys) + for_room + 2


def _line_keys(num_lines: int, num_keys: int) -> int:
    """Return the keys that a line collects before it is written: fewer if there are many lines."""
    line_keys = _LINE_KEYS
    while line_keys > 1 and 8 * num_lines * line_keys > num_keys:
        line_keys //= 2
    return line_keys


def _scratch_keys(num_vertices: int, num_keys: int) -> int:
    """Return the size of a worker's scratch in keys: for a bucket, or a bitmap of all vertices."""
    return 2 * max(-(-_bucket_edges(num_keys) // 2), -(-num_vertices // 64))


def place_and_sort(
    edges: EdgeSource,
    relabelling: Relabelling,
    buckets: Buckets,
    transposed: bool,
    steps: Steps | None = None,
) -> tuple[OffsetArray, VertexArray, VertexArray, WeightArray | None]:
    """Return indptr, indices, the lengths of the neighbour lists, and weights if edges have any.

    `steps` counts the time for PLACING and SORTING.
    """
    from hetero_bfs.graph.kernels.sorting import close_up

    steps = steps or Steps()
    keys, weights = _place(edges, relabelling, buckets, transposed)
    steps.end(PLACING)
    degree, unique = _sort(edges, buckets, keys, weights)
    indices = shrink(keys, close_up(buckets.first_key, unique, keys))
    indptr = aligned_empty(degree.size + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    kept = None
    if weight_dtype_of(edges) is not None:
        kept = shrink(weights, close_up(buckets.first_key, unique, weights))
    steps.end(SORTING)
    return indptr, indices, degree, kept


def _place(
    edges: EdgeSource, relabelling: Relabelling, buckets: Buckets, transposed: bool
) -> tuple[VertexArray, WeightArray]:
    from hetero_bfs.graph.kernels.buckets import KeyLines, flush_lines, partition_edges
    from hetero_bfs.support.parallel import in_parallel

    dtype, num_keys = weight_dtype_of(edges), int(buckets.first_key[-1])
    keys = aligned_empty(num_keys, np.uint32)
    line_keys = _line_keys(buckets.run.size, keys.size)
    cursor, shape = buckets.run.copy(), (*buckets.run.shape, line_keys)
    if dtype is None:
        weights, weight_shape = NO_WEIGHTS, (*shape[:2], 0)
    else:
        weights, weight_shape = aligned_empty(num_keys, dtype), shape
    weight_lines = np.empty(weight_shape, weights.dtype)
    lines = KeyLines(cursor, np.empty(shape, np.uint32), keys, weight_lines, weights)
    given = buckets._asdict() | lines._asdict() | {"new_of_old": relabelling.new_of_old}
    ways = {"forward": not transposed, "backward": transposed or _stored_twice(edges)}
    workers = buckets.run.shape[0]
    for src, dst, chunk in _chunks(edges, "placing edges"):
        in_parallel(
            partition_edges, workers, src=src, dst=dst, chunk_weights=chunk, **ways, **given
        )
    if (cursor != np.vstack((buckets.first_key[1:], buckets.run[:-1]))).any():
        raise GraphError(
            "chunks() or weighted_chunks() gave different edges the second time; both must give "
            "the same each time"
        )
    flush_lines(buckets.run, *lines)
    return keys, weights


def _sort(
    edges: EdgeSource, buckets: Buckets, keys: VertexArray, weights: WeightArray
) -> tuple[VertexArray, OffsetArray]:
    """Convert keys to neighbour lists; return the length of each list and of each bucket."""
    import numba

    from hetero_bfs.graph.kernels.sorting import sort_buckets
    from hetero_bfs.support.parallel import in_parallel

    num_vertices, num_buckets = int(buckets.first_vertex[-1]), buckets.first_key.size - 1
    threads = numba.get_num_threads()
    shape = threads, _scratch_keys(num_vertices, keys.size)
    weight_shape = threads, shape[1] if weights is not NO_WEIGHTS else 0
    duplicates: Duplicates = getattr(edges, "duplicates", "min")
    overflow = np.zeros(threads, np.int64)
    degree = aligned_empty(num_vertices, np.uint32)
    unique = np.zeros(num_buckets, np.int64)
    next_bucket = np.zeros(1, np.int64)
    given = {
        "next_bucket": next_bucket,
        "keys": keys,
        "weights": weights,
        "scratch": np.empty(shape, np.uint32),
        "weight_scratch": np.empty(weight_shape, weights.dtype),
        "degree": degree,
        "unique": unique,
        "duplicates": DUPLICATES.index(duplicates),
        "is_int32": weights.dtype == np.int32,
        "identity": np.full(1, identity_of(duplicates, weights.dtype), weights.dtype),
        "overflow": overflow,
        **buckets._asdict(),
    }
    batches = min(_SORT_BATCHES, -(-num_buckets // (_BATCH_BUCKETS * threads)))
    stops = np.unique(np.linspace(0, num_buckets, batches + 1).astype(np.int64))[1:]
    for stop in progress(stops, "sorting neighbour lists"):
        in_parallel(sort_buckets, threads, stop=stop, **given)
        next_bucket[0] = stop
    if overflow.any():
        raise GraphError(SUM_BEYOND)
    return degree, unique


def _chunks(
    edges: EdgeSource, description: str
) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
    chunks: Iterator[tuple[VertexArray, VertexArray, WeightArray]] = (
        ((src, dst, NO_WEIGHTS) for src, dst in typed_chunks(edges))
        if weight_dtype_of(edges) is None
        else weighted_chunks(edges)
    )
    return progress(chunks, description, total=-(-_yielded(edges) // CHUNK_EDGES))


def _yielded(edges: EdgeSource) -> int:
    """Return the most pairs that a source yields: a `CSRGraph` yields its stored edges only."""
    stored = getattr(edges, "num_stored_edges", None)
    if stored is not None:
        return int(stored)
    return edges.num_input_edges * (2 if edges.both_directions else 1)


class Lists(NamedTuple):
    """CSR arrays.

    indptr : int64, shape (num_vertices + 1,)
    indices : uint32, shape (indptr[-1],)
    """

    indptr: OffsetArray
    indices: VertexArray


class ListedEdges:
    """The edges of such neighbour lists, as an `EdgeSource`; an undirected one is stored twice."""

    def __init__(self, lists: Lists, directed: bool, weights: WeightArray | None = None) -> None:
        self.lists, self.directed, self.weights = lists, directed, weights
        self.both_directions = not directed
        entries = int(lists.indices.size)
        self.num_vertices = int(lists.indptr.size - 1)
        self.num_input_edges = entries if directed else -(-entries // 2)
        self.weight_dtype = None if weights is None else weights.dtype

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        for where, rows in cut_rows(self.lists.indptr, size):
            yield rows, self.lists.indices[where]

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        weights = needed_weights(self)
        for where, rows in cut_rows(self.lists.indptr, size):
            yield rows, self.lists.indices[where], weights[where]
