"""Files of timelines: .json in the Trace Event Format, .svg as a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from hetero_bfs.errors import ArgumentError
from hetero_bfs.support.files import replacing
from hetero_bfs.timeline.spans import Span, lanes_of, spans_of
from hetero_bfs.timeline.timeline_svg import svg_file, timeline_svg

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


class _Trace(Protocol):
    def row(self) -> dict[str, Any]: ...


class _Result(Protocol):
    @property
    def traces(self) -> Iterable[_Trace]: ...


def _as_events(spans: Sequence[Span], title: str) -> str:
    return json.dumps(trace_events(spans, {"title": title}), indent=1, allow_nan=False) + "\n"


def _as_picture(spans: Sequence[Span], title: str) -> str:
    return svg_file(timeline_svg(spans, title))


_WRITERS: dict[str, Callable[[Sequence[Span], str], str]] = {
    ".json": _as_events,
    ".svg": _as_picture,
}


def is_timeline_path(path: Path) -> bool:
    return path.suffix.lower() in _WRITERS


def check_timeline_path(path: Path) -> None:
    if not is_timeline_path(path):
        raise ArgumentError(f"{path}: a timeline's file ends in {' or '.join(_WRITERS)}")


def write_timeline(path: Path, spans: Sequence[Span], title: str) -> None:
    """A failure leaves no incomplete file."""
    check_timeline_path(path)
    text = _WRITERS[path.suffix.lower()](spans, title)
    with replacing(path, encoding="utf-8") as stream:
        stream.write(text)


def save_timeline(path: str | PathLike[str], *results: _Result) -> None:
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
