"""From edges to sorted neighbour lists, in the caller's vertex ids or relabelled for search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.csr import CHUNK_EDGES, CSRGraph, EdgeSource, OffsetArray, VertexArray
from hetero_bfs.graph.edge_source import check_edge_source, check_ends, typed_chunks
from hetero_bfs.graph.list_checks import frozen
from hetero_bfs.graph.relabel import ORDERS, Relabelling, by_locality, permute, relabel
from hetero_bfs.support import forks
from hetero_bfs.support.checks import check_choice
from hetero_bfs.support.memory import aligned_empty, check_free_memory, free_bytes, shrink
from hetero_bfs.support.progress import progress

_BUCKET_EDGES = 1 << 15  # two copies of a bucket's keys fit in a core's own cache
_MAX_BUCKETS = 2048  # as far as the edges decide; a key's 32 bits may ask for more
_LINE_KEYS = 16  # keys in a 64-byte cache line
_SORT_BATCHES = 32
_KEY_BYTES = 4
_REGULAR_SHARE = 0.8  # of the vertices, with equally many edges; see follow.py
_MOST_REGULAR_DEGREE = 64


@dataclass(frozen=True, eq=False)
class SearchGraph:
    """A graph ready to search: relabelled lists and what the kernels read beside them.

    Parameters
    ----------
    graph : CSRGraph
        In new ids; top-down reads its lists, bottom-up those of its transpose. Duplicates are
        forgotten: its `input_degree` is the length of the lists.
    relabelling : Relabelling
    num_input_edges : int
    input_degree : uint32 array, shape (num_vertices,)
        In the caller's ids; see `CSRGraph`.
    degree : uint32 array, shape (num_searched,)
        Length of every list of `graph`.
    first : uint32 array, shape (num_searched,)
        First neighbour in the transpose's lists, the vertex itself where there is none: one
        contiguous read that settles most vertices of a big bottom-up level.
    """

    graph: CSRGraph
    relabelling: Relabelling
    num_input_edges: int
    input_degree: VertexArray
    degree: VertexArray
    first: VertexArray

    @property
    def num_vertices(self) -> int:
        """Vertices in the caller's ids."""
        return int(self.relabelling.new_of_old.size)

    @property
    def num_searched(self) -> int:
        """Vertices in the searched range."""
        return self.relabelling.num_searched

    @property
    def is_local(self) -> bool:
        """True if vertices are numbered by locality, which owners of patches rely on."""
        return self.relabelling.order == "locality"

    @property
    def is_regular(self) -> bool:
        """True if most vertices that have edges have equally many, as in a grid."""
        degree = self.degree[self.degree > 0]
        counts = np.bincount(degree[degree <= _MOST_REGULAR_DEGREE], minlength=1)
        return bool(counts.max() >= _REGULAR_SHARE * degree.size)

    def is_isolated(self, vertex: int) -> bool:
        """Tell whether a vertex (the caller's id) has no edge but self-loops."""
        new = int(self.relabelling.new_of_old[vertex])
        if new >= self.num_searched:
            return True
        backward = self.graph.transpose
        return bool(self.degree[new] == 0 and backward.indptr[new] == backward.indptr[new + 1])


def build_csr(edges: EdgeSource) -> CSRGraph:
    """Build neighbour lists with the caller's vertex ids.

    Raises
    ------
    ArgumentError
        Not a source of edges.
    GraphError
        Less memory is free than `build_bytes` says.
    """
    check_edge_source(edges)
    _check_memory(edges)
    counts = _count(edges, transpose=False)[0]
    identity = relabel(counts[0], "given")
    buckets = _Buckets.cut(counts, identity)
    input_degree = _input_degree(edges, shrink(counts, edges.num_vertices))
    indptr, indices, _ = _build(edges, identity, buckets, transposed=False)
    lists = frozen(indptr), frozen(indices)
    sizes = edges.directed, edges.num_input_edges
    return CSRGraph.trusted(*lists, *sizes, frozen(input_degree))


def build_search_graph(edges: EdgeSource, order: str = "auto") -> SearchGraph:
    """Relabel and build in one go: Graph500's kernel 1, from edges to ready-to-search.

    `order` is one of `relabel.ORDERS`. Degree order counts duplicate edges, so that one pass over
    the edges suffices; where edges repeat it may differ a little from that of the final degrees.

    Raises
    ------
    ArgumentError
        Not a source of edges, or no such order.
    GraphError
        Less memory is free than `build_bytes` says.
    """
    check_edge_source(edges)
    check_choice("order", order, ORDERS)
    _check_memory(edges)
    counts = _count(edges, transpose=edges.directed)
    total = counts[0][0] + counts[1][0] if edges.directed else counts[0][0]
    relabelling = relabel(total, order)
    buckets = [_Buckets.cut(rows, relabelling) for rows in counts]
    raw_degree, *_ = [shrink(rows, edges.num_vertices) for rows in counts]
    del counts, total
    graphs = []
    for i, way in enumerate(buckets):
        indptr, indices, degree = _build(edges, relabelling, way, transposed=i == 1)
        one = CSRGraph.trusted(indptr, indices, edges.directed, edges.num_input_edges, degree)
        graphs.append(one)
    if order in ("auto", "locality") and relabelling.order == "compact":
        relabelling, graphs = _move_together(graphs, relabelling, order == "locality")
    if edges.directed:
        graphs[0].__dict__["_turned_round"] = graphs[1]
    return SearchGraph(
        graphs[0],
        relabelling,
        edges.num_input_edges,
        _input_degree(edges, raw_degree),
        graphs[0].input_degree,
        _first_neighbours(graphs[-1]),
    )


def _move_together(
    graphs: list[CSRGraph], relabelling: Relabelling, always: bool
) -> tuple[Relabelling, list[CSRGraph]]:
    """Renumber by locality where searches are deep, or `always`; needs the lists once more."""
    if not always and free_bytes() < 8 * graphs[0].num_stored_edges * len(graphs):
        return relabelling, graphs
    moved = by_locality(graphs[0], relabelling, always)
    if moved is None:
        return relabelling, graphs
    return moved[0], [permute(graph, moved[1]) for graph in graphs]


def build_bytes(edges: EdgeSource) -> int:
    """Estimate from above the most memory that construction holds at once beside its source."""
    import numba

    n = edges.num_vertices
    threads: int = numba.get_num_threads()
    keys = 2 * edges.num_input_edges  # both directions, or the graph and its transpose
    graphs = 2 if edges.directed else 1
    # In the caller's ids raw degrees and new_of_old; old_of_new, first; of each graph the length
    # of the lists and indptr.
    of_a_vertex = 4 * graphs + 4 + 4 + 4 + (4 + 8) * graphs
    buckets = graphs * _most_buckets(n, keys)
    lines = _KEY_BYTES * _line_keys(threads * buckets, keys)
    scratch = _KEY_BYTES * _scratch_keys(n, keys)
    of_a_thread = (lines + 16) * buckets + scratch
    return _KEY_BYTES * keys + of_a_vertex * n + 24 * buckets + threads * of_a_thread


def _check_memory(edges: EdgeSource) -> None:
    forks.use_loops()  # which the estimate asks for its threads
    check_free_memory(
        build_bytes(edges),
        f"building a graph of {edges.num_vertices} vertices and {edges.num_input_edges} edges",
        "take a smaller graph or a machine with more memory",
    )


def _count(edges: EdgeSource, transpose: bool) -> list[VertexArray]:
    """Count edges at each vertex, those of the transpose in a second array.

    Return uint32 arrays, shape (workers, num_vertices), added up (see `add_up`).
    """
    import numba

    from hetero_bfs.graph.kernels.buckets import add_up, count_edges

    n = edges.num_vertices
    num_arrays = 1 + transpose
    # Private counters must not take more memory than keys and lists will.
    workers = min(numba.get_num_threads(), 2 * edges.num_input_edges // max(num_arrays * n, 1) + 4)
    shape = (workers, n)
    counts = [aligned_empty(workers * n, np.uint32).reshape(shape) for _ in range(num_arrays)]
    both_ends = transpose or _stored_twice(edges)
    strays = np.zeros(workers, np.int64)
    for src, dst in _chunks(edges, "counting edges"):
        count_edges(src, dst, counts[0], counts[-1], both_ends, strays)
        if strays.any():
            check_ends(src, dst, n)
    for rows in counts:
        add_up(rows)
    return counts


def _stored_twice(edges: EdgeSource) -> bool:
    return not edges.directed and not edges.both_directions


def _input_degree(edges: EdgeSource, counted: VertexArray) -> VertexArray:
    """Prefer what the source remembers from before its own duplicates were dropped."""
    remembered: VertexArray | None = getattr(edges, "input_degree", None)
    return counted if remembered is None else remembered


@dataclass(frozen=True)
class _Buckets:
    """Ranges of vertices, and how a key is put together; see buckets.py.

    Parameters
    ----------
    first_vertex, first_key : int64 arrays, shape (buckets + 1,)
        Bucket b holds vertices first_vertex[b] to first_vertex[b + 1] (new ids), and before
        duplicates are dropped the keys first_key[b] to first_key[b + 1].
    num_single : int
    bucket_of : uint32 array
        The bucket of each of the first `num_single` vertices, then of each block of 64.
    run : int64 array, shape (workers, buckets)
        Where each worker's own keys of a bucket begin.
    neighbour_bits : int
    """

    first_vertex: OffsetArray
    first_key: OffsetArray
    num_single: int
    bucket_of: VertexArray
    run: OffsetArray
    neighbour_bits: int

    @classmethod
    def cut(cls, counts: VertexArray, relabelling: Relabelling) -> _Buckets:
        """Cut the searched range by what `_count` returned."""
        from hetero_bfs.graph.kernels.buckets import (
            BLOCK_VERTICES,
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
        find_runs(counts, old_of_new, num_single, bucket_of, first_key, run)
        return cls(first_vertex[ends], first_key[ends], num_single, bucket_of, run, neighbour_bits)


def _neighbour_bits(num_vertices: int) -> int:
    return max(num_vertices - 1, 0).bit_length()


def _bucket_edges(num_keys: int) -> int:
    return max(_BUCKET_EDGES, -(-num_keys // _MAX_BUCKETS))


def _most_buckets(num_vertices: int, num_keys: int) -> int:
    """Bound the number of buckets: two neighbours exceed `_bucket_edges`, or a key has no room."""
    for_room = num_vertices >> (32 - _neighbour_bits(num_vertices))
    return 2 * num_keys // _bucket_edges(num_keys) + for_room + 2


def _line_keys(num_lines: int, num_keys: int) -> int:
    """Return how many keys to collect before they are written: shorter lines if they are many."""
    line_keys = _LINE_KEYS
    while line_keys > 1 and 8 * num_lines * line_keys > num_keys:
        line_keys //= 2
    return line_keys


def _scratch_keys(num_vertices: int, num_keys: int) -> int:
    """Return room for a bucket of several vertices, or for a uint64 bitmap of all neighbours."""
    return 2 * max(-(-_bucket_edges(num_keys) // 2), -(-num_vertices // 64))


def _build(
    edges: EdgeSource, relabelling: Relabelling, buckets: _Buckets, transposed: bool
) -> tuple[OffsetArray, VertexArray, VertexArray]:
    """Return indptr, indices and the lengths of the lists."""
    from hetero_bfs.graph.kernels.sorting import close_up

    keys = _place(edges, relabelling, buckets, transposed)
    degree, unique = _sort(buckets, keys)
    indices = shrink(keys, close_up(buckets.first_key, unique, keys))
    indptr = aligned_empty(degree.size + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    return indptr, indices, degree


def _place(
    edges: EdgeSource, relabelling: Relabelling, buckets: _Buckets, transposed: bool
) -> VertexArray:
    """Return the keys of all edges that are no loops, in their buckets."""
    from hetero_bfs.graph.kernels.buckets import flush_lines, partition_edges

    keys = aligned_empty(int(buckets.first_key[-1]), np.uint32)
    line_keys = _line_keys(buckets.run.size, keys.size)
    lines = np.empty((*buckets.run.shape, line_keys), np.uint32)
    cursor = buckets.run.copy()
    for src, dst in _chunks(edges, "placing edges"):
        partition_edges(
            src,
            dst,
            relabelling.new_of_old,
            buckets.num_single,
            buckets.bucket_of,
            buckets.neighbour_bits,
            not transposed,
            transposed or _stored_twice(edges),
            buckets.run,
            cursor,
            lines,
            keys,
        )
    if (cursor != np.vstack((buckets.first_key[1:], buckets.run[:-1]))).any():
        raise GraphError(
            "the edges were others when they were read again; chunks() must give the same each time"
        )
    flush_lines(buckets.run, cursor, lines, keys)
    return keys


def _sort(buckets: _Buckets, keys: VertexArray) -> tuple[VertexArray, OffsetArray]:
    """Turn keys into lists, bucket by bucket; return the length of each list and each bucket."""
    import numba

    from hetero_bfs.graph.kernels.sorting import sort_buckets

    num_vertices, num_buckets = int(buckets.first_vertex[-1]), buckets.first_key.size - 1
    scratch_keys = _scratch_keys(num_vertices, keys.size)
    scratch = np.empty((numba.get_num_threads(), scratch_keys), np.uint32)
    degree = aligned_empty(num_vertices, np.uint32)
    unique = np.zeros(num_buckets, np.int64)
    next_bucket = np.zeros(1, np.int64)
    stops = np.unique(np.linspace(0, num_buckets, _SORT_BATCHES + 1).astype(np.int64))[1:]
    for stop in progress(stops, "sorting neighbour lists"):
        sort_buckets(
            next_bucket,
            stop,
            buckets.first_vertex,
            buckets.first_key,
            buckets.neighbour_bits,
            keys,
            scratch,
            degree,
            unique,
        )
    return degree, unique


def _chunks(edges: EdgeSource, description: str) -> Iterator[tuple[VertexArray, VertexArray]]:
    stored = edges.num_input_edges * (2 if edges.both_directions else 1)
    return progress(typed_chunks(edges), description, total=-(-stored // CHUNK_EDGES))


def _first_neighbours(graph: CSRGraph) -> VertexArray:
    from hetero_bfs.graph.kernels.sorting import first_neighbours

    first = aligned_empty(graph.num_vertices, np.uint32)
    first_neighbours(graph.indptr, graph.indices, first)
    return first
