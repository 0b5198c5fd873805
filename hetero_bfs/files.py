"""Writing files so that a failure leaves no half-written one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hetero_bfs.errors import HeteroBFSError


@contextmanager
def replacing(path: Path, mode: str = "w", **options: Any) -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` for writing; it takes the name when all went well.

    Raises
    ------
    HeteroBFSError
        The folder does not exist or cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, mode, **options) as stream:
            yield stream
        os.replace(temporary, path)
    except OSError as error:
        raise HeteroBFSError(
            f"cannot write {path}: {error.strerror or error}; nothing was changed there"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
