"""`hetero-bfs view`: the timeline of a trace, for a trace viewer or a browser."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from hetero_bfs.support.files import check_writable
from hetero_bfs.timeline.spans import read_rows, spans_of
from hetero_bfs.timeline.timeline_files import check_timeline_path, write_timeline

_OPENED_BY = {".json": "https://ui.perfetto.dev or chrome://tracing opens it"}


def run(options: Namespace) -> int:
    path: Path = options.out or options.input.with_suffix(".trace.json")
    check_timeline_path(path)
    check_writable(path)
    spans = spans_of(read_rows(options.input))
    write_timeline(path, spans, f"Timeline of {options.input.name}")
    runs, steps = (sum(span.lane == lane for span in spans) for lane in ("runs", "steps"))
    opened = _OPENED_BY.get(path.suffix.lower(), "a browser opens it")
    print(f"{path}: runs {runs}, steps {steps}; {opened}")
    return 0
