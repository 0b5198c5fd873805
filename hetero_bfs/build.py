"""From edges to sorted neighbour lists, in the caller's vertex ids or relabelled for search."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph import CHUNK_EDGES, NO_VERTEX, CSRGraph, EdgeSource, VertexArray
from hetero_bfs.memory import aligned_copy, aligned_empty
from hetero_bfs.progress import progress
from hetero_bfs.relabel import Order, Relabelling, relabel

_BUCKET_EDGES = 1 << 15
_MAX_BUCKETS = 2048
_SORT_BATCHES = 32


@dataclass(frozen=True, eq=False)
class SearchGraph:
    """A graph ready to search: relabelled lists and what the kernels read beside them.

    Parameters
    ----------
    graph : CSRGraph
        In new ids; top-down reads its lists, bottom-up those of its transpose.
    relabelling : Relabelling
    num_input_edges : int
    input_degree : uint32 array, shape (num_vertices,)
        In the caller's ids; see `CSRGraph`.
    degree : uint32 array, shape (num_searched,)
        Length of every list of `graph`.
    first : uint32 array, shape (num_searched,)
        First neighbour in the transpose's lists, `NO_VERTEX` where there is none: one contiguous
        read that settles most vertices of a big bottom-up level.
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

    def is_isolated(self, vertex: int) -> bool:
        """Tell whether a vertex (the caller's id) has no edge but self-loops."""
        new = int(self.relabelling.new_of_old[vertex])
        if new >= self.num_searched:
            return True
        backward = self.graph.transpose
        return bool(self.degree[new] == 0 and backward.indptr[new] == backward.indptr[new + 1])


def build_csr(edges: EdgeSource) -> CSRGraph:
    """Build neighbour lists with the caller's vertex ids."""
    out_degree, _ = _count(edges)
    identity = relabel(out_degree, "given")
    input_degree = _input_degree(edges, out_degree)
    return _build(edges, identity, out_degree, input_degree, transposed=False)


def build_search_graph(edges: EdgeSource, order: Order = "degree") -> SearchGraph:
    """Relabel and build in one go: Graph500's kernel 1, from edges to ready-to-search.

    The order counts duplicate edges, so that one pass over the edges suffices; where edges repeat
    it may differ a little from the order of the final degrees.
    """
    out_degree, in_degree = _count(edges)
    total = out_degree + in_degree if edges.directed else out_degree
    relabelling = relabel(total, order)
    kept = relabelling.old_of_new
    graph = _build(edges, relabelling, out_degree[kept], out_degree[kept], transposed=False)
    if edges.directed:
        backward = _build(edges, relabelling, in_degree[kept], in_degree[kept], transposed=True)
        graph.__dict__["transpose"] = backward
    return SearchGraph(
        graph,
        relabelling,
        edges.num_input_edges,
        _input_degree(edges, out_degree),
        aligned_copy(graph.degree()),
        _first_neighbours(graph.transpose),
    )


def build_bytes(edges: EdgeSource) -> int:
    """Estimate the memory that `build_search_graph` needs at its peak, beyond a list of edges."""
    return 24 * edges.num_input_edges + 64 * edges.num_vertices


def _count(edges: EdgeSource) -> tuple[VertexArray, VertexArray]:
    """Count edges at each vertex; of an undirected graph both arrays are the same one."""
    import numba

    from hetero_bfs.kernels.build import count_degrees

    out_degree = np.zeros(edges.num_vertices, np.uint32)
    in_degree = np.zeros(edges.num_vertices, np.uint32) if edges.directed else out_degree
    if edges.both_directions:
        in_degree = np.zeros(edges.num_vertices, np.uint32)  # the same counts, once more
    for src, dst in _chunks(edges, "counting edges"):
        count_degrees(src, dst, out_degree, in_degree, numba.get_num_threads())
    return out_degree, in_degree


def _input_degree(edges: EdgeSource, counted: VertexArray) -> VertexArray:
    """Prefer what the source remembers from before its own duplicates were dropped."""
    remembered: VertexArray | None = getattr(edges, "input_degree", None)
    return counted if remembered is None else remembered


def _build(
    edges: EdgeSource,
    relabelling: Relabelling,
    raw_degree: VertexArray,
    input_degree: VertexArray,
    transposed: bool,
) -> CSRGraph:
    import numba

    from hetero_bfs.kernels.build import LINE, flush_lines, gather_lists, partition_edges
    from hetero_bfs.kernels.build import sort_buckets as sort

    raw_indptr = _prefix_sum(raw_degree)
    bucket_of, bucket_vertices = _buckets(raw_indptr)
    num_buckets = bucket_vertices.size - 1
    threads = numba.get_num_threads()
    pairs = np.empty(int(raw_indptr[-1]), np.uint64)
    cursor = raw_indptr[bucket_vertices[:-1]]
    lines = np.empty((threads, num_buckets, LINE), np.uint64)
    fill = np.zeros((threads, num_buckets), np.int64)
    twice = not edges.directed and not edges.both_directions
    for src, dst in _chunks(edges, "placing edges"):
        partition_edges(
            src,
            dst,
            relabelling.new_of_old,
            bucket_of,
            twice or not transposed,
            twice or transposed,
            cursor,
            pairs,
            lines,
            fill,
        )
    flush_lines(cursor, pairs, lines, fill)

    compact = pairs.view(np.uint32)
    degree = np.zeros(raw_degree.size, np.uint32)
    bounds = np.unique(np.linspace(0, num_buckets, _SORT_BATCHES + 1).astype(np.int64))
    steps = list(pairwise(bounds))
    for low, high in progress(steps, "sorting neighbour lists"):
        sort(low, high, bucket_vertices, raw_indptr, pairs, compact, degree)
    indptr = _prefix_sum(degree)
    indices = aligned_empty(int(indptr[-1]), np.uint32)
    gather_lists(bucket_vertices, raw_indptr, indptr, compact, indices)
    return CSRGraph(indptr, indices, edges.directed, edges.num_input_edges, input_degree)


def _buckets(
    raw_indptr: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """Cut the vertices into ranges of about equally many edges."""
    num_edges = int(raw_indptr[-1])
    num_buckets = min(max(num_edges // _BUCKET_EDGES, 1), _MAX_BUCKETS)
    edges_per_bucket = max(-(-num_edges // num_buckets), 1)
    bucket = np.minimum(raw_indptr[:-1] // edges_per_bucket, num_buckets - 1)
    vertices = np.searchsorted(bucket, np.arange(num_buckets + 1)).astype(np.int64)
    return bucket.astype(np.uint16), vertices


def _chunks(edges: EdgeSource, description: str):  # type: ignore[no-untyped-def]
    stored = edges.num_input_edges * (2 if edges.both_directions else 1)
    return progress(edges.chunks(), description, total=-(-stored // CHUNK_EDGES))


def _prefix_sum(counts: VertexArray) -> npt.NDArray[np.int64]:
    result = aligned_empty(counts.size + 1, np.int64)
    result[0] = 0
    np.cumsum(counts, out=result[1:])
    return result


def _first_neighbours(graph: CSRGraph) -> VertexArray:
    first = aligned_empty(graph.num_vertices, np.uint32)
    first[:] = NO_VERTEX
    has_neighbours = graph.indptr[:-1] < graph.indptr[1:]
    first[has_neighbours] = graph.indices[graph.indptr[:-1][has_neighbours]]
    return first
