"""What an engine may be asked for: arguments checked before the graph is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hetero_bfs.algorithms.bfs.cpu_executor import check_threads
from hetero_bfs.devices.opencl.driver import check_device_name
from hetero_bfs.devices.opencl.tuning import Tuning
from hetero_bfs.errors import ArgumentError
from hetero_bfs.graph.edge_source import (
    check_vertex,
)
from hetero_bfs.selection.named_selectors import SELECTORS
from hetero_bfs.selection.selectors import Selector
from hetero_bfs.selection.strategies import AIMS
from hetero_bfs.support.checks import check_choice, check_flag, check_integer, check_type


def check_choices(
    selector: Any, device: Any, devices: Any, tuning: Any, optimize: Any, correction: Any
) -> None:
    """Raise `ArgumentError` for what `Engine` cannot use."""
    check_selector(selector)
    check_device_name(device)
    check_choice("devices", devices, ("all", "cpu"))
    check_choice("optimize", optimize, AIMS)
    check_flag("correction", correction)
    if tuning is not None:
        check_type("tuning", tuning, Tuning, "a Tuning, or None for the speed model's")


def check_selector(selector: Any) -> None:
    """Raise `ArgumentError` for what is neither a selector nor text."""
    names = f"a Selector or one of {', '.join(SELECTORS)}"
    check_type("selector", selector, (str, Selector), names)


def optional_threads(threads: Any) -> int | None:
    """Return a number of threads as Python's int, or None; see `check_threads`."""
    return None if threads is None else check_threads(threads)


def optional_bytes(name: str, size: Any) -> int | None:
    """Return a number of bytes as Python's int, or None; raises `ArgumentError` below 1."""
    return None if size is None else check_integer(name, size, 1)


def check_sources(sources: Any, num_vertices: int) -> list[int]:
    """Return vertex ids, from anything that yields them, as a list of Python's ints.

    Raises
    ------
    ArgumentError
        Nothing that yields any.
    GraphError
        One of them is not in the graph.
    """
    if not isinstance(sources, Iterable) or getattr(sources, "ndim", 1) == 0:
        raise ArgumentError(f"sources is {sources!r}; give a sequence of vertex ids")
    return [check_vertex(source, num_vertices) for source in sources]
