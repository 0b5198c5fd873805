"""Measure how a device's kernels are best compiled and launched (hetero_bfs/tuning.py).

One setting after another is tried with all others as they were best so far. Whole searches of
Kronecker graphs decide, by the product of their median seconds at each scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median

from hetero_bfs.build import SearchGraph, build_search_graph
from hetero_bfs.devices.opencl import DeviceInfo
from hetero_bfs.engine import Engine
from hetero_bfs.errors import DeviceError, GraphError
from hetero_bfs.kronecker import KroneckerEdges, search_keys
from hetero_bfs.tuning import Tuning, default_tuning

_KEYS = 16
_ROUNDS = 3
_GAIN = 0.98  # a setting must be so much faster than the one before to replace it


@dataclass(frozen=True)
class TuningPlan:
    """Scales to search, and the values of each setting to try, in order."""

    scales: tuple[int, ...]
    values: tuple[tuple[str, tuple[int, ...]], ...]


GPU_PLAN = TuningPlan(
    (20, 22, 24),
    (
        ("registers", (48, 64, 80, 96)),
        ("vertices_per_item", (8,)),
        ("edges_per_item", (2,)),
        ("group_size", (512,)),
    ),
)
PROCESSOR_PLAN = TuningPlan((16,), (("groups_per_unit", (1, 4)),))


def plan_for(info: DeviceInfo, quick: bool) -> TuningPlan:
    """Return what to try on a device; `quick` leaves out all but the first setting."""
    plan = GPU_PLAN if info.type == "GPU" else PROCESSOR_PLAN
    return replace(plan, scales=plan.scales[:1], values=plan.values[:1]) if quick else plan


def tune(info: DeviceInfo, plan: TuningPlan) -> Iterator[Tuning]:
    """Try the plan's settings on a device; yields the best so far after each one measured."""
    graphs = []
    for scale in plan.scales:
        with suppress(GraphError):  # more than this machine's memory
            graphs.append(build_search_graph(KroneckerEdges(scale).materialise()))
    best = default_tuning(info.type)
    least = _measure(info, graphs, best)
    yield best
    for name, values in plan.values:
        for candidate in [replace(best, **{name: value}) for value in values]:
            score = _measure(info, graphs, candidate)
            if score < _GAIN * least:
                best, least = candidate, score
            yield best


def _measure(info: DeviceInfo, graphs: list[SearchGraph], tuning: Tuning) -> float:
    """Return the product of the median seconds of a search on each graph that fits; inf if it
    fails.
    """
    product = 1.0
    for graph in graphs:
        keys = search_keys(graph.num_vertices, graph.is_isolated, _KEYS)
        try:
            with Engine(
                graph, selector="alpha-beta", device=str(info.index), tuning=tuning
            ) as engine:
                if engine.accelerator is None or engine.bytes_streamed:  # too large for it
                    continue
                product *= median(engine.search(k).seconds for _ in range(_ROUNDS) for k in keys)
        except DeviceError:  # a device that cannot hold such a work-group
            return float("inf")
    return product
