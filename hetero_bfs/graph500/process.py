"""The processes of a run: they read the edges, build the graph, and open the kernel.

`OneProcess` and `ManyRanks` have the same methods. All ranks make the same calls. One process is
not a run of one rank, since a rank agrees on each level, and searches without an engine's streaming
and selectors, and for shortest paths with one thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from hetero_bfs.algorithms.bfs.check import RESULT_BYTES_PER_VERTEX, group_bytes
from hetero_bfs.algorithms.sssp.check import BYTES_PER_VERTEX
from hetero_bfs.engine import background_compiling
from hetero_bfs.errors import AgreedError, GraphError, HeteroBFSError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import CHUNK_EDGES, EdgeSource, VertexArray
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.lists import COUNTING, PLACING, build_bytes
from hetero_bfs.graph.relabel import Order
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph.weights import WeightArray, weight_dtype_of
from hetero_bfs.graph500.bfs_kernel import BFSKernel, RankBFS
from hetero_bfs.graph500.kernel import Graph500Options, Kernel, KernelName
from hetero_bfs.graph500.report import RanksFigures
from hetero_bfs.graph500.sssp_kernel import RankSSSP, SSSPKernel
from hetero_bfs.ranks.communicator import Communicator, agreed
from hetero_bfs.ranks.construction import construct as construct_parts
from hetero_bfs.ranks.partition import FileShare, KroneckerShare, RankGraph, read_share
from hetero_bfs.ranks.rank_run import prepare_on_all, slowest, usual_threads
from hetero_bfs.ranks.refusals import GRAPH500, GRAPH500_SSSP, refuse
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


class OneProcess:
    size = 1
    host_size = 1
    """Processes on this host."""
    error: type[HeteroBFSError] = GraphError
    """Raised if the graph has no keys."""
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
        """Build, search and validate a tiny graph, so that nothing compiles while it is timed.

        It has the types of the edges, if they are read already.
        """
        order = self.options.engine.order
        if self.options.kernel == "bfs":  # its engine needs that code
            background_compiling.start()
        with hidden():
            for each in self._orders if order == "auto" else (order,):
                graph = build_search_graph(self._tiny, each)
            _KERNELS[self.options.kernel].compile(self._tiny, graph)

    def read(self) -> list[str]:
        """Read or generate the edges; return notes."""
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
        """Tell whether a vertex has no edge to another one."""
        return self.graph.is_isolated(vertex)

    def open(self) -> Kernel:
        return _KERNELS[self.options.kernel](self.edges, self.graph, self.options.engine)

    def least(self, number: int) -> int:
        return number

    def figures(self) -> dict[str, Any]:
        """Return fields of the report."""
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
    """Build the graph; also return the seconds of each step, without the generation of edges."""
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


_KEY_BYTES = 8
_VERTEX_BYTES = 64
"""Approximate bytes of a rank for each vertex that it owns, before and after renumbering."""
_REPLICATED_BYTES = 4 + 8
"""Bytes of a rank for each vertex of the graph: old ids of columns, and messages to other ranks."""
_SORTED_BYTES = 24
"""Bytes of an entry of weighted lists besides its key: weights, neighbours, copies of both."""

_RANK_KERNELS: dict[KernelName, type[RankBFS | RankSSSP]] = {"bfs": RankBFS, "sssp": RankSSSP}


class ManyRanks:
    error = AgreedError
    share: FileShare
    graph: RankGraph

    def __init__(self, options: Graph500Options, communicator: Communicator) -> None:
        import numba

        self.options, self._communicator = options, communicator
        self.size, self.host_size = communicator.size, communicator.host_size
        self._kernel = _RANK_KERNELS[options.kernel]
        self._threads = options.engine.threads or usual_threads(communicator)
        numba.set_num_threads(min(self._threads, numba.get_num_threads()))
        self._weights = np.dtype(np.float32)
        self._answer = np.zeros(1, np.int64)

    def check(self) -> None:
        """Refuse options that need one process, and a generated graph that does not fit."""
        if len(set(self._communicator.collect(repr(self.options)))) > 1:
            raise AgreedError("the ranks were started with different options; give all the same")
        rows = GRAPH500 if self.options.kernel == "bfs" else GRAPH500_SSSP
        refuse(rows, vars(self.options) | vars(self.options.engine))
        if self.options.graph is None:
            agreed(self._communicator, self._check_memory)

    def compile(self) -> None:
        """Compile all kernels with a graph large enough for several threads.

        One rank of each host compiles before the others.
        """
        edges = KroneckerEdges(12, weighted=self.options.weighted).materialise()
        edges = replace(edges, directed=self.options.directed)
        if edges.weights is not None:
            edges = replace(edges, weights=edges.weights.astype(self._weights))
        arguments = Communicator(), edges, self._threads, self.options.validate
        with hidden():
            prepare_on_all(self._communicator, lambda: self._kernel.compile(*arguments))

    def read(self) -> list[str]:
        options, communicator = self.options, self._communicator
        started = time.perf_counter()
        if options.graph is None:
            share = self._generated()
            kept = share if options.regenerate else share.materialise()
            self.share = FileShare(kept, options.generator().num_input_edges, None)
        else:
            weighted, directed = options.weighted, options.directed
            self.share = read_share(communicator, options.graph, directed, weighted)
            self._weights = weight_dtype_of(self.share.edges) or self._weights
        self.generation_seconds = slowest(self._communicator, time.perf_counter() - started)
        self.num_vertices = self.share.edges.num_vertices
        self.num_input_edges = self.share.num_input_edges
        return []

    def _generated(self) -> KroneckerShare:
        rank, ranks = self._communicator.rank, self.size
        return KroneckerShare(**vars(self.options.generator()), rank=rank, ranks=ranks)

    def construct(self) -> None:
        share = self.share
        started = time.perf_counter()
        self.graph = construct_parts(
            self._communicator, share.edges, share.num_input_edges, share.input_degree
        )
        self.construction_seconds = slowest(self._communicator, time.perf_counter() - started)

    def is_isolated(self, vertex: int) -> bool:
        self._answer[0] = self.graph.searched_id(vertex) is not None
        self._communicator.reduce_to_all(self._answer, "max")
        return not self._answer[0]

    def open(self) -> Kernel:
        return self._kernel(
            self._communicator, self.graph, self.share, self.options.engine, self._threads
        )

    def least(self, number: int) -> int:
        numbers: list[int] = self._communicator.collect(number)
        return min(numbers)

    def figures(self) -> dict[str, Any]:
        communicator, graph = self._communicator, self.graph
        return {
            "order": "degree",
            "searched_vertices": int(graph.partition.sizes.sum()),
            "edge_passes": None,
            "ranks": RanksFigures(
                communicator.num_hosts,
                self._threads,
                max(communicator.collect(_graph_bytes(graph))),
                graph.replicated_bytes,
            ),
        }

    def _check_memory(self) -> None:
        options, ranks, host_ranks = self.options, self.size, self.host_size
        edges = options.generator()
        held = 2 * (_KEY_BYTES + _SORTED_BYTES * options.weighted)  # an edge in both directions
        if not options.regenerate:
            held += _KEY_BYTES + _WEIGHT_BYTES * options.weighted
        need = held * self._generated().num_input_edges
        need += _VERTEX_BYTES * edges.num_vertices // ranks
        need += _REPLICATED_BYTES * edges.num_vertices
        need += self._kernel.shared_bytes_per_vertex * edges.num_vertices // host_ranks
        memory.check_free_memory(
            need * host_ranks,
            f"a graph of scale {options.scale} on {ranks} ranks, {host_ranks} of them on this "
            "machine,",
            "choose --regenerate, a smaller scale or more machines",
        )


def _graph_bytes(graph: RankGraph) -> int:
    arrays: list[Any] = [graph.degree, graph.first, graph.input_degree]
    for lists in (graph.graph, graph.graph.transpose)[: 1 + graph.graph.directed]:
        arrays += [lists.indptr, lists.indices]
    return sum(int(array.nbytes) for array in arrays)
