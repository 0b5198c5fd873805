"""Runs parts of some work on several threads.

Numba compiles the body of each parallel loop three times. Therefore there is only one such loop,
which calls all work by address (by_address.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba import njit, prange

from hetero_bfs.support.by_address import Struct, address_of, call_part
from hetero_bfs.support.compiling import kernel


def in_parallel(work: Any, parts: int | None = None, /, **given: Any) -> None:
    """Let several threads call `work(given, part, parts)` for each part from 0 to `parts` - 1.

    `work` is a kernel that returns nothing. `given` is a struct of the keyword arguments. By
    default `parts` is the number of threads. A single part runs on the calling thread, without a
    barrier.
    """
    parts = numba.get_num_threads() if parts is None else parts
    struct = Struct(work.py_func.__name__, given)
    address = address_of(work, struct.numba_type, numba.int64, numba.int64)
    call = _call_all if parts > 1 else _call_one
    call(address, struct.address, parts)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Limit `in_parallel` in this thread to `threads` threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


@kernel(parallel=True, counted=False)
def _call_all(address, struct, parts):
    for part in prange(parts):
        call_part(address, struct, part, parts)


@kernel(counted=False)
def _call_one(address, struct, parts):
    for part in range(parts):
        call_part(address, struct, part, parts)


@njit(inline="always")
def part_of(size, part, parts):
    return size * part // parts, size * (part + 1) // parts
