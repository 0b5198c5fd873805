"""How long a training will take on this machine: an estimate from two small graphs.

What it takes to build and measure a graph of 2**scale vertices grows about as `fixed + each *
2**scale`; both come from measuring one graph of the plan's smallest scale and one four times
smaller, each twice. Caches and other programs make that wrong by a factor of two at times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.graph.generators.families import StudyGraph, named_graph
from hetero_bfs.graph.search_graph import (
    SearchGraph,
    build_search_graph,
)
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.training.collect import Plan, measure_graph
from hetero_bfs.training.contest import compared_graphs
from hetero_bfs.training.regret import REPLAY_SECONDS
from hetero_bfs.training.tune import TuningPlan


@dataclass(frozen=True)
class GraphSeconds:
    """Seconds to build and measure a graph of 2**scale vertices: fixed + each * 2**scale."""

    fixed: float
    each: float

    def total(self, scales: Iterable[int | None]) -> float:
        """Add up the seconds for graphs of these scales."""
        return sum(self.fixed + self.each * 2.0**scale for scale in scales if scale is not None)


def probe(plan: Plan, open_engine: Callable[[SearchGraph], Engine]) -> GraphSeconds:
    """Measure two small graphs by turns, after one that compiles what is not compiled yet."""
    large = plan.scales[0]
    small = max(large - 2, 1)
    _measure(small, open_engine)
    turns = [[_measure(scale, open_engine) for scale in (small, large)] for _ in range(2)]
    first, second = (min(seconds) for seconds in zip(*turns, strict=True))
    each = max(second - first, 0.0) / (2.0**large - 2.0**small)
    return GraphSeconds(max(first - each * 2.0**small, 0.0), each)


def collecting_seconds(
    plan: Plan, done: int, tuning: TuningPlan | None, graph: GraphSeconds
) -> float:
    """Add up tuning, if there is any, and measuring the graphs from number `done` on."""
    seconds = graph.total(g.scale for g in plan.graphs()[done:])
    if tuning is not None:
        settings = 1 + sum(len(values) for _, values in tuning.values)
        scales = (*tuning.scales, *tuning.small_scales)
        seconds += (1 + settings / 2) * graph.total(scales)  # a setting is half a graph
    return seconds


def comparing_seconds(
    info: DeviceInfo | None, quick: bool, apart: list[StudyGraph], roots: int, graph: GraphSeconds
) -> float:
    """Add up comparing selectors at whole searches, and measuring their regret."""
    compared = [g for graphs in compared_graphs(info, quick).values() for g in graphs]
    replays = 2 * REPLAY_SECONDS * roots * len(apart)
    return graph.total(g.scale for g in (*compared, *apart)) + replays


def in_words(seconds: float) -> str:
    """Say how long that is, no more precisely than it is known."""
    if seconds < 90:
        return f"{max(10 * round(seconds / 10), 10)} seconds"
    return f"{round(seconds / 60)} minutes"


def _measure(scale: int, open_engine: Callable[[SearchGraph], Engine]) -> float:
    graph = named_graph(f"kronecker{scale}")
    started = time.perf_counter()
    with open_engine(build_search_graph(graph.make())) as engine:
        for _ in measure_graph(engine, 0, graph):
            pass
    return time.perf_counter() - started
