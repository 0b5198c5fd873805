"""Compiling kernels: the options that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetero_bfs.code_cache import compiled


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    parallel: bool = False,
    counted: bool = True,
    inlined: bool = False,
) -> Any:
    """Compile a function when it is first called; it runs without holding Python's lock.

    Used as `@kernel` or with options. `counted=False` is for functions that make no arrays, called
    many times by several threads: Numba then leaves out its counting of references to arrays,
    atomic updates of words that all threads share. `inlined` is for small functions that would pass
    many arrays on: each array is several words.
    """
    if function is None:
        return lambda f: kernel(f, parallel=parallel, counted=counted, inlined=inlined)
    options = {"nogil": True, "parallel": parallel, "_nrt": counted, "forceinline": inlined}
    return compiled(**options)(function)
