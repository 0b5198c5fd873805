"""Graphs: a list of edges as it came (`EdgeList`), and compressed sparse rows (`CSRGraph`).

Encoding. A vertex id is a uint32 below 2**32 - 1 (that last value means "none"); an offset into
the edge array is an int64. `indptr` and `indices` are SciPy's names: the neighbours of `v` are
`indices[indptr[v]:indptr[v + 1]]`, sorted ascending, without `v` itself and without duplicates.
An undirected edge is stored in both lists. Self-loops and duplicates leave the lists but are
remembered: `input_degree` counts every input edge that is not a loop, for Graph500's TEPS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.support.checks import check_flag

if TYPE_CHECKING:
    import networkx
    import scipy.sparse

NO_VERTEX = 0xFFFFFFFF
"""The uint32 that means "no vertex": an unreached parent, an absent first neighbour."""

MAX_VERTICES = 2**32 - 2
"""Most vertices a graph may have, so that every id and `NO_VERTEX` fit in 32 bits."""

CHUNK_EDGES = 1 << 22
"""Edges per chunk when a source of edges is read through: 32 MiB of uint32 pairs."""

VertexArray = npt.NDArray[np.uint32]
OffsetArray = npt.NDArray[np.int64]


class EdgeSource(Protocol):
    """Anything whose edges can be read through several times, chunk by chunk.

    Self-loops and duplicates are among the edges.
    """

    @property
    def num_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        ...

    @property
    def num_input_edges(self) -> int:
        """Edges as the user counts them: an undirected edge once."""
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


@dataclass(frozen=True)
class EdgeList:
    """Edges in the order they came; `src` and `dst` are uint32 arrays of shape (num_edges,)."""

    src: VertexArray
    dst: VertexArray
    num_vertices: int
    directed: bool = False

    @classmethod
    def from_arrays(
        cls,
        src: npt.ArrayLike,
        dst: npt.ArrayLike,
        num_vertices: int | None = None,
        directed: bool = False,
    ) -> EdgeList:
        """Check and convert two integer arrays of equal length to uint32.

        Raises
        ------
        GraphError
            Ids that are negative, not integers or not below `num_vertices`; unequal lengths;
            more than 2**32 - 2 vertices.
        """
        check_flag("directed", directed)
        src, dst = _integer_array(src, "src"), _integer_array(dst, "dst")
        if src.shape != dst.shape:
            raise GraphError(
                f"src has {src.size} entries and dst {dst.size}; give two arrays of equal length"
            )
        smallest = min(_extreme(src, "min"), _extreme(dst, "min"))
        largest = max(_extreme(src, "max"), _extreme(dst, "max"))
        if smallest < 0:
            raise GraphError(f"vertex id {smallest} is negative; ids start at 0")
        if num_vertices is None:
            num_vertices = largest + 1
        check_num_vertices(num_vertices)
        if largest >= num_vertices:
            raise GraphError(
                f"vertex id {largest} is not below num_vertices = {num_vertices}; "
                f"raise num_vertices to {largest + 1} or leave it out"
            )
        return cls(
            np.ascontiguousarray(src, dtype=np.uint32),
            np.ascontiguousarray(dst, dtype=np.uint32),
            int(num_vertices),
            directed,
        )

    @property
    def num_input_edges(self) -> int:
        """Number of edges, self-loops and duplicates included."""
        return int(self.src.size)

    @property
    def both_directions(self) -> bool:
        """False: an undirected edge is listed once."""
        return False

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield the edges in order as (src, dst) views of at most `size` edges."""
        for start in range(0, self.src.size, size):
            yield self.src[start : start + size], self.dst[start : start + size]


@dataclass(frozen=True, eq=False)
class CSRGraph:
    """Sorted neighbour lists without self-loops and duplicates.

    Parameters
    ----------
    indptr : int64 array, shape (num_vertices + 1,)
    indices : uint32 array, shape (indptr[-1],)
        An undirected edge is stored twice.
    directed : bool
    num_input_edges : int
        Input edges, self-loops and duplicates included; an undirected edge counts once.
    input_degree : uint32 array, shape (num_vertices,)
        Input edges at each vertex, duplicates counted, self-loops not; of a directed graph the
        edges that leave the vertex.
    """

    indptr: OffsetArray
    indices: VertexArray
    directed: bool
    num_input_edges: int
    input_degree: VertexArray

    @classmethod
    def from_edges(
        cls,
        src: npt.ArrayLike,
        dst: npt.ArrayLike,
        num_vertices: int | None = None,
        directed: bool = False,
    ) -> CSRGraph:
        """Build from two integer arrays of shape (num_edges,); see `EdgeList.from_arrays`."""
        return cls.from_edge_source(EdgeList.from_arrays(src, dst, num_vertices, directed))

    @classmethod
    def from_edge_source(cls, edges: EdgeSource) -> CSRGraph:
        """Build from any source of edges, keeping its vertex ids."""
        from hetero_bfs.graph.build import build_csr

        return build_csr(edges)

    @classmethod
    def from_scipy(
        cls, matrix: scipy.sparse.sparray | scipy.sparse.spmatrix, directed: bool = False
    ) -> CSRGraph:
        """Build from a square SciPy sparse matrix or array: entry (u, v) is the edge u -> v.

        Stored entries count as edges whatever their value, explicit zeros not. With
        `directed=False` a symmetric matrix and its upper triangle give the same graph, except
        that the symmetric one names every edge twice, which `num_input_edges` shows.
        """
        if not hasattr(matrix, "tocoo"):
            raise ArgumentError(
                f"the matrix is of type {type(matrix).__name__}; give a SciPy sparse one, such as "
                "scipy.sparse.csr_array(matrix)"
            )
        coo: Any = matrix.tocoo()
        if len(coo.shape) != 2 or coo.shape[0] != coo.shape[1]:
            raise GraphError(
                f"the matrix has shape {coo.shape}; an adjacency matrix must be square"
            )
        keep = coo.data != 0
        return cls.from_edges(coo.row[keep], coo.col[keep], coo.shape[0], directed)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, directed: bool | None = None) -> CSRGraph:
        """Build from a NetworkX graph; vertex i is the i-th node in the graph's own order.

        `directed` follows the graph unless given.
        """
        if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
            raise ArgumentError(
                f"the graph is of type {type(graph).__name__}; give a networkx.Graph or DiGraph"
            )
        number = {node: i for i, node in enumerate(graph.nodes)}
        pairs = np.array(
            [(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64
        ).reshape(-1, 2)
        if directed is None:
            directed = bool(graph.is_directed())
        return cls.from_edges(pairs[:, 0], pairs[:, 1], len(number), directed)

    @property
    def num_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return int(self.indptr.size - 1)

    @property
    def num_stored_edges(self) -> int:
        """Entries of `indices`: an undirected edge counts twice."""
        return int(self.indices.size)

    @property
    def both_directions(self) -> bool:
        """True for an undirected graph, whose lists hold every edge twice."""
        return not self.directed

    @property
    def transpose(self) -> CSRGraph:
        """The graph with every edge turned round; an undirected graph itself."""
        return self._turned_round if self.directed else self

    @cached_property
    def _turned_round(self) -> CSRGraph:
        from hetero_bfs.graph.build import build_csr

        return build_csr(_Reversed(self))

    def degree(self) -> VertexArray:
        """Return the length of every neighbour list, uint32, shape (num_vertices,)."""
        return np.diff(self.indptr).astype(np.uint32)

    def neighbours(self, vertex: int) -> VertexArray:
        """Return the sorted neighbours of one vertex, a uint32 view."""
        return self.indices[self.indptr[vertex] : self.indptr[vertex + 1]]

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield every stored edge as (src, dst), grouped by src; see `EdgeSource.chunks`."""
        for start in range(0, self.indices.size, size):
            stop = min(start + size, self.indices.size)
            positions = np.arange(start, stop, dtype=np.int64)
            src = np.searchsorted(self.indptr, positions, side="right") - 1
            yield src.astype(np.uint32), self.indices[start:stop]


@dataclass(frozen=True)
class _Reversed:
    """The edges of a directed graph, read backwards."""

    graph: CSRGraph
    directed: bool = True

    @property
    def both_directions(self) -> bool:
        return False

    @property
    def num_vertices(self) -> int:
        return self.graph.num_vertices

    @property
    def num_input_edges(self) -> int:
        return self.graph.num_input_edges

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        for src, dst in self.graph.chunks(size):
            yield dst, src


def check_edge_source(graph: Any) -> None:
    """Raise `ArgumentError` unless edges can be read from this."""
    wanted = ("num_vertices", "num_input_edges", "directed", "both_directions", "chunks")
    if not all(hasattr(graph, name) for name in wanted):
        raise ArgumentError(
            f"the graph is of type {type(graph).__name__}; make one with hetero_bfs.load(path), "
            "kronecker(scale), or CSRGraph.from_edges, .from_scipy or .from_networkx"
        )


def check_num_vertices(num_vertices: int) -> None:
    """Raise `GraphError` unless 0 <= num_vertices <= 2**32 - 2."""
    if not 0 <= num_vertices <= MAX_VERTICES:
        raise GraphError(
            f"{num_vertices} vertices; a graph may have 0 to {MAX_VERTICES} "
            "(ids are 32-bit): renumber the vertices without gaps"
        )


def _integer_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise GraphError(f"{name} has {array.ndim} dimensions; give a one-dimensional array")
    if array.size == 0:
        return array.astype(np.uint32)
    if array.dtype.kind not in "iu":
        raise GraphError(f"{name} holds {array.dtype}; vertex ids must be integers")
    return array


def _extreme(array: npt.NDArray[Any], which: str) -> int:
    if array.size == 0:
        return 0 if which == "min" else -1
    return int(getattr(array, which)())
