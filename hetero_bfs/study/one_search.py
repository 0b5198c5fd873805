"""One search of each graph from start to end, as the default selector runs it."""

from __future__ import annotations

import pandas as pd

from hetero_bfs.study.findings import format_seconds
from hetero_bfs.study.searches import Row, Subject
from hetero_bfs.timeline.spans import Span, spans_of
from hetero_bfs.timeline.timeline_svg import timeline_svg


def search_rows(subject: Subject, rounds: int) -> list[Row]:
    """Return a row per level, of the search of median time."""
    engine, key = subject.engine, subject.sources[0]
    engine.set_selector("auto")
    engine.search(key)  # untimed
    searches = sorted(
        (engine.search(key) for _ in range(rounds)), key=lambda search: search.seconds
    )
    traces = searches[(len(searches) - 1) // 2].traces
    return [{**subject.row(), "key": key, **trace.row()} for trace in traces]


def _spans(table: pd.DataFrame) -> tuple[str, list[Span]]:
    """Return the largest graph's name and spans."""
    largest = table.loc[table["num_edges"].idxmax(), "graph"]
    rows = table[table["graph"] == largest]
    known = rows.astype(object).where(rows.notna(), None)
    return str(largest), spans_of(known.to_dict("records"))


def draw(table: pd.DataFrame) -> str:
    name, spans = _spans(table)
    return timeline_svg(spans, f"Timeline of a search of {name}, {len(table)} levels")


def finding(table: pd.DataFrame) -> str:
    name, spans = _spans(table)
    total = sum(span.seconds for span in spans if span.lane == "runs")

    def share(lane: str) -> str:
        seconds = sum(span.seconds for span in spans if span.lane == lane)
        return f"{100 * seconds / total:.3g} %"

    levels = sum(span.lane == "steps" for span in spans)
    return (
        f"The search of {name} took {format_seconds(total)} for {levels} levels: {share('CPU')} "
        f"in levels on the CPU, {share('device')} on the OpenCL device, {share('migrations')} in "
        f"migrations and the start, {share('choices')} in choosing."
    )
