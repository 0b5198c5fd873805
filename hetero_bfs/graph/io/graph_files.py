"""Shared by the readers of graph files: opening files, and errors that name the position."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.list_checks import Fault


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading, through gzip if its name ends in .gz.

    This alone turns errors of the system and of gzip into `GraphFileError`.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise GraphFileError(f"{path}: is not a regular file, which it must be: save it as one")
        with open(path, "rb") as raw:
            if path.suffix.lower() == ".gz":
                with _unzipped(raw, path) as handle:
                    yield handle
            else:
                yield raw
    except FileNotFoundError:
        raise GraphFileError(f"{path}: no such file; check the name and the directory") from None
    except IsADirectoryError:
        raise GraphFileError(f"{path}: is a directory; name a file in it") from None
    except OSError as error:
        raise GraphFileError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def _unzipped(raw: io.BufferedIOBase, path: Path) -> Iterator[io.BufferedIOBase]:
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=raw, mode="rb") as handle:
            yield handle
    except EOFError:
        raise GraphFileError(
            f"{path}: the gzip data stop at byte {raw.tell()} without their end marker; "
            "the file is truncated: fetch it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise GraphFileError(
            f"{path}: bad gzip data before byte {raw.tell()} ({error}); fetch it again, or take "
            ".gz off its name if it is not compressed"
        ) from error


def check_size(path: Path, actual: int, expected: int) -> None:
    if actual != expected:
        what = "truncated" if actual < expected else "too long"
        raise GraphFileError(
            f"{path}: ends at byte {actual}; its header asks for {expected} bytes: the file is "
            f"{what}, write or fetch it again"
        )


class Place(NamedTuple):
    """The first byte of a section in a file, and the bytes per entry."""

    start: int
    step: int


def refuse(path: Path, fault: Fault | None, places: Mapping[str, Place]) -> None:
    """Raise `GraphFileError` if there is a fault; `places` maps section names to positions."""
    if fault is None:
        return
    if fault.section == "indices" and fault.position is None:
        raise GraphFileError(
            f"{path}: byte 0: {fault.text}; write it again as directed, or symmetrized (GAP's "
            "converter: -s)"
        )
    start, step = places[fault.section]
    byte = start + step * (fault.position or 0)
    raise GraphFileError(f"{path}: byte {byte}: {fault.text}: the file is damaged, write it again")
