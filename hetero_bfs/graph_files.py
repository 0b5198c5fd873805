"""What the readers of graph files share: opening them, and checks of lists before a search."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph import OffsetArray, VertexArray


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading, through gzip if its name ends in .gz.

    Failures of the system and of gzip become `GraphFileError`, here and nowhere else.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise GraphFileError(f"{path}: is no regular file, which it must be: save it as one")
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
    """Check that a file has as many bytes as its header asks for."""
    if actual != expected:
        what = "truncated" if actual < expected else "too long"
        raise GraphFileError(
            f"{path}: ends at byte {actual}; its header asks for {expected} bytes: the file is "
            f"{what}, write or fetch it again"
        )


def check_lists(
    path: Path, start: int, indptr: OffsetArray, indices_start: int, indices: VertexArray
) -> None:
    """Check that offsets rise from 0 to the number of edges and that ids are in range.

    `start` and `indices_start` are where the arrays begin in the file.
    """
    wrong = np.zeros(indptr.size, np.bool_)
    wrong[1:] = indptr[1:] < indptr[:-1]
    wrong[0] = indptr[0] != 0
    wrong[-1] |= indptr[-1] != indices.size
    if wrong.any():
        first = int(wrong.argmax())
        raise GraphFileError(
            f"{path}: byte {start + 8 * first}: offset {first} is {indptr[first]}; offsets must "
            f"rise from 0 to {indices.size}: the file is damaged, write it again"
        )
    num_vertices = indptr.size - 1
    if indices.size and indices.max() >= num_vertices:
        first = int((indices >= num_vertices).argmax())
        raise GraphFileError(
            f"{path}: byte {indices_start + 4 * first}: neighbour {indices[first]} is "
            f"not below {num_vertices}, the number of vertices: damaged, write the file again"
        )


def check_input_degree(
    path: Path, start: int, input_degree: VertexArray, indptr: OffsetArray
) -> None:
    """Check that no list is longer than its vertex has input edges."""
    short = input_degree < np.diff(indptr)
    if short.any():
        first = int(short.argmax())
        raise GraphFileError(
            f"{path}: byte {start + 4 * first}: {input_degree[first]} input edges at vertex "
            f"{first}, and {indptr[first + 1] - indptr[first]} neighbours: damaged, write the file "
            "again"
        )


def check_order(path: Path, start: int, indptr: OffsetArray, indices: VertexArray) -> None:
    """Check that lists rise, without the vertex itself."""
    first = first_out_of_order(indptr, indices)
    if first >= 0:
        vertex = int(np.searchsorted(indptr, first, side="right")) - 1
        raise GraphFileError(
            f"{path}: byte {start + 4 * first}: neighbour {indices[first]} of vertex {vertex}; "
            "lists must rise and leave out the vertex itself: damaged, write the file again"
        )


def first_out_of_order(indptr: OffsetArray, indices: VertexArray) -> int:
    """Return the first entry that breaks the order of lists (kernels/lists.py), -1 if none does."""
    from hetero_bfs.kernels import lists

    return int(lists.first_out_of_order(indptr, indices))


def check_symmetric(path: Path, indptr: OffsetArray, indices: VertexArray) -> None:
    """Refuse lists called undirected that lack a reverse edge: a search would go wrong on them."""
    from hetero_bfs.kernels.lists import pairing

    if pairing(indptr, indices) != 0:
        raise GraphFileError(
            f"{path}: byte 0: marked as undirected, but an edge lacks its reverse; write it again "
            "as directed, or symmetrized (GAP's converter: -s)"
        )
