"""The interface of a Graph500 kernel to the protocol: breadth-first search or shortest paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol, Self

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.search_graph import SearchGraph
from hetero_bfs.graph500.report import Graph500Report, KeyRecord

KernelName = Literal["bfs", "sssp"]
"""The specification's kernel 2 and kernel 3."""


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

    name: ClassVar[KernelName]

    held_bytes: ClassVar[int]
    """Size of a search's results in bytes per vertex."""

    @staticmethod
    @abstractmethod
    def compile(edges: EdgeSource, graph: SearchGraph) -> None:
        """Compile what is timed later, with a tiny graph and its edges."""

    notes: list[str]
    """Notes for the user on the devices."""

    @abstractmethod
    def close(self) -> None:
        """End the threads and release the device."""

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
        """Whether the data of all searches is in the host's memory."""

    @property
    @abstractmethod
    def construction_seconds(self) -> float:
        """Seconds to convert the graph to the searches' representation."""

    @abstractmethod
    def make_report(self, **shared: Any) -> Graph500Report:
        """Return the report; `shared` has the fields of all kernels' reports."""

    @abstractmethod
    def get_ready(self, keys: list[int]) -> int:
        """Run untimed searches; return how many searches to validate in a group."""

    @abstractmethod
    def make_validator(self, edges: EdgeSource, size: int) -> GroupValidator:
        """Return a validator of groups of this size."""

    @abstractmethod
    def search(self, keys: list[int]) -> list[Any]:
        """Search from keys back-to-back; return the results in the caller's ids."""

    @abstractmethod
    def search_only(self, key: int) -> None:
        """Search once for an energy meter, without copying the result."""

    @abstractmethod
    def record(self, key: int, result: Any, validator: Any | None) -> KeyRecord:
        """Pass a search's result to the validator, and keep only its figures."""
