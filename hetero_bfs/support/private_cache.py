"""A folder for compiled code and results of tests, kept between processes, which only you may use.

Compiled code runs with your rights. An entry is therefore read only from a folder that you own and
that nobody else may access, and only if it is a regular file that you own. It begins with a SHA-256
digest of its content and its stamp, which names everything that the content depends on. A damaged,
stale or incomplete entry does not match and is ignored.

`NUMBA_CACHE_DIR` names the folder; by default it is the user's folder for caches.
`HETERO_BFS_COMPILED` names a second one, which is only read: the folder of an image or a cluster.
It and its files belong to root or you, and nobody else may write there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support.files import lock, replacing


def warn(text: str) -> None:
    """Warn why nothing is kept. The command line replaces this function."""
    warnings.warn(text, RuntimeWarning, stacklevel=2)


@cache
def folder() -> Path | None:
    """Return the folder; if it cannot be used, warn and return None."""
    try:
        place = _place()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise OSError(0, "it is not a folder of yours", str(place))
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise OSError(0, "others may use it, too (chmod 700 fixes that)", str(place))
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        _tell_of_failure(f"{where}{error.strerror or error}")
        return None
    return place


@cache
def given_folder() -> Path | None:
    """Return the folder that is only read; if it cannot be used, warn and return None."""
    named = os.environ.get("HETERO_BFS_COMPILED")
    if not named:
        return None
    place = Path(named).absolute()
    try:
        status = place.stat()
        if not stat.S_ISDIR(status.st_mode) or not _is_trusted(status):
            raise OSError(0, "it is not a folder that only root or you can write to")
    except OSError as error:
        warn(f"HETERO_BFS_COMPILED: {place} is not used: {error.strerror or error}")
        return None
    return place


def _is_trusted(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def read(name: str, stamp: bytes) -> bytes:
    """Return an entry; raise OSError if there is no complete one of this name and stamp."""
    try:
        return _read(folder(), name, stamp)
    except OSError:
        if given_folder() is None:
            raise
        return _read(given_folder(), name, stamp)


def _read(place: Path | None, name: str, stamp: bytes) -> bytes:
    if place is None:
        raise FileNotFoundError
    descriptor = os.open(place / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        trusted = _is_trusted(status) if place == given_folder() else status.st_uid == os.geteuid()
        if not stat.S_ISREG(status.st_mode) or not trusted:
            raise PermissionError
        digest, content = stream.read(32), stream.read()
    if hashlib.sha256(stamp + content).digest() != digest:
        raise OSError("damaged, or of another stamp")
    return content


def write(name: str, stamp: bytes, content: bytes) -> None:
    """Store an entry in place of an older one of its name; if that fails, warn once."""
    place = folder()
    if place is None:
        return
    try:
        with replacing(place / name, "wb") as stream:
            stream.write(hashlib.sha256(stamp + content).digest() + content)
    except HeteroBFSError as error:
        _tell_of_failure(f"{place}: {getattr(error.__cause__, 'strerror', None) or error}")


@contextmanager
def one_at_a_time(name: str) -> Iterator[None]:
    """Let one process after another run the body; all at once if no file can be locked."""
    place = folder()
    with ExitStack() as stack:
        with suppress(OSError):
            if place is not None:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
                descriptor = os.open(place / name, flags, 0o600)
                stack.callback(os.close, descriptor)
                lock(descriptor, wait=True)
        yield


def _place() -> Path:
    named = os.environ.get("NUMBA_CACHE_DIR")
    if named:
        return Path(named).absolute() / f"hetero_bfs-{os.geteuid()}"
    from platformdirs import user_cache_path

    return Path(user_cache_path("hetero_bfs", appauthor=False)) / "kernels"


@cache
def _tell_of_failure(reason: str) -> None:
    warn(
        f"compiled code is not kept, so every run compiles: {reason}; set NUMBA_CACHE_DIR to a "
        "folder that you can write to"
    )
