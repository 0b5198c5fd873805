"""Shared by the commands of algorithms other than searches: running, and writing files."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import numpy.typing as npt

from hetero_bfs.algorithms.base import A, open_analysis
from hetero_bfs.cli.engine_settings import engine_options
from hetero_bfs.cli.output import print_notes, save_array, write_trace
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.scheduling.trials import Place
from hetero_bfs.support.memory import format_bytes


class _Result(Protocol):
    @property
    def used_device(self) -> bool:
        """Whether an OpenCL device computed the result."""


R = TypeVar("R", bound=_Result)


def run_analysis(
    kind: type[A],
    edges: CSRGraph | EdgeSource,
    options: Namespace,
    find: Callable[[A, Place | None], R],
) -> tuple[R, str | None]:
    """Run an algorithm on the chosen device; return its result and that device's name."""
    with open_analysis(kind, edges, engine_options(options)) as analysis:
        print_notes(analysis.notes)
        result = find(analysis, "device" if options.device is not None else None)
        return result, analysis.device_name if result.used_device else None


def device_line(device: str | None, result: Any) -> str:
    """Return the line that names the device, and says what was sent to it."""
    sent = f", {format_bytes(result.streamed_bytes)} of lists sent" * bool(result.streamed_bytes)
    return f"device {device or 'none'}{sent}"


def save_result(options: Namespace, array: npt.NDArray[Any], traces: Iterable[Any]) -> None:
    """Write the files of --out and --trace, if given."""
    if options.out is not None:
        save_array(options.out, array)
    if options.trace is not None:
        write_trace(options.trace, (trace.row() for trace in traces))
