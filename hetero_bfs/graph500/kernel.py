"""The options of a run, and the interfaces between the protocol, its processes, and its kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.generators.kronecker import KroneckerEdges
from hetero_bfs.graph500.report import Graph500Report, KeyRecord
from hetero_bfs.options import EngineOptions

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
        """Whether edges need weights."""
        return self.kernel == "sssp"

    def generator(self) -> KroneckerEdges:
        """Return the generator of the graph, if no file holds it."""
        arguments = self.scale, self.edgefactor, self.seed1, self.seed2
        return KroneckerEdges(*arguments, weighted=self.weighted)


T = TypeVar("T")


class Outcome(Protocol):
    """The validation's result for one search."""

    @property
    def valid(self) -> bool:
        """Whether all checks passed."""

    @property
    def message(self) -> str:
        """The result in one line."""

    @property
    def nedge(self) -> int:
        """Traversed edges, counted independently of the search."""


class GroupValidator(Protocol):
    """Validates the searches of a group in one pass over the edges."""

    def is_full(self) -> bool:
        """Tell whether the group takes no further search."""

    def finish(self) -> Sequence[Outcome]:
        """Return the outcomes in the order of the searches; the group is empty afterwards."""


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
    def make_validator(self, size: int) -> GroupValidator:
        """Return a validator of groups of this size."""

    def end_validation(self) -> None:  # noqa: B027
        """Release memory that the validator shares with other processes; all of them call it."""

    @abstractmethod
    def search(self, keys: list[int]) -> list[Any]:
        """Search from keys back-to-back; return the results in the caller's ids."""

    def search_only(self, key: int) -> None:
        """Search once for an energy meter, without copying the result if that can be left out."""
        self.search([key])

    @abstractmethod
    def record(self, key: int, result: Any, validator: Any | None) -> KeyRecord:
        """Pass a search's result to the validator, and keep only its figures."""


class Processes(ABC):
    """The processes of a run: they read the edges, build the graph, and open the kernel.

    All processes make the same calls.
    """

    size = 1
    host_size = 1
    """Processes on this host."""
    generation_seconds: float
    construction_seconds: float
    num_vertices: int
    num_input_edges: int

    @abstractmethod
    def check(self) -> None:
        """Refuse options, and a generated graph that does not fit in memory."""

    @abstractmethod
    def compile(self) -> None:
        """Build, search and validate a tiny graph, so that nothing compiles while it is timed.

        It has the types of the edges, if they are read already.
        """

    @abstractmethod
    def read(self) -> list[str]:
        """Read or generate the edges; return notes."""

    @abstractmethod
    def construct(self) -> None:
        """Build the graph that is searched."""

    @abstractmethod
    def is_isolated(self, vertex: int) -> bool:
        """Tell whether a vertex has no edge to another one."""

    @abstractmethod
    def open(self) -> Kernel:
        """Open the kernel."""

    def agreed(self, work: Callable[[], T]) -> T:
        """Do work without communication; an error of one process is one of all."""
        return work()

    def least(self, number: int) -> int:
        """Return the least number of all processes."""
        return number

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Return fields of the report."""
