"""The report of a Graph500 run: the reference's lines, our own blocks, and JSON."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs import energy
from hetero_bfs.devices.machine import DeviceInfo, describe_machine
from hetero_bfs.graph.relabel import Order
from hetero_bfs.scheduling.trace import Traced
from hetero_bfs.support.memory import format_bytes
from hetero_bfs.support.messages import number_of

# Statistics and lines of a Graph500 report, as in the reference code (version 3, src/main.c).
#
# TEPS, traversed edges per second, are not averaged directly. The statistics are computed of
# seconds per edge and inverted at the end, which makes the mean harmonic. A search without edges
# (from an isolated source) has TEPS 0, that is infinite seconds per edge. The run's harmonic mean
# and its standard deviation are then 0.

_TEPS_NAMES = [f"{name}_TEPS" for name in ("min", "firstquartile", "median", "thirdquartile")]
_TEPS_NAMES += ["max_TEPS", "harmonic_mean_TEPS", "harmonic_stddev_TEPS"]


def statistics(values: npt.ArrayLike) -> dict[str, float]:
    """Return the reference's seven statistics of n >= 1 numbers.

    A quartile is the mean of two order statistics; `stddev` divides by n - 1 and is NaN if n = 1.
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    n = x.size
    mean = sum(x.tolist()) / n
    with np.errstate(invalid="ignore"):  # infinite seconds per edge: stddev is NaN
        squares = np.sum((x - mean) ** 2)
    return {
        "minimum": float(x[0]),
        "firstquartile": float(x[(n - 1) // 4] + x[n // 4]) * 0.5,
        "median": float(x[(n - 1) // 2] + x[n // 2]) * 0.5,
        "thirdquartile": float(x[n - 1 - (n - 1) // 4] + x[n - 1 - n // 4]) * 0.5,
        "maximum": float(x[-1]),
        "mean": mean,
        "stddev": float(np.sqrt(squares / (n - 1))) if n > 1 else float("nan"),
    }


def teps_statistics(seconds: npt.ArrayLike, nedge: npt.ArrayLike) -> dict[str, float]:
    """Return the statistics of traversed edges per second, in the order of the report.

    `seconds` and `nedge` have one entry per search. The standard deviation of the harmonic mean is
    Norris's (Annals of Mathematical Statistics 11, 1940), NaN for a single search.
    """
    times, counts = np.asarray(seconds, dtype=np.float64), np.asarray(nedge, dtype=np.float64)
    per_edge = np.full(times.shape, np.inf)
    np.divide(times, counts, out=per_edge, where=counts > 0)
    s = statistics(per_edge)
    order = ("maximum", "thirdquartile", "median", "firstquartile", "minimum", "mean")
    with np.errstate(divide="ignore", invalid="ignore"):  # as in C: 1 / 0 is infinite
        teps = (1 / np.array([s[key] for key in order])).tolist()
        spread = s["stddev"] / (np.square(s["mean"]) * np.sqrt(per_edge.size - 1))
    if per_edge.size > 1 and np.isinf(s["mean"]):
        spread = 0.0
    return dict(zip(_TEPS_NAMES, [*teps, float(spread)], strict=True))


def _named(values: npt.ArrayLike) -> list[tuple[str, float]]:
    short = {"minimum": "min", "maximum": "max"}
    return [(short.get(key, key), value) for key, value in statistics(values).items()]


def _line(label: str, value: str) -> str:
    return label.ljust(32) + value


def _whole(number: float) -> str:
    return f"{int(number)}" if float(number).is_integer() else f"{number:g}"


@dataclass(frozen=True)
class SearchFigures(Traced):
    """Figures that are kept of a search when its result is dropped; see `BFSResult`."""

    source: int
    seconds: float
    gather_seconds: float
    nedge: int
    traces: list[Any]

    @property
    def teps(self) -> float:
        return self.nedge / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class KeyRecord:
    """One timed search and its validation; `furthest` is the largest distance.

    `validate_seconds` is the time to add the search to its group, plus an equal share of the
    group's pass over the edges. It includes generating the edges if they are not held. It is -1
    without validation.
    """

    result: Any
    """`SearchFigures`, or a result with the same fields; the kernel's report may read more."""
    furthest: float
    reached: int
    validation: Any
    """Has `valid` and a `message`; None without validation."""
    validate_seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "root": self.result.source,
            "time_seconds": self.result.seconds,
            "gather_seconds": self.result.gather_seconds,
            "nedge": self.result.nedge,
            "teps": self.result.teps,
            "reached": self.reached,
            "valid": None if self.validation is None else self.validation.valid,
        }


@dataclass(frozen=True)
class RanksFigures:
    """How a run is spread over ranks; the fields are the JSON's.

    `rank_bytes` are bytes of neighbour lists and arrays, of the rank with the most.
    `replicated_bytes` are bytes of each rank that do not shrink with more ranks.
    """

    hosts: int
    threads_per_rank: int
    rank_bytes: int
    replicated_bytes: int

    def lines(self, ranks: int) -> list[str]:
        hosts, threads = number_of(self.hosts, "host"), number_of(self.threads_per_rank, "thread")
        return [
            f"ranks: {ranks} on {hosts}, {threads} each",
            f"memory of the graph: {format_bytes(self.rank_bytes)} of a rank, and "
            f"{format_bytes(self.replicated_bytes)} that do not shrink with more ranks",
        ]


class Group(NamedTuple):
    """Steps of several searches with the same name, to take means over a number of `searches`."""

    name: Any
    steps: list[Any]
    searches: int


def mean_of(*fields: str, unit: float = 1.0) -> Callable[[Group], float]:
    """Return a function for the mean of the sum of fields of steps, in this unit."""

    def mean(group: Group) -> float:
        sums = (getattr(step, field) for step in group.steps for field in fields)
        return unit * float(sum(sums)) / group.searches

    return mean


@dataclass(kw_only=True)
class Graph500Report(ABC):
    """Results that runs of all kernels produce; each kernel has a subclass."""

    kernel: ClassVar[str]
    """The kernel's name in the reference's lines."""
    steps: ClassVar[str]
    """The unit that a record of a search's traces describes."""

    scale: float
    edgefactor: float
    device: DeviceInfo | None
    order: Order
    searched_vertices: int
    num_vertices: int
    generation_seconds: float
    construction_seconds: float
    upload_seconds: float
    compile_seconds: float
    edge_passes: int | None
    """Passes for which the edges were generated; None if they were held in memory."""
    searches_back_to_back: int
    """Searches of a group, whose results are inspected later. The first group also ran untimed."""
    notes: list[str]
    sources: list[KeyRecord]
    failures: list[str]
    energy: energy.EnergyReport | None = None
    processes: int = 1
    """Processes of MPI."""
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds of the construction by step, without the upload; empty on ranks."""
    ranks: RanksFigures | None = None
    """None without MPI."""

    @abstractmethod
    def own_figures(self) -> dict[str, Any]:
        """Return the figures that only this kernel's JSON has."""

    @abstractmethod
    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        """Return the figures of a search that only this kernel's JSON has."""

    @abstractmethod
    def machine_lines(self) -> list[str]:
        """Return lines on how this kernel searches."""

    @abstractmethod
    def schedule(self) -> str:
        """Return a table of all searches' strategies."""

    @abstractmethod
    def details(self, record: KeyRecord) -> str:
        """Return a table of one search."""

    @property
    def valid(self) -> bool:
        """True unless a validation failed."""
        return not self.failures

    def lines(self) -> list[str]:
        """Return the reference's lines; none for an invalid run.

        The reference reports on both kernels in one run, with the same names.
        """
        if self.failures:
            return []
        kernel = f"{self.kernel:<4}"
        seconds = [r.result.seconds for r in self.sources]
        nedges = [r.result.nedge for r in self.sources]
        lines = [
            _line("SCALE:", _whole(self.scale)),
            _line("edgefactor:", _whole(self.edgefactor)),
            _line("NBFS:", f"{len(seconds)}"),
            _line("graph_generation:", f"{self.generation_seconds:g}"),
            _line("num_mpi_processes:", f"{self.processes}"),
            _line("construction_time:", f"{self.construction_seconds:g}"),
        ]
        lines += [_line(f"{kernel} {k}_time:", f"{v:g}") for k, v in _named(seconds)]
        lines += [_line(f"{k}_nedge:", f"{v:.11g}") for k, v in _named(nedges)]
        for key, value in teps_statistics(seconds, nedges).items():
            label = f"{kernel} {key}:" + ("     !" if key == "harmonic_mean_TEPS" else "")
            lines.append(_line(label, f"{value:g}"))
        validating = _named([r.validate_seconds for r in self.sources])
        return lines + [_line(f"{kernel} {k}_validate:", f"{v:g}") for k, v in validating]

    def typical(self) -> KeyRecord:
        return sorted(self.sources, key=lambda r: r.result.seconds)[len(self.sources) // 2]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "scale": self.scale,
            "edgefactor": self.edgefactor,
            "nbfs": len(self.sources),
            "num_mpi_processes": self.processes,
            "valid": self.valid,
            "failures": self.failures,
            "generation_time_seconds": self.generation_seconds,
            "construction_time_seconds": self.construction_seconds,
            "construction_step_seconds": dict(self.step_seconds),
            "upload_time_seconds": self.upload_seconds,
            "compile_time_seconds": self.compile_seconds,
            "devices": ["cpu"] + ([] if self.device is None else [self.device.name]),
            **({} if self.ranks is None else asdict(self.ranks)),
            **self.own_figures(),
            "order": self.order,
            "num_vertices": self.num_vertices,
            "searched_vertices": self.searched_vertices,
            self.kernel: self._statistics(),
            "roots": [r.to_dict() | self.figures_of(r) | self._exchanged(r) for r in self.sources],
            "energy": None if self.energy is None else self.energy.to_dict(),
            "notes": self.notes,
            "edge_passes": self.edge_passes,
            "searches_in_a_row": self.searches_back_to_back,
        }

    def _exchanged(self, record: KeyRecord) -> dict[str, Any]:
        names = () if self.ranks is None else ("exchange_seconds", "bytes_sent")
        steps = record.result.traces
        return {name: sum(getattr(step, name) for step in steps) for name in names}

    def _statistics(self) -> dict[str, float | None]:
        """Return the statistics of times and TEPS."""
        seconds = [r.result.seconds for r in self.sources]
        nedges = [r.result.nedge for r in self.sources]
        values = {f"{k}_time_seconds": v for k, v in statistics(seconds).items()}
        values |= {k.lower(): v for k, v in teps_statistics(seconds, nedges).items()}
        figures: dict[str, float | None] = {
            k: v if math.isfinite(v) else None for k, v in values.items()
        }
        gathering = [r.result.gather_seconds for r in self.sources]
        return figures | {"mean_gather_seconds": float(np.mean(gathering))}

    def trace_rows(self) -> list[dict[str, Any]]:
        return [
            {"root": record.result.source, **trace.row()}
            for record in self.sources
            for trace in record.result.traces
        ]


def format_report(report: Graph500Report, every_key: bool = False) -> str:
    """Return the report for the terminal: the reference's lines first, then our own blocks."""
    if report.failures:
        shown = report.failures[:20]
        return "\n".join(
            [
                f"INVALID: {len(report.failures)} of {len(report.sources)} searches failed",
                *shown,
                "No results printed for invalid run.",
            ]
        )
    blocks = ["\n".join(report.lines()), _machine_block(report), report.schedule()]
    for record in report.sources if every_key else [report.typical()]:
        which = "source" if every_key else "the search of median time, source"
        result = record.result
        blocks.append(
            f"{report.steps} of {which} {result.source}: {1e3 * result.seconds:.3f} ms, "
            f"{result.teps / 1e9:.3f} GTEPS, gather and restore "
            f"{1e3 * result.gather_seconds:.3f} ms\n{report.details(record)}"
        )
    if report.energy is not None:
        blocks.append("energy\n" + energy.format_report(report.energy))
    return "\n\n".join(blocks)


_ORDERS: dict[Order, str] = {
    "degree": "by falling degree",
    "locality": "by locality",
    "compact": "the given order",
    "given": "off",
}


def _machine_block(report: Graph500Report) -> str:
    machine = describe_machine(report.device)
    device = report.device
    removed = report.num_vertices - report.searched_vertices
    checked = report.sources[0].validation is not None
    lines = [
        f"validation: {'all five checks passed for every key' if checked else 'not done'}",
        f"host: {machine['cpu']}, {machine['threads']} threads",
        "device: none" if device is None else f"device: {device.name} ({device.platform})",
        *([] if report.ranks is None else report.ranks.lines(report.processes)),
        *report.machine_lines(),
        f"relabelling: {_ORDERS[report.order]}; {removed} of {report.num_vertices} vertices have "
        "no edges and left the searched range",
        "edges: held in memory"
        if report.edge_passes is None
        else f"edges: not held; generated anew for each of {report.edge_passes} passes, "
        f"{report.generation_seconds:.3f} s a pass",
        f"searches: {report.searches_back_to_back} back-to-back before any result is "
        f"inspected, after {report.searches_back_to_back} untimed",
        f"construction: {report.construction_seconds:.3f} s, "
        f"{report.upload_seconds:.3f} s of it upload; kernels compiled and warmed up in "
        f"{report.compile_seconds:.3f} s (not counted)",
    ]
    if report.step_seconds:
        steps = (f"{step} {seconds:.3f} s" for step, seconds in report.step_seconds.items())
        lines.append(f"construction by step: {', '.join(steps)}")
    return "\n".join(lines)
