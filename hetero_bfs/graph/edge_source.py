"""Sources of edges, and checks of them for compiled loops, which do not check ids."""

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
from hetero_bfs.support.wording import shown

NO_VERTEX = 0xFFFFFFFF
"""The uint32 that means "no vertex": an unreached parent, an absent first neighbour."""

NO_ID = np.uint32(NO_VERTEX)
"""The same in the type of ids, for compiled loops."""

CHUNK_EDGES = 1 << 22
"""Edges per chunk of a source of edges: 32 MiB of uint32 pairs."""

_WEIGHT_TYPES, _RULES = ("int32", "float32", "float64"), ("min", "max", "sum")  # of weights.py

VertexArray = npt.NDArray[np.uint32]
OffsetArray = npt.NDArray[np.int64]


class EdgeSource(Protocol):
    """An object whose edges can be read several times, chunk by chunk.

    Self-loops and duplicates are among the edges.

    A source of weighted edges also has `weight_dtype` (int32, float32 or float64; None means no
    weights), `weighted_chunks(size)`, which yields (src, dst, weights) of the same edges, and
    optionally `duplicates` ("min", "max" or "sum"; weights.py).
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
    """Raise `ArgumentError` unless edges can be read from this."""
    wanted = ("num_vertices", "num_input_edges", "directed", "both_directions", "chunks")
    if not all(hasattr(graph, name) for name in wanted):
        raise ArgumentError(
            f"the graph is of type {type(graph).__name__}; make one with hetero_bfs.load(path), "
            "kronecker(scale), or CSRGraph.from_edges, .from_scipy or .from_networkx"
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
    """Yield a source's chunks as read-only views, so that compiled loops get one type.

    It does not check whether the ends are vertices: loops or `check_ends` must do that.

    Raises
    ------
    GraphError
        A chunk is not two uint32 arrays of equal length.
    """
    for src, dst in edges.chunks() if size is None else edges.chunks(size):
        for name, ends in (("src", src), ("dst", dst)):
            check_chunk_array(name, ends, np.dtype(np.uint32), "chunks()")
        check_equal(src, dst)
        yield convert(src, np.uint32), convert(dst, np.uint32)


def check_chunk_array(name: str, array: Any, dtype: np.dtype[Any], method: str) -> None:
    """Raise `GraphError` unless an array of a chunk is one-dimensional, of this type, unmasked."""
    if not (isinstance(array, np.ndarray) and array.dtype == dtype and array.ndim == 1):
        held = getattr(array, "dtype", type(array).__name__)
        raise GraphError(
            f"{name} of a chunk of edges holds {held}; {method} must give one-dimensional arrays "
            f"of {dtype}"
        )
    refuse_masked(f"{name} of a chunk of edges", array)


def check_ends(src: VertexArray, dst: VertexArray, num_vertices: int) -> None:
    """Raise `GraphError` if an edge of a chunk has an end that is no vertex.

    This can happen if arrays change after a graph was made of them, or in a user's own source.
    """
    if src.size and max(src.max(), dst.max()) >= num_vertices:
        i = int(np.maximum(src, dst).argmax())
        raise GraphError(
            f"edge ({src[i]}, {dst[i]}) in a graph of only {num_vertices} vertices; its arrays "
            "changed after it was made, or chunks() gives wrong ids: make it anew"
        )


def check_vertex(vertex: Any, num_vertices: int) -> int:
    """Return a vertex id as Python's int.

    Raises
    ------
    GraphError
        It is no integer, or not below the number of vertices.
    """
    number = as_integer(vertex)
    if number is None:
        raise GraphError(f"{shown(vertex)} is no vertex id; ids are integers")
    if num_vertices == 0:
        raise GraphError(f"vertex {shown(number)} is not in the graph, which has no vertices")
    if not 0 <= number < num_vertices:
        raise GraphError(
            f"vertex {shown(number)} is not in the graph; its ids are 0 to {num_vertices - 1}"
        )
    return number


def check_sources(sources: Any, num_vertices: int) -> list[int]:
    """Return vertex ids of any iterable as a list of Python's ints.

    Raises
    ------
    ArgumentError
        `sources` is not iterable, or an array of several dimensions.
    GraphError
        One of them is not in the graph.
    """
    if not isinstance(sources, Iterable) or getattr(sources, "ndim", 1) == 0:
        raise ArgumentError(f"sources is {shown(sources)}; give a sequence of vertex ids")
    if getattr(sources, "ndim", 1) > 1:
        shape = tuple(sources.shape)  # type: ignore[attr-defined]
        raise ArgumentError(
            f"sources is an array of shape {shape}; give one of one dimension, such as .ravel() "
            "of it"
        )
    return [check_vertex(source, num_vertices) for source in sources]
