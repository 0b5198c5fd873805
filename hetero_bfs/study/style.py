"""Style of a study's figures: readable without colour vision, with machine and command below.

Every strategy and selector has its own colour, marker and line style. Most colours are from Okabe
and Ito's palette. Strategies have hollow markers and broken lines, selectors filled markers and
solid lines.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from hetero_bfs.scheduling.strategies import STRATEGIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 5.6
"""So narrow that texts stay readable on a screen of 400 pixels."""
_FOOTER_INCHES = 0.85
_FOOTER_CHARACTERS = 105
_TITLE_CHARACTERS = 60
_MOST_BARS, _MOST_GROUPS = 42, 6  # of a panel
_FEW_BARS = 12  # with numbers that stand upright
_WIDE = 30  # ratio of values that needs a logarithmic axis
_MOST_LEGEND_COLUMNS = 4
_LEGEND_CHARACTERS = 92  # of a line, with 7 for each mark
PALETTE = (
    *("#56B4E9", "#D55E00", "#CC79A7", "#999999"),
    *("#009E73", "#E69F00", "#0072B2", "#332288"),
)
"""Colours of parts that are no strategies or selectors: Okabe and Ito's, and two others."""


class Look(NamedTuple):
    color: str
    marker: str
    line: str


_SELECTORS = {
    "alpha-beta": Look("#56B4E9", "P", "-"),
    "daga": Look("#7F7F7F", "X", "-"),
    "yasui": Look("#117733", "s", "-"),
    "zhang": Look("#B8A800", "h", "-"),
    "learned": Look("#000000", "o", "-"),
    "thresholds": Look("#999933", "d", "-"),
    "auto": Look("#882255", "*", "-"),
    "oracle": Look("#332288", "p", "-"),
}
"""With the strategies' colours: Okabe and Ito's eight, a darker yellow, and four of other
lightness.
"""


_MARKER_SIZES = {"*": 7, "P": 7, "X": 7, "v": 10}
"""BG's marker is larger than BGC's, since both mostly take the same time and overlap."""


def looks() -> dict[str, Look]:
    """Return the looks of strategies (broken lines, from their table), then of selectors."""
    lines = {"top-down": "--", "bottom-up": ":"}
    table = {s.name: Look(s.color, s.marker, lines[s.direction]) for s in STRATEGIES.values()}
    return table | _SELECTORS


def order_of(names: Iterable[str]) -> list[str]:
    """Return names without repetitions, in the order of `looks`, unknown names last."""
    known = {name: place for place, name in enumerate(looks())}
    return sorted(set(names), key=lambda name: (known.get(name, len(known)), name))


def look_of(name: str) -> dict[str, Any]:
    look = looks().get(name, Look("#444444", ".", "-"))
    strategy = name in STRATEGIES
    return {
        "color": look.color,
        "marker": look.marker,
        "linestyle": look.line,
        "markersize": _MARKER_SIZES.get(look.marker, 6),
        "markerfacecolor": "white" if strategy else look.color,
        "markeredgecolor": look.color,
        "linewidth": 1.3 if strategy else 1.8,
        "label": name,
    }


def new_figure(height_inches: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure and the axes of its rows; `height_inches` excludes the footer."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    height = height_inches + _FOOTER_INCHES
    share = _FOOTER_INCHES / height
    figure = Figure(
        figsize=(WIDTH_INCHES, height),
        layout=ConstrainedLayoutEngine(rect=(0.0, share, 1.0, 1.0 - share)),
    )
    axes = figure.subplots(rows, squeeze=False)
    return figure, list(axes.ravel())


def tidy(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(textwrap.fill(title, _TITLE_CHARACTERS), fontsize=10, loc="left")
    axes.set_xlabel(x_label, fontsize=9)
    axes.set_ylabel(y_label, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(True, which="major", color="#d9d9d9", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def seconds_axis(axis: Any) -> None:
    from matplotlib.ticker import EngFormatter, NullFormatter

    axis.set_major_formatter(EngFormatter(unit="s"))
    axis.set_minor_formatter(NullFormatter())


class Cells(NamedTuple):
    """Values of a panel of bars: a row for each graph, a column for each bar of a group.

    Ratios have a line at 1. `spread` has the first and third quartiles, if known.
    """

    title: str
    label: str
    values: pd.DataFrame
    ratio: bool = False
    spread: tuple[pd.DataFrame, ...] = ()


def bars(*tables: Cells) -> Figure:
    """Draw a group of bars for each graph; a panel has a part of a wide table.

    An axis is logarithmic if its values differ much. Strategies are hatched.
    """
    parts = [
        table._replace(
            values=table.values[begin : begin + size],
            spread=tuple(ends[begin : begin + size] for ends in table.spread),
        )
        for table in tables
        for size in [min(_MOST_GROUPS, max(_MOST_BARS // table.values.shape[1], 1))]
        for begin in range(0, len(table.values), size)
    ]
    figure, axes = new_figure(3.4 * len(parts) + 0.4, len(parts))
    for one, part in zip(axes, parts, strict=True):
        _draw_bars(one, part)
    legend_above(figure, axes)
    return figure


def _draw_bars(axes: Axes, part: Cells) -> None:
    names = order_of(part.values.columns)
    width = 0.8 / len(names)
    many = part.values.size > _FEW_BARS
    size, rotation = (7, 90) if many else (8, 0)
    low, high = part.values.min(axis=None), part.values.max(axis=None)
    if low > 0 and high > _WIDE * low:
        axes.set_yscale("log")
        axes.set_ylim(low / 2, high * (6 if many else 2))
    for number, name in enumerate(names):
        places = np.arange(len(part.values)) + (number - (len(names) - 1) / 2) * width
        color = looks()[name].color if name in looks() else PALETTE[number % len(PALETTE)]
        label = name if len(names) > 1 else None
        hatch = "///" if name in STRATEGIES else None
        values = part.values[name].to_numpy(float)
        axes.bar(
            places,
            values,
            0.92 * width,
            color=color,
            label=label,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.3,
        )
        quartiles = [ends[name].to_numpy(float) for ends in part.spread]
        draw_spread(axes, places, *quartiles)
        for place, value, top in zip(
            places, values, np.fmax.reduce([values, *quartiles]), strict=True
        ):
            if not np.isnan(value):
                axes.annotate(
                    _short(value),
                    (place, top),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=size,
                    rotation=rotation,
                )
    if part.ratio:
        axes.axhline(1.0, color="#444444", linewidth=0.8, linestyle="--")
    graphs = [textwrap.fill(str(graph), 16) for graph in part.values.index]
    axes.set_xticks(range(len(graphs)), graphs)
    axes.set_xlim(-0.6, len(graphs) - 0.4)
    tidy(axes, part.title, "", part.label)
    axes.grid(False, axis="x")
    if axes.get_yscale() == "linear":
        axes.margins(y=0.3 if many else 0.12)


def draw_spread(axes: Axes, places: Any, *quartiles: Any) -> None:
    """Draw a line from the first to the third quartile at each place; nothing without quartiles."""
    if quartiles:
        axes.vlines(places, *quartiles, color="#222222", linewidth=0.9, zorder=3)
        for ends in quartiles:
            axes.plot(places, ends, "_", color="#222222", markersize=3.5, zorder=3)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.{3 if value >= 1 else 2}g}"


def stacked(shares: pd.DataFrame, label: str) -> Figure:
    figure, (axes,) = new_figure(1.4 + 0.42 * len(shares))
    left = np.zeros(len(shares))
    for name, color in zip(shares, PALETTE, strict=False):
        values = 100 * shares[name].fillna(0.0).to_numpy(float)
        axes.barh(shares.index, values, 0.6, left, color=color, label=str(name))
        left += values
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    tidy(axes, "", label, "")
    legend_above(figure, [axes])
    return figure


def legend_above(figure: Figure, axes: Iterable[Axes]) -> None:
    found: dict[str, Any] = {}
    for one in axes:
        handles, labels = one.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    fitting = _LEGEND_CHARACTERS // (7 + max(map(len, found), default=0))
    columns = max(min(len(found), fitting, _MOST_LEGEND_COLUMNS), 1)
    figure.legend(
        found.values(), found, loc="outside upper left", ncols=columns, fontsize=8, frameon=False
    )


def to_svg(figure: Figure, footer: str) -> str:
    """Return a figure as SVG with the footer below, the same text for the same figure."""
    from matplotlib import rc_context

    lines = textwrap.wrap(footer, _FOOTER_CHARACTERS)
    figure.text(
        0.008, 0.012, "\n".join(lines), fontsize=6.5, color="#555555", va="bottom", ha="left"
    )
    stream = io.StringIO()
    with rc_context({"svg.hashsalt": "hetero_bfs", "svg.fonttype": "none"}):
        metadata = {"Description": footer, "Date": None, "Creator": None}
        figure.savefig(stream, format="svg", metadata=metadata)
    return stream.getvalue()
