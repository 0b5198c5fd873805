"""Numbers that Python and OpenCL C share: written in Python, generated for every program.

A module that shares numbers with its OpenCL counterpart has a table `OPENCL`, name to number, or an
`IntEnum`. The builder of a program passes the tables that the program's files need.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import numpy as np

from hetero_bfs.graph.edge_source import NO_VERTEX

Constants = Mapping[str, int | float] | type[IntEnum]

C_TYPES = {
    np.dtype(np.int32): "int",
    np.dtype(np.uint32): "uint",
    np.dtype(np.int64): "long",
    np.dtype(np.uint64): "ulong",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
"""Type names in OpenCL C."""

MIXED_DEGREES = 0xFFFFFFFF
"""Replaces the common degree of 32 vertices if their degrees differ (top_down.cl)."""

SPREAD = 32
LINE_WORDS = 32
ARRIVALS = SPREAD * LINE_WORDS
GAVE_UP = 2 * ARRIVALS
"""Layout of `sync` in grid.cl: number of cache lines, uint32 words per line, first word of the
arrivals, and the last word, which is set if a barrier gave up.
"""

SHARED: Mapping[str, int] = {
    "NO_VERTEX": NO_VERTEX,
    "MIXED_DEGREES": MIXED_DEGREES,
    "SPREAD": SPREAD,
    "LINE": LINE_WORDS,
    "ARRIVALS": ARRIVALS,
    "GAVE_UP": GAVE_UP,
}
"""Numbers for the kernel files of this folder."""


def header(*tables: Constants) -> str:
    """Return `#define` lines for all constants of the tables; floats get type REAL.

    Raises `ValueError` if two tables give a name different numbers.
    """
    merged: dict[str, int | float] = {}
    for table in tables:
        members = table if isinstance(table, Mapping) else table.__members__
        for name, value in members.items():
            if merged.setdefault(name, value) != value:
                raise ValueError(f"{name} is {merged[name]} in one table and {value} in another")
    return "".join(f"#define {name} {_literal(value)}\n" for name, value in merged.items())


def _literal(value: int | float) -> str:
    if isinstance(value, float):
        return f"((REAL){value!r}f)"
    if value > 0xFFFFFFFF:
        return f"{value:#x}ul"
    return f"{value:#x}u" if value > 0x7FFFFFFF else str(value)
