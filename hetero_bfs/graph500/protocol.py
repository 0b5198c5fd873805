"""The Graph500 protocol: generate, construct, search and validate 64 keys, report.

Edges of a generated graph are held in memory if there is room. Otherwise they are generated anew
for every pass: to count, to place, and to validate a group of searches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hetero_bfs import energy
from hetero_bfs.algorithms.bfs.result import BFSResult
from hetero_bfs.algorithms.bfs.validate import (
    RESULT_BYTES_PER_VERTEX,
    Validator,
    group_bytes,
    group_size,
    validate,
)
from hetero_bfs.devices.machine import source_commit
from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import CHUNK_EDGES, EdgeSource, VertexArray
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, search_keys
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.lists import build_bytes
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.runtime.options import EngineOptions
from hetero_bfs.selection.named_selectors import model_of
from hetero_bfs.support import memory
from hetero_bfs.support.progress import hidden, progress
from hetero_bfs.support.wording import setting

_LIST_BYTES_PER_EDGE = 8  # two vertex ids
_GRAPH_BYTES_PER_EDGE = 8  # neighbour lists, each edge twice
_GRAPH_BYTES_PER_VERTEX = 36  # offsets 8, ids old and new 8, degrees 8, first neighbours 4, spare 8
_HELD_BYTES_PER_VERTEX = 12  # of a back-to-back search: saved parents 4, the result's parents 8
_HELD_SHARE = 0.05  # of the free memory, for the results of back-to-back searches
_MOST_HELD_BYTES = 1 << 28  # of them, if the searches' data is in the same memory
_SEARCH_BYTES_PER_VERTEX = 34  # parents 4, bitmaps 1, queues and offsets 25, narrow offsets 4


@dataclass(frozen=True)
class Graph500Options:
    """Options of a run; the defaults are Graph500's own. `graph` names a file instead of a scale.

    `engine` has the order of the vertices and the settings of searches.
    """

    scale: int = 18
    edgefactor: int = 16
    sources: int = 64
    seed1: int = 2
    seed2: int = 3
    graph: Path | None = None
    directed: bool = False
    regenerate: bool = False
    engine: EngineOptions = field(default_factory=EngineOptions)
    validate: bool = True
    power_log: Path | None = None
    energy_seconds: float = 3.0


@dataclass(frozen=True)
class TimedEdges(KroneckerEdges):
    """Edges that are generated whenever they are read, and the seconds of that for each pass."""

    pass_seconds: list[float] = field(default_factory=list, compare=False)

    def chunks(self, size: int = CHUNK_EDGES) -> Iterator[tuple[VertexArray, VertexArray]]:
        """Yield the edges in index order; see `EdgeSource.chunks`."""
        number = len(self.pass_seconds)
        self.pass_seconds.append(0.0)
        chunks = super().chunks(size)
        while True:
            started = time.perf_counter()
            chunk = next(chunks, None)
            self.pass_seconds[number] += time.perf_counter() - started
            if chunk is None:
                return
            yield chunk


def run_graph500(options: Graph500Options) -> Graph500Report:
    """Run the benchmark; see `Graph500Options`.

    If the edges are not held, `generation_seconds` is the time of one pass, and the construction
    time excludes generating.

    Raises
    ------
    HeteroBFSError
        The graph, a device or a model cannot be used. A failed validation raises nothing; it is in
        the report's `failures`.
    """
    source_commit()  # cached now, since the checkout may change during the run
    if options.power_log is not None:
        energy.PowerLog(options.power_log).samples()  # raises for a bad log before the run
    notes: list[str] = []
    order = options.engine.order
    if options.graph is None:
        _compile(KroneckerEdges(1).materialise(), order, ("degree",))
    edges, generation_seconds = _edges(options, notes)
    if options.graph is not None:  # a bad file is found before anything compiles
        _compile(_tiny(edges), order)
    started = time.perf_counter()
    graph = build_search_graph(edges, order)
    build_seconds = time.perf_counter() - started
    if isinstance(edges, TimedEdges):
        generation_seconds = edges.pass_seconds[0]
        build_seconds -= sum(edges.pass_seconds)
    keys = search_keys(
        edges.num_vertices, graph.is_isolated, options.sources, options.seed1, options.seed2
    )
    if not keys:
        raise GraphError("the graph has no edge between two vertices, so there is no search key")
    if len(keys) < options.sources:
        notes.append(
            f"{len(keys)} search keys instead of {options.sources}: "
            "the graph has no more vertices with edges that the reference would draw"
        )
    with Engine(graph, **options.engine.settings()) as engine:
        report = Graph500Report(
            scale=float(options.scale) if options.graph is None else _log2(edges.num_vertices),
            edgefactor=edges.num_input_edges / edges.num_vertices,
            selector=engine.selector.name,
            model=model_of(engine.device_info),
            objective=engine.objective,
            device=engine.device_info,
            parts=engine.num_parts,
            streaming=engine.streaming,
            order=graph.relabelling.order,
            searched_vertices=graph.num_searched,
            num_vertices=graph.num_vertices,
            generation_seconds=generation_seconds,
            construction_seconds=build_seconds + engine.upload_seconds,
            upload_seconds=engine.upload_seconds,
            compile_seconds=engine.compile_seconds,
            edge_passes=None,
            searches_back_to_back=1,
            notes=[*engine.notes, *notes],
        )
        _search_all(engine, edges, keys, options.validate, report)
        report.corrections = engine.corrections
        if isinstance(edges, TimedEdges):
            report.edge_passes = len(edges.pass_seconds)
        if report.valid:
            report.energy = _measure_energy(engine, keys, options, report)
    return report


def _compile(
    edges: EdgeSource, order: str, automatic: Sequence[str] = ("degree", "locality")
) -> None:
    """Build and validate a tiny graph, so that nothing compiles while it is timed.

    It is built in this order; for "auto" in all the orders `automatic`.
    """
    with hidden():
        for each in automatic if order == "auto" else (order,):
            build_search_graph(edges, each)
        validate(edges, 0, np.zeros(2, np.int64), np.arange(2, dtype=np.int32))


def _tiny(edges: EdgeSource) -> EdgeSource:
    """Return a graph of two vertices of the same types as this graph of a file."""
    tiny = replace(KroneckerEdges(1).materialise(), directed=edges.directed)
    if not isinstance(edges, CSRGraph):
        return tiny
    return CSRGraph.from_edge_source(tiny)


def _edges(options: Graph500Options, notes: list[str]) -> tuple[EdgeSource, float]:
    """Read or generate the edges, and time it; return a generator if they are not held."""
    started = time.perf_counter()
    if options.graph is not None:
        return read(options.graph, options.directed), time.perf_counter() - started
    arguments = options.scale, options.edgefactor, options.seed1, options.seed2
    generator = KroneckerEdges(*arguments)
    need = _bytes_without_list(generator)
    memory.check_free_memory(
        need,
        f"a graph of scale {options.scale}",
        f"choose a smaller {setting('scale')} or {setting('edgefactor')}",
    )
    held = need + _LIST_BYTES_PER_EDGE * generator.num_input_edges
    free = memory.free_bytes()
    if options.regenerate or held > free:
        if not options.regenerate:
            notes.append(
                f"edges are generated anew for each pass: with a list of them the run needs about "
                f"{held / memory.GIB:.1f} GiB of memory, {free / memory.GIB:.1f} GiB are free"
            )
        return TimedEdges(*arguments), 0.0
    edges = generator.materialise()
    return edges, time.perf_counter() - started


def _bytes_without_list(edges: EdgeSource) -> int:
    """Estimate a run's peak memory in bytes, with groups of one search and no list of edges."""
    n, m = edges.num_vertices, edges.num_input_edges
    graph = _GRAPH_BYTES_PER_EDGE * m + _GRAPH_BYTES_PER_VERTEX * n
    search = (_SEARCH_BYTES_PER_VERTEX + RESULT_BYTES_PER_VERTEX) * n
    return max(build_bytes(edges), graph + search + group_bytes(n, 1, 0))


def _search_all(
    engine: Engine,
    edges: EdgeSource,
    keys: list[int],
    validated: bool,
    report: Graph500Report,
) -> None:
    """Run warm-up searches, then time every key, and validate in groups.

    Searches run back-to-back, in groups; then their ids are restored and the results inspected.
    Work between searches would evict the next one's data from the caches, and let a device fall
    asleep. The free memory and the groups of validation limit the size of a group. The first
    group's searches also run before all others, untimed.
    """
    deepest = 2 * int(engine.bfs(keys[0]).level.max())  # a bound in an undirected component
    size = group_size(edges.num_vertices, len(keys), deepest)
    validator = Validator(edges, size) if validated else None
    back_to_back = min(
        _most_back_to_back(engine, edges.num_vertices), size if validated else len(keys)
    )
    report.searches_back_to_back = back_to_back
    engine.bfs_back_to_back(keys[:back_to_back])
    group: list[KeyRecord] = []
    groups = [keys[start : start + back_to_back] for start in range(0, len(keys), back_to_back)]
    for searched in progress(groups, "searching"):
        for key, result in zip(searched, engine.bfs_back_to_back(searched), strict=True):
            if validator is not None and validator.is_full():
                report.sources += _validate_group(validator, group, report.failures)
                group = []
            group.append(_record(key, result, validator))
    if validator is not None:
        group = _validate_group(validator, group, report.failures)
    report.sources += group


def _most_back_to_back(engine: Engine, num_vertices: int) -> int:
    """Return how many searches' results may exist at the same time.

    If searches use the host's memory (no device, or a unified one), results take at most
    `_MOST_HELD_BYTES`. Searches there are long enough to refill the caches.
    """
    usable = int(_HELD_SHARE * memory.free_bytes())
    if engine.accelerator is None or engine.accelerator.unified:
        usable = min(usable, _MOST_HELD_BYTES)
    return max(usable // (_HELD_BYTES_PER_VERTEX * num_vertices), 1)


def _record(key: int, result: BFSResult, validator: Validator | None) -> KeyRecord:
    """Give a search's result to the validator instead of keeping it."""
    levels, reached, seconds = int(result.level.max()), result.reached, -1.0
    if validator is not None:
        started = time.perf_counter()
        validator.add(key, result.parent, result.level)
        seconds = time.perf_counter() - started
    result.drop_parents()
    return KeyRecord(result, levels, reached, None, seconds)


def _validate_group(
    validator: Validator, group: list[KeyRecord], failures: list[str]
) -> list[KeyRecord]:
    """Return the group with its outcomes; append failed checks to `failures`."""
    started = time.perf_counter()
    outcomes = validator.finish()
    share = (time.perf_counter() - started) / len(group)
    validated = []
    for record, outcome in zip(group, outcomes, strict=True):
        source, nedge = record.result.source, record.result.nedge
        if not outcome.valid:
            failures.append(outcome.message)
        elif outcome.nedge != nedge:
            failures.append(
                f"source {source}: {nedge} traversed edges were counted, "
                f"validation counts {outcome.nedge}"
            )
        seconds = record.validate_seconds + share
        validated.append(replace(record, validation=outcome, validate_seconds=seconds))
    return validated


def _measure_energy(
    engine: Engine, keys: list[int], options: Graph500Options, report: Graph500Report
) -> energy.EnergyReport:
    """Repeat the searches of all keys until the meters can be trusted."""
    meters, unmeasured = meters_of(engine.device_info, options.power_log, report.notes)
    nedge = sum(record.result.nedge for record in report.sources)

    def run_searches() -> tuple[int, int]:
        for key in keys:
            engine.search(key)
        return len(keys), nedge

    return energy.measure(run_searches, meters, unmeasured, options.energy_seconds)


def meters_of(
    info: DeviceInfo | None, power_log: Path | None, notes: list[str]
) -> tuple[list[energy.Meter], list[energy.Unmeasured]]:
    """Find the meters of the host and the device in use; a bad power log is left out."""
    name, pci = (None, None) if info is None or info.type == "CPU" else (info.name, info.pci)
    try:
        meters, unmeasured = energy.find_meters(name, pci, power_log)
    except energy.MeterError as error:
        notes.append(str(error))
        meters, unmeasured = energy.find_meters(name, pci)
    if info is None:
        unmeasured = [u for u in unmeasured if u.domain != "device"]
    return meters, unmeasured


def _log2(number: int) -> float:
    return math.log2(number) if number else 0.0
