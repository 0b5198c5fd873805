"""A few engines of converted graphs, opened when they save time and kept for later calls."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import networkx as nx
import numpy as np
import numpy.typing as npt

from hetero_bfs.algorithms.bfs.serial import search_from
from hetero_bfs.algorithms.sssp.serial import distances_by_weight
from hetero_bfs.engine.calls import opening_seconds, search_seconds
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import ForkError, GraphError
from hetero_bfs.graph.lists import ListedEdges
from hetero_bfs.networkx_backend.conversion import ConvertedGraph

MOST_OPEN = 4
"""Most engines open at the same time: each has threads, and a copy of its graph."""

_LOCK = threading.RLock()
_OPEN: OrderedDict[int, Engine] = OrderedDict()
"""Engines by the id() of their graph, the most recently used one last."""

_SPENT: weakref.WeakKeyDictionary[ConvertedGraph, float] = weakref.WeakKeyDictionary()
"""Seconds that searches without an engine have taken."""


def _after_fork() -> None:
    """Reset the pool in a child: a thread that exists only in the parent may hold the lock.

    The engines belong to the parent; closing one in another process has no effect.
    """
    global _LOCK, _OPEN
    _LOCK = threading.RLock()
    _OPEN = OrderedDict()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def engine_of(graph: ConvertedGraph) -> Iterator[Engine]:
    """Lend the graph's engine to one thread at a time; open it if necessary.

    Raises `GraphError` without enough free memory, `ForkError` in a process that was forked after
    compiled loops had run.
    """
    with _LOCK:
        key = id(graph)
        if key not in _OPEN:
            edges = ListedEdges(graph.successors, graph.directed, graph.weights)
            device = nx.config.backends.hetero.device
            engine = Engine(edges, device=device, correction=False)
            _OPEN[key] = engine
            weakref.finalize(graph, _close, key)
            if len(_OPEN) > MOST_OPEN:
                _close(next(iter(_OPEN)))
        _OPEN.move_to_end(key)
        yield _OPEN[key]


def _close(key: int) -> None:
    with _LOCK:
        engine = _OPEN.pop(key, None)
    if engine is not None:
        engine.close()


def levels_from(graph: ConvertedGraph, source: int, coming: int = 1) -> npt.NDArray[np.int32]:
    """Return each node's distance from the source, int32, -1 where not reached.

    `source` is an id. `coming` is the number of searches that the caller will make, this one
    included.
    """
    expected = (coming - 1) * search_seconds(graph.num_entries)
    if _engine_pays(graph, expected):
        with suppress(GraphError, ForkError), engine_of(graph) as engine:
            return engine.bfs(source).level
    with _noted(graph):  # one thread, which needs neither an engine's memory nor other threads
        return search_from(graph.successors, source).levels()


def reach_of(
    graph: ConvertedGraph, sources: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    """Return, for each source, the number of reached nodes and the largest distance."""
    if sources.size == 1:
        level = levels_from(graph, int(sources[0]))
        return np.array([np.count_nonzero(level >= 0)]), level.max(keepdims=True)
    if _engine_pays(graph, sources.size * search_seconds(graph.num_entries)):
        with suppress(GraphError, ForkError), engine_of(graph) as engine:
            sums = engine.bfs_many(sources.tolist(), want="sums")
            return sums.reached, sums.eccentricity
    with _noted(graph):
        found = np.empty((2, sources.size), np.int64)
        for i, source in enumerate(sources.tolist()):
            search = search_from(graph.successors, source)
            found[:, i] = search.queue.size, search.ends.size - 2
    return found[0], found[1]


def distances_from(
    graph: ConvertedGraph,
    weights: npt.NDArray[np.float64],
    source: int,
    limit: float = math.inf,
) -> npt.NDArray[np.float64]:
    """Infinite above the limit."""
    if limit == math.inf and _engine_pays(graph):
        with suppress(GraphError, ForkError), engine_of(graph) as engine:
            return engine.sssp(source).distance
    with _noted(graph):
        distance, parent = np.full(len(graph), np.inf), np.empty(len(graph), np.uint32)
        distances_by_weight(graph.successors, weights, [source], limit, distance, parent)
        return distance


@contextmanager
def _noted(graph: ConvertedGraph) -> Iterator[None]:
    began = time.perf_counter()
    yield
    _SPENT[graph] = _SPENT.get(graph, 0.0) + time.perf_counter() - began


def _engine_pays(graph: ConvertedGraph, expected: float = 0.0) -> bool:
    """Whether an engine is open, or searches without one would take longer than opening it.

    These are past searches, and future ones that take `expected` seconds.
    """
    if id(graph) in _OPEN:
        return True
    opening = opening_seconds(graph.num_entries, graph.weights is not None)
    return _SPENT.get(graph, 0.0) + expected > opening
