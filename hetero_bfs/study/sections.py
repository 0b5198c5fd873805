"""The sections of a study: what each figure shows, how to read it, and its numbers in brief."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from hetero_bfs.strategy import STRATEGIES
from hetero_bfs.study import figures, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """One figure with its table.

    `name` is the stem of its PNG and CSV files; `columns` are those of the CSV, so that a table
    without rows has them too; `finding` says the result in a sentence and `brief` gives a small
    table for the page, cells as text.
    """

    name: str
    title: str
    reading: str
    columns: tuple[str, ...]
    draw: Callable[[pd.DataFrame], Figure]
    finding: Callable[[pd.DataFrame], str]
    brief: Callable[[pd.DataFrame], pd.DataFrame]


_GRAPH = ("graph", "family", "scale")
_SEARCHES = ("keys", "rounds")


def format_seconds(seconds: float) -> str:
    """Write seconds with three figures and a fitting unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _levels_finding(table: pd.DataFrame) -> str:
    best = table[table["fastest"]]
    wins = best["strategy"].value_counts()
    named = ", ".join(f"{name} on {count}" for name, count in wins.items())
    levels = len(table.drop_duplicates(["graph", "key", "level"]))
    return f"Of {levels} levels measured, the fastest strategy was {named}."


def _levels_brief(table: pd.DataFrame) -> pd.DataFrame:
    """Give the paper's Table 5 for the first graph of the figure."""
    one = table[table["graph"] == figures.shown_graphs(table)[0]]
    one = one[(one["key"] == one["key"].iloc[0]) & (one["level"] < 12)]
    rows = []
    for level, at in one.groupby("level"):
        first = at.iloc[0]
        row = {
            "level": str(level),
            "frontier vertices": f"{first['frontier_vertices']:,}",
            "frontier edges": f"{first['frontier_edges']:,}",
            "unvisited vertices": f"{first['unvisited_vertices']:,}",
        }
        for name in style.order_of(at["strategy"]):
            row[name] = format_seconds(at.loc[at["strategy"] == name, "seconds"].iloc[0])
        row["fastest"] = at.loc[at["fastest"], "strategy"].iloc[0]
        rows.append(row)
    return pd.DataFrame(rows)


def _throughput_finding(table: pd.DataFrame) -> str:
    graph = figures.shown_graphs(table)[-1]
    one = table[table["graph"] == graph].set_index("selector")["harmonic_mean_gteps"]
    alone = one[[name for name in one.index if name in STRATEGIES]]
    best, best_alone = one.idxmax(), alone.idxmax()
    text = f"On {graph}, {best} is the fastest with {one[best]:.3g} GTEPS"
    if best == best_alone:
        return f"{text}: no selector beats that strategy alone."
    return (
        f"{text}, {one[best] / alone[best_alone]:.2g} times the best strategy alone, {best_alone}."
    )


def _pivot(table: pd.DataFrame, value: str, write: Callable[[float], str]) -> pd.DataFrame:
    rows = []
    for name in style.order_of(table["selector"]):
        line = table[table["selector"] == name]
        cells = dict(zip(line["graph"], line[value], strict=True))
        rows.append(
            {"selector": name}
            | {
                graph: "" if pd.isna(cells.get(graph)) else write(cells[graph])
                for graph in dict.fromkeys(table["graph"])
            }
        )
    return pd.DataFrame(rows)


def _energy_finding(table: pd.DataFrame) -> str:
    measured = table[table["mteps_per_watt"].notna()]
    missing = table[table["mteps_per_watt"].isna()].drop_duplicates("domain")
    parts = []
    for domain in dict.fromkeys(measured["domain"]):
        one = measured[measured["domain"] == domain]
        best = one.loc[one["mteps_per_watt"].idxmax()]
        parts.append(
            f"By {domain} energy {best['selector']} on {best['graph']} does most, "
            f"{best['mteps_per_watt']:.3g} MTEPS/W at {best['watts']:.3g} W."
        )
    parts += [
        f"Energy of domain {row.domain}: unmeasured ({row.unmeasured_because})."
        for row in missing.itertuples()
    ]
    return " ".join(parts)


def _energy_brief(table: pd.DataFrame) -> pd.DataFrame:
    measured = table[table["mteps_per_watt"].notna()]
    if measured.empty:
        return pd.DataFrame()
    graph = figures.shown_graphs(measured)[-1]
    columns = {
        "mteps_per_watt": "MTEPS/W",
        "mteps_per_watt_without_idle": "MTEPS/W, idle apart",
        "watts": "W",
        "idle_watts": "idle W",
        "joules_per_search": "J per search",
    }
    return pd.DataFrame(
        {"graph": graph, "domain": row["domain"], "selector": row["selector"]}
        | {new: "" if pd.isna(row[old]) else f"{row[old]:.3g}" for old, new in columns.items()}
        for _, row in measured[measured["graph"] == graph].iterrows()
    )


def _relabelling_finding(table: pd.DataFrame) -> str:
    graph = figures.shown_graphs(table)[-1]
    one = table[table["graph"] == graph]
    gain = one.loc[one["relabelled_seconds"].idxmin()]
    return (
        f"{graph} loses {100 * gain['removed_share']:.1f} % of its vertices; its fastest searches "
        f"({gain['selector']}) take {format_seconds(gain['relabelled_seconds'])} instead of "
        f"{format_seconds(gain['as_given_seconds'])}, 1 / {gain['speedup']:.2g}."
    )


def _relabelling_brief(table: pd.DataFrame) -> pd.DataFrame:
    graphs = table.drop_duplicates("graph").set_index("graph")
    rows = []
    for graph, about in graphs.iterrows():
        one = table[table["graph"] == graph].set_index("selector")
        row = {
            "graph": graph,
            "vertices": f"{about['vertices']:,}",
            "removed": f"{about['removed_vertices']:,}",
            "share": f"{100 * about['removed_share']:.1f} %",
            "order": about["order"],
        }
        for name in style.order_of(one.index):
            row[name] = f"{one.loc[name, 'speedup']:.2f}x"
        rows.append(row)
    return pd.DataFrame(rows)


def _predictions_finding(table: pd.DataFrame) -> str:
    if table.empty:
        return "No speed model of this machine is installed, so nothing is predicted."
    errors = table["relative_error"].abs()
    within = (table["predicted_seconds"] / table["measured_seconds"]).between(0.5, 2.0).mean()
    return (
        f"The installed model's median relative error is {100 * errors.median():.0f} %; "
        f"{100 * within:.0f} % of {len(table)} predictions are within a factor of two."
    )


def _predictions_brief(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for name in style.order_of(table["strategy"]):
        errors = table.loc[table["strategy"] == name, "relative_error"]
        rows.append(
            {
                "strategy": name,
                "levels": str(len(errors)),
                "median relative error": f"{100 * errors.abs().median():.0f} %",
                "90 % of levels within": f"{100 * errors.abs().quantile(0.9):.0f} %",
                "predicted too long": f"{100 * (errors > 0).mean():.0f} % of levels",
            }
        )
    return pd.DataFrame(rows)


SECTIONS = (
    Section(
        "levels",
        "Seconds of each strategy at each level (the paper's Table 5)",
        "Every strategy runs every level of the same search from the same state; moving the "
        "frontier to another device or form is left out. Lower is better. Where the lines cross, "
        "another strategy becomes the best one: that is what a selector gains from. The figure "
        "and the table have the first key of each graph, the CSV file all.",
        (
            *_GRAPH,
            "key",
            "level",
            "strategy",
            "frontier_vertices",
            "frontier_edges",
            "unvisited_vertices",
            "unvisited_edges",
            "seconds",
            "fastest",
            "rounds",
        ),
        figures.levels,
        _levels_finding,
        _levels_brief,
    ),
    Section(
        "throughput",
        "GTEPS by strategy and selector (Figure 4)",
        "Whole searches, from the key to the complete parent array. Higher is better. Hollow "
        "markers with broken lines are strategies alone, filled ones are selectors. A key's time "
        "is the median of its rounds, GTEPS is the harmonic mean over keys, as Graph500 has it.",
        (
            *_GRAPH,
            "vertices",
            "input_edges",
            "selector",
            "kind",
            "stands_for",
            "median_seconds",
            "harmonic_mean_gteps",
            "first_quartile_gteps",
            "third_quartile_gteps",
            *_SEARCHES,
        ),
        figures.throughput,
        _throughput_finding,
        lambda table: _pivot(table, "harmonic_mean_gteps", lambda value: f"{value:.3g}"),
    ),
    Section(
        "energy",
        "Energy efficiency by strategy and selector (Figure 5)",
        "Million traversed edges per joule. Higher is better. Energy of the CPU, of the OpenCL "
        "device and of the whole system is shown apart and never added up; &quot;idle power "
        "apart&quot; subtracts what the resting machine draws, measured just before.",
        (
            *_GRAPH,
            "selector",
            "kind",
            "domain",
            "meters",
            "mteps_per_watt",
            "mteps_per_watt_without_idle",
            "watts",
            "idle_watts",
            "joules_per_search",
            "searches",
            "seconds",
            "unmeasured_because",
        ),
        figures.energy,
        _energy_finding,
        _energy_brief,
    ),
    Section(
        "relabelling",
        "What relabelling removes and is worth (Table 6, section 5.4)",
        "Relabelling drops vertices without edges and numbers the others anew. The worth is the "
        "median search time in the order given over that of the relabelled graph, by strategy "
        "and selector: right of 1, relabelling pays.",
        (
            *_GRAPH,
            "vertices",
            "removed_vertices",
            "removed_share",
            "order",
            "selector",
            "kind",
            "relabelled_seconds",
            "as_given_seconds",
            "speedup",
            *_SEARCHES,
        ),
        figures.relabelling,
        _relabelling_finding,
        _relabelling_brief,
    ),
    Section(
        "predictions",
        "Predicted against measured seconds of levels",
        "Each mark is one strategy on one level, predicted by the speed model that is installed "
        "for this machine. On the line the prediction is right; dotted lines are half and twice "
        "the measured time.",
        (
            *_GRAPH,
            "key",
            "level",
            "strategy",
            "measured_seconds",
            "predicted_seconds",
            "relative_error",
        ),
        figures.predictions,
        _predictions_finding,
        _predictions_brief,
    ),
)
