"""Common parts of the kernels on several ranks, and of their reports."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.graph500.kernel import Kernel, Outcome
from hetero_bfs.graph500.report import Graph500Report, KeyRecord, SearchFigures
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.partition import RankGraph
from hetero_bfs.ranks.shares import FileShare
from hetero_bfs.support.memory import format_bytes

Rows = npt.NDArray[np.float64]


class OneByOne:
    """A validator of groups of one search, which all ranks check together."""

    def __init__(self, validate: Callable[..., Outcome]) -> None:
        self._validate = validate
        self._outcomes: list[Outcome] = []

    def is_full(self) -> bool:
        return bool(self._outcomes)

    def add(self, *found: Any) -> None:
        self._outcomes.append(self._validate(*found))

    def finish(self) -> Sequence[Outcome]:
        outcomes, self._outcomes = self._outcomes, []
        return outcomes


class RankKernel(Kernel):
    """A kernel on a graph that is distributed among ranks."""

    held_bytes_per_vertex: ClassVar[int]
    """Bytes of a search's results for each vertex of the rank."""

    shared_bytes_per_vertex: ClassVar[int]
    """Bytes that the ranks of a host share, for each vertex of the graph."""

    def __init__(self, communicator: Communicator, graph: RankGraph, share: FileShare) -> None:
        self.communicator, self.graph, self._share = communicator, graph, share
        self.held_bytes = max(self.held_bytes_per_vertex * graph.input_degree.size, 1)
        self.notes: list[str] = []
        self.open_seconds = 0.0
        """Of the slowest rank."""

    @abstractmethod
    def open_validator(self, share: FileShare) -> Any:
        """Return the validator of the five checks."""

    def make_validator(self, size: int) -> OneByOne:
        """Return a validator of single searches."""
        self._validator = self.open_validator(self._share)
        return OneByOne(self._validator.validate)

    def end_validation(self) -> None:
        """Release the memory that the ranks of a host share."""
        self._validator.close()

    def get_ready(self, keys: list[int]) -> int:
        """Do nothing; a validator takes any number of searches."""
        return len(keys)

    def record(self, key: int, result: Any, validator: OneByOne | None) -> KeyRecord:
        """Validate a search; return the combined figures of all ranks."""
        seconds = -1.0
        if validator is not None:
            started = time.perf_counter()
            validator.add(key, *self.found(result))
            seconds = time.perf_counter() - started
        furthest, reached, nedge, steps = self.figures(result)
        search = SearchFigures(result.source, result.seconds, 0.0, nedge, steps)
        return KeyRecord(search, furthest, reached, None, seconds)

    @abstractmethod
    def found(self, result: Any) -> tuple[Any, ...]:
        """Return a search's arrays, as the validator takes them."""

    @abstractmethod
    def figures(self, result: Any) -> tuple[float, int, int, list[Any]]:
        """Return the largest distance, reached vertices, traversed edges, and the steps."""

    def combined(self, rows: Sequence[tuple[float, ...]]) -> tuple[Rows, Rows]:
        """Return the maximum and the sum over ranks, for each figure of each step of a search."""
        most = np.array(rows, np.float64)
        total = most.copy()
        self.communicator.reduce_to_all(most.reshape(-1), "max")
        self.communicator.reduce_to_all(total.reshape(-1), "sum")
        return most, total


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
        """Return the step as a record of the trace."""
        return asdict(self)


def step_figures(most: Rows, total: Rows, edges: int, ranks: int) -> dict[str, Any]:
    """Return the fields of `RankStep` from combined seconds, seconds of exchange, and bytes.

    `edges` is the index of the number of edges.
    """
    return {
        "seconds": float(most[0]),
        "mean_seconds": float(total[0]) / ranks,
        "exchange_seconds": float(most[1]),
        "bytes_sent": int(total[2]),
        "imbalance": float(most[edges] * ranks / total[edges]) if total[edges] else 1.0,
    }


@dataclass(kw_only=True)
class RanksReport(Graph500Report):
    """Results that both kernels produce on several ranks."""

    hosts: int
    threads: int
    """Of each rank."""
    rank_bytes: int
    """Bytes of neighbour lists and arrays, of the rank with the most."""
    replicated_bytes: int
    """Bytes of each rank that do not shrink with more ranks."""

    def own_figures(self) -> dict[str, Any]:
        """Return the figures that only the JSON of several ranks has."""
        return {
            "hosts": self.hosts,
            "threads_per_rank": self.threads,
            "rank_bytes": self.rank_bytes,
            "replicated_bytes": self.replicated_bytes,
        }

    def figures_of(self, record: KeyRecord) -> dict[str, Any]:
        """Return seconds of exchange and bytes of a search."""
        steps = record.result.traces
        return {
            "exchange_seconds": sum(step.exchange_seconds for step in steps),
            "bytes_sent": sum(step.bytes_sent for step in steps),
        }

    def machine_lines(self) -> list[str]:
        """Return the ranks, and their memory."""
        return [
            f"ranks: {self.processes} on {self.hosts} host{'s' if self.hosts > 1 else ''}, "
            f"{self.threads} thread{'s' if self.threads > 1 else ''} each",
            f"memory of the graph: {format_bytes(self.rank_bytes)} of a rank, and "
            f"{format_bytes(self.replicated_bytes)} that do not shrink with more ranks",
        ]
