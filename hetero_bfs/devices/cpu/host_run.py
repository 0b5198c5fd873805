"""An algorithm's run on the CPU: its arrays, threads and compiled loops, from start to end."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numba
import numpy as np
import numpy.typing as npt

from hetero_bfs.devices.cpu.thread_pool import (
    SHUTDOWN,
    control_words,
    initialise,
    run_worker,
    shut_down,
)
from hetero_bfs.support.checks import check_integer
from hetero_bfs.support.memory import aligned_empty
from hetero_bfs.support.parallel import Struct, chunk_address


def most_threads() -> int:
    return int(numba.config.NUMBA_NUM_THREADS)


def check_threads(threads: Any) -> int:
    """Return the number of threads; raise `ArgumentError` unless it is 1 to `most_threads`."""
    remedy = (
        ", or leave it out for the usual number; the environment variable NUMBA_NUM_THREADS, if "
        "set, allows another number"
    )
    return check_integer("threads", threads, 1, most_threads(), remedy)


def start_workers(
    owner: object, worker: Any, control: npt.NDArray[np.int64], shared: Any, threads: int
) -> Callable[[], object]:
    """Start a pool's workers; they end with `owner`, or with the program.

    Worker number i runs worker(control, shared, i). `threads` includes the caller's thread, so
    1 starts no workers. Returns a function that ends the workers now.
    """
    if threads == 1:
        return no_workers
    shut_down(control)  # compiles the workers' code once, not in every thread
    worker(control, shared, 1)
    control[SHUTDOWN] = 0
    workers: list[threading.Thread] = []
    stop = weakref.finalize(owner, _stop_workers, control, workers, os.getpid())
    for number in range(1, threads):
        name = f"hetero_bfs worker {number}"
        arguments = control, shared, number
        each = threading.Thread(target=worker, args=arguments, name=name, daemon=True)
        each.start()
        workers.append(each)
    return stop


def no_workers() -> None:
    """Do nothing: no workers were started."""


def _stop_workers(
    control: npt.NDArray[np.int64], workers: list[threading.Thread], process: int
) -> None:
    if process != os.getpid():
        return  # they belong to the parent process, whose mutex may stay locked for ever
    shut_down(control)
    for each in workers:
        each.join(timeout=1.0)


class HostRun:
    """Base class of runs on the CPU.

    A subclass makes the arrays, and names its loops. Nothing is compiled before `prepare` or
    `shared` is used. `threads` includes the caller's thread.
    """

    _name: ClassVar[str]
    """Name of the struct of arrays."""

    _module: ClassVar[str]
    """Module of the kernels, and of the `PHASES` that threads run."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.control = aligned_empty(control_words(threads), np.int64)
        initialise(self.control)
        self._stop: Callable[[], object] | None = None

    def _make_fields(self) -> dict[str, Any]:
        raise NotImplementedError

    @cached_property
    def _kernels(self) -> Any:
        return import_module(self._module)

    def _phases(self) -> Mapping[int, Any]:
        """Return the phases that a run may need, by task; none if it has one thread."""
        phases: Mapping[int, Any] = self._kernels.PHASES
        return phases

    def _link(self, struct: Any) -> None:
        visible = self._visible(struct)
        for task, function in self._phases().items():
            arrays = struct if self._sees_all(function) else visible
            self.fields["work"][task] = chunk_address(function, arrays.numba_type)

    def _visible(self, struct: Any) -> Any:
        """Return the part of the arrays that loops see, by default all of them."""
        return struct

    def _sees_all(self, phase: Any) -> bool:
        """Tell whether a phase sees all arrays, or only the loops' arrays."""
        return True

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        return []

    def _worker(self) -> Any:
        return run_worker

    @cached_property
    def fields(self) -> dict[str, Any]:
        return self._make_fields()

    @cached_property
    def struct(self) -> Any:
        return Struct(self._name, self.fields)

    @cached_property
    def shared(self) -> Any:
        """The argument of loops: the arrays, with the addresses of compiled phases."""
        self._link(self.struct)
        return self._visible(self.struct)

    def prepare(self) -> None:
        """Compile, and start the workers; they end with `close`, with this object, or at exit."""
        if self._stop is not None:
            return
        shared = self.shared
        for loop, arguments in self._loops():
            loop.compile(tuple(numba.typeof(argument) for argument in arguments))
        self._stop = start_workers(self, self._worker(), self.control, shared, self.threads)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()
