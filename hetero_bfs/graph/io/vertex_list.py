"""Files of vertices: ids in lines of text, or a NumPy array of ids or flags."""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.io.graph_files import opened

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
                    f"{path}: is no NumPy array ({reason}); write it by numpy.save"
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
                        f"{path}:{number}: {shown!r} is no vertex id; give one id a line"
                    ) from None
    return np.array(ids, np.int64)
