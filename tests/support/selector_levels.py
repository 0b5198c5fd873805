"""Levels, models and devices for tests of selectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.scheduling import policy, schema
from hetero_bfs.scheduling.model_selectors import ModelSelector, model_selector
from hetero_bfs.scheduling.schema import LARGE, SMALL
from hetero_bfs.scheduling.selectors import Choice, Selector
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES, available
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.training.oracle import SearchCosts, best_schedule

GPU = DeviceInfo(
    index=0,
    name="A Graphics Card (TM)",
    platform="Vendor",
    type="GPU",
    compute_units=8,
    memory_bytes=2**30,
    max_alloc_bytes=2**28,
    local_memory_bytes=2**15,
    unified_memory=False,
    has_double=True,
    driver="1",
    version="OpenCL 1.2",
    pci=None,
    problem=None,
)


START = LevelFeatures(
    level=0,
    frontier_vertices=1,
    frontier_edges=10,
    unvisited_vertices=999,
    unvisited_edges=19_990,
    num_vertices=1000,
    num_edges=20_000,
    growth=2.0,
    device_kind=None,
    representation="queue",
)


ALL, HOST_ONLY = available(True), available(False)


def choose(selector: Selector, features: LevelFeatures) -> Choice:
    """What a selector chooses for a level of these features."""
    count = len(selector.candidates)
    record = np.full(schema.record_width(count), np.nan)
    features.write_state(record)
    predicted, total = np.split(record[schema.PREDICTED :], 2)
    n, m = features.num_vertices, features.num_edges
    record[schema.STRATEGY] = policy.choose(selector.policy, n, m, record, predicted, total)
    return selector.read_choice(features, record)


def is_dense_push(features: LevelFeatures) -> bool:
    return features.columns["wide_vertices"] > 0


def names(selector, levels) -> list[str]:
    """Choose level by level; each strategy leaves the frontier in its own representation."""
    chosen = []
    representation = "queue"
    for level in levels:
        strategy = choose(selector, replace(level, representation=representation)).strategy
        representation = "queue" if strategy.direction == "top-down" else "bitmap"
        chosen.append(strategy.name)
    return chosen


LEVELS = [
    (1, 10, 19_990),  # 150 <= 19,990: down
    (30, 1332, 19_980),  # 19,980 <= 19,980: down still
    (30, 1333, 19_980),  # 19,995 > 19,980: up
    (55, 900, 19_000),  # 990 < 1000: down, the vertices decide now
    (500, 9000, 9000),  # up
    (56, 100, 90_000),  # 1008 >= 1000: up still
    (55, 100, 90_000),  # 990 < 1000: down
    (1, 1, 0),  # 15 > 0, but the frontier shrinks: down
    (1, 1, 0),  # it does not grow: down
    (1, 2, 0),  # 30 > 0: up
]


DIRECTIONS = "DDUDUUDDDU"


def beamer_levels():
    before = [5, *(edges for _, edges, _ in LEVELS)]
    return [
        replace(
            START,
            level=i,
            frontier_vertices=v,
            frontier_edges=e,
            unvisited_edges=u,
            growth=e / before[i],
        )
        for i, (v, e, u) in enumerate(LEVELS)
    ]


def model(**changes) -> SpeedModel:
    """A model of constants, all zero but what is given: TC=..., start_cpu=..., to_device=..."""
    zero = Linear(("constant",), (0.0,))
    parts = {"learned": dict.fromkeys(STRATEGIES, zero)}
    for part, prefix in (("start", "start"), ("switch", "to"), ("convert", "on")):
        parts[part] = {
            kind: Linear(("constant",), (changes.pop(f"{prefix}_{kind}", 0.0),))
            for kind in ("cpu", "device")
        }
    parts["learned"] |= {name: Linear(("constant",), (s,)) for name, s in changes.items()}
    return SpeedModel("m", about={}, **parts)


def selector_of(made: SpeedModel, candidates=ALL, name="level") -> ModelSelector:
    """Return a selector by the learned formulas; named "level" it is without caution."""
    small, large = ([made.predictor(s.name, size) for s in candidates] for size in (SMALL, LARGE))
    single = name == "level"
    selector = ModelSelector("learned" if single else name, made, candidates, (small, large))
    if single:
        selector.policy = selector.policy._replace(caution=1.0)
    return selector


def walk(selector: Selector, states: list[LevelFeatures]) -> list[str]:
    """What the selector chooses, level by level, for a search of these states."""
    kind, representation, chosen = None, "queue", []
    for features in states:
        strategy = choose(
            selector, replace(features, device_kind=kind, representation=representation)
        ).strategy
        dense_push = strategy.name == "TC" and is_dense_push(features)
        representation = "bitmap" if dense_push or strategy.direction == "bottom-up" else "queue"
        kind = strategy.device_kind
        chosen.append(strategy.name)
    return chosen


def reference_of(states: list[LevelFeatures]) -> np.ndarray:
    reference = np.zeros((len(states), schema.STATE_SIZE))
    for row, features in zip(reference, states, strict=True):
        features.write_state(row)
    return reference[:, : schema.RECORD_STATE]


def costs_of(made: SpeedModel, states: list[LevelFeatures]) -> SearchCosts:
    """What the model predicts for a search, as if it had been measured."""

    def migrations(parts) -> np.ndarray:
        return np.array([[parts[kind].seconds(f) for kind in ("cpu", "device")] for f in states])

    return SearchCosts(
        tuple(ALL),
        np.array([[made.learned_seconds(f, s) for s in ALL] for f in states]),
        migrations(made.start)[0],
        migrations(made.switch),
        migrations(made.convert),
        np.array([False] + [is_dense_push(f) for f in states[:-1]]),
        np.arange(len(states)),
    )


SPEEDS = {"TC": 4.0, "TG": 5.0, "BC": 6.0, "BG": 7.0, "BGC": 8.0}


def states_of(levels, num_vertices: int, num_edges: int) -> list[LevelFeatures]:
    """Return the states of a search whose frontiers have these vertices and edges."""
    found, left, before = [], [num_vertices, num_edges], num_edges / num_vertices
    for number, (vertices, edges) in enumerate(levels):
        left = [left[0] - vertices, left[1] - edges]
        growth = edges / before
        found.append(
            LevelFeatures(
                number, vertices, edges, *left, num_vertices, num_edges, growth, None, "queue"
            )
        )
        before = edges
    return found


CORE = ((1, 20), (30, 9_000), (9_000, 700_000), (50_000, 800_000), (5_000, 60_000), (40, 600))
N, M = 200_000, 4_000_000


def core_and_tail_levels(tail: int) -> tuple[tuple[int, int], ...]:
    """A core, a chain of `tail` levels, a second core and another chain."""
    chain = [(8, 16)] * tail
    return (*CORE, *chain, *CORE[1:], *chain)


def linear(constant: float, **work: float) -> Linear:
    return Linear(("constant", *work), (constant, *work.values()))


def bound(made: SpeedModel, states: list[LevelFeatures], name="auto") -> ModelSelector:
    first = states[0]
    selector = model_selector(name, made, ALL)
    return selector.on_graph(first.num_vertices, first.num_edges, reference_of(states))


def with_ratio(ratio: float) -> SpeedModel:
    """The CPU does `ratio` times the work of the GPU in a second; its levels begin sooner, since it
    launches nothing. They share memory, so that a move takes as long as a launch.
    """
    per_edge = 1e-9
    work = {"TC": ("frontier_edges", 1.0), "BC": ("expected_examined", 1.0)}
    work |= {"TG": ("frontier_edges", ratio), "BG": ("expected_examined", ratio)}
    work["BGC"] = ("expected_examined", ratio)
    formulas = {
        name: linear(2e-7 if name in ("TC", "BC") else 4e-6, **{column: per_edge * times})
        for name, (column, times) in work.items()
    }
    made = model(start_cpu=1e-6, start_device=5e-6, to_cpu=5e-6, to_device=5e-6)
    return replace(made, learned=formulas)


def alone_seconds(costs: SearchCosts) -> dict[str, float]:
    """Return the seconds of the best schedule on each place alone."""
    return {
        kind: best_schedule(costs, {s.name for s in ALL if s.device_kind == kind}).seconds
        for kind in ("cpu", "device")
    }
