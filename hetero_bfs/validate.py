"""The five checks of the Graph500 specification on one search result.

Independent of the search: nothing is taken from it but the parents and, if it gives them, the
levels. Depths are computed anew from the parents.

Encoding. `packed` holds depth and parent of every vertex in one int64, so that looking up an edge
end costs one cache miss: bits 63..32 are the depth, bits 31..0 the parent, both as unsigned
numbers. All 64 bits set means unreached; only the upper 32 set, depth not known yet. `marked` is
true where no tree edge is left to be found: at the root, at unreached vertices, and at `v` once
(parent[v], v) was met among the input edges.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from hetero_bfs.errors import GraphError, ValidationError
from hetero_bfs.graph import EdgeSource, VertexArray

CHECK_NAMES = {
    1: "parents form a tree",
    2: "tree edges span one level",
    3: "edges span at most one level",
    4: "tree covers the component",
    5: "tree edges are input edges",
}
"""The numbers of the specification and what each check asks for."""

_BLOCKS = 256  # steps of a parallel loop; many more than threads, so that they balance
_LOW = 0xFFFFFFFF
_UNREACHED = -1
_UNKNOWN_DEPTH = -(1 << 32)

_Int64Array = npt.NDArray[np.int64]
_BoolArray = npt.NDArray[np.bool_]
_Failure = tuple[int, int, str]  # number of the check, vertex, what is wrong there


@dataclass(frozen=True)
class Validation:
    """Outcome of `validate`: the first check that failed, a vertex where it did; None if valid.

    `nedge` counts the input edges for TEPS: both ends reached (directed: source reached),
    duplicates included, self-loops not; 0 if check 1 or 2 failed. `reached` counts the vertices
    with a parent; `depth` is the greatest one along the parents, 0 if check 1 failed.
    """

    valid: bool
    check: int | None
    check_name: str | None
    vertex: int | None
    message: str
    nedge: int
    reached: int
    depth: int


def validate(
    edges: EdgeSource,
    root: int,
    parent: npt.NDArray[Any],
    level: npt.NDArray[Any] | None = None,
) -> Validation:
    """Check one search result against the edges it was made from, in this order.

    1. The parents form a tree rooted at `root`: its own parent; others reached, without cycles.
    2. Each tree edge spans one level of `level`; a level of -1 goes with a parent of -1. Without
       `level`, depths come from the parents and this holds by construction.
    3. Edges between reached vertices span at most one level (directed: at most one downwards).
    4. No edge joins a reached and an unreached vertex (directed: leads from one to the other).
    5. Every tree edge is an input edge.

    `parent` and `level` are integer arrays of shape (num_vertices,) with -1 for unreached.

    Raises
    ------
    GraphError
        An array of another shape or dtype; a root or an end of an edge that is no vertex.
    """
    num_vertices = edges.num_vertices
    root = operator.index(root)
    if not 0 <= root < num_vertices:
        raise GraphError(f"root {root} is no vertex of a graph of {num_vertices} vertices")
    parent = _signed(parent, "parent", num_vertices)
    level = None if level is None else _signed(level, "level", num_vertices)
    packed = np.empty(num_vertices, dtype=np.int64)
    marked = np.empty(num_vertices, dtype=np.bool_)
    reached, suspect = _pack(parent, root, packed, marked)
    failure = _check_parents(parent, root, suspect)
    depth = 0 if failure else _compute_depths(packed, reached)
    if depth < 0:
        cycle = _find_cycle(packed, root)
        failure = 1, cycle, f"following the parents from vertex {cycle} leads back to it"
    if failure is None and level is not None:
        failure = _check_levels(level, packed)
    nedge = 0
    if failure is None:
        failure, nedge = _check_edges(edges, packed, marked)
    return _outcome(root, failure, nedge, reached, max(depth, 0))


def raise_if_invalid(validation: Validation) -> None:
    """Raise `ValidationError` with the message of a validation that failed."""
    if not validation.valid:
        raise ValidationError(validation.message)


def _outcome(
    root: int, failure: _Failure | None, nedge: int, reached: int, depth: int
) -> Validation:
    if failure is None:
        message = f"root {root}: valid; {reached} vertices reached, depth {depth}"
        return Validation(True, None, None, None, message, nedge, reached, depth)
    check, vertex, detail = failure
    name = CHECK_NAMES[check]
    message = f"root {root}: check {check} ({name}) fails at vertex {vertex}: {detail}"
    return Validation(False, check, name, vertex, message, nedge, reached, depth)


def _signed(array: npt.NDArray[Any], name: str, num_vertices: int) -> npt.NDArray[Any]:
    """Return int32 as it is and other integers as int64, if shape and dtype will do."""
    array = np.asarray(array)
    if array.shape != (num_vertices,):
        raise GraphError(f"{name} has shape {array.shape}; give shape ({num_vertices},)")
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64):
        raise GraphError(f"{name} holds {array.dtype}; give signed integers, -1 for unreached")
    return np.ascontiguousarray(array, np.int32 if array.dtype == np.int32 else np.int64)


def _check_parents(parent: npt.NDArray[Any], root: int, suspect: int) -> _Failure | None:
    """Check 1 but for cycles; `suspect` is what `_pack` found."""
    if parent[root] != root:
        return 1, root, f"the root has parent {parent[root]} instead of itself"
    if suspect == parent.size:
        return None
    wrong = int(parent[suspect])
    if 0 <= wrong < parent.size:
        return 1, suspect, f"its parent {wrong} is unreached"
    return 1, suspect, f"its parent {wrong} is not -1 and not in 0..{parent.size - 1}"


def _check_levels(level: npt.NDArray[Any], packed: _Int64Array) -> _Failure | None:
    """Check 2. In a tree, right levels across all tree edges mean level = depth everywhere."""
    vertex = _first_wrong_level(level, packed)
    if vertex == level.size:
        return None
    if packed[vertex] == _UNREACHED:
        return 2, vertex, f"it has level {level[vertex]} but no parent"
    depth, parent = _depth(packed[vertex]), packed[vertex] & _LOW
    detail = f"it has level {level[vertex]}, but depth {depth} along the parents"
    if depth > 0:
        detail += f"; its parent {parent} has level {level[parent]}"
    return 2, vertex, detail


def _check_edges(
    edges: EdgeSource, packed: _Int64Array, marked: _BoolArray
) -> tuple[_Failure | None, int]:
    """Make checks 3, 4 and 5 and count the edges of the search, in one pass."""
    nedge = 0
    first: dict[int, tuple[int, int]] = {}  # check -> the first edge that fails it
    for src, dst in edges.chunks():
        src, dst = np.ascontiguousarray(src, np.uint32), np.ascontiguousarray(dst, np.uint32)
        fails_3, fails_4, outside, count = _scan(src, dst, packed, marked, edges.directed)
        if outside < src.size:
            ends = f"({src[outside]}, {dst[outside]})"
            raise GraphError(f"edge {ends} in a graph of only {packed.size} vertices")
        for check, position in ((3, fails_3), (4, fails_4)):
            if position < src.size:
                first.setdefault(check, (int(src[position]), int(dst[position])))
        nedge += count
    if edges.both_directions and not edges.directed:
        nedge //= 2
    if 3 in first:
        u, v = first[3]
        levels = f"{_depth(packed[u])} and {_depth(packed[v])}"
        return (3, u, f"edge ({u}, {v}) joins levels {levels}"), nedge
    if 4 in first:
        u, v = first[4]
        reached, vertex = (v, u) if packed[u] == _UNREACHED else (u, v)
        return (4, vertex, f"edge ({u}, {v}) joins it, unreached, to {reached}, reached"), nedge
    vertex = int(marked.argmin())
    if not marked[vertex]:
        parent = packed[vertex] & _LOW
        return (5, vertex, f"its tree edge ({parent}, {vertex}) is not an input edge"), nedge
    return None, nedge


@njit(cache=True, nogil=True)
def _depth(entry: int) -> int:
    """Return the depth in an entry of `packed`, 2**32 - 1 if unreached or not known."""
    return (entry >> 32) & _LOW


@njit(cache=True, nogil=True)
def _bounds(block: int, size: int) -> tuple[int, int]:
    index = np.int64(block)  # prange may count in uint64, and uint64 with int64 makes float64
    return int(size * index // _BLOCKS), int(size * (index + 1) // _BLOCKS)


@njit(parallel=True, cache=True, nogil=True)
def _pack(
    parent: npt.NDArray[Any], root: int, packed: _Int64Array, marked: _BoolArray
) -> tuple[int, int]:
    """Fill `packed` and `marked`; return how many vertices are reached, and the first suspect.

    Suspect is a vertex whose parent is no vertex or unreached; num_vertices if there is none.
    """
    size = parent.size
    reached = np.zeros(_BLOCKS, np.int64)
    suspect = np.full(_BLOCKS, size, np.int64)
    for block in prange(_BLOCKS):
        start, stop = _bounds(block, size)
        count = 0
        for v in range(start, stop):
            p = np.int64(parent[v])
            packed[v] = _UNREACHED if p == -1 else _UNKNOWN_DEPTH | (p & _LOW)
            marked[v] = p == -1 or v == root
            count += p != -1
            if p != -1 and (p < 0 or p >= size or parent[p] == -1):
                suspect[block] = min(suspect[block], v)
        reached[block] = count
    packed[root] = root  # depth 0
    return int(reached.sum()), int(suspect.min())


@njit(parallel=True, cache=True, nogil=True)
def _compute_depths(packed: _Int64Array, reached: int) -> int:
    """Replace every unknown depth; return the greatest, or -1 if there is a cycle.

    Threads meet on common ancestors without a lock: whoever writes a depth writes the same one,
    in one aligned store, so a thread walks at most twice over a vertex.
    """
    deepest = np.zeros(_BLOCKS, np.int64)
    cycle = np.zeros(1, np.bool_)
    for block in prange(_BLOCKS):
        start, stop = _bounds(block, packed.size)
        greatest = 0
        for v in range(start, stop):
            if cycle[0]:
                break
            if packed[v] != _UNREACHED:
                depth = _settle(v, packed, reached)
                greatest = max(greatest, depth)
                if depth < 0:
                    cycle[0] = True
        deepest[block] = greatest
    return -1 if cycle[0] else int(deepest.max())


@njit(cache=True, nogil=True)
def _settle(vertex: int, packed: _Int64Array, reached: int) -> int:
    """Give depths to `vertex` and its ancestors; return its depth, or -1 if they are a cycle."""
    top, steps = vertex, 0
    while packed[top] >> 32 == -1:
        top = packed[top] & _LOW
        steps += 1
        if steps > reached:
            return -1
    depth: int = _depth(packed[top]) + steps
    deepest = depth
    v = vertex
    while v != top:
        parent = packed[v] & _LOW
        packed[v] = depth << 32 | parent
        depth -= 1
        v = parent
    return deepest


@njit(cache=True, nogil=True)
def _find_cycle(packed: _Int64Array, root: int) -> int:
    """Return a vertex of a cycle, always the same; only called if there is a cycle."""
    visit = np.full(packed.size, -1, np.int64)  # the vertex from which a walk came by first
    visit[root] = packed.size
    for start in range(packed.size):
        v = start
        while packed[v] != _UNREACHED and visit[v] == -1:
            visit[v] = start
            v = packed[v] & _LOW
        if visit[v] == start:
            return v
    return root


@njit(parallel=True, cache=True, nogil=True)
def _first_wrong_level(level: npt.NDArray[Any], packed: _Int64Array) -> int:
    """Return the first vertex whose level is not its depth, num_vertices if none."""
    first = np.full(_BLOCKS, level.size, np.int64)
    for block in prange(_BLOCKS):
        start, stop = _bounds(block, level.size)
        for v in range(start, stop):
            if level[v] != (-1 if packed[v] == _UNREACHED else _depth(packed[v])):
                first[block] = v
                break
    return int(first.min())


@njit(parallel=True, cache=True, nogil=True)
def _scan(
    src: VertexArray, dst: VertexArray, packed: _Int64Array, marked: _BoolArray, directed: bool
) -> tuple[int, int, int, int]:
    """Mark the tree edges in a chunk of input edges.

    Return the positions of the first edges that fail check 3, fail check 4, and have an end that
    is no vertex (chunk size if none), and how many edges belong to the search.
    """
    first = np.full((3, _BLOCKS), src.size, np.int64)
    nedge = np.zeros(_BLOCKS, np.int64)
    for block in prange(_BLOCKS):
        start, stop = _bounds(block, src.size)
        count = 0
        for i in range(start, stop):
            u, v = np.int64(src[i]), np.int64(dst[i])
            if u >= packed.size or v >= packed.size:
                first[2, block] = min(first[2, block], i)
                continue
            at_u, at_v = packed[u], packed[v]
            rise = _depth(at_v) - _depth(at_u)  # an unreached vertex lies below all others
            if rise > 1 or (rise < -1 and not directed):
                row = 1 if at_u == _UNREACHED or at_v == _UNREACHED else 0
                first[row, block] = min(first[row, block], i)
            count += u != v and at_u != _UNREACHED and (directed or at_v != _UNREACHED)
            if at_v & _LOW == u:
                marked[v] = True
            if not directed and at_u & _LOW == v:
                marked[u] = True
        nedge[block] = count
    return int(first[0].min()), int(first[1].min()), int(first[2].min()), int(nedge.sum())
