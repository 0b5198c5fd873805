"""The Graph500 protocol on several ranks: as protocol.py, with the graph distributed among them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numba
import numpy as np

from hetero_bfs.algorithms.bfs.ranks_host import usual_threads
from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.errors import AgreedError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph.weights import weight_dtype_of
from hetero_bfs.graph500.kernel import KernelName
from hetero_bfs.graph500.protocol import (
    NO_KEY,
    Graph500Options,
    drawn_keys,
    failure_of,
    few_keys,
    generator_of,
    scale_of,
)
from hetero_bfs.graph500.rank_bfs import RankBFS
from hetero_bfs.graph500.rank_report import RanksReport
from hetero_bfs.graph500.rank_sssp import RankSSSP
from hetero_bfs.graph500.report import KeyRecord
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.faults import agreed
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.ranks.shares import FileShare, KroneckerShare, read_share
from hetero_bfs.ranks.simulated import run_ranks
from hetero_bfs.support import memory
from hetero_bfs.support.progress import hidden, progress

_KEY_BYTES = 8
_VERTEX_BYTES = 64
"""Approximate bytes of a rank for each vertex that it owns, before and after renumbering."""
_REPLICATED_BYTES = 4 + 8
"""Bytes of a rank for each vertex of the graph: old ids of columns, and messages to other ranks."""
_HELD_BYTES = 1 << 27
"""Most bytes of a rank's results that wait for validation."""
_WEIGHT_BYTES = 4
_SORTED_BYTES = 24
"""Bytes of an entry of weighted lists besides its key: weights, neighbours, copies of both."""

_KERNELS: dict[KernelName, type[RankBFS | RankSSSP]] = {"bfs": RankBFS, "sssp": RankSSSP}


def run_on_ranks(options: Graph500Options, communicator: Communicator) -> RanksReport:
    """Run the benchmark on all ranks; each returns the report.

    Raises
    ------
    AgreedError
        On all ranks: the graph or an option cannot be used.
    """
    if len(set(communicator.collect(repr(options)))) > 1:
        raise AgreedError("the ranks were started with different options; give all the same")
    _check_options(options)
    threads = options.engine.threads or usual_threads(communicator)
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    if options.graph is None:
        _compile(communicator, options, threads, np.dtype(np.float32))
    started = time.perf_counter()
    share = _share(communicator, options)
    generation = _slowest(communicator, time.perf_counter() - started)
    if options.graph is not None:
        _compile(communicator, options, threads, weight_dtype_of(share.edges))
    started = time.perf_counter()
    graph = construct(communicator, share.edges, share.num_input_edges, share.input_degree)
    construction = _slowest(communicator, time.perf_counter() - started)
    keys = _keys(communicator, graph, options)
    started = time.perf_counter()
    kernel = _KERNELS[options.kernel](communicator, graph, options.engine, threads)
    try:
        opened = _slowest(communicator, time.perf_counter() - started)
        validator = kernel.make_validator(share) if options.validate else None
        together = _most_back_to_back(communicator, graph, kernel.held_bytes, len(keys))
        kernel.search(keys[:together])
        records: list[KeyRecord] = []
        groups = [keys[start : start + together] for start in range(0, len(keys), together)]
        for group in progress(groups, "searching"):
            records += [_record(kernel, result, validator) for result in kernel.search(group)]
        if validator is not None:
            validator.close()
        return kernel.make_report(
            scale=scale_of(options, graph.num_vertices),
            edgefactor=share.num_input_edges / graph.num_vertices,
            order="degree",
            searched_vertices=int(graph.partition.sizes.sum()),
            num_vertices=graph.num_vertices,
            generation_seconds=generation,
            construction_seconds=construction,
            upload_seconds=0.0,
            compile_seconds=opened,
            edge_passes=None,
            searches_back_to_back=together,
            notes=[*kernel.notes, *few_keys(keys, options)],
            sources=records,
            failures=[text for record in records if (text := failure_of(record))],
            processes=communicator.size,
            hosts=communicator.num_hosts,
            threads=threads,
            rank_bytes=max(communicator.collect(_graph_bytes(graph))),
            replicated_bytes=graph.replicated_bytes,
        )
    finally:
        kernel.close()


def _check_options(options: Graph500Options) -> None:
    """Refuse what several ranks cannot do.

    Raises
    ------
    AgreedError
        All ranks have the same options, so all raise it.
    """
    engine = options.engine
    refused = {
        "--device of --kernel sssp": options.kernel == "sssp"
        and engine.device not in (None, NO_DEVICE),
        "--order": engine.order not in ("auto", "degree"),
        "--power-log": options.power_log is not None,
        "--optimize": engine.optimize != "time",
        "--no-correction": not engine.correction,
        "--decision-interval": engine.decision_interval != 1,
        "--max-alloc": engine.max_alloc_bytes is not None,
        "--device-memory": engine.device_memory_bytes is not None,
        "--selector daga": engine.selector == "daga",
    }
    for name, given in refused.items():
        if given:
            raise AgreedError(f"{name} needs a single process; start without mpirun")


def _compile(
    communicator: Communicator, options: Graph500Options, threads: int, weights: Any
) -> None:
    """Compile all kernels with a tiny graph, one rank of each host before the others.

    The graph is large enough for several threads. `weights` is the dtype for shortest paths.
    """
    edges = KroneckerEdges(12, weighted=options.kernel == "sssp").materialise()
    edges = replace(edges, directed=options.directed)
    if edges.weights is not None:
        edges = replace(edges, weights=edges.weights.astype(weights))
    kernel = _KERNELS[options.kernel]
    with hidden():
        for first in (True, False):
            if (communicator.host_rank == 0) == first:
                run_ranks(1, lambda alone: kernel.compile(alone, edges, threads, options.validate))
            communicator.barrier()


def _share(communicator: Communicator, options: Graph500Options) -> FileShare:
    """Read or generate this rank's edges."""
    if options.graph is not None:
        return read_share(communicator, options.graph, options.kernel == "sssp", options.directed)
    kernel, weighted = _KERNELS[options.kernel], options.kernel == "sssp"
    edges = generator_of(options, weighted)
    share = KroneckerShare(edges, communicator.rank, communicator.size)
    held = 2 * (_KEY_BYTES + _SORTED_BYTES * weighted)  # for each edge, in both directions
    if not options.regenerate:
        held += _KEY_BYTES + _WEIGHT_BYTES * weighted
    need = held * share.num_input_edges
    need += _VERTEX_BYTES * edges.num_vertices // communicator.size
    need += _REPLICATED_BYTES * edges.num_vertices
    need += kernel.shared_bytes * edges.num_vertices // communicator.host_size
    agreed(communicator, lambda: _check_memory(communicator, need, options.scale))
    kept: EdgeList | KroneckerShare = share if options.regenerate else share.materialise()
    return FileShare(kept, edges.num_input_edges, None)


def _check_memory(communicator: Communicator, need: int, scale: int) -> None:
    memory.check_free_memory(
        need * communicator.host_size,
        f"a graph of scale {scale} on {communicator.size} ranks, {communicator.host_size} of them "
        "on this machine,",
        "choose --regenerate, a smaller scale or more machines",
    )


def _keys(communicator: Communicator, graph: RankGraph, options: Graph500Options) -> list[int]:
    """Draw the same keys as one process; all ranks ask the owner whether a vertex has edges.

    Raises
    ------
    AgreedError
        There is none.
    """
    lone = _LoneVertices(communicator, graph)
    keys = drawn_keys(options, graph.num_vertices, lone.is_isolated)
    if not keys:
        raise AgreedError(NO_KEY)
    return keys


class _LoneVertices:
    """Tells whether vertices have no edges; all ranks must make the same calls."""

    def __init__(self, communicator: Communicator, graph: RankGraph) -> None:
        self._communicator, self._graph = communicator, graph
        self._answer = np.zeros(1, np.int64)

    def is_isolated(self, vertex: int) -> bool:
        """Ask the owner."""
        self._answer[0] = self._graph.searched_id(vertex) is not None
        self._communicator.reduce_to_all(self._answer, "max")
        return not self._answer[0]


def _most_back_to_back(
    communicator: Communicator, graph: RankGraph, held_bytes: int, keys: int
) -> int:
    """Return how many searches' results may exist at the same time, the same number on all ranks.

    Searches run back-to-back, as in one process: work between them would evict the next one's data
    from the caches.
    """
    most = np.array([_HELD_BYTES // max(held_bytes * graph.input_degree.size, 1)])
    communicator.reduce_to_all(most, "min")
    return min(max(int(most[0]), 1), keys)


def _record(kernel: RankBFS | RankSSSP, result: Any, validator: Any) -> KeyRecord:
    """Validate a search, and collect the figures of all ranks."""
    if validator is None:
        return kernel.record(result, None, -1.0)
    started = time.perf_counter()
    outcome = kernel.validate(validator, result)
    return kernel.record(result, outcome, time.perf_counter() - started)


def _graph_bytes(graph: RankGraph) -> int:
    """Return the bytes of a rank's lists and arrays per own vertex."""
    arrays: list[Any] = [graph.degree, graph.first, graph.input_degree]
    for lists in (graph.graph, graph.graph.transpose)[: 1 + graph.graph.directed]:
        arrays += [lists.indptr, lists.indices]
    return sum(int(array.nbytes) for array in arrays)


def _slowest(communicator: Communicator, seconds: float) -> float:
    slowest = np.array([seconds])
    communicator.reduce_to_all(slowest, "max")
    return float(slowest[0])
