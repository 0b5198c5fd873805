"""Levels of a study: seconds of each strategy from the same state, and one whole search.

This is the paper's Table 5. The state before each level comes from a search on the host. The level
is measured without migration of the frontier. Its time is the median over rounds. Each round goes
through the search and takes the median of a few repetitions of each level (training/measure.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import median

import pandas as pd

from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.strategies import STRATEGIES, Strategy
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.study.findings import format_seconds
from hetero_bfs.study.searches import Row, Subject, add_note, quartile_row
from hetero_bfs.support.messages import progress
from hetero_bfs.timeline.rendering import timeline_svg
from hetero_bfs.timeline.spans import Span, spans_of
from hetero_bfs.training.measure import REPEATS, levels_to_measure, measure_search

_COUNTS = "frontier_vertices", "frontier_edges", "unvisited_vertices", "unvisited_edges"


@dataclass(frozen=True)
class MeasuredLevel:
    """One strategy on one level of the search from `key`; `rounds` has each round's seconds."""

    key: int
    features: LevelFeatures
    strategy: Strategy
    rounds: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return median(self.rounds)


def measure_levels(subject: Subject, rounds: int, notes: list[str]) -> list[MeasuredLevel]:
    """Measure every strategy on all levels of the sources' searches, or on a sample of levels."""
    measured: dict[tuple[int, int, str], MeasuredLevel] = {}
    engine, new_of_old = subject.engine, subject.graph.relabelling.new_of_old
    wanted: dict[int, frozenset[int]] = {}
    for key in subject.sources:
        records, levels = levels_to_measure(engine, int(new_of_old[key]))
        wanted[key] = frozenset(levels)
        if len(levels) < len(records):
            text = f"{len(levels)} of {len(records)} levels from key {key} are measured"
            add_note(notes, f"{subject.about.name}: {text}")
    turns = [key for _ in range(rounds) for key in subject.sources]
    for key in progress(turns, f"{subject.about.name}: levels"):
        walk = measure_search(engine, int(new_of_old[key]), REPEATS, median, wanted[key])
        for features, name, seconds, _ in walk:
            if name in STRATEGIES:
                level = MeasuredLevel(key, features, STRATEGIES[name])
                measured.setdefault((key, features.level, name), level).rounds.append(seconds)
    return list(measured.values())


def level_rows(subject: Subject, measured: Sequence[MeasuredLevel]) -> list[Row]:
    """Return one row for each level and strategy."""
    least: dict[tuple[int, int], float] = {}
    for one in measured:
        place = one.key, one.features.level
        least[place] = min(one.seconds, least.get(place, inf))
    return [
        {
            **_columns(subject, one),
            **{name: getattr(one.features, name) for name in _COUNTS},
            "seconds": one.seconds,
            **quartile_row("seconds", one.rounds),
            "fastest": one.seconds == least[one.key, one.features.level],
            "rounds": len(one.rounds),
        }
        for one in measured
    ]


def prediction_rows(
    subject: Subject, measured: Sequence[MeasuredLevel], notes: list[str]
) -> list[Row]:
    """Without a model there are no rows."""
    try:
        model = model_of(subject.engine.device_info)
    except ModelError as error:
        add_note(notes, str(error))
        return []
    if model is None:
        return []
    rows = []
    for one in measured:
        if one.strategy.name in model.learned:
            predicted = model.learned_seconds(one.features, one.strategy)
            rows.append(
                {
                    **_columns(subject, one),
                    "measured_seconds": one.seconds,
                    "predicted_seconds": predicted,
                    "relative_error": predicted / one.seconds - 1,
                }
            )
    return rows


def _columns(subject: Subject, one: MeasuredLevel) -> Row:
    level = one.features.level
    return {**subject.row(), "key": one.key, "level": level, "strategy": one.strategy.name}


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
