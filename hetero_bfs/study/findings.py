"""The results of a study's tables: a small table (`..._brief`), and a sentence (`..._finding`).

A sentence says what the small table next to it does not show.

Cells of the small tables are text with units, for the page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.study import figures, style
from hetero_bfs.training.program_regret import summarise_programs
from hetero_bfs.training.regret import summarise

_MOST_ROWS = 12
_MOST_LISTED = 48

Brief = tuple[str, pd.DataFrame]
"""A caption, and a table of text."""


def format_seconds(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def no_brief(table: pd.DataFrame) -> Brief:
    """For sections whose figure shows everything."""
    return "", pd.DataFrame()


def shown(name: str, value: Any) -> str:
    """Format a cell by the end of its column's name, else by its type."""
    if value is None or pd.isna(value):
        return "unmeasured"
    if isinstance(value, str | bool):
        return str(value)
    if name.endswith("seconds"):
        return format_seconds(value)
    if name.endswith("share"):
        return f"{100 * value:.1f} %"
    return f"{value:,}" if isinstance(value, int) else _digits(value)


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def rows_brief(table: pd.DataFrame, caption: str = "") -> Brief:
    listed = table.drop(columns=["family", "scale"], errors="ignore")[:_MOST_LISTED]
    return caption, pd.DataFrame(
        {name.replace("_", " "): shown(name, value) for name, value in row.items()}
        for row in listed.to_dict("records")
    )


def wide_brief(
    caption: str, rows: list[str], columns: str, name: str
) -> Callable[[pd.DataFrame], Brief]:
    """Return a function that shows a column of values by others; a missing one is empty."""

    def brief(table: pd.DataFrame) -> Brief:
        table = table.assign(**{columns: table[columns].astype(str)})
        wide = table.pivot_table(name, rows, columns, sort=False)
        text = wide.map(lambda value: "" if pd.isna(value) else shown(name, value)).reset_index()
        for one in rows:
            text[one] = [shown(one, value) for value in text[one].tolist()]
        return caption, text.rename(columns=lambda one: str(one).replace("_", " "))

    return brief


def claims_brief(table: pd.DataFrame) -> Brief:
    cells = {
        name.replace("_", " "): [
            _amount(value, unit, "unmeasured" if name == "ours" else "")
            for value, unit in zip(table[name], table["unit"], strict=True)
        ]
        for name in table.columns.drop(["claim", "unit"])
    }
    return "What the paper states, and ours", table[["claim"]].assign(**cells)


def _amount(value: Any, unit: str, missing: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or pd.isna(value):
        return missing
    return shown(unit, value) if unit == "share" else f"{_digits(value)} {unit}"


def levels_finding(table: pd.DataFrame) -> str:
    best = table[table["fastest"]]
    wins = best["strategy"].value_counts()
    named = ", ".join(f"{name} on {count}" for name, count in wins.items())
    levels = len(table.drop_duplicates(["graph", "key", "level"]))
    return f"Of {levels} levels measured, the fastest strategy was {named}."


def levels_brief(table: pd.DataFrame) -> Brief:
    title, one = figures.first_search(table, figures.shown_graphs(table)[-1])
    one = one[one["level"] < _MOST_ROWS]
    rows = []
    for level, at in one.groupby("level"):
        row = {"level": str(level)}
        for column in ("frontier_vertices", "frontier_edges", "unvisited_vertices"):
            row[column.replace("_", " ")] = f"{at[column].iloc[0]:,}"
        for name in style.order_of(at["strategy"]):
            row[name] = format_seconds(at.loc[at["strategy"] == name, "seconds"].iloc[0])
        row["fastest"] = at.loc[at["fastest"], "strategy"].iloc[0]
        rows.append(row)
    return title, pd.DataFrame(rows)


def throughput_finding(table: pd.DataFrame) -> str:
    graph = figures.shown_graphs(table)[-1]
    one = table[table["graph"] == graph].set_index("selector")["harmonic_mean_gteps"]
    alone = one[[name for name in one.index if name in STRATEGIES]]
    best = one.idxmax()
    text = f"On {graph}, {best} is the fastest with {one[best]:.3g} GTEPS"
    if alone.empty:
        return f"{text}."
    best_single = alone.idxmax()
    if best == best_single:
        return f"{text}: no selector beats that strategy alone."
    times = one[best] / alone[best_single]
    return f"{text}, {times:.2f} times the best strategy alone, {best_single}."


throughput_brief = wide_brief(
    "GTEPS, harmonic mean over keys", ["selector"], "graph", "harmonic_mean_gteps"
)


def energy_finding(table: pd.DataFrame) -> str:
    """Tell which domains were not measured, and why."""
    measured = table.loc[table["mteps_per_watt"].notna(), "domain"]
    missing = table[~table["domain"].isin(measured)].drop_duplicates("domain")
    return " ".join(
        f"Energy of the {row.domain} is unmeasured: {row.unmeasured_because}."
        for row in missing.itertuples()
    )


def energy_brief(table: pd.DataFrame) -> Brief:
    measured = table[table["mteps_per_watt"].notna()]
    if measured.empty:
        return no_brief(table)
    graph = figures.shown_graphs(measured)[-1]
    columns = [
        *("graph", "domain", "selector", "mteps_per_watt", "mteps_per_watt_without_idle"),
        *("watts", "idle_watts", "joules_per_search", "relative_error"),
    ]
    rows = measured.loc[measured["graph"] == graph, columns]
    return rows_brief(rows, f"{graph}, searches one after another")


relabelling_brief = wide_brief(
    "Vertices removed, and search time in the order given over that relabelled",
    ["graph", "vertices", "removed_vertices", "removed_share", "order"],
    "selector",
    "speedup",
)


def programs_finding(table: pd.DataFrame) -> str:
    found = summarise_programs(table)
    worst = max(found["families"], key=lambda family: found["families"][family])
    return (
        f"Programs take {100 * found['all']:.1f} % longer than the best schedule, as the geometric "
        f"mean over families; {100 * found['worst']:.1f} % in the worst one ({worst}). Choosing "
        f"takes {100 * found['choosing']:.1f} % of a run."
    )


def regret_brief(table: pd.DataFrame) -> Brief:
    summary = summarise(table)
    brief = pd.DataFrame(
        {"selector": name, "mean regret": f"{100 * row['all']:,.1f} %"}
        | {"worst family": f"{100 * row['worst']:,.1f} %"}
        | {
            "choosing takes": ""
            if pd.isna(row["selection"])
            else f"{100 * row['selection']:.1f} % of the search"
        }
        for name, row in summary.iterrows()
    )
    return "Geometric mean over families, and the share of choosing", brief
