"""Compares selectors' choices with the best ones: schedules, and regret of searches and programs.

training/regret.py and training/program_regret.py measure regret. This module adds the study's
columns to their rows, and splits the schedules of searches into levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numba

from hetero_bfs.study.levels import MeasuredLevel
from hetero_bfs.study.plan import StudyOptions
from hetero_bfs.study.searches import Row, Subject
from hetero_bfs.training.program_regret import regret_of_programs
from hetero_bfs.training.regret import ORACLE, measure_graph


def regret_rows(subject: Subject, options: StudyOptions) -> list[Row]:
    graph = subject.about.graph
    return list(measure_graph(subject.engine, graph, len(subject.sources), options.rounds))


def program_rows(subject: Subject, options: StudyOptions) -> list[Row]:
    threads = options.engine.threads or numba.get_num_threads()
    info = subject.engine.device_info
    found = regret_of_programs(subject.edges, info, threads, options.rounds)
    return [{**subject.row(), **row} for row in found]


def schedule_rows(
    subject: Subject, regrets: Sequence[Row], measured: Sequence[MeasuredLevel]
) -> list[Row]:
    """Return one row for each level and selector: its strategy and the oracle's.

    `level_seconds` excludes migration; it is None if not measured.
    """
    seconds = {(one.key, one.features.level, one.strategy.name): one.seconds for one in measured}
    schedules = {(row["root"], row["selector"]): row["schedule"] for row in regrets}
    rows = []
    for (key, selector), text in schedules.items():
        if selector.startswith("fixed:"):
            continue
        best = list(strategies_of(schedules[key, ORACLE]))
        for level, (strategy, oracle) in enumerate(zip(strategies_of(text), best, strict=True)):
            rows.append(
                {
                    **subject.row(),
                    "key": key,
                    "selector": selector,
                    "level": level,
                    "strategy": strategy,
                    "oracle_strategy": oracle,
                    "level_seconds": seconds.get((key, level, strategy)),
                    "oracle_level_seconds": seconds.get((key, level, oracle)),
                }
            )
    return rows


def strategies_of(text: str) -> Iterator[str]:
    """Yield each level's strategy from the text that `schedule_text` wrote, such as "TC BG*3"."""
    for run in text.split():
        name, _, count = run.partition("*")
        yield from [name] * int(count or 1)
