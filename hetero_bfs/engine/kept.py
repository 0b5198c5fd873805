"""Answers calls on a graph by one thread at first, and by engines once these have paid.

An engine answers faster than one thread, but relabels and uploads the graph and compiles when it
opens; `scheduling/run_chooser.py` decides. Opened engines are kept by graph, few of them, and
their copies of graphs within a share of the memory. They close with their graph.

`hb.bfs` and the other functions, the NetworkX backend and `hetero_bfs.csgraph` all answer this way.
"""

from __future__ import annotations

import itertools
import mmap
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self, TypeVar, cast

import numpy as np

from hetero_bfs.algorithms.base import (
    RUNS_OF_AN_ENGINE,
    Analysis,
    Request,
    check_weights,
    open_analysis,
)
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import ForkError, GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.list_checks import refuse_changed
from hetero_bfs.graph.lists import ListedEdges
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph.weights import weight_dtype_of
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.run_chooser import (
    EngineChooser,
    Kind,
    learn_opening,
    opening_seconds,
)
from hetero_bfs.support.memory import release_when_short, usable_bytes

Graph = CSRGraph | EdgeSource | SearchGraph
Opened = Engine | Analysis[Any]
O = TypeVar("O", bound=Opened)  # noqa: E741
R = TypeVar("R")

MOST_KEPT = 4
"""Most graphs whose engines stay open: each has threads, and a copy of its graph."""

_MOST_SHARE = 0.25
"""Most memory of all kept graphs, as a share of the machine's."""


class KeptGraph:
    """The common state of calls on one graph: seconds spent without an engine, and the open engine.

    It does not refer to the caller's graph, which is passed to each call.
    """

    def __init__(self, is_kept: bool = False) -> None:
        self.used = 0
        self._is_kept = is_kept
        self._lock = threading.Lock()
        self.chooser = EngineChooser()
        self._fits = True
        """Whether an opened engine could be kept."""
        self._lists: CSRGraph | None = None
        self._graph: SearchGraph | None = None
        self._opened: dict[tuple[Kind, EngineOptions], Opened] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_kept:
            self.close()

    @property
    def is_open(self) -> bool:
        return bool(self._opened)

    @property
    def num_bytes(self) -> int:
        held = self._lists, self._graph
        return sum(_bytes_of(one) for one in held if one is not None)

    def close(self) -> None:
        """Close and forget the open engines; one that another call uses stays."""
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _close(self) -> None:
        opened, self._opened = self._opened, {}
        self._graph = self._lists = None
        self.chooser.forget_engines()
        for one in opened.values():
            one.close()

    def lists(self, graph: Graph) -> CSRGraph:
        """Return a graph's neighbour lists in the caller's ids; other sources are read once."""
        if isinstance(graph, CSRGraph):
            if not (is_private(graph.indptr) and is_private(graph.indices)):
                refuse_changed(graph.indptr, graph.indices, graph.num_vertices)
            return graph
        if self._lists is None:
            self._lists = CSRGraph.from_edge_source(cast(EdgeSource, graph))
        return self._lists

    def answer(
        self,
        graph: Graph,
        kind: type[O],
        options: EngineOptions,
        by_engine: Callable[[O], R],
        by_one_thread: Callable[[], R],
        searches: int = 1,
        further: int = 0,
    ) -> R:
        """Return the answer of an engine or `Analysis` if that pays, else of one thread.

        `graph` is what is opened, the same in all calls; for a SearchGraph `by_one_thread` is not
        called. That makes a number of `searches`, and the caller expects to need `further` ones.
        """
        self.used = next(_CLOCK)
        held = self._graph, self._lists
        try:
            if self._pays(graph, kind, options, searches + further):
                with self._lock:
                    opened = self._open(graph, kind, options)
                    if opened is not None:
                        began = time.perf_counter()
                        found = by_engine(cast(O, opened))
                        seconds = time.perf_counter() - began
                        self.chooser.learn_engine(kind, seconds, searches)
                        return found
            return self._timed(graph, kind, by_one_thread, searches)
        finally:
            if held != (self._graph, self._lists):
                self._fits = _make_room(self)

    def run(self, graph: Graph, request: Request[R], options: EngineOptions) -> R:
        """Run an algorithm; raise `GraphError` if the graph lacks weights that it needs."""
        kind, query = request.kind, request.query
        check_weights(kind, graph)

        def by_one_thread() -> R:
            return kind.by_one_thread(self.lists(graph), *query)

        if kind.needs_engine:
            searches = request.searches
            return self.answer(
                graph, Engine, options, lambda one: one.answer(request), by_one_thread, searches
            )
        return self.answer(
            graph, request.analysis, options, lambda runs: runs.run(*query), by_one_thread
        )

    def _timed(self, graph: Graph, kind: Kind, by_one_thread: Callable[[], R], searches: int) -> R:
        lists, began = self._lists, time.perf_counter()
        answer = by_one_thread()
        seconds, has_read = time.perf_counter() - began, lists is not self._lists
        self.chooser.learn_serial(kind, seconds, searches, _num_entries(graph), has_read)
        return answer

    def _pays(self, graph: Graph, kind: Kind, options: EngineOptions, searches: int) -> bool:
        """Tell whether to answer by an engine, open or to be opened."""
        if isinstance(graph, SearchGraph):
            return True
        if (kind, options) in self._opened:
            return self.chooser.chooses_open_engine(kind)
        opening = self._opening_seconds(graph)
        return self.chooser.opens(kind, searches, _num_entries(graph), opening, self._fits)

    def _opening_seconds(self, graph: Graph) -> float:
        """Estimate the seconds of an engine beyond those that one thread needs, too."""
        has_lists = isinstance(graph, CSRGraph | ListedEdges) or self._lists is not None
        if self._graph is not None:
            return opening_seconds() if has_lists else 0.0
        if not has_lists:  # both read the edges
            return opening_seconds()
        return opening_seconds(_num_entries(graph), weight_dtype_of(graph) is not None)

    def _open(self, graph: Graph, kind: Kind, options: EngineOptions) -> Opened | None:
        """Return the engine, opened if necessary; None if one thread must answer."""
        key = kind, options
        if key in self._opened:
            return self._opened[key]
        # A copy of a SearchGraph does not keep the caller's alive.
        given = replace(graph) if isinstance(graph, SearchGraph) else graph
        estimate, began = self._opening_seconds(graph), time.perf_counter()
        builds = self._graph is None and isinstance(graph, CSRGraph | ListedEdges)
        held = self._graph or given
        try:
            opened: Opened
            if kind is Engine:
                opened = Engine(held, **options.settings())
            else:
                opened = open_analysis(kind, held, options, RUNS_OF_AN_ENGINE)
        except (GraphError, ForkError):  # one thread needs neither the memory nor other threads
            if isinstance(graph, SearchGraph):
                raise
            self.chooser.spent[kind] = 0.0
            return None
        learn_opening(kind, estimate, time.perf_counter() - began, builds)
        self._opened[key], self._graph = opened, opened.graph
        return opened


def _num_entries(graph: Any) -> int:
    stored = getattr(graph, "num_stored_edges", None)
    if stored is not None:
        return int(stored)
    return int(graph.num_input_edges) * (1 if graph.directed else 2)


def is_private(array: Any) -> bool:
    """Whether no caller can change an array: its memory is of `aligned_empty`, or read-only."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return not array.flags.writeable or isinstance(getattr(array.base, "obj", None), mmap.mmap)


def _bytes_of(held: Any) -> int:
    """Return the bytes of the arrays of a dataclass, of its fields and of a transposed graph."""
    if isinstance(held, np.ndarray):
        return int(held.nbytes)
    if not is_dataclass(held):
        return 0
    parts = [getattr(held, one.name) for one in fields(held)]
    return sum(map(_bytes_of, [*parts, vars(held).get("_transposed")]))


_CLOCK = itertools.count(1)
_LOCK = threading.RLock()
_KEPT: dict[int, KeptGraph] = {}
"""By the id() of the caller's graph, which removes its entry when it is no longer referenced."""


def kept_of(graph: Any) -> KeptGraph:
    """Return the state that is kept of a graph; it is forgotten with the graph.

    Use it in a `with` statement: of an object without weak references nothing is kept.
    """
    kept = _KEPT.get(id(graph))
    if kept is not None:
        return kept
    with _LOCK:
        if id(graph) not in _KEPT:
            try:
                weakref.finalize(graph, _forget, id(graph)).atexit = False
            except TypeError:
                return KeptGraph()
            _KEPT[id(graph)] = KeptGraph(is_kept=True)
        return _KEPT[id(graph)]


def _forget(key: int) -> None:
    with _LOCK:
        kept = _KEPT.pop(key, None)
    if kept is not None:
        kept.close()


def _make_room(newest: KeptGraph) -> bool:
    with _LOCK:
        every = list(_KEPT.values())
    held = [kept for kept in every if kept.num_bytes]  # a graph may be collected meanwhile
    held.sort(key=lambda kept: kept.used, reverse=True)
    room = _MOST_SHARE * usable_bytes()
    for number, kept in enumerate(held):
        room -= kept.num_bytes
        if number >= MOST_KEPT or room < 0:
            kept.close()
    return newest.num_bytes > 0


def close_all() -> None:
    with _LOCK:
        held = list(_KEPT.values())
    for kept in held:
        kept.close()


release_when_short(close_all)


def _after_fork() -> None:
    """Begin anew in a child: a thread that exists only in the parent may hold a lock.

    The engines belong to the parent; closing one in another process has no effect.
    """
    global _LOCK, _KEPT
    _LOCK = threading.RLock()
    _KEPT = {}


os.register_at_fork(after_in_child=_after_fork)
