"""The options of a run, and the interface between the protocol and its kernel.

`RankKernel` is common to the kernels on several ranks.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.driver import NO_DEVICE
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.options import EngineOptions
from hetero_bfs.ranks.communicator import Communicator
from hetero_bfs.ranks.construction import construct
from hetero_bfs.ranks.partition import FileShare, RankGraph
from hetero_bfs.ranks.rank_run import RankRun, slowest

KernelName = Literal["bfs", "sssp"]
"""The specification's kernel 2 and kernel 3."""


@dataclass(frozen=True)
class Graph500Options:
    """Options of a run; the defaults are Graph500's own. `graph` names a file instead of a scale.

    `engine` has the order of the vertices and the settings of searches; "sssp" uses only the
    settings of devices.
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
        """Return the report's fields of a search, the largest distance, and reached vertices."""


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

    validator: ClassVar[type[Any]]
    """A `HostTree` that makes the five checks of a search."""

    @classmethod
    def compile(
        cls, communicator: Communicator, edges: EdgeList, threads: int, validate: bool
    ) -> None:
        """Build a graph, search from vertex 0 and perhaps validate, so that all loops compile."""
        share = FileShare(edges, edges.num_input_edges, None)
        graph = construct(communicator, edges, share.num_input_edges)
        options = EngineOptions(selector="fixed:TC,BC,TC", device=NO_DEVICE)
        with closing(cls(communicator, graph, share, options, threads)) as kernel:
            (result,) = kernel.search([0])
            if validate:
                kernel.make_validator(1).add(0, *kernel.found(result))

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
        started = time.perf_counter()
        self.open(options, threads)
        self.open_seconds = slowest(communicator, time.perf_counter() - started)

    @abstractmethod
    def open(self, options: EngineOptions, threads: int) -> None:
        """Prepare searches."""

    def close(self) -> None:
        self._search.close()

    def make_validator(self, size: int) -> OneByOne:
        share = self._share
        self._validator = self.validator(self.communicator, share.edges, share.input_degree)
        return OneByOne(self._validator.validate)

    def end_validation(self) -> None:
        self._validator.close()

    def get_ready(self, keys: list[int]) -> int:
        return len(keys)
