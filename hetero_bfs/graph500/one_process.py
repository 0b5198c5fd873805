"""A run in one process, on the host and a device."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from hetero_bfs.algorithms.bfs.check import RESULT_BYTES_PER_VERTEX, group_bytes
from hetero_bfs.algorithms.sssp.check import BYTES_PER_VERTEX
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import CHUNK_EDGES, EdgeSource, VertexArray
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.lists import COUNTING, PLACING, build_bytes
from hetero_bfs.graph.relabel import Order
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.weights import WeightArray, weight_dtype_of
from hetero_bfs.graph500.bfs_kernel import BFSKernel
from hetero_bfs.graph500.kernel import Graph500Options, Kernel, KernelName, Processes
from hetero_bfs.graph500.sssp_kernel import SSSPKernel
from hetero_bfs.support import memory
from hetero_bfs.support.messages import hidden, setting

_LIST_BYTES_PER_EDGE = 8  # two vertex ids
_WEIGHT_BYTES = 4
_GRAPH_BYTES_PER_EDGE = 8  # neighbour lists, each edge twice
_SORTED_BYTES_PER_EDGE = 24  # the lists' weights, and lists by weight
_GRAPH_BYTES_PER_VERTEX = 36  # offsets 8, ids old and new 8, degrees 8, first neighbours 4, spare 8
_SEARCH_BYTES_PER_VERTEX = 34  # parents 4, bitmaps 1, queues and offsets 25, narrow offsets 4
_PATH_BYTES_PER_VERTEX = 70  # marks, queues and distances of a search 40, its result 24, spare 6

T = TypeVar("T")

_KERNELS: dict[KernelName, type[BFSKernel | SSSPKernel]] = {"bfs": BFSKernel, "sssp": SSSPKernel}


class OneProcess(Processes):
    """The one process of a run, with the edges and the graph."""

    edges: EdgeSource
    graph: SearchGraph

    def __init__(self, options: Graph500Options) -> None:
        self.options = options
        self._tiny: EdgeSource = tiny_graph(KroneckerEdges(1, weighted=options.weighted))
        self._orders: Sequence[Order] = ("degree",)
        """Orders that "auto" may choose."""

    def check(self) -> None:
        """Refuse a generated graph that does not fit in memory."""
        if self.options.graph is None:
            check_memory(self.options.generator())

    def compile(self) -> None:
        order = self.options.engine.order
        with hidden():
            for each in self._orders if order == "auto" else (order,):
                graph = build_search_graph(self._tiny, each)
            _KERNELS[self.options.kernel].compile(self._tiny, graph)

    def read(self) -> list[str]:
        options = self.options
        notes: list[str] = []
        started = time.perf_counter()
        if options.graph is None:
            self.edges = generate(options.generator(), options.regenerate, notes)
        else:
            self.edges = read(options.graph, options.directed, options.weighted)
            self._tiny, self._orders = tiny_graph(self.edges), ("degree", "locality")
        self.generation_seconds = time.perf_counter() - started
        self.num_vertices = self.edges.num_vertices
        self.num_input_edges = self.edges.num_input_edges
        return notes

    def construct(self) -> None:
        """Build the graph; the time does not include generating edges."""
        self.graph, self.step_seconds = construct(self.edges, self.options.engine.order)
        self.construction_seconds = sum(self.step_seconds.values())
        if isinstance(self.edges, TimedEdges):
            self.generation_seconds = self.edges.pass_seconds[-1]

    def is_isolated(self, vertex: int) -> bool:
        return self.graph.is_isolated(vertex)

    def open(self) -> Kernel:
        return _KERNELS[self.options.kernel](self.edges, self.graph, self.options.engine)

    def figures(self) -> dict[str, Any]:
        edges = self.edges
        return {
            "order": self.graph.relabelling.order,
            "searched_vertices": self.graph.num_searched,
            "step_seconds": self.step_seconds,
            "edge_passes": len(edges.pass_seconds) if isinstance(edges, TimedEdges) else None,
        }


@dataclass(frozen=True)
class TimedEdges(KroneckerEdges):
    """Edges that are generated in each pass over them, and the seconds of each pass."""

    pass_seconds: list[float] = field(default_factory=list, compare=False)

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        return self._timed(super().chunks(size))

    def weighted_chunks(
        self, size: int = CHUNK_EDGES
    ) -> Iterator[tuple[VertexArray, VertexArray, WeightArray]]:
        return self._timed(super().weighted_chunks(size))

    def _timed(self, chunks: Iterator[T]) -> Iterator[T]:
        number = len(self.pass_seconds)
        self.pass_seconds.append(0.0)
        while True:
            started = time.perf_counter()
            chunk = next(chunks, None)
            self.pass_seconds[number] += time.perf_counter() - started
            if chunk is None:
                return
            yield chunk


def construct(edges: EdgeSource, order: str) -> tuple[SearchGraph, dict[str, float]]:
    """Build the graph; also return the seconds of each step, without those of generating edges."""
    earlier = len(edges.pass_seconds) if isinstance(edges, TimedEdges) else 0
    graph = build_search_graph(edges, order)
    seconds = dict(graph.step_seconds)
    if isinstance(edges, TimedEdges):
        first, *others = edges.pass_seconds[earlier:]
        seconds[COUNTING] -= first
        seconds[PLACING] -= sum(others)
    return graph, seconds


def check_memory(generator: KroneckerEdges) -> None:
    """Raise `GraphError` if a run on this graph needs more memory than is free."""
    memory.check_free_memory(
        bytes_without_list(generator),
        f"a graph of scale {generator.scale}",
        f"choose a smaller {setting('scale')} or {setting('edgefactor')}",
    )


def generate(generator: KroneckerEdges, regenerate: bool, notes: list[str]) -> EdgeSource:
    """Generate the edges; return a generator if they are not held.

    `check_memory` must have passed.
    """
    need = bytes_without_list(generator)
    per_edge = _LIST_BYTES_PER_EDGE + _WEIGHT_BYTES * generator.weighted
    held = need + per_edge * generator.num_input_edges
    free = memory.free_bytes()
    if regenerate or held > free:
        if not regenerate:
            notes.append(
                f"edges are generated anew for each pass: with a list of them the run needs about "
                f"{held / memory.GIB:.1f} GiB of memory, {free / memory.GIB:.1f} GiB are free"
            )
        return TimedEdges(**vars(generator))
    return generator.materialise()


def bytes_without_list(edges: EdgeSource) -> int:
    """Estimate a run's peak memory in bytes, with groups of one search and no list of edges."""
    n, m = edges.num_vertices, edges.num_input_edges
    graph = _GRAPH_BYTES_PER_EDGE * m + _GRAPH_BYTES_PER_VERTEX * n
    if weight_dtype_of(edges) is None:
        search = (_SEARCH_BYTES_PER_VERTEX + RESULT_BYTES_PER_VERTEX) * n + group_bytes(n, 1, 0)
    else:
        search = (_PATH_BYTES_PER_VERTEX + BYTES_PER_VERTEX) * n
        search += _SORTED_BYTES_PER_EDGE * m
    return max(build_bytes(edges), graph + search)


def tiny_graph(edges: EdgeSource) -> EdgeSource:
    """Return a graph of two vertices of the same types as this one.

    Weights are 0, so that the search for parents of equal distance is compiled, too.
    """
    tiny = replace(KroneckerEdges(1).materialise(), directed=edges.directed)
    dtype: np.dtype[Any] | None = weight_dtype_of(edges)
    if dtype is not None:
        tiny = replace(tiny, weights=np.zeros(tiny.num_input_edges, dtype))
    return CSRGraph.from_edge_source(tiny) if isinstance(edges, CSRGraph) else tiny
