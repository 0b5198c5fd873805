"""Shared by the readers of graph files: opening files, lines, and errors that name the position."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.list_checks import Fault

if TYPE_CHECKING:
    from io import BufferedIOBase


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


# Lines of text files, read in bounded memory, and files of vertices.
#
# A line ends with LF, CR LF, CR or the end of the file. It has at most 64 KiB: a longer line is not
# text, or was made to fill the memory.

LONGEST_LINE_BYTES = 1 << 16

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # Windows editors write it in UTF-8 files
_BLOCK_BYTES = 1 << 16
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Line(NamedTuple):
    """A line's number, from 1, the position of its first byte, and its bytes without line end."""

    number: int
    start: int
    text: bytes


def lines(handle: BufferedIOBase, path: Path) -> Iterator[Line]:
    """Yield the lines of a file that is read from its beginning.

    Raises `GraphFileError` if a line has over 64 KiB or a zero byte.
    """
    number = 0
    for number, (start, text) in enumerate(_pieces(handle), 1):
        if len(text) > LONGEST_LINE_BYTES or b"\0" in text:
            what = "a zero byte" if b"\0" in text else f"over {LONGEST_LINE_BYTES} bytes"
            raise GraphFileError(
                f"{path}:{number}: holds binary data, a line of {what} from byte {start} on; a "
                f"text file with lines of up to {LONGEST_LINE_BYTES} bytes is expected: check "
                "format and file name"
            )
        yield Line(number, start, text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text)


def _pieces(handle: BufferedIOBase) -> Iterator[tuple[int, bytes]]:
    """Yield start and text of each line; of a line that is too long only its beginning."""
    rest, start = b"", 0
    while block := handle.read(_BLOCK_BYTES):
        rest += block
        at = 0
        for match in _LINE_END.finditer(rest):
            if match.end() == len(rest) and match[0] == b"\r":
                break  # a newline may follow in the next block
            yield start + at, rest[at : match.start()]
            at = match.end()
        rest, start = rest[at:], start + at
        if len(rest) > LONGEST_LINE_BYTES + 1:  # 1 for a carriage return at its end
            break
    if rest:
        yield start, rest.removesuffix(b"\r")


_OF_DAMAGED_FILES = (
    ValueError, EOFError, OSError, TypeError, OverflowError, MemoryError, SyntaxError,
    RecursionError, TokenError,
)  # fmt: skip
"""Errors that NumPy raises for damaged files."""


def read_vertices(path: Path) -> npt.NDArray[Any]:
    """Return the ids (int64) of a text file, one per line, or the array of a .npy file.

    Empty lines, and lines that begin with #, are ignored. Raises `GraphFileError` if the file
    cannot be read, or a line is not an id.
    """
    with opened(path) as file:
        if path.suffix == ".npy":
            try:
                return np.lib.format.read_array(file, allow_pickle=False)
            except _OF_DAMAGED_FILES as error:
                reason = " ".join(str(error).split())[:200]
                raise GraphFileError(
                    f"{path}: is not a NumPy array ({reason}); write it by numpy.save"
                ) from None
        ids = []
        for number, line in enumerate(file, 1):
            text = line.strip()
            if text and not text.startswith(b"#"):
                try:
                    if not text.removeprefix(b"-").isdigit():  # Python reads 1_0, too
                        raise ValueError
                    ids.append(np.int64(int(text)))
                except (ValueError, OverflowError):
                    shown = text[:40].decode(errors="replace")
                    raise GraphFileError(
                        f"{path}:{number}: {shown!r} is not a vertex id; give one id a line"
                    ) from None
    return np.array(ids, np.int64)
