"""Memory limits of Linux control groups, as containers and batch systems set them.

The system ends a process that exceeds its limit.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hetero_bfs.support.control_groups import groups


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
