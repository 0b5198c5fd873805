"""Functions of a graph, without an engine to open and close.

Calls that name a device or threads open an engine for themselves. All others share what
is kept of their graph (kept.py).

Graphs of SciPy's matrices are kept while the matrix and its arrays stay the same. A matrix is a
directed graph, read as `scipy.sparse.csgraph` reads it: each stored entry is an edge, an explicit
zero too. A matrix may change between two calls, so each call compares a digest of its arrays with
that of the last call. Arrays that nobody can write are compared by identity.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from hetero_bfs.algorithms.base import Request, open_analysis
from hetero_bfs.algorithms.table import rows
from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.engine.engine import Engine
from hetero_bfs.engine.kept import MOST_KEPT, Graph, is_private, kept_of
from hetero_bfs.errors import ArgumentError, GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import check_edge_source
from hetero_bfs.graph.kernels.digests import digest_of
from hetero_bfs.graph.matrix_checks import arrays_of, check_square, convert_matrix
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.tables import edges_of_scipy, is_matrix
from hetero_bfs.graph.vertex_names import with_names
from hetero_bfs.options import EngineOptions
from hetero_bfs.support.memory import release_when_short
from hetero_bfs.support.messages import shown

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_GRAPH = """\
graph : CSRGraph, EdgeSource, SearchGraph, or sparse matrix or array of SciPy's
    Each stored entry (u, v) of a matrix is the edge u -> v.
"""
_WHERE = """\
device : str, optional
    Index or part of the name of an OpenCL device that runs the algorithm, "auto" for the usual one,
    "cpu" for none. By default one thread answers the first calls on a graph. Once they have taken
    as long as it takes to open an engine, one opens and answers later calls, on the place that the
    speed model predicts to be faster. It closes with the graph.
threads : int, optional
    See `EngineOptions`. A number opens an engine for this call.
"""
_USUAL = EngineOptions()


class Call(Protocol[P, R_co]):
    """A function of the table's algorithm, as type checkers see it.

    `ParamSpec` cannot add keywords, so a call with `device` or `threads` has only its result
    checked.
    """

    @overload
    def __call__(self, graph: Graph, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(
        self, graph: Graph, *args: Any, device: str | None, threads: int | None = ..., **kwargs: Any
    ) -> R_co: ...
    @overload
    def __call__(self, graph: Graph, *args: Any, threads: int | None, **kwargs: Any) -> R_co: ...


def one_call(method: Callable[Concatenate[Any, P], R]) -> Call[P, R]:
    row = rows()[method.__name__]

    def call(
        graph: Graph,
        *args: Any,
        device: str | None = None,
        threads: int | None = None,
        **kwargs: Any,
    ) -> Any:
        if not (isinstance(graph, CSRGraph | SearchGraph) or is_matrix(graph)):
            check_edge_source(graph)
        request = row.ask(num_vertices_of(graph), *args, **kwargs)  # before the graph is built
        is_usual = device is None and threads is None
        options = _USUAL if is_usual else EngineOptions(device=device, threads=threads)
        if options.device not in (None, NO_DEVICE) and not request.kind.runs_on_devices:
            raise ArgumentError(
                f"device is {shown(options.device)}, and {request.kind.what} run on the CPU; give "
                'device="cpu", or leave it out'
            )
        graph = graph_of(graph, request.kind.needs_weights)
        if is_usual:
            with kept_of(graph) as kept:
                return with_names(kept.run(graph, request, options), graph)
        if request.kind.needs_engine:
            return _answered_once(graph, request, options)
        with open_analysis(request.analysis, graph, options) as analysis:
            return with_names(analysis.complete(analysis.run(*request.query)), graph)

    either, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    function: Any = row.shown(
        call,
        [inspect.Parameter("graph", either, annotation="Graph")],
        [
            inspect.Parameter("device", named, default=None, annotation="str | None"),
            inspect.Parameter("threads", named, default=None, annotation="int | None"),
        ],
        _GRAPH,
        _WHERE,
        "DeviceError\n    The device is not there, or cannot run the algorithm.\n",
    )
    function.__module__ = "hetero_bfs"
    made: Call[P, R] = function
    return made


def _answered_once(graph: Graph, request: Request[R], options: EngineOptions) -> R:
    if request.reverse:
        graph = (graph if isinstance(graph, SearchGraph) else build_search_graph(graph)).reversed()
    with Engine(graph, **options.settings()) as engine:
        return engine.answer(request._replace(reverse=False))


_KEPT: dict[tuple[int, bool], tuple[list[Any], list[Any], CSRGraph]] = {}
"""The state of a matrix, its arrays that the state names by id(), and its graph; by the id() of the
matrix, and whether its values were read; the last one used last."""


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
    constant = [array for array in arrays if is_private(array)]
    contents = [id(a) if is_private(a) else digest_of(a) for a in arrays]
    state = [given.shape, *((a.dtype.str, a.shape) for a in arrays), *contents]
    key = id(given), weighted
    kept = _KEPT.pop(key, None)
    if kept is None or kept[0] != state:
        kept = state, constant, _graph_of(given, weighted)
        try:
            if key not in _FOLLOWED:
                weakref.finalize(given, _forget, key).atexit = False
        except TypeError:
            return kept[-1]
        _FOLLOWED.add(key)
    _KEPT[key] = kept
    for oldest in list(_KEPT)[:-MOST_KEPT]:
        _KEPT.pop(oldest, None)
    return kept[-1]


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
