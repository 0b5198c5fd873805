"""Edges of other packages' tables: pandas' frames, and tables that export Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import CHUNK_EDGES, VertexArray
from hetero_bfs.graph.weights import Duplicates, WeightArray

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class TableColumns:
    """The roles of a table's columns, and options for the graph.

    Parameters
    ----------
    source, target
        Columns of vertex ids.
    weight : optional
        Column of weights.
    num_vertices : int, optional
        By default the largest id plus 1.
    directed : bool
    duplicates : {"min", "max", "sum"}
        See `EdgeList`.
    """

    source: Any
    target: Any
    weight: Any = None
    num_vertices: int | None = None
    directed: bool = False
    duplicates: Duplicates = "min"

    @property
    def names(self) -> list[Any]:
        """The columns that are read."""
        return [self.source, self.target, *([] if self.weight is None else [self.weight])]

    def edges(self, arrays: list[npt.NDArray[Any]]) -> EdgeList:
        """Return the edges of these columns' arrays."""
        weights = None if self.weight is None else arrays[2]
        return EdgeList.from_arrays(
            arrays[0], arrays[1], self.num_vertices, self.directed, weights, self.duplicates
        )


def edges_of_pandas(frame: pandas.DataFrame, columns: TableColumns) -> EdgeList:
    """Return the rows of a frame as edges; see `CSRGraph.from_pandas`."""
    if not (hasattr(frame, "columns") and hasattr(frame, "iloc")):
        raise ArgumentError(f"the frame is of type {type(frame).__name__}; give a pandas.DataFrame")
    _check_names(columns, list(frame.columns))
    arrays = []
    for name in columns.names:
        column = frame[name]
        _check_present(name, int(column.isna().sum()))
        arrays.append(_numbers(name, column.to_numpy()))
    return columns.edges(arrays)


def edges_of_arrow(table: Any, columns: TableColumns) -> EdgeBatches:
    """Return the rows of a table as edges, batch by batch; see `CSRGraph.from_arrow`."""
    if not (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
        raise ArgumentError(
            f"the table is of type {type(table).__name__}; give a pyarrow.Table, or what has the "
            "method __arrow_c_stream__, such as a frame of Polars or a relation of DuckDB"
        )
    try:
        import pyarrow
    except ImportError:
        raise ArgumentError("pyarrow is not installed; run: pip install pyarrow") from None
    held = pyarrow.table(table)
    _check_names(columns, held.column_names)
    held = held.select(columns.names)
    parts = []
    for batch in held.to_batches():
        arrays = []
        for name, column in zip(columns.names, batch.columns, strict=True):
            _check_present(name, column.null_count)
            arrays.append(_numbers(name, column.to_numpy(zero_copy_only=False)))
        if batch.num_rows:
            parts.append(columns.edges(arrays))
    return EdgeBatches(tuple(parts or [columns.edges([np.empty(0)] * len(columns.names))]))


@dataclass(frozen=True)
class EdgeBatches:
    """Edges in several lists, a source that copies none of them; see `EdgeSource`.

    Parameters
    ----------
    parts : tuple of EdgeList
        At least one; all directed or none, all with weights of one type or none.
    """

    parts: tuple[EdgeList, ...]

    @property
    def num_vertices(self) -> int:
        """The largest number of any part."""
        return max(part.num_vertices for part in self.parts)

    @property
    def num_input_edges(self) -> int:
        """Edges of all parts."""
        return sum(part.num_input_edges for part in self.parts)

    @property
    def directed(self) -> bool:
        """As the parts."""
        return self.parts[0].directed

    @property
    def both_directions(self) -> bool:
        """False: an undirected edge is listed once."""
        return False

    @property
    def duplicates(self) -> Duplicates:
        """As the parts."""
        return self.parts[0].duplicates

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """Type of the weights, None without weights."""
        return self.parts[0].weight_dtype

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield the edges in order as (src, dst) views."""
        for part in self.parts:
            yield from part.chunks(size)

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        """Yield the edges in order as (src, dst, weights) views."""
        for part in self.parts:
            yield from part.weighted_chunks(size)


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


def _numbers(name: Any, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind not in "iuf":
        raise GraphError(
            f"column {name!r} holds {array.dtype}, no numbers; number the vertices first, for "
            "example by pandas.factorize"
        )
    return array
