"""Figures of a study, one function for each, drawn from the same tables as its CSV files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hetero_bfs.study import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 6
_MARKERS_UP_TO = 30
_DOMAINS = {
    "cpu": "energy of the CPU",
    "device": "energy of the OpenCL device",
    "system": "energy of the whole system",
}


def levels(table: pd.DataFrame) -> Figure:
    """Draw seconds of each strategy at each level: one panel for each graph, its first key."""
    shown = shown_graphs(table)
    columns = min(len(shown), 2)
    rows = math.ceil(len(shown) / columns)
    figure, panels = style.new_figure(3.1 * rows + 0.4, rows, columns)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, shown, strict=False):
        one = table[table["graph"] == name]
        key = one["key"].iloc[0]
        one = one[one["key"] == key]
        for strategy in style.order_of(one["strategy"]):
            line = one[one["strategy"] == strategy].sort_values("level")
            look = style.look_of(strategy)
            if len(line) > _MARKERS_UP_TO:
                look["markevery"] = len(line) // 10
            axes.plot(line["level"], line["seconds"], **look)
        axes.set_yscale("log")
        style.seconds_axis(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        style.tidy(
            axes, f"{name}, key {key}", "level (distance from the key)", "time of the level (s)"
        )
    _legend_above(figure, panels[0])
    return figure


def shown_graphs(table: pd.DataFrame) -> list[str]:
    """Choose graphs for a figure of few panels: files, and the largest Kronecker graphs."""
    names = list(dict.fromkeys(table["graph"]))
    files = list(dict.fromkeys(table[table["scale"].isna()]["graph"]))[:MOST_PANELS]
    generated = [name for name in names if name not in files]
    kept = 1 if files else 2
    room = max(MOST_PANELS - len(files), 0)
    return generated[-min(kept, room) :] + files if room else files


def throughput(table: pd.DataFrame) -> Figure:
    """Draw GTEPS by strategy and selector: over scales, and for each graph file."""
    return _over_graphs(table, "harmonic_mean_gteps", "GTEPS ($10^9$ traversed edges / s)")


def energy(table: pd.DataFrame) -> Figure:
    """Draw MTEPS/W by strategy and selector, each domain by itself, idle power in and apart."""
    measured = table[table["mteps_per_watt"].notna()]
    if measured.empty:
        reasons = table.drop_duplicates(["domain", "unmeasured_because"])
        lines = [
            f"{_DOMAINS[row.domain]}: unmeasured: {row.unmeasured_because}"
            for row in reasons.itertuples()
        ]
        return style.placeholder("Energy efficiency: unmeasured on this machine", lines)
    parts = []
    for domain in [d for d in _DOMAINS if d in set(measured["domain"])]:
        for column, what in (
            ("mteps_per_watt", "idle included"),
            ("mteps_per_watt_without_idle", "idle power apart"),
        ):
            part = measured[(measured["domain"] == domain) & measured[column].notna()]
            if not part.empty:
                parts.append((part, column, f"{_DOMAINS[domain]}, {what}"))
    return _panels_over_graphs(parts, "MTEPS / W")


def _over_graphs(table: pd.DataFrame, column: str, label: str) -> Figure:
    return _panels_over_graphs([(table, column, "")], label)


def _panels_over_graphs(parts: list[tuple[pd.DataFrame, str, str]], label: str) -> Figure:
    """Draw a column by way of searching: lines over scales, dots for graphs that have none."""
    panels = [
        (some, column, title, scales)
        for part, column, title in parts
        for scales, some in (
            (True, part[part["scale"].notna()]),
            (False, part[part["scale"].isna()]),
        )
        if not some.empty
    ]
    columns = min(len(panels), 2)
    rows = math.ceil(len(panels) / columns)
    figure, axes = style.new_figure(max(4.2, 3.2 * rows), rows, columns)
    for rest in axes[len(panels) :]:
        rest.set_axis_off()
    for one, (table, column, title, scales) in zip(axes, panels, strict=False):
        places = _places(table, scales)
        names = style.order_of(table["selector"])
        for name, shift in zip(names, _apart(len(names), not scales), strict=True):
            line = table[table["selector"] == name]
            look = style.look_of(name) | ({} if scales else {"linestyle": "none"})
            one.plot([places[graph] + shift for graph in line["graph"]], line[column], **look)
        one.set_yscale("log")
        style.plain_axis(one.yaxis)
        what = "Kronecker graphs" if scales else "graph files"
        style.tidy(one, title or what, "", label)
        _name_places(one, table, places, scales)
    _legend_beside(figure, axes)
    return figure


def _apart(count: int, wanted: bool) -> Sequence[float]:
    """Return shifts that keep marks of one place from covering each other."""
    return list(np.linspace(-0.3, 0.3, count)) if wanted and count > 1 else [0.0] * count


def _places(table: pd.DataFrame, scales: bool) -> dict[str, float]:
    graphs = table.drop_duplicates("graph")
    numbers = graphs["scale"] if scales else range(len(graphs))
    return {name: float(x) for name, x in zip(graphs["graph"], numbers, strict=True)}


def _name_places(axes: Axes, table: pd.DataFrame, places: dict[str, float], scales: bool) -> None:
    at = list(places.values())
    if scales:
        axes.set_xticks(at, [f"{x:g}" for x in at])
        axes.set_xlabel("scale (log2 of the vertices)", fontsize=9)
    else:
        axes.set_xticks(at, list(places), rotation=20, ha="right", rotation_mode="anchor")
        axes.set_xlabel("graph", fontsize=9)
    axes.set_xlim(min(at) - 0.5, max(at) + 0.5)


def relabelling(table: pd.DataFrame) -> Figure:
    """Draw which share of the vertices relabelling removes, and what it is worth to searches."""
    figure, (left, right) = style.new_figure(
        max(3.6, 0.32 * table["graph"].nunique() + 2.2), 1, 2, width_ratios=(2, 3), sharey=True
    )
    graphs = table.drop_duplicates("graph")
    rows = np.arange(len(graphs))
    left.barh(rows, 100 * graphs["removed_share"], color="#9ecae1", edgecolor="#333333", hatch="//")
    for row, share in enumerate(graphs["removed_share"]):
        left.text(100 * share + 1, row, f"{100 * share:.1f} %", va="center", fontsize=8)
    left.set_xlim(0, max(100 * graphs["removed_share"].max(), 10) * 1.3)
    left.set_yticks(rows, graphs["graph"])
    left.invert_yaxis()
    style.tidy(left, "removed", "vertices without edges (% of all)", "graph")
    place = dict(zip(graphs["graph"], rows, strict=True))
    names = style.order_of(table["selector"])
    for name, shift in zip(names, _apart(len(names), True), strict=True):
        line = table[table["selector"] == name]
        look = style.look_of(name) | {"linestyle": "none"}
        right.plot(line["speedup"], [place[graph] + shift for graph in line["graph"]], **look)
    right.axvline(1.0, color="#333333", linewidth=1.0)
    right.set_xscale("log")
    style.plain_axis(right.xaxis)
    style.tidy(right, "worth", "search time without relabelling / with it", "")
    _legend_beside(figure, [right])
    return figure


def predictions(table: pd.DataFrame) -> Figure:
    """Draw predicted over measured seconds of levels, a panel for each strategy."""
    names = style.order_of(table["strategy"])
    columns = min(len(names), 3)
    rows = math.ceil(len(names) / columns)
    figure, panels = style.new_figure(3.0 * rows + 0.2, rows, columns, sharex=True, sharey=True)
    both = table[["measured_seconds", "predicted_seconds"]].to_numpy()
    ends = both[both > 0].min() / 1.5, both.max() * 1.5
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for number, (axes, name) in enumerate(zip(panels, names, strict=False)):
        _scatter(axes, table[table["strategy"] == name], name, ends)
        lowest = number + columns >= len(names)
        axes.tick_params(labelbottom=lowest)
        axes.set_xlabel(axes.get_xlabel() if lowest else "")
        axes.set_ylabel(axes.get_ylabel() if number % columns == 0 else "")
    return figure


def _scatter(axes: Axes, table: pd.DataFrame, name: str, ends: tuple[float, float]) -> None:
    look = style.look_of(name) | {"linestyle": "none", "alpha": 0.8, "markersize": 5}
    axes.plot(ends, ends, color="#333333", linewidth=1.0)
    for factor in (0.5, 2.0):
        axes.plot(ends, [factor * x for x in ends], color="#999999", linewidth=0.8, linestyle=":")
    axes.plot(table["measured_seconds"], table["predicted_seconds"], **look)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    style.seconds_axis(axes.xaxis)
    style.seconds_axis(axes.yaxis)
    error = 100 * table["relative_error"].abs().median()
    title = f"{name}: median relative error {error:.0f} %"
    style.tidy(axes, title, "measured time (s)", "predicted time (s)")


def _legend_above(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper left", ncols=len(labels), fontsize=8, frameon=False
    )


def _legend_beside(figure: Figure, panels: Sequence[Axes]) -> None:
    """Explain every strategy and selector that any of the panels has."""
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    names = style.order_of(found)
    figure.legend(
        [found[name] for name in names],
        names,
        loc="outside right upper",
        fontsize=8,
        frameon=False,
        handlelength=3.2,
    )
