"""Edges in the columns of tables: text with separators (CSV, TSV), Parquet and Arrow.

Text is read by pandas in bounded memory. If a line is wrong, the lines are read again one by one,
to name the first wrong one. Text with vertex names is read here, too, whatever its separator.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import ArgumentError, GraphError, GraphFileError
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.io.graph_files import GraphFile, Wanted, lines
from hetero_bfs.graph.io.text_columns import (
    BLANK,
    Layout,
    Numbers,
    TextEdges,
    check_room,
    frames,
    ids_that_fit,
    is_comment,
    split,
    text_of,
)
from hetero_bfs.graph.tables import TableColumns, edges_of_arrow, edges_once
from hetero_bfs.graph.vertex_names import NameTable
from hetero_bfs.graph.weights import as_weights, weight_dtype_of
from hetero_bfs.support.messages import setting

if TYPE_CHECKING:
    import pandas

_SOURCES = ("source", "src", "from", "fromnodeid", "source_id", "sourceid", "from_id", "node1", "u")
_TARGETS = (
    "target",
    "dst",
    "to",
    "tonodeid",
    "target_id",
    "targetid",
    "to_id",
    "node2",
    "v",
    "dest",
)
_WEIGHTS = ("weight", "w", "value", "cost", "distance", "length", "capacity")


def has_known_header(text: str) -> bool:
    """Return whether a line names columns of sources and targets by well-known words."""
    return _is_header(_lower(split(text, _separator(text))))


def _is_header(row: list[str]) -> bool:
    return not {*_SOURCES}.isdisjoint(row) and not {*_TARGETS}.isdisjoint(row)


def has_separators(text: str) -> bool:
    """Return whether a line has commas or the like, and no blanks, between fields."""
    return len(text.split()) == 1 and _separator(text) != BLANK


def columns_of(row: list[str], wanted: Wanted, where: str) -> tuple[tuple[int, ...], bool]:
    """Return the positions of source, target and weight, and whether a first line names them."""
    row = _lower(row)
    count = 3 if wanted.weighted else 2
    if wanted.columns is not None:
        numbers = all(name.isdigit() for name in wanted.columns)
        known = [str(i + 1) for i in range(len(row))] if numbers else row
        columns = [_position(name.lower(), known, row, where) for name in wanted.columns]
        if len(columns) < count:
            raise GraphFileError(
                f"{where}: weights are wanted, and {setting('columns')} names no third column; "
                f"the columns are {', '.join(row)}"
            )
        is_header = not numbers or _is_header(row)
        return tuple(columns[:count]), is_header
    if not _is_header(row):
        return (0, 1, 2)[:count], False
    found = [_first_of(_SOURCES, row), _first_of(_TARGETS, row)]
    if wanted.weighted:
        rest = [i for i in range(len(row)) if i not in found]
        of_weights = [i for i in rest if row[i] in _WEIGHTS] or rest
        if len(of_weights) != 1:
            raise GraphFileError(
                f"{where}: which column has the weights is not clear; name all by "
                f"{setting('columns')} {row[found[0]]},{row[found[1]]},WEIGHT; the columns are "
                f"{', '.join(row)}"
            )
        found += of_weights
    return tuple(found), True


def read_text_table(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read lines of fields with separators: commas, semicolons, bars, tabs or blanks.

    The first line may name the columns. Without `renumber` ids are integers from 0. Lines that
    begin with `#` or `%` are comments. If a file `.v` lies next to an `.e`, it names all vertices.
    """
    try:
        return _read_as(file, wanted, None)
    except _NamesAreTextError:
        return _read_as(file, wanted, str)


class _NamesAreTextError(Exception):
    """A file with names that are not integers; it is read again as text."""


def _read_as(file: GraphFile, wanted: Wanted, dtype: type | None) -> EdgeList:
    """Read with the dtype of names; None for integers."""
    table, ends, weights = NameTable(), [], []
    named = _read_vertex_file(file, wanted, dtype)
    total = 0
    with file.opened() as handle:
        layout = _layout(handle, file, wanted)
        edges = TextEdges(file, layout)
        dtypes = None if dtype is None else dict.fromkeys(layout.columns[:2], dtype)
        for frame in frames(handle, edges, dtypes):
            columns = [frame[i] for i in layout.columns]
            total += len(frame)
            check_room(file, total, layout.numbers)
            for column in columns[:2]:
                if not wanted.renumber:
                    ends.append(edges.ids(column))
                    continue
                is_text = column.dtype.kind not in "iu"
                if is_text and dtype is None:
                    raise _NamesAreTextError
                if is_text and (column.str.strip() == "").any():
                    edges.raise_first_wrong()
                table.add(column.str.strip() if is_text else column)
            weights += [edges.weights(column) for column in columns[2:]]
    names = None
    if wanted.renumber:
        if named is not None:
            table.add(named)
        names, ends = table.finish()
        ends = ends[:-1] if named is not None else ends
        count = names.size
    else:
        largest = [int(ids.max()) for ids in (*ends, [] if named is None else named) if len(ids)]
        count = max(largest, default=-1) + 1
    src, dst = (np.concatenate([np.empty(0, np.uint32), *ends[i::2]]) for i in (0, 1))
    held = None
    if wanted.weighted:
        held = as_weights(np.concatenate([np.empty(0, np.int32), *weights]))
    return EdgeList.trusted(src, dst, count, wanted.directed, held, names=names)


def _layout(handle: io.BufferedIOBase, file: GraphFile, wanted: Wanted) -> Layout:
    """Return the layout that the first line gives, and leave the handle at that line."""
    first = next((line for line in lines(handle, file) if not is_comment(line)), None)
    if first is None:
        raise GraphFileError(f"{file}: holds no edges; write one a line, such as 'source,target'")
    separator = _separator(text_of(first))
    row = split(text_of(first), separator)
    columns, is_header = columns_of(row, wanted, f"{file}:{first.number}")
    handle.seek(first.start)
    ids = None if wanted.renumber else ids_that_fit()
    numbers: Numbers | None = "any" if wanted.weighted else None
    return Layout(separator, columns, ids, numbers, first.number * is_header, is_header)


def vertex_file_of(file: GraphFile) -> Path | None:
    name = file.path.name.removesuffix(file.compression)
    if not name.endswith(".e"):
        return None
    other = file.path.with_name(f"{name.removesuffix('.e')}.v{file.compression}")
    return other if other.is_file() else None


def _read_vertex_file(file: GraphFile, wanted: Wanted, dtype: type | None) -> Any:
    """Return the vertices of `vertex_file_of`; None without such a file."""
    import pandas

    other = vertex_file_of(file)
    if other is None:
        return None
    options: dict[str, Any] = {"header": None, "usecols": [0], "dtype": dtype, "na_filter": False}
    try:
        with GraphFile(other, f".txt{file.compression}").opened() as handle:
            found = pandas.read_csv(handle, sep=BLANK, encoding_errors="replace", **options)[0]
    except GraphFileError:
        raise
    except ValueError as error:  # such as pandas' EmptyDataError and ParserError
        reason = " ".join(str(error).split())[:200]
        raise GraphFileError(
            f"{other}: does not list vertices ({reason}); write one a line"
        ) from None
    if dtype is None and found.dtype.kind not in "iu":
        if wanted.renumber:
            raise _NamesAreTextError
        raise GraphFileError(
            f"{other}: holds more than vertex ids; write one integer a line, or name the vertices "
            f"by {setting('renumber')}"
        )
    if not wanted.renumber:
        for value in (found.min(), found.max()):
            ids_that_fit().check(int(value), str(other))
    return found


def _separator(text: str) -> str:
    counts = {mark: text.count(mark) for mark in (",", ";", "|", "\t")}
    most = max(counts, key=lambda mark: counts[mark])
    return most if counts[most] else BLANK


def _lower(row: list[str]) -> list[str]:
    return [" ".join(field.split()).lower() for field in row]


def _first_of(words: tuple[str, ...], row: list[str]) -> int:
    return next(row.index(word) for word in words if word in row)


def _position(name: str, known: list[str], row: list[str], where: str) -> int:
    if known.count(name) != 1:
        what = "not there" if name not in known else "there more than once"
        raise GraphFileError(
            f"{where}: column {name!r} is {what}; the columns are {', '.join(row)} (or name them "
            f"1 to {len(row)})"
        )
    return known.index(name)


def write_csv(graph: EdgeList | CSRGraph, handle: io.BufferedIOBase) -> None:
    first = True
    for frame in _frames_of(graph):
        text = frame.to_csv(index=False, header=first, lineterminator="\n")
        handle.write(text.encode())
        first = False


def _frames_of(graph: EdgeList | CSRGraph) -> Iterator[pandas.DataFrame]:
    import pandas

    keys = ["source", "target", *(["weight"] if weight_dtype_of(graph) is not None else [])]
    none = tuple(np.empty(0, t) for t in (np.uint32, np.uint32, weight_dtype_of(graph)))
    made = False
    for columns in edges_once(graph):
        made = True
        yield pandas.DataFrame(dict(zip(keys, _named(graph, columns), strict=True)))
    if not made:
        yield pandas.DataFrame(dict(zip(keys, none, strict=False)))


def _named(graph: EdgeList | CSRGraph, columns: Any) -> list[npt.NDArray[Any]]:
    names = graph.names
    if names is None:
        return list(columns)
    src, dst, *weights = columns
    return [names[src], names[dst], *weights]


# Parquet and Arrow, by pyarrow

_NUM_VERTICES = b"hetero_bfs.num_vertices"


def import_arrow(file: Any) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise GraphFileError(
            f"{file}: Parquet and Arrow files need the package pyarrow: pip install pyarrow"
        ) from None
    return pyarrow


def read_arrow(file: GraphFile, wanted: Wanted) -> EdgeList:
    """Read a Parquet, Arrow or Feather file: two columns of vertices, and one of weights.

    The columns are found by their names, as in text. Raises `GraphFileError` for a file that is
    damaged, or whose columns do not hold edges.
    """
    pyarrow = import_arrow(file)
    with file.opened() as handle:
        try:
            table = _arrow_table(handle, file, wanted)
        except GraphFileError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise GraphFileError(
                f"{file}: is not a file that pyarrow reads ({reason}); fetch or write it again"
            ) from None
    try:
        edges = _edges_of_table(table, wanted)
    except (ArgumentError, GraphError) as error:
        raise GraphFileError(f"{file}: {error}") from None
    except pyarrow.ArrowException as error:
        reason = " ".join(str(error).split())[:200]
        raise GraphFileError(
            f"{file}: a column does not hold names ({reason}); give columns of integers or strings"
        ) from None
    stored = (table.schema.metadata or {}).get(_NUM_VERTICES, b"0")
    if edges.names is not None or not stored.isdigit():
        return edges
    num_vertices = max(edges.num_vertices, int(stored))
    if num_vertices:
        ids_that_fit().check_count(num_vertices, str(file))
    ends = edges.src, edges.dst
    return EdgeList.trusted(*ends, num_vertices, wanted.directed, edges.weights)


def _arrow_table(handle: io.BufferedIOBase, file: GraphFile, wanted: Wanted) -> Any:
    if file.suffix == ".parquet":
        from pyarrow import parquet

        whole = parquet.ParquetFile(handle)
        names = whole.schema_arrow.names
    else:
        from pyarrow import feather, ipc

        with ipc.open_file(handle) as reader:
            names = reader.schema.names
        handle.seek(0)
    where = str(file)
    if len(names) < 2:
        raise GraphFileError(f"{where}: has {len(names)} columns; give sources and targets")
    columns, _ = columns_of(names, wanted, where)
    chosen = [names[i] for i in columns if i < len(names)]
    if len(chosen) < len(columns):
        raise GraphFileError(f"{where}: has no column of weights; read it without weights")
    if file.suffix == ".parquet":
        return whole.read(columns=chosen).select(chosen)
    return feather.read_table(handle, columns=chosen).select(chosen)


def _edges_of_table(table: Any, wanted: Wanted) -> EdgeList:
    if wanted.renumber:
        table = _with_names(table)
    names = table.column_names
    columns = TableColumns(
        names[0],
        names[1],
        names[2] if wanted.weighted else None,
        directed=wanted.directed,
        renumber=wanted.renumber,
    )
    return edges_of_arrow(table, columns)


def _with_names(table: Any) -> Any:
    """Return a table whose first two columns hold strings where they do not hold integers."""
    from pyarrow import types

    for i, name in enumerate(table.column_names[:2]):
        if not types.is_integer(table.column(i).type):
            table = table.set_column(i, name, table.column(i).cast("string"))
    return table


def write_parquet(graph: EdgeList | CSRGraph, handle: io.BufferedIOBase) -> None:
    """Write the columns source, target and, with weights, weight; an undirected edge once."""
    from pyarrow import parquet

    schema, batches = _arrow_batches(graph)
    with parquet.ParquetWriter(handle, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_arrow(graph: EdgeList | CSRGraph, handle: io.BufferedIOBase) -> None:
    """Write an Arrow file with the columns of `write_parquet`; Feather's version 2 is the same."""
    from pyarrow import ipc

    schema, batches = _arrow_batches(graph)
    with ipc.new_file(handle, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _arrow_batches(graph: EdgeList | CSRGraph) -> tuple[Any, Iterator[Any]]:
    pyarrow = import_arrow("the graph")
    batches = (pyarrow.RecordBatch.from_pandas(f, preserve_index=False) for f in _frames_of(graph))
    first = next(batches)
    held = {_NUM_VERTICES: str(graph.num_vertices)} if graph.names is None else {}
    schema = first.schema.with_metadata(held)

    def all_batches() -> Iterator[Any]:
        for batch in (first, *batches):
            yield batch.replace_schema_metadata(held)

    return schema, all_batches()
