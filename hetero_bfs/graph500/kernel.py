"""The options of a run, and the interface between the protocol and its kernel.

`RankKernel` has what the kernels on several ranks share.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.partition import FileShare, RankGraph
from hetero_bfs.ranks.rank_run import RankRun
from hetero_bfs.support.memory import format_bytes

KernelName = Literal["bfs", "sssp"]
"""The specification's kernel 2 and kernel 3."""


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

    @property
    def weighted(self) -> bool:
        return self.kernel == "sssp"

    def generator(self) -> KroneckerEdges:
        arguments = self.scale, self.edgefactor, self.seed1, self.seed2
        return KroneckerEdges(*arguments, weighted=self.weighted)


class Kernel(ABC):
    """A kernel on a graph that is ready to search."""

    held_bytes: int
    """Bytes of a search's results in this process."""

    notes: list[str]
    """Notes for the user on the devices."""

    device_info: DeviceInfo | None = None
    """The OpenCL device in use."""

    uses_host_memory = True
    """Whether the data of all searches is in the host's memory."""

    construction_seconds = 0.0
    """Seconds to convert the graph to the searches' representation."""

    @abstractmethod
    def close(self) -> None:
        """End the threads and release the device."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def make_report(self, **shared: Any) -> Graph500Report:
        """Return the report after the last search; `shared` has the fields of all reports."""

    @abstractmethod
    def get_ready(self, keys: list[int]) -> int:
        """Run untimed searches; return how many searches to validate in a group."""

    @abstractmethod
    def make_validator(self, size: int) -> Any:
        """Return a validator of groups of this size, which has `is_full`, `add` and `finish`.

        It checks a group in one pass over the edges. `finish` returns outcomes in the order of the
        searches, and empties the group.
        """

    def end_validation(self) -> None:  # noqa: B027
        """Release memory that the validator shares with other processes; all of them call it."""

    @abstractmethod
    def search(self, keys: list[int]) -> list[Any]:
        """Search from keys back-to-back; return the results in the caller's ids."""

    def search_only(self, key: int) -> None:
        """Search once for an energy meter, without copying the result if that can be left out."""
        self.search([key])

    def record(self, key: int, result: Any, validator: Any | None) -> KeyRecord:
        """Pass a search's result to the validator, and keep only its figures."""
        seconds = -1.0
        if validator is not None:
            started = time.perf_counter()
            validator.add(key, *self.found(result))
            seconds = time.perf_counter() - started
        search, furthest, reached = self.figures(result)
        return KeyRecord(search, furthest, reached, None, seconds)

    @abstractmethod
    def found(self, result: Any) -> tuple[Any, ...]:
        """Return a search's arrays, as the validator takes them."""

    @abstractmethod
    def figures(self, result: Any) -> tuple[Any, float, int]:
        """Return what the report reads of a search, the largest distance, and reached vertices."""


class OneByOne:
    """A validator of groups of one search, which all ranks check together."""

    def __init__(self, validate: Callable[..., Any]) -> None:
        self._validate = validate
        self._outcomes: list[Any] = []

    def is_full(self) -> bool:
        return bool(self._outcomes)

    def add(self, *found: Any) -> None:
        self._outcomes.append(self._validate(*found))

    def finish(self) -> list[Any]:
        outcomes, self._outcomes = self._outcomes, []
        return outcomes


class RankKernel(Kernel):
    _search: RankRun[Any]

    held_bytes_per_vertex: ClassVar[int]
    """Bytes of a search's results for each vertex of the rank."""

    shared_bytes_per_vertex: ClassVar[int]
    """Bytes that the ranks of a host share, for each vertex of the graph."""

    def __init__(
        self,
        communicator: Communicator,
        graph: RankGraph,
        share: FileShare,
        options: EngineOptions,
        threads: int,
    ) -> None:
        self.communicator, self.graph, self._share = communicator, graph, share
        self.held_bytes = max(self.held_bytes_per_vertex * graph.input_degree.size, 1)
        self.notes: list[str] = []
        self.open_seconds = 0.0
        """Of the slowest rank."""
        self.open(options, threads)

    @abstractmethod
    def open(self, options: EngineOptions, threads: int) -> None:
        """Prepare searches."""

    def close(self) -> None:
        self._search.close()

    @abstractmethod
    def open_validator(self, share: FileShare) -> Any:
        """Return the validator of the five checks."""

    def make_validator(self, size: int) -> OneByOne:
        self._validator = self.open_validator(self._share)
        return OneByOne(self._validator.validate)

    def end_validation(self) -> None:
        self._validator.close()

    def get_ready(self, keys: list[int]) -> int:
        return len(keys)

    def combined(
        self, steps: Sequence[Any], own: Callable[[Any], tuple[float, ...]]
    ) -> Iterator[tuple[Any, list[int], dict[str, Any]]]:
        """Yield each step of a search, sums over ranks, and the fields of `RankStep`.

        `own` returns the figures of a step on this rank to sum: vertices, edges, and others.
        """
        ranks = self.communicator.size
        rows = [(s.seconds, s.exchange_seconds, s.bytes_sent, *own(s)) for s in steps]
        most = np.array(rows, np.float64)
        total = most.copy()
        self.communicator.reduce_to_all(most.reshape(-1), "max")
        self.communicator.reduce_to_all(total.reshape(-1), "sum")
        for step, largest, sums in zip(steps, most, total, strict=True):
            seconds, _, sent, _, edges, *_ = sums
            fields = {
                "seconds": float(largest[0]),
                "mean_seconds": float(seconds) / ranks,
                "exchange_seconds": float(largest[1]),
                "bytes_sent": int(sent),
                "imbalance": float(largest[4] * ranks / edges) if edges else 1.0,
            }
            yield step, [int(number) for number in sums[3:]], fields


@dataclass(frozen=True, kw_only=True)
class RankStep:
    """Figures of all ranks for a step of a search.

    `seconds` and `mean_seconds` are own work, of the slowest rank and the mean over ranks.
    `exchange_seconds` are exchanges, reductions and waiting, the maximum over ranks. All ranks
    sent `bytes_sent` to other ranks. `imbalance` is the largest number of edges of a rank, divided
    by the mean.
    """

    seconds: float
    mean_seconds: float
    exchange_seconds: float
    bytes_sent: int
    imbalance: float

    def row(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(kw_only=True)
class RanksReport(Graph500Report):
    hosts: int
    threads: int
    """Of each rank."""
    rank_bytes: int
    """Bytes of neighbour lists and arrays, of the rank with the most."""
    replicated_bytes: int
    """Bytes of each rank that do not shrink with more ranks."""

    def own_figures(self) -> dict[str, Any]:
        return {
            "hosts": self.hosts,
            "threads_per_rank": self.threads,
            "rank_bytes": self.rank_bytes,
            "replicated_bytes": self.replicated_bytes,
        }

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        steps = record.result.traces
        return {
            "exchange_seconds": sum(step.exchange_seconds for step in steps),
            "bytes_sent": sum(step.bytes_sent for step in steps),
        }

    def machine_lines(self) -> list[str]:
        return [
            f"ranks: {self.processes} on {self.hosts} host{'s' if self.hosts > 1 else ''}, "
            f"{self.threads} thread{'s' if self.threads > 1 else ''} each",
            f"memory of the graph: {format_bytes(self.rank_bytes)} of a rank, and "
            f"{format_bytes(self.replicated_bytes)} that do not shrink with more ranks",
        ]
