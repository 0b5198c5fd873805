"""What the protocol asks of a kernel of Graph500: breadth-first search, or shortest paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol, Self, get_args

from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.report import Graph500Report, KeyRecord

KernelName = Literal["bfs", "sssp"]
"""The specification's kernel 2 and kernel 3."""

KERNELS: tuple[KernelName, ...] = get_args(KernelName)


class Outcome(Protocol):
    """What the validation of one search found."""

    @property
    def valid(self) -> bool:
        """Whether all checks passed."""

    @property
    def message(self) -> str:
        """What it found, in a line."""

    @property
    def nedge(self) -> int:
        """Traversed edges, counted independently of the search."""


class GroupValidator(Protocol):
    """Validates the searches of a group in one pass over the edges."""

    def is_full(self) -> bool:
        """Tell whether no other search shall join."""

    def finish(self) -> Sequence[Outcome]:
        """Return the outcomes in the order of the searches; the group is empty afterwards."""


class Kernel(ABC):
    """A kernel on a graph that is ready to search."""

    name: ClassVar[KernelName]

    held_bytes: ClassVar[int]
    """What the results of a search take, in bytes per vertex."""

    @staticmethod
    @abstractmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        """Compile what is timed later, with a tiny graph and its edges."""

    notes: list[str]
    """What a user should know of the devices."""

    @abstractmethod
    def close(self) -> None:
        """End the threads, and let go of the device."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    @abstractmethod
    def device_info(self) -> DeviceInfo | None:
        """The OpenCL device in use."""

    @property
    @abstractmethod
    def uses_host_memory(self) -> bool:
        """Whether no search's data is in a memory of its own."""

    @property
    @abstractmethod
    def construction_seconds(self) -> float:
        """Seconds to bring the graph into the form that searches read."""

    @abstractmethod
    def make_report(self, **shared: Any) -> Graph500Report:
        """Return the report after the last search; `shared` is what all kernels' reports have."""

    @abstractmethod
    def get_ready(self, keys: list[int]) -> int:
        """Search a little, untimed; return how many searches to validate in a group."""

    @abstractmethod
    def make_validator(self, edges: EdgeSource, size: int) -> GroupValidator:
        """Return what validates groups of so many searches."""

    @abstractmethod
    def search(self, keys: list[int]) -> list[Any]:
        """Search from keys back-to-back; return the results in the caller's ids."""

    @abstractmethod
    def search_only(self, key: int) -> None:
        """Search once for a meter; the result is left where it is."""

    @abstractmethod
    def record(self, key: int, result: Any, validator: Any | None) -> KeyRecord:
        """Give a search's result to the validator, and keep its figures alone."""
