"""Writing files so that a failure leaves no half-written one."""

from __future__ import annotations

import os
import secrets
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


def check_writable(path: Path) -> None:
    """Raise `HeteroBFSError` if a file of this name could not be written, before the work."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise HeteroBFSError(f"{path} cannot be written: there is no folder {folder}")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise HeteroBFSError(f"{path} cannot be written: is it a folder, or in one that is locked?")
