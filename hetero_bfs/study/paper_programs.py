"""Programs, graphs, timings and tables that the studies of GPregel, GraphMat and WolfPath share."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.generators.families import generated
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.programs.options import RunOptions
from hetero_bfs.programs.program import Program, minimum, plus
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.study import figures, style
from hetero_bfs.study.page import Section, claims_section
from hetero_bfs.study.searches import Row, StudyOptions, quartile_names, quartile_row
from hetero_bfs.support.messages import announce
from hetero_bfs.training.measured_runs import Distances, weighted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAR = 2147483647
FloatArray = npt.NDArray[np.float64]


class Levels(Program):
    state: ClassVar = {"level": np.int32}
    combine = minimum

    def initial(self, vertex: Any, source: Any) -> Any:
        return 0 if vertex == source else FAR

    def message(self, state: Any) -> Any:
        return state.level + 1

    def apply(self, state: Any, combined: Any) -> Any:
        return min(state.level, combined)


class Ranks(Program):
    state: ClassVar = {"rank": np.float32}
    combine = plus
    all_active = True

    def initial(self, num_vertices: Any) -> Any:
        return np.float32(1 / num_vertices)

    def message(self, state: Any, degree: Any) -> Any:
        return state.rank / np.float32(max(degree, 1))

    def apply(self, combined: Any, num_vertices: Any) -> Any:
        return np.float32(0.15 / num_vertices) + np.float32(0.85) * combined


PROGRAMS: dict[str, Program] = {"BFS": Levels(), "SSSP": Distances(), "PageRank": Ranks()}
_ITERATIONS = {"PageRank": 20}

FAMILIES = "rmat", "uniform", "bipartite", "grid"
"""The families of GPregel's Table I, by their names in `hetero-bfs generate`; grid: RoadNet-CA."""


def lines_of(name: str) -> int:
    """Return the lines of a program's class, without docstrings and empty ones."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(type(PROGRAMS[name]))))
    inner = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef | ast.FunctionDef)]
    docs = [one.body[0] for one in inner if ast.get_docstring(one) is not None]
    left = {line.lineno for line in ast.walk(tree) if isinstance(line, ast.stmt)}
    return len(left - {doc.lineno for doc in docs})


class WeightedSubject(NamedTuple):
    """A graph of a paper's kind, with weights, and a vertex of the highest degree."""

    name: str
    graph: CSRGraph
    source: int
    runs: ProgramRuns

    @property
    def places(self) -> tuple[DeviceKind, ...]:
        return ("cpu", "device") if self.runs.device else ("cpu",)

    def run(self, name: str, **options: Any) -> ProgramResult:
        limit = _ITERATIONS.get(name)
        given = {} if limit else {"source": self.source}
        return self.runs.run(PROGRAMS[name], given, RunOptions(limit, **options))


def subjects(options: StudyOptions, info: DeviceInfo | None) -> Iterator[WeightedSubject]:
    scale, threads = max(options.scales), options.threads
    own: dict[str, dict[str, Any]] = {
        "grid": {"rows": 1 << scale // 2}, "bipartite": {"scale": scale - 1, "degree": 8}
    }  # fmt: skip
    for family in FAMILIES:
        announce(f"{family}, scale {scale}")
        edges = weighted(generated(family, **own.get(family, {"scale": scale})))
        graph = CSRGraph.from_edge_source(edges)
        with ProgramRuns(build_search_graph(graph), threads, info) as runs:
            yield WeightedSubject(family, graph, int(np.argmax(graph.degree())), runs)


def seconds_of(rounds: int, contestants: list[Callable[[], ProgramResult]]) -> FloatArray:
    """Return seconds, a row for each contestant, run alternately after a run that compiles."""
    times = [[one().seconds for one in contestants] for _ in range(rounds + 1)]
    return np.array(times[1:]).T


def ratio_row(name: str, over: FloatArray, under: FloatArray | None = None) -> Row:
    """Return the ratio of the medians of seconds, and quartiles of the ratios of the rounds."""
    if under is None:
        return dict.fromkeys((name, *quartile_names(name)))
    return {name: np.median(over) / np.median(under), **quartile_row(name, over / under)}


def speed_rows(subject: WeightedSubject, options: StudyOptions) -> list[Row]:
    rows = []
    for name in PROGRAMS:
        runs: list[Callable[[], ProgramResult]] = [
            partial(subject.run, name, place=place) for place in subject.places
        ]
        cpu, *device = seconds_of(options.rounds, runs)
        row = {"graph": subject.name, "program": name, "cpu_seconds": np.median(cpu)}
        row["device_seconds"] = np.median(device[0]) if device else None
        rows.append(row | ratio_row("device_over_cpu", cpu, *device))
    return rows


# Tables and figures.


def draw_ratios(table: pd.DataFrame, column: str, label: str) -> Figure | None:
    found = figures.cells(table.dropna(subset=[column]), column, "program")
    ends = figures.spread(table, column, "program")
    return None if found.empty else style.bars(style.Cells("", label, found, True, ends))


def speed_section(figure: str) -> Section:
    return Section(
        "speed",
        f"Speed of the device over the CPU ({figure})",
        "Seconds of the CPU over the device's, for the same program. PageRank has 20 "
        "iterations. Above 1 the device is faster.",
        (
            "graph",
            "program",
            "cpu_seconds",
            "device_seconds",
            "device_over_cpu",
            *quartile_names("device_over_cpu"),
        ),
        draw=partial(
            draw_ratios, column="device_over_cpu", label="CPU seconds over device seconds"
        ),
    )


CLAIMS = claims_section(
    "This is another machine, with graphs of the same kinds: they do not confirm or refute the "
    "paper's."
)
