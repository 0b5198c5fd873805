"""The check of shortest paths, as of Graph500's second kernel, without code of the searches.

1. The source has distance 0 and is its own parent.
2. A vertex has a finite distance if and only if it has a parent.
3. No edge leads to a vertex that is further than the edge's start plus its weight.
4. Each reached vertex has an edge from its parent that makes up the difference of their distances.
5. Following parents leads to the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError, ValidationError
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.weights import weight_dtype_of, weighted_chunks


@dataclass(frozen=True)
class PathCheck:
    """What a check found; `message` says it in a line."""

    valid: bool
    message: str

    def raise_if_invalid(self) -> None:
        """Raise `ValidationError` unless the paths are valid."""
        if not self.valid:
            raise ValidationError(self.message)


def check_paths(
    edges: Any,
    source: int,
    distance: npt.NDArray[np.floating[Any]],
    parent: npt.NDArray[np.integer[Any]],
) -> PathCheck:
    """Check distances and parents against all edges.

    Parameters
    ----------
    edges : EdgeSource with weights
    source : int
    distance : float array, shape (num_vertices,)
        Infinity where not reached.
    parent : integer array, shape (num_vertices,)
        -1 where not reached.

    Raises
    ------
    ArgumentError
        An array of another shape.
    GraphError
        A source that is not in the graph, or a graph without weights.
    """
    n = edges.num_vertices
    source = check_vertex(source, n)
    dtype = weight_dtype_of(edges)
    if dtype is None:
        raise GraphError("the graph has no weights; paths of it cannot be checked")
    for name, array in (("distance", distance), ("parent", parent)):
        if np.shape(array) != (n,):
            raise ArgumentError(f"{name} has shape {np.shape(array)}; give one for each vertex")
    far, up = np.asarray(distance, np.float64), np.asarray(parent, np.int64)
    failure = (
        _check_source(source, far, up)
        or _check_reached(far, up)
        or _check_edges(edges, source, far, up, _tolerance(dtype))
        or _check_tree(source, up)
    )
    if failure is not None:
        return PathCheck(False, f"source {source}: {failure}")
    reached = int(np.isfinite(far).sum())
    return PathCheck(True, f"source {source}: valid; {reached} vertices reached")


def _tolerance(dtype: np.dtype[Any]) -> float:
    """Return the rounding of one addition, relative to the sum."""
    return 0.0 if dtype.kind == "i" else float(np.finfo(dtype).eps)


def _check_source(
    source: int, distance: npt.NDArray[np.float64], parent: npt.NDArray[np.int64]
) -> str | None:
    if distance[source] != 0 or parent[source] != source:
        return (
            f"check 1 (the source): distance {distance[source]} and parent {parent[source]} "
            "instead of 0 and itself"
        )
    return None


def _check_reached(distance: npt.NDArray[np.float64], parent: npt.NDArray[np.int64]) -> str | None:
    wrong = np.isnan(distance) | (distance < 0) | (parent < -1) | (parent >= parent.size)
    wrong |= np.isfinite(distance) != (parent >= 0)
    if wrong.any():
        v = int(wrong.argmax())
        return (
            f"check 2 (who is reached): vertex {v} has distance {distance[v]} and parent "
            f"{parent[v]}"
        )
    return None


def _check_edges(
    edges: Any,
    source: int,
    distance: npt.NDArray[np.float64],
    parent: npt.NDArray[np.int64],
    tolerance: float,
) -> str | None:
    from_parent = np.zeros(distance.size, np.bool_)
    from_parent[source] = True
    for src, dst, weights in weighted_chunks(edges):
        both = [(src, dst)] if edges.directed or edges.both_directions else [(src, dst), (dst, src)]
        for u, v in both:
            sums = distance[u] + weights
            with np.errstate(invalid="ignore"):
                slack = distance[v] - sums  # NaN between unreached vertices
            bound = tolerance * np.where(np.isfinite(sums), sums, 0.0)
            wrong = (slack > bound) & (u != v)
            if wrong.any():
                i = int(wrong.argmax())
                return (
                    f"check 3 (no shorter way): edge ({u[i]}, {v[i]}) of weight {weights[i]} leads "
                    f"from distance {distance[u[i]]} to {distance[v[i]]}"
                )
            tight = (parent[v] == u) & (np.abs(slack) <= bound)
            from_parent[v[tight]] = True
    wrong = (parent >= 0) & ~from_parent
    if wrong.any():
        child = int(wrong.argmax())
        up = int(parent[child])
        return (
            f"check 4 (edges of the tree): no edge from parent {up} to vertex {child} makes up "
            f"the difference of distances {distance[up]} and {distance[child]}"
        )
    return None


def _check_tree(source: int, parent: npt.NDArray[np.int64]) -> str | None:
    """Jump from parent to parent's parent, twice as far each time."""
    ahead = np.where(parent >= 0, parent, source)
    for _ in range(max(parent.size - 1, 1).bit_length()):
        ahead = ahead[ahead]
    wrong = ahead != source
    if wrong.any():
        v = int(wrong.argmax())
        return f"check 5 (paths lead to the source): that of vertex {v} does not"
    return None
