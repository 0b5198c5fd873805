"""Compiling kernels, with a cache on disk that is never used blindly.

Numba keeps compiled code per function, and compiles anew if the function's own file, Numba's
version or the processor has changed. But kernels call others in other files: a change there must
count too. So the cache's mark of freshness is taken from all kernel files together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit, types

from hetero_bfs.kernels.collecting import collect_rarely

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
    dispatcher = _one_for_all_values(njit(cache=True, **options)(function))
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not hasattr(cache_file, "_source_stamp"):  # a Numba that keeps it elsewhere: no cache
        return _one_for_all_values(njit(**options)(function))
    cache_file._source_stamp = (cache_file._source_stamp, sources_digest())
    return dispatcher


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


@cache
def sources_digest() -> str:
    """Return a digest of all kernel files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
