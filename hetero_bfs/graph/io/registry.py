"""Reads and writes graph files; formats.py has the table of formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.io.formats import BY_SUFFIX, COMPRESSIONS, Format, suffixes
from hetero_bfs.graph.io.graph_files import (
    GraphFile,
    Wanted,
    compression_of,
    system_errors,
    unknown_suffix,
)
from hetero_bfs.graph.vertex_names import NameTable
from hetero_bfs.graph.weights import needed_weights, weight_dtype_of
from hetero_bfs.support.checks import check_flag, check_type
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
        known = suffixes(writable=True)
        raise unknown_suffix(path, suffix + compression, known, "give the file one of these")
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
    of the same values. Tables have the vertices' names if there are any, `.hbg` has them and the
    numbers, and other formats have the numbers. The file appears under its name only when complete.

    Returns notes for the user, on vertices that the format leaves out.
    """
    check_type("path", path, (str, os.PathLike), "the name of a graph file")
    path = Path(path)
    row = check_output(path, weight_dtype_of(graph) is not None, graph.directed)
    if row.writes_lists and not isinstance(graph, CSRGraph):
        graph = CSRGraph.from_edge_source(graph)
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


def _suffixes(path: Path) -> tuple[str, str]:
    name = path.name.lower()
    compression = next((end for end in COMPRESSIONS if name.endswith(end)), "")
    return Path(name.removesuffix(compression)).suffix, compression


@contextmanager
def _compressed(stream: IO[bytes], path: Path) -> Iterator[Any]:
    compression = _suffixes(path)[1]
    if compression:
        with compression_of(compression, path)[0](stream, "wb") as handle:
            yield handle
    else:
        yield stream


def load(
    path: str | os.PathLike[str],
    directed: bool = False,
    weighted: bool = False,
    renumber: bool = False,
    columns: Sequence[str] | None = None,
    format: str | None = None,
) -> CSRGraph:
    """Read a graph file of any format into sorted neighbour lists; see `read`.

    If an edge occurs several times, its smallest weight counts.
    """
    graph = read(path, directed, weighted, renumber, columns, format)
    return CSRGraph.from_edge_source(graph) if isinstance(graph, EdgeList) else graph


def read(
    path: str | os.PathLike[str] | GraphFile,
    directed: bool = False,
    weighted: bool = False,
    renumber: bool = False,
    columns: Sequence[str] | None = None,
    format: str | None = None,
) -> EdgeList | CSRGraph:
    """Read a graph file; the suffix selects the format.

    Ids start at 0. Where a format's ids start at 1 (Matrix Market, DIMACS, METIS, edge lists with
    KONECT's header), they are 1 less than in the file.

    Parameters
    ----------
    path : path
        A file, a pipe, "-" for standard input, or a folder whose files of edges are the parts of
        one graph. The page "File formats" lists the suffixes.
    directed : bool
        How to read the edges. Edge lists and general matrices do not say whether they are directed.
        An undirected file read as directed gives every edge in both directions. A directed `.sg`,
        `.wsg` or `.hbg` file read as undirected has the reverse edges added.
    weighted : bool
        Whether to keep the edges' weights, which the file must then have. Weights in text are int32
        if each is written as an integer within int32, else float64; a real matrix gives float64. A
        `.wsg` file gives int32. A `.hbg` file gives the type it was written with.
    renumber : bool
        Whether the vertices have names: strings, 64-bit ids, or ids with gaps. They are numbered
        from 0 in sorted order, and the graph's `names` has them. In formats whose ids start at 1,
        the names are these ids.
    columns : sequence of str, optional
        Names, or positions from 1 on, of the columns of sources, targets and weights in a table.
    format : str, optional
        A suffix, such as ".csv", that selects the format instead of the file's own.

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
    check_type("path", path, (str, os.PathLike, GraphFile), "the name of a graph file")
    check_flag("directed", directed)
    check_flag("weighted", weighted)
    check_flag("renumber", renumber)
    if format is not None:
        check_type("format", format, str, 'a suffix, such as ".csv"')
    wanted = Wanted(directed, weighted, renumber, _checked_columns(columns))
    if _is_folder(path):
        return _read_parts(Path(path), lambda part: read(part, *wanted, format))
    file = path if isinstance(path, GraphFile) else GraphFile(path, format)
    row = file.format
    if wanted.columns is not None and not row.has_columns:
        raise GraphFileError(
            f"{file}: {file.suffix} has no columns to name; leave out {setting('columns')}"
        )
    graph: EdgeList | CSRGraph = row.function("reader")(file, wanted)
    if renumber and graph.names is None and row.first_id:
        graph.__dict__["names"] = np.arange(row.first_id, graph.num_vertices + row.first_id)
    return graph


def _is_folder(path: Any) -> TypeGuard[str | os.PathLike[str]]:
    return not isinstance(path, GraphFile) and os.path.isdir(path)


def _read_parts(folder: Path, read_part: Callable[[Path], EdgeList | CSRGraph]) -> EdgeList:
    """Read the files of a folder, in the order of their names, as one graph.

    Files whose names begin with a dot or an underscore are ignored, as Spark's marks are.
    """
    with system_errors(folder):
        found = sorted(one for one in folder.iterdir() if one.name[0] not in "._")
    if not found:
        raise GraphFileError(f"{folder}: the folder holds no files; name one with files of edges")
    parts: list[EdgeList] = []
    for path in found:
        part = read_part(path)
        if not isinstance(part, EdgeList):
            raise GraphFileError(f"{path}: neighbour lists are no part; convert it to .el or .csv")
        parts.append(part)
    first, ends = parts[0], [(part.src, part.dst) for part in parts]
    names, num_vertices = None, max(part.num_vertices for part in parts)
    if first.names is not None:
        table = NameTable()
        for part in parts:
            table.add(part.names)
        names, numbers = table.finish()
        num_vertices = names.size
        ends = [(new[s], new[d]) for new, (s, d) in zip(numbers, ends, strict=True)]
    src, dst = (np.concatenate([pair[end] for pair in ends]) for end in range(2))
    weights = None
    if first.weights is not None:
        weights = np.concatenate([needed_weights(part) for part in parts])
    about = first.directed, weights, first.duplicates, names
    return EdgeList.trusted(src, dst, num_vertices, *about)


def _checked_columns(columns: Any) -> tuple[str, ...] | None:
    if columns is None:
        return None
    found = tuple(columns.split(",") if isinstance(columns, str) else map(str, columns))
    if len(found) not in (2, 3) or "" in found:
        raise ArgumentError(
            f"{setting('columns')} is {columns!r}; name two columns, or three with weights, such "
            "as source,target,weight"
        )
    return found


def vertices_by_header(path: str | os.PathLike[str] | GraphFile) -> int | None:
    """Return the number of vertices in a file's header; None for a format without it."""
    if _is_folder(path):
        return None
    file = path if isinstance(path, GraphFile) else GraphFile(path)
    return None if file.format.size is None else file.format.function("size")(file)


def has_names(path: str | os.PathLike[str] | GraphFile) -> bool:
    """Tell whether a file's header says that its vertices have names; errors as for sizes."""
    if _is_folder(path):
        return False
    file = path if isinstance(path, GraphFile) else GraphFile(path)
    return file.format.named is not None and bool(file.format.function("named")(file))


def header_note(file: GraphFile, directed: bool) -> str | None:
    """Return a note for the user on a file's vertex ids, or None."""
    note: str | None = None
    if file.format.note is not None:
        note = file.format.function("note")(file, directed)
    return note


def gaps_note(graph: EdgeList | CSRGraph) -> str | None:
    """Return a note for the user on vertices without edges in a file of edges, or None."""
    if graph.names is not None or not isinstance(graph, EdgeList):
        return None
    missing = int(np.count_nonzero(~named_by_edges(graph)))
    if not missing:
        return None
    return (
        f"no edge names {missing} of the {graph.num_vertices} vertices; {setting('renumber')} "
        "numbers those that edges name"
    )
