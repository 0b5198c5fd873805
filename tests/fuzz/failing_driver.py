"""OpenCL drivers that fail, hang or end the process at the n-th call of a function.

failing_driver.c, compiled by cc, stands between the loader and every driver here.

    python -m tests.fuzz.failing_driver LIBRARY FAULT ARGUMENT...

runs the command line with such a driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random

_SOURCE = Path(__file__).with_suffix(".c")
KINDS = ("error", "hang", "abort")
_CODES = (-1, -2, -4, -5, -6, -14, -34, -36, -38, -52, -9999)
"""Device not found or not available; no memory, resources, or memory of the host; a failed event;
invalid context, queue, memory object and arguments; NVIDIA's own."""
_RARELY = ("CreateCommandQueue", "CreateProgramWithBinary", "CreateSubBuffer", "GetKernelArgInfo")
_MOST_CALLS = 100


@dataclass(frozen=True)
class DriverFault:
    """At which call of a function a driver fails, how, by which code, and whether for good.

    For good: all later calls fail that do not release something, as after a reset.
    """

    function: str
    call: int
    kind: str
    code: int
    for_good: bool


def draw_fault(chance: Random, kind: str = "error") -> DriverFault:
    """Return a fault of a kind; the first calls are drawn more often."""
    call = int(_MOST_CALLS ** chance.random())
    code, for_good = chance.choice(_CODES), chance.random() < 0.5
    return DriverFault(chance.choice(_functions()), call, kind, code, for_good)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hostile-")


@cache
def library() -> Path:
    """Compile the C code; return the library.

    Raises
    ------
    FileNotFoundError
        There is no C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("a driver that fails is compiled by cc, which is not installed")
    made = Path(_folder().name) / "failing_driver.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, _SOURCE], check=True)
    return made


@cache
def _installed(path: Path) -> ctypes.CDLL:
    """Put the library before every driver; nothing fails yet."""
    import pyopencl as cl

    loaded = ctypes.CDLL(str(path))
    loaded.call_name.restype = ctypes.c_char_p
    loaded.arm.argtypes = [ctypes.c_int, ctypes.c_int64, *[ctypes.c_int] * 3]
    for platform in cl.get_platforms():
        if loaded.install(ctypes.c_void_p(platform.int_ptr)):
            raise RuntimeError(f"calls of {platform.name} cannot be intercepted")
    return loaded


@cache
def _functions() -> list[str]:
    loaded = ctypes.CDLL(str(library()))
    loaded.call_name.restype = ctypes.c_char_p
    names = [loaded.call_name(which).decode() for which in range(loaded.num_calls())]
    return [name for name in names if name not in _RARELY]


def _arm(loaded: ctypes.CDLL, fault: DriverFault) -> None:
    names = [loaded.call_name(which).decode() for which in range(loaded.num_calls())]
    which, kind = names.index(fault.function), KINDS.index(fault.kind)
    loaded.arm(which, fault.call, kind, fault.code, fault.for_good)


@contextlib.contextmanager
def failing(fault: DriverFault) -> Iterator[ctypes.CDLL]:
    """Let drivers fail within; yields the library, whose `fault_came()` tells whether one did."""
    loaded = _installed(library())
    _arm(loaded, fault)
    try:
        yield loaded
    finally:
        loaded.arm(-1, 0, 0, 0, 0)


def command(fault: DriverFault) -> list[str]:
    """Return the start of a command line whose driver fails."""
    program = "tests.fuzz.failing_driver"
    return [sys.executable, "-m", program, str(library()), json.dumps(asdict(fault))]


def _main() -> None:
    path, fault, *arguments = sys.argv[1:]
    _arm(_installed(Path(path)), DriverFault(**json.loads(fault)))
    sys.argv = ["hetero-bfs", *arguments]
    runpy.run_module("hetero_bfs", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
