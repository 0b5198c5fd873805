"""Edges in their original order, with or without weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph.edge_source import CHUNK_EDGES, EdgeSource, VertexArray
from hetero_bfs.graph.list_checks import checked_ends, frozen
from hetero_bfs.graph.weights import (
    DUPLICATES,
    Duplicates,
    WeightArray,
    checked_weights,
    needed_weights,
)
from hetero_bfs.support.checks import check_choice, check_flag, check_integer


@dataclass(frozen=True)
class EdgeList:
    """Edges in their input order.

    Parameters
    ----------
    src, dst : integer arrays, shape (num_edges,)
        Held as read-only uint32, without a copy if they are uint32 and contiguous.
    num_vertices : int
    directed : bool
    weights : array, shape (num_edges,), optional
        Held as read-only int32, float32 or float64. Other integers become int32 if all fit, else
        the nearest float64.
    duplicates : {"min", "max", "sum"}
        How the weights of an edge that occurs several times are combined. In an undirected
        graph (u, v) and (v, u) are the same edge.
    names : array, shape (num_vertices,), optional
        The names or ids that the vertices have elsewhere. Results carry them.

    Raises
    ------
    ArgumentError
        `num_vertices` is not an integer, `directed` is not True or False, or `duplicates` is
        unknown.
    GraphError
        Ids that are masked, negative, not integers or not below `num_vertices`; unequal lengths;
        more than 2**32 - 2 vertices; weights that are NaN or not real numbers.
    """

    src: VertexArray
    dst: VertexArray
    num_vertices: int
    directed: bool = False
    weights: WeightArray | None = None
    duplicates: Duplicates = "min"
    names: npt.NDArray[Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_flag("directed", self.directed)
        check_choice("duplicates", self.duplicates, DUPLICATES)
        num_vertices = check_integer("num_vertices", self.num_vertices)
        src, dst, _ = checked_ends(self.src, self.dst, num_vertices)
        weights = None if self.weights is None else checked_weights(self.weights, src.size)
        directed = bool(self.directed)
        self.__dict__.update(
            src=src, dst=dst, num_vertices=num_vertices, directed=directed, weights=weights
        )

    @classmethod
    def trusted(
        cls,
        src: VertexArray,
        dst: VertexArray,
        num_vertices: int,
        directed: bool = False,
        weights: WeightArray | None = None,
        duplicates: Duplicates = "min",
        names: npt.NDArray[Any] | None = None,
    ) -> Self:
        """Build without checks.

        The caller guarantees contiguous uint32 `src` and `dst` of equal length with ids below
        `num_vertices`, and contiguous int32, float32 or float64 `weights` without NaN.
        """
        edges = object.__new__(cls)
        edges.__dict__.update(
            src=frozen(src),
            dst=frozen(dst),
            num_vertices=num_vertices,
            directed=bool(directed),
            weights=None if weights is None else frozen(weights),
            duplicates=duplicates,
            names=names,
        )
        return edges

    @classmethod
    def from_arrays(
        cls,
        src: npt.ArrayLike,
        dst: npt.ArrayLike,
        num_vertices: int | None = None,
        directed: bool = False,
        weights: npt.ArrayLike | None = None,
        duplicates: Duplicates = "min",
    ) -> EdgeList:
        """Build from integer arrays; `num_vertices` defaults to the largest id plus 1.

        Raises the errors of `EdgeList`.
        """
        check_flag("directed", directed)
        check_choice("duplicates", duplicates, DUPLICATES)
        if num_vertices is not None:
            num_vertices = check_integer("num_vertices", num_vertices)
        src, dst, num_vertices = checked_ends(src, dst, num_vertices)
        held = None if weights is None else checked_weights(weights, src.size)
        return cls.trusted(src, dst, num_vertices, directed, held, duplicates)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a graph file; the suffix selects the format. See `CSRGraph.save`."""
        import_module("hetero_bfs.graph.io.registry").write(self, path)  # which imports this file

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """Type of the weights, None without weights."""
        return None if self.weights is None else self.weights.dtype

    @property
    def num_input_edges(self) -> int:
        """Number of edges, self-loops and duplicates included."""
        return int(self.src.size)

    @property
    def num_self_loops(self) -> int:
        """Number of edges from a vertex to itself."""
        return int(np.count_nonzero(self.src == self.dst))

    @property
    def both_directions(self) -> bool:
        """False: an undirected edge is stored once."""
        return False

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield the edges in order as (src, dst) views of at most `size` edges."""
        for start in range(0, self.src.size, check_integer("size", size, 1)):
            yield self.src[start : start + size], self.dst[start : start + size]

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        """Yield the edges in order as (src, dst, weights); see `chunks`."""
        weights = needed_weights(self)
        for start, (src, dst) in zip(range(0, self.src.size, size), self.chunks(size), strict=True):
            yield src, dst, weights[start : start + size]


def listed(source: EdgeSource) -> EdgeList:
    """Return a source's edges in memory; weights are kept only if it is an `EdgeList` already."""
    if isinstance(source, EdgeList):
        return source
    chunks = [np.stack(chunk) for chunk in source.chunks()]
    src, dst = np.concatenate([np.empty((2, 0), np.uint32), *chunks], axis=1)
    return EdgeList.from_arrays(src, dst, source.num_vertices, directed=source.directed)
