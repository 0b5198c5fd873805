"""The settings of an engine: one list, checked before any graph is built."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from hetero_bfs.devices.cpu.host_run import check_threads
from hetero_bfs.devices.machine import DeviceInfo, Tuning
from hetero_bfs.devices.opencl.driver import NO_DEVICE, choose_devices, plain_device_name
from hetero_bfs.errors import DeviceError
from hetero_bfs.graph.relabel import ORDERS
from hetero_bfs.scheduling.named_selectors import SELECTORS, check_selector_name
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.strategies import (
    MOST_DEVICES,
    SELECTORS_ORDERS,
)
from hetero_bfs.support.checks import check_choice, check_flag, check_integer, check_type

P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner")
Graph = TypeVar("Graph")


@dataclass(frozen=True)
class EngineOptions:
    """The settings of an `Engine`, checked when they are made.

    Parameters
    ----------
    selector : str or Selector
        "auto", "learned", "thresholds", "zhang", "alpha-beta", "daga", "yasui", "fixed:TC" and so
        on.
    device : str, optional
        Index or part of the name of an OpenCL device; by default ("auto") a GPU if there is one.
        Several are separated by commas; "all" takes one of each kind. Searches choose among the
        devices, other algorithms use the first one. "cpu" uses no OpenCL device.
    max_alloc_bytes : int, optional
        Limit for one part of the edge array; by default the device's own limit.
    order : {"auto", "degree", "locality", "compact", "given"}
        Relabelling (relabel.py); ignored for a SearchGraph, which is relabelled already. "auto" is
        "given" with selector "daga" and "degree" with "yasui", as in their papers.
    decision_interval : int
        Levels between two choices of the selector.
    threads : int, optional
        Threads that search on the host, including the caller's. Default and limit are one per core,
        in a container at most its quota of CPU time rounded up, or the environment variable
        NUMBA_NUM_THREADS.
    tuning : Tuning, optional
        How the kernels are compiled and launched on the OpenCL device; by default the speed model's
        tuning.
    device_memory_bytes : int, optional
        Limit for the use of the OpenCL device's memory; by default all of it. If a graph does not
        fit, its edges stay on the host and stream through the device in pages.
    correction : bool
        Whether searches correct the model's predictions (correction.py). Without it the same
        searches make the same choices every time.

    Raises
    ------
    ArgumentError
        A setting of the wrong type, out of range, or not among its choices.
    ModelError
        There is no selector of that name.
    """

    selector: str | Selector = "auto"
    device: str | None = None
    max_alloc_bytes: int | None = None
    order: str = "auto"
    decision_interval: int = 1
    threads: int | None = None
    tuning: Tuning | None = None
    device_memory_bytes: int | None = None
    correction: bool = True

    def __post_init__(self) -> None:
        check_selector(self.selector)
        self._set("device", plain_device_name(self.device))
        check_choice("order", self.order, ORDERS)
        check_flag("correction", self.correction)
        if self.tuning is not None:
            check_type("tuning", self.tuning, Tuning, "a Tuning, or None for the speed model's")
        for name in ("decision_interval", "max_alloc_bytes", "device_memory_bytes"):
            value = getattr(self, name)
            if value is not None or name == "decision_interval":
                self._set(name, check_integer(name, value, 1))
        if self.threads is not None:
            self._set("threads", check_threads(self.threads))
        if isinstance(self.selector, str):
            check_selector_name(self.selector)
            if self.order == "auto":
                self._set("order", SELECTORS_ORDERS.get(self.selector, "auto"))

    def _set(self, name: str, value: int | str | None) -> None:
        object.__setattr__(self, name, value)

    def find_devices(self, most: int = MOST_DEVICES) -> tuple[list[DeviceInfo], list[str]]:
        """Return the OpenCL devices to use, at most `most`, and a note if there is none on this
        machine.

        Raises
        ------
        DeviceError
            A device that `device` names is not there.
        """
        try:
            return choose_devices(self.device, most), []
        except DeviceError as error:
            if self.device is not None:
                raise
            return [], [f"searching on the CPU only: {error}"]

    def settings(self) -> dict[str, Any]:
        """Return the settings as keywords of `Engine`."""
        return dict(vars(self))


def check_selector(selector: Any) -> None:
    """Raise `ArgumentError` unless the value is a Selector or text."""
    names = f"a Selector or one of {', '.join(SELECTORS)}"
    check_type("selector", selector, (str, Selector), names)


def device_settings(info: DeviceInfo | None) -> dict[str, Any]:
    """Return the settings for searches on this OpenCL device; for None, on the host only."""
    return {"device": NO_DEVICE if info is None else str(info.index)}


def takes_settings(
    options: Callable[P, EngineOptions],
) -> Callable[
    [Callable[[Owner, Graph, EngineOptions], None]],
    Callable[Concatenate[Owner, Graph, P], None],
]:
    """Let callers pass each setting as a keyword to an `__init__` that takes a graph and options.

    The settings are therefore listed once, and `help` and type checkers see all of them.
    """

    def decorate(
        init: Callable[[Owner, Graph, EngineOptions], None],
    ) -> Callable[Concatenate[Owner, Graph, P], None]:
        def with_settings(self: Owner, graph: Graph, *args: P.args, **kwargs: P.kwargs) -> None:
            init(self, graph, options(*args, **kwargs))

        update_wrapper(with_settings, init)
        own = list(inspect.signature(init).parameters.values())[:2]
        settings = inspect.signature(options).parameters.values()
        signature = inspect.Signature([*own, *settings])
        with_settings.__signature__ = signature  # type: ignore[attr-defined]
        with_settings.__doc__ = options.__doc__
        return with_settings  # type: ignore[return-value]  # also takes the graph by name

    return decorate
