"""What Shi et al. (2018, Frog) measured, on this machine: `hetero-bfs study --paper frog`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.study import figures, findings, style
from hetero_bfs.study.frog_runs import ALGORITHMS, MIXED, measure_frog
from hetero_bfs.study.page import GRAPH_COLUMNS, Paper, Section
from hetero_bfs.study.searches import Row, StudyOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hetero_bfs.study.run import Study

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


def measure(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    """Measure all tables of the paper."""
    measure_frog(study, options, info)
    tables = {name: pd.DataFrame(rows) for name, rows in study.rows.items()}
    study.add("claims", claim_rows(tables))


def claim_rows(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    """Return the figures that the paper states, with ours from the study's tables."""
    classes, runs, atomics = tables["classes"], tables["iterations"], tables["atomics"]
    of_four = 1 - classes[classes["class"] == MIXED]["share"].mean()
    rows = [_claim("vertices of the first four colours", _SHARE_OF_FOUR, of_four, "share")]
    for name in ALGORITHMS:
        ours, counted = (table[table["algorithm"] == name] for table in (runs, atomics))
        before, after = ours["synchronous_iterations"], ours["asynchronous_iterations"]
        rows.append(
            _claim(f"{name}: iterations, synchronous over asynchronous", _ratio(*_TABLE_5[name]),
                   _ratio(before, after))
        )  # fmt: skip
        rows.append(
            _claim(f"{name}: updates with atomics, synchronous over asynchronous",
                   _ratio(*_TABLE_6[name]), _ratio(counted["synchronous"], counted["mixed_class"]))
        )  # fmt: skip
    return rows


def _claim(what: str, paper: float, ours: float, unit: str = "x") -> Row:
    return {"claim": what, "unit": unit, "paper": paper, "ours": ours}


def _ratio(before: Any, after: Any) -> float:
    """Return the geometric mean of the ratios; counts of 0 are 1."""
    ratios = np.maximum(np.asarray(before, float), 1) / np.maximum(np.asarray(after, float), 1)
    return math.exp(np.log(ratios).mean())


# Tables as text, findings, figures.


def _shown(name: str, value: Any) -> str:
    """Format a cell by its column's name."""
    if name.endswith("seconds"):
        return findings.format_seconds(value)
    if name.endswith("bytes"):
        return f"{value / 2**20:.1f} MiB"
    return f"{value:.1%}" if name == "share" else str(value)


def _table(caption: str, *names: str) -> Callable[[pd.DataFrame], findings.Brief]:
    """Return a function that shows these columns."""

    def brief(table: pd.DataFrame) -> findings.Brief:
        columns = {n.replace("_", " "): [_shown(n, v) for v in table[n]] for n in names}
        return caption, pd.DataFrame(columns)

    return brief


def _wide(
    caption: str, rows: list[str], columns: str, name: str
) -> Callable[[pd.DataFrame], findings.Brief]:
    """Return a function that shows a column of values by two others."""

    def brief(table: pd.DataFrame) -> findings.Brief:
        table = table.assign(**{columns: table[columns].astype(str)})
        wide = table.pivot_table(name, rows, columns, sort=False)
        return caption, wide.map(lambda value: _shown(name, value)).reset_index().astype(str)

    return brief


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


def _claims_brief(table: pd.DataFrame) -> findings.Brief:
    shown = {
        name: [
            f"{value:.1%}" if unit == "share" else f"{value:.3g} x"
            for value, unit in zip(table[name], table["unit"], strict=True)
        ]
        for name in ("paper", "ours")
    }
    return "Means over the graphs, those of ratios geometric", table[["claim"]].assign(**shown)


def _claims_finding(_: pd.DataFrame) -> str:
    return "The paper's means are over its five smaller graphs, ours over the graphs of this study."


def _draw_classes(table: pd.DataFrame) -> Figure:
    return style.stacked(figures.cells(table, "share", "class"), "share of the vertices (%)")


def _no_figure(_: pd.DataFrame) -> None:
    return None


_RUN = "algorithm", "place"
_STEPS = "colour_seconds", "order_seconds"
_ITERATIONS = tuple(
    f"{mode}_{what}"
    for what in ("iterations", "seconds")
    for mode in ("synchronous", "asynchronous")
)
_UPDATES = ("synchronous", "asynchronous", "mixed_class")


def _section(
    name: str,
    title: str,
    columns: tuple[str, ...],
    finding: Any,
    brief: Any,
    draw: Any = _no_figure,
) -> Section:  # fmt: skip
    return Section(name, title, "", (*GRAPH_COLUMNS, *columns), draw, finding, brief)


_SECTIONS = (
    _section(
        "classes",
        "Vertices of each class: four colours, and all others (Figures 2 and 7)",
        ("num_colours", "class", "vertices", "share"),
        _classes_finding,
        _wide("Shares of the vertices", ["graph", "num_colours"], "class", "share"),
        _draw_classes,
    ),
    _section(
        "iterations",
        "Iterations and time (Tables 2 to 5)",
        ("algorithm", "place", *_ITERATIONS),
        _iterations_finding,
        _table("Whole runs, without copies to a device", "graph", *_RUN, *_ITERATIONS),
    ),
    _section(
        "atomics",
        "Updates that need atomics in the paper (Table 6)",
        ("algorithm", *_UPDATES),
        _atomics_finding,
        _table("Updates of vertices, all and those of the mixed class", "graph", "algorithm",
               *_UPDATES),
    ),
    _section(
        "partitions",
        "Time by the number of classes (Figure 8)",
        (*_RUN, "num_classes", "seconds"),
        _partitions_finding,
        _wide("One thread or work-group goes through the last class", ["graph", "algorithm"],
              "num_classes", "seconds"),
    ),
    _section(
        "preprocessing",
        "Preprocessing (Figure 9)",
        ("vertices", *_STEPS),
        _preprocessing_finding,
        _table("Colouring, and copying the lists in the order of colours", "graph", "vertices",
               *_STEPS),
    ),
    _section(
        "streaming",
        "Larger than the device's memory (section 4.2)",
        ("list_bytes", "iterations", "sent_bytes", "seconds"),
        _streaming_finding,
        _table("PageRank with room for a quarter of the lists; bytes sent per iteration", "graph",
               "iterations", "list_bytes", "sent_bytes", "seconds"),
    ),
    Section(
        "claims",
        "Figures of the paper, and ours",
        "",
        ("claim", "unit", "paper", "ours"),
        _no_figure,
        _claims_finding,
        _claims_brief,
    ),
)  # fmt: skip

PAPER = Paper(
    "frog", "Shi et al. 2018, Frog: its tables on this machine", SCALES, measure, _SECTIONS
)
