"""Graph files of commands: reading them, vertices by their names, and arrays of values to write."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetero_bfs.cli.argument_groups import VertexName
from hetero_bfs.cli.output import print_notes
from hetero_bfs.errors import GraphFileError, HeteroBFSError
from hetero_bfs.support.files import replacing, write_array

if TYPE_CHECKING:
    import numpy.typing as npt

    from hetero_bfs.graph.csr import CSRGraph
    from hetero_bfs.graph.edge_list import EdgeList


def open_files(options: Namespace) -> None:
    """Open the graph files, so that a pipe is read once; print a note if a file has other ids."""
    from hetero_bfs.graph.io.graph_files import GraphFile
    from hetero_bfs.graph.io.registry import header_note

    for name in ("graph", "input"):
        given = getattr(options, name, None) or []
        for path in given if isinstance(given, list) else [given]:
            if not hasattr(options, "format") and (str(path) == "-" or path.is_fifo()):
                raise GraphFileError(
                    f"{path}: {options.command} reads graph files alone, neither standard input "
                    "nor pipes; save it as a file"
                )
            with suppress(HeteroBFSError):  # the command itself reports it
                file = GraphFile(path, getattr(options, "format", None))
                if hasattr(options, "format"):
                    setattr(options, name, file)
                note = header_note(file, getattr(options, "directed", False))
                if note is not None and not getattr(options, "renumber", False):
                    print(f"note: {file}: {note}", file=sys.stderr)


def read_graph(options: Namespace, path: Any, weighted: bool) -> EdgeList | CSRGraph:
    """Read a graph file as the options say; print a note if ids have gaps."""
    from hetero_bfs.graph.io.registry import gaps_note, read

    wanted = options.directed, weighted, options.renumber, options.columns
    graph = read(path, *wanted, None if not isinstance(path, Path) else options.format)
    note = gaps_note(graph)
    if note is not None:
        print_notes([f"{path}: {note}"])
    return graph


def numbered(graph: EdgeList | CSRGraph, given: Iterable[Any]) -> list[int]:
    """Return the numbers of vertices that options name."""
    from hetero_bfs.graph.vertex_names import numbers_of

    vertices = list(given)
    if graph.names is not None:
        return numbers_of(graph.names, vertices)
    for vertex in vertices:
        if isinstance(vertex, VertexName):
            raise GraphFileError(
                f"{vertex!r} is not a vertex id; the graph has no names: give --renumber"
            )
    return vertices


def may_have_names(options: Namespace) -> bool:
    from hetero_bfs.graph.io.registry import has_names

    return bool(options.renumber) or has_names(options.graph)


def name_of(graph: Any, vertex: int) -> int | str:
    names = getattr(graph, "names", None)
    found: int | str = vertex if names is None else names[vertex : vertex + 1].tolist()[0]
    return found


def save_values(
    path: Path,
    values: Mapping[str, npt.NDArray[Any]],
    names: npt.NDArray[Any] | None,
    of_vertices: Collection[str] = ("parent", "component"),
) -> None:
    """Write values of each vertex: CSV, Parquet or NumPy's .npz with the names, or .npy.

    `values` has an array for each column. Without names the vertices are their numbers. In columns
    `of_vertices` the values are vertices: CSV and Parquet have their names, and nothing for -1.
    """
    import numpy as np

    suffix = path.suffix.lower()
    if suffix not in _TABLES:
        _save_columns(path, values)
        return
    vertices = np.arange(next(iter(values.values())).size) if names is None else names
    columns: dict[str, Any] = {"vertex": vertices, **values}
    for column in columns.keys() & of_vertices if suffix != ".npz" else ():
        import pandas

        from hetero_bfs.graph.vertex_names import named_values

        named: Any = named_values(vertices, columns[column])
        if vertices.dtype.kind != "O":
            dtype: Any = vertices.dtype.name.capitalize().replace("Ui", "UI")
            named = pandas.array(named, dtype=dtype)
        columns[column] = named
    _save_columns(path, columns)


def save_edges(path: Path, graph: Any, fields: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write fields of edges as `save_values` does; `graph` is what `read_graph` returned.

    An undirected graph has two entries an edge. In .npy vertices have no names.
    """
    import numpy as np

    from hetero_bfs.graph.csr import CSRGraph

    lists = CSRGraph.from_edge_source(graph)
    named = lists.names is not None and path.suffix.lower() in _TABLES
    vertices: Any = lists.names if named else np.arange(lists.num_vertices)
    ends = np.repeat(vertices, lists.degree()), vertices[lists.indices]
    _save_columns(path, dict(zip(("source", "target"), ends, strict=True)) | dict(fields))


_TABLES = ".csv", ".npz", ".parquet"


def _save_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns; in .npy several are the fields of a structured array."""
    import zipfile

    import numpy as np

    suffix = path.suffix.lower()
    if suffix not in _TABLES:
        arrays = [*columns.values()]
        kinds = [(name, array.dtype) for name, array in columns.items()]
        save_array(path, arrays[0] if len(arrays) == 1 else np.rec.fromarrays(arrays, kinds))
        return
    if suffix == ".npz":
        with replacing(path, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, array in columns.items():  # savez has names of its own
                held = array.astype(str) if array.dtype.kind == "O" else array
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, held, allow_pickle=False)
        return
    import pandas

    frame = pandas.DataFrame(columns)
    with replacing(path, "wb") as stream:
        if suffix == ".csv":
            frame.to_csv(stream, index=False, lineterminator="\n")
        else:
            frame.to_parquet(stream, index=False, engine="pyarrow")


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    import numpy as np
    from numpy.lib import format as npy

    array = np.ascontiguousarray(array)
    with replacing(path, "wb") as stream:
        npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(array))
        write_array(stream, array)
