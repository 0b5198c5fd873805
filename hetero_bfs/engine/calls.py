"""Functions of a graph, without an engine to open and close.

Calls that name a device, threads or a selector open an engine for themselves. All others share what
is kept of their graph (kept.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

import numpy.typing as npt

from hetero_bfs.algorithms.base import open_analysis
from hetero_bfs.algorithms.bfs.query import (
    ManyWant,
    Query,
    Vertices,
    Want,
    check_many,
    check_query,
)
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.serial import answer_serially
from hetero_bfs.algorithms.multi_source.algorithm import search_many_serially
from hetero_bfs.algorithms.multi_source.result import ManySearches
from hetero_bfs.algorithms.table import rows
from hetero_bfs.engine.engine import Engine
from hetero_bfs.engine.kept import Graph, kept_of
from hetero_bfs.engine.kept_matrices import graph_of, num_vertices_of
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import check_edge_source
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.tables import is_matrix
from hetero_bfs.graph.vertex_names import with_names
from hetero_bfs.options import EngineOptions, refuses_devices
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
    "cpu" for none. By default one thread answers until an engine pays (see `bfs`), and then the
    place runs that the speed model predicts to be faster.
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
    """Return the function of an algorithm, given its method in the table."""
    row = rows()[method.__name__]

    @refuses_devices
    def call(*args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
        graph, device, threads = (given.pop(name, None) for name in ("graph", "device", "threads"))
        _check_graph(graph)
        request = row.ask(num_vertices_of(graph), **given)  # before the graph is built
        graph = graph_of(graph, request.kind.needs_weights)
        options = EngineOptions(device=device, threads=threads)
        if device is None and threads is None:
            with kept_of(graph) as kept:
                return with_names(kept.run(graph, request, options), graph)
        with open_analysis(request.kind, graph, options) as analysis:
            return with_names(analysis.complete(analysis.run(*request.query)), graph)

    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function: Any = row.shown(
        call,
        [inspect.Parameter("graph", either, annotation="Graph")],
        [
            inspect.Parameter("device", either, default=None, annotation="str | None"),
            inspect.Parameter("threads", either, default=None, annotation="int | None"),
        ],
        _GRAPH,
        _WHERE,
        "DeviceError\n    The device is not there, or cannot run the algorithm.\n",
    )
    function.__module__ = "hetero_bfs"
    made: Call[P, R] = function
    return made


@refuses_devices
def bfs(
    graph: Graph,
    source: Vertices,
    selector: str = "auto",
    *,
    depth_limit: int | None = None,
    target: int | None = None,
    mask: npt.ArrayLike | None = None,
    reverse: bool = False,
    want: Want = "parents",
    dtype: npt.DTypeLike = "int64",
    device: str | None = None,
    threads: int | None = None,
) -> BFSResult:
    """Search a graph.

    One thread answers the first calls on a graph. Once they have taken as long as it takes to open
    an engine, one opens and answers later calls; it closes with the graph. Calls with a `selector`,
    `device` or `threads` open an engine each. `Engine.bfs` describes the arguments; `EngineOptions`
    describes `device` and `threads`.
    """
    _check_graph(graph)
    # Before the graph is built:
    query = check_query(
        num_vertices_of(graph), source, depth_limit, target, mask, reverse, want, dtype
    )
    options = EngineOptions(selector, device=device, threads=threads)
    return _answered(graph, query, options, Engine.ask, Engine.answer, answer_serially)


@refuses_devices
def bfs_many(
    graph: Graph,
    sources: Iterable[int],
    *,
    depth_limit: int | None = None,
    mask: npt.ArrayLike | None = None,
    reverse: bool = False,
    want: ManyWant = "levels",
    device: str | None = None,
    threads: int | None = None,
) -> ManySearches:
    """Search from many vertices; an engine does 64 of them at a time.

    It runs on the CPU, so `device` is "cpu" or None. Engines open as for `bfs`. `Engine.bfs_many`
    describes the other arguments, and `EngineOptions` describes `threads`.
    """
    _check_graph(graph)
    query = check_many(num_vertices_of(graph), sources, depth_limit, mask, reverse, want)
    if device not in (None, "cpu"):
        raise ArgumentError(
            f"device is {shown(device)}, and multi-source searches run on the CPU; give device="
            '"cpu", or leave it out'
        )
    options = (
        _USUAL
        if device is None and threads is None
        else EngineOptions(device="cpu", threads=threads)
    )
    ways = Engine.ask_many, Engine.answer_many, _many_serially
    return _answered(graph, query, options, *ways, len(query.sources))


def _answered(
    graph: Graph,
    query: Query,
    options: EngineOptions,
    by_kept: Callable[[Engine, Query], R],
    by_own: Callable[[Engine, Query], R],
    by_one_thread: Callable[[CSRGraph, Query], R],
    searches: int = 1,
) -> R:
    """Answer with what is kept of the graph, or by an engine of its own for unusual options.

    A kept engine reverses a graph itself. An own one opens on the reversed graph.
    """
    graph = graph_of(graph, weighted=False)
    if options != _USUAL:
        with Engine(_along(graph, query.reverse), **options.settings()) as engine:
            return by_own(engine, query)
    with kept_of(graph) as kept:
        found = kept.answer(
            graph,
            Engine,
            options,
            lambda engine: by_kept(engine, query),
            lambda: by_one_thread(kept.lists(graph), query),
            searches,
        )
    return with_names(found, graph)


def _many_serially(graph: CSRGraph, query: Query) -> ManySearches:
    each = replace(query, want="levels")
    return search_many_serially(
        query,
        graph.num_vertices,
        lambda source: answer_serially(graph, replace(each, sources=(source,))),
    )


def _check_graph(graph: Any) -> None:
    if not (isinstance(graph, SearchGraph) or is_matrix(graph)):
        check_edge_source(graph)


def _along(graph: Graph, reverse: bool) -> Graph:
    """Return the graph to search: its transpose if `reverse`."""
    if not reverse:
        return graph
    return (graph if isinstance(graph, SearchGraph) else build_search_graph(graph)).reversed()
