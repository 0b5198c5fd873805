"""Writing files so that a failure leaves no half-written one."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hetero_bfs.errors import HeteroBFSError


@contextmanager
def replacing(
    path: Path, mode: str = "w", error_class: type[HeteroBFSError] = HeteroBFSError, **options: Any
) -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` for writing; it takes the name when all went well.

    `mode` is "w" or "wb"; `options` go to `open`.

    Raises
    ------
    error_class
        The system cannot write: no such folder, no permission, a full disk. What was at `path`
        is untouched.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, mode.replace("w", "x"), **options) as stream:
            yield stream
        os.replace(temporary, path)
    except OSError as error:
        raise error_class(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def printable(name: str) -> str:
    """Return a file's name with a question mark for each byte that is no text."""
    return name.encode("utf-8", "replace").decode()


def check_writable(path: Path) -> None:
    """Raise `HeteroBFSError` if a file of this name could not be written, before the work."""
    if path.is_dir():
        raise HeteroBFSError(f"{path} cannot be written: it is a folder; name a file in it")
    if path.exists() and not path.is_file():  # it would be replaced, not written to
        raise HeteroBFSError(f"{path} cannot be written: it is no regular file; name another")
    check_new_entry(path)


def check_new_entry(path: Path) -> None:
    """Raise `HeteroBFSError` if nothing new could be put beside `path`, by trying it.

    Permission bits do not tell: a file system may be read-only, and root may write anywhere.
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
        with tempfile.TemporaryDirectory(prefix=".hetero-bfs-", dir=folder):
            pass
    except OSError as error:
        raise HeteroBFSError(
            f"{path} cannot be written: folder {folder}: {error.strerror or error}"
        ) from error
