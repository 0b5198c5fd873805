"""The Graph500 protocol by several ranks: as protocol.py, with the graph shared out among them."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from hetero_bfs.distributed.communicator import Communicator
from hetero_bfs.distributed.construction import construct
from hetero_bfs.distributed.faults import agreed
from hetero_bfs.distributed.partition import RankGraph
from hetero_bfs.distributed.rank_device import RankDevice, open_rank_device
from hetero_bfs.distributed.rank_search import DistributedSearch, RankResult
from hetero_bfs.distributed.rank_validation import RankValidator
from hetero_bfs.distributed.shares import FileShare, KroneckerShare, read_share
from hetero_bfs.distributed.simulated import run_ranks
from hetero_bfs.errors import AgreedError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph500.protocol import (
    NO_KEY,
    Graph500Options,
    drawn_keys,
    failure_of,
    few_keys,
    generator_of,
    scale_of,
)
from hetero_bfs.graph500.rank_report import LevelOfRanks, RanksReport, SearchOfRanks
from hetero_bfs.graph500.report import KeyRecord
from hetero_bfs.runtime.options import EngineOptions
from hetero_bfs.support import memory
from hetero_bfs.support.progress import hidden, progress

_KEY_BYTES = 8
_VERTEX_BYTES = 64
"""Of a rank, for each of its old ids and for each vertex that it numbers, about."""
_REPLICATED_BYTES = 4 + 8
"""Of a rank, for each vertex of the graph: old ids of columns, words for other ranks."""
_HELD_BYTES = 1 << 27
"""Of a rank, most memory of results that wait for their validation."""
_SHARED_BYTES = 8
"""Of a host, for each vertex of the graph: the tree that is validated."""


def run_on_ranks(options: Graph500Options, communicator: Communicator) -> RanksReport:
    """Run the benchmark by all ranks; each returns the report.

    Raises
    ------
    AgreedError
        On all ranks: the graph or an option cannot be used.
    """
    if len(set(communicator.collect(repr(options)))) > 1:
        raise AgreedError("the ranks were started with different options; give all the same")
    _check_options(options)
    threads = options.engine.threads or agreed(communicator, lambda: _threads(communicator))
    with hidden():
        _compile(communicator, options, threads)
    started = time.perf_counter()
    share = _share(communicator, options)
    generation = _slowest(communicator, time.perf_counter() - started)
    started = time.perf_counter()
    graph = construct(communicator, share.edges, share.num_input_edges, share.input_degree)
    construction = _slowest(communicator, time.perf_counter() - started)
    keys = _keys(communicator, graph, options)
    started = time.perf_counter()
    device, notes = _device(communicator, graph, options.engine, threads)
    selector = str(options.engine.selector)
    search = DistributedSearch(communicator, graph, selector, threads, device=device)
    try:
        opened = _slowest(communicator, time.perf_counter() - started)
        validator = (
            RankValidator(communicator, share.edges, share.input_degree)
            if options.validate
            else None
        )
        together = _most_back_to_back(communicator, graph, len(keys))
        for key in keys[:together]:
            search.search(key)
        records: list[KeyRecord] = []
        groups = [keys[start : start + together] for start in range(0, len(keys), together)]
        for group in progress(groups, "searching"):
            results = [search.search(key) for key in group]
            records += [_record(communicator, result, validator) for result in results]
        if validator is not None:
            validator.close()
        return RanksReport(
            scale=scale_of(options, graph.num_vertices),
            edgefactor=share.num_input_edges / graph.num_vertices,
            device=None if device is None else device.info,
            order="degree",
            searched_vertices=int(graph.partition.sizes.sum()),
            num_vertices=graph.num_vertices,
            generation_seconds=generation,
            construction_seconds=construction,
            upload_seconds=0.0,
            compile_seconds=opened,
            edge_passes=None,
            searches_back_to_back=together,
            notes=[*notes, *few_keys(keys, options)],
            sources=records,
            failures=[text for record in records if (text := failure_of(record))],
            processes=communicator.size,
            hosts=communicator.num_hosts,
            threads=threads,
            selector=selector,
            devices=_named(communicator, device),
            costs=search.costs,
            rank_bytes=max(communicator.collect(_graph_bytes(graph))),
            replicated_bytes=graph.replicated_bytes,
        )
    finally:
        search.close()


def _check_options(options: Graph500Options) -> None:
    """Refuse what several ranks cannot do.

    Raises
    ------
    AgreedError
        All ranks have the same options, so all raise it.
    """
    engine = options.engine
    refused = {
        "--kernel sssp": options.kernel != "bfs",
        "--directed": options.directed,
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


def _threads(communicator: Communicator) -> int:
    """Return a rank's threads: the cores that it may use, shared out among its host's ranks."""
    import numba

    return max(int(numba.get_num_threads()) // communicator.host_size, 1)


def _compile(communicator: Communicator, options: Graph500Options, threads: int) -> None:
    """Compile all kernels with a tiny graph, one rank of each host before the others."""
    share = KroneckerShare(KroneckerEdges(12), 0, 1)  # enough edges for several threads
    for first in (True, False):
        if (communicator.host_rank == 0) == first:
            run_ranks(1, lambda alone: _search_tiny(alone, share, options, threads))
        communicator.barrier()


def _search_tiny(
    communicator: Communicator, share: KroneckerShare, options: Graph500Options, threads: int
) -> None:
    graph = construct(communicator, share.materialise(), share.num_input_edges)
    search = DistributedSearch(communicator, graph, "fixed:TC,BC,TC", threads)
    try:
        result = search.search(0)
        if options.validate:
            RankValidator(communicator, share, None).validate(0, result.parent)
    finally:
        search.close()


def _share(communicator: Communicator, options: Graph500Options) -> FileShare:
    """Read or generate this rank's edges."""
    if options.graph is not None:
        return read_share(communicator, options.graph)
    edges = generator_of(options)
    share = KroneckerShare(edges, communicator.rank, communicator.size)
    held = 2 * _KEY_BYTES  # for each edge, in both directions
    if not options.regenerate:
        held += _KEY_BYTES
    need = held * share.num_input_edges
    need += _VERTEX_BYTES * edges.num_vertices // communicator.size
    need += _REPLICATED_BYTES * edges.num_vertices
    need += _SHARED_BYTES * edges.num_vertices // communicator.host_size
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
    """Draw the keys of one process; all ranks ask the owner whether a vertex has edges.

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
    """Tells whether vertices have no edges; all ranks must ask alike."""

    def __init__(self, communicator: Communicator, graph: RankGraph) -> None:
        self._communicator, self._graph = communicator, graph
        self._answer = np.zeros(1, np.int64)

    def is_isolated(self, vertex: int) -> bool:
        """Ask the owner."""
        self._answer[0] = self._graph.searched_id(vertex) is not None
        self._communicator.reduce_to_all(self._answer, "max")
        return not self._answer[0]


def _most_back_to_back(communicator: Communicator, graph: RankGraph, keys: int) -> int:
    """Return how many searches' results may exist at the same time, alike on all ranks.

    Searches run back-to-back, as in one process: work between them would evict the next one's data
    from the caches.
    """
    most = np.array([_HELD_BYTES // max(4 * graph.input_degree.size, 1)])
    communicator.reduce_to_all(most, "min")
    return min(max(int(most[0]), 1), keys)


def _record(
    communicator: Communicator, result: RankResult, validator: RankValidator | None
) -> KeyRecord:
    """Validate a search, and collect what all ranks did."""
    started = time.perf_counter()
    key, seconds, validation = result.source, -1.0, None
    if validator is not None:
        validation = validator.validate(key, result.parent)
        seconds = time.perf_counter() - started
    traces = _levels_of_ranks(communicator, result)
    found = SearchOfRanks(key, result.seconds, 0.0, result.nedge, traces)
    return KeyRecord(found, len(traces), result.reached, validation, seconds)


def _levels_of_ranks(communicator: Communicator, result: RankResult) -> list[LevelOfRanks]:
    """Return the levels of a search, with the figures of all ranks combined."""
    figures = np.array(
        [
            [
                level.seconds,
                level.exchange_seconds,
                level.bytes_sent,
                level.frontier_vertices,
                level.frontier_edges,
                level.on_device,
            ]
            for level in result.levels
        ]
    ).reshape(-1)
    most, total = figures.copy(), figures.copy()
    communicator.reduce_to_all(most, "max")
    communicator.reduce_to_all(total, "sum")
    rows = zip(result.levels, most.reshape(-1, 6), total.reshape(-1, 6), strict=True)
    return [
        LevelOfRanks(
            number=number,
            direction=level.direction,
            seconds=float(m[0]),
            mean_seconds=float(t[0]) / communicator.size,
            exchange_seconds=float(m[1]),
            bytes_sent=int(t[2]),
            frontier_vertices=int(t[3]),
            frontier_edges=int(t[4]),
            most_frontier_edges=int(m[4]),
            ranks=communicator.size,
            on_devices=int(t[5]),
            push_seconds=level.push_seconds,
            pull_seconds=level.pull_seconds,
        )
        for number, (level, m, t) in enumerate(rows)
    ]


def _device(
    communicator: Communicator, graph: RankGraph, options: EngineOptions, threads: int
) -> tuple[RankDevice | None, list[str]]:
    """Open this rank's device; return the notes of all ranks."""
    device, note = agreed(
        communicator,
        lambda: open_rank_device(options, communicator.host_rank, graph, threads),
    )
    notes = enumerate(communicator.collect(note))
    return device, [f"rank {rank}: {text}" for rank, text in notes if text is not None]


def _named(communicator: Communicator, device: RankDevice | None) -> dict[str, int]:
    """Return how many ranks have each device."""
    names = communicator.collect(None if device is None else device.info.name)
    return dict(Counter(name for name in names if name is not None))


def _graph_bytes(graph: RankGraph) -> int:
    """Return the bytes of a rank's lists and arrays per own vertex."""
    lists = graph.graph
    arrays = lists.indptr, lists.indices, graph.degree, graph.first, graph.input_degree
    return sum(int(array.nbytes) for array in arrays)


def _slowest(communicator: Communicator, seconds: float) -> float:
    slowest = np.array([seconds])
    communicator.reduce_to_all(slowest, "max")
    return float(slowest[0])
