"""Measures whole runs of the algorithms of the table, by place.

A model predicts the seconds of a run, and of opening a device for it, from the size of the graph
(scheduling/speed_model.py). Regret compares the places that the scheduler chose with the faster
one: all runs of an engine from its first, in seconds of the measured medians of their places.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

import pandas as pd

from hetero_bfs.algorithms.base import RUNS_OF_AN_ENGINE, Analysis, Request
from hetero_bfs.algorithms.table import rows
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.families import StudyGraph
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.scheduling.speed_model import RUN_COLUMNS, RunCosts, RunTable
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.training.fit import fit_linear
from hetero_bfs.training.measured_programs import ROUNDS, drawn_sources, weighted
from hetero_bfs.training.oracle import schedule_text

_RUNS = 10  # of an engine, for regret


def requests(graph: SearchGraph) -> Iterator[Request[Any]]:
    """Yield a run of each algorithm that needs no arguments, or a source."""
    (source,) = drawn_sources(graph, 1)
    for row in rows().values():
        needed = {name for name, one in row.parameters.items() if one.default is one.empty}
        if needed <= {"source"}:
            yield row.ask(graph.num_vertices, **dict.fromkeys(needed, source))


def measure_algorithms(
    graphs: Iterable[StudyGraph], info: DeviceInfo | None, threads: int, rounds: int = ROUNDS
) -> pd.DataFrame:
    """Measure each algorithm on each place.

    Returns
    -------
    DataFrame
        A row for each graph, algorithm and place. Columns: family, graph, algorithm, place, levels,
        vertices, edges, largest_degree (`GraphSize`), opening, seconds (the median of `rounds`
        runs after an untimed one).
    """
    found: list[dict[str, Any]] = []
    for graph in graphs:
        placed, levels = _placed(graph, threads)
        for request in requests(placed):
            with request.kind(placed, threads, info) as runs:
                for place in list(runs.places):
                    began = time.perf_counter()
                    if place == "device" and runs.device is None:
                        continue
                    runs.host.prepare()
                    opening = time.perf_counter() - began
                    found.append({
                        "family": graph.family,
                        "graph": graph.name,
                        "algorithm": request.kind.what,
                        "place": place,
                        "levels": levels,
                        "vertices": placed.num_searched,
                        "edges": placed.graph.num_stored_edges,
                        "largest_degree": int(placed.degree.max()),
                        "opening": opening,
                        "seconds": median(_seconds(runs, request, place, rounds)),
                    })  # fmt: skip
    return pd.DataFrame(found)


def _placed(graph: StudyGraph, threads: int) -> tuple[SearchGraph, int]:
    """Build a graph with weights; return it, and the levels of a typical search."""
    placed = build_search_graph(weighted(graph.make()))
    with Engine(placed, device="cpu", threads=threads) as engine:
        return placed, engine.reference_levels


def _seconds(
    runs: Analysis[Any], request: Request[Any], place: DeviceKind | None, count: int
) -> list[float]:
    """Return the seconds of runs on a place, after an untimed one."""
    return [runs.run(*request.query, place=place).seconds for _ in range(1 + count)][1:]


def fit_algorithms(samples: pd.DataFrame) -> RunTable:
    """Fit the costs of each place and algorithm to the samples of `measure_algorithms`."""
    table: dict[Any, dict[str, RunCosts]] = {}
    for (place, algorithm), those in samples.groupby(["place", "algorithm"]):
        opening = those.assign(seconds=those["opening"])
        table.setdefault(place, {})[algorithm] = RunCosts(
            fit_linear(those, RUN_COLUMNS), fit_linear(opening, RUN_COLUMNS)
        )
    return table


def regret_of_algorithms(
    graphs: Iterable[StudyGraph], info: DeviceInfo | None, threads: int, rounds: int = ROUNDS
) -> Iterator[dict[str, Any]]:
    """Yield a row for each graph and algorithm.

    Columns are family, graph, program (the algorithm), place (of the last run), seconds,
    best_seconds (means of `_RUNS` runs from the first, and of as many on the faster place), regret,
    first_regret (of the first run) and schedule (all places).
    """
    for graph in graphs:
        placed, levels = _placed(graph, threads)
        for request in requests(placed):
            with request.kind(placed, threads, info) as runs:
                runs.levels, runs.expected_runs = levels, RUNS_OF_AN_ENGINE
                places = [_place_of(runs, request) for _ in range(_RUNS)]
                seconds = {
                    place: median(_seconds(runs, request, place, rounds)) for place in runs.places
                }
            best = min(seconds.values())
            mean = sum(seconds[place] for place in places) / _RUNS
            yield {
                "family": graph.family,
                "graph": graph.name,
                "program": request.kind.what,
                "place": places[-1],
                "seconds": mean,
                "best_seconds": best,
                "regret": mean / best - 1.0,
                "first_regret": seconds[places[0]] / best - 1.0,
                "schedule": schedule_text(places),
            }


def _place_of(runs: Analysis[Any], request: Request[Any]) -> DeviceKind:
    runs.run(*request.query)
    return "cpu" if runs.choice is None else runs.choice.option
