"""Other libraries in comparisons: how they load, are timed, get our graphs, and label vertices."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

import hetero_bfs as hb

_SPINNING = "GOMP_SPINCOUNT"
ENVIRONMENT = dict(os.environ)
"""The peers', from before hetero_bfs shortens GNU OpenMP's spinning for itself."""


@contextmanager
def usual_spinning() -> Iterator[None]:
    """Let libraries that load within use OpenMP's default spinning, without hetero_bfs's change.

    They read the setting once, when they load.
    """
    ours = os.environ.pop(_SPINNING, None)
    if _SPINNING in ENVIRONMENT:
        os.environ[_SPINNING] = ENVIRONMENT[_SPINNING]
    try:
        yield
    finally:
        if ours is not None:
            os.environ[_SPINNING] = ours


def timed(function: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def load_networkit() -> Any:
    return importlib.import_module("networkit")


def load_graphblas() -> Any:
    """Return python-graphblas's module; ImportError if it or its back end is not installed."""
    graphblas = importlib.import_module("graphblas")
    _ = graphblas.Matrix  # raises if there is no back end
    return graphblas


def edges_once(graph: hb.CSRGraph) -> hb.EdgeList:
    """Return every edge of an undirected graph once, with its weight if there are any."""
    src = np.repeat(np.arange(graph.num_vertices, dtype=np.uint32), np.diff(graph.indptr))
    once = src < graph.indices
    weights = None if graph.weights is None else graph.weights[once]
    return hb.EdgeList(src[once], graph.indices[once], graph.num_vertices, weights=weights)


def networkit_graph(networkit: Any, edges: hb.EdgeList) -> Any:
    """Return NetworKit's graph of undirected edges, each given once."""
    ends = edges.src.astype(np.uint64), edges.dst.astype(np.uint64)
    if edges.weights is None:
        return networkit.graph.GraphFromCoo(ends, n=edges.num_vertices)
    weighted = edges.weights.astype(np.float64), ends
    return networkit.graph.GraphFromCoo(weighted, n=edges.num_vertices, weighted=True)


def graphblas_matrix(
    graphblas: Any, graph: hb.CSRGraph, values: bool | float | npt.NDArray[Any]
) -> Any:
    """Return python-graphblas's matrix of the lists, with a value for each or one for all."""
    indices = graph.indices.astype(np.uint64)
    return graphblas.Matrix.from_csr(graph.indptr, indices, values, ncols=graph.num_vertices)


def least_members(label: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the least vertex with the same label, for each vertex.

    Parameters
    ----------
    label : int64 array, shape (num_vertices,)
        Not negative, not necessarily each number in use.
    """
    least = np.full(label.max(initial=-1) + 1, label.size)
    np.minimum.at(least, label, np.arange(label.size))
    return least[label]
