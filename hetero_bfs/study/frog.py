"""The measurements of Shi et al. (2018, Frog), on this machine: `hetero-bfs study --paper frog`.

Runs are on the OpenCL device if there is one, else on the CPU. Each program counts the updates of
each vertex, for the paper's Table 6.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from hetero_bfs.algorithms.colouring.algorithm import Colourings
from hetero_bfs.algorithms.colouring.result import Colouring
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import DeviceError, GraphError, ValidationError
from hetero_bfs.graph.edge_list import EdgeList, listed
from hetero_bfs.graph.edge_source import EdgeSource
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.programs.options import ModeName, RunOptions
from hetero_bfs.programs.program import Program, minimum, plus
from hetero_bfs.programs.renumbered import PlacedGraph, by_colour
from hetero_bfs.programs.result import ProgramResult
from hetero_bfs.scheduling.strategies import DeviceKind
from hetero_bfs.study import figures, findings, style
from hetero_bfs.study.page import GRAPH_COLUMNS, Paper, Section, claim, claims_section
from hetero_bfs.study.searches import Planned, Row, StudyOptions, add_note, graphs_of
from hetero_bfs.support.messages import announce

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hetero_bfs.study.run import Study

NUM_CLASSES = 5
"""The paper's number of classes: four colours, and the mixed class."""

MIXED = "mixed"
_CLASSES = (1, 2, 3, 5, 9, 17, 33)
_MODES: tuple[ModeName, ...] = "synchronous", "asynchronous"
_VERTEX_BYTES, _RECORD_BYTES = 58, 1 << 19  # of the arrays of PageRank that are not lists
_LARGEST_WEIGHT = 64
_ALPHA, _TOLERANCE = 0.85, 0.005
_MEAN_ERROR = 2 * _TOLERANCE * _ALPHA / (1 - _ALPHA)


class _Counted(Program):
    """A smaller value replaces the one before; a field counts how often."""

    state: ClassVar = {"value": np.int32, "updates": np.int64}
    combine = minimum

    def receives(self, state: Any, message: Any) -> Any:
        return message < state.value

    def apply(self, state: Any, combined: Any) -> Any:
        return min(state.value, combined), state.updates + 1, combined < state.value


class _Levels(_Counted):
    def initial(self, vertex: Any, source: Any) -> Any:
        return 0 if vertex == source else 2147483647, 0, vertex == source

    def message(self, state: Any) -> Any:
        return state.value + 1


class _Distances(_Levels):
    def message(self, state: Any, weight: Any) -> Any:  # type: ignore[override]
        return state.value + weight


class _Labels(_Counted):
    def initial(self, vertex: Any) -> Any:
        return vertex, 0, True

    def message(self, state: Any) -> Any:
        return state.value


class _Ranks(Program):
    state: ClassVar = {"value": np.float64, "updates": np.int64}
    combine = plus
    all_active = True
    totals = ("moving",)

    def initial(self) -> Any:
        return 1.0, 0

    def message(self, state: Any, degree: Any) -> Any:
        return state.value / degree

    def apply(self, state: Any, combined: Any, alpha: Any) -> Any:
        return 1.0 - alpha + alpha * combined, state.updates + 1

    def measure(self, state: Any, previous: Any, tol: Any) -> Any:
        return 1.0 if abs(state.value - previous.value) > tol else 0.0

    def finished(self, moving: Any) -> Any:
        return moving == 0.0


ALGORITHMS: dict[str, Program] = {
    "BFS": _Levels(), "PageRank": _Ranks(), "SSSP": _Distances(), "CC": _Labels(),
}  # fmt: skip


def measure_frog(study: Study, options: StudyOptions, info: DeviceInfo | None) -> None:
    families = "kronecker{scale}", "preferential{scale}", "roads{side}"
    planned = [
        Planned(named_graph(name.format(scale=scale, side=1 << scale // 2)), scale)
        for scale in options.scales
        for name in families
    ]
    planned += graphs_of(replace(options, scales=(), families=False), info)
    threads = options.threads
    for number, graph in enumerate(planned, 1):
        announce(f"{graph.name}, graph {number} of {len(planned)}")
        edges = weighted(graph.graph.make())
        about = graph.row()
        built = build_search_graph(edges)
        if not built.num_searched:
            raise GraphError(f"{graph.name} has no edge between two vertices")
        colouring = _preprocess(study, about, built, threads)
        with ProgramRuns(built, threads, info) as runs:
            _measure_runs(study, about, runs, colouring, options.rounds)
            for note in runs.notes:
                add_note(study.notes, f"{graph.name}: {note}")
        if info is not None:
            study.add("streaming", _streaming(about, built, info, options.rounds, study.notes))


def weighted(source: EdgeSource) -> EdgeList:
    edges = listed(source)
    weights = np.random.default_rng(1).integers(1, _LARGEST_WEIGHT + 1, edges.src.size)
    return replace(edges, weights=weights.astype(np.int32))


def _preprocess(study: Study, about: Row, built: SearchGraph, threads: int) -> Colouring:
    """Colour and order twice, since the first time compiles; add the second one's seconds."""
    placed = PlacedGraph(built)
    for _ in range(2):
        with Colourings(built, threads) as colourings:
            found = colourings.run(place="cpu")
        began = time.perf_counter()
        arranged = by_colour(placed, found.colour, 0)
        _ = arranged.forward, arranged.backward
        seconds = time.perf_counter() - began
    steps = {"colour_seconds": found.seconds, "order_seconds": seconds}
    study.add("preprocessing", [{**about, "vertices": built.num_vertices, **steps}])
    sizes = np.zeros(NUM_CLASSES, np.int64)
    np.add.at(sizes, np.minimum(found.colour, NUM_CLASSES - 1), 1)
    for name, size in zip([*range(1, NUM_CLASSES), MIXED], sizes.tolist(), strict=True):
        row = {**about, "num_colours": found.num_colours, "class": name, "vertices": size}
        study.add("classes", [{**row, "share": size / built.num_vertices}])
    return found


def _measure_runs(
    study: Study, about: Row, runs: ProgramRuns, colouring: Colouring, rounds: int
) -> None:
    place: DeviceKind = "cpu" if runs.device is None else "device"
    in_mixed = colouring.colour >= NUM_CLASSES - 1
    for name, program in ALGORITHMS.items():
        given = _parameters(name, runs.graph)
        found: dict[str, ProgramResult] = {}
        row = {**about, "algorithm": name, "place": place}
        for mode in _MODES:
            options = RunOptions(place=place, mode=mode)
            found[mode], seconds = _timed(runs, program, given, options, rounds)
            row |= {f"{mode}_iterations": found[mode].iterations, f"{mode}_seconds": seconds}
        before, after = found["synchronous"], found["asynchronous"]
        check(f"{name} of {about['graph']}", before.state["value"], after.state["value"])
        study.add("iterations", [row])
        updates = after.state["updates"]
        study.add("atomics", [{
            **about, "algorithm": name, "synchronous": int(before.state["updates"].sum()),
            "asynchronous": int(updates.sum()), "mixed_class": int(updates[in_mixed].sum()),
        }])  # fmt: skip
        for count in (*_CLASSES, None) if name in ("BFS", "PageRank") else ():
            options = RunOptions(place=place, mode="asynchronous", num_classes=count)
            _, seconds = _timed(runs, program, given, options, rounds)
            chosen = "by rule" if count is None else count
            row = {**about, "algorithm": name, "place": place, "num_classes": chosen}
            study.add("partitions", [{**row, "seconds": seconds}])


def _parameters(name: str, graph: SearchGraph) -> dict[str, Any]:
    if name == "PageRank":
        return {"alpha": _ALPHA, "tol": _TOLERANCE}
    source = int(graph.relabelling.old_of_new[int(np.argmax(graph.degree))])
    return {} if name == "CC" else {"source": source}


def _timed(
    runs: ProgramRuns, program: Program, given: Mapping[str, Any], options: RunOptions, rounds: int
) -> tuple[ProgramResult, float]:
    """Run once to compile, then some rounds; return the last result and the median seconds."""
    results = [runs.run(program, dict(given), options) for _ in range(1 + rounds)]
    return results[-1], float(np.median([result.seconds for result in results[1:]]))


def check(what: str, one: Any, other: Any) -> None:
    """Raise `ValidationError` if modes have different results: scores differ by their tolerance."""
    wrong = np.abs(one - other).mean() > _MEAN_ERROR if one.dtype.kind == "f" else (one != other)
    if np.any(wrong):
        raise ValidationError(f"{what} differs between synchronous and asynchronous mode")


def _streaming(
    about: Row, built: SearchGraph, info: DeviceInfo, rounds: int, notes: list[str]
) -> list[Row]:
    """Run PageRank with room for a quarter of the lists, which are sent colour by colour."""
    lists, n = built.graph.indices.nbytes, built.num_vertices
    room = replace(info, memory_bytes=_VERTEX_BYTES * n + _RECORD_BYTES + lists // 4)
    options, given = RunOptions(place="device", mode="asynchronous"), _parameters("PageRank", built)
    with ProgramRuns(built, 1, room) as runs:
        try:
            result, seconds = _timed(runs, ALGORITHMS["PageRank"], given, options, rounds)
        except DeviceError as error:
            add_note(notes, f"{about['graph']} was not streamed: {'; '.join(runs.notes) or error}")
            return []
    sent = result.streamed_bytes / max(result.iterations, 1)
    return [{
        **about, "list_bytes": lists, "iterations": result.iterations,
        "sent_bytes": sent, "seconds": seconds,
    }]  # fmt: skip


SCALES = (16, 18)

# The paper's Tables 5 and 6 for its five graphs that its synchronous system can run too:
# iterations of Frog-Native and Frog, and atomic operations of both.
_TABLE_5 = {
    "BFS": ((30, 15, 23, 557, 7), (29, 14, 22, 556, 6)),
    "PageRank": ((52, 51, 15, 31, 33), (20, 25, 10, 16, 19)),
    "SSSP": ((28, 14, 18, 555, 8), (17, 8, 14, 279, 4)),
    "CC": ((35, 32, 26, 561, 20), (9, 7, 8, 252, 5)),
}
_TABLE_6 = {
    "BFS": ((1.3e6, 1.5e6, 1.1e6, 2.3e6, 3.1e6), (1.8e5, 4.0e5, 3.4e5, 2.8e2, 1.6e6)),
    "PageRank": ((2.9e7, 2.6e7, 7.7e6, 2.1e7, 7.1e7), (2.4e5, 1.7e5, 2.3e5, 4.0e3, 2.0e5)),
    "SSSP": ((7.5e6, 6.3e6, 2.7e6, 6.2e7, 6.8e6), (2.4e5, 3.5e5, 1.6e5, 1.6e4, 5.2e5)),
    "CC": ((9.5e7, 7.6e7, 2.9e7, 2.8e8, 4.9e7), (1.2e6, 8.6e5, 4.4e5, 1.3e4, 1.7e6)),
}
_SHARE_OF_FOUR = 0.828  # DBLP, Figure 2


def claim_rows(tables: Mapping[str, pd.DataFrame]) -> list[Row]:
    classes, runs, atomics = tables["classes"], tables["iterations"], tables["atomics"]
    of_four = 1 - classes[classes["class"] == MIXED]["share"].mean()
    rows = [claim("vertices of the first four colours", _SHARE_OF_FOUR, of_four, "share")]
    for name in ALGORITHMS:
        ours, counted = (table[table["algorithm"] == name] for table in (runs, atomics))
        before, after = ours["synchronous_iterations"], ours["asynchronous_iterations"]
        mixed = counted[counted["mixed_class"] > 0]
        rows.append(
            claim(f"{name}: iterations, synchronous over asynchronous", _ratio(*_TABLE_5[name]),
                   _ratio(before, after))
        )  # fmt: skip
        rows.append(
            claim(f"{name}: updates with atomics, synchronous over asynchronous",
                   _ratio(*_TABLE_6[name]), _ratio(mixed["synchronous"], mixed["mixed_class"]))
        )  # fmt: skip
    return rows


def _ratio(before: Any, after: Any) -> float:
    """Return the geometric mean of the ratios; NaN if there are none."""
    ratios = np.asarray(before, float) / np.asarray(after, float)
    return math.exp(np.log(ratios).mean()) if ratios.size else math.nan


# Findings, and sections.


def _iterations_finding(table: pd.DataFrame) -> str:
    fewer = table["synchronous_iterations"] > table["asynchronous_iterations"]
    faster = table["synchronous_seconds"] > table["asynchronous_seconds"]
    return (
        f"Asynchronous runs take fewer iterations in {fewer.sum()} of {len(table)} cases, and less "
        f"time in {faster.sum()}."
    )


def _partitions_finding(table: pd.DataFrame) -> str:
    best = table.loc[table.groupby(["graph", "algorithm"])["seconds"].idxmin(), "num_classes"]
    counts = ", ".join(f"{one} in {n}" for one, n in best.astype(str).value_counts().items())
    return f"Fastest number of classes, by cases: {counts} (the paper: 3 or 5)."


def _draw_classes(table: pd.DataFrame) -> Figure:
    return style.stacked(figures.cells(table, "share", "class"), "share of the vertices (%)")


_RUN = "algorithm", "place"
_ITERATIONS = (
    *("synchronous_iterations", "asynchronous_iterations"),
    *("synchronous_seconds", "asynchronous_seconds"),
)

_SECTIONS = (
    Section(
        "classes",
        "Vertices of each class: four colours, and all others (Figures 2 and 7)",
        "",
        (*GRAPH_COLUMNS, "num_colours", "class", "vertices", "share"),
        draw=_draw_classes,
        brief=findings.wide_brief("", ["graph", "num_colours"], "class", "share"),
    ),
    Section(
        "iterations",
        "Iterations and time (Tables 2 to 5)",
        "Whole runs, without copies to a device.",
        (*GRAPH_COLUMNS, *_RUN, *_ITERATIONS),
        _iterations_finding,
    ),
    Section(
        "atomics",
        "Updates that need atomics in the paper (Table 6)",
        "Updates of vertices: of all, and of the mixed class. For this class the paper uses "
        "atomics, which no update needs here.",
        (*GRAPH_COLUMNS, "algorithm", "synchronous", "asynchronous", "mixed_class"),
    ),
    Section(
        "partitions",
        "Time by the number of classes (Figure 8)",
        "One thread or work-group goes through the last class.",
        (*GRAPH_COLUMNS, *_RUN, "num_classes", "seconds"),
        _partitions_finding,
        brief=findings.wide_brief("", ["graph", "algorithm"], "num_classes", "seconds"),
    ),
    Section(
        "preprocessing",
        "Preprocessing (Figure 9)",
        "Colouring, and copying the lists in the order of colours.",
        (*GRAPH_COLUMNS, "vertices", "colour_seconds", "order_seconds"),
    ),
    Section(
        "streaming",
        "Larger than the device's memory (section 4.2)",
        "PageRank with room for a quarter of the lists; bytes sent per iteration.",
        (*GRAPH_COLUMNS, "list_bytes", "iterations", "sent_bytes", "seconds"),
    ),
    claims_section(
        "The paper's means are over its five smaller graphs, ours over the graphs of this study; "
        "means of ratios are geometric. Ratios of updates need a mixed class that has some."
    ),
)

FROG_PAPER = Paper(
    "frog",
    "Shi et al. 2018, Frog: its tables on this machine",
    SCALES,
    measure_frog,
    _SECTIONS,
    claim_rows,
)
