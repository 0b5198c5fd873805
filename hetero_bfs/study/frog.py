"""What Shi et al. (2018, Frog) measured, on this machine: `hetero-bfs study --paper frog`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetero_bfs.study import figures, findings, style
from hetero_bfs.study.frog_runs import ALGORITHMS, MIXED, measure_frog
from hetero_bfs.study.page import GRAPH_COLUMNS, Paper, Section, claim, claims_section
from hetero_bfs.study.searches import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = (16, 18)

# The paper's Tables 5 and 6 for its five graphs that its synchronous system can run too:
# iterations of Frog-Native and Frog, and atomic operations of both.
_TABLE_5 = {
    "BFS": ((30, 15, 23, 557, 7), (29, 14, 22, 556, 6)),
    "PageRank": ((52, 51, 15, 31, 33), (20, 25, 10, 16, 19)),
    "SSSP": ((28, 14, 18, 555, 8), (17, 8, 14, 279, 4)),
    "CC": ((35, 32, 26, 561, 20), (9, 7, 8, 252, 5)),
}
_TABLE_6 = {
    "BFS": ((1.3e6, 1.5e6, 1.1e6, 2.3e6, 3.1e6), (1.8e5, 4.0e5, 3.4e5, 2.8e2, 1.6e6)),
    "PageRank": ((2.9e7, 2.6e7, 7.7e6, 2.1e7, 7.1e7), (2.4e5, 1.7e5, 2.3e5, 4.0e3, 2.0e5)),
    "SSSP": ((7.5e6, 6.3e6, 2.7e6, 6.2e7, 6.8e6), (2.4e5, 3.5e5, 1.6e5, 1.6e4, 5.2e5)),
    "CC": ((9.5e7, 7.6e7, 2.9e7, 2.8e8, 4.9e7), (1.2e6, 8.6e5, 4.4e5, 1.3e4, 1.7e6)),
}
_SHARE_OF_FOUR = 0.828  # DBLP, Figure 2


def claim_rows(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    """Return the figures that the paper states, with ours from the study's tables."""
    classes, runs, atomics = tables["classes"], tables["iterations"], tables["atomics"]
    of_four = 1 - classes[classes["class"] == MIXED]["share"].mean()
    rows = [claim("vertices of the first four colours", _SHARE_OF_FOUR, of_four, "share")]
    for name in ALGORITHMS:
        ours, counted = (table[table["algorithm"] == name] for table in (runs, atomics))
        before, after = ours["synchronous_iterations"], ours["asynchronous_iterations"]
        rows.append(
            claim(f"{name}: iterations, synchronous over asynchronous", _ratio(*_TABLE_5[name]),
                   _ratio(before, after))
        )  # fmt: skip
        rows.append(
            claim(f"{name}: updates with atomics, synchronous over asynchronous",
                   _ratio(*_TABLE_6[name]), _ratio(counted["synchronous"], counted["mixed_class"]))
        )  # fmt: skip
    return rows


def _ratio(before: Any, after: Any) -> float:
    """Return the geometric mean of the ratios; counts of 0 are 1."""
    ratios = np.maximum(np.asarray(before, float), 1) / np.maximum(np.asarray(after, float), 1)
    return math.exp(np.log(ratios).mean())


# Findings, and sections.


def _classes_finding(table: pd.DataFrame) -> str:
    left = table[table["class"] == MIXED]
    return (
        f"The first four colours have {1 - left['share'].mean():.1%} of the vertices, the mean "
        f"over {len(left)} graphs (the paper: {_SHARE_OF_FOUR:.1%} of DBLP's)."
    )


def _iterations_finding(table: pd.DataFrame) -> str:
    fewer = table["synchronous_iterations"] > table["asynchronous_iterations"]
    faster = table["synchronous_seconds"] > table["asynchronous_seconds"]
    return (
        f"Asynchronous runs take fewer iterations in {fewer.sum()} of {len(table)} cases, and less "
        f"time in {faster.sum()}."
    )


def _atomics_finding(table: pd.DataFrame) -> str:
    share = table["mixed_class"].sum() / max(table["asynchronous"].sum(), 1)
    return (
        f"{share:.1%} of the asynchronous updates are those of the mixed class, for which the "
        "paper uses atomics. Here none does."
    )


def _partitions_finding(table: pd.DataFrame) -> str:
    best = table.loc[table.groupby(["graph", "algorithm"])["seconds"].idxmin(), "num_classes"]
    counts = ", ".join(f"{one} in {n}" for one, n in best.astype(str).value_counts().items())
    return f"Fastest number of classes, by cases: {counts} (the paper: 3 or 5)."


def _preprocessing_finding(table: pd.DataFrame) -> str:
    colour, order = (table[step].sum() for step in _STEPS)
    return f"Colouring takes {colour / (colour + order):.0%} of the time, ordering lists the rest."


def _streaming_finding(table: pd.DataFrame) -> str:
    share = table["sent_bytes"].sum() / table["list_bytes"].sum()
    return f"An iteration sends {share:.0%} of the lists, colour by colour."


def _draw_classes(table: pd.DataFrame) -> Figure:
    return style.stacked(figures.cells(table, "share", "class"), "share of the vertices (%)")


_RUN = "algorithm", "place"
_STEPS = "colour_seconds", "order_seconds"
_ITERATIONS = (
    *("synchronous_iterations", "asynchronous_iterations"),
    *("synchronous_seconds", "asynchronous_seconds"),
)
_UPDATES = ("synchronous", "asynchronous", "mixed_class")


_SECTIONS = (
    Section(
        "classes",
        "Vertices of each class: four colours, and all others (Figures 2 and 7)",
        "",
        (*GRAPH_COLUMNS, "num_colours", "class", "vertices", "share"),
        _classes_finding,
        _draw_classes,
        findings.wide_brief("Shares of the vertices", ["graph", "num_colours"], "class", "share"),
    ),
    Section(
        "iterations",
        "Iterations and time (Tables 2 to 5)",
        "Whole runs, without copies to a device.",
        (*GRAPH_COLUMNS, *_RUN, *_ITERATIONS),
        _iterations_finding,
    ),
    Section(
        "atomics",
        "Updates that need atomics in the paper (Table 6)",
        "Updates of vertices, all and those of the mixed class.",
        (*GRAPH_COLUMNS, "algorithm", *_UPDATES),
        _atomics_finding,
    ),
    Section(
        "partitions",
        "Time by the number of classes (Figure 8)",
        "One thread or work-group goes through the last class.",
        (*GRAPH_COLUMNS, *_RUN, "num_classes", "seconds"),
        _partitions_finding,
        brief=findings.wide_brief("", ["graph", "algorithm"], "num_classes", "seconds"),
    ),
    Section(
        "preprocessing",
        "Preprocessing (Figure 9)",
        "Colouring, and copying the lists in the order of colours.",
        (*GRAPH_COLUMNS, "vertices", *_STEPS),
        _preprocessing_finding,
    ),
    Section(
        "streaming",
        "Larger than the device's memory (section 4.2)",
        "PageRank with room for a quarter of the lists; bytes sent per iteration.",
        (*GRAPH_COLUMNS, "list_bytes", "iterations", "sent_bytes", "seconds"),
        _streaming_finding,
    ),
    claims_section(
        "The paper's means are over its five smaller graphs, ours over the graphs of this study; "
        "those of ratios are geometric."
    ),
)

PAPER = Paper(
    "frog",
    "Shi et al. 2018, Frog: its tables on this machine",
    SCALES,
    measure_frog,
    _SECTIONS,
    claim_rows,
)
