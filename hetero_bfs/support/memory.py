"""Host memory: page-aligned arrays that a device can use in place, free memory, and limits."""

from __future__ import annotations

import mmap
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError

# Linux control groups, with which containers and batch systems limit processes.
#
# Version 2 has one hierarchy of groups, version 1 one for each kind of limit. A process is limited
# by its group and by all groups above it.

_MEMBERSHIPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


def groups(controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield the folders whose files may limit this process, and whether they are of version 2.

    `controller` is version 1's name of the kind of limit. In a container only the mount point may
    exist, which then is the folder of the process's group.
    """
    try:
        lines = _MEMBERSHIPS.read_text(errors="replace").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        top = _MOUNT / controller if controllers else _MOUNT
        inside = Path(path.lstrip("/"))
        for folder in (inside, *inside.parents):
            yield top / folder, not controllers


# Memory limits of Linux control groups, as containers and batch systems set them.
#
# The system ends a process that exceeds its limit.


class _Files(NamedTuple):
    """A group's files; `prefix` begins the entries of `memory.stat` that include its subgroups."""

    limit: str
    usage: str
    prefix: str


_VERSION_2 = _Files("memory.max", "memory.current", "")
_VERSION_1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
_RECLAIMABLE = "active_file", "inactive_file"  # the page cache


class MemoryLimit(NamedTuple):
    """The limit of the control group that leaves the least memory, in bytes."""

    limit_bytes: int
    free_bytes: int


def memory_limit() -> MemoryLimit | None:
    found = (
        _read_limit(folder, _VERSION_2 if version_2 else _VERSION_1)
        for folder, version_2 in groups("memory")
    )
    limits = [limit for limit in found if limit is not None]
    return min(limits, key=lambda limit: limit.free_bytes, default=None)


def _read_limit(folder: Path, files: _Files) -> MemoryLimit | None:
    try:
        limit = int((folder / files.limit).read_text())
        used = int((folder / files.usage).read_text())
        entries = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        reclaimable = sum(int(entries.get(files.prefix + name, 0)) for name in _RECLAIMABLE)
    except (OSError, ValueError):  # no such group, or no limit: "max"
        return None
    return MemoryLimit(limit, max(limit - used + reclaimable, 0))


PAGE_BYTES = 4096
GIB = 2**30

_HUGE_PAGES_FROM_BYTES = 1 << 22  # twice the size of a huge page on x86
_SHARED_MEMORY = Path("/dev/shm")
_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


def aligned_empty(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a one-dimensional array that starts on a page and owns whole pages.

    The system maps it, so that `shrink` can release a part, and fills it with zeros.
    """
    dtype = np.dtype(dtype)
    num_bytes = -(-max(size * dtype.itemsize, 1) // PAGE_BYTES) * PAGE_BYTES
    pages = mmap.mmap(-1, num_bytes, flags=_PRIVATE) if _PRIVATE else mmap.mmap(-1, num_bytes)
    if num_bytes >= _HUGE_PAGES_FROM_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype, size)


class Recycler:
    """Makes arrays, and reuses the memory of arrays that are no longer referenced.

    Fresh memory takes as long as filling it: the system provides it page by page, with zeros.
    Memory of one size is kept, at most `most_bytes` in all.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._spare: list[npt.NDArray[np.uint8]] = []

    def empty(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        dtype = np.dtype(dtype)
        num_bytes = size * dtype.itemsize
        if not 0 < num_bytes <= self.most_bytes:
            return np.empty(size, dtype)
        if self._spare and self._spare[0].size != num_bytes:
            self._spare.clear()
        memory = self._spare.pop() if self._spare else np.empty(num_bytes, np.uint8)
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

    Their content is lost. On systems without such a call (Windows) the pages stay.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    pages = owner.obj  # NumPy keeps the mapping through a memoryview
    kept = -(-size * array.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
    if hasattr(mmap, "MADV_DONTNEED") and kept < len(pages):
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


def check_free_memory(num_bytes: int, what: str, remedy: str) -> None:
    """`num_bytes` is an estimate."""
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
