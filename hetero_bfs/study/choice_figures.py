"""Figures of selectors' choices: schedules next to the oracle's, and regret."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hetero_bfs.study import style
from hetero_bfs.study.figures import shown_graphs
from hetero_bfs.training.regret import ORACLE, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 14
_DARKEST = 8.0  # log10 of the regret in percent drawn black: so large that text stays readable


def schedule(table: pd.DataFrame) -> Figure:
    """Draw which strategy each selector chose at each level, the oracle on top.

    Cells name the strategy; cells that differ from the oracle's are hatched.
    """
    shown = shown_graphs(table)
    columns = min(len(shown), 2)
    rows = math.ceil(len(shown) / columns)
    lines = table["selector"].nunique()
    figure, panels = style.new_figure(rows * (0.3 * lines + 1.1), rows, columns)
    for axes in panels[len(shown) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, shown, strict=False):
        one = table[table["graph"] == name]
        key = one["key"].iloc[0]
        _strips(axes, one[one["key"] == key])
        style.tidy(
            axes,
            f"{name}, key {key}",
            "level (distance from the key), joined where equal",
            "selector (hatched: not as the oracle)",
        )
        axes.grid(False)
    return figure


def _strips(axes: Axes, table: pd.DataFrame) -> None:
    """Draw a row of cells for each selector; adjacent levels with equal choices share a column."""
    dense_push = table.pivot(index="selector", columns="level", values="strategy")
    names = [ORACLE, *(name for name in style.order_of(dense_push.index) if name != ORACLE)]
    dense_push = dense_push.loc[names]
    runs = [
        list(run)
        for _, run in groupby(dense_push.columns, key=lambda level: tuple(dense_push[level]))
    ]
    for x, run in enumerate(runs[:_MOST_COLUMNS]):
        for y, name in enumerate(names):
            strategy = dense_push.loc[name, run[0]]
            differs = strategy != dense_push.loc[ORACLE, run[0]]
            _cell(axes, x, y, strategy, differs)
    count = min(len(runs), _MOST_COLUMNS)
    labels = [f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:count]]
    axes.set_xlim(-0.5, count - 0.5 + (0.6 if len(runs) > count else 0))
    if len(runs) > count:
        axes.text(count - 0.4, (len(names) - 1) / 2, "...", va="center", fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks(range(count), labels, rotation=0 if len("".join(labels)) < 30 else 45)
    axes.set_yticks(range(len(names)), names)


def _cell(axes: Axes, x: int, y: int, strategy: str, differs: bool) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    tint = tuple(1 - 0.35 * (1 - part) for part in to_rgb(style.looks()[strategy].color))
    axes.add_patch(
        Rectangle(
            (x - 0.46, y - 0.42),
            0.92,
            0.84,
            facecolor=tint,
            edgecolor="#555555",
            hatch="///" if differs else None,
            linewidth=1.6 if differs else 0.6,
        )
    )
    box = {"facecolor": tint, "edgecolor": "none", "pad": 0.8}
    axes.text(x, y, strategy, ha="center", va="center", fontsize=8, bbox=box)


def regret(table: pd.DataFrame) -> Figure:
    """Draw regret by selector and family as a table of shaded cells with numbers."""
    percent = regret_by_family(table)
    figure, axes = _shaded(percent)
    axes.axvline(percent.shape[1] - 2.5, color="black", linewidth=1.2)
    style.tidy(
        axes,
        "regret: search time over that of the fastest schedule, minus 1, in %",
        "family of graphs (geometric means over its searches)",
        "selector",
    )
    axes.grid(False)
    return figure


def programs(table: pd.DataFrame) -> Figure:
    """Draw the regret of vertex programs by program and graph, like `regret`."""
    percent = 100 * table.pivot_table("regret", "graph", "program", sort=False)
    figure, axes = _shaded(percent)
    style.tidy(
        axes,
        "regret: seconds of the run over those of the best schedule, minus 1, in %",
        "program",
        "graph",
    )
    axes.grid(False)
    return figure


def _shaded(percent: pd.DataFrame) -> tuple[Figure, Axes]:
    count = len(percent)
    figure, (axes,) = style.new_figure(0.32 * count + 1.6)
    shades = np.log10(np.clip(percent.to_numpy(), 1.0, None))
    axes.imshow(shades, cmap="Greys", vmin=0.0, vmax=_DARKEST, aspect="auto")
    for (y, x), value in np.ndenumerate(percent.to_numpy()):
        if np.isfinite(value):
            axes.text(x, y, _percent(value), ha="center", va="center", fontsize=8)
    axes.set_xticks(range(percent.shape[1]), percent.columns)
    axes.set_yticks(range(count), percent.index)
    return figure, axes


def regret_by_family(table: pd.DataFrame) -> pd.DataFrame:
    """Return regret in percent by selector and family, with mean and worst over families.

    Selectors are in the order of the mean. The row `none` is the best single strategy, without a
    selector.
    """
    summary = summarise(table).drop(columns="selection")
    return 100 * summary.rename(columns={"all": "mean"})


def _percent(value: float) -> str:
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"
