"""SciPy's `dijkstra`, `shortest_path`, `breadth_first_order` and `connected_components`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import breadth_first_order as scipy_order
from scipy.sparse.csgraph import connected_components as scipy_components
from scipy.sparse.csgraph import dijkstra as scipy_dijkstra
from scipy.sparse.csgraph import shortest_path as scipy_shortest_path

from hetero_bfs.algorithms.bfs.serial import search_from
from hetero_bfs.algorithms.components.serial import number_components
from hetero_bfs.algorithms.sssp.algorithm import PathSearches
from hetero_bfs.algorithms.sssp.serial import distances_by_weight
from hetero_bfs.csgraph.matrix_lists import (
    NO_PREDECESSOR,
    MatrixLists,
    checked_rows,
    read_matrix,
)
from hetero_bfs.engine.engine import Engine
from hetero_bfs.engine.kept import KeptGraph
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.edge_source import check_vertex
from hetero_bfs.graph.lists import ListedEdges
from hetero_bfs.options import EngineOptions
from hetero_bfs.support.checks import as_array, check_choice, check_real
from hetero_bfs.support.cold import is_cold, scipy_seconds

Row = tuple[npt.NDArray[np.float64], npt.NDArray[Any]]
"""Distances (infinite where not reached) and parents (not a vertex id for roots and unreached)."""


_OPTIONS = EngineOptions(device="cpu", correction=False)

_SIDE_BY_SIDE = 256  # sources whose levels are held at a time; 64 share a word


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> Any:
    """Return the matrix of distances between vertices; see `dijkstra` for its form.

    SciPy itself computes methods other than "auto" and "D", and graphs with negative weights.
    "auto" never selects the method of Floyd and Warshall.
    """
    ours = method in ("auto", "D")
    rows = checked_rows(csgraph, directed)
    if ours and (unweighted or not rows.has_negative):
        return dijkstra(rows, directed, indices, return_predecessors, unweighted)
    return scipy_shortest_path(
        rows.for_scipy(), method, directed, return_predecessors, unweighted, overwrite, indices
    )


def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
) -> Any:
    """Return distances from vertices: sums of a matrix's entries, or numbers of edges.

    For many sources an `Engine` is opened. For few sources one thread searches without an engine.
    Among several shortest paths any may be returned, as in SciPy.

    Parameters
    ----------
    csgraph : array or sparse array, shape (N, N)
        SciPy itself computes matrices with negative weights, and warns of them.
    directed : bool
        If False, edges are followed in both directions, with the smaller of the two weights.
    indices : int or array of int, optional
        The sources; by default all vertices. Negative indices count from the end.
    return_predecessors : bool
    unweighted : bool
        Whether every edge counts 1.
    limit : float
        Distances greater than this are infinite.
    min_only : bool
        Whether to return distances from the nearest source.

    Returns
    -------
    dist_matrix : float64 array, shape indices.shape + (N,)
        With `min_only` of shape (N,).
    predecessors : int32 array, of the same shape
        Only with `return_predecessors`; -9999 for sources and where not reached.
    sources : int32 array, shape (N,)
        Only with `min_only` and predecessors; the nearest source, -9999 where not reached.

    Raises
    ------
    ArgumentError
        An index out of range, or a limit below 0.
    GraphError
        The matrix is not square, or damaged.
    """
    rows = checked_rows(csgraph, directed)
    if not unweighted and rows.has_negative:
        return scipy_dijkstra(
            rows.for_scipy(), directed, indices, return_predecessors, unweighted, limit, min_only
        )
    limit = check_real("limit", limit)
    if not limit >= 0:
        raise ArgumentError(f"limit is {limit}; give a number of at least 0")
    sources = _sources(indices, int(rows.csr.shape[0]))
    seconds = sources.size * scipy_seconds(rows.csr.nnz, reads_weights=True)
    if sources.size and is_cold("csgraph", seconds):
        return scipy_dijkstra(
            rows.for_scipy(), directed, sources, return_predecessors, unweighted, limit, min_only
        )
    matrix = read_matrix(rows, directed, not unweighted)
    if min_only:
        return _from_nearest(matrix, sources.reshape(-1), limit, return_predecessors)
    distance = np.full((sources.size, matrix.num_vertices), np.inf)
    shape = distance.shape if return_predecessors else (1, matrix.num_vertices)
    predecessors = np.full(shape, NO_PREDECESSOR, np.int32)
    given = sources.reshape(-1).tolist()

    def by_engine(opened: Any) -> None:
        found = _rows(opened, given, return_predecessors)
        _fill(distance, predecessors if return_predecessors else None, given, limit, found)

    def by_one_thread() -> None:
        for i, source in enumerate(given):
            parents = predecessors[i % len(predecessors)]
            _search(matrix, [source], limit, distance[i], parents)

    kind = Engine if matrix.weights is None else PathSearches
    with KeptGraph() as kept:  # not kept, since a matrix may change between calls
        edges = ListedEdges(matrix.lists, directed, matrix.weights)
        kept.answer(edges, kind, _OPTIONS, by_engine, by_one_thread, len(given))
    distance = distance.reshape(*sources.shape, matrix.num_vertices)
    return (distance, predecessors.reshape(distance.shape)) if return_predecessors else distance


def _sources(indices: Any, num_vertices: int) -> npt.NDArray[np.int32]:
    if indices is None:
        return np.arange(num_vertices, dtype=np.int32)
    given = as_array("indices", indices)
    if given.size == 0:
        given = np.empty(given.shape, np.int32)
    if given.dtype.kind not in "biuf":
        raise ArgumentError(f"indices has type {given.dtype}; give integers of at most 64 bits")
    if given.dtype.kind == "f":  # SciPy truncates fractions, too
        given = np.asarray(np.trunc(given, dtype=np.float64))
    wrong = ~((given >= -num_vertices) & (given < num_vertices))  # NaN is wrong
    if wrong.any():
        raise ArgumentError(
            f"indices has {given[wrong].flat[0]}; give vertices from 0 to {num_vertices - 1}, or "
            f"from {-num_vertices} to -1, which count from the end"
        )
    sources = given.astype(np.int32)
    sources[sources < 0] += num_vertices
    return sources


def _search(
    matrix: MatrixLists,
    sources: list[int],
    limit: float,
    distance: npt.NDArray[np.float64],
    predecessors: npt.NDArray[np.int32],
) -> None:
    """Search from the distinct sources in this thread.

    The arrays hold infinity and -9999 at the start.
    """
    parent = predecessors.view(np.uint32)
    if matrix.weights is not None:
        distances_by_weight(matrix.lists, matrix.weights, sources, limit, distance, parent)
        return
    search = search_from(matrix.lists, sources, np.floor(limit), parent)
    levels = np.arange(search.ends.size - 1, dtype=np.float64)
    distance[search.queue] = np.repeat(levels, np.diff(search.ends))


def _fill(
    distance: npt.NDArray[np.float64],
    predecessors: npt.NDArray[np.int32] | None,
    sources: list[int],
    limit: float,
    rows: Iterator[Row],
) -> None:
    for i, (found, parent) in enumerate(rows):
        distance[i] = np.where(found <= limit, found, np.inf)
        if predecessors is not None:
            known = (parent >= 0) & (parent < parent.size) & (found <= limit)
            known[sources[i]] = False
            predecessors[i] = np.where(known, parent, NO_PREDECESSOR)


def _rows(opened: Engine | PathSearches, sources: list[int], with_parents: bool) -> Iterator[Row]:
    if isinstance(opened, PathSearches):
        paths = (opened.run(source) for source in sources)
        return ((found.distance, found.parent) for found in paths)
    engine = opened
    if with_parents:
        trees = (engine.bfs(source) for source in sources)
        return ((_as_distance(tree.level), tree.parent) for tree in trees)
    batches = (sources[i : i + _SIDE_BY_SIDE] for i in range(0, len(sources), _SIDE_BY_SIDE))
    levels = (level for batch in batches for level in engine.bfs_many(batch).level)
    return ((_as_distance(level), level) for level in levels)


def _as_distance(level: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.where(level < 0, np.inf, level)


def _from_nearest(
    matrix: MatrixLists,
    indices: npt.NDArray[np.int32],
    limit: float,
    return_predecessors: bool,
) -> Any:
    n = matrix.num_vertices
    sources = list(dict.fromkeys(indices.tolist()))
    distance, predecessors = np.full(n, np.inf), np.full(n, NO_PREDECESSOR, np.int32)
    _search(matrix, sources, limit, distance, predecessors)
    if not return_predecessors:
        return distance
    return distance, predecessors, _roots(predecessors, sources)


def _roots(predecessors: npt.NDArray[np.int32], sources: list[int]) -> npt.NDArray[np.int32]:
    """Return the source at the end of each chain of predecessors, -9999 for unreached vertices."""
    n = predecessors.size
    root = np.where(predecessors < 0, n, predecessors)
    root[sources] = sources
    root = np.append(root, n)
    while True:
        further = root[root]
        if np.array_equal(further, root):
            return np.where(root[:n] == n, NO_PREDECESSOR, root[:n]).astype(np.int32)
        root = further


Order = npt.NDArray[np.int32]


def breadth_first_order(
    csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True
) -> Order | tuple[Order, Order]:
    """Return the vertices in the order in which SciPy's search finds them, and their predecessors.

    Parameters
    ----------
    csgraph : array or sparse array, shape (N, N)
    i_start : int
    directed : bool
        If False, edges are followed in both directions.
    return_predecessors : bool

    Returns
    -------
    node_array : int32 array
        The vertices reached, the start first.
    predecessors : int32 array, shape (N,)
        -9999 for the start and where not reached.

    Raises
    ------
    GraphError
        The matrix is not square or damaged; the start is not a vertex.
    """
    rows = checked_rows(csgraph, directed)
    start = check_vertex(i_start, int(rows.csr.shape[0]))
    if is_cold("csgraph", scipy_seconds(rows.csr.nnz)):
        found: Order = scipy_order(rows.for_scipy(), start, directed, return_predecessors)
        return found
    matrix = read_matrix(rows, directed)
    predecessors = np.full(matrix.num_vertices, NO_PREDECESSOR, np.int32)
    parent = predecessors.view(np.uint32)
    search = search_from(matrix.lists, start, parent=parent)
    order = search.queue.view(np.int32)
    return (order, predecessors) if return_predecessors else order


def connected_components(
    csgraph: Any, directed: bool = True, connection: str = "weak", return_labels: bool = True
) -> int | tuple[int, Order]:
    """Return the number of components, and each vertex's component.

    Parameters
    ----------
    csgraph : array or sparse array, shape (N, N)
    directed : bool
    connection : {"weak", "strong"}
        Strongly connected components of a directed graph are found by SciPy itself.
    return_labels : bool

    Returns
    -------
    n_components : int
    labels : int32 array, shape (N,)
        Components are numbered by their first vertices.

    Raises
    ------
    ArgumentError
        Another `connection`.
    GraphError
        The matrix is not square, or damaged.
    """
    kind = connection.lower() if isinstance(connection, str) else connection
    check_choice("connection", kind, ("weak", "strong"))
    rows = checked_rows(csgraph, directed)
    seconds = scipy_seconds(rows.csr.nnz)
    if (directed and kind == "strong") or (rows.csr.shape[0] and is_cold("csgraph", seconds)):
        given = rows.for_scipy(weighted=False)
        result: tuple[int, Order] = scipy_components(given, directed, kind, return_labels)
        return result
    matrix = read_matrix(rows, directed=True)  # reversed edges join the same components
    label, count = number_components(matrix.lists)
    return (count, label.view(np.int32)) if return_labels else count
