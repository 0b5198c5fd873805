"""Memory limits of Linux control groups, as containers and batch systems set them.

A process that exceeds one is ended by the system. Version 2 has one hierarchy of groups, version 1
one for memory; a process is limited by its group and by all groups above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MEMBERSHIPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


class _Files(NamedTuple):
    """The files of a group, and how entries of `memory.stat` begin that count all its groups."""

    limit: str
    usage: str
    prefix: str


_VERSION_2 = _Files("memory.max", "memory.current", "")
_VERSION_1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
_RECLAIMABLE = "active_file", "inactive_file"  # the page cache


class MemoryLimit(NamedTuple):
    """The limit of a control group that leaves the least, in bytes."""

    limit_bytes: int
    free_bytes: int


def memory_limit() -> MemoryLimit | None:
    """Return the control group's limit that leaves the least memory; None if there is none."""
    found = (_read_limit(folder, files) for folder, files in _groups())
    limits = [limit for limit in found if limit is not None]
    return min(limits, key=lambda limit: limit.free_bytes, default=None)


def _groups() -> Iterator[tuple[Path, _Files]]:
    """Yield the folders that may limit this process's memory.

    In a container they may be missing, but for the mount point, which then is the process's group.
    """
    try:
        lines = _MEMBERSHIPS.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, files = (_MOUNT / "memory", _VERSION_1) if controllers else (_MOUNT, _VERSION_2)
        inside = Path(path.lstrip("/"))
        for folder in (inside, *inside.parents):
            yield top / folder, files


def _read_limit(folder: Path, files: _Files) -> MemoryLimit | None:
    try:
        limit = int((folder / files.limit).read_text())
        used = int((folder / files.usage).read_text())
        entries = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        reclaimable = sum(int(entries.get(files.prefix + name, 0)) for name in _RECLAIMABLE)
    except (OSError, ValueError):  # no such group, or no limit: "max"
        return None
    return MemoryLimit(limit, max(limit - used + reclaimable, 0))
