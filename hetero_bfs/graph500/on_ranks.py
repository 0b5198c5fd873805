"""A run on several ranks, with the graph distributed among them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numba
import numpy as np

from hetero_bfs.algorithms.bfs.ranks_host import usual_threads
from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.errors import AgreedError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.weights import weight_dtype_of
from hetero_bfs.graph500.bfs_on_ranks import RankBFS
from hetero_bfs.graph500.kernel import Graph500Options, Kernel, KernelName, Processes
from hetero_bfs.graph500.sssp_on_ranks import RankSSSP
from hetero_bfs.ranks.communicator import Communicator, agreed, run_ranks
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.partition import FileShare, KroneckerShare, RankGraph, read_share
from hetero_bfs.support import memory
from hetero_bfs.support.messages import hidden

T = TypeVar("T")

_KEY_BYTES = 8
_VERTEX_BYTES = 64
"""Approximate bytes of a rank for each vertex that it owns, before and after renumbering."""
_REPLICATED_BYTES = 4 + 8
"""Bytes of a rank for each vertex of the graph: old ids of columns, and messages to other ranks."""
_WEIGHT_BYTES = 4
_SORTED_BYTES = 24
"""Bytes of an entry of weighted lists besides its key: weights, neighbours, copies of both."""

_KERNELS: dict[KernelName, type[RankBFS | RankSSSP]] = {"bfs": RankBFS, "sssp": RankSSSP}


class ManyRanks(Processes):
    """The ranks of a run; the edges and the graph are distributed among them."""

    share: FileShare
    graph: RankGraph

    def __init__(self, options: Graph500Options, communicator: Communicator) -> None:
        self.options, self._communicator = options, communicator
        self.size, self.host_size = communicator.size, communicator.host_size
        self._kernel = _KERNELS[options.kernel]
        self._threads = options.engine.threads or usual_threads(communicator)
        numba.set_num_threads(min(self._threads, numba.get_num_threads()))
        self._weights = np.dtype(np.float32)
        self._answer = np.zeros(1, np.int64)

    def check(self) -> None:
        """Refuse options that need one process, and a generated graph that does not fit."""
        if len(set(self._communicator.collect(repr(self.options)))) > 1:
            raise AgreedError("the ranks were started with different options; give all the same")
        _check_options(self.options)
        if self.options.graph is None:
            self.agreed(self._check_memory)

    def agreed(self, work: Callable[[], T]) -> T:
        return agreed(self._communicator, work)

    def compile(self) -> None:
        """Compile all kernels with a graph large enough for several threads.

        One rank of each host compiles before the others.
        """
        edges = KroneckerEdges(12, weighted=self.options.weighted).materialise()
        edges = replace(edges, directed=self.options.directed)
        if edges.weights is not None:
            edges = replace(edges, weights=edges.weights.astype(self._weights))
        arguments = edges, self._threads, self.options.validate
        with hidden():
            for first in (True, False):
                if (self._communicator.host_rank == 0) == first:
                    run_ranks(1, lambda alone: self._kernel.compile(alone, *arguments))
                self._communicator.barrier()

    def read(self) -> list[str]:
        options, communicator = self.options, self._communicator
        started = time.perf_counter()
        if options.graph is None:
            edges = options.generator()
            generated = KroneckerShare(edges, communicator.rank, communicator.size)
            kept = generated if options.regenerate else generated.materialise()
            self.share = FileShare(kept, edges.num_input_edges, None)
        else:
            weighted, directed = options.weighted, options.directed
            self.share = read_share(communicator, options.graph, weighted, directed)
            self._weights = weight_dtype_of(self.share.edges) or self._weights
        self.generation_seconds = self._slowest(time.perf_counter() - started)
        self.num_vertices = self.share.edges.num_vertices
        self.num_input_edges = self.share.num_input_edges
        return []

    def construct(self) -> None:
        share = self.share
        started = time.perf_counter()
        self.graph = construct(
            self._communicator, share.edges, share.num_input_edges, share.input_degree
        )
        self.construction_seconds = self._slowest(time.perf_counter() - started)

    def is_isolated(self, vertex: int) -> bool:
        """Ask the owner whether a vertex has no edge to another one."""
        self._answer[0] = self.graph.searched_id(vertex) is not None
        self._communicator.reduce_to_all(self._answer, "max")
        return not self._answer[0]

    def open(self) -> Kernel:
        started = time.perf_counter()
        kernel = self._kernel(
            self._communicator, self.graph, self.share, self.options.engine, self._threads
        )
        kernel.open_seconds = self._slowest(time.perf_counter() - started)
        return kernel

    def least(self, number: int) -> int:
        numbers: list[int] = self._communicator.collect(number)
        return min(numbers)

    def figures(self) -> dict[str, Any]:
        communicator, graph = self._communicator, self.graph
        return {
            "order": "degree",
            "searched_vertices": int(graph.partition.sizes.sum()),
            "edge_passes": None,
            "hosts": communicator.num_hosts,
            "threads": self._threads,
            "rank_bytes": max(communicator.collect(_graph_bytes(graph))),
            "replicated_bytes": graph.replicated_bytes,
        }

    def _slowest(self, seconds: float) -> float:
        return float(max(self._communicator.collect(seconds)))

    def _check_memory(self) -> None:
        """Raise `GraphError` if the ranks of this host need more memory than is free."""
        options, ranks, host_ranks = self.options, self.size, self.host_size
        edges = options.generator()
        held = 2 * (_KEY_BYTES + _SORTED_BYTES * options.weighted)  # an edge in both directions
        if not options.regenerate:
            held += _KEY_BYTES + _WEIGHT_BYTES * options.weighted
        share = KroneckerShare(edges, self._communicator.rank, ranks)
        need = held * share.num_input_edges
        need += _VERTEX_BYTES * edges.num_vertices // ranks
        need += _REPLICATED_BYTES * edges.num_vertices
        need += self._kernel.shared_bytes_per_vertex * edges.num_vertices // host_ranks
        memory.check_free_memory(
            need * host_ranks,
            f"a graph of scale {options.scale} on {ranks} ranks, {host_ranks} of them on this "
            "machine,",
            "choose --regenerate, a smaller scale or more machines",
        )


def _check_options(options: Graph500Options) -> None:
    """Raise `AgreedError` for options that need one process; all ranks have the same."""
    engine = options.engine
    refused = {
        f"--selector {engine.selector}": engine.selector in ("daga", "yasui", "zhang"),
        "--device of --kernel sssp": options.kernel == "sssp"
        and engine.device not in (None, NO_DEVICE),
        "--order": engine.order not in ("auto", "degree"),
        "--power-log": options.power_log is not None,
        "--optimize": engine.optimize != "time",
        "--no-correction": not engine.correction,
        "--decision-interval": engine.decision_interval != 1,
        "--max-alloc": engine.max_alloc_bytes is not None,
        "--device-memory": engine.device_memory_bytes is not None,
    }
    for name, given in refused.items():
        if given:
            raise AgreedError(f"{name} needs a single process; start without mpirun")


def _graph_bytes(graph: RankGraph) -> int:
    arrays: list[Any] = [graph.degree, graph.first, graph.input_degree]
    for lists in (graph.graph, graph.graph.transpose)[: 1 + graph.graph.directed]:
        arrays += [lists.indptr, lists.indices]
    return sum(int(array.nbytes) for array in arrays)
