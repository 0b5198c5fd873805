"""The Graph500 protocol: generate, construct, search and validate 64 keys, report.

It is the same for both kernels. Edges of a generated graph are held in memory if there is room.
Otherwise they are generated anew for every pass: to count, to place, and to validate a group of
searches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hetero_bfs import energy
from hetero_bfs.devices.machine import source_commit
from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, search_keys
from hetero_bfs.graph.io.registry import read
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.graph500.bfs_kernel import BFSKernel
from hetero_bfs.graph500.edges import TimedEdges, check_memory, generate, tiny_graph
from hetero_bfs.graph500.kernel import GroupValidator, Kernel, KernelName
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.graph500.sssp_kernel import SSSPKernel
from hetero_bfs.options import EngineOptions
from hetero_bfs.support import memory
from hetero_bfs.support.progress import hidden, progress

NO_KEY = "the graph has no edge between two vertices, so there is no search key"

_HELD_SHARE = 0.05  # share of the free memory for the results of back-to-back searches
_MOST_HELD_BYTES = 1 << 28  # bytes of these results if the searches' data is in the same memory

_KERNELS: dict[KernelName, type[BFSKernel | SSSPKernel]] = {"bfs": BFSKernel, "sssp": SSSPKernel}


@dataclass(frozen=True)
class Graph500Options:
    """Options of a run; the defaults are Graph500's own. `graph` names a file instead of a scale.

    `engine` has the order of the vertices and the settings of searches; "sssp" uses only those of
    devices.
    """

    kernel: KernelName = "bfs"
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
    source_commit()  # read now, since the checkout may change during the run
    if options.power_log is not None:
        energy.PowerLog(options.power_log).samples()  # raises for a bad log before the run
    notes: list[str] = []
    order = options.engine.order
    weighted = options.kernel == "sssp"
    if options.graph is None:
        check_memory(generator_of(options, weighted))
        tiny = tiny_graph(KroneckerEdges(1, weighted=weighted))
        _compile(options.kernel, tiny, order, ("degree",))
    edges, generation_seconds = _edges(options, weighted, notes)
    if options.graph is not None:  # a bad file is found before anything compiles
        _compile(options.kernel, tiny_graph(edges), order)
    started = time.perf_counter()
    graph = build_search_graph(edges, order)
    build_seconds = time.perf_counter() - started
    if isinstance(edges, TimedEdges):
        generation_seconds = edges.pass_seconds[-1]
        build_seconds -= sum(edges.pass_seconds)
    keys = _keys(edges, graph, options, notes)
    with _KERNELS[options.kernel](graph, options.engine) as kernel:
        sources, failures, back_to_back = _search_all(kernel, edges, keys, options.validate)
        report = kernel.make_report(
            scale=scale_of(options, edges.num_vertices),
            edgefactor=edges.num_input_edges / edges.num_vertices,
            device=kernel.device_info,
            order=graph.relabelling.order,
            searched_vertices=graph.num_searched,
            num_vertices=graph.num_vertices,
            generation_seconds=generation_seconds,
            construction_seconds=build_seconds + kernel.construction_seconds,
            edge_passes=len(edges.pass_seconds) if isinstance(edges, TimedEdges) else None,
            searches_back_to_back=back_to_back,
            notes=[*kernel.notes, *notes],
            sources=sources,
            failures=failures,
        )
        if report.valid:
            report.energy = _measure_energy(kernel, keys, options, report)
    return report


def _keys(
    edges: EdgeSource, graph: SearchGraph, options: Graph500Options, notes: list[str]
) -> list[int]:
    """Draw the keys; print a note if there are fewer than wanted.

    Raises
    ------
    GraphError
        There is none.
    """
    keys = drawn_keys(options, edges.num_vertices, graph.is_isolated)
    if not keys:
        raise GraphError(NO_KEY)
    notes += few_keys(keys, options)
    return keys


def drawn_keys(
    options: Graph500Options, num_vertices: int, is_isolated: Callable[[int], bool]
) -> list[int]:
    """Return the search keys, which are the same for any number of processes."""
    seeds = options.seed1, options.seed2
    return search_keys(num_vertices, is_isolated, options.sources, *seeds)


def few_keys(keys: list[int], options: Graph500Options) -> list[str]:
    """Return a note if there are fewer keys than wanted."""
    if len(keys) >= options.sources:
        return []
    return [
        f"{len(keys)} search keys instead of {options.sources}: "
        "the graph has no more vertices with edges that the reference would draw"
    ]


def _compile(
    kernel: KernelName,
    edges: EdgeSource,
    order: str,
    automatic: Sequence[str] = ("degree", "locality"),
) -> None:
    """Build and validate a tiny graph, so that nothing compiles while it is timed.

    It is built in this order, or for "auto" in all orders that this may choose.
    """
    with hidden():
        for each in automatic if order == "auto" else (order,):
            graph = build_search_graph(edges, each)
        _KERNELS[kernel].compile(edges, graph)


def _edges(options: Graph500Options, weighted: bool, notes: list[str]) -> tuple[EdgeSource, float]:
    """Read or generate the edges, and time it; return a generator if they are not held."""
    if options.graph is not None:
        started = time.perf_counter()
        edges = read(options.graph, options.directed, weighted)
        return edges, time.perf_counter() - started
    return generate(generator_of(options, weighted), options.regenerate, notes)


def generator_of(options: Graph500Options, weighted: bool = False) -> KroneckerEdges:
    """Return the generator of the options' graph."""
    arguments = options.scale, options.edgefactor, options.seed1, options.seed2
    return KroneckerEdges(*arguments, weighted=weighted)


def _search_all(
    kernel: Kernel, edges: EdgeSource, keys: list[int], validated: bool
) -> tuple[list[KeyRecord], list[str], int]:
    """Run warm-up searches, then time every key, and validate in groups.

    Return the searches, what failed, and how many searches ran back-to-back.

    Searches run back-to-back, in groups; then their ids are restored and the results inspected.
    Work between searches would evict the next one's data from the caches, and let a device go idle.
    The free memory and the groups of validation limit the size of a group. The first group's
    searches also run before all others, untimed.
    """
    size = kernel.get_ready(keys)
    validator = kernel.make_validator(edges, size) if validated else None
    back_to_back = min(
        _most_back_to_back(kernel, edges.num_vertices), size if validated else len(keys)
    )
    kernel.search(keys[:back_to_back])
    records: list[KeyRecord] = []
    group: list[KeyRecord] = []
    failures: list[str] = []
    groups = [keys[start : start + back_to_back] for start in range(0, len(keys), back_to_back)]
    for searched in progress(groups, "searching"):
        for key, result in zip(searched, kernel.search(searched), strict=True):
            if validator is not None and validator.is_full():
                records += _validate_group(validator, group, failures)
                group = []
            group.append(kernel.record(key, result, validator))
    if validator is not None:
        group = _validate_group(validator, group, failures)
    return records + group, failures, back_to_back


def _most_back_to_back(kernel: Kernel, num_vertices: int) -> int:
    """Return how many searches' results may exist at the same time.

    If searches use the host's memory (no device, or a unified one), results take at most
    `_MOST_HELD_BYTES`. Such searches are long enough to refill the caches.
    """
    usable = int(_HELD_SHARE * memory.free_bytes())
    if kernel.uses_host_memory:
        usable = min(usable, _MOST_HELD_BYTES)
    return max(usable // (kernel.held_bytes * num_vertices), 1)


def _validate_group(
    validator: GroupValidator, group: list[KeyRecord], failures: list[str]
) -> list[KeyRecord]:
    """Return the group with its outcomes; append failed checks to `failures`."""
    started = time.perf_counter()
    outcomes = validator.finish()
    share = (time.perf_counter() - started) / len(group)
    validated = []
    for record, outcome in zip(group, outcomes, strict=True):
        seconds = record.validate_seconds + share
        validated.append(replace(record, validation=outcome, validate_seconds=seconds))
        failure = failure_of(validated[-1])
        if failure is not None:
            failures.append(failure)
    return validated


def failure_of(record: KeyRecord) -> str | None:
    """Return the failed check of a search; None if it is valid or was not validated."""
    outcome, result = record.validation, record.result
    if outcome is None:
        return None
    if not outcome.valid:
        return str(outcome.message)
    if outcome.nedge != result.nedge:
        return (
            f"source {result.source}: {result.nedge} traversed edges were counted, "
            f"validation counts {outcome.nedge}"
        )
    return None


def _measure_energy(
    kernel: Kernel, keys: list[int], options: Graph500Options, report: Graph500Report
) -> energy.EnergyReport:
    """Repeat the searches of all keys until the meters can be trusted."""
    meters, unmeasured = meters_of(kernel.device_info, options.power_log, report.notes)
    nedge = sum(record.result.nedge for record in report.sources)

    def run_searches() -> tuple[int, int]:
        for key in keys:
            kernel.search_only(key)
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


def scale_of(options: Graph500Options, num_vertices: int) -> float:
    """Return the scale: that of the options, or of a file's graph."""
    if options.graph is None:
        return float(options.scale)
    return math.log2(num_vertices) if num_vertices else 0.0
