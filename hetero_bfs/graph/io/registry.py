"""Graph files: `read`, `load` and `write` choose the format by the file's suffix.

| name ends in | format | holds | weights |
|---|---|---|---|
| .txt .el .tsv, with or without .gz | two ids a line (SNAP, GAP) | edges | third column |
| .wel, with or without .gz | GAP's weighted edge list | edges | third column |
| .mtx, with or without .gz | Matrix Market coordinate | edges | values |
| .gr .col, with or without .gz | DIMACS, read only (dimacs.py) | edges | third number |
| .sg | GAP's serialized graph (serialized.py) | neighbour lists | none |
| .wsg | GAP's weighted serialized graph | neighbour lists | int32 |
| .hbg | ours (hbg.py), mapped into memory | neighbour lists | a section |
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io import dimacs
from hetero_bfs.graph.io.graph_files import opened
from hetero_bfs.graph.io.hbg import hbg_size, read_hbg, write_hbg
from hetero_bfs.graph.io.matrix_market import (
    matrix_market_size,
    read_matrix_market,
    write_matrix_market,
)
from hetero_bfs.graph.io.serialized import (
    check_fits,
    read_serialized,
    serialized_size,
    write_serialized,
)
from hetero_bfs.graph.io.text import edge_list_note, read_edge_list, write_edge_list
from hetero_bfs.graph.weights import weight_dtype_of
from hetero_bfs.support.checks import check_flag, check_type
from hetero_bfs.support.files import replacing
from hetero_bfs.support.messages import setting


def load(path: str | os.PathLike[str], directed: bool = False, weighted: bool = False) -> CSRGraph:
    """Read a graph file of any format into sorted neighbour lists; see `read`.

    If an edge occurs several times, its smallest weight counts.
    """
    graph = read(path, directed, weighted)
    return CSRGraph.from_edge_source(graph) if isinstance(graph, EdgeList) else graph


def read(
    path: str | os.PathLike[str], directed: bool = False, weighted: bool = False
) -> EdgeList | CSRGraph:
    """Read a graph file; the suffix selects the format.

    Ids start at 0. Where a format's ids start at 1 (Matrix Market, DIMACS, edge lists with KONECT's
    header), they are 1 less than in the file.

    Parameters
    ----------
    path : path
        See the table at the head of this module.
    directed : bool
        How to read the edges. Edge lists and general matrices do not say whether they are directed.
        An undirected file read as directed gives every edge in both directions. A directed `.sg`,
        `.wsg` or `.hbg` file read as undirected has the reverse edges added.
    weighted : bool
        Whether to keep the edges' weights, which the file must then have. Weights in text are int32
        if each is written as an integer within int32, else float64; a real matrix gives float64. A
        `.wsg` file gives int32. A `.hbg` file gives the type it was written with.

    Returns
    -------
    EdgeList or CSRGraph
        Edges from text, with src and dst uint32 of shape (num_edges,); neighbour lists from `.sg`,
        `.wsg` and `.hbg`. The arrays of an `.hbg` file are read-only. A file of 64 MiB or more is
        mapped: do not cut it while the graph is in use (see `hbg.read_hbg`).

    Raises
    ------
    GraphFileError
        Missing, truncated or malformed files; the message names file and line or byte offset. With
        `weighted`, a file without weights.
    """
    check_type("path", path, (str, os.PathLike), "the name of a graph file")
    check_flag("directed", directed)
    check_flag("weighted", weighted)
    path = Path(path)
    return _READERS[_suffix(path, list(_READERS), reading=True)](path, directed, weighted)


def vertices_by_header(path: Path) -> int | None:
    """Return the number of vertices in a file's header; None for a format without it.

    Raises `GraphFileError` as `read` does, for errors up to the end of the header.
    """
    size = _SIZES.get(_suffix(path, list(_READERS), reading=True))
    return None if size is None else size(path)


def header_note(path: Path, directed: bool) -> str | None:
    """Return a note for the user on a file's vertex ids, or None.

    Raises `GraphFileError` as `read` does, for errors up to the end of the header.
    """
    suffix = _suffix(path, list(_READERS), reading=True)
    if suffix in _TEXT:
        return edge_list_note(path, directed)
    return dimacs.NOTE if suffix in _DIMACS else None


def check_output(path: Path, weighted: bool) -> None:
    """Raise `GraphFileError` if the format lacks or needs weights, and the graph does not fit."""
    suffix = _suffix(path, list(_WRITERS), reading=False)
    if weighted and suffix == ".sg":
        raise GraphFileError(
            f"{path}: .sg holds no weights; write .wsg, .hbg or .wel, or read the graph "
            f"without {setting('weighted')}"
        )
    if not weighted and suffix in (".wsg", ".wel"):
        raise GraphFileError(
            f"{path}: {suffix} holds weights, and the graph has none; write "
            f"{suffix.replace('w', '')}, or read the graph with {setting('weighted')}"
        )


def write(graph: EdgeList | CSRGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph, with its weights if any, in the format of the suffix; see `read`.

    Text formats get the edges of an `EdgeList` unchanged, and of a `CSRGraph` without loops and
    duplicates. An undirected edge is written once. float32 weights in text are read back as float64
    of the same values. The file appears under its name only when complete.

    Raises
    ------
    GraphFileError
        Unknown ending, too many vertices for `.sg` or `.wsg`, weights for `.sg`, none or others
        than int32 for `.wsg`, none for `.wel`, failures of the system. An existing file of that
        name is then untouched.
    """
    path = Path(path)
    suffix = _suffix(path, list(_WRITERS), reading=False)
    check_output(path, weight_dtype_of(graph) is not None)
    if suffix in (".sg", ".wsg"):
        check_fits(path, graph)
    if suffix in _BINARY and isinstance(graph, EdgeList):
        graph = CSRGraph.from_edge_source(graph)
    with replacing(path, "wb", GraphFileError) as stream:
        if path.suffix.lower() == ".gz":
            import gzip

            with gzip.GzipFile("", "wb", 6, stream, mtime=0) as handle:
                _WRITERS[suffix](graph, handle)
        else:
            _WRITERS[suffix](graph, stream)


def _suffix(path: Path, known: list[str], reading: bool) -> str:
    zipped = path.suffix.lower() == ".gz"
    suffix = (path.with_suffix("") if zipped else path).suffix.lower()
    if suffix in known and not (zipped and suffix in _BINARY):
        return suffix
    remedy = "rename or convert the file"
    if reading:
        with opened(path):
            pass  # raises a better message for a missing file or a directory
        if path.name.startswith("out."):
            remedy = "rename one of KONECT's, such as this, to end in .tsv"
    raise GraphFileError(
        f"{path}: unknown ending {suffix + '.gz' * zipped!r}; known are {', '.join(known)}, "
        f"all but {', '.join(_BINARY)} also with .gz: {remedy}"
    )


_TEXT = (".txt", ".el", ".tsv", ".wel")
_DIMACS = (".gr", ".col")
_BINARY = (".sg", ".wsg", ".hbg")
_READERS: dict[str, Callable[[Path, bool, bool], EdgeList | CSRGraph]] = {
    **dict.fromkeys(_TEXT, read_edge_list),
    ".mtx": read_matrix_market,
    ".sg": read_serialized,
    ".wsg": read_serialized,
    ".hbg": read_hbg,
    **dict.fromkeys(_DIMACS, dimacs.read_dimacs),
}
_SIZES: dict[str, Callable[[Path], int]] = {
    ".mtx": matrix_market_size,
    **dict.fromkeys(_DIMACS, dimacs.dimacs_size),
    ".sg": serialized_size,
    ".wsg": serialized_size,
    ".hbg": hbg_size,
}
_WRITERS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(_TEXT, write_edge_list),
    ".mtx": write_matrix_market,
    ".sg": write_serialized,
    ".wsg": write_serialized,
    ".hbg": write_hbg,
}
