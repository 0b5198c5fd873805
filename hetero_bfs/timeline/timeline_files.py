"""Files of timelines: .json in the Trace Event Format, .svg as a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from hetero_bfs.errors import ArgumentError
from hetero_bfs.support.files import replacing
from hetero_bfs.timeline.spans import Span, spans_of
from hetero_bfs.timeline.timeline_svg import svg_file, timeline_svg
from hetero_bfs.timeline.trace_events import trace_events


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
