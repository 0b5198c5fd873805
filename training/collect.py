"""Collect samples: every strategy on every level of generated graphs, from the same state.

A sample is one row of a CSV file: the graph, the level's features, what was measured and its
seconds. `measured` names a strategy, or `start_cpu`, `start_device` (beginning a search there),
`to_cpu`, `to_device` (moving it to the other device, and what merging the parents costs later),
`convert_cpu`, `convert_device` (bitmap to queue). Rows are written graph by graph, so
an interrupted collection loses at most one graph.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from hetero_bfs.bfs import Frontier
from hetero_bfs.build import SearchGraph, build_search_graph
from hetero_bfs.devices.cpu import CPUSearcher
from hetero_bfs.engine import Engine
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.files import replacing
from hetero_bfs.kronecker import RMATEdges
from hetero_bfs.strategy import STRATEGIES, Strategy
from hetero_bfs.trace import LevelFeatures

REPEATS = 3
"""Times a level is repeated; the least counts, so that a busy machine disturbs the model less."""

ROOTS_PER_GRAPH = 4
_PAUSE_SECONDS = 0.003

FEATURE_FIELDS = tuple(LevelFeatures.__dataclass_fields__)
COLUMNS = (
    "graph",
    "scale",
    "a",
    "b",
    "c",
    "d",
    "root",
    *FEATURE_FIELDS,
    "expected_examined",
    "expected_found",
    "measured",
    "seconds",
    "examined",
)


@dataclass(frozen=True)
class Plan:
    """Which graphs to measure: `per_scale` random (A, B, C, D) for each scale."""

    scales: tuple[int, ...]
    per_scale: int

    def graphs(self) -> list[RMATEdges]:
        """List the graphs; the same plan gives the same graphs everywhere.

        A, B, C, D come from a Dirichlet distribution around Graph500's own shares.
        """
        random = np.random.default_rng(2018)
        graphs = []
        for scale in self.scales:
            for _ in range(self.per_scale):
                a, b, c, d = (float(x) for x in random.dirichlet((11.4, 3.8, 3.8, 1.0)))
                seed = int(random.integers(2**31))
                graphs.append(RMATEdges(scale, a, b, c, d, seed=seed))
        return graphs


PAPER_PLAN = Plan((16, 17, 18, 19), 20)
"""The training set of Zhang et al. 2018."""

QUICK_PLAN = Plan((14, 16, 18), 3)


def collect(
    plan: Plan, path: Path, open_engine: Callable[[SearchGraph], Engine], done: int
) -> Iterator[int]:
    """Measure the plan's graphs from number `done` on, appending to `path`; yields after each."""
    for number, edges in enumerate(plan.graphs()):
        if number < done:
            continue
        graph = build_search_graph(edges.materialise())
        with open_engine(graph) as engine:
            rows = list(_measure_graph(engine, number, edges))
        del engine, graph  # before the next one is made
        _append(path, rows)
        yield number


def finished_graphs(path: Path) -> int:
    """Count the graphs in a sample file, which has only whole ones (`_append`).

    Raises
    ------
    HeteroBFSError
        The file has other columns than this program writes, or is damaged.
    """
    if not path.exists() or path.stat().st_size == 0:
        return 0
    with open(path, newline="") as stream:
        rows = list(csv.reader(stream))
    if tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
        raise HeteroBFSError(
            f"{path} is damaged, or has other columns than this version writes; "
            "move it away to train from the start"
        )
    return max((int(row[0]) for row in rows[1:]), default=-1) + 1


def _append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add one graph's rows by replacing the file, so that it has them whole or not at all."""
    before = path.read_text() if path.exists() else ""
    with replacing(path, newline="") as stream:
        stream.write(before)
        writer = csv.DictWriter(stream, COLUMNS)
        if not before:
            writer.writeheader()
        writer.writerows(rows)


def _measure_graph(engine: Engine, number: int, edges: RMATEdges) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng(number)
    count = min(ROOTS_PER_GRAPH, engine.graph.num_searched)
    roots = random.choice(engine.graph.num_searched, count, replace=False)
    parameters = {k: v for k, v in asdict(edges).items() if k in ("scale", "a", "b", "c", "d")}
    for root in roots:
        for features, measured, seconds, examined in measure_search(engine, int(root)):
            yield {
                "graph": number,
                **parameters,
                "root": int(root),
                **asdict(features),
                "expected_examined": features.expected_examined,
                "expected_found": features.expected_found,
                "measured": measured,
                "seconds": seconds,
                "examined": "" if examined is None else examined,
            }


def measure_search(
    engine: Engine, root: int
) -> Iterator[tuple[LevelFeatures, str, float, int | None]]:
    """Walk through one search on the host and measure everything at every level.

    `root` is a new id. Yields (features, what was measured, seconds, neighbours examined);
    see the head of this file for the names.
    """
    graph, host = engine.graph, engine.platform.host
    num_edges = graph.graph.num_stored_edges
    frontier = Frontier(int(graph.degree[root]), graph.num_searched, num_edges)
    if not engine.platform.lists_host_finds:
        frontier.keep_no_list()
    starts = _measure_starts(engine, root, frontier)
    while not frontier.is_over:
        features = LevelFeatures.from_state(frontier.state, graph.num_searched, num_edges)
        for name, seconds in starts.items() if frontier.level == 0 else ():
            yield features, name, seconds, None
        measurement = _LevelMeasurement(engine, frontier)
        for strategy in engine.candidates:
            seconds, examined = measurement.strategy(strategy)
            yield features, strategy.name, seconds, examined
        for name, seconds, found in measurement.moves():
            moved = replace(features, frontier_vertices=found)
            yield moved, name, seconds, None
        measurement.restore()
        host.run(STRATEGIES["TC"], frontier)


def _measure_starts(engine: Engine, root: int, frontier: Frontier) -> dict[str, float]:
    """Time beginning a search on each device; leaves it begun on the host.

    After a pause, as in real use: sleeping threads must be woken, and that costs more than the
    work. The median counts, since the least is that of a wake-up by luck.
    """
    times: dict[str, list[float]] = {}
    accelerator = engine.accelerator
    for _ in range(REPEATS):
        if accelerator is not None:
            accelerator.begin(root, frontier.copy())  # hands it the policy, which is not timed
            time.sleep(_PAUSE_SECONDS)
            started = time.perf_counter()
            accelerator.begin(root, frontier.copy())
            times.setdefault("start_device", []).append(time.perf_counter() - started)
            accelerator.release()
        time.sleep(_PAUSE_SECONDS)
        started = time.perf_counter()
        engine.platform.host.begin(root, frontier)
        times.setdefault("start_cpu", []).append(time.perf_counter() - started)
    return {name: median(seconds) for name, seconds in times.items()}


class _LevelMeasurement:
    """Repeats work on one level, from the same state each time."""

    def __init__(self, engine: Engine, frontier: Frontier) -> None:
        self.engine = engine
        self.frontier = frontier
        self.host: CPUSearcher = engine.platform.host
        self.snapshot = self.host.visited[frontier.visited_index].copy()
        self.times: dict[str, list[float]] = {}
        self.found: dict[str, int] = {}

    def restore(self) -> None:
        """Bring the host back to the level's start."""
        self.host.visited[self.frontier.visited_index][:] = self.snapshot

    def strategy(self, strategy: Strategy) -> tuple[float, int | None]:
        """Return the least seconds of one strategy, and what bottom-up looked at if it counts."""
        times = []
        examined = None
        on_device = strategy.device_kind == "device"
        for _ in range(REPEATS):
            self.restore()
            state = self.frontier.copy()
            if on_device:
                self._enter_device(state)
            searcher = self.engine.platform.searcher(strategy.device_kind)
            found, seconds = searcher.run(strategy, state)
            times.append(seconds)
            examined = found.examined
            if strategy.variant == "plain" and strategy.direction == "bottom-up":
                self._convert(state, strategy.device_kind, found.vertices)
            if on_device:
                self._leave_device(state)
        return min(times), examined

    def moves(self) -> Iterator[tuple[str, float, int]]:
        """Yield (name, least seconds, frontier vertices) of conversions and crossings."""
        for name, times in self.times.items():
            yield name, min(times), self.found[name]

    def _convert(self, state: Frontier, kind: str, found: int) -> None:
        if found:
            state.queue_index ^= 1  # keep the level's own queue
            seconds = self.engine.platform.searcher(kind).to_queue(state)  # type: ignore[arg-type]
            self._note(f"convert_{kind}", seconds, found)

    def _enter_device(self, state: Frontier) -> None:
        accelerator = self.engine.accelerator
        assert accelerator is not None
        accelerator.launch_nothing(state)  # hands it the policy, which is not timed
        started = time.perf_counter()
        if not accelerator.unified:
            accelerator.clear(state)
            queue = self.host.queue[state.queue_index][: state.vertices]
            accelerator.add_parents(queue, self.host.parent[queue])
        accelerator.receive(state, with_queue=True)
        accelerator.launch_nothing(state)
        self._note("to_device", time.perf_counter() - started, state.vertices)

    def _leave_device(self, state: Frontier) -> None:
        """Time the way back from this level's start, then leave the host as it was."""
        accelerator = self.engine.accelerator
        assert accelerator is not None
        if state.form == "bitmap" or state.vertices == 0:
            accelerator.release()
            return
        if accelerator.unified:
            started = time.perf_counter()
            accelerator.send(state, with_queue=True)
            self._note("to_cpu", time.perf_counter() - started, state.vertices)
            return
        started = time.perf_counter()
        accelerator.send(state, with_queue=True)
        self._note("to_cpu", time.perf_counter() - started, state.vertices)

    def _note(self, name: str, seconds: float, found: int) -> None:
        self.times.setdefault(name, []).append(seconds)
        self.found[name] = found
