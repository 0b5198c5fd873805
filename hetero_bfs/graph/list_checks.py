"""Checks of edges and neighbour lists before compiled loops follow their ids.

Arrays that pass are held as read-only views. That prevents accidental changes and gives compiled
loops one type. The caller's own array can still change, so the loops that read edges check each end
again (buckets.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError
from hetero_bfs.support.checks import as_array

MAX_VERTICES = 2**32 - 2
"""Most vertices of a graph: every id and `NO_VERTEX` fit in 32 bits."""

IntegerArray = npt.NDArray[np.integer[Any]]


class Fault(NamedTuple):
    """A fault of neighbour lists: the array's name, the position if there is one, and a text."""

    section: str
    position: int | None
    text: str


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def integer_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Return a one-dimensional integer array unchanged, an empty one as uint32."""
    array = as_array(name, values)
    if array.ndim != 1:
        raise GraphError(f"{name} has {array.ndim} dimensions; give a one-dimensional array")
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.dtype.kind not in "iu":
        raise GraphError(f"{name} holds {array.dtype}; entries must be integers")
    return array


def convert(array: IntegerArray, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a contiguous, aligned, read-only array of a dtype, copied only if necessary."""
    return frozen(np.require(array, dtype, ("C", "A")))


def range_fault(indptr: IntegerArray, indices: IntegerArray) -> Fault | None:
    """Find an offset out of order (see `offsets_fault`), or an id out of range."""
    return offsets_fault(indptr, indices.size) or ids_fault(indices, indptr.size - 1)


def refuse_changed(indptr: IntegerArray, indices: IntegerArray, num_vertices: int) -> None:
    """Raise `GraphError` if the caller's arrays changed after a graph was made of them."""
    fault = offsets_fault(indptr, indices.size) or ids_fault(indices, num_vertices)
    if fault is not None:
        raise GraphError(
            f"{fault.text}; the graph's arrays changed after it was made: make it anew"
        )


def offsets_fault(indptr: IntegerArray, num_ids: int) -> Fault | None:
    """Find an offset that breaks the rise from 0 to `num_ids`."""
    falls = indptr[1:] < indptr[:-1]
    if indptr[0] == 0 and indptr[-1] == num_ids and not falls.any():
        return None
    wrong = np.append(indptr[0] != 0, falls)
    wrong[-1] |= indptr[-1] != num_ids
    first = int(wrong.argmax())
    text = f"offset {first} is {indptr[first]}; offsets must rise from 0 to {num_ids}"
    return Fault("indptr", first, text)


def ids_fault(indices: IntegerArray, num_vertices: int) -> Fault | None:
    if indices.size == 0 or _all_below(indices, num_vertices):
        return None
    first = int(((indices < 0) | (indices >= num_vertices)).argmax())
    limit = "negative; ids start at 0"
    if indices[first] >= 0:
        limit = f"not below {num_vertices}, the number of vertices"
    return Fault("indices", first, f"neighbour {indices[first]} is {limit}")


def _all_below(indices: IntegerArray, limit: int) -> bool:
    if indices.dtype.kind == "i" and limit <= np.iinfo(indices.dtype).max:
        indices = indices.view(indices.dtype.str.replace("i", "u"))  # negative ones become large
    return bool(indices.max() < limit) and (indices.dtype.kind == "u" or bool(indices.min() >= 0))


def lists_faults(indptr: IntegerArray, indices: IntegerArray) -> tuple[Fault | None, Fault | None]:
    """Find a neighbour out of order, and an edge without its reverse.

    A neighbour is out of order if it is not above the one before it in its list, or is the vertex
    itself. Searches of an undirected graph need the reverse of each edge.
    """
    from hetero_bfs.graph.kernels.neighbour_lists import check_lists

    order = reverse = None
    first, pairing = check_lists(indptr, indices)
    if first >= 0:
        vertex = int(np.searchsorted(indptr, first, side="right")) - 1
        text = f"neighbour {indices[first]} of vertex {vertex}; lists must rise and leave out the "
        order = Fault("indices", first, f"{text}vertex itself")
    if pairing:
        reverse = Fault("indices", None, "marked as undirected, but an edge lacks its reverse")
    return order, reverse


def degree_fault(input_degree: IntegerArray, indptr: IntegerArray) -> Fault | None:
    short = input_degree < np.diff(indptr)
    if not short.any():
        return None
    v = int(short.argmax())
    text = f"{input_degree[v]} input edges at vertex {v}, and {indptr[v + 1] - indptr[v]} "
    return Fault("input_degree", v, f"{text}neighbours")


def total_fault(input_degree: IntegerArray, num_input_edges: int, directed: bool) -> Fault | None:
    """Find out whether the degrees add up to more ends than the input edges have."""
    ends = int(input_degree.sum(dtype=np.int64))
    if ends <= num_input_edges * (1 if directed else 2) < 2**63:
        return None
    text = f"{num_input_edges} input edges, and their ends at vertices are {ends}"
    return Fault("num_input_edges", None, text)


def find_fault(
    indptr: IntegerArray,
    indices: IntegerArray,
    input_degree: IntegerArray,
    num_input_edges: int,
    directed: bool,
) -> Fault | None:
    """Find a fault in a graph's arrays (see `CSRGraph`) by all checks except `range_fault`.

    `range_fault` must have passed before, since compiled loops follow the offsets.
    """
    order, reverse = lists_faults(indptr, indices)
    return (
        order
        or (None if directed else reverse)
        or degree_fault(input_degree, indptr)
        or total_fault(input_degree, num_input_edges, directed)
    )


def check_num_vertices(num_vertices: int) -> None:
    if not 0 <= num_vertices <= MAX_VERTICES:
        raise GraphError(
            f"{num_vertices} vertices; a graph may have 0 to {MAX_VERTICES} "
            "(ids are 32-bit): renumber the vertices without gaps"
        )


def checked_ends(
    src: npt.ArrayLike, dst: npt.ArrayLike, num_vertices: int | None
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], int]:
    src, dst = integer_array(src, "src"), integer_array(dst, "dst")
    check_equal(src, dst)
    smallest = min((int(ends.min()) for ends in (src, dst) if ends.size), default=0)
    largest = max((int(ends.max()) for ends in (src, dst) if ends.size), default=-1)
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
    return convert(src, np.uint32), convert(dst, np.uint32), num_vertices


def check_equal(src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> None:
    if src.shape != dst.shape:
        raise GraphError(
            f"src has {src.size} entries and dst {dst.size}; give two arrays of equal length"
        )


def checked_lists(
    indptr: Any, indices: Any, input_degree: Any, num_input_edges: int, directed: bool
) -> dict[str, npt.NDArray[Any]]:
    indptr, indices = integer_array(indptr, "indptr"), integer_array(indices, "indices")
    input_degree = integer_array(input_degree, "input_degree")
    if indptr.size == 0:
        raise GraphError("indptr is empty; give num_vertices + 1 offsets, the first one 0")
    check_num_vertices(indptr.size - 1)
    if input_degree.size != indptr.size - 1:
        raise GraphError(
            f"input_degree has {input_degree.size} entries and indptr {indptr.size}; give one for "
            "each vertex, and one more offset"
        )
    if input_degree.size and not 0 <= input_degree.min() <= input_degree.max() < 2**32:
        raise GraphError("input_degree is not within 0 to 2**32 - 1; give counts of edges")
    fault = range_fault(indptr, indices)
    if fault is None:
        indptr, indices = convert(indptr, np.int64), convert(indices, np.uint32)
        input_degree = convert(input_degree, np.uint32)
        fault = find_fault(indptr, indices, input_degree, num_input_edges, directed)
    if fault is not None:
        place = fault.section if fault.position is None else f"{fault.section}[{fault.position}]"
        raise GraphError(f"{place}: {fault.text}; CSRGraph.from_edges builds sound lists")
    return {"indptr": indptr, "indices": indices, "input_degree": input_degree}
