"""NetworKit, python-graphblas and cuGraph (cugraph.py) beside our algorithms, where installed.

Times are those of NetworKit's `run`, and of the functions of graphblas-algorithms, which has no
function for components. Both are given their graphs before, and graphblas-algorithms keeps what it
found of a graph (degrees, whether a weight is negative) from the first call on.

* Shortest paths: NetworKit's `Dijkstra` uses one core. It and graphblas-algorithms' Bellman-Ford
  find distances alone, ours are found with parents.
* PageRank: all stop at a total change of ranks, with NetworKit's L1 norm. NetworKit lets the mass
  of dangling vertices go in undirected graphs. That changes the sum of the ranks but not their
  ratios, so its ranks are divided by their sum before they are compared.
* Components: NetworKit's `ConnectedComponents` uses one core. FastSV (Zhang, Azad and Hu 2020)
  without samples is written here in python-graphblas, as LAGraph does it in C.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.libraries import (
    edges_once,
    graphblas_matrix,
    least_members,
    load_graphblas,
    load_networkit,
    networkit_graph,
    timed,
    usual_spinning,
)
from benchmarks.programs.contest import Run
from benchmarks.programs.cugraph import CuGraph
from hetero_bfs.algorithms.pagerank.host import PageRankSettings
from hetero_bfs.graph.csr import CSRGraph

_LIBRARY_EDGES = 1 << 25  # stored edges up to which they take part


class NetworKit:
    packages = ("networkit",)
    most_edges = _LIBRARY_EDGES

    def __init__(self, graph: CSRGraph, threads: int) -> None:
        self.networkit = load_networkit()
        self.networkit.setNumberOfThreads(threads)
        self.graph = networkit_graph(self.networkit, edges_once(graph))

    def paths(self) -> dict[str, Run]:
        return {"NetworKit Dijkstra": self._distances}

    def ranks(self, settings: PageRankSettings) -> dict[str, Run]:
        return {"NetworKit PageRank": partial(self._ranks, settings)}

    def components(self) -> dict[str, Run]:
        kinds = "ConnectedComponents", "ParallelConnectedComponents"
        return {f"NetworKit {kind}": partial(self._labels, kind) for kind in kinds}

    def _distances(self, source: int) -> tuple[float, npt.NDArray[np.float64]]:
        search = self.networkit.distance.Dijkstra(self.graph, source, storePaths=False)
        seconds, _ = timed(search.run)
        distance = np.array(search.getDistances())
        return seconds, np.where(distance == np.finfo(np.float64).max, np.inf, distance)

    def _ranks(self, settings: PageRankSettings, _: int) -> tuple[float, npt.NDArray[np.float64]]:
        centrality = self.networkit.centrality
        ranking = centrality.PageRank(self.graph, settings.alpha, settings.change)
        ranking.norm, ranking.maxIterations = centrality.Norm.L1_NORM, settings.max_iter
        seconds, _ = timed(ranking.run)
        rank = np.array(ranking.scores())
        return seconds, rank / rank.sum()

    def _labels(self, kind: str, _: int) -> tuple[float, npt.NDArray[np.int64]]:
        search = getattr(self.networkit.components, kind)(self.graph)
        seconds, _ = timed(search.run)
        return seconds, least_members(np.array(search.getPartition().getVector(), np.int64))


class GraphBLAS:
    packages = ("python-graphblas", "suitesparse-graphblas", "graphblas-algorithms")
    most_edges = _LIBRARY_EDGES

    def __init__(self, graph: CSRGraph, threads: int) -> None:
        self.graphblas = load_graphblas()
        self.library = importlib.import_module("graphblas_algorithms")
        self.graphblas.ss.config["nthreads"] = threads
        values = 1.0 if graph.weights is None else graph.weights
        self.matrix = graphblas_matrix(self.graphblas, graph, values)
        self.graph = self.library.Graph(self.matrix)

    def paths(self) -> dict[str, Run]:
        return {"GraphBLAS Bellman-Ford": self._distances}

    def ranks(self, settings: PageRankSettings) -> dict[str, Run]:
        return {"GraphBLAS pagerank": partial(self._ranks, settings)}

    def components(self) -> dict[str, Run]:
        return {"GraphBLAS FastSV": self._labels}

    def _distances(self, source: int) -> tuple[float, npt.NDArray[np.float64]]:
        search = self.library.algorithms.single_source_bellman_ford_path_length
        seconds, distance = timed(search, self.graph, source)
        return seconds, distance.to_dense(fill_value=np.inf, dtype=np.float64)

    def _ranks(self, settings: PageRankSettings, _: int) -> tuple[float, npt.NDArray[np.float64]]:
        tol = settings.change / self.matrix.nrows  # which it multiplies by the number of vertices
        run = partial(self.library.algorithms.pagerank, max_iter=settings.max_iter, tol=tol)
        seconds, rank = timed(run, self.graph, settings.alpha)
        return seconds, rank.to_dense()

    def _labels(self, _: int) -> tuple[float, npt.NDArray[np.int64]]:
        seconds, label = timed(fast_sv, self.graphblas, self.matrix)
        return seconds, label.to_dense().astype(np.int64)


def fast_sv(graphblas: Any, matrix: Any) -> Any:
    """Return a vector of the least vertex of each vertex's component; the matrix is symmetric."""
    n, semiring, least = matrix.nrows, graphblas.semiring, graphblas.binary.min
    rows, parent = np.arange(n + 1), np.arange(n, dtype=np.uint64)
    pointers = graphblas.Vector.from_dense(parent)
    grandparents = pointers.dup()
    while True:
        nearby = semiring.min_second["UINT64"](matrix @ grandparents).new()
        tree = graphblas.Matrix.from_csr(rows, parent, True, ncols=n)
        pointers(least) << semiring.min_first["UINT64"](nearby @ tree)  # hooks the roots
        pointers(least) << nearby
        pointers(least) << grandparents
        parent = pointers.to_dense()
        found = pointers[parent].new()
        if found.isequal(grandparents):
            return found
        grandparents = found


_LIBRARIES = NetworKit, GraphBLAS, CuGraph


def add_peers(
    runs: dict[str, Run],
    graph: CSRGraph,
    options: argparse.Namespace,
    entries: Callable[[Any], dict[str, Run]],
    libraries: Sequence[Any] = _LIBRARIES,
) -> None:
    """Add those `entries` of the libraries that are installed, and say which are not."""
    for library in _installed(libraries, graph, options.threads):
        runs.update(entries(library))


def _installed(libraries: Sequence[Any], graph: CSRGraph, threads: int) -> Iterator[Any]:
    for library in libraries:
        if graph.num_stored_edges > library.most_edges:
            continue
        try:
            with usual_spinning():
                opened = library(graph, threads)
        except ImportError:
            what, packages = library.__name__, " ".join(library.packages)
            print(f"{what} is left out: pip install {packages}", file=sys.stderr)
        else:
            yield opened


def releases() -> str:
    """Return the versions of the installed libraries of Python that take part."""
    found = []
    for package in ("scipy", "networkx", *(name for one in _LIBRARIES for name in one.packages)):
        with suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return ", ".join(found)
