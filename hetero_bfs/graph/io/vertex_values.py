"""A value or a vector for each vertex, read from a file as commands write it with --out.

CSV, other text with separators, Parquet and .npz have a column of vertices and the values; with
one column, and in .npy, the values are in the order of the vertices. A vector has a column for each
element: factor[0], factor[1] and so on; in .npy it is a row.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphFileError
from hetero_bfs.graph.io.binary import errors_of_archives
from hetero_bfs.graph.io.graph_files import read_vertices, system_errors
from hetero_bfs.graph.vertex_names import NameArray
from hetero_bfs.support.messages import shown

if TYPE_CHECKING:
    import pandas

_VERTEX = "vertex"


def columns_of(values: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, array in values.items():
        one = {name: array}
        columns |= one if array.ndim == 1 else {f"{name}[{i}]": a for i, a in enumerate(array.T)}
    return columns


def read_values(
    path: Path, name: str, num_vertices: int, names: NameArray | None, missing: int | None = None
) -> npt.NDArray[Any]:
    """Return the values of a file in the order of the vertices.

    Files without a column of vertices may have any number of values.

    If there are several columns of values, `name` is that of the column, or of the vector. Integers
    in text have type int32 if they fit, else int64.

    Vertices may lack a value if it is given as `missing`. Then those with names need their column.
    """
    path = Path(path)
    if path.suffix.lower() == ".npy":
        _check_order(path, names, missing)
        return read_vertices(path)
    try:
        with system_errors(path):
            table = _table(path)
    except GraphFileError:
        raise
    except errors_of_archives() as error:
        reason = " ".join(str(error).split())[:200]
        raise GraphFileError(
            f"{path}: is not a table of values ({reason}); write lines of vertex,value"
        ) from None
    elements = [c for c in table.columns if re.fullmatch(rf"{re.escape(name)}\[\d+\]", str(c))]
    if elements:
        wanted = [f"{name}[{i}]" for i in range(len(elements))]
        if sorted(wanted) != sorted(map(str, elements)):
            raise GraphFileError(
                f"{path}: the columns of {name!r} are {', '.join(elements)}; give all from "
                f"{name}[0] on"
            )
        values = np.column_stack([_numbers(path, table, column) for column in wanted])
    else:
        values = _numbers(path, table, _column(path, table, name))
    if _VERTEX not in table:
        _check_order(path, names, missing)
        return values
    rows = _positions(path, table[_VERTEX], num_vertices, names, missing is not None)
    return values[rows] if missing is None else np.append(values, missing)[rows]


def _check_order(path: Path, names: NameArray | None, missing: int | None) -> None:
    """Raise `GraphFileError` if values in the order of the vertices may be other vertices'."""
    if names is not None and missing is not None:
        raise GraphFileError(
            f"{path}: has no column {_VERTEX!r}, and vertices with names change their numbers with "
            "the graph; write a .csv, .npz or .parquet"
        )


def _table(path: Path) -> pandas.DataFrame:
    import pandas

    suffix = path.suffix.lower()
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return pandas.DataFrame({key: arrays[key] for key in arrays.files})
    if suffix == ".parquet":
        from hetero_bfs.graph.io.table_files import import_arrow

        import_arrow(path)
        return pandas.read_parquet(path, engine="pyarrow")
    with open(path, encoding="utf-8") as text:
        at, first = 0, text.readline()
        while first and first.strip()[:1] in ("", "#"):
            at, first = text.tell(), text.readline()
        separator = next((one for one in ",;|" if one in first), None)
        cells = csv.reader(
            [first if separator else " ".join(first.split())], delimiter=separator or " "
        )
        fields = [field.strip(' "') for line in cells for field in line] or [""]
        has_header = _VERTEX in fields or not _is_number(fields[-1])
        names = {1: ["value"], 2: [_VERTEX, "value"]}.get(len(fields))
        names = fields if has_header or names is None else names
        text.seek(at)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            try:
                return pandas.read_csv(
                    text, sep=separator or r"\s+", header=0 if has_header else None, names=names,
                    comment=None if has_header else "#",  # below a header, names may begin with it
                    dtype={_VERTEX: str}, keep_default_na=False, skipinitialspace=True,
                    na_values={name: ["nan", "NaN"] for name in names if name != _VERTEX},
                    index_col=False,
                )  # fmt: skip
            except pandas.errors.ParserWarning:
                raise GraphFileError(
                    f"{path}: rows have more fields than the {len(names)} of the first line; give "
                    "all lines the same number"
                ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.lower() in ("true", "false")
    return True


def _column(path: Path, table: pandas.DataFrame, name: str) -> Any:
    columns = [column for column in table.columns if column != _VERTEX]
    if len(columns) == 1:
        return columns[0]
    if name in columns:
        return name
    listed = ", ".join(map(str, columns)) or "none"
    raise GraphFileError(
        f"{path}: the columns of values are {listed}; keep one besides {_VERTEX!r}, or call it "
        f"{name!r}"
    )


def _numbers(path: Path, table: pandas.DataFrame, column: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = table[column].to_numpy()
    if values.size and values.dtype.kind not in "biuf":
        wrong = next((v for v in values.tolist() if not _is_number(str(v))), values[0])
        raise GraphFileError(
            f"{path}: column {str(column)!r} has {shown(wrong)}, which is not a number; give a "
            "number for each vertex"
        )
    limits = np.iinfo(np.int32)
    is_text = path.suffix.lower() not in (".npz", ".parquet")
    fits = values.dtype == np.int64 and values.size and limits.min <= values.min()
    return values.astype(np.int32) if is_text and fits and values.max() <= limits.max else values


def _positions(
    path: Path, given: pandas.Series, num_vertices: int, names: NameArray | None, some: bool
) -> npt.NDArray[np.intp]:
    """Return the row of each vertex, which may be -1 if `some` vertices have values."""
    import pandas

    known: Any = np.arange(num_vertices) if names is None else names
    vertices: Any = given
    if known.dtype.kind in "iu":
        vertices = pandas.to_numeric(given, errors="coerce")
    elif given.dtype.kind in "iu":
        vertices = given.astype(str)
    index, wanted = pandas.Index(vertices), pandas.Index(known)
    wrong = index[index.duplicated()]
    if not index.has_duplicates:
        wrong = index.difference(wanted) if some else index.symmetric_difference(wanted)
    if len(wrong):
        what = "appears twice" if index.has_duplicates else "lacks a value or is not in the graph"
        raise GraphFileError(
            f"{path}: vertex {wrong[0]} {what}; give one line for each of the {num_vertices} "
            "vertices"
        )
    return np.asarray(index.get_indexer(wanted))
