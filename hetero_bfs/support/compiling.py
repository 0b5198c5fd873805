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

from numba import njit


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
    dispatcher = njit(cache=True, **options)(function)
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not hasattr(cache_file, "_source_stamp"):  # a Numba that keeps it elsewhere: no cache
        return njit(**options)(function)
    cache_file._source_stamp = (cache_file._source_stamp, sources_digest())
    return dispatcher


@cache
def sources_digest() -> str:
    """Return a digest of all kernel files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
