"""The Graph500 protocol: generate, construct, 64 keys searched and validated, and the report."""

from __future__ import annotations

import datetime
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hetero_bfs import energy
from hetero_bfs.bfs import BFSResult
from hetero_bfs.build import build_search_graph
from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.engine import Engine
from hetero_bfs.errors import GraphError
from hetero_bfs.graph import CSRGraph, EdgeList
from hetero_bfs.io import read
from hetero_bfs.kronecker import KroneckerEdges, search_keys
from hetero_bfs.machine import describe_machine
from hetero_bfs.memory import check_free_memory
from hetero_bfs.progress import progress
from hetero_bfs.relabel import Order
from hetero_bfs.statistics import graph500_lines, statistics, teps_statistics
from hetero_bfs.trace import format_levels
from hetero_bfs.validate import Validation, validate

_BUILD_BYTES_PER_EDGE = 32  # edge list 8, partitioned pairs 16, neighbour lists 8
_BUILD_BYTES_PER_VERTEX = 64


@dataclass(frozen=True)
class Graph500Options:
    """What to run; the defaults are Graph500's own. `graph` names a file instead of a scale."""

    scale: int = 18
    edgefactor: int = 16
    roots: int = 64
    seed1: int = 2
    seed2: int = 3
    graph: Path | None = None
    directed: bool = False
    selector: str = "auto"
    device: str | None = None
    devices: str = "all"
    max_alloc_bytes: int | None = None
    order: Order = "degree"
    decision_interval: int = 1
    validate: bool = True
    power_log: Path | None = None
    energy_seconds: float = 3.0


@dataclass(frozen=True)
class RootRecord:
    """One timed search and what validation said of it; `levels` is the largest distance."""

    result: BFSResult
    levels: int
    reached: int
    validation: Validation | None
    validate_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the search as JSON has it."""
        return {
            "root": self.result.root,
            "time_seconds": self.result.seconds,
            "gather_seconds": self.result.gather_seconds,
            "nedge": self.result.nedge,
            "teps": self.result.teps,
            "levels": self.levels,
            "reached": self.reached,
            "strategies": [trace.strategy for trace in self.result.traces],
            "valid": None if self.validation is None else self.validation.valid,
        }


@dataclass
class Graph500Report:
    """Everything a run produced."""

    scale: float
    edgefactor: float
    selector: str
    device: DeviceInfo | None
    parts: int
    order: Order
    searched_vertices: int
    num_vertices: int
    generation_seconds: float
    construction_seconds: float
    upload_seconds: float
    compile_seconds: float
    notes: list[str]
    roots: list[RootRecord] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    energy: energy.EnergyReport | None = None

    @property
    def valid(self) -> bool:
        """True unless a validation failed."""
        return not self.failures

    def lines(self) -> list[str]:
        """Return the reference's lines; none for an invalid run or one without searches."""
        if self.failures or not self.roots:
            return []
        return graph500_lines(
            self.scale,
            self.edgefactor,
            self.generation_seconds,
            self.construction_seconds,
            [r.result.seconds for r in self.roots],
            [r.result.nedge for r in self.roots],
            None if self.roots[0].validation is None else [r.validate_seconds for r in self.roots],
        )

    def typical(self) -> RootRecord:
        """Return the search of median time."""
        return sorted(self.roots, key=lambda r: r.result.seconds)[len(self.roots) // 2]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        from hetero_bfs import __version__

        seconds = [r.result.seconds for r in self.roots]
        nedges = [r.result.nedge for r in self.roots]
        bfs: dict[str, float | None] = {}
        if self.roots:
            values = {f"{k}_time_seconds": v for k, v in statistics(seconds).items()}
            values |= {k.lower(): v for k, v in teps_statistics(seconds, nedges).items()}
            bfs = {k: v if math.isfinite(v) else None for k, v in values.items()}
            bfs["mean_gather_seconds"] = float(
                np.mean([r.result.gather_seconds for r in self.roots])
            )
        return {
            "scale": self.scale,
            "edgefactor": self.edgefactor,
            "nbfs": len(self.roots),
            "valid": self.valid,
            "failures": self.failures,
            "generation_time_seconds": self.generation_seconds,
            "construction_time_seconds": self.construction_seconds,
            "upload_time_seconds": self.upload_seconds,
            "compile_time_seconds": self.compile_seconds,
            "selector": self.selector,
            "devices": ["cpu"] + ([] if self.device is None else [self.device.name]),
            "parts": self.parts,
            "order": self.order,
            "num_vertices": self.num_vertices,
            "searched_vertices": self.searched_vertices,
            "bfs": bfs,
            "roots": [r.to_dict() for r in self.roots],
            "energy": None if self.energy is None else self.energy.to_dict(),
            "notes": self.notes,
            "machine": describe_machine(self.device),
            "version": __version__,
            "command": " ".join(["hetero-bfs", *(_without_folder(a) for a in sys.argv[1:])]),
            "date": datetime.date.today().isoformat(),
        }

    def trace_rows(self) -> list[dict[str, Any]]:
        """Return one record per level of every search."""
        return [
            {"root": record.result.root, **trace.row()}
            for record in self.roots
            for trace in record.result.traces
        ]


def run_graph500(options: Graph500Options) -> Graph500Report:
    """Run the benchmark; see `Graph500Options`.

    Raises
    ------
    HeteroBFSError
        The graph, a device or a model cannot be used. A failed validation is no exception: it is
        in the report's `failures`.
    """
    if options.power_log is not None:
        energy.PowerLog(options.power_log).samples()  # a bad log is no reason to lose a run
    build_search_graph(KroneckerEdges(1).materialise(), options.order)  # compiles, untimed
    edges, generation_seconds = _edges(options)
    started = time.perf_counter()
    graph = build_search_graph(edges, options.order)
    build_seconds = time.perf_counter() - started
    keys = search_keys(
        edges.num_vertices, graph.is_isolated, options.roots, options.seed1, options.seed2
    )
    if not keys:
        raise GraphError("the graph has no edge between two vertices, so there is no search key")
    with Engine(
        graph,
        selector=options.selector,
        device=options.device,
        devices=options.devices,
        max_alloc_bytes=options.max_alloc_bytes,
        decision_interval=options.decision_interval,
    ) as engine:
        report = Graph500Report(
            scale=float(options.scale) if options.graph is None else _log2(edges.num_vertices),
            edgefactor=edges.num_input_edges / edges.num_vertices,
            selector=engine.selector.name,
            device=engine.device_info,
            parts=engine.num_parts,
            order=options.order,
            searched_vertices=graph.num_searched,
            num_vertices=graph.num_vertices,
            generation_seconds=generation_seconds,
            construction_seconds=build_seconds + engine.upload_seconds,
            upload_seconds=engine.upload_seconds,
            compile_seconds=engine.compile_seconds,
            notes=list(engine.notes),
        )
        if len(keys) < options.roots:
            report.notes.append(
                f"{len(keys)} search keys instead of {options.roots}: "
                "the graph has no more vertices with edges that the reference would draw"
            )
        _search_all(engine, edges, keys, options.validate, report)
        if report.valid:
            report.energy = _measure_energy(engine, keys, options, report)
    return report


def _edges(options: Graph500Options) -> tuple[EdgeList | CSRGraph, float]:
    """Generate or read the edges, timed."""
    started = time.perf_counter()
    if options.graph is not None:
        edges: EdgeList | CSRGraph = read(options.graph, options.directed)
    else:
        generator = KroneckerEdges(options.scale, options.edgefactor, options.seed1, options.seed2)
        check_free_memory(
            _BUILD_BYTES_PER_EDGE * generator.num_input_edges
            + _BUILD_BYTES_PER_VERTEX * generator.num_vertices,
            f"a graph of scale {options.scale}",
            "choose a smaller --scale or --edgefactor",
        )
        edges = generator.materialise()
    return edges, time.perf_counter() - started


def _search_all(
    engine: Engine,
    edges: EdgeList | CSRGraph,
    keys: list[int],
    validated: bool,
    report: Graph500Report,
) -> None:
    """One warm-up search, then every key timed by itself and validated."""
    warm_up = engine.bfs(keys[0])
    if validated:
        validate(edges, keys[0], warm_up.parent, warm_up.level)
    for key in progress(keys, "searching"):
        result = engine.bfs(key)
        started = time.perf_counter()
        outcome = validate(edges, key, result.parent, result.level) if validated else None
        elapsed = time.perf_counter() - started if validated else -1.0
        levels = int(result.level.max())
        if outcome is not None:
            if not outcome.valid:
                report.failures.append(outcome.message)
            elif outcome.nedge != result.nedge:
                report.failures.append(
                    f"root {key}: {result.nedge} traversed edges were counted, "
                    f"validation counts {outcome.nedge}"
                )
        report.roots.append(RootRecord(result, levels, result.reached, outcome, elapsed))
        result.forget_parents()


def _measure_energy(
    engine: Engine, keys: list[int], options: Graph500Options, report: Graph500Report
) -> energy.EnergyReport:
    """Repeat all keys until the meters can be trusted."""
    info = engine.device_info
    name, pci = (None, None) if info is None or info.type == "CPU" else (info.name, info.pci)
    try:
        meters, unmeasured = energy.find_meters(name, pci, options.power_log)
    except energy.MeterError as error:
        report.notes.append(str(error))
        meters, unmeasured = energy.find_meters(name, pci)
    if info is None:
        unmeasured = [u for u in unmeasured if u.domain != "device"]
    nedge = sum(record.result.nedge for record in report.roots)

    def run_searches() -> tuple[int, int]:
        for key in keys:
            engine.search(key)
        return len(keys), nedge

    return energy.measure(run_searches, meters, unmeasured, options.energy_seconds)


def format_report(report: Graph500Report, every_root: bool = False) -> str:
    """Return the report for the terminal: the reference's lines first, then our own blocks."""
    if report.failures:
        shown = report.failures[:20]
        return "\n".join(
            [
                f"INVALID: {len(report.failures)} of {len(report.roots)} searches failed",
                *shown,
                "No results printed for invalid run.",
            ]
        )
    blocks = ["\n".join(report.lines()), _machine_block(report), _schedule_block(report)]
    for record in report.roots if every_root else [report.typical()]:
        title = "levels of root" if every_root else "levels of the search of median time, root"
        result = record.result
        blocks.append(
            f"{title} {result.root}: {1e3 * result.seconds:.3f} ms, "
            f"{result.teps / 1e9:.3f} GTEPS, gather and restore "
            f"{1e3 * result.gather_seconds:.3f} ms\n{format_levels(result.traces)}"
        )
    if report.energy is not None:
        blocks.append("energy\n" + energy.format_report(report.energy))
    return "\n\n".join(blocks)


def _machine_block(report: Graph500Report) -> str:
    machine = describe_machine(report.device)
    device = report.device
    removed = report.num_vertices - report.searched_vertices
    checked = report.roots[0].validation is not None
    lines = [
        f"validation: {'all five checks passed for every key' if checked else 'not done'}",
        f"host: {machine['cpu']}, {machine['threads']} threads",
        "device: none" if device is None else f"device: {device.name} ({device.platform})",
        f"selector: {report.selector}",
        f"edge array: {report.parts} part{'s' if report.parts > 1 else ''}",
        "relabelling: off"
        if report.order == "given"
        else f"relabelling: {removed} of {report.num_vertices} vertices have no edges and left "
        "the searched range",
        f"construction: {report.construction_seconds:.3f} s, "
        f"{report.upload_seconds:.3f} s of it upload; kernels compiled and warmed up in "
        f"{report.compile_seconds:.3f} s (not counted)",
    ]
    return "\n".join(lines)


def _schedule_block(report: Graph500Report) -> str:
    """Count which strategies ran at each level over all searches."""
    by_level: list[Counter[str]] = []
    seconds: list[float] = []
    for record in report.roots:
        for level, trace in enumerate(record.result.traces):
            if level == len(by_level):
                by_level.append(Counter())
                seconds.append(0.0)
            by_level[level][trace.strategy] += 1
            seconds[level] += trace.seconds + trace.transfer_seconds
    lines = ["level  mean ms  strategies over all searches"]
    for level, counts in enumerate(by_level[:32]):
        named = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        mean = 1e3 * seconds[level] / counts.total()
        lines.append(f"{level:>5} {mean:>8.3f}  {named}")
    if len(by_level) > 32:
        lines.append(f"... and {len(by_level) - 32} more levels (--trace has them all)")
    return "\n".join(lines)


def _without_folder(argument: str) -> str:
    """Leave out the folders of an absolute path: they say nothing elsewhere."""
    return Path(argument).name if argument.startswith("/") else argument


def _log2(number: int) -> float:
    return math.log2(number) if number else 0.0
