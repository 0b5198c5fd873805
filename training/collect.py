"""Collect samples: every strategy on every level of generated graphs, from the same state.

A sample is one row of a CSV file: the graph, the level's features, what was measured and its
seconds (measure.py). Rows are written graph by graph, so an interrupted collection loses at most
one graph.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hetero_bfs.build import SearchGraph, build_search_graph
from hetero_bfs.engine import Engine
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.files import replacing
from hetero_bfs.kronecker import RMATEdges
from hetero_bfs.trace import LevelFeatures
from hetero_bfs.training.measure import measure_search

ROOTS_PER_GRAPH = 4

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
