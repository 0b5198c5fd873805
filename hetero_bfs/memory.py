"""Host memory: arrays that a device can use in place (page-aligned), and how much is free."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError

PAGE_BYTES = 4096
GIB = 2**30


def aligned_empty(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialised one-dimensional array that starts on a page and owns whole pages."""
    dtype = np.dtype(dtype)
    num_bytes = size * dtype.itemsize
    padded = -(-max(num_bytes, 1) // PAGE_BYTES) * PAGE_BYTES
    raw = np.empty(padded + PAGE_BYTES, np.uint8)
    start = -raw.ctypes.data % PAGE_BYTES
    return raw[start : start + num_bytes].view(dtype)


def aligned_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array itself if a device can use it in place, else an aligned copy."""
    if array.flags.c_contiguous and array.ctypes.data % PAGE_BYTES == 0:
        return array
    copy = aligned_empty(array.size, array.dtype)
    copy[:] = array
    return copy


def free_bytes() -> int:
    """Return how much memory of the host is free."""
    import psutil

    return int(psutil.virtual_memory().available)


def check_free_memory(num_bytes: int, what: str, remedy: str) -> None:
    """Raise `GraphError` if the host has less free memory than an estimate."""
    free = free_bytes()
    if num_bytes > free:
        raise GraphError(
            f"{what} needs about {num_bytes / GIB:.1f} GiB of memory, {free / GIB:.1f} GiB are "
            f"free; {remedy}"
        )
