"""Writes graph files; formats.py has the table of formats."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.io.formats import BY_SUFFIX, COMPRESSIONS, Format, suffixes
from hetero_bfs.graph.io.graph_files import import_zstd, unknown_suffix
from hetero_bfs.graph.weights import weight_dtype_of
from hetero_bfs.support.checks import check_type
from hetero_bfs.support.files import replacing
from hetero_bfs.support.messages import setting


def named_by_edges(graph: EdgeSource) -> npt.NDArray[np.bool_]:
    named = np.zeros(graph.num_vertices, np.bool_)
    for src, dst in graph.chunks():
        named[src] = True
        named[dst] = True
    return named


def check_output(path: Path, weighted: bool, directed: bool, layers: bool = False) -> Format:
    """Return the format of a file to write; raise `GraphFileError` if it cannot hold the graph."""
    suffix, compression = _suffixes(path)
    row = BY_SUFFIX.get(suffix)
    if row is None or row.writer is None or (compression and not row.is_text):
        raise unknown_suffix(path, suffix + compression, suffixes(writable=True))
    if layers and suffix != ".hbg":
        raise GraphFileError(f"{path}: {suffix} holds no layers; only .hbg does")
    if weighted and row.weights == "none":
        raise GraphFileError(
            f"{path}: {suffix} holds no weights; write .wsg, .hbg or .wel, or read the graph "
            f"without {setting('weighted')}"
        )
    if not weighted and row.weights == "needed":
        raise GraphFileError(
            f"{path}: {suffix} holds weights, and the graph has none; write "
            f"{'.col' if suffix == '.gr' else suffix.replace('w', '')}, or read the graph with "
            f"{setting('weighted')}"
        )
    if directed and not row.keeps_direction:
        raise GraphFileError(
            f"{path}: {suffix} holds undirected graphs alone; write .hbg or .mtx, or read the "
            f"graph without {setting('directed')}"
        )
    return row


def write(graph: EdgeSource, path: str | os.PathLike[str]) -> list[str]:
    """Write a graph, with its weights if any, in the format of the suffix; see `read`.

    Text formats get the edges of an `EdgeList` unchanged, and of a `CSRGraph` without loops and
    duplicates. An undirected edge is written once. float32 weights in text are read back as float64
    of the same values. Tables have the vertices' names if there are any, `.hbg` has them beside the
    numbers, and other formats have the numbers. The file appears under its name only when complete.

    Returns notes for the user, on vertices that the format leaves out.

    Raises
    ------
    GraphFileError
        Unknown suffix, a format that cannot hold the graph (see the table of formats), failures of
        the system. An existing file of that name is then untouched.
    """
    check_type("path", path, (str, os.PathLike), "the name of a graph file")
    path = Path(path)
    row = check_output(path, weight_dtype_of(graph) is not None, graph.directed)
    if row.writes_lists and not hasattr(graph, "indptr"):
        graph = _with_lists(graph)
    with replacing(path, "wb", GraphFileError) as stream, _compressed(stream, path) as handle:
        try:
            row.function("writer")(graph, handle)
        except GraphFileError as error:
            raise GraphFileError(f"{path}: {error}") from None
    if getattr(graph, "names", None) is not None and row.writes_names:
        missing = int(np.count_nonzero(~named_by_edges(graph)))
        text = f"{missing} vertices with names have no edges and are not in it; .hbg keeps them"
        return [f"{path}: {text}"] * bool(missing)
    if row.keeps_isolated:
        return []
    named = named_by_edges(graph)
    missing = int(np.argmax(named[::-1])) if named.any() else graph.num_vertices
    return [f"{path}: the last {missing} vertices have no edges and are not in it"] * bool(missing)


def _with_lists(graph: EdgeSource) -> EdgeSource:
    # Found by name, since csr.py imports this file for `save`.
    lists: EdgeSource = import_module("hetero_bfs.graph.csr").CSRGraph.from_edge_source(graph)
    return lists


def _suffixes(path: Path) -> tuple[str, str]:
    """Return the suffix of the format, and that of the compression or nothing."""
    name = path.name.lower()
    compression = next((end for end in COMPRESSIONS if name.endswith(end)), "")
    return Path(name.removesuffix(compression)).suffix, compression


@contextmanager
def _compressed(stream: IO[bytes], path: Path) -> Iterator[Any]:
    """Yield a stream that compresses by the suffix; the result depends on the data alone."""
    compression = _suffixes(path)[1]
    if compression == ".gz":
        import gzip

        with gzip.GzipFile("", "wb", 6, stream, mtime=0) as handle:
            yield handle
    elif compression == ".bz2":
        import bz2

        with bz2.BZ2File(stream, "wb") as handle:
            yield handle
    elif compression == ".xz":
        import lzma

        with lzma.LZMAFile(stream, "wb") as handle:
            yield handle
    elif compression == ".zst":
        with import_zstd(path).ZstdFile(stream, "wb") as handle:
            yield handle
    else:
        yield stream
