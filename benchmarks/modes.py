"""The modes of vertex programs beside each other: edge visits, iterations and time.

    python -m benchmarks.modes --graph FILE kronecker16 grid512 --program ranks paths --out FOLDER

GRAPH is as in benchmarks.programs. Paths get random integer weights from 1 to 255. Every contestant
runs from the same vertex, in turn, some rounds; results of a program must agree. The mode "layered"
has that vertex as its root. Writes modes.csv and modes.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import hetero_bfs as hb
from benchmarks.programs.contest import draw_sources, make_graph
from benchmarks.programs.user import Paths, Ranks
from benchmarks.tables import markdown, provenance, run_script, save
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.training.measured_runs import Distances

_LAST_HOP = 6


class ScaledRanks(Ranks):
    """PageRank up to a factor: restarts are shares of the present sum, which sweeps change."""

    totals = ("dangling", "mass", "change")

    def apply(self, combined, num_vertices, dangling, mass, alpha):
        restart = (1 - alpha) * mass / num_vertices
        return restart + alpha * (combined + dangling / num_vertices)

    def measure(self, state, previous, degree):
        dangling = state.rank if degree == 0 else 0.0
        return dangling, state.rank, abs(state.rank - previous.rank)


class Levels(hb.Program):
    state: ClassVar = {"level": np.int32}
    combine = hb.minimum

    def initial(self, vertex, source):
        return 0 if vertex == source else 2147483647

    def receives(self, state, message):
        return message < state.level

    def message(self, state):
        return state.level + 1

    def apply(self, combined):
        return combined


class Reach(Levels):
    def receives(self, state, message):
        return message < state.level and message <= 6


class Labels(hb.Program):
    state: ClassVar = {"label": np.int32}
    combine = hb.minimum

    def initial(self, vertex):
        return vertex

    def receives(self, state, message):
        return message < state.label

    def message(self, state):
        return state.label

    def apply(self, combined):
        return combined


PROGRAMS = {
    "ranks": (Ranks, ("synchronous", "asynchronous")),
    "scaled": (ScaledRanks, ("synchronous", "asynchronous")),
    "paths": (Distances, ("synchronous", "asynchronous", "layered")),
    "levels": (Levels, ("synchronous", "asynchronous", "layered")),
    "reach": (Reach, ("synchronous", "layered")),
    "labels": (Labels, ("synchronous", "asynchronous")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--graph", nargs="+", default=["kronecker16", "grid512"], metavar="GRAPH")
    add("--program", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    add("--place", nargs="+", choices=("cpu", "device"), default=["cpu"])
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=5)
    add("--source", type=int, help="vertex of the graph; by default one is drawn")
    add("--out", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    rows = [row for name in options.graph for row in measure(name, options)]
    if options.out is not None:
        table = pd.DataFrame(rows)
        info = choose_device() if "device" in options.place else None
        words = " ".join(["python -m benchmarks.modes", *sys.argv[1:]])
        text = [*provenance(info, words), "", markdown(table.round(3))]
        save(options.out, "modes", table, text)


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    graph = build_search_graph(make_graph(name, weighted=True, draws=True))
    source = options.source
    if source is None:
        source = int(graph.relabelling.old_of_new[draw_sources(graph.graph, 1)[0]])
    info = choose_device() if "device" in options.place else None
    rows = []
    with ProgramRuns(graph, options.threads, info) as runs:
        for program in options.program:
            for row in contest(runs, program, source, options):
                rows.append({"graph": Path(name).name.partition(".")[0], **row})
                print(rows[-1], flush=True)
    return rows


def contest(
    runs: ProgramRuns, name: str, source: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    kind, modes = PROGRAMS[name]
    parameters = {"alpha": 0.85, "tol": 1e-6} if issubclass(kind, Ranks) else {"source": source}
    if name == "labels":
        parameters = {}
    contestants = [(mode, kind, mode, place) for mode in modes for place in options.place]
    if name == "paths":
        contestants += [("buckets", Paths, "synchronous", p) for p in options.place]
    results: dict[Any, list[Any]] = defaultdict(list)
    for _ in range(options.rounds + 1):
        for contestant in contestants:
            _, program, mode, place = contestant
            root = source if mode == "layered" else None
            run_options = hb.RunOptions(place=place, mode=mode, root=root)
            results[contestant].append(runs.run(program(), parameters, run_options))
    expected = answer(next(iter(results.values()))[0])
    rows = []
    for (label, _, _, place), all_results in results.items():
        last = all_results[-1]
        if np.abs(answer(last) - expected).sum() > 2e-5:
            sys.exit(f"{name}: {label} on {place} disagrees")
        rows.append({
            "program": name, "mode": label, "place": place,
            "iterations": last.iterations,
            "edge_visits": sum(trace.edges_scanned for trace in last.traces),
            "median_ms": 1e3 * statistics.median(r.seconds for r in all_results[1:]),
        })  # fmt: skip
    return rows


def answer(result: hb.ProgramResult) -> Any:
    """Return the values of the program's field; ranks in proportion to their sum."""
    ((field, values),) = result.state.items()
    return values / values.sum() if field == "rank" else np.nan_to_num(values)


if __name__ == "__main__":
    run_script(main)
