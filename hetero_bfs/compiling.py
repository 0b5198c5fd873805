"""What the command line says on stderr while Numba compiles."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import Any

from numba.core import event
from numba.core.dispatcher import Dispatcher
from tqdm import tqdm

import hetero_bfs.kernels

_PACKAGE = hetero_bfs.__name__ + "."


class Announcer(event.Listener):  # type: ignore[misc]
    """Says once that Numba compiles; on a terminal also what, and how many functions may follow.

    Functions that Numba has on disk are loaded, not compiled, and not counted.
    """

    def __init__(self) -> None:
        self._said = False
        self._within: list[str] = []  # functions that are being compiled, each one for the next
        self._done = 0
        self._bar: Any = None

    def on_start(self, event: Any) -> None:
        """Note that a function is being compiled."""
        if not self._said:
            print("compiling for this machine; later runs find it on disk", file=sys.stderr)
        self._said = True
        self._within.append(event.data["dispatcher"].py_func.__name__)
        if self._bar is None:
            self._bar = tqdm(
                desc="compiling",
                total=_count_kernels(),
                initial=self._done,
                file=sys.stderr,
                leave=False,
                disable=None,  # where stderr is no terminal
                bar_format="{desc}: {n_fmt} of at most {total_fmt} functions{postfix}",
            )
        self._bar.set_postfix_str(self._within[-1])

    def on_end(self, event: Any) -> None:
        """Note that it is done; the bar goes when no other function waits for this one."""
        self._within.pop()
        if event.data["dispatcher"].py_func.__module__.startswith(_PACKAGE):
            self._done += 1
            self._bar.update()
        if not self._within:
            self._bar.close()
            self._bar = None


def announce() -> Announcer:
    """Say from now on when Numba compiles."""
    announcer = Announcer()
    event.register("numba:compile", announcer)
    return announcer


def _count_kernels() -> int:
    """Return how many functions of this package are compiled at most."""
    folder = hetero_bfs.kernels
    for module in pkgutil.iter_modules(folder.__path__, folder.__name__ + "."):
        importlib.import_module(module.name)
    return len(
        {
            id(function)
            for name, module in list(sys.modules.items())
            if name.startswith(_PACKAGE)
            for function in vars(module).values()
            if isinstance(function, Dispatcher) and function.targetoptions.get("inline") != "always"
        }
    )
