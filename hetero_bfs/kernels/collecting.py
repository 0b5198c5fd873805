"""Python looks for garbage less often while Numba compiles.

Compiling makes many objects that live until it ends, and looking through them again and again for
circles takes a sixth of its time.
"""

from __future__ import annotations

import gc
from typing import Any

from numba.core import event

_WHILE_COMPILING = (100_000, 50, 1000)
"""Thresholds of gc.set_threshold: memory grows by some megabytes."""


class _Collector(event.Listener):  # type: ignore[misc]
    """Sets the thresholds while any function is being compiled, one within the other.

    Numba's lock lets one thread compile at a time.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._usual = gc.get_threshold()

    def on_start(self, event: Any) -> None:
        """Note that a function is being compiled."""
        if self._depth == 0:
            self._usual = gc.get_threshold()
            gc.set_threshold(*_WHILE_COMPILING)
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Note that it is done."""
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._usual)


def collect_rarely() -> None:
    """Have Python look for garbage less often from now on while Numba compiles."""
    event.register("numba:compile", _Collector())
