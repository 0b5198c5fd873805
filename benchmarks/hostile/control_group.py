"""A Linux control group that limits memory, as containers and batch systems do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep

_MOUNT = Path("/sys/fs/cgroup")
_LIMIT_FILES = {_MOUNT / "memory": "memory.limit_in_bytes", _MOUNT: "memory.max"}


@contextmanager
def memory_group(limit: int) -> Iterator[Callable[[], None] | None]:
    """Make a control group of so many bytes; yield what a child process calls to join it.

    None where this user cannot make one. The processes must have ended before the group does.
    """
    for top, name in _LIMIT_FILES.items():
        folder = top / f"hetero-bfs-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            try:
                with (folder / name).open("r+") as stream:
                    stream.write(str(limit))
            except OSError:  # a hierarchy without memory, or one for others to change
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
