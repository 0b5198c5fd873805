"""Loops over parts of a piece of work by several threads.

Numba compiles each parallel loop in three layers, every one of which has the loop's body. So there
is one such loop for all work, which calls the work by address (by_address.py).
"""

from __future__ import annotations

from typing import Any

import numba
from numba import njit, prange

from hetero_bfs.support.by_address import Struct, address_of, call_part
from hetero_bfs.support.compiling import kernel


def in_parallel(work: Any, parts: int | None = None, /, **given: Any) -> None:
    """Have several threads call `work(given, part, parts)` for all parts, from 0 on.

    `work` is a kernel that returns nothing, to which `given` is a struct of what is given here.
    There are as many parts as threads unless so many are asked for.
    """
    parts = numba.get_num_threads() if parts is None else parts
    struct = Struct(work.py_func.__name__, given)
    address = address_of(work, struct.numba_type, numba.int64, numba.int64)
    _call_all(address, struct.address, parts)


@kernel(parallel=True, counted=False)
def _call_all(address, struct, parts):
    for part in prange(parts):
        call_part(address, struct, part, parts)


@njit(inline="always")
def part_of(size, part, parts):
    """Return where a part of so many items begins and ends."""
    return size * part // parts, size * (part + 1) // parts
