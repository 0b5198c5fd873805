"""A device's context in this process, its programs, and the arrays that engines share.

All engines of a process share one context per device, and build each program once. A driver error
may have broken the context, so engines that open after an error get a new one.

Other processes find programs on disk. PyOpenCL knows the drivers that cache compiled code
themselves (PoCL, NVIDIA's). Programs of other drivers are kept as binaries in the private cache.
(To give a binary, PoCL would compile all kernels again for each work-group size.) PyOpenCL's own
cache is not used: it trusts its files, which are pickles.

Numbers that Python and OpenCL C share are written in Python, and generated for every program. A
module that shares numbers with its OpenCL counterpart has a table `OPENCL`, name to number, or an
`IntEnum`. The builder of a program passes the tables that the program's files need (`header`).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from hetero_bfs.graph.edge_source import NO_VERTEX
from hetero_bfs.support import private_cache

Constants = Mapping[str, int | float] | type[IntEnum]

C_TYPES = {
    np.dtype(np.int32): "int",
    np.dtype(np.uint32): "uint",
    np.dtype(np.int64): "long",
    np.dtype(np.uint64): "ulong",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
"""Type names in OpenCL C."""

MIXED_DEGREES = 0xFFFFFFFF
"""Replaces the common degree of 32 vertices if their degrees differ (top_down.cl)."""

SPREAD = 32
LINE_WORDS = 32
ARRIVALS = SPREAD * LINE_WORDS
GAVE_UP = 2 * ARRIVALS
"""Layout of `sync` in grid.cl: number of cache lines, uint32 words per line, first word of the
arrivals, and the last word, which is set if a barrier gave up.
"""

SHARED: Mapping[str, int] = {
    "NO_VERTEX": NO_VERTEX,
    "MIXED_DEGREES": MIXED_DEGREES,
    "SPREAD": SPREAD,
    "LINE": LINE_WORDS,
    "ARRIVALS": ARRIVALS,
    "GAVE_UP": GAVE_UP,
}
"""Numbers for the kernel files of this folder."""


def header(*tables: Constants) -> str:
    """Return `#define` lines for all constants of the tables; floats get type REAL."""
    merged: dict[str, int | float] = {}
    for table in tables:
        members = table if isinstance(table, Mapping) else table.__members__
        for name, value in members.items():
            if merged.setdefault(name, value) != value:
                raise ValueError(f"{name} is {merged[name]} in one table and {value} in another")
    return "".join(f"#define {name} {_literal(value)}\n" for name, value in merged.items())


def _literal(value: int | float) -> str:
    if isinstance(value, float):
        return f"((REAL){value!r}f)"
    if value > 0xFFFFFFFF:
        return f"{value:#x}ul"
    return f"{value:#x}u" if value > 0x7FFFFFFF else str(value)


_MOST_PROGRAMS = 256
"""Programs of a device that a process keeps; vertex programs make new ones without limit."""

T = TypeVar("T")

_shared: dict[int, BuiltPrograms] = {}
"""Keys are the devices' addresses."""


class BuiltPrograms:
    """A context of a `pyopencl.Device`, its programs, and shared objects in its memory."""

    def __init__(self, device: Any) -> None:
        import pyopencl as cl

        self._cl, self._device = cl, device
        self.context = cl.Context([device])
        self._programs: dict[str, Any] = {}
        self._in_use: WeakValueDictionary[Any, Any] = WeakValueDictionary()
        self._one_at_a_time = threading.Lock()

    def shared(self, key: Any, make: Callable[[], T]) -> T:
        """Return the object of a key; make it unless it is still in use."""
        with self._one_at_a_time:
            found: T | None = self._in_use.get(key)
            if found is None:
                found = self._in_use[key] = make()
            return found

    def build(self, source: str, options: list[str]) -> Any:
        """Return the program of a source and options; PyOpenCL's errors pass through."""
        stamp = repr((_identity(self._device), options, source)).encode()
        key = hashlib.sha256(stamp).hexdigest()
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._build(source, options, key, stamp)
            for oldest in list(self._programs)[:-_MOST_PROGRAMS]:
                self._programs.pop(oldest, None)
        return program

    def _build(self, source: str, options: list[str], key: str, stamp: bytes) -> Any:
        from pyopencl.characterize import has_src_build_cache

        if has_src_build_cache(self._device):
            return _without_warnings(self._cl.Program(self.context, source), options)
        name = f"program-{key[:32]}.bin"
        with suppress(OSError, self._cl.Error):  # a driver may refuse a binary
            kept = private_cache.read(name, stamp)
            return _without_warnings(
                self._cl.Program(self.context, [self._device], [kept]), options
            )
        program = _without_warnings(self._cl.Program(self.context, source), options)
        with suppress(self._cl.Error):
            private_cache.write(name, stamp, program.get_info(self._cl.program_info.BINARIES)[0])
        return program


def _without_warnings(program: Any, options: list[str]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(options, cache_dir=False)


def _identity(device: Any) -> tuple[str, ...]:
    import pyopencl as cl

    platform = device.platform
    # PYOPENCL_BUILD_OPTIONS, OCLGRIND_BUILD_OPTIONS
    forced = [entry for entry in os.environ.items() if entry[0].endswith("_BUILD_OPTIONS")]
    return (
        platform.name, platform.vendor, platform.version, device.name, device.vendor,
        device.version, device.driver_version, cl.VERSION_TEXT, repr(sorted(forced)),
    )  # fmt: skip


def programs_of(device: Any) -> BuiltPrograms:
    found = _shared.get(device.int_ptr)
    return found or _shared.setdefault(device.int_ptr, BuiltPrograms(device))


def forget() -> None:
    _shared.clear()


def _abandon() -> None:
    """Never release a parent process's objects: a driver would need its threads for that."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(_shared.values())))
    _shared.clear()


os.register_at_fork(after_in_child=_abandon)
