"""Linux control groups that limit memory or CPU time, as containers and batch systems do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import sleep

_MOUNT = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000  # the system's default

Join = Callable[[], None]


def memory_group(limit: int) -> AbstractContextManager[Join | None]:
    """Make a control group of so many bytes; yield what a child process calls to join it.

    None where this user cannot make one. The processes must have ended before the group does.
    """
    return _group({_MOUNT / "memory": "memory.limit_in_bytes", _MOUNT: "memory.max"}, limit)


def cpu_group(cores: float) -> AbstractContextManager[Join | None]:
    """Make a control group with the time of so many cores; as `memory_group`."""
    quota = int(cores * _PERIOD_MICROSECONDS)
    return _group({_MOUNT / "cpu": "cpu.cfs_quota_us", _MOUNT: "cpu.max"}, quota)


@contextmanager
def _group(limit_files: dict[Path, str], limit: int) -> Iterator[Join | None]:
    for top, name in limit_files.items():
        folder = top / f"hetero-bfs-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            try:
                with (folder / name).open("r+") as stream:
                    stream.write(str(limit))
            except OSError:  # a hierarchy without this limit, or one for others to change
                continue
            yield lambda folder=folder: _join(folder)
            return
        finally:
            _remove(folder)
    yield None


def _join(folder: Path) -> None:
    (folder / "cgroup.procs").write_text("0")  # the writing process


def _remove(folder: Path) -> None:
    for _ in range(100):  # the system forgets processes a little later
        with suppress(OSError):
            folder.rmdir()
            return
        sleep(0.05)
