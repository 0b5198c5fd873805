"""Input and output of commands: graph files, arrays of values, text, notes and JSON.

Under an MPI launcher all ranks share one run, and only one of them prints.
"""

from __future__ import annotations

import io
import json
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from hetero_bfs.algorithms.table import commands
from hetero_bfs.cli.argument_groups import VertexName
from hetero_bfs.errors import AgreedError, GraphFileError, HeteroBFSError
from hetero_bfs.support.environment import launched_rank, launched_ranks, tasks_without_mpi
from hetero_bfs.support.files import replacing, write_array

if TYPE_CHECKING:
    import numpy.typing as npt

    from hetero_bfs.devices.machine import DeviceInfo
    from hetero_bfs.graph.csr import CSRGraph
    from hetero_bfs.graph.edge_list import EdgeList
    from hetero_bfs.ranks.communicator import Communicator


def text_stream(options: Namespace) -> TextIO:
    """Standard error if JSON goes to standard output."""
    return sys.stderr if str(options.json) == "-" else sys.stdout


def print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def write_trace(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    from hetero_bfs.scheduling.trace import write_csv
    from hetero_bfs.timeline.rendering import is_timeline_path, write_timeline
    from hetero_bfs.timeline.spans import spans_of

    if is_timeline_path(path):
        write_timeline(path, spans_of(list(rows)), f"Timeline of {path.stem}")
    else:
        write_csv(path, rows)


def as_json(number: float) -> float | str:
    """Return a number as JSON has it, which knows neither infinity nor NaN."""
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


def write_json(path: Path | None, data: Any) -> None:
    if path is None:
        return
    text = json.dumps(data, indent=1, allow_nan=False)
    if str(path) == "-":
        print(text)
        return
    with replacing(path) as stream:
        stream.write(text + "\n")


def write_record(
    path: Path | None,
    data: Mapping[str, Any],
    device: DeviceInfo | None = None,
    seeds: Mapping[str, int] | None = None,
) -> None:
    from hetero_bfs.devices.machine import record_of_run

    if path is not None:
        write_json(path, {**data, **record_of_run(device, seeds)})


T = TypeVar("T")


def _on_ranks() -> list[str]:
    return ["graph500", *(name for name, row in commands().items() if row.on_ranks)]


@contextmanager
def one_voice() -> Iterator[None]:
    """Let only rank 0 print while all ranks do the same work."""
    if launched_rank() == 0:
        yield
        return
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def check_command(options: Namespace) -> None:
    """Raise `AgreedError` for a command that every rank would run independently.

    Tasks that srun started without MPI are noted on stderr.
    """
    if (tasks := tasks_without_mpi()) > 1 and options.command in _on_ranks():
        print(
            f"note: srun started {tasks} tasks without MPI, and each runs alone; srun --mpi=pmi2 "
            "starts ranks of one run",
            file=sys.stderr,
        )
    if launched_ranks() > 1 and options.command not in _on_ranks():
        from hetero_bfs.ranks.refusals import of_one_process

        several = f"{', '.join(_on_ranks())} run on several"
        raise AgreedError(f"{of_one_process(options.command)}; {several}")


def agreed_by_all(work: Callable[[], None]) -> None:
    """Do work without communication; if it fails on any rank, all ranks raise `AgreedError`."""
    if launched_ranks() == 1:
        work()
        return
    from hetero_bfs.ranks.communicator import agreed
    from hetero_bfs.ranks.mpi import world

    agreed(world(), work)


def says(error: HeteroBFSError) -> bool:
    return not (isinstance(error, AgreedError) and launched_rank() > 0)


def run_together(work: Callable[[Communicator], T]) -> T:
    """Run work on all ranks; an error of a single rank ends all of them with status 1.

    An `AgreedError`, which all ranks have raised, is passed on.
    """
    from hetero_bfs.ranks.mpi import world

    communicator = world()
    try:
        return work(communicator)
    except AgreedError:
        raise
    except Exception as error:  # otherwise the other ranks would wait for ever
        known = isinstance(error, (HeteroBFSError, OSError, MemoryError))
        text = str(error) or type(error).__name__
        if not known:
            text = f"{type(error).__name__}: {text}"
        print(f"hetero-bfs: rank {communicator.rank}: {text}", file=sys.stderr)
        communicator.abort()
        raise


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
    from hetero_bfs.graph.io.registry import read

    wanted = options.directed, weighted, options.renumber, options.columns
    graph = read(path, *wanted, None if not isinstance(path, Path) else options.format)
    print_gaps(path, graph)
    return graph


def print_gaps(path: Any, graph: Any) -> None:
    """Print a note if ids have gaps."""
    from hetero_bfs.graph.io.registry import gaps_note

    note = gaps_note(graph)
    if note is not None:
        print_notes([f"{path}: {note}"])


def numbered(graph: EdgeList | CSRGraph, given: Iterable[Any]) -> list[int]:
    """Return the numbers of vertices that options name."""
    from hetero_bfs.graph.edge_source import check_vertex
    from hetero_bfs.graph.vertex_names import numbers_of

    vertices = list(given)
    if graph.names is not None:
        return numbers_of(graph.names, vertices)
    refuse_names(vertices)
    return [check_vertex(vertex, graph.num_vertices) for vertex in vertices]


def refuse_names(vertices: Iterable[Any]) -> None:
    """Raise `GraphFileError` for a name of a vertex: the graph has none."""
    for vertex in vertices:
        if isinstance(vertex, VertexName):
            raise GraphFileError(
                f"{str(vertex)!r} is not a vertex id, and the graph has no names; give an id, or "
                "--renumber if the file has names"
            )


def may_have_names(options: Namespace) -> bool:
    from hetero_bfs.graph.io.registry import has_names

    return bool(options.renumber) or has_names(options.graph)


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
    """Write fields of edges as `save_values` does; `graph` is from `read_graph`.

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
