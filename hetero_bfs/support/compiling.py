"""Compiles kernels, with options that all of them share."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit, types
from numba.core import event
from numba.core.registry import CPUDispatcher

from hetero_bfs.support.code_cache import compiled
from hetero_bfs.support.environment import ways_of_compiling

_WHILE_COMPILING = (100_000, 50, 1000)
"""Thresholds of gc.set_threshold: memory grows by some megabytes."""


class _Compilations(event.Listener):  # type: ignore[misc]
    """Makes garbage collection less frequent in compilations, and prints a line if they take long.

    Compiling makes many objects that live until its end. Repeated searches for cycles among them
    would take a sixth of the time. Compilations nest, and Numba's lock lets only one thread compile
    at a time.
    """

    def __init__(self) -> None:
        self.is_due = "PYTEST_CURRENT_TEST" not in os.environ and "pytest" not in sys.modules
        self._depth, self._began, self._spent = 0, 0.0, 0.0
        self._usual = gc.get_threshold()

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.monotonic()
            self._usual = gc.get_threshold()
            gc.set_threshold(*_WHILE_COMPILING)
        self._depth += 1
        self._look()

    def on_end(self, event: Any) -> None:
        self._look()
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._began
            gc.set_threshold(*self._usual)

    def _look(self) -> None:
        spent = self._spent + time.monotonic() - self._began
        if self.is_due and spent > _NOTICE_SECONDS:
            self.is_due = False
            if "quiet" not in ways_of_compiling():
                print(_NOTICE, file=sys.stderr, flush=True)


_NOTICE_SECONDS = 2.0
_NOTICE = (
    "hetero_bfs compiles its kernels for this machine, which it does once; `hetero-bfs warm-up` "
    "does so beforehand"
)

event.register("numba:compile", _Compilations())

# By default GNU OpenMP's waiting threads spin for milliseconds. On a busy machine, or if this CPU
# is also the OpenCL device, they occupy a core that the work needs: a 0.1 ms level then takes
# 16 ms. With about 0.1 ms of spinning, idle machines are as fast as before; see
# benchmarks/notes/cpu.md.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    parallel: bool = False,
    counted: bool = True,
    inlined: bool = False,
    inner: bool = False,
) -> Any:
    """Compile a function at its first call; it runs without Python's lock.

    Used as `@kernel` or with options:

    counted : False for functions that make no arrays and are called often by several threads. Numba
        then omits its reference counts of arrays, which are atomic updates of shared words
    inlined : True for small functions that would pass on many arrays, since each is several words
    inner : True for functions that only kernels call; the wrapper for Python is not compiled
    """
    if function is None:
        options = {"parallel": parallel, "counted": counted, "inlined": inlined, "inner": inner}
        return lambda f: kernel(f, **options)
    options = {
        "nogil": True,
        "parallel": parallel,
        "_nrt": counted,
        "forceinline": inlined,
        "no_cpython_wrapper": inner,
        "no_cfunc_wrapper": True,
    }
    dispatcher = _one_for_all_values(compiled(**options)(function))
    if inner:
        dispatcher.__class__ = _InnerKernel
    return dispatcher


inlined = partial(njit, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Decorator of functions that only kernels call, and that LLVM inlines: not kept on disk."""


class _InnerKernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel without a wrapper for Python; a call raises instead of crashing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is for kernels; in Python call its py_func")


def _one_for_all_values(dispatcher: Any) -> Any:
    """Compile a function once for a type, even if kernels pass different constants of that type.

    Numba would compile it, and its callees, separately for 0, for 1 and for variables.
    """
    call_template = dispatcher.get_call_template

    def of_types(args: Any, kws: Any) -> Any:
        return call_template(
            tuple(types.unliteral(kind) for kind in args),
            {name: types.unliteral(kind) for name, kind in kws.items()},
        )

    dispatcher.get_call_template = of_types
    return dispatcher
