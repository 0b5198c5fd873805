"""What the command line does with Numba: it says that code is compiled, and ends the process.

The end comes after a signal, even while other code holds Python's lock (the GIL). PyOpenCL holds
that lock in many calls. If the driver hangs in such a call, no Python code runs any more.
`pass_on` is compiled and needs no lock.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any

from numba import types
from numba.core import event
from tqdm import tqdm

from hetero_bfs.support import code_cache, compiling, private_cache
from hetero_bfs.support.compiling import kernel

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
            print(f"compiling for this machine; times may include it{kept}", file=sys.stderr)
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
    compiling.compilations.is_due = False  # the announcer says it at once
    announcer = Announcer()
    event.register("numba:compile", announcer)
    return announcer


@cache
def _count_kernels() -> int:
    return sum(len(_KERNEL.findall(content)) for content in code_cache.kernel_sources().values())


_int, _word = types.int32, types.intp
_read = types.ExternalFunction("read", _word(_int, _word, _word))
_write = types.ExternalFunction("write", _word(_int, _word, _word))
_usleep = types.ExternalFunction("usleep", _int(types.uint32))
_exit = types.ExternalFunction("_exit", types.void(_int))


@kernel(counted=False)
def pass_on(reading, writing, numbers, patience, byte, said):
    """Pass bytes from one pipe to another until the first ends; end the process after some of them.

    `numbers` has the signals that end it, as bits: after byte n with bit n set the status is
    128 + n. Before that the reader of the second pipe has `patience` microseconds to clean up and
    end the process itself. Then `said` is written to standard error. `byte` is a buffer.
    """
    while True:
        came = _read(reading, byte.ctypes.data, 1)
        if came == 0:
            return
        if came < 0:
            continue  # a signal interrupted the call
        _write(writing, byte.ctypes.data, 1)
        if numbers >> byte[0] & 1:
            _usleep(patience)
            _write(2, said.ctypes.data, said.size)
            _exit(128 + byte[0])
