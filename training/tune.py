"""Finds the best tuning of a device's kernels by measurement (devices/machine.py).

It starts from another machine's tuning, or from a default. One setting after another is varied,
with the best values so far of all others. Whole searches of Kronecker graphs alternate between the
old and the new value. The product over graphs of the ratios of their median seconds decides. Small
graphs have their own settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from math import prod
from statistics import median

from hetero_bfs.devices.machine import DeviceInfo, Tuning, default_tuning
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import DeviceError, GraphError
from hetero_bfs.graph.generators.kronecker import KroneckerEdges, search_keys
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.training.measure import seconds_back_to_back

_KEYS = 16
_ROUNDS = 6
_GAIN = 0.99  # a value replaces another one if it takes less than this share of its seconds


@dataclass(frozen=True)
class TuningPlan:
    """Scales to search, of large graphs and of small ones, and the settings' values to try."""

    scales: tuple[int, ...]
    small_scales: tuple[int, ...]
    values: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def steps(self) -> int:
        return (1 + sum(len(values) for _, values in self.values)) * (1 + bool(self.small_scales))


GPU_PLAN = TuningPlan(
    (22, 24),
    (18, 20),
    (
        ("registers", (0, 48, 64, 80)),
        ("vertices_per_item", (8, 16)),
        ("edges_per_item", (2, 4)),
        ("group_size", (256, 512)),
        ("registers", (64, 80)),
    ),
)
PROCESSOR_PLAN = TuningPlan((16,), (), (("groups_per_unit", (1, 2, 4)),))


def plan_for(info: DeviceInfo) -> TuningPlan:
    return GPU_PLAN if info.type == "GPU" else PROCESSOR_PLAN


def borrowed_tuning(base: SpeedModel | None, info: DeviceInfo) -> Tuning:
    """Return the tuning of another machine's model if its device has the same maker and type.

    Otherwise it is a default.
    """
    device = {} if base is None else base.about.get("machine", {}).get("device") or {}
    alike = (device.get("platform"), device.get("type")) == (info.platform, info.type)
    if alike and base is not None and base.tuning is not None:
        return base.tuning.fitting(info)
    return default_tuning(info.type).fitting(info)


def tune(info: DeviceInfo, plan: TuningPlan, start: Tuning) -> Iterator[Tuning]:
    """Yield the best tuning so far, after each step.

    Small graphs keep the tuning that this started from until their own steps: a tuning that suits
    large graphs has made them slower.
    """
    large = replace(start, small=None)
    small = start.small or (large if plan.small_scales else None)
    for best in _descend(info, plan.scales, large, plan):
        large = best
        yield _joined(large, small)
    if small is not None and plan.small_scales:
        for best in _descend(info, plan.small_scales, small, plan):
            yield _joined(large, best)


def _joined(large: Tuning, small: Tuning | None) -> Tuning:
    return large if small in (None, large) else replace(large, small=small)


def _descend(
    info: DeviceInfo, scales: tuple[int, ...], best: Tuning, plan: TuningPlan
) -> Iterator[Tuning]:
    graphs = []
    for scale in scales:
        with suppress(GraphError):  # more than this machine's memory
            graphs.append(build_search_graph(KroneckerEdges(scale).materialise()))
    yield best
    for name, values in plan.values:
        for value in values:
            candidate = replace(best, **{name: value})
            if candidate != best:
                ratios = [_ratio(info, graph, best, candidate) for graph in graphs]
                known = [ratio for ratio in ratios if ratio is not None]
                if known and prod(known) < _GAIN ** len(known):
                    best = candidate
            yield best


def _ratio(info: DeviceInfo, graph: SearchGraph, best: Tuning, candidate: Tuning) -> float | None:
    """Return the candidate's median seconds over the best tuning's, from alternating searches.

    None if the device has no room for the graph twice. Infinite if the device cannot run the
    candidate, 0 if it cannot run the best tuning so far.
    """
    with ExitStack() as opened:
        engines = [_open(opened, info, graph, tuning) for tuning in (best, candidate)]
        first, second = engines
        if first is None or second is None:
            return None if second is first else float("inf") if second is None else 0.0
        if any(e.accelerator is None or e.streaming is not None for e in (first, second)):
            return None
        times: dict[Engine, list[float]] = {first: [], second: []}
        keys = search_keys(graph.num_vertices, graph.is_isolated, _KEYS)
        for _ in range(_ROUNDS):
            for engine, seconds in times.items():
                seconds += seconds_back_to_back(engine, keys)
        return median(times[second]) / median(times[first])


def _open(opened: ExitStack, info: DeviceInfo, graph: SearchGraph, tuning: Tuning) -> Engine | None:
    """None if the device cannot run work-groups of this tuning."""
    try:
        engine = Engine(graph, selector="alpha-beta", device=str(info.index), tuning=tuning)
    except DeviceError:
        return None
    return opened.enter_context(engine)
