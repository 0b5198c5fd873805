"""Edge sources, and checks before compiled loops, which do not check ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.list_checks import check_equal, check_num_vertices, convert
from hetero_bfs.support.checks import (
    as_integer,
    check_choice,
    check_flag,
    check_integer,
    refuse_masked,
)
from hetero_bfs.support.messages import shown

NO_VERTEX = 0xFFFFFFFF
"""The uint32 that means "no vertex": an unreached parent, an absent first neighbour."""

NO_ID = np.uint32(NO_VERTEX)
"""`NO_VERTEX` as uint32, for compiled loops."""

CHUNK_EDGES = 1 << 22
"""Default number of edges per chunk: 32 MiB of uint32 pairs."""

_WEIGHT_TYPES, _RULES = ("int32", "float32", "float64"), ("min", "max", "sum")  # as in weights.py

VertexArray = npt.NDArray[np.uint32]
OffsetArray = npt.NDArray[np.int64]


class EdgeSource(Protocol):
    """An object whose edges can be read several times, chunk by chunk.

    The edges include self-loops and duplicates.

    A source of weighted edges also has `weight_dtype` (int32, float32 or float64; None without
    weights) and `weighted_chunks(size)`, which yields (src, dst, weights) of the same edges. It may
    have `duplicates` ("min", "max" or "sum"; weights.py).
    """

    @property
    def num_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        ...

    @property
    def num_input_edges(self) -> int:
        """Number of edges; an undirected edge counts once."""
        ...

    @property
    def directed(self) -> bool:
        """Whether (u, v) leads from u to v only."""
        ...

    @property
    def both_directions(self) -> bool:
        """Whether an undirected edge already comes twice, as (u, v) and as (v, u)."""
        ...

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield (src, dst) uint32 arrays of equal length, at most `size` edges each."""
        ...


def check_edge_source(graph: Any) -> None:
    """Raise `ArgumentError` if `graph` is not an `EdgeSource`."""
    wanted = ("num_vertices", "num_input_edges", "directed", "both_directions", "chunks")
    if not all(hasattr(graph, name) for name in wanted):
        raise ArgumentError(
            f"the graph is of type {type(graph).__name__}; make one with hetero_bfs.load(path), "
            "kronecker(scale), or CSRGraph.from_edges, .from_pandas, .from_scipy or .from_networkx"
        )
    check_num_vertices(check_integer("the graph's num_vertices", graph.num_vertices))
    check_integer("the graph's num_input_edges", graph.num_input_edges, 0)
    check_flag("the graph's directed", graph.directed)
    check_flag("the graph's both_directions", graph.both_directions)
    dtype = getattr(graph, "weight_dtype", None)
    usual = isinstance(dtype, np.dtype) and dtype.isnative and dtype.name in _WEIGHT_TYPES
    if dtype is not None and not usual:
        raise ArgumentError(
            f"the graph's weight_dtype is {shown(dtype)}; give np.dtype(np.float64), float32 or "
            "int32, or None if it has no weights"
        )
    check_choice("the graph's duplicates", getattr(graph, "duplicates", "min"), _RULES)


def typed_chunks(
    edges: EdgeSource, size: int | None = None
) -> Iterator[tuple[VertexArray, VertexArray]]:
    """Yield the chunks as read-only views, so that compiled loops get one array type.

    That the ends are vertices must be checked by the loop or `check_ends`.
    """
    for src, dst in edges.chunks() if size is None else edges.chunks(size):
        for name, ends in (("src", src), ("dst", dst)):
            check_chunk_array(name, ends, np.dtype(np.uint32), "chunks()")
        check_equal(src, dst)
        yield convert(src, np.uint32), convert(dst, np.uint32)


def cut_rows(indptr: OffsetArray, size: int = CHUNK_EDGES) -> Iterator[tuple[slice, VertexArray]]:
    """Cut the entries of neighbour lists into at most `size` at once: where, and their vertices."""
    from hetero_bfs.support.cold import is_cold  # imports Numba

    total, by_numpy = int(indptr[-1]), is_cold("graphs")
    for start in range(0, total, check_integer("size", size, 1)):
        where = slice(start, min(start + size, total))
        if by_numpy:
            lengths = np.diff(np.clip(indptr, where.start, where.stop)).astype(np.int64)
            rows = np.repeat(np.arange(lengths.size, dtype=np.uint32), lengths)
        else:
            from hetero_bfs.graph.kernels.neighbour_lists import fill_rows

            rows = np.empty(where.stop - start, np.uint32)
            fill_rows(indptr, start, rows)
        yield where, rows


def check_chunk_array(name: str, array: Any, dtype: np.dtype[Any], method: str) -> None:
    """Raise `GraphError` unless an array is one-dimensional, unmasked and of type `dtype`."""
    if not (isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == 1):
        held = getattr(array, "dtype", type(array).__name__)
        raise GraphError(
            f"{name} of a chunk of edges holds {held}; {method} must give one-dimensional arrays "
            f"of {dtype}"
        )
    refuse_masked(f"{name} of a chunk of edges", array)


def check_ends(src: VertexArray, dst: VertexArray, num_vertices: int) -> None:
    """Raise `GraphError` if an edge of a chunk has an end that is not a vertex.

    This happens if arrays change after a graph was built from them, or in a user's own source.
    """
    if src.size and max(src.max(), dst.max()) >= num_vertices:
        i = int(np.maximum(src, dst).argmax())
        raise GraphError(
            f"edge ({src[i]}, {dst[i]}) in a graph of only {num_vertices} vertices; its arrays "
            "changed after it was made, or chunks() gives wrong ids: make it anew"
        )


def check_vertex(vertex: Any, num_vertices: int) -> int:
    """Return a vertex id as int; raise `GraphError` if it is not a vertex of the graph."""
    number = as_integer(vertex)
    if number is None:
        name = "; that of a name is its position in graph.names" if isinstance(vertex, str) else ""
        raise GraphError(f"{shown(vertex)} is not a vertex id; ids are integers{name}")
    if num_vertices == 0:
        raise GraphError(f"vertex {shown(number)} is not in the graph, which has no vertices")
    if not 0 <= number < num_vertices:
        raise GraphError(
            f"vertex {shown(number)} is not in the graph; its ids are 0 to {num_vertices - 1}"
        )
    return number


def check_sources(sources: Any, num_vertices: int) -> list[int]:
    """Return the vertex ids as ints."""
    if not isinstance(sources, Iterable) or getattr(sources, "ndim", 1) == 0:
        raise ArgumentError(f"sources is {shown(sources)}; give a sequence of vertex ids")
    if getattr(sources, "ndim", 1) > 1:
        shape = tuple(sources.shape)  # type: ignore[attr-defined]
        raise ArgumentError(
            f"sources is an array of shape {shape}; give one of one dimension, such as .ravel() "
            "of it"
        )
    return [check_vertex(source, num_vertices) for source in sources]
