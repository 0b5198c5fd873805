"""Vertex programs in each mode and on each place: edge visits, iterations, migrations and time.

    python -m benchmarks.modes --graph FILE kronecker16 grid512 --program ranks paths --out FOLDER

GRAPH is as in benchmarks.programs. Paths get random integer weights from 1 to 255. Every contestant
runs from the same vertex, in turn, some rounds; results of a program must agree. The mode "layered"
has that vertex as its root. Places, all but "cpu" with an OpenCL device:

* "cpu", "device": the run stays there.
* "migrating": the schedule of the device's run, but its first and its last iterations are the
  host's: two migrations, whether they pay or not. In mode "synchronous" alone.
* "streamed": the device may use --share of the memory of the lists, and room for the vertices.

Writes modes.csv and modes.md; milliseconds are medians, migrations those of the last run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import hetero_bfs as hb
from benchmarks.programs.contest import draw_sources, make_graph
from benchmarks.programs.user import Paths, Ranks
from benchmarks.tables import markdown, provenance, run_script, save
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.training.measured_runs import Distances

_PLACES = "cpu", "device", "migrating", "streamed"
_VERTEX_BYTES = 64  # of the vertices' arrays, at most


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
    add("--place", nargs="+", choices=_PLACES, default=["cpu"])
    add("--share", type=float, default=0.25, help="of the lists' memory, where they stream")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=5)
    add("--source", type=int, help="vertex of the graph; by default one is drawn")
    add("--out", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    info = choose_device() if {*options.place} - {"cpu"} else None
    rows = [row for name in options.graph for row in measure(name, info, options)]
    if options.out is not None:
        table = pd.DataFrame(rows)
        words = " ".join(["python -m benchmarks.modes", *sys.argv[1:]])
        text = [*provenance(info, words), "", markdown(table.round(3))]
        save(options.out, "modes", table, text)


def measure(
    name: str, info: DeviceInfo | None, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return a row for each contestant."""
    graph = build_search_graph(make_graph(name, weighted=True, draws=True))
    source = options.source
    if source is None:
        source = int(graph.relabelling.old_of_new[draw_sources(graph.graph, 1)[0]])
    rows = []
    with ExitStack() as stack:
        whole = small = stack.enter_context(ProgramRuns(graph, options.threads, info))
        if info is not None and "streamed" in options.place:
            lists = graph.graph.num_stored_edges * 8
            room = int(options.share * lists) + _VERTEX_BYTES * graph.num_vertices
            room_info = replace(info, memory_bytes=room)
            small = stack.enter_context(ProgramRuns(graph, options.threads, room_info))
        for program in options.program:
            for row in contest(whole, small, program, source, options):
                rows.append({"graph": Path(name).name.partition(".")[0], **row})
                print(rows[-1], flush=True)
    return rows


def contest(
    whole: ProgramRuns, small: ProgramRuns, name: str, source: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    kind, modes = PROGRAMS[name]
    parameters = {"alpha": 0.85, "tol": 1e-6} if issubclass(kind, Ranks) else {"source": source}
    if name == "labels":
        parameters = {}

    def run(runs: ProgramRuns, program: Any, mode: Any, place: Any) -> hb.ProgramResult:
        if place == "migrating":
            on_device = runs.run(program(), parameters, hb.RunOptions(place="device"))
            names = [trace.strategy for trace in on_device.traces]
            for end in (0, -1):
                names[end] = names[end].removeprefix("device ")
            return runs.run(program(), parameters, hb.RunOptions(schedule=names))
        if place == "streamed":
            runs, place = small, "device"
        settings = hb.RunOptions(place=place, mode=mode, root=source if mode == "layered" else None)
        return runs.run(program(), parameters, settings)

    kinds = [(mode, kind, mode) for mode in modes]
    kinds += [("buckets", Paths, "synchronous")] * (name == "paths")
    contestants = {
        (label, place): partial(run, whole, program, mode, place)
        for label, program, mode in kinds
        for place in options.place
        if place != "migrating" or label == "synchronous"
    }
    results: dict[Any, list[hb.ProgramResult]] = defaultdict(list)
    for _ in range(options.rounds + 1):
        for contestant, one in contestants.items():
            results[contestant].append(one())
    expected = answer(next(iter(results.values()))[0])
    rows = []
    for (label, place), all_results in results.items():
        last = all_results[-1]
        if np.abs(answer(last) - expected).sum() > 2e-5:
            sys.exit(f"{name}: {label} on {place} disagrees")
        migrations = [1e3 * t.migration_seconds for t in last.traces if t.migrated_bytes]
        rows.append({
            "program": name, "mode": label, "place": place,
            "iterations": last.iterations,
            "edge_visits": sum(trace.edges_scanned for trace in last.traces),
            "median_ms": 1e3 * statistics.median(r.seconds for r in all_results[1:]),
            "migrations_ms": " ".join(f"{ms:.3f}" for ms in migrations),
            "migrated_bytes": last.migrated_bytes,
            "streamed_bytes": last.streamed_bytes,
        })  # fmt: skip
    return rows


def answer(result: hb.ProgramResult) -> Any:
    """Return the values of the program's field; ranks in proportion to their sum."""
    ((field, values),) = result.state.items()
    return values / values.sum() if field == "rank" else np.nan_to_num(values)


if __name__ == "__main__":
    run_script(main)
