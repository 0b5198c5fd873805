"""Host memory: page-aligned arrays that a device can use in place, and the free memory."""

from __future__ import annotations

import mmap
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError
from hetero_bfs.support.environment import memory_limit

PAGE_BYTES = 4096
GIB = 2**30

_HUGE_PAGES_FROM_BYTES = 1 << 22  # twice the size of a huge page on x86
_SHARED_MEMORY = Path("/dev/shm")


def aligned_empty(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a one-dimensional array that starts on a page and owns whole pages.

    The system maps it, so that `shrink` can release a part, and fills it with zeros.
    """
    dtype = np.dtype(dtype)
    num_bytes = -(-max(size * dtype.itemsize, 1) // PAGE_BYTES) * PAGE_BYTES
    pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if num_bytes >= _HUGE_PAGES_FROM_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype, size)


class Recycler:
    """Makes arrays, and reuses the memory of arrays that are no longer referenced.

    Fresh memory takes as long as filling it: the system provides it page by page, with zeros.
    Memory of one size is kept, at most `most_bytes` in all.
    """

    def __init__(self, most_bytes: int = 1 << 28) -> None:
        self.most_bytes = most_bytes
        self._spare: list[npt.NDArray[np.uint8]] = []

    def empty(
        self, size: int, dtype: npt.DTypeLike, check: Callable[[], None] = lambda: None
    ) -> npt.NDArray[Any]:
        """Return an array; call `check` before an allocation, but not if memory is reused."""
        dtype = np.dtype(dtype)
        num_bytes = size * dtype.itemsize
        if not 0 < num_bytes <= self.most_bytes:
            check()
            return np.empty(size, dtype)
        if self._spare and self._spare[0].size != num_bytes:
            self._spare.clear()
        if self._spare:
            memory = self._spare.pop()
        else:
            check()
            memory = np.empty(num_bytes, np.uint8)
        # The buffer is not an array, so that views of the returned array keep that array alive.
        array = np.frombuffer(memory.data, dtype, size)
        weakref.finalize(array, _keep, self._spare, memory, self.most_bytes).atexit = False
        return array


def _keep(
    spare: list[npt.NDArray[np.uint8]], memory: npt.NDArray[np.uint8], most_bytes: int
) -> None:
    if spare and spare[0].size != memory.size:
        spare.clear()
    if (len(spare) + 1) * memory.size <= most_bytes:
        spare.append(memory)


def shrink(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return the first entries of an `aligned_empty` array; give the pages behind them back.

    Their content is lost.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    pages = owner.obj  # NumPy keeps the mapping through a memoryview
    kept = -(-size * array.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
    if kept < len(pages):
        pages.madvise(mmap.MADV_DONTNEED, kept, len(pages) - kept)
    return array.reshape(-1)[:size]


def aligned_copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array itself if a device can use it in place, else an aligned copy."""
    if array.flags.c_contiguous and array.ctypes.data % PAGE_BYTES == 0:
        return array
    copy = aligned_empty(array.size, array.dtype)
    copy[:] = array
    return copy


def format_bytes(size: float) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = min(max(int(size).bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{size / 2 ** (10 * power):.3g} {units[power]}" if power else f"{size:.0f} bytes"


def free_bytes() -> int:
    """Bytes that this process may still use, on the host or in its control group."""
    import psutil

    free, limit = int(psutil.virtual_memory().available), memory_limit()
    return free if limit is None else min(free, limit.free_bytes)


def usable_bytes() -> int:
    """Bytes that this process could use on a machine that runs nothing else."""
    import psutil

    total, limit = int(psutil.virtual_memory().total), memory_limit()
    return total if limit is None else min(total, limit.limit_bytes)


_RELEASES: list[Callable[[], None]] = []


def release_when_short(release: Callable[[], None]) -> None:
    _RELEASES.append(release)


def check_free_memory(num_bytes: int, what: str, remedy: str) -> None:
    """`num_bytes` is an estimate."""
    free = free_bytes()
    if num_bytes > free and _RELEASES:
        for release in _RELEASES:
            release()
        free = free_bytes()
    if num_bytes > free:
        raise GraphError(
            f"{what} needs about {num_bytes / GIB:.1f} GiB of memory, {free / GIB:.1f} GiB are "
            f"free; {remedy}"
        )


def free_shared_bytes() -> int | None:
    return shutil.disk_usage(_SHARED_MEMORY).free if _SHARED_MEMORY.is_dir() else None


def check_shared_memory(num_bytes: int, what: str, remedy: str) -> None:
    """Raise `GraphError` if processes cannot share `num_bytes` more.

    The system grants any amount, and ends a process that uses more than there is.
    """
    free = free_shared_bytes()
    if free is not None and num_bytes > free:
        raise GraphError(
            f"{what} needs {format_bytes(num_bytes)} of memory that processes share, and "
            f"{_SHARED_MEMORY} has room for {format_bytes(free)}; {remedy}"
        )
