"""Writes files so that a failure never leaves an incomplete file.

The writer locks its temporary file. The system releases the lock when the process ends for any
reason. A temporary file that can be locked therefore has no owner, and the next writer in the
folder removes it. Process ids would not suffice: containers and hosts have their own, and they are
reused.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hetero_bfs.errors import HeteroBFSError

if TYPE_CHECKING:  # the command line starts without NumPy
    import numpy.typing as npt

# Some network file systems keep locks per host, so the host is in the name.
_HOST = f"{zlib.crc32(os.uname().nodename.encode()):08x}"
_NAME = re.compile(rf"\.hetero-bfs-{_HOST}-[0-9a-f]{{16}}\.tmp")

_change = threading.RLock()
"""Held while names of files change. The thread that ends the process holds it until exit."""
_temporary: set[Path] = set()


@contextmanager
def replacing(
    path: Path, mode: str = "w", error_class: type[HeteroBFSError] = HeteroBFSError, **options: Any
) -> Iterator[IO[Any]]:
    """Open a temporary file next to `path` for writing; on success it is renamed to `path`.

    `mode` is "w" or "wb"; `options` go to `open`. If the system cannot write, `error_class` is
    raised, and a file at `path` is unchanged.
    """
    try:
        with temporary_next_to(path) as (temporary, descriptor):
            with open(descriptor, mode, closefd=False, **options) as stream:
                yield stream
            with unbroken():
                os.replace(temporary, path)
    except OSError as error:
        raise error_class(f"{path}: cannot be written: {error.strerror or error}") from error


def write_array(stream: IO[bytes] | BufferedIOBase, array: npt.NDArray[Any]) -> None:
    """Write a contiguous array.

    NumPy's `tofile`, which `numpy.save` calls, raises no error if the disk is full at the end.
    """
    stream.write(array.data)


@contextmanager
def temporary_next_to(path: Path, folder: bool = False) -> Iterator[tuple[Path, int]]:
    """Make an empty file or folder next to `path`; yield its path and an open descriptor of it.

    It is removed at the end. Temporary files that ended processes left are removed at the start.
    """
    _sweep(path.parent)
    with unbroken():
        temporary, descriptor = _make(path.parent, folder)
        _temporary.add(temporary)
    try:
        yield temporary, descriptor
    finally:
        with unbroken():
            _remove(temporary)
            _temporary.discard(temporary)
            os.close(descriptor)


@contextmanager
def unbroken() -> Iterator[None]:
    """Keep signals from ending the process while names of files change in several steps."""
    with _change:
        yield


def discard_temporaries() -> None:
    """Remove this process's temporary files before it exits; other threads' writes then block."""
    _change.acquire()
    for path in _temporary:
        _remove(path)


def _make(parent: Path, folder: bool) -> tuple[Path, int]:
    while True:
        path = parent / f".hetero-bfs-{_HOST}-{os.urandom(8).hex()}.tmp"
        if folder:
            path.mkdir()
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with suppress(FileNotFoundError):  # another writer removed it before the lock: try again
            descriptor = _open(path, folder)
            lock(descriptor, wait=True)
            if _is_open_as(path, descriptor):
                return path, descriptor
            os.close(descriptor)


def _is_open_as(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _open(path: Path | str, folder: bool) -> int:
    kind = os.O_RDONLY if folder else os.O_RDWR
    return os.open(path, kind | os.O_NOFOLLOW | os.O_NONBLOCK)


def lock(descriptor: int, wait: bool) -> bool:
    """Lock an open file; False if another process holds the lock or the system has no locks."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def _sweep(parent: Path) -> None:
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                _remove_if_forgotten(entry)


def _remove_if_forgotten(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        folder = entry.is_dir(follow_symlinks=False)
        descriptor = _open(entry.path, folder)
        try:
            status = os.fstat(descriptor)
            ours = status.st_uid == os.geteuid() and (folder or stat.S_ISREG(status.st_mode))
            if ours and lock(descriptor, wait=False):
                _remove(Path(entry.path))
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def check_writable(path: Path) -> None:
    """Raise `HeteroBFSError` if a file of this name cannot be written."""
    if path.is_dir():
        raise HeteroBFSError(f"{path} cannot be written: it is a folder; name a file in it")
    if path.exists() and not path.is_file():  # writing would replace it
        raise HeteroBFSError(f"{path} cannot be written: it is not a regular file; name another")
    check_new_entry(path)


def check_new_entry(path: Path) -> None:
    """Try to make a file next to `path`; raise `HeteroBFSError` if that fails.

    Permission bits are not sufficient: a file system may be read-only, and root may write anywhere.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        what = (
            f"{folder} is a file, no folder"
            if folder.exists()
            else f"there is no folder {folder}; make it first"
        )
        raise HeteroBFSError(f"{path} cannot be written: {what}")
    try:
        with temporary_next_to(folder / path.name):
            pass
    except OSError as error:
        raise HeteroBFSError(
            f"{path} cannot be written: no file can be made in {folder} "
            f"({error.strerror or error}); name another folder"
        ) from error
