"""Results as notebooks display them: a small table, and the timeline of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import Any, Protocol

from hetero_bfs.timeline.spans import spans_of
from hetero_bfs.timeline.timeline_svg import timeline_svg

_MOST_STEPS = 2000
"""Longer runs are shown without a timeline, which would make the notebook's file large."""

_FINEST_PIXELS = 10.0


class _Trace(Protocol):
    def row(self) -> dict[str, Any]: ...


def as_html(title: str, facts: Mapping[str, Any], traces: Iterable[_Trace] = ()) -> str:
    """Return a table of facts and the timeline of the steps; all text is escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_shown(value))}</td></tr>'
        for name, value in facts.items()
    )
    caption = f'<caption style="text-align:left;white-space:nowrap">{escape(title)}</caption>'
    table = f"<table>{caption}<tbody>{rows}</tbody></table>"
    return f"<div>{table}{_picture(title, traces)}</div>"


def _picture(title: str, traces: Iterable[_Trace]) -> str:
    steps = [trace.row() for trace in traces]
    if not 0 < len(steps) <= _MOST_STEPS:
        return ""
    spans = [
        replace(span, details={})
        for span in spans_of(steps)
        if span.lane not in ("runs", "steps", "choices")
    ]
    return timeline_svg(spans, title, _FINEST_PIXELS)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
