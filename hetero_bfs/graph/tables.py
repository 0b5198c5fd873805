"""Edges of other packages' tables and graphs, and back: data frames, Arrow, SciPy, NetworkX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.matrix_checks import convert_matrix
from hetero_bfs.graph.vertex_names import NameTable
from hetero_bfs.graph.weights import Duplicates, as_weights, weight_dtype_of
from hetero_bfs.support.checks import MOST_EXACT, check_flag

if TYPE_CHECKING:
    import networkx
    import pandas
    import scipy.sparse


@dataclass(frozen=True)
class TableColumns:
    """The columns of vertex ids and weights, and options for the graph.

    num_vertices : the largest id plus 1 if None
    duplicates : see `EdgeList`
    renumber : number the vertices by their names, which may be anything but floats
    """

    source: Any
    target: Any
    weight: Any = None
    num_vertices: int | None = None
    directed: bool = False
    duplicates: Duplicates = "min"
    renumber: bool = False

    def __post_init__(self) -> None:
        check_flag("renumber", self.renumber)
        if self.renumber and self.num_vertices is not None:
            raise ArgumentError(
                f"num_vertices is {self.num_vertices}, and renumber=True counts the names; leave "
                "out num_vertices"
            )

    @property
    def names(self) -> list[Any]:
        return [self.source, self.target, *([] if self.weight is None else [self.weight])]

    def arrays_of(self, columns: list[npt.NDArray[Any]], convert_by: str) -> list[npt.NDArray[Any]]:
        """Return vertex ids and weights; `convert_by` names a method for error messages."""
        source, target, *weight = columns
        return [
            _ids(self.source, source, convert_by, self.renumber),
            _ids(self.target, target, convert_by, self.renumber),
            *(as_weights(array, f"column {self.weight!r}", convert_by) for array in weight),
        ]

    def edges(self, arrays: list[npt.NDArray[Any]]) -> EdgeList:
        weights = None if self.weight is None else arrays[2]
        src, dst, count, names = *arrays[:2], self.num_vertices, None
        if self.renumber:
            table = NameTable()
            table.add(src)
            table.add(dst)
            names, (src, dst) = table.finish()
            count = names.size
        made = EdgeList.from_arrays(src, dst, count, self.directed, weights, self.duplicates)
        return made if names is None else replace(made, names=names)


def edges_of_pandas(frame: pandas.DataFrame, columns: TableColumns) -> EdgeList:
    if not (hasattr(frame, "columns") and hasattr(frame, "iloc")):
        raise ArgumentError(f"the frame is of type {type(frame).__name__}; give a pandas.DataFrame")
    _check_names(columns, list(frame.columns))
    arrays = []
    for name in columns.names:
        column = frame[name]
        _check_present(name, int(column.isna().sum()))
        arrays.append(column.to_numpy(getattr(column.dtype, "numpy_dtype", None)))
    return columns.edges(columns.arrays_of(arrays, "astype"))


def edges_of_arrow(table: Any, columns: TableColumns) -> EdgeList:
    """Return the rows of a table as edges; see `CSRGraph.from_arrow`."""
    if not (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
        raise ArgumentError(
            f"the table is of type {type(table).__name__}; give a pyarrow.Table, or an object with "
            "the method __arrow_c_stream__, such as a relation of DuckDB or a frame of Polars; of "
            "a lazy frame give `collect()`"
        )
    pyarrow = _package("pyarrow")
    held = pyarrow.table(table)
    _check_names(columns, held.column_names)
    for name in columns.names:
        _check_present(name, held.column(name).null_count)
    arrays = [held.column(name).to_numpy() for name in columns.names]
    return columns.edges(columns.arrays_of(arrays, "cast"))


def _check_names(columns: TableColumns, known: list[Any]) -> None:
    for name in columns.names:
        if known.count(name) != 1:
            held = ", ".join(map(repr, known)) or "none"
            what = "is not in the table" if name not in known else "is there more than once"
            raise ArgumentError(f"column {name!r} {what}; its columns are {held}")


def _check_present(name: Any, num_missing: int) -> None:
    if num_missing:
        raise GraphError(
            f"column {name!r} has {num_missing} missing entries; leave out their rows first"
        )


def _ids(name: Any, array: npt.NDArray[Any], convert_by: str, renumber: bool) -> npt.NDArray[Any]:
    """Return a column unchanged if it holds ids, else raise `GraphError` with a remedy.

    Ids are integers. With `renumber` they are anything but numbers of other types.
    """
    kind = array.dtype.kind
    if kind in "iu" or array.size == 0 or (renumber and kind not in "bcf"):
        return array
    if kind == "O" and all(type(value) is int for value in array.tolist()):
        kind = "b"
    convert = f'convert it by .{convert_by}("int64")'
    if kind == "f":
        whole = array == np.trunc(array)  # NaN is not
        if not whole.all():
            first = int(np.argmin(whole))
            convert = f"entry {first} is {array[first]}; leave out its row, then {convert}"
        elif float(np.abs(array).max()) > MOST_EXACT:
            convert = "it lost digits of ids beyond 2**53; read them again as integers"
    elif kind != "b":
        convert = "give renumber=True, which numbers the vertices of both columns"
    raise GraphError(f"column {name!r} holds {array.dtype}, and vertex ids are integers; {convert}")


_PADDED = ("bsr", "dia")
"""Formats whose arrays also hold zeros where the matrix has no entry."""


def is_matrix(given: Any) -> bool:
    return hasattr(given, "tocoo")


def edges_of_scipy(
    matrix: scipy.sparse.sparray | scipy.sparse.spmatrix,
    directed: bool,
    weighted: bool,
    duplicates: Duplicates | None,
    zeros: bool = False,
) -> EdgeList:
    """Return the entries of a square matrix as edges; see `CSRGraph.from_scipy`.

    With `zeros` stored zeros are edges even if not `weighted`.
    """
    check_flag("weighted", weighted)
    if not is_matrix(matrix):
        raise ArgumentError(
            f"the matrix is of type {type(matrix).__name__}; give a SciPy sparse one, such as "
            "scipy.sparse.csr_array(matrix)"
        )

    def convert(checked: Any) -> Any:
        # SciPy's csgraph converts to rows, which sums the duplicates of some formats.
        return checked.tocsr().tocoo() if duplicates is None else checked.tocoo()

    coo = convert_matrix(matrix, convert)
    row, column, values = coo.row, coo.col, coo.data
    if not (weighted or zeros) or matrix.format in _PADDED:
        keep = values != 0
        row, column, values = row[keep], column[keep], values[keep]
    weights = values if weighted else None
    return EdgeList.from_arrays(row, column, coo.shape[0], directed, weights, duplicates or "min")


def edges_of_networkx(
    graph: networkx.Graph, directed: bool | None, weight: str | None, duplicates: Duplicates
) -> EdgeList:
    if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
        raise ArgumentError(
            f"the graph is of type {type(graph).__name__}; give a networkx.Graph or DiGraph"
        )
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(
        -1, 2
    )
    weights = None
    if weight is not None:
        weights = np.empty(len(pairs), object)
        weights[:] = [value for _, _, value in graph.edges(data=weight, default=1)]
        weights = as_weights(weights, f"edge attribute {weight!r}")
    if directed is None:
        directed = bool(graph.is_directed())
    elif directed and not graph.is_directed():
        other = pairs[pairs[:, 0] != pairs[:, 1], ::-1]
        if weights is not None:
            weights = np.concatenate([weights, weights[pairs[:, 0] != pairs[:, 1]]])
        pairs = np.concatenate([pairs, other])
    ends = pairs[:, 0], pairs[:, 1]
    return EdgeList.from_arrays(*ends, len(number), directed, weights, duplicates)


def scipy_of_lists(graph: Any) -> Any:
    import scipy.sparse

    n, entries = graph.num_vertices, graph.num_stored_edges
    data = np.ones(entries) if graph.weights is None else graph.weights.copy()
    kind = np.int32 if max(n, entries) < 2**31 else np.int64
    lists = data, graph.indices.astype(kind), graph.indptr.astype(kind)
    return scipy.sparse.csr_array(lists, shape=(n, n))


def pandas_of_lists(graph: Any, source: str, target: str, weight: str) -> pandas.DataFrame:
    import pandas

    types = np.uint32, np.uint32, *([] if graph.weights is None else [graph.weights.dtype])
    parts = [tuple(np.empty(0, dtype) for dtype in types), *edges_once(graph)]
    held = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if graph.names is not None:
        held[:2] = (graph.names[ends] for ends in held[:2])
    columns = dict(zip((source, target, weight), held, strict=False))
    if len(columns) < len(held):
        raise ArgumentError(f"columns {source!r}, {target!r}, {weight!r}; give different names")
    return pandas.DataFrame(columns)


def networkx_of_lists(graph: Any, weight: str) -> networkx.Graph:
    networkx = _package("networkx")
    made = networkx.DiGraph() if graph.directed else networkx.Graph()
    names = np.arange(graph.num_vertices) if graph.names is None else graph.names
    made.add_nodes_from(names.tolist())
    for src, dst, *weights in edges_once(graph):
        columns = names[src], names[dst], *weights
        edges = zip(*(column.tolist() for column in columns), strict=True)
        if graph.weights is None:
            made.add_edges_from(edges)
        else:
            made.add_weighted_edges_from(edges, weight)
    return made


def edges_once(graph: Any) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yield src, dst and any weights of a graph in chunks; an undirected edge once."""
    bare = weight_dtype_of(graph) is None
    for columns in graph.chunks() if bare else graph.weighted_chunks():
        if graph.both_directions:
            keep = columns[0] <= columns[1]
            yield tuple(column[keep] for column in columns)
        else:
            yield columns


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ArgumentError(f"{name} is not installed; run: pip install {name}") from None
