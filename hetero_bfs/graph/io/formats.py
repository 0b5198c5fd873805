"""The table of graph files' formats. Reading, writing, `convert`, help and documents follow it.

This module imports neither NumPy nor the formats' modules, since the command line's help needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Weights = Literal["none", "optional", "needed"]


@dataclass(frozen=True)
class Format:
    """A format of graph files.

    Functions are named "module:function", the module relative to this folder.

    title, weights_text : for help and documents
    suffixes : names of its files end in one of these
    reader : takes a `GraphFile` and the `Wanted`, returns an `EdgeList` or a `CSRGraph`
    writer : takes a graph and a binary stream; None if the format is only read
    size : takes a `GraphFile`, returns the number of vertices in its header
    named : takes a `GraphFile`, tells whether its header says that the vertices have names
    note : takes a `GraphFile` and `directed`, returns a note on its vertex ids, or None
    weights : whether a written file has weights
    keeps_direction : whether the format holds directed graphs
    keeps_isolated : whether it holds the number of vertices, or edges alone
    writes_names : whether vertices with names have these in a written file instead of numbers;
        those without edges are then left out
    writes_lists : whether the writer needs a `CSRGraph`
    is_text : whether it may be compressed, and has lines
    has_columns : whether `columns` may name columns
    first_id : the least vertex id in its files
    begins : pattern of the first bytes, by which unnamed input is recognised
    """

    title: str
    suffixes: tuple[str, ...]
    reader: str
    writer: str | None = None
    size: str | None = None
    named: str | None = None
    note: str | None = None
    weights: Weights = "optional"
    weights_text: str = "third column"
    keeps_direction: bool = True
    keeps_isolated: bool = True
    writes_names: bool = False
    writes_lists: bool = False
    is_text: bool = True
    has_columns: bool = False
    first_id: int = 0
    begins: bytes | None = None

    def function(
        self, role: Literal["reader", "writer", "size", "named", "note"]
    ) -> Callable[..., Any]:
        module, _, name = getattr(self, role).partition(":")
        found: Callable[..., Any] = getattr(import_module(f"{__package__}.{module}"), name)
        return found


FORMATS = (
    Format(
        "edge lists in the style of SNAP, KONECT, GAP, NetworkX and LDBC",
        (".txt", ".el", ".tsv", ".edges", ".edgelist", ".e"),
        "text:read_edge_list",
        "text:write_edge_list",
        note="text:edge_list_note",
        has_columns=True,
    ),
    Format(
        "weighted edge lists of GAP",
        (".wel",),
        "text:read_edge_list",
        "text:write_edge_list",
        note="text:edge_list_note",
        weights="needed",
        has_columns=True,
    ),
    Format(
        "tables with a header line",
        (".csv",),
        "table_files:read_text_table",
        "table_files:write_csv",
        weights_text="column weight",
        keeps_isolated=False,
        writes_names=True,
        has_columns=True,
    ),
    Format(
        "Matrix Market, coordinate or array",
        (".mtx",),
        "matrix_market:read_matrix_market",
        "matrix_market:write_matrix_market",
        size="matrix_market:matrix_market_size",
        weights_text="values",
        begins=rb"(?i)%%?MatrixMarket",
        first_id=1,
    ),
    Format(
        "DIMACS shortest paths",
        (".gr",),
        "text:read_dimacs",
        "text:write_dimacs",
        size="text:dimacs_size",
        note="text:dimacs_note",
        weights="needed",
        weights_text="third number",
        begins=rb"(?:c[^\r\n]*\s+)*p\s+sp\s",
        first_id=1,
    ),
    Format(
        "DIMACS colouring",
        (".col",),
        "text:read_dimacs",
        "text:write_dimacs",
        size="text:dimacs_size",
        note="text:dimacs_note",
        weights="none",
        keeps_direction=False,
        begins=rb"(?:c[^\r\n]*\s+)*p\s+(?:edges?|col)\s",
        first_id=1,
    ),
    Format(
        "DIMACS maximum flow",
        (".max",),
        "text:read_dimacs",
        size="text:dimacs_size",
        note="text:dimacs_note",
        weights_text="capacities",
        begins=rb"(?:c[^\r\n]*\s+)*p\s+max\s",
        first_id=1,
    ),
    Format(
        "METIS",
        (".graph", ".metis"),
        "metis:read_metis",
        "metis:write_metis",
        size="metis:metis_size",
        note="metis:metis_note",
        weights_text="integers",
        keeps_direction=False,
        writes_lists=True,
        first_id=1,
    ),
    Format(
        "SciPy sparse matrices",
        (".npz",),
        "binary:read_npz",
        "binary:write_npz",
        weights_text="values",
        writes_lists=True,
        is_text=False,
        begins=rb"PK\x03\x04",
    ),
    Format(
        "NumPy arrays of two or three columns",
        (".npy",),
        "binary:read_npy",
        "binary:write_npy",
        keeps_isolated=False,
        is_text=False,
        begins=rb"\x93NUMPY",
    ),
    Format(
        "Parquet",
        (".parquet",),
        "table_files:read_arrow",
        "table_files:write_parquet",
        weights_text="column weight",
        writes_names=True,
        is_text=False,
        begins=rb"PAR1",
        has_columns=True,
    ),
    Format(
        "Arrow and Feather",
        (".arrow", ".feather"),
        "table_files:read_arrow",
        "table_files:write_arrow",
        weights_text="column weight",
        writes_names=True,
        is_text=False,
        begins=rb"ARROW1",
        has_columns=True,
    ),
    Format(
        "serialized graphs of GAP",
        (".sg",),
        "binary:read_serialized",
        "binary:write_serialized",
        size="binary:serialized_size",
        weights="none",
        writes_lists=True,
        is_text=False,
    ),
    Format(
        "weighted serialized graphs of GAP",
        (".wsg",),
        "binary:read_serialized",
        "binary:write_serialized",
        size="binary:serialized_size",
        weights="needed",
        weights_text="int32",
        writes_lists=True,
        is_text=False,
    ),
    Format(
        "our own format, with checksums",
        (".hbg",),
        "hbg:read_hbg",
        "hbg:write_hbg",
        size="hbg:hbg_size",
        named="hbg:hbg_has_names",
        weights_text="int32, float32 or float64",
        writes_lists=True,
        is_text=False,
        begins=rb"\x89HBG",
    ),
)

BY_SUFFIX = {suffix: row for row in FORMATS for suffix in row.suffixes}

COMPRESSIONS = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".xz": b"\xfd7zXZ\0",
    ".zst": b"\x28\xb5\x2f\xfd",
}
"""Suffixes of compressed text, and the first bytes of such files."""


def recognised(head: bytes) -> str:
    """Return the suffix of the format whose files begin so; .txt for any other text."""
    for row in FORMATS:
        if row.begins is not None and re.match(row.begins, head):
            return row.suffixes[0]
    return ".txt"


def suffixes(*, writable: bool = False) -> list[str]:
    return [s for s, row in BY_SUFFIX.items() if row.writer is not None or not writable]


def help_text() -> str:
    text = [s for s, row in BY_SUFFIX.items() if row.is_text]
    other = [s for s, row in BY_SUFFIX.items() if not row.is_text]
    return (
        f"Files end in {' '.join(text)} (or, compressed, also in {' '.join(COMPRESSIONS)}), "
        f"{' '.join(other)}; - is standard input."
    )
