"""The Graph500 protocol: generate, construct, search and validate 64 keys, report.

It is the same for both kernels, in one process and on several ranks (process.py).
Edges of a generated graph are held in memory if there is room. Otherwise they are generated anew
for every pass: to count, to place, and to validate a group of searches.
"""

from __future__ import annotations

import math
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from hetero_bfs import energy
from hetero_bfs.devices.machine import DeviceInfo, source_commit
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph500.kernel import Graph500Options, Kernel
from hetero_bfs.graph500.process import ManyRanks, OneProcess
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.support import memory
from hetero_bfs.support.messages import progress

_HELD_SHARE = 0.05  # share of the free memory for the results of back-to-back searches
_MOST_HELD_BYTES = 1 << 28  # bytes of these results if the searches' data is in the same memory


def run_graph500(
    options: Graph500Options, communicator: Communicator | None = None
) -> Graph500Report:
    """Run the benchmark; see `Graph500Options`. All ranks of a communicator return the report.

    If the edges are not held, `generation_seconds` is the time of one pass, and the construction
    time excludes generating.

    Raises
    ------
    HeteroBFSError
        The graph, a device or a model cannot be used. A failed validation raises nothing; it is in
        the report's `failures`.
    AgreedError
        The same, on all ranks.
    """
    source_commit()  # read now, since the checkout may change during the run
    if options.power_log is not None:
        energy.PowerLog(options.power_log).samples()  # raises for a bad log before the run
    processes = OneProcess(options) if communicator is None else ManyRanks(options, communicator)
    processes.check()
    if options.graph is None:
        processes.compile()
    notes = processes.read()
    if options.graph is not None:  # a bad file is found before anything compiles
        processes.compile()
    processes.construct()
    keys = _keys(processes, options)
    if len(keys) < options.sources:
        notes.append(
            f"{len(keys)} search keys instead of {options.sources}: "
            "the graph has no more vertices with edges that the reference would draw"
        )
    num_vertices = processes.num_vertices  # at least two, since there are keys
    with closing(processes.open()) as kernel:
        sources, back_to_back = _search_all(kernel, processes, keys, options.validate)
        report = kernel.make_report(
            scale=float(options.scale) if options.graph is None else math.log2(num_vertices),
            device=kernel.device_info,
            edgefactor=processes.num_input_edges / num_vertices,
            num_vertices=num_vertices,
            generation_seconds=processes.generation_seconds,
            construction_seconds=processes.construction_seconds + kernel.construction_seconds,
            searches_back_to_back=back_to_back,
            notes=[*kernel.notes, *notes],
            sources=sources,
            failures=[text for record in sources if (text := _failure_of(record))],
            processes=processes.size,
            **processes.figures(),
        )
        if report.valid and communicator is None:
            report.energy = _measure_energy(kernel, keys, options, report)
    return report


def _keys(processes: OneProcess | ManyRanks, options: Graph500Options) -> list[int]:
    """Draw the keys, the same for any number of processes; raise an error without any."""
    seeds = options.seed1, options.seed2
    n, wanted = processes.num_vertices, options.sources
    keys = search_keys(n, processes.is_isolated, wanted, *seeds)
    if not keys:
        raise processes.error("the graph has no edge between two vertices, so no search key")
    return keys


def _search_all(
    kernel: Kernel, processes: OneProcess | ManyRanks, keys: list[int], validated: bool
) -> tuple[list[KeyRecord], int]:
    """Run warm-up searches, then time every key, and validate in groups.

    Return the searches, and how many of them ran back-to-back.

    Searches run back-to-back, in groups; then their ids are restored and the results inspected.
    Work between searches would evict the next one's data from the caches, and let a device go idle.
    The free memory and the groups of validation limit the size of a group. The first group's
    searches also run before all others, untimed.
    """
    size = kernel.get_ready(keys)
    validator = kernel.make_validator(size) if validated else None
    most = processes.least(_most_back_to_back(kernel, processes.host_size))
    back_to_back = min(most, size if validated else len(keys))
    kernel.search(keys[:back_to_back])
    records: list[KeyRecord] = []
    group: list[KeyRecord] = []
    groups = [keys[start : start + back_to_back] for start in range(0, len(keys), back_to_back)]
    for searched in progress(groups, "searching"):
        for key, result in zip(searched, kernel.search(searched), strict=True):
            if validator is not None and validator.is_full():
                records += _validate_group(validator, group)
                group = []
            group.append(kernel.record(key, result, validator))
    if validator is not None:
        group = _validate_group(validator, group)
        kernel.end_validation()
    return records + group, back_to_back


def _most_back_to_back(kernel: Kernel, host_size: int) -> int:
    """Return how many searches' results may exist at the same time.

    If searches use the host's memory (no device, or a unified one), the results of all processes of
    a host take at most `_MOST_HELD_BYTES`. Such searches are long enough to refill the caches.
    """
    usable = int(_HELD_SHARE * memory.free_bytes())
    if kernel.uses_host_memory:
        usable = min(usable, _MOST_HELD_BYTES)
    return max(usable // (host_size * kernel.held_bytes), 1)


def _validate_group(validator: Any, group: list[KeyRecord]) -> list[KeyRecord]:
    started = time.perf_counter()
    outcomes = validator.finish()
    share = (time.perf_counter() - started) / len(group)
    return [
        replace(record, validation=outcome, validate_seconds=record.validate_seconds + share)
        for record, outcome in zip(group, outcomes, strict=True)
    ]


def _failure_of(record: KeyRecord) -> str | None:
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
