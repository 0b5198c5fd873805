"""Weights of edges: their arrays, and their checks.

While neighbour lists are built (lists.py), weights move along with their edges. Duplicates of an
edge are combined, by the source's `duplicates`. In an undirected graph (u, v) and (v, u) are
duplicates, and both positions get the same weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_source import (
    CHUNK_EDGES,
    OffsetArray,
    VertexArray,
    check_chunk_array,
)
from hetero_bfs.graph.list_checks import Fault, check_equal, convert, frozen
from hetero_bfs.support.checks import as_array
from hetero_bfs.support.messages import shown

Duplicates = Literal["min", "max", "sum"]
DUPLICATES: tuple[Duplicates, ...] = get_args(Duplicates)
"""Rules that combine the weights of an edge that occurs several times."""

SUM_BEYOND = (
    'duplicates="sum" gives a weight beyond the 32-bit integers; give the weights as float64'
)

_INT32 = np.iinfo(np.int32)

WeightArray = npt.NDArray[Any]
"""int32, float32 or float64, contiguous."""

NO_WEIGHTS: WeightArray = np.empty(0, np.uint8)
"""Stands for the weights of edges without weights: loops compiled for its type ignore them."""


def checked_weights(weights: npt.ArrayLike, num_edges: int) -> WeightArray:
    """Return weights as a read-only `WeightArray`; see `as_weights`."""
    array = as_array("weights", weights)
    if array.shape != (num_edges,):
        raise GraphError(
            f"weights has shape {array.shape} and there are {num_edges} edges; give one weight "
            "for each edge"
        )
    array = as_weights(array)
    fault = nan_fault(array)
    if fault is not None:
        raise GraphError(f"weights[{fault.position}] is NaN; give a number")
    return frozen(np.ascontiguousarray(array))


def as_weights(
    array: npt.NDArray[Any], name: str = "weights", convert_by: str = "astype"
) -> WeightArray:
    """Convert numbers to weights, in the same way for all constructors.

    Integers of any type, and booleans, become int32 if all of them fit, else the nearest float64.
    float16 becomes float32. Any byte order is accepted. `name` and `convert_by`, a method that
    converts the array's type, are for messages.
    """
    if array.dtype.kind == "O" or (array.size == 0 and array.dtype.kind not in "biuf"):
        array = _from_objects(array, name, convert_by)
    if array.dtype.kind in "biu":
        fits = array.size == 0 or (array.min() >= _INT32.min and array.max() <= _INT32.max)
        return array.astype(np.int32 if fits else np.float64, copy=False)
    if array.dtype.kind != "f" or array.dtype.itemsize > np.dtype(np.float64).itemsize:
        raise GraphError(
            f"{name} holds {array.dtype}; give numbers of type int32, float32 or float64, "
            f"{_remedy(array, convert_by)}"
        )
    return array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32, copy=False)


def _from_objects(array: npt.NDArray[Any], name: str, convert_by: str) -> npt.NDArray[Any]:
    for value in array.flat:
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            kind = type(value).__name__
            raise GraphError(
                f"{name} holds {shown(value)} of type {kind}; give numbers of type int32, float32 "
                f'or float64, such as .{convert_by}("float64") of it'
            )
    try:
        numbers = np.asarray(array.tolist())
        return numbers if numbers.dtype.kind in "biuf" else array.astype(np.float64)
    except OverflowError:
        raise GraphError(
            f"{name} holds an integer beyond float64, whose largest number is 1.8e308; give "
            "smaller ones"
        ) from None


def _remedy(array: npt.NDArray[Any], convert_by: str) -> str:
    return {
        "c": "such as abs() of it",
        "m": 'such as durations / numpy.timedelta64(1, "s")',
        "M": 'such as (times - times.min()) / numpy.timedelta64(1, "s")',
    }.get(array.dtype.kind, f'such as .{convert_by}("float64") of it')


def weight_dtype_of(edges: Any) -> np.dtype[Any] | None:
    dtype: np.dtype[Any] | None = getattr(edges, "weight_dtype", None)
    return dtype


def needed_weights(graph: Any) -> WeightArray:
    weights: WeightArray | None = getattr(graph, "weights", None)
    if weights is None:
        raise GraphError(
            "the graph has no weights; give some, such as CSRGraph.from_edges(src, dst, "
            "weights=...), kronecker(scale, weighted=True) or a file with a third column"
        )
    return weights


def refuse_negative(graph: Any, names: VertexArray, what: str, are_finite: bool = False) -> None:
    """Raise `GraphError` for a negative weight, or with `are_finite` an infinite one.

    `names`, uint32 of shape (num_vertices,), has the caller's ids of the graph's vertices. `what`
    names the computation in the message.
    """
    weights = needed_weights(graph)
    if weights.size == 0:
        return
    k, needed = int(weights.argmin()), "weights of at least 0"
    if weights[k] >= 0 and are_finite:
        k, needed = int(weights.argmax()), "finite weights"
    if weights[k] >= 0 and not (are_finite and np.isinf(weights[k])):
        return
    u = int(np.searchsorted(graph.indptr, k, side="right")) - 1
    raise GraphError(
        f"edge ({names[u]}, {names[graph.indices[k]]}) has weight {weights[k]}; {what} need "
        f"{needed}"
    )


def weighted_chunks(
    edges: Any, size: int = CHUNK_EDGES
) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
    """Yield edges with their weights, as read-only views of at most `size` edges."""
    ids, dtype = np.dtype(np.uint32), np.dtype(edges.weight_dtype)
    for src, dst, weights in edges.weighted_chunks(size):
        for name, array, wanted in (
            ("src", src, ids),
            ("dst", dst, ids),
            ("weights", weights, dtype),
        ):
            check_chunk_array(name, array, wanted, "weighted_chunks()")
        check_equal(src, dst)
        if weights.size != src.size:
            raise GraphError(
                f"a chunk has {src.size} edges and {weights.size} weights; give one for each edge"
            )
        fault = nan_fault(weights)
        if fault is not None:
            raise GraphError(f"weights[{fault.position}] of a chunk is NaN; give a number")
        yield convert(src, ids), convert(dst, ids), convert(weights, dtype)


def identity_of(duplicates: Duplicates, dtype: np.dtype[Any]) -> Any:
    """Return the weight that changes no other weight when the two are combined."""
    if duplicates == "sum":
        return 0
    if dtype.kind == "f":
        return np.inf if duplicates == "min" else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if duplicates == "min" else limits.min


def nan_fault(weights: WeightArray) -> Fault | None:
    if weights.size == 0 or not np.isnan(weights.min()):  # the least of some numbers and NaN is NaN
        return None
    return Fault("weights", int(np.isnan(weights).argmax()), "a weight is NaN")


def symmetry_fault(indptr: OffsetArray, indices: VertexArray, weights: WeightArray) -> Fault | None:
    from hetero_bfs.graph.kernels.neighbour_lists import first_unlike

    first = first_unlike(indptr, indices, weights)
    if first < 0:
        return None
    vertex = int(np.searchsorted(indptr, first, side="right")) - 1
    text = (
        f"edge ({vertex}, {indices[first]}) of an undirected graph has weight {weights[first]}, "
        "and its reverse another one"
    )
    return Fault("weights", first, text)
