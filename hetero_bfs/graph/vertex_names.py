"""Numbers vertices from 0 by their names: strings, 64-bit ids, or ids with gaps.

Names are numbered in their sorted order, whatever the order of the edges. They are an array of
int64, of uint64 if one is beyond int64, or of Python strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hetero_bfs.errors import GraphError
from hetero_bfs.graph.edge_source import VertexArray
from hetero_bfs.graph.list_checks import MAX_VERTICES
from hetero_bfs.support.messages import shown

NameArray = npt.NDArray[Any]


class Named:
    """A result of a graph whose vertices may have names."""

    names: NameArray | None = None
    """The vertices' names or ids in the file or table; None if they have none."""


R = TypeVar("R")


def with_names(result: R, graph: Any) -> R:
    """Give a result, which is `Named`, the names of its graph's vertices if there are any."""
    names = getattr(graph, "names", None)
    if names is not None:
        result.names = names  # type: ignore[attr-defined]
    return result


def name_of(graph: Any, vertex: int) -> int | str:
    """Return the name of a vertex; its number in a graph without names."""
    names = getattr(graph, "names", None)
    found: int | str = vertex if names is None else names[vertex : vertex + 1].tolist()[0]
    return found


class NameTable:
    """Collects names part by part; it keeps 4 bytes for each, and each part's different names."""

    def __init__(self) -> None:
        self._codes: list[VertexArray] = []
        self._different: list[NameArray] = []

    def add(self, names: Any) -> None:
        import pandas

        codes, different = pandas.factorize(names)
        kept = np.asarray(different)
        self._codes.append(codes.astype(np.uint32))
        self._different.append(kept if kept.dtype.kind in "iu" else kept.astype(object))

    def finish(self) -> tuple[NameArray, list[VertexArray]]:
        """Return all names, sorted, and for each part the numbers of its names."""
        names, order = np.unique(_joined(self._different), return_inverse=True)
        if names.size > MAX_VERTICES:
            raise GraphError(f"{names.size} vertices; a graph has at most {MAX_VERTICES}")
        numbers: VertexArray = order.astype(np.uint32)
        start = 0
        parts: list[VertexArray] = []
        for codes, different in zip(self._codes, self._different, strict=True):
            parts.append(numbers[start : start + different.size][codes])
            start += different.size
        return names, parts


def _joined(parts: list[NameArray]) -> NameArray:
    """Concatenate names, as integers if all are integers that one 64-bit type holds."""
    parts = [part for part in parts if part.size] or [np.empty(0, np.int64)]
    if any(part.dtype.kind == "O" for part in parts):
        return np.concatenate([part.astype(str).astype(object) for part in parts])
    if all(part.max() <= np.iinfo(np.int64).max for part in parts if part.size):
        return np.concatenate([part.astype(np.int64) for part in parts])
    if all(part.min() >= 0 for part in parts):
        return np.concatenate([part.astype(np.uint64) for part in parts])
    return np.concatenate([part.astype(str).astype(object) for part in parts])


def numbers_of(names: NameArray, wanted: Iterable[Any]) -> list[int]:
    """Return the numbers of some names, given as they are or as text."""
    found = []
    in_order = bool((names[1:] > names[:-1]).all())
    for name in wanted:
        key: Any = str(name)
        if names.dtype.kind in "iu":
            key = int(key) if re.fullmatch(r"[+-]?[0-9]{1,20}", key) else None
            limits = np.iinfo(names.dtype)
            key = key if key is not None and limits.min <= key <= limits.max else None
        where = None if key is None else _position(names, key, in_order)
        if where is None:
            some = ", ".join(map(str, names[:3].tolist()))
            raise GraphError(
                f"no vertex is named {shown(name)}; the graph has {names.size} names, such as "
                f"{some or 'none'}"
            )
        found.append(where)
    return found


def _position(names: NameArray, key: Any, in_order: bool) -> int | None:
    if in_order:
        first = int(np.searchsorted(names, np.array([key], names.dtype))[0])
        return first if first < names.size and names[first] == key else None
    where = np.flatnonzero(names == key)
    return int(where[0]) if where.size else None


def named_values(names: NameArray, vertices: npt.NDArray[Any]) -> NameArray:
    """Return the names of vertices as an object array; None for a negative number."""
    found = names.astype(object)[np.maximum(vertices, 0)] if names.size else vertices.astype(object)
    found[vertices < 0] = None
    return found
