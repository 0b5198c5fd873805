"""The base class of reports: a result as its command checks it, writes it as JSON and prints it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import CheckOutcome
from hetero_bfs.graph.vertex_names import name_of
from hetero_bfs.scheduling.trace import ITERATIONS, Columns, format_table
from hetero_bfs.support.memory import format_bytes

R = TypeVar("R")


class Report(Generic[R]):
    """A result as its command checks it, writes it as JSON and prints it.

    `result` has `seconds`, `traces`, `used_device` and `streamed_bytes`. `arguments` are the
    arguments of the run, by name, with the path of each one that is a file; `values` has the values
    that were read from these files.
    """

    device: DeviceInfo | None = None
    """The device that ran it."""

    place_reason: str | None = None
    """Why the run was on its place; None if the caller named it."""

    columns: Columns = ITERATIONS
    """The columns of `table`."""

    def __init__(
        self,
        edges: Any,
        result: R,
        arguments: Mapping[str, Any],
        values: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.edges, self.result = edges, result
        self.arguments, self.values = arguments, values

    @property
    def device_name(self) -> str | None:
        return None if self.device is None else self.device.name

    def note_runs(self, runs: Any) -> None:
        """Note where the result came from; `runs` is the open `Analysis`."""
        result: Any = self.result
        self.device = runs.device_info if result.used_device else None
        self.place_reason = None if runs.choice is None else str(runs.choice)

    def note_ranks(self, engine: Any) -> None:
        """Note where the result of several ranks came from; `engine` is that of rank 0."""

    def check(self) -> CheckOutcome | None:
        """Check the result with independent code; None if there is nothing to check."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return lines for standard error."""
        return []

    def figures(self) -> dict[str, Any]:
        """Return the fields of the JSON that only this algorithm has."""
        return {}

    def lines(self) -> list[str]:
        """Return the summary; `text` adds the time to the last line."""
        raise NotImplementedError

    def summary(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        edges, result = self.edges, cast("Any", self.result)
        arguments: dict[str, Any] = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in self.arguments.items()
        }
        if "source" in arguments:
            arguments["source"] = name_of(edges, arguments["source"])
        return {
            **arguments,
            "num_vertices": edges.num_vertices,
            "num_input_edges": edges.num_input_edges,
            "seconds": result.seconds,
            "iterations": len(result.traces),
            **self.figures(),
            "device": self.device_name,
            "place_reason": self.place_reason,
            "streamed_bytes": result.streamed_bytes,
        }

    def text(self, valid: str = "") -> list[str]:
        """Return the lines that the command prints; `valid` says whether it was checked."""
        *lines, work = self.lines()
        result: Any = self.result
        streamed = result.streamed_bytes
        sent = f", {format_bytes(streamed)} of lists sent" if streamed else ""
        return [
            *lines,
            f"{work} in {1e3 * result.seconds:.3f} ms{valid}",
            f"device {self.device_name or 'none'}{sent}",
        ]

    def table(self) -> str:
        result: Any = self.result
        return format_table(self.columns, result.traces)
