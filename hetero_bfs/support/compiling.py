"""Compiling kernels: the options that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types

from hetero_bfs.kernels.collecting import collect_rarely
from hetero_bfs.support.code_cache import compiled

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
    return _one_for_all_values(compiled(**options)(function))


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
