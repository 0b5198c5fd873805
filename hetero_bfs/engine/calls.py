"""Functions of a graph, without an engine to open and close.

Calls that name a device or threads open an engine for themselves. All others share what
is kept of their graph (kept.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from hetero_bfs.algorithms.base import Request, open_analysis
from hetero_bfs.algorithms.table import rows
from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.engine.engine import Engine
from hetero_bfs.engine.kept import Graph, kept_of
from hetero_bfs.engine.kept_matrices import graph_of, num_vertices_of
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import check_edge_source
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.tables import is_matrix
from hetero_bfs.graph.vertex_names import with_names
from hetero_bfs.options import EngineOptions
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
        _check_graph(graph)
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


def _check_graph(graph: Any) -> None:
    if not (isinstance(graph, CSRGraph | SearchGraph) or is_matrix(graph)):
        check_edge_source(graph)


def _answered_once(graph: Graph, request: Request[R], options: EngineOptions) -> R:
    if request.reverse:
        graph = (graph if isinstance(graph, SearchGraph) else build_search_graph(graph)).reversed()
    with Engine(graph, **options.settings()) as engine:
        return engine.answer(request._replace(reverse=False))
