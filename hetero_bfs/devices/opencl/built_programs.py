"""A device's context in this process, its programs, and the arrays that engines share.

All engines of a process share one context for each device, and build each program once. After an
error of a driver, which may have broken its context, engines that open later get another one.

A second process finds programs on disk. PyOpenCL knows the drivers that keep compiled code
themselves (PoCL, NVIDIA's). Other drivers' programs are kept as binaries in the private cache.
PoCL would compile all kernels once more, for every size of work-groups, to give a binary.
PyOpenCL's own cache is not used: it trusts its files, which are pickles.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from hetero_bfs.support import private_cache

_MOST_PROGRAMS = 256
"""Programs of a device that a process keeps; vertex programs make new ones without end."""

T = TypeVar("T")

_shared: dict[int, BuiltPrograms] = {}
"""By the device's address."""


class BuiltPrograms:
    """A context of one device, its programs, and objects in its memory that engines share.

    Parameters
    ----------
    device : pyopencl.Device
    """

    def __init__(self, device: Any) -> None:
        import pyopencl as cl

        self._cl, self._device = cl, device
        self.context = cl.Context([device])
        self._programs: dict[str, Any] = {}
        self._in_use: WeakValueDictionary[Any, Any] = WeakValueDictionary()
        self._one_at_a_time = threading.Lock()

    def shared(self, key: Any, make: Callable[[], T]) -> T:
        """Return the object of a key, made now unless it is in use already."""
        with self._one_at_a_time:
            found: T | None = self._in_use.get(key)
            if found is None:
                found = self._in_use[key] = make()
            return found

    def build(self, source: str, options: list[str]) -> Any:
        """Return the program of a source, with these options; PyOpenCL's errors come out."""
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
    """Build a program without the compiler's remarks, and without PyOpenCL's cache."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.build(options, cache_dir=False)


def _identity(device: Any) -> tuple[str, ...]:
    """Return all that a program depends on beside its source and options."""
    import pyopencl as cl

    platform = device.platform
    # PYOPENCL_BUILD_OPTIONS, OCLGRIND_BUILD_OPTIONS
    forced = [entry for entry in os.environ.items() if entry[0].endswith("_BUILD_OPTIONS")]
    return (
        platform.name, platform.vendor, platform.version, device.name, device.vendor,
        device.version, device.driver_version, cl.VERSION_TEXT, repr(sorted(forced)),
    )  # fmt: skip


def programs_of(device: Any) -> BuiltPrograms:
    """Return this process's context of a device, with its programs."""
    found = _shared.get(device.int_ptr)
    return found or _shared.setdefault(device.int_ptr, BuiltPrograms(device))


def forget() -> None:
    """Let devices that are opened from now on have contexts of their own."""
    _shared.clear()


def _abandon() -> None:
    """Never release a parent process's objects: for that, a driver would need its threads."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(_shared.values())))
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)
