"""Makes Python's garbage collection less frequent while Numba compiles.

Compiling makes many objects that live until its end. Repeated searches for cycles among them would
take a sixth of the time.
"""

from __future__ import annotations

import gc
from typing import Any

from numba.core import event

_WHILE_COMPILING = (100_000, 50, 1000)
"""Thresholds of gc.set_threshold: memory grows by some megabytes."""


class _Collector(event.Listener):  # type: ignore[misc]
    """Sets the thresholds while any function is being compiled; compilations nest.

    Numba's lock lets only one thread compile at a time.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._usual = gc.get_threshold()

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._usual = gc.get_threshold()
            gc.set_threshold(*_WHILE_COMPILING)
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._usual)


def collect_rarely() -> None:
    event.register("numba:compile", _Collector())
