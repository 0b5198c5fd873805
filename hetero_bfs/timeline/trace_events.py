"""Timelines in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open.

The format: "Trace Event Format" by the Chromium authors, and "Visualizing external trace formats"
in Perfetto's documentation. Lanes are threads of one process, named and ordered by metadata events
("M"). Spans are complete events ("X"). `ts` and `dur` are in microseconds; here they are whole
nanoseconds, so that rounding never makes two spans of a lane overlap. Counters ("C") show the
frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hetero_bfs.timeline.spans import Span, lanes_of

_PROCESS = 1
_COUNTERS = ("frontier_edges", "unvisited_edges", "vertices")


def trace_events(spans: Sequence[Span], about: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the content of a trace file, with `about` as metadata."""
    threads = {lane: number for number, lane in enumerate(lanes_of(spans), 1)}
    events = [
        *_metadata(threads),
        *(_event(span, threads[span.lane]) for span in spans),
        *_counts(spans),
    ]
    return {"displayTimeUnit": "ns", "traceEvents": events, "otherData": dict(about or {})}


def _metadata(threads: dict[str, int]) -> Iterator[dict[str, Any]]:
    yield _named("process_name", 0, {"name": "hetero_bfs"})
    for lane, number in threads.items():
        yield _named("thread_name", number, {"name": lane})
        yield _named("thread_sort_index", number, {"sort_index": number})


def _named(what: str, thread: int, arguments: dict[str, Any]) -> dict[str, Any]:
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
