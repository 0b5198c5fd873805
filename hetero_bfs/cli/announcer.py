"""Messages of the command line on stderr while Numba compiles."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any

from numba.core import event
from tqdm import tqdm

from hetero_bfs.support import code_cache, compiling, private_cache

_KERNEL = re.compile(rb"^@(?:kernel|compiled)\b", re.MULTILINE)


class Announcer(event.Listener):  # type: ignore[misc]
    """Prints a line when Numba first compiles; on a terminal a bar shows the function's name.

    Functions that are loaded from disk are not compiled and not counted.
    """

    def __init__(self) -> None:
        self._said = False
        self._within: list[str] = []  # functions being compiled, each called by its predecessor
        self._done = 0
        self._bar: Any = None

    def on_start(self, event: Any) -> None:
        if not self._said:
            kept = "" if private_cache.folder() is None else "; later runs find it on disk"
            print(f"compiling for this machine{kept}", file=sys.stderr)
        self._said = True
        self._within.append(event.data["dispatcher"].py_func.__name__)
        if self._bar is None:
            self._bar = tqdm(
                desc="compiling",
                total=_count_kernels(),
                initial=self._done,
                file=sys.stderr,
                leave=False,
                disable=None,  # disabled if stderr is not a terminal
                bar_format="{desc}: {n_fmt} of at most {total_fmt} functions{postfix}",
            )
        self._bar.set_postfix_str(self._within[-1])

    def on_end(self, event: Any) -> None:
        self._within.pop()
        if (event.data["dispatcher"].py_func.__module__ or "").startswith("hetero_bfs."):
            self._done += 1
            self._bar.update()
        if not self._within:
            self._bar.close()
            self._bar = None


def announce() -> Announcer:
    compiling.notice.is_due = False  # the announcer says it at once
    announcer = Announcer()
    event.register("numba:compile", announcer)
    return announcer


@cache
def _count_kernels() -> int:
    return sum(len(_KERNEL.findall(content)) for content in code_cache.kernel_sources().values())
