"""Style of a study's figures: readable without colour vision, with machine and command below.

Every strategy and selector has its own colour, marker and line style. Most colours are from Okabe
and Ito's palette. Strategies have hollow markers and broken lines, selectors filled markers and
solid lines.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hetero_bfs.scheduling.strategies import STRATEGIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 9.5
DOTS_PER_INCH = 120
_FOOTER_INCHES = 0.55
_FOOTER_CHARACTERS = 180
_NAME_INCHES = 0.16  # distance between names at the ends of lines


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


def new_figure(
    height_inches: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes row by row; `height_inches` excludes the footer."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    height = height_inches + _FOOTER_INCHES
    share = _FOOTER_INCHES / height
    figure = Figure(
        figsize=(WIDTH_INCHES, height),
        dpi=DOTS_PER_INCH,
        layout=ConstrainedLayoutEngine(rect=(0.0, share, 1.0, 1.0 - share)),
    )
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def tidy(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, fontsize=10, loc="left")
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


def plain_axis(axis: Any) -> None:
    """Label a logarithmic axis; a shorter range gets more numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axis.get_view_interval()
    subs: tuple[float, ...] = (1.0, 2.0, 5.0)
    if high / low < 4:
        subs = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
    elif high / low < 12:
        subs = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
    axis.set_major_locator(LogLocator(10, subs=subs, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.8f}".rstrip("0").rstrip(".")))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def name_ends(axes: Axes, ends: Mapping[str, tuple[float, float]], height_inches: float) -> None:
    """Name lines to the right of the axes, near the height of their last points, without overlap.

    `ends` maps names to these points. The y axis is logarithmic, about `height_inches` high, and
    its limits are final.
    """
    from matplotlib.lines import Line2D

    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    at = {name: math.log(y / low) / math.log(high / low) for name, (_, y) in ends.items()}
    names = sorted(at, key=at.__getitem__)
    heights = spread([at[name] for name in names], _NAME_INCHES / height_inches)
    for name, height in zip(names, heights, strict=True):
        start = (ends[name][0] - left) / (right - left)
        master = Line2D([start, 1.03], [at[name], height], color="#999999", linewidth=0.6)
        look = look_of(name) | {"linestyle": "none", "label": f"_{name}"}
        mark = Line2D([1.03], [height], **look)
        for artist in (master, mark):
            artist.set(transform=axes.transAxes, clip_on=False, zorder=1.5)
            axes.add_artist(artist)
        axes.annotate(
            name,
            (1.03, height),
            (8, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            va="center",
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move ascending heights within 0 to 1 to distances of at least `gap`, by small changes.

    The gap is reduced if there is no room for it.
    """
    count = len(heights)
    gap = min(gap, 1.0 / max(count - 1, 1))
    groups: list[list[float]] = []  # touching neighbours: sum of their desired starts, count
    for number, height in enumerate(heights):
        groups.append([height - gap * number, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, members = groups.pop()
            groups[-1][0] += total
            groups[-1][1] += members
    starts = [total / members for total, members in groups for _ in range(int(members))]
    most = 1.0 - gap * (count - 1)
    return [min(max(start, 0.0), most) + gap * number for number, start in enumerate(starts)]


def to_png(figure: Figure, footer: str) -> bytes:
    lines = textwrap.wrap(footer, _FOOTER_CHARACTERS)
    figure.text(
        0.008, 0.012, "\n".join(lines), fontsize=6.5, color="#555555", va="bottom", ha="left"
    )
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Description": footer, "Software": None})
    return stream.getvalue()
