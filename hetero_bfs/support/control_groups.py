"""Linux control groups, with which containers and batch systems limit processes.

Version 2 has one hierarchy of groups, version 1 one for each kind of limit. A process is limited by
its group and by all groups above it. The system ends a process that exceeds its limit of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
