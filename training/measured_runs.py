"""Measures vertex programs, and whole runs of the other algorithms; fits their costs.

One program for each kind of message (scheduling/speed_model.py) runs over a few graphs, pushed
and pulled, on the host and on the device. The active vertices of each iteration are the same in
both directions. On a device the host waits for each iteration to time it; the cost of waiting is
the same for both directions. Seconds are medians of several runs. An untimed run comes first, since
a run at another place or in another direction leaves cold caches.

Of the algorithms of the table and of multi-source searches whole runs are measured, by place. A
model predicts the seconds of a run, and of opening a device for it, from the size of the graph.
Regret compares the places that the scheduler chose with the better one, over all runs that an
engine is expected to make. A run takes the measured median of its place. The first one on a device
also takes the seconds of opening it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Literal

import numpy as np
import pandas as pd

from hetero_bfs.algorithms.base import RUNS_OF_AN_ENGINE, Analysis, Request
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.algorithms.table import rows
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.edge_list import EdgeList, listed
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.families import StudyGraph, families
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.programs.built_in import LeastLabels
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.program import Program, any_one, minimum
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.scheduling.speed_model import (
    RUN_COLUMNS,
    CostTable,
    ProgramCosts,
    RunCosts,
    RunTable,
)
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.scheduling.trace import IterationTrace
from hetero_bfs.training.fit import fit_linear
from hetero_bfs.training.oracle import schedule_text
from hetero_bfs.training.regret import draw_from_largest_component

ROUNDS = 5
DIRECTIONS: tuple[Literal["push"], Literal["pull"]] = ("push", "pull")
_LARGER_ON_A_GPU = 3  # added to the scales
_HEAVIEST = 255
_COLUMNS = {
    "push": {"senders": "push_vertex", "edges": "push_edge", "changes": "push_change"},
    "pull": {"vertices": "pull_vertex", "edges": "pull_edge", "misses": "pull_miss"},
}
"""Terms of a direction's seconds: a column of the samples, and the name of its cost."""

_LEAST_SECONDS = 20e-6
"""Shorter iterations are left out of the fit, since their direction hardly matters."""


class Parents(Program):
    state = {"parent": np.int32}  # noqa: RUF012
    combine = any_one

    def initial(self, vertex, source):  # type: ignore[no-untyped-def]
        return (source, True) if vertex == source else (-1, False)

    def receives(self, state):  # type: ignore[no-untyped-def]
        return state.parent < 0

    def message(self, vertex):  # type: ignore[no-untyped-def]
        return vertex

    def apply(self, combined):  # type: ignore[no-untyped-def]
        return combined


class Labels(LeastLabels):
    """Components by the smallest number: messages without weights, along the edges."""

    state = {"label": np.int32}  # noqa: RUF012
    along = "out"


class Distances(Program):
    state = {"distance": np.float32}  # noqa: RUF012
    combine = minimum

    def initial(self, vertex, source):  # type: ignore[no-untyped-def]
        return 0.0 if vertex == source else np.inf

    def receives(self, state, message):  # type: ignore[no-untyped-def]
        return message < state.distance

    def message(self, state, weight):  # type: ignore[no-untyped-def]
        return state.distance + weight

    def apply(self, state, combined):  # type: ignore[no-untyped-def]
        return min(state.distance, combined)


MEASURED: dict[str, type[Program]] = {
    "any_one": Parents, "unweighted": Labels, "weighted": Distances
}  # fmt: skip
"""The program of each kind of message."""


def graphs_for(info: DeviceInfo | None, scales: Sequence[int]) -> list[StudyGraph]:
    """Return graphs of all families and scales, the first ones of many of both.

    A GPU gets larger graphs.
    """
    more = _LARGER_ON_A_GPU if info is not None and info.type == "GPU" else 0
    of_scales = [families(scale + more) for scale in scales]
    count = len(scales)
    return [
        of_scales[(family + turn) % count][family]
        for turn in range(count)
        for family in range(len(of_scales[0]))
    ]


def weighted(source: EdgeSource) -> EdgeList:
    """Return edges, with random weights of 1 to 255 if they have none."""
    edges = listed(source)
    if edges.weights is not None:
        return edges
    drawn = np.random.default_rng(1).integers(1, _HEAVIEST, edges.src.size, endpoint=True)
    return replace(edges, weights=drawn.astype(np.float32))


def drawn_sources(placed: SearchGraph, count: int) -> list[int]:
    """Draw sources from the component with the most edges, in the caller's ids."""
    drawn = draw_from_largest_component(placed)
    return [int(placed.relabelling.old_of_new[v]) for v in np.resize(drawn, count)]


def measure_programs(
    graphs: Iterable[StudyGraph], info: DeviceInfo | None, threads: int, rounds: int = ROUNDS
) -> pd.DataFrame:
    """Measure iterations of pushes and pulls.

    Returns
    -------
    DataFrame
        A row for each graph, kind of message, place, direction and iteration. Columns: `iterations`
        (always 1), vertices, senders, edges, changes, misses (scheduling/speed_model.py),
        seconds.
    """
    rows: list[dict[str, Any]] = []
    for graph in graphs:
        placed = build_search_graph(weighted(graph.make()))
        (source,) = drawn_sources(placed, 1)
        with ProgramRuns(placed, threads, info) as runs:
            runs.clocked = True
            for kind in MEASURED:
                for place in runs.places:
                    what = {"family": graph.family, "kind": kind, "place": place}
                    rows += [{**what, **row} for row in _rows(runs, kind, place, source, rounds)]
    return pd.DataFrame(rows)


def _rows(
    runs: ProgramRuns, kind: str, place: DeviceKind, source: int, rounds: int
) -> Iterator[dict[str, Any]]:
    pushed, pulled = (
        _median_traces(runs, kind, RunOptions(place=place, direction=direction), source, rounds)
        for direction in DIRECTIONS
    )
    stored, vertices = runs.graph.graph.num_stored_edges, float(runs.graph.num_searched)
    changes = [*(trace.vertices for trace in pushed[1:]), 0]
    for push, pull, changed in zip(pushed, pulled, changes, strict=True):
        share = min(push.edges_scanned / max(stored, 1), 1.0)
        for direction, trace in zip(DIRECTIONS, (push, pull), strict=True):
            yield {
                "direction": direction,
                "iterations": 1.0,
                "vertices": vertices,
                "senders": float(push.vertices),
                "edges": float(trace.edges_scanned),
                "changes": float(changed),
                "misses": trace.edges_scanned * share * (1.0 - share),
                "seconds": trace.seconds,
            }


def run_measured(runs: ProgramRuns, kind: str, options: RunOptions, source: int) -> ProgramResult:
    return runs.run(MEASURED[kind](), {"source": source} if kind != "unweighted" else {}, options)


def _median_traces(
    runs: ProgramRuns, kind: str, options: RunOptions, source: int, rounds: int
) -> list[IterationTrace]:
    """Return the traces with the median seconds of several runs, after an untimed one."""
    found = [run_measured(runs, kind, options, source).traces for _ in range(1 + rounds)][1:]
    seconds = np.median([[trace.seconds for trace in run] for run in found], axis=0)
    return [
        trace._replace(seconds=float(value)) for trace, value in zip(found[0], seconds, strict=True)
    ]


def fit_programs(samples: pd.DataFrame) -> CostTable:
    """Fit the costs of each place and kind of message to the samples of `measure_programs`.

    A constant per iteration is also fitted, but is not part of the costs.
    """
    table: dict[Any, dict[str, ProgramCosts]] = {}
    long = samples[samples["seconds"] > _LEAST_SECONDS]
    for (place, kind), those in long.groupby(["place", "kind"]):
        found = {}
        for direction, columns in _COLUMNS.items():
            of_direction = those[those["direction"] == direction]
            fitted = fit_linear(of_direction, ("iterations", *columns)).coefficients[1:]
            found |= dict(zip(columns.values(), fitted, strict=True))
        table.setdefault(place, {})[kind] = ProgramCosts(**found)
    return table


def requests(graph: SearchGraph) -> Iterator[Request[Any]]:
    (source,) = drawn_sources(graph, 1)
    for row in rows().values():
        needed = {name for name, one in row.parameters.items() if one.default is one.empty}
        if needed <= {"source"}:
            request = row.ask(graph.num_vertices, **dict.fromkeys(needed, source))
            if not request.kind.needs_engine:
                yield request


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
    best_seconds (means of `RUNS_OF_AN_ENGINE` runs from the first, and of as many on the better
    place, both with opening), regret, first_regret (of the first run's place, without opening),
    opening (seconds) and schedule (all places).
    """
    for graph in graphs:
        placed, levels = _placed(graph, threads)
        for request in requests(placed):
            with request.kind(placed, threads, info) as runs:
                runs.levels, runs.expected_runs = levels, RUNS_OF_AN_ENGINE
                places: list[DeviceKind] = []
                for _ in range(RUNS_OF_AN_ENGINE):
                    runs.run(*request.query)
                    places.append("cpu" if runs.choice is None else runs.choice.option)
                seconds = {
                    place: median(_seconds(runs, request, place, rounds)) for place in runs.places
                }
            opening = _opening_seconds(request, placed, threads, info)
            best = min(_mean([place] * len(places), seconds, opening) for place in seconds)
            mean = _mean(places, seconds, opening)
            yield {
                "family": graph.family,
                "graph": graph.name,
                "program": request.kind.what,
                "place": places[-1],
                "seconds": mean,
                "best_seconds": best,
                "regret": mean / best - 1.0,
                "first_regret": seconds[places[0]] / min(seconds.values()) - 1.0,
                "opening": opening,
                "schedule": schedule_text(places),
            }


def _opening_seconds(
    request: Request[Any], graph: SearchGraph, threads: int, info: DeviceInfo | None
) -> float:
    """Return the seconds of opening the device once more, with kernels that are compiled."""
    with request.kind(graph, threads, info) as runs:
        began = time.perf_counter()
        is_open = runs.device is not None
        return time.perf_counter() - began if is_open else 0.0


def _mean(
    places: Sequence[DeviceKind], seconds: Mapping[DeviceKind, float], opening: float
) -> float:
    """Return the mean seconds of runs on these places, with the opening of a device."""
    total = sum(seconds[place] for place in places) + opening * ("device" in places)
    return total / len(places)
