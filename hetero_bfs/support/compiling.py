"""Compiling kernels: the options that all of them share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.registry import CPUDispatcher

from hetero_bfs.support.code_cache import compiled
from hetero_bfs.support.collecting import collect_rarely

# GNU OpenMP's waiting threads spin for milliseconds by default. On a busy machine, and beside an
# OpenCL device that is this CPU, that steals the core the work waits for: a 0.1 ms level then takes
# 16 ms. About 0.1 ms of spinning keeps idle machines as fast (benchmarks/NOTES.md).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")

collect_rarely()


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    parallel: bool = False,
    counted: bool = True,
    inlined: bool = False,
    inner: bool = False,
) -> Any:
    """Compile a function when it is first called; it runs without holding Python's lock.

    Used as `@kernel` or with options. `counted=False` is for functions that make no arrays, called
    many times by several threads: Numba then leaves out its counting of references to arrays,
    atomic updates of words that all threads share. `inlined` is for small functions that would pass
    many arrays on: each array is several words. `inner` is for those that only kernels call: what
    Python and C need to call them is not compiled.
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


class _InnerKernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel that lacks what Python needs to call it, where Numba's would crash."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse."""
        raise TypeError(f"{self.py_func.__name__} is for kernels; in Python call its py_func")


def _one_for_all_values(dispatcher: Any) -> Any:
    """Have one function compiled for all constants of a type that kernels pass to it.

    Numba would compile it anew, with all that it calls, for 0, for 1, and for what is no constant.
    """
    call_template = dispatcher.get_call_template

    def of_types(args: Any, kws: Any) -> Any:
        return call_template(
            tuple(types.unliteral(kind) for kind in args),
            {name: types.unliteral(kind) for name, kind in kws.items()},
        )

    dispatcher.get_call_template = of_types
    return dispatcher
