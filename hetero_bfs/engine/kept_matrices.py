"""Graphs of SciPy's matrices, kept while the matrix and its arrays stay the same.

A matrix is a directed graph, read as `scipy.sparse.csgraph` reads it: each stored entry is an edge,
an explicit zero too. A matrix may change between two calls, so each call compares a digest of its
arrays with that of the last call. Arrays that nobody can write are compared by identity.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from hetero_bfs.engine.kept import MOST_KEPT, Graph, is_private
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.kernels.digests import digest_of
from hetero_bfs.graph.matrix_checks import arrays_of, check_square, convert_matrix
from hetero_bfs.graph.tables import edges_of_scipy, is_matrix
from hetero_bfs.support.memory import release_when_short


class _Kept(NamedTuple):
    state: list[Any]
    graph: CSRGraph


_KEPT: dict[tuple[int, bool], _Kept] = {}
"""By the id() of the matrix, and whether its values were read; the last one used last."""


_FOLLOWED: set[tuple[int, bool]] = set()
"""Keys of living matrices that call `_forget` at their end."""


def _forget(key: tuple[int, bool]) -> None:
    _FOLLOWED.discard(key)
    _KEPT.pop(key, None)


def num_vertices_of(given: Any) -> int:
    """Return the number of vertices of a graph or a matrix."""
    if is_matrix(given):
        check_square(given)
        return int(given.shape[0])
    return int(given.num_vertices)


def graph_of(given: Any, weighted: bool) -> Graph:
    """Return the graph of a matrix, without weights unless `weighted`; other graphs unchanged."""
    if not is_matrix(given):
        graph: Graph = given
        return graph
    arrays = arrays_of(given, weighted)
    if arrays is None:
        return _graph_of(given, weighted)
    key, state = (id(given), weighted), _state_of(given, arrays)
    kept = _KEPT.pop(key, None)
    if kept is None or kept.state != state:
        kept = _Kept(state, _graph_of(given, weighted))
        try:
            if key not in _FOLLOWED:
                weakref.finalize(given, _forget, key).atexit = False
        except TypeError:
            return kept.graph
        _FOLLOWED.add(key)
    _KEPT[key] = kept
    for oldest in list(_KEPT)[:-MOST_KEPT]:
        _KEPT.pop(oldest, None)
    return kept.graph


class _Same:
    """An array that is equal to itself only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.array is other.array

    __hash__ = None  # type: ignore[assignment]


def _state_of(matrix: Any, arrays: list[Any]) -> list[Any]:
    return [
        matrix.shape,
        *((a.dtype.str, a.shape, _Same(a) if is_private(a) else digest_of(a)) for a in arrays),
    ]


def _graph_of(matrix: Any, weighted: bool) -> CSRGraph:
    if matrix.format == "csr":
        rows = convert_matrix(matrix, lambda checked: checked)
        ids = rows.indices.view(np.uint32) if rows.indices.dtype == np.int32 else rows.indices
        degree, weights = np.diff(rows.indptr), rows.data if weighted else None
        try:
            return CSRGraph(rows.indptr, ids, True, ids.size, degree, weights)
        except GraphError:  # rows are not sorted, or have loops or duplicates
            pass
    return CSRGraph.from_edge_source(edges_of_scipy(matrix, True, weighted, None, zeros=True))


release_when_short(_KEPT.clear)
