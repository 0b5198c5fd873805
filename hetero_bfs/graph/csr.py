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
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.edge_source import (
    CHUNK_EDGES,
    EdgeSource,
    OffsetArray,
    VertexArray,
    check_vertex,
)
from hetero_bfs.graph.list_checks import checked_ends, checked_lists, frozen
from hetero_bfs.support.checks import check_flag, check_integer

if TYPE_CHECKING:
    import networkx
    import scipy.sparse


@dataclass(frozen=True)
class EdgeList:
    """Edges in the order they came.

    Parameters
    ----------
    src, dst : integer arrays, shape (num_edges,)
        Held as read-only uint32, without a copy if they are uint32 and contiguous.
    num_vertices : int
    directed : bool

    Raises
    ------
    ArgumentError
        `num_vertices` is no integer, or `directed` is neither True nor False.
    GraphError
        Ids are masked, negative, not integers or not below `num_vertices`; lengths differ; there
        are more than 2**32 - 2 vertices.
    """

    src: VertexArray
    dst: VertexArray
    num_vertices: int
    directed: bool = False

    def __post_init__(self) -> None:
        check_flag("directed", self.directed)
        num_vertices = check_integer("num_vertices", self.num_vertices)
        src, dst, _ = checked_ends(self.src, self.dst, num_vertices)
        self.__dict__.update(src=src, dst=dst, num_vertices=num_vertices)

    @classmethod
    def trusted(
        cls, src: VertexArray, dst: VertexArray, num_vertices: int, directed: bool = False
    ) -> Self:
        """Make one without checks, for builders and readers that guarantee valid arrays.

        `src` and `dst` are contiguous uint32 arrays of equal length, of ids below `num_vertices`.
        """
        edges = object.__new__(cls)
        edges.__dict__.update(
            src=frozen(src), dst=frozen(dst), num_vertices=num_vertices, directed=directed
        )
        return edges

    @classmethod
    def from_arrays(
        cls,
        src: npt.ArrayLike,
        dst: npt.ArrayLike,
        num_vertices: int | None = None,
        directed: bool = False,
    ) -> EdgeList:
        """Make one of two integer arrays; `num_vertices` is by default the largest id plus 1.

        It raises the same errors as the class.
        """
        check_flag("directed", directed)
        if num_vertices is not None:
            num_vertices = check_integer("num_vertices", num_vertices)
        return cls.trusted(*checked_ends(src, dst, num_vertices), directed)

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
        for start in range(0, self.src.size, check_integer("size", size, 1)):
            yield self.src[start : start + size], self.dst[start : start + size]


@dataclass(frozen=True, eq=False)
class CSRGraph:
    """Sorted neighbour lists without self-loops and duplicates.

    The arrays are held as read-only views. Arrays of other integer types are converted.

    Parameters
    ----------
    indptr : int64 array, shape (num_vertices + 1,)
        Rises from 0 to the length of `indices`.
    indices : uint32 array, shape (indptr[-1],)
        An undirected edge is stored twice.
    directed : bool
    num_input_edges : int
        Input edges, self-loops and duplicates included; an undirected edge counts once.
    input_degree : uint32 array, shape (num_vertices,)
        Input edges at each vertex, duplicates counted, self-loops not; of a directed graph the
        edges that leave the vertex.

    Raises
    ------
    ArgumentError
        `num_input_edges` is no integer of at least 0, or `directed` is neither True nor False.
    GraphError
        Arrays have a wrong shape, masked entries or no integers, or the lists are not as above.
        `from_edges` makes valid lists of any edges.
    """

    indptr: OffsetArray
    indices: VertexArray
    directed: bool
    num_input_edges: int
    input_degree: VertexArray

    def __post_init__(self) -> None:
        check_flag("directed", self.directed)
        num_input_edges = check_integer("num_input_edges", self.num_input_edges, 0)
        arrays = checked_lists(
            self.indptr, self.indices, self.input_degree, num_input_edges, self.directed
        )
        self.__dict__.update(arrays, num_input_edges=num_input_edges)

    @classmethod
    def trusted(
        cls,
        indptr: OffsetArray,
        indices: VertexArray,
        directed: bool,
        num_input_edges: int,
        input_degree: VertexArray,
    ) -> CSRGraph:
        """Make one without checks, for builders and readers that guarantee valid arrays."""
        graph = object.__new__(cls)
        graph.__dict__.update(
            indptr=indptr,
            indices=indices,
            directed=directed,
            num_input_edges=num_input_edges,
            input_degree=input_degree,
        )
        return graph

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
        """Build from any source of edges, keeping its vertex ids.

        Raises
        ------
        ArgumentError
            The argument is not a source of edges.
        GraphError
            There is not enough free memory.
        """
        from hetero_bfs.graph.lists import build_lists

        return cls.trusted(*build_lists(edges))

    @classmethod
    def from_scipy(
        cls, matrix: scipy.sparse.sparray | scipy.sparse.spmatrix, directed: bool = False
    ) -> CSRGraph:
        """Build from a square SciPy sparse matrix or array: entry (u, v) is the edge u -> v.

        Each stored entry is an edge whatever its value, except explicit zeros. With
        `directed=False` a symmetric matrix and its upper triangle give the same graph. Only
        `num_input_edges` differs, since the symmetric matrix names every edge twice.
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
        """True for an undirected graph, as its lists hold every edge twice."""
        return not self.directed

    @property
    def transpose(self) -> CSRGraph:
        """The graph with all edges transposed; for an undirected graph, the graph itself."""
        return self._transposed if self.directed else self

    @cached_property
    def _transposed(self) -> CSRGraph:
        return CSRGraph.from_edge_source(_Reversed(self))

    def degree(self) -> VertexArray:
        """Return the length of every neighbour list, uint32, shape (num_vertices,)."""
        return np.diff(self.indptr).astype(np.uint32)

    def neighbours(self, vertex: int) -> VertexArray:
        """Return the sorted neighbours of one vertex, a uint32 view.

        Raises
        ------
        GraphError
            The vertex is not in the graph.
        """
        vertex = check_vertex(vertex, self.num_vertices)
        return self.indices[self.indptr[vertex] : self.indptr[vertex + 1]]

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield every stored edge as (src, dst), grouped by src; see `EdgeSource.chunks`."""
        for start in range(0, self.indices.size, check_integer("size", size, 1)):
            stop = min(start + size, self.indices.size)
            positions = np.arange(start, stop, dtype=np.int64)
            src = np.searchsorted(self.indptr, positions, side="right") - 1
            yield src.astype(np.uint32), self.indices[start:stop]


@dataclass(frozen=True)
class _Reversed:
    """The transposed edges of a directed graph."""

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
