"""The results of a study's tables, as a sentence (`..._finding`) and a small table (`..._brief`).

Cells of the small tables are text with units, for the page.
"""

from __future__ import annotations

import pandas as pd

from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.study import figures, style
from hetero_bfs.training.program_regret import summarise_programs
from hetero_bfs.training.regret import NONE, ORACLE, summarise

_MOST_ROWS = 12

Brief = tuple[str, pd.DataFrame]
"""A caption, and a table of text."""


def format_seconds(seconds: float) -> str:
    """Format seconds with three digits and a suitable unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def no_brief(table: pd.DataFrame) -> Brief:
    """For sections whose figure shows everything."""
    return "", pd.DataFrame()


def levels_finding(table: pd.DataFrame) -> str:
    best = table[table["fastest"]]
    wins = best["strategy"].value_counts()
    named = ", ".join(f"{name} on {count}" for name, count in wins.items())
    levels = len(table.drop_duplicates(["graph", "key", "level"]))
    return f"Of {levels} levels measured, the fastest strategy was {named}."


def levels_brief(table: pd.DataFrame) -> Brief:
    """Return the paper's Table 5 for the first graph of the figure."""
    graph = figures.shown_graphs(table)[0]
    one = table[table["graph"] == graph]
    key = one["key"].iloc[0]
    one = one[(one["key"] == key) & (one["level"] < _MOST_ROWS)]
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
    return f"{graph}, search from key {key}", pd.DataFrame(rows)


def throughput_finding(table: pd.DataFrame) -> str:
    """Compare the fastest configuration with the best single strategy, on the last graph."""
    graph = figures.shown_graphs(table)[-1]
    one = table[table["graph"] == graph].set_index("selector")["harmonic_mean_gteps"]
    alone = one[[name for name in one.index if name in STRATEGIES]]
    best, best_single = one.idxmax(), alone.idxmax()
    text = f"On {graph}, {best} is the fastest with {one[best]:.3g} GTEPS"
    if best == best_single:
        return f"{text}: no selector beats that strategy alone."
    times = one[best] / alone[best_single]
    return f"{text}, {times:.2f} times the best strategy alone, {best_single}."


def throughput_brief(table: pd.DataFrame) -> Brief:
    rows = []
    for name in style.order_of(table["selector"]):
        line = table[table["selector"] == name]
        cells = dict(zip(line["graph"], line["harmonic_mean_gteps"], strict=True))
        rows.append(
            {"selector": name}
            | {
                graph: f"{cells[graph]:.3g}" if graph in cells else ""
                for graph in dict.fromkeys(table["graph"])
            }
        )
    return "GTEPS, harmonic mean over keys", pd.DataFrame(rows)


def energy_finding(table: pd.DataFrame) -> str:
    measured = table[table["mteps_per_watt"].notna()]
    missing = table[~table["domain"].isin(measured["domain"])].drop_duplicates("domain")
    parts = []
    for domain in dict.fromkeys(measured["domain"]):
        one = measured[measured["domain"] == domain]
        best = one.loc[one["mteps_per_watt"].idxmax()]
        parts.append(
            f"By {domain} energy {best['selector']} on {best['graph']} does most, "
            f"{best['mteps_per_watt']:.3g} MTEPS/W at {best['watts']:.3g} W."
        )
    parts += [
        f"Energy of the {row.domain} is unmeasured: {row.unmeasured_because}."
        for row in missing.itertuples()
    ]
    return " ".join(parts)


def energy_brief(table: pd.DataFrame) -> Brief:
    measured = table[table["mteps_per_watt"].notna()]
    if measured.empty:
        return "", pd.DataFrame()
    graph = figures.shown_graphs(measured)[-1]
    columns = {
        "mteps_per_watt": "MTEPS/W",
        "mteps_per_watt_without_idle": "MTEPS/W, idle apart",
        "watts": "W",
        "idle_watts": "idle W",
        "joules_per_search": "J per search",
        "relative_error": "error, as a share",
    }
    brief = pd.DataFrame(
        {"graph": graph, "domain": row["domain"], "selector": row["selector"]}
        | {new: "" if pd.isna(row[old]) else f"{row[old]:.3g}" for old, new in columns.items()}
        for _, row in measured[measured["graph"] == graph].iterrows()
    )
    return f"{graph}, searches one after another", brief


def relabelling_finding(table: pd.DataFrame) -> str:
    graph = figures.shown_graphs(table)[-1]
    one = table[table["graph"] == graph]
    gain = one.loc[one["relabelled_seconds"].idxmin()]
    return (
        f"{graph} loses {100 * gain['removed_share']:.1f} % of its vertices; its fastest searches "
        f"({gain['selector']}) take {format_seconds(gain['relabelled_seconds'])} instead of "
        f"{format_seconds(gain['as_given_seconds'])} in the order given."
    )


def relabelling_brief(table: pd.DataFrame) -> Brief:
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
    return (
        "Vertices removed, and search time in the order given over that relabelled",
        pd.DataFrame(rows),
    )


def predictions_finding(table: pd.DataFrame) -> str:
    errors = table["relative_error"].abs()
    within = (table["predicted_seconds"] / table["measured_seconds"]).between(0.5, 2.0).mean()
    return (
        f"The installed model's median relative error is {100 * errors.median():.0f} %; "
        f"{100 * within:.0f} % of {len(table)} predictions are within a factor of two."
    )


def predictions_brief(table: pd.DataFrame) -> Brief:
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
    return "Errors of the predicted seconds of a level, over the measured ones", pd.DataFrame(rows)


def schedule_finding(table: pd.DataFrame) -> str:
    shares = (table["strategy"] == table["oracle_strategy"]).groupby(table["selector"]).mean()
    chosen = shares.drop([ORACLE, NONE], errors="ignore").sort_values(ascending=False)
    named = ", ".join(f"{name} {100 * share:.0f} %" for name, share in chosen.items())
    return f"Levels at which selectors chose what the oracle did: {named}."


def regret_finding(table: pd.DataFrame) -> str:
    percent = figures.regret_by_family(table)
    chosen = percent.drop(index=[ORACLE, NONE], errors="ignore").iloc[0]
    families = percent.columns.drop(["mean", "worst"])
    text = (
        f"{chosen.name} comes nearest to the best schedule known: {chosen['mean']:.1f} % as the "
        f"geometric mean over families, {chosen['worst']:.1f} % at worst "
        f"({chosen[families].idxmax()})"
    )
    if NONE in percent.index:
        text += f"; without a selector it is {percent.loc[NONE, 'mean']:.0f} %"
    return text + "."


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
    return "Geometric mean over families, and what choosing itself takes", brief
