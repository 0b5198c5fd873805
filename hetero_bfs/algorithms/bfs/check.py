"""The five checks of the Graph500 specification, for many search results in one pass.

The checks are independent of the search: they use only its parents and, if given, its levels.
Depths are recomputed from the parents. check_kernels.py describes the data of each search that the
pass over the edges uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs import check_kernels as loops
from hetero_bfs.algorithms.bfs.check_report import (
    AskedEdges,
    CheckedSearch,
    Failure,
    Validation,
    check_tree,
    component_failure,
    depth_dtype,
    level_failure,
    unreached_depth,
)
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import (
    CHUNK_EDGES,
    EdgeSource,
    check_edge_source,
    check_ends,
    check_sources,
    check_vertex,
    typed_chunks,
)
from hetero_bfs.support import memory, processes
from hetero_bfs.support.checks import as_array, check_integer
from hetero_bfs.support.messages import progress

MAX_SEARCHES = 64
"""Maximum number of searches per pass: a tree edge has one bit for each."""

RESULT_BYTES_PER_VERTEX = 20
"""Bytes per vertex of a search's result: parents 8, levels 4, and 8 to compute levels."""

_USABLE_SHARE = 0.9  # share of the free memory for a group of searches
_TREE_EDGES_PER_VERTEX = 4  # distinct, in 64 searches of a Kronecker graph, at most
_TREE_EDGE_BYTES = 12
_PACKED_BYTES = 8
_START_BYTES = 8

_Int64Array = npt.NDArray[np.int64]


class Validator:
    """Checks a group of searches of one graph in a single pass over its edges.

    Parameters
    ----------
    edges : EdgeSource
        The edges from which the searched graph was built.
    capacity : int
        Maximum number of searches in a group, 1 to `MAX_SEARCHES`.
    """

    def __init__(self, edges: EdgeSource, capacity: int = MAX_SEARCHES) -> None:
        capacity = check_integer("capacity", capacity)
        if not 1 <= capacity <= MAX_SEARCHES:
            raise ValueError(f"capacity is {capacity}; it must be 1 to {MAX_SEARCHES}")
        check_edge_source(edges)
        processes.use_loops()
        self.edges = edges
        self.capacity = capacity
        self._empty()

    def _empty(self) -> None:
        self._searches: list[CheckedSearch] = []
        self._columns: list[CheckedSearch] = []
        self._depth: npt.NDArray[Any] | None = None
        self._tree_edges = _TreeEdges(self.edges.num_vertices)

    def __len__(self) -> int:
        return len(self._searches)

    def add(
        self,
        source: int | Iterable[int],
        parent: npt.NDArray[Any],
        level: npt.NDArray[Any] | None = None,
    ) -> None:
        """Run checks 1 and 2, which need no edges, and keep the data for the others.

        The arguments are as for `validate`; the arrays are not needed afterwards.
        """
        if len(self) == self.capacity:
            raise ValueError(f"the group has its {self.capacity} searches; finish it first")
        num_vertices = self.edges.num_vertices
        if isinstance(source, Iterable) and getattr(source, "ndim", 1) > 0:
            sources = tuple(dict.fromkeys(check_sources(source, num_vertices)))
        else:
            sources = (check_vertex(source, num_vertices),)
        parent = _signed(parent, "parent", num_vertices)
        level = None if level is None else _signed(level, "level", num_vertices)
        packed = np.empty(num_vertices, np.int64)
        search = check_tree(sources, parent, level, packed)
        self._searches.append(search)
        if search.failure is None:
            search.column = len(self._columns)
            self._columns.append(search)
            loops.store_depths(packed, self._depth_matrix(search.depth), search.column)
            self._tree_edges.add(packed, search.column)

    def finish(self) -> list[Validation]:
        """Run the other checks in one pass; return the outcomes in the order of `add`.

        This empties the group and frees its memory. There is no pass if no search passed check 2.

        Raises `GraphError` if an end of an edge is not a vertex.
        """
        if self._columns:
            self._check_edges()
        outcomes = [search.outcome() for search in self._searches]
        self._empty()
        return outcomes

    def finish_at(
        self, asked: AskedEdges, depth_limit: int | None, target: int | None
    ) -> Validation:
        search, depth = self._searches[0], self._depth
        if depth is not None:
            asked.end_at(search, depth[:, 0], depth_limit, target)
            if search.failure is not None:
                self._columns = []
        return self.finish()[0]

    def is_full(self) -> bool:
        """Tell whether the group accepts no further search: it is full, or memory is short.

        Searches may take more memory than `group_size` assumes. An empty group always accepts one.
        """
        need = self.bytes_to_add() + RESULT_BYTES_PER_VERTEX * self.edges.num_vertices
        short = len(self) > 0 and need > memory.free_bytes()
        return len(self) == self.capacity or short

    def bytes_to_add(self) -> int:
        """Return the peak memory, in bytes, that one more search may need beyond its arrays."""
        matrix = 0 if self._depth is not None else self.capacity
        per_vertex = _PACKED_BYTES + _START_BYTES + _TREE_EDGE_BYTES + matrix
        return per_vertex * self.edges.num_vertices + self._tree_edges.size * _TREE_EDGE_BYTES

    def _depth_matrix(self, deepest: int) -> npt.NDArray[Any]:
        old = self._depth
        dtype = depth_dtype(deepest)
        if old is not None and old.dtype.itemsize >= dtype.itemsize:
            return old
        size = self.edges.num_vertices * self.capacity
        empty = memory.aligned_empty(size, dtype)
        new = empty.reshape(-1, self.capacity)  # 64 bytes: one cache line
        new.fill(unreached_depth(dtype))
        if old is not None:
            np.copyto(new, old, where=old != unreached_depth(old.dtype))
        self._depth = new
        return new

    def _check_edges(self) -> None:
        edges, depth, tree_edges = self.edges, self._depth, self._tree_edges
        assert depth is not None
        first: dict[tuple[int, int], tuple[int, int]] = {}  # (check, column) -> edge that fails
        nedge = np.zeros(self.capacity, np.int64)
        stored = edges.num_input_edges * (2 if edges.both_directions else 1)
        for src, dst in progress(typed_chunks(edges), "validating", -(-stored // CHUNK_EDGES)):
            check_ends(src, dst, edges.num_vertices)
            fails, counts = loops.scan(
                src, dst, depth, tree_edges.starts, tree_edges.parents, edges.directed
            )
            nedge += counts
            for row, column in zip(*np.nonzero(fails < src.size), strict=True):
                edge = int(src[fails[row, column]]), int(dst[fails[row, column]])
                first.setdefault((row + 3, int(column)), edge)
        if isinstance(edges, CSRGraph):  # its neighbour lists have no duplicates
            nedge = loops.count_ends(edges.input_degree, depth, unreached_depth(depth.dtype))
        if edges.both_directions and not edges.directed:
            nedge //= 2
        met = tree_edges.starts, tree_edges.parents, tree_edges.searches
        unmet = loops.first_unmet(*met, len(self._columns))
        for column, search in enumerate(self._columns):
            search.nedge = int(nedge[column])
            if (3, column) in first:
                search.failure = level_failure(*first[3, column], depth[:, column])
            elif (4, column) in first:
                search.failure = component_failure(*first[4, column], depth[:, column])
            elif unmet[column] < edges.num_vertices:
                search.failure = tree_edges.failure(int(unmet[column]), column)


class _TreeEdges:
    """The distinct tree edges of a group; see check_kernels.py."""

    def __init__(self, num_vertices: int) -> None:
        self.size = 0
        self.starts = np.zeros(num_vertices + 1, np.int64)
        self.parents = np.full(loops.TILE, loops.MET, np.uint32)
        self.searches = np.empty(0, np.uint64)

    def add(self, packed: _Int64Array, column: int) -> None:
        new = loops.count_new_edges(packed, self.starts, self.parents)
        size = self.size + int(new.sum())
        merged = (
            np.empty(self.starts.size, np.int64),
            np.empty(size + loops.TILE, np.uint32),
            np.empty(size, np.uint64),
        )
        old = self.starts, self.parents, self.searches
        bit, shift = np.uint64(1 << column), np.cumsum(new) - new
        loops.merge_edges(packed, bit, *old, shift, *merged, parts=loops.BLOCKS)
        self.size = size
        self.starts, self.parents, self.searches = merged
        self.starts[-1] = size
        self.parents[size:] = loops.MET

    def failure(self, vertex: int, column: int) -> Failure:
        here = slice(self.starts[vertex], self.starts[vertex + 1])
        unmet = self.parents[here] != loops.MET
        mine = self.searches[here] & np.uint64(1 << column) != 0
        parent = self.parents[here][unmet & mine][0]
        return Failure(5, vertex, f"its tree edge ({parent}, {vertex}) is not an input edge")


def validate(
    edges: EdgeSource,
    source: int | Iterable[int],
    parent: npt.NDArray[Any],
    level: npt.NDArray[Any] | None = None,
    *,
    depth_limit: int | None = None,
    target: int | None = None,
    mask: npt.NDArray[np.bool_] | None = None,
    reverse: bool = False,
) -> Validation:
    """Check one search result against the edges of its graph.

    The checks are, in this order:

    1. The parents form a tree rooted at `source`. The source is its own parent, all other parents
       are reached vertices, and there are no cycles.
    2. Each tree edge spans one level of `level`, and a level of -1 goes with a parent of -1.
       Without `level`, depths come from the parents, so this holds by construction.
    3. Edges between reached vertices span at most one level (directed: at most one downwards).
    4. No edge joins a reached and an unreached vertex (directed: leads from one to the other).
    5. Every tree edge is an input edge.

    `parent` and `level` are integer arrays of shape (num_vertices,) with -1 for unreached.

    The other arguments are the search's (`Engine.bfs`; `mask` as flags). Several sources
    have several trees. Edges at masked vertices do not count. Nothing may be reached beyond a depth
    limit or a reached target, and check 4 does not apply there.

    Raises
    ------
    GraphError
        An array has another shape or dtype, or a source or an end of an edge is not a vertex.
    """
    if depth_limit is None and target is None and mask is None and not reverse:
        validator = Validator(edges, 1)
        validator.add(source, parent, level)
        return validator.finish()[0]
    check_edge_source(edges)
    n = edges.num_vertices
    flags = np.zeros(n, np.bool_) if mask is None else as_array("mask", mask)
    if flags.shape != (n,) or flags.dtype != np.bool_:
        raise GraphError(
            f"mask holds {flags.dtype} in shape {flags.shape}; give a bool array of shape ({n},)"
        )
    asked = AskedEdges(edges, flags, reverse)
    validator = Validator(asked, 1)
    validator.add(source, parent, level)
    return validator.finish_at(asked, depth_limit, target)


def group_bytes(num_vertices: int, capacity: int, deepest: int) -> int:
    """Estimate the peak memory of a `Validator`, with searches up to `deepest` levels.

    The number of distinct tree edges is not known in advance; see `Validator.bytes_to_add`.
    """
    depths = capacity * depth_dtype(deepest).itemsize
    tree_edges = _START_BYTES + _TREE_EDGE_BYTES * min(capacity, _TREE_EDGES_PER_VERTEX)
    return num_vertices * (depths + _PACKED_BYTES + 2 * tree_edges)


def group_size(num_vertices: int, num_searches: int, deepest: int) -> int:
    """Return how many searches to validate per pass, for few passes of equal size.

    The result depends on the memory that is free now. Searches have up to `deepest` levels.
    """
    usable = _USABLE_SHARE * memory.free_bytes() - RESULT_BYTES_PER_VERTEX * num_vertices
    sizes = range(min(num_searches, MAX_SEARCHES), 1, -1)
    most = next((s for s in sizes if group_bytes(num_vertices, s, deepest) <= usable), 1)
    num_groups = -(-num_searches // most)
    return -(-num_searches // num_groups)


def _signed(array: npt.NDArray[Any], name: str, num_vertices: int) -> npt.NDArray[Any]:
    """Return int32 unchanged and other integers as int64, if shape and dtype are valid."""
    array = as_array(name, array)
    if array.shape != (num_vertices,):
        raise GraphError(f"{name} has shape {array.shape}; give shape ({num_vertices},)")
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64):
        raise GraphError(f"{name} holds {array.dtype}; give signed integers, -1 for unreached")
    return np.ascontiguousarray(array, np.int32 if array.dtype == np.int32 else np.int64)
