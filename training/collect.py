"""Collects samples: every strategy on every level of generated graphs, from the same state.

A sample is one row of a CSV file: the graph, the level's features, the name of the measurement and
its seconds (measure.py). Rows are written graph by graph, so an interrupted collection loses at
most one graph.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.edge_list import EdgeList
from hetero_bfs.graph.generators.families import (
    TAILS,
    StudyGraph,
    comb,
    grid,
    preferential,
    roads,
    small_world,
    uniform,
    with_tails,
)
from hetero_bfs.graph.generators.kronecker import RMATEdges
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.scheduling import schema
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.support.files import replacing
from hetero_bfs.training.measure import (
    REPEATS,
    WHOLE_SEARCHES,
    levels_to_measure,
    measure_search,
)

SOURCES_PER_GRAPH = 4
MOST_LEVELS = 24
"""Most levels of a search that become samples; a high-diameter graph has many similar levels."""

_MOST_CHAINS = 4096
_SHORTEST_CHAIN, _LONGEST_CHAIN = 10, 10_000
_TAILS_SEED = 9  # gives the quick plan a comb, Kronecker cores and a second core


FEATURE_FIELDS = tuple(LevelFeatures.__dataclass_fields__)
EXPECTED = schema.COLUMNS[schema.COLUMNS.index("expected_examined") :]
COLUMNS = (
    "graph",
    "family",
    "name",
    "root",
    *FEATURE_FIELDS,
    *EXPECTED,
    "measured",
    "seconds",
    "examined",
)


@dataclass(frozen=True)
class Plan:
    """The graphs to measure, for each scale: counts of R-MAT graphs and of each other family."""

    scales: tuple[int, ...]
    per_scale: int
    others_per_scale: int
    program_scales: tuple[int, ...] = ()
    """Scales of the graphs on which vertex programs are measured, one of each family."""

    def graphs(self) -> list[StudyGraph]:
        """List the graphs; the same plan gives the same graphs everywhere.

        A, B, C, D of R-MAT come from a Dirichlet distribution around Graph500's own shares.
        """
        random = np.random.default_rng(2018)
        graphs = []
        for scale in self.scales:
            for _ in range(self.per_scale):
                graphs.append(_rmat(scale, random))
            for _ in range(self.others_per_scale):
                graphs += _others(scale, random)
        return graphs


def _kronecker(scale: int, seed: int) -> EdgeList:
    return RMATEdges(scale, seed=seed).materialise()


_CORES: dict[str, Callable[[int, int], EdgeList]] = {
    "Kronecker": _kronecker,
    "uniform": uniform,
    "small-world": small_world,
}
"""The makers of cores, of a scale and from a seed."""


def _rmat(scale: int, random: np.random.Generator) -> StudyGraph:
    a, b, c, d = (float(x) for x in random.dirichlet((11.4, 3.8, 3.8, 1.0)))
    edges = RMATEdges(scale, a, b, c, d, seed=int(random.integers(2**31)))
    name = f"{scale}, A {a:.3f} B {b:.3f} C {c:.3f} D {d:.3f}"
    return StudyGraph("kronecker", name, edges.materialise, scale)


def _others(scale: int, random: np.random.Generator) -> Iterator[StudyGraph]:
    """Draw one graph of each other family, with other parameters than in families.py."""
    seed = int(random.integers(2**31))
    degree = int(random.integers(3, 25))
    name = f"{scale}, {degree} edges a vertex"
    yield StudyGraph("uniform", name, partial(uniform, scale, seed, degree), scale)
    joins = int(random.integers(3, 17))
    name = f"{scale}, {joins} edges a vertex"
    yield StudyGraph("preferential", name, partial(preferential, scale, seed, joins), scale)
    knows, rewired = int(random.integers(3, 17)), float(10 ** random.uniform(-2.5, -0.5))
    name = f"{scale}, {knows} neighbours, {rewired:.4f} rewired"
    yield StudyGraph("small-world", name, partial(small_world, scale, seed, knows, rewired), scale)
    rows = 1 << int(random.integers(scale // 4, scale // 2 + 1))
    make = partial(grid, rows, (1 << scale) // rows)
    yield StudyGraph("grid", f"{scale}, {rows} rows", make, scale)
    share = float(random.uniform(0.6, 0.9))
    name = f"{scale}, {share:.2f} of a grid"
    rows = 1 << scale // 2
    make = partial(roads, rows, seed, share, (1 << scale) // rows)
    yield StudyGraph("roads", name, make, scale)
    yield _core_and_tails(scale, seed)


def _core_and_tails(scale: int, seed: int) -> StudyGraph:
    """Draw a core and chains of at most as many vertices, or a comb of at most 2**scale vertices.

    A third of the cores have a second core at the ends of the chains, a 4th to a 16th as large. Its
    draws are its own, so that the other families' do not depend on them.
    """
    random, size = np.random.default_rng(seed + _TAILS_SEED), 1 << scale
    chains = _log_uniform(random, 1, min(_MOST_CHAINS, size // _SHORTEST_CHAIN))
    length = _log_uniform(random, _SHORTEST_CHAIN, min(_LONGEST_CHAIN, size // chains))
    core = str(random.choice(["Kronecker", *_CORES, "comb"]))
    if core == "comb":
        spine = size // (length + 1)
        return StudyGraph(TAILS, f"comb {spine}x{length}", partial(comb, spine, length), scale)
    name = f"{core} {scale}, {chains} chains of {length}"
    first, second = StudyGraph(core, name, partial(_CORES[core], scale, seed), scale), None
    if random.random() < 1 / 3:
        small = scale - int(random.integers(2, 5))
        name += f", second core {small}"
        second = StudyGraph(core, name, partial(_CORES[core], small, seed), small)
    return with_tails(name, first, chains, length, second, seed)


def _log_uniform(random: np.random.Generator, least: int, most: int) -> int:
    return int(least * (most / least) ** random.random())


PAPER_PLAN = Plan((16, 17, 18, 19), 20, 3, (13, 15, 17))
"""The training set of Zhang et al. 2018 (R-MAT), and the other families."""

QUICK_PLAN = Plan((14, 16, 18), 3, 1, (13, 15))


def collect(
    number: int, graph: StudyGraph, path: Path, open_engine: Callable[[SearchGraph], Engine]
) -> None:
    """Measure a graph, which has this number in its plan, and append the samples to the file."""
    with open_engine(build_search_graph(graph.make())) as engine:
        rows = list(measure_graph(engine, number, graph))
    _append(path, rows)


def finished_graphs(path: Path) -> set[int]:
    """Return the numbers of the graphs in a sample file; each is complete (`_append`)."""
    if not path.exists() or path.stat().st_size == 0:
        return set()
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            rows = list(csv.reader(stream))
        if tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
            raise ValueError
        at = COLUMNS.index("seconds")
        if not all(0 <= float(row[at]) < math.inf for row in rows[1:]):
            raise ValueError
        return {int(row[0]) for row in rows[1:]}
    except (ValueError, csv.Error) as error:
        raise HeteroBFSError(
            f"{path} is damaged, or has other columns than this version writes; "
            "move it away to train from the start"
        ) from error


def _append(path: Path, rows: list[dict[str, Any]]) -> None:
    """Replace the file, so that it has all rows of the graph or none."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    with replacing(path, newline="", encoding="utf-8") as stream:
        stream.write(before)
        writer = csv.DictWriter(stream, COLUMNS)
        if not before:
            writer.writeheader()
        writer.writerows(rows)


def measure_graph(
    engine: Engine,
    number: int,
    graph: StudyGraph,
    sources: int = SOURCES_PER_GRAPH,
    most_levels: int = MOST_LEVELS,
    repeats: int = REPEATS,
    whole_searches: int = WHOLE_SEARCHES,
) -> Iterator[dict[str, Any]]:
    """Yield the samples of a graph; `measure_search` explains the last two numbers."""
    random = np.random.default_rng(number)
    count = min(sources, engine.graph.num_searched)
    for source in random.choice(engine.graph.num_searched, count, replace=False).tolist():
        _, wanted = levels_to_measure(engine, source, most_levels)
        levels = frozenset(wanted)
        walk = measure_search(engine, source, repeats, levels=levels, whole_searches=whole_searches)
        for features, measured, seconds, edges_scanned in walk:
            yield {
                "graph": number,
                "family": graph.family,
                "name": graph.name,
                "root": source,
                **asdict(features),
                **{name: features.columns[name] for name in EXPECTED},
                "measured": measured,
                "seconds": seconds,
                "examined": "" if edges_scanned is None else edges_scanned,
            }
