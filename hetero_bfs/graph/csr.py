"""Graphs in compressed sparse rows.

Encoding. A vertex id is a uint32 below 2**32 - 1 (that last value means "none"); an offset into the
edge array is an int64. `indptr` and `indices` are SciPy's names: the neighbours of `v` are
`indices[indptr[v]:indptr[v + 1]]`, sorted ascending, without `v` itself and without duplicates. An
undirected edge is stored in both lists. Self-loops and duplicates are not in the lists, but
`input_degree` counts every input edge that is not a loop, for Graph500's TEPS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import (
    CHUNK_EDGES,
    EdgeSource,
    OffsetArray,
    VertexArray,
    check_vertex,
    cut_rows,
)
from hetero_bfs.graph.list_checks import checked_lists
from hetero_bfs.graph.tables import (
    TableColumns,
    edges_of_arrow,
    edges_of_networkx,
    edges_of_pandas,
    edges_of_scipy,
    networkx_of_lists,
    pandas_of_lists,
    scipy_of_lists,
)
from hetero_bfs.graph.weights import (
    Duplicates,
    WeightArray,
    checked_weights,
    needed_weights,
    symmetry_fault,
)
from hetero_bfs.support.checks import check_flag, check_integer

if TYPE_CHECKING:
    import networkx
    import pandas
    import scipy.sparse


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
        Input edges at each vertex, with duplicates and without self-loops; in a directed graph,
        outgoing edges only.
    weights : array, shape (indptr[-1],), optional
        Weight of each entry of `indices`. Both entries of an undirected edge have the same weight.
        Held as int32, float32 or float64; other integers become int32 if all fit, else float64.
    names : array, shape (num_vertices,), optional
        The names or ids that the vertices have elsewhere. Results carry them.
    layers : int64 array, optional
        The end of each layer if vertices are numbered layer by layer (`hetero_bfs.layered`).

    Raises
    ------
    ArgumentError
        `num_input_edges` is not an integer of at least 0, or `directed` is neither True nor False.
    GraphError
        Arrays have a wrong shape, masked entries or non-integers, or break a rule above.
        `from_edges` makes valid arrays from any edges.
    """

    indptr: OffsetArray
    indices: VertexArray
    directed: bool
    num_input_edges: int
    input_degree: VertexArray
    weights: WeightArray | None = None
    names: npt.NDArray[Any] | None = field(default=None, repr=False)
    layers: OffsetArray | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_flag("directed", self.directed)
        num_input_edges = check_integer("num_input_edges", self.num_input_edges, 0)
        arrays = checked_lists(
            self.indptr, self.indices, self.input_degree, num_input_edges, self.directed
        )
        self.__dict__.update(arrays, num_input_edges=num_input_edges, directed=bool(self.directed))
        if self.weights is not None:
            weights = checked_weights(self.weights, self.indices.size)
            fault = None if self.directed else symmetry_fault(self.indptr, self.indices, weights)
            if fault is not None:
                raise GraphError(f"{fault.text}; CSRGraph.from_edges combines them to one")
            self.__dict__["weights"] = weights

    @classmethod
    def trusted(
        cls,
        indptr: OffsetArray,
        indices: VertexArray,
        directed: bool,
        num_input_edges: int,
        input_degree: VertexArray,
        weights: WeightArray | None = None,
        names: npt.NDArray[Any] | None = None,
        layers: OffsetArray | None = None,
    ) -> CSRGraph:
        """Build without checks; the caller guarantees valid arrays."""
        graph = object.__new__(cls)
        graph.__dict__.update(
            indptr=indptr,
            indices=indices,
            directed=bool(directed),
            num_input_edges=num_input_edges,
            input_degree=input_degree,
            weights=weights,
            names=names,
            layers=layers,
        )
        return graph

    @property
    def num_bytes(self) -> int:
        """Bytes of all arrays; names that are texts count 8 bytes each."""
        arrays = self.indptr, self.indices, self.input_degree, self.weights, self.names, self.layers
        return sum(array.nbytes for array in arrays if array is not None)

    @classmethod
    def from_edges(
        cls,
        src: npt.ArrayLike,
        dst: npt.ArrayLike,
        num_vertices: int | None = None,
        directed: bool = False,
        weights: npt.ArrayLike | None = None,
        duplicates: Duplicates = "min",
    ) -> CSRGraph:
        """Build from arrays of shape (num_edges,); see `EdgeList.from_arrays`."""
        return cls.from_edge_source(
            EdgeList.from_arrays(src, dst, num_vertices, directed, weights, duplicates)
        )

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

        return cls.trusted(**build_lists(edges), names=getattr(edges, "names", None))

    @classmethod
    def from_scipy(
        cls,
        matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
        directed: bool = False,
        weighted: bool = False,
        duplicates: Duplicates | None = None,
    ) -> CSRGraph:
        """Build from a square SciPy sparse matrix or array: entry (u, v) is the edge u -> v.

        With `weighted` the values are the edges' weights, and a stored zero is an edge of weight 0.
        Without, a stored zero is not an edge. The zeros inside the blocks of a BSR matrix and on
        the diagonals of a DIA matrix are never edges.

        By default duplicates are read as `scipy.sparse.csgraph` reads them: formats whose `tocsr`
        sums them, such as COO, give the sum; of entries that a CSR or CSC matrix stores several
        times the smallest counts. If `duplicates` is given, the rule applies to the entries as
        they are stored; see `EdgeList`. With `directed=False` the smaller of an edge's two
        directions counts, unless a rule is given. A symmetric matrix and its upper triangle then
        give the same graph, except that the symmetric one names every edge twice, which
        `num_input_edges` shows.

        Raises
        ------
        ArgumentError
            The argument is not a sparse matrix.
        GraphError
            The matrix is not square, has entries outside, or values that are not weights.
        """
        return cls.from_edge_source(edges_of_scipy(matrix, directed, weighted, duplicates))

    @classmethod
    def from_networkx(
        cls,
        graph: networkx.Graph,
        directed: bool | None = None,
        weight: str | None = None,
        duplicates: Duplicates = "min",
    ) -> CSRGraph:
        """Build from a NetworkX graph; vertex i is the i-th node in the graph's own order.

        `directed` follows the graph unless given. An undirected graph read with `directed=True`
        has both directions of each edge; of a directed graph read with `directed=False` both
        directions are one edge. `weight` names the edge attribute with the weights; an edge without
        it has weight 1, as in NetworkX; `duplicates` is as in `EdgeList`.
        """
        return cls.from_edge_source(edges_of_networkx(graph, directed, weight, duplicates))

    @classmethod
    def from_pandas(
        cls,
        frame: pandas.DataFrame,
        source: Any = "source",
        target: Any = "target",
        weight: Any = None,
        num_vertices: int | None = None,
        directed: bool = False,
        duplicates: Duplicates = "min",
        renumber: bool = False,
    ) -> CSRGraph:
        """Build from a pandas frame with an edge in each row.

        `source`, `target` and `weight` name columns of vertex ids, which are integers from 0, and
        of weights. With `renumber` the ids may be names, or integers with gaps: vertices are
        numbered in their sorted order, and `names` has them. The rest is as in
        `EdgeList.from_arrays`.

        Raises
        ------
        ArgumentError
            The frame has no such column.
        GraphError
            Missing entries, or without `renumber` ids that are not integers of at least 0.
        """
        columns = TableColumns(source, target, weight, num_vertices, directed, duplicates, renumber)
        return cls.from_edge_source(edges_of_pandas(frame, columns))

    @classmethod
    def from_arrow(
        cls,
        table: Any,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        num_vertices: int | None = None,
        directed: bool = False,
        duplicates: Duplicates = "min",
        renumber: bool = False,
    ) -> CSRGraph:
        """Build from a table that exports Arrow data, such as pyarrow's, Polars' or DuckDB's.

        The parameters are as in `from_pandas`. If the table is one batch, ids of type uint32, and
        weights of type int32, float32 and float64, are read without a copy. Other types are
        converted first, and several batches are joined. Needs pyarrow.

        Raises
        ------
        ArgumentError, GraphError
            As for `from_pandas`, or pyarrow is not installed.
        """
        columns = TableColumns(source, target, weight, num_vertices, directed, duplicates, renumber)
        return cls.from_edge_source(edges_of_arrow(table, columns))

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return the neighbour lists as a SciPy sparse array of shape (num_vertices, num_vertices).

        Entry (u, v) is the weight of the edge u -> v, or 1.0 without weights. An undirected edge
        has both entries. Ids are int32 where they fit. The arrays are copies. `from_scipy` makes
        the same graph of it, given the same `directed` and `weighted`.
        """
        return scipy_of_lists(self)

    def to_pandas(
        self, source: str = "source", target: str = "target", weight: str = "weight"
    ) -> pandas.DataFrame:
        """Return a pandas frame with an edge in each row, an undirected one with source < target.

        The columns of ids are uint32; if vertices have names, the columns have these. The column of
        weights has their type; without weights there is none. Isolated vertices are in no row:
        `from_pandas` needs `num_vertices` for them.
        """
        return pandas_of_lists(self, source, target, weight)

    def to_networkx(self, weight: str = "weight") -> networkx.Graph:
        """Return a NetworkX `Graph`, or `DiGraph` if directed, with all vertices as nodes.

        The nodes are the vertices' names if they have some, else their numbers. `weight` names the
        edge attribute of the weights; without weights there is none. Needs networkx.

        Raises
        ------
        ArgumentError
            networkx is not installed.
        """
        return networkx_of_lists(self, weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a graph file; the suffix selects the format, as in `load`.

        The file appears under its name only when complete. The table of formats (docs, "File
        formats") says which of them hold weights, directions, isolated vertices and names.

        Raises
        ------
        GraphFileError
            Unknown suffix, a format that cannot hold the graph, or a failure of the system. An
            existing file of that name is then unchanged.
        """
        import_module("hetero_bfs.graph.io.registry").write(self, path)  # which imports this file

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """Type of the weights, None without weights."""
        return None if self.weights is None else self.weights.dtype

    @property
    def num_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return int(self.indptr.size - 1)

    @property
    def num_stored_edges(self) -> int:
        """Entries of `indices`: an undirected edge counts twice."""
        return int(self.indices.size)

    @property
    def num_self_loops(self) -> int:
        """Number of input edges that are self-loops, which `input_degree` does not count.

        Raises
        ------
        GraphError
            `num_input_edges` does not match `input_degree`.
        """
        ends = int(self.input_degree.sum(dtype=np.int64))
        num_edges, odd = (ends, 0) if self.directed else divmod(ends, 2)
        if odd or num_edges > self.num_input_edges:
            raise GraphError(
                f"num_input_edges is {self.num_input_edges}, and the ends of these edges in "
                f"input_degree are {ends}; build the graph with CSRGraph.from_edges"
            )
        return self.num_input_edges - num_edges

    @property
    def both_directions(self) -> bool:
        """True for an undirected graph, whose arrays hold every edge twice."""
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
        for where, rows in cut_rows(self.indptr, size):
            yield rows, self.indices[where]

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        """Yield every stored edge as (src, dst, weights), in the order of `chunks`."""
        weights = needed_weights(self)
        for where, rows in cut_rows(self.indptr, size):
            yield rows, self.indices[where], weights[where]


def replace_weights(graph: CSRGraph, weights: WeightArray | None) -> CSRGraph:
    """Return the graph with other weights, one valid weight per stored edge, without checks."""
    fields = {name: getattr(graph, name) for name in CSRGraph.__dataclass_fields__}
    return CSRGraph.trusted(**{**fields, "weights": weights})


class _Reversed:
    """The transposed edges of a directed graph."""

    directed, both_directions = True, False

    def __init__(self, graph: CSRGraph) -> None:
        self.graph = graph
        self.num_vertices, self.num_input_edges = graph.num_vertices, graph.num_input_edges
        self.num_stored_edges, self.weight_dtype = graph.num_stored_edges, graph.weight_dtype

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        for src, dst in self.graph.chunks(size):
            yield dst, src

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        for src, dst, weights in self.graph.weighted_chunks(size):
            yield dst, src, weights
