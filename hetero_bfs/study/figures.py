"""Figures of a study, one function for each, drawn from the tables of the CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hetero_bfs.study import style
from hetero_bfs.study.searches import quartile_names
from hetero_bfs.training.regret import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 6
_MARKERS_UP_TO = 30
_DOMAINS = {
    "cpu": "energy of the CPU",
    "device": "energy of the OpenCL device",
    "system": "energy of the whole system",
}


def levels(table: pd.DataFrame) -> Figure:
    searches = [first_search(table, name) for name in shown_graphs(table)]
    figure, panels = style.new_figure(3.1 * len(searches) + 0.4, len(searches))
    for axes, (title, one) in zip(panels, searches, strict=True):
        for strategy in style.order_of(one["strategy"]):
            line = one[one["strategy"] == strategy].sort_values("level")
            look = style.look_of(strategy)
            if len(line) > _MARKERS_UP_TO:
                look["markevery"] = len(line) // 10
            axes.plot(line["level"], line["seconds"], **look)
            style.draw_spread(axes, line["level"], *quartiles(line, "seconds"))
        axes.set_yscale("log")
        style.seconds_axis(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        style.tidy(axes, title, "level (distance from the key)", "time of the level (s)")
    style.legend_above(figure, panels[:1])
    return figure


def shown_graphs(table: pd.DataFrame) -> list[str]:
    """Choose graphs for a figure with few panels: files, and the largest Kronecker graphs."""
    names = list(dict.fromkeys(table["graph"]))
    files = list(dict.fromkeys(table[table["scale"].isna()]["graph"]))[:MOST_PANELS]
    generated = [name for name in names if name not in files]
    kept = 1 if files else 2
    room = max(MOST_PANELS - len(files), 0)
    return generated[-min(kept, room) :] + files if room else files


def first_search(table: pd.DataFrame, graph: str) -> tuple[str, pd.DataFrame]:
    one = table[table["graph"] == graph]
    key = one["key"].iloc[0]
    return f"{graph}, key {key}", one[one["key"] == key]


def cells(table: pd.DataFrame, column: str, names: str = "selector") -> pd.DataFrame:
    return table.pivot_table(column, "graph", names, sort=False)


def quartiles(table: pd.DataFrame, what: str) -> list[pd.Series]:
    """Return the columns of quartiles of a quantity; none if they were not measured."""
    names = [name for name in quartile_names(what) if name in table]
    return [table[name] for name in names if table[name].notna().any()]


def spread(table: pd.DataFrame, what: str, names: str = "selector") -> tuple[pd.DataFrame, ...]:
    return tuple(cells(table, str(one.name), names) for one in quartiles(table, what))


def throughput(table: pd.DataFrame) -> Figure:
    label = "GTEPS ($10^9$ traversed edges / s)"
    means = cells(table, "harmonic_mean_gteps")
    return style.bars(style.Cells("", label, means, spread=spread(table, "gteps")))


def energy(table: pd.DataFrame) -> Figure | None:
    """Draw each domain with and without idle power; None if no meter measured anything.

    Titles name the meters, and below stand the domains that were not measured.
    """
    columns = {
        "mteps_per_watt": ", idle included",
        "mteps_per_watt_without_idle": ", idle power apart",
    }
    found = [
        style.Cells(f"{title} ({_meters(part)}){what}", "MTEPS / W", cells(part, column))
        for domain, title in _DOMAINS.items()
        for column, what in columns.items()
        if not (part := table[(table["domain"] == domain) & table[column].notna()]).empty
    ]
    if not found:
        return None
    figure = style.bars(*found)
    measured = set(table.loc[table["mteps_per_watt"].notna(), "domain"])
    missing = [title for domain, title in _DOMAINS.items() if domain not in measured]
    if missing:
        figure.axes[-1].set_xlabel(f"not measured: {', '.join(missing)}", fontsize=9)
    return figure


def _meters(table: pd.DataFrame) -> str:
    return ", ".join(table["meters"].dropna().unique())


def relabelling(table: pd.DataFrame) -> Figure:
    removed = 100 * table.groupby("graph", sort=False)[["removed_share"]].first()
    return style.bars(
        style.Cells(
            "vertices that relabelling removes",
            "vertices (% of all)",
            removed.rename(columns={"removed_share": "removed"}),
        ),
        style.Cells(
            "above 1, relabelling makes searches faster",
            "search time as given / relabelled",
            cells(table, "speedup"),
            ratio=True,
            spread=spread(table, "speedup"),
        ),
    )


_DARKEST = 8.0  # log10 of the regret in percent drawn black: so large that text stays readable


def regret(table: pd.DataFrame) -> Figure:
    percent = regret_by_family(table)
    what = "search time over that of the fastest schedule"
    families = "family of graphs (geometric means over its searches)"
    figure = _shaded(percent, what, families, "selector")
    figure.axes[0].axvline(percent.shape[1] - 2.5, color="black", linewidth=1.2)
    return figure


def programs(table: pd.DataFrame) -> Figure:
    what = "seconds of the run over the best schedule's"
    return _shaded(100 * cells(table, "regret", "program"), what, "program", "graph")


def _shaded(percent: pd.DataFrame, what: str, columns: str, rows: str) -> Figure:
    count = len(percent)
    figure, (axes,) = style.new_figure(0.32 * count + 1.6)
    shades = np.log10(np.clip(percent.to_numpy(), 1.0, None))
    axes.imshow(shades, cmap="Greys", vmin=0.0, vmax=_DARKEST, aspect="auto")
    for (y, x), value in np.ndenumerate(percent.to_numpy()):
        if np.isfinite(value):
            text = f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"
            axes.text(x, y, text, ha="center", va="center", fontsize=8)
    axes.set_xticks(range(percent.shape[1]), percent.columns, rotation=30, ha="right")
    axes.set_yticks(range(count), percent.index)
    style.tidy(axes, f"regret: {what}, minus 1, in %", columns, rows)
    axes.grid(False)
    return figure


def regret_by_family(table: pd.DataFrame) -> pd.DataFrame:
    """Return regret in percent by selector and family, with mean and worst over families.

    Selectors are in the order of the mean. The row `none` is the best single strategy, without a
    selector.
    """
    summary = summarise(table).drop(columns="selection")
    return 100 * summary.rename(columns={"all": "mean"})
