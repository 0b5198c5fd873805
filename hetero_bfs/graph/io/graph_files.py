"""Shared by the readers of graph files: opening files, lines, and errors that name the position."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.io.formats import BY_SUFFIX, COMPRESSIONS, recognised, suffixes
from hetero_bfs.graph.list_checks import Fault
from hetero_bfs.support.messages import setting

if TYPE_CHECKING:
    from io import BufferedIOBase


_HEAD_BYTES = 1 << 12
_STDIN = "-"


class Wanted(NamedTuple):
    directed: bool = False
    weighted: bool = False
    renumber: bool = False
    columns: tuple[str, ...] | None = None


class GraphFile:
    """A graph file, its format and its compression.

    Standard input, named "-", and pipes are copied to an unnamed temporary file, since readers read
    the beginning twice. Messages show `str(file)`.

    Raises `GraphFileError` for a missing file, an unknown suffix, or a file that is neither regular
    nor a pipe.
    """

    def __init__(self, path: str | os.PathLike[str], form: str | None = None) -> None:
        """Take the format from `form`, a suffix, or from the name; recognise that of a pipe."""
        self.path = Path(path)
        self._copy: IO[bytes] | None = None
        is_pipe = self._check_kind()
        if is_pipe:
            self._copy = _copied(self.path)
        name = self.path.name.lower()
        if form is not None:
            name = f"x.{form.lower().lstrip('.')}"
        self.compression = next((end for end in COMPRESSIONS if name.endswith(end)), "")
        self.suffix = Path(name.removesuffix(self.compression)).suffix
        if form is not None and self.compression == "":
            self.compression = self._recognised_compression()
        elif form is None and is_pipe:
            self.compression = self._recognised_compression()
            with self.opened() as handle:
                self.suffix = recognised(handle.read(_HEAD_BYTES))
        elif form is None and name.startswith("out.") and self.suffix not in BY_SUFFIX:
            self.suffix = ".txt"  # KONECT's
        row = BY_SUFFIX.get(self.suffix)
        if row is None or (self.compression and not row.is_text):
            remedy = (
                f"rename or convert the file, or name its format by {setting('format', '.txt')}"
            )
            raise unknown_suffix(self, self.suffix + self.compression, suffixes(), remedy)
        self.format = row

    def __str__(self) -> str:
        return "standard input" if str(self.path) == _STDIN else str(self.path)

    def __fspath__(self) -> str:
        return str(self)

    def num_bytes(self) -> int:
        with system_errors(self), self._raw() as raw:
            return raw.seek(0, os.SEEK_END)

    def _check_kind(self) -> bool:
        """Return whether this is a pipe; raise `GraphFileError` if it cannot be read at all."""
        if str(self.path) == _STDIN:
            return True
        with system_errors(self):
            mode = os.stat(self.path).st_mode
        if stat.S_ISDIR(mode):
            raise GraphFileError(f"{self}: is a directory; name a file in it")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise GraphFileError(f"{self}: is neither a file nor a pipe: save it as a file")
        return stat.S_ISFIFO(mode)

    def _recognised_compression(self) -> str:
        with self._raw() as raw:
            head = raw.read(_HEAD_BYTES)
        return next((end for end, mark in COMPRESSIONS.items() if head.startswith(mark)), "")

    @contextmanager
    def opened(self) -> Iterator[io.BufferedIOBase]:
        """Open for reading, decompressed.

        This alone turns errors of the system and of decompression into `GraphFileError`.
        """
        with system_errors(self), self._raw() as raw:
            if self.compression:
                with _decompressed(raw, self) as handle:
                    yield handle
            else:
                yield raw

    def _raw(self) -> io.BufferedIOBase:
        if self._copy is None:
            return open(self.path, "rb")
        self._copy.seek(0)
        return open(os.dup(self._copy.fileno()), "rb")


def unknown_suffix(path: Any, suffix: str, known: list[str], remedy: str) -> GraphFileError:
    text = ", ".join(s for s in known if BY_SUFFIX[s].is_text)
    other = ", ".join(s for s in known if not BY_SUFFIX[s].is_text)
    return GraphFileError(
        f"{path}: unknown ending {suffix!r}; known are {text}, all of them also with "
        f"{', '.join(COMPRESSIONS)}, and {other}: {remedy}"
    )


def _copied(path: Path) -> IO[bytes]:
    copy = tempfile.TemporaryFile()  # noqa: SIM115  (stays open with the file)
    with system_errors(path):
        if str(path) != _STDIN:
            with open(path, "rb") as pipe:
                shutil.copyfileobj(pipe, copy)
        elif sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
            raise GraphFileError(
                "-: standard input is neither a file nor a pipe; redirect one to it"
            )
        else:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
    return copy


@contextmanager
def system_errors(path: Any) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise GraphFileError(f"{path}: no such file; check the name and the directory") from None
    except OSError as error:
        raise GraphFileError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def _decompressed(raw: io.BufferedIOBase, file: GraphFile) -> Iterator[io.BufferedIOBase]:
    name = file.compression[1:]
    opener, damage = compression_of(file.compression, file)
    try:
        with opener(raw, "rb") as handle:
            yield handle
    except EOFError:
        raise GraphFileError(
            f"{file}: the {_LONG_NAMES[name]} data stop at byte {raw.tell()} without their end "
            "marker; the file is truncated: fetch it again"
        ) from None
    except damage as error:
        raise GraphFileError(
            f"{file}: bad {_LONG_NAMES[name]} data before byte {raw.tell()} ({error}); fetch it "
            f"again, or take {file.compression} off its name if it is not compressed"
        ) from error


_LONG_NAMES = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "Zstandard"}
_Opener = Callable[..., AbstractContextManager[Any]]


def compression_of(suffix: str, path: Any) -> tuple[_Opener, tuple[type[Exception], ...]]:
    """Return the function that opens a compressed stream in a mode, and the errors of damaged data.

    What is written depends on the data alone.
    """
    if suffix == ".gz":
        import gzip
        import zlib

        def opened(raw: Any, mode: str) -> Any:
            return gzip.GzipFile("", mode, 6, raw, mtime=0)

        return opened, (gzip.BadGzipFile, zlib.error)
    if suffix == ".bz2":
        import bz2

        return bz2.BZ2File, (OSError,)
    if suffix == ".xz":
        import lzma

        return lzma.LZMAFile, (lzma.LZMAError,)
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            zstd = import_module(name)
            return zstd.ZstdFile, (zstd.ZstdError,)
    raise GraphFileError(
        f"{path}: Zstandard data need Python 3.14 or the package backports.zstd: pip install "
        "backports.zstd"
    )


def check_size(path: GraphFile, actual: int, expected: int) -> None:
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


def refuse(path: GraphFile, fault: Fault | None, places: Mapping[str, Place]) -> None:
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


def lines(handle: BufferedIOBase, path: GraphFile | Path) -> Iterator[Line]:
    """Yield the lines of a file that is read from its beginning."""
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


OF_DAMAGED_FILES = (
    ValueError, EOFError, OSError, TypeError, OverflowError, MemoryError, SyntaxError,
    RecursionError, TokenError,
)  # fmt: skip
"""Errors that NumPy raises for damaged files."""


def read_vertices(path: Path, named: bool = False) -> npt.NDArray[Any]:
    """Return the ids (int64) of a text file, one per line, or the array of a .npy file.

    Empty lines, and lines that begin with #, are ignored. If vertices are `named`, all lines are
    returned as text.
    """
    with system_errors(path), open(path, "rb") as file:
        if path.suffix.lower() == ".npy":
            try:
                return np.lib.format.read_array(file, allow_pickle=False)
            except OF_DAMAGED_FILES as error:
                reason = " ".join(str(error).split())[:200]
                raise GraphFileError(
                    f"{path}: is not a NumPy array ({reason}); write it by numpy.save"
                ) from None
        ids: list[Any] = []
        for number, line in enumerate(file, 1):
            text = line.strip()
            if text and not text.startswith(b"#"):
                if named:
                    ids.append(text.decode("utf-8", "replace"))
                    continue
                try:
                    if not text.removeprefix(b"-").isdigit():  # Python reads 1_0, too
                        raise ValueError
                    ids.append(np.int64(int(text)))
                except (ValueError, OverflowError):
                    shown = text[:40].decode(errors="replace")
                    raise GraphFileError(
                        f"{path}:{number}: {shown!r} is not a vertex id; give one id a line"
                    ) from None
    return np.array(ids, object if named else np.int64)
