"""Timelines as pictures, in notebooks, and as files.

A picture is one SVG without scripts and external parts. Notebooks display results as a small table
and the timeline of the run. A file is such a picture, or JSON in the Trace Event Format.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from hetero_bfs.errors import ArgumentError
from hetero_bfs.scheduling.strategies import STRATEGIES
from hetero_bfs.support.files import replacing
from hetero_bfs.timeline.spans import Span, lanes_of, spans_of

_WIDTH, _LEFT, _RIGHT = 620, 96, 16
_TOP, _LANE_HEIGHT, _BAR_HEIGHT = 8, 30, 22
_AXIS_HEIGHT = 34
_LETTER = 7.2  # upper bound of a letter's average width at 12 px
_LEAST_WIDTH = 1.0
_TICKS = 8
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))

_COLORS = {
    "run": "#bbbbbb",
    "step": "#dddddd",
    "choice": "#888888",
    "migration": "#ffffff",
    "exchange": "#ffffff",
    "result": "#bbbbbb",
}
_OTHERS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#B8A800", "#D55E00")
"""For strategies that are not in the table, of vertex programs and of other algorithms."""


def timeline_svg(spans: Sequence[Span], title: str, finest_pixels: float = 2.0) -> str:
    """Return an SVG element for HTML. `title` is for screen readers; tooltips show the spans'
    details.

    Consecutive spans of one kind in a lane are drawn as one if together they are narrower than
    `finest_pixels`.
    """
    lanes = lanes_of(spans)
    end = max((span.start_seconds + span.seconds for span in spans), default=0.0)
    scale = (_WIDTH - _LEFT - _RIGHT) / end if end > 0 else 1.0
    height = _TOP + _LANE_HEIGHT * len(lanes) + _AXIS_HEIGHT
    colors = _colors(spans)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="100%" '
        f'style="max-width:{_WIDTH}px;background:#fff" font-family="sans-serif" font-size="12" '
        f'role="img" aria-label="{escape(title)}">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        *_axis(end, scale, _TOP + _LANE_HEIGHT * len(lanes)),
    ]
    for number, lane in enumerate(lanes):
        y = _TOP + _LANE_HEIGHT * number
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 19}" text-anchor="end" fill="#1a1a1a">{lane}</text>'
        )
        parts += [
            _bar(span, y + 4, scale, colors) for span in _joined(spans, lane, finest_pixels / scale)
        ]
    return "\n".join([*parts, "</svg>"])


def svg_file(element: str) -> str:
    return element.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _colors(spans: Sequence[Span]) -> dict[str, str]:
    known = _COLORS | {strategy.name: strategy.color for strategy in STRATEGIES.values()}
    kinds = (span.kind.partition("@")[0] for span in spans)
    others = list(dict.fromkeys(kind for kind in kinds if kind not in known))
    return known | {kind: _OTHERS[i % len(_OTHERS)] for i, kind in enumerate(others)}


def _joined(spans: Sequence[Span], lane: str, finest_seconds: float) -> Iterator[Span]:
    """Yield a lane's spans; neighbours of one kind that are too short together become one."""
    waiting: Span | None = None
    count = 1
    for span in spans:
        if span.lane != lane:
            continue
        end = span.start_seconds + span.seconds
        if waiting is not None:
            short = end - waiting.start_seconds < finest_seconds
            if short and span.kind == waiting.kind:
                count += 1
                seconds = end - waiting.start_seconds
                waiting = replace(
                    waiting, seconds=seconds, details={"steps": count, "seconds": seconds}
                )
                continue
            yield waiting
        waiting, count = span, 1
    if waiting is not None:
        yield waiting


def _bar(span: Span, y: int, scale: float, colors: dict[str, str]) -> str:
    x = _LEFT + span.start_seconds * scale
    width = max(span.seconds * scale, _LEAST_WIDTH)
    color = colors[span.kind.partition("@")[0]]
    names = [span.name, *([span.name.split()[0]] if span.kind == "migration" else [])]
    name = next((name for name in names if len(name) * _LETTER + 6 <= width), None)
    label = ""
    if name is not None:
        label = (
            f'<text x="{x + width / 2:.1f}" y="{y + 15}" text-anchor="middle" fill="#000">'
            f"{escape(name)}</text>"
        )
    return (
        f"<g><title>{escape(_told(span))}</title>"
        f'<rect x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR_HEIGHT}" fill="{color}" '
        f'fill-opacity="0.45" stroke="{color if color != "#ffffff" else "#555"}" '
        f'stroke-width="0.7"/>{label}</g>'
    )


def _told(span: Span) -> str:
    lines = [f"{span.name}: {with_unit(span.seconds)}"]
    for name, value in span.details.items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        lines.append(f"{name.replace('_', ' ')}: {shown}")
    return "\n".join(lines)


def _axis(end: float, scale: float, y: int) -> Iterator[str]:
    step = _round_step(end / _TICKS) if end > 0 else 1.0
    factor, unit = _unit_of(end)
    for number in range(math.floor(end / step) + 1):
        x = _LEFT + number * step * scale
        yield f'<path d="M{x:.1f} {_TOP}V{y + 4}" stroke="#d9d9d9"/>'
        text = f"{number * step / factor:.4g}"
        yield f'<text x="{x:.1f}" y="{y + 18}" text-anchor="middle" fill="#444">{text}</text>'
    yield (
        f'<text x="{_LEFT - 8}" y="{y + 18}" text-anchor="end" fill="#444">time in {unit}</text>'
    )


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1.0, 2.0, 5.0, 10.0) if power * digit >= least)


def _unit_of(seconds: float) -> tuple[float, str]:
    return next(((f, unit) for f, unit in _UNITS if seconds >= f), _UNITS[-1])


def with_unit(seconds: float) -> str:
    """Return a readable time such as "0.188 ms"; "0 s" for 0."""
    factor, unit = _unit_of(seconds) if seconds > 0 else _UNITS[0]
    return f"{seconds / factor:.4g} {unit}"


_MOST_STEPS = 2000
"""Longer runs are shown without a timeline, which would make the notebook's file large."""

_FINEST_PIXELS = 10.0


def as_html(
    title: str, facts: Mapping[str, Any], traces: Iterable[Any] = (), seconds: float = 0.0
) -> str:
    """Return a table of facts and the timeline of the steps; all text is escaped.

    `traces` are objects with a method `row`. If the run took `seconds`, the time after its steps is
    drawn as that of its result.
    """
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_shown(value))}</td></tr>'
        for name, value in facts.items()
    )
    caption = f'<caption style="text-align:left;white-space:nowrap">{escape(title)}</caption>'
    table = f"<table>{caption}<tbody>{rows}</tbody></table>"
    return f"<div>{table}{_picture(title, traces, seconds)}</div>"


def _picture(title: str, traces: Iterable[Any], seconds: float) -> str:
    steps = [trace.row() for trace in traces]
    if not 0 < len(steps) <= _MOST_STEPS:
        return ""
    spans = [
        replace(span, details={})
        for span in spans_of(steps)
        if span.lane not in ("runs", "steps", "choices")
    ]
    end = max(span.start_seconds + span.seconds for span in spans)
    if seconds > end:
        spans.append(Span("result", "result", "result", end, seconds - end, {}))
    return timeline_svg(spans, title, _FINEST_PIXELS)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# Timelines in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.
#
# The format: "Trace Event Format" by the Chromium authors, and "Visualizing external trace formats"
# in Perfetto's documentation. Lanes are threads of one process, named and ordered by metadata
# events ("M"). Spans are complete events ("X"). `ts` and `dur` are in microseconds; here they are
# whole nanoseconds, so that rounding never makes two spans of a lane overlap. Counters ("C") show
# the frontier.

_PROCESS = 1
_COUNTERS = ("frontier_edges", "unvisited_edges", "vertices")


def trace_events(spans: Sequence[Span], about: dict[str, str] | None = None) -> dict[str, Any]:
    threads = {lane: number for number, lane in enumerate(lanes_of(spans), 1)}
    events = [_metadata("process_name", 0, name="hetero_bfs")]
    for lane, number in threads.items():
        events.append(_metadata("thread_name", number, name=lane))
        events.append(_metadata("thread_sort_index", number, sort_index=number))
    events += [_event(span, threads[span.lane]) for span in spans]
    events += _counts(spans)
    return {"displayTimeUnit": "ns", "traceEvents": events, "otherData": dict(about or {})}


def _metadata(what: str, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": thread, "args": arguments}


def _event(span: Span, thread: int) -> dict[str, Any]:
    start, end = _nanoseconds(span.start_seconds), _nanoseconds(span.start_seconds + span.seconds)
    return {
        "name": span.name,
        "cat": span.lane,
        "ph": "X",
        "ts": start / 1e3,
        "dur": (end - start) / 1e3,
        "pid": _PROCESS,
        "tid": thread,
        "args": dict(span.details),
    }


def _counts(spans: Iterable[Span]) -> Iterator[dict[str, Any]]:
    for span in spans:
        for name in _COUNTERS:
            if name in span.details:
                yield {
                    "name": name,
                    "ph": "C",
                    "ts": _nanoseconds(span.start_seconds) / 1e3,
                    "pid": _PROCESS,
                    "args": {name: span.details[name]},
                }


def _nanoseconds(seconds: float) -> int:
    return round(1e9 * seconds)


_SUFFIXES = ".json", ".svg"


def is_timeline_path(path: Path) -> bool:
    return path.suffix.lower() in _SUFFIXES


def check_timeline_path(path: Path) -> None:
    if not is_timeline_path(path):
        raise ArgumentError(f"{path}: a timeline's file ends in {' or '.join(_SUFFIXES)}")


def write_timeline(path: Path, spans: Sequence[Span], title: str) -> None:
    """A failure leaves no incomplete file."""
    check_timeline_path(path)
    if path.suffix.lower() == ".svg":
        text = svg_file(timeline_svg(spans, title))
    else:
        events = trace_events(spans, {"title": title})
        text = json.dumps(events, indent=1, allow_nan=False) + "\n"
    with replacing(path, encoding="utf-8") as stream:
        stream.write(text)


def save_timeline(path: str | PathLike[str], *results: Any) -> None:
    """Write the timeline of results, one after another.

    Parameters
    ----------
    path : str or path-like
        Ends in .json for the Trace Event Format, which https://ui.perfetto.dev and chrome://tracing
        open, or in .svg for a picture.
    results : BFSResult, ManySearches, ShortestPaths, ProgramResult, PageRank, Components, Colouring

    Raises
    ------
    ArgumentError
        Another suffix.
    HeteroBFSError
        The file cannot be written.
    """
    file = Path(path)
    records = [
        [{"root": getattr(result, "source", None), **trace.row()} for trace in result.traces]
        for result in results
    ]
    write_timeline(file, spans_of(*records), f"Timeline of {file.stem}")
