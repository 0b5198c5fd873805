"""An algorithm's run on the CPU: its arrays, threads and compiled loops, from start to end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from hetero_bfs.devices.cpu.workers import make_control, start_workers


class HostRun:
    """Base class of runs on the CPU.

    A subclass makes the arrays, links the phases that threads run, and names its loops. Nothing is
    compiled before `prepare` or `shared` is used. `threads` includes the caller's thread.
    """

    _name: ClassVar[str]
    """Name of the struct of arrays."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.control = make_control(threads)
        self._stop: Callable[[], object] | None = None

    def _make_fields(self) -> dict[str, Any]:
        raise NotImplementedError

    def _link(self, struct: Any) -> None:
        """Compile the phases for these arrays, and store their addresses in the arrays."""
        raise NotImplementedError

    def _visible(self, struct: Any) -> Any:
        """Return the part of the arrays that loops see, by default all of them."""
        return struct

    def _loops(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return compiled functions with their arguments, for `prepare` to compile."""
        return []

    def _worker(self) -> Any:
        from hetero_bfs.devices.cpu.sharing import run_worker

        return run_worker

    @cached_property
    def fields(self) -> dict[str, Any]:
        return self._make_fields()

    @cached_property
    def struct(self) -> Any:
        from hetero_bfs.support.by_address import Struct

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
        import numba

        shared = self.shared
        for loop, arguments in self._loops():
            loop.compile(tuple(numba.typeof(argument) for argument in arguments))
        self._stop = start_workers(self, self._worker(), self.control, shared, self.threads)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()
