"""The cores and the memory that this process may use; control groups limit both.

The cores are those of its affinity. A control group's quota limits CPU time, not the cores. With a
thread for each core the group uses up its time early in each period, and all its threads wait for
the next period.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

# Linux control groups, with which containers and batch systems limit processes.
#
# Version 2 has one hierarchy of groups, version 1 one for each kind of limit. A process is limited
# by its group and by all groups above it. The system ends a process that exceeds its limit of
# memory.

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


_THREADS = "NUMBA_NUM_THREADS"
_set_here: set[str] = set()


@cache
def cpu_quota() -> float | None:
    """CPU time that control groups allow, in cores; None without a limit."""
    found = (_read_quota(folder, version_2) for folder, version_2 in groups("cpu"))
    return min((quota for quota in found if quota is not None), default=None)


def _read_quota(folder: Path, version_2: bool) -> float | None:
    try:
        if version_2:
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        cores = int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # no such group, or no limit: "max"
        return None
    return cores if cores > 0 else None  # -1: no limit


def core_numbers() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def bound_cores() -> int:
    return len(core_numbers())


def usable_cores(bound: int | None = None) -> int:
    """Return the number of cores to use, at least 1: `bound` cores, limited by the quota."""
    quota, bound = cpu_quota(), bound_cores() if bound is None else bound
    return bound if quota is None else min(bound, math.ceil(quota))


def keep_quota() -> None:
    """Let Numba start no more threads than a quota allows, unless the user has set their number.

    Numba reads the environment when it is loaded. If it is loaded already, this does nothing.
    """
    if "numba" in sys.modules or _THREADS in os.environ:
        return
    if (cores := usable_cores()) < bound_cores():
        os.environ[_THREADS] = str(cores)
        _set_here.add(_THREADS)


def numba_variables() -> list[str]:
    return [name for name in os.environ if name.startswith("NUMBA_") and name not in _set_here]
