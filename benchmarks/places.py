"""Vertex programs on each place, migrating between both, and with lists that stream to the device.

    python -m benchmarks.places --graph kronecker20 grid1024 --out FOLDER

GRAPH is as in benchmarks.programs; paths get random integer weights from 1 to 255. Every contestant
runs from the same vertex, in turn, some rounds; results of a program must agree.

* "cpu", "device": the run stays there.
* "migrating": the schedule of the device's run, but its first and its last iterations are the
  host's: two migrations, whether they pay or not.
* "streamed": the device may use --share of the memory of the lists, and room for the vertices.

Writes places.csv and places.md; milliseconds are medians, migrations those of the last run.
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
from typing import Any

import numpy as np
import pandas as pd

import hetero_bfs as hb
from benchmarks.modes import Levels, answer
from benchmarks.programs.__main__ import take_turn
from benchmarks.programs.contest import draw_sources, make_graph
from benchmarks.programs.user import Ranks
from benchmarks.tables import markdown, provenance, run_script, save
from hetero_bfs.algorithms.program_runs import ProgramRuns
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.search_graph import SearchGraph, build_search_graph
from hetero_bfs.training.measured_runs import Distances

_PROGRAMS = {"levels": Levels, "paths": Distances, "ranks": Ranks}
_VERTEX_BYTES = 64  # of the vertices' arrays, at most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--graph", nargs="+", default=["kronecker16", "grid512"], metavar="GRAPH")
    add("--program", nargs="+", choices=_PROGRAMS, default=list(_PROGRAMS))
    add("--share", type=float, default=0.25, help="of the lists' memory, where they stream")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=5)
    add("--out", type=Path, metavar="FOLDER", required=True)
    options = parser.parse_args()
    rows = [row for name in options.graph for row in measure(name, options)]
    table = pd.DataFrame(rows)
    words = " ".join(["python -m benchmarks.places", *sys.argv[1:]])
    text = [*provenance(choose_device(), words), "", markdown(table.round(3))]
    save(options.out, "places", table, text)


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    graph = build_search_graph(make_graph(name, weighted=True, draws=True))
    source = int(graph.relabelling.old_of_new[draw_sources(graph.graph, 1)[0]])
    rows = []
    for program in options.program:
        with ExitStack() as stack:
            runs = _contestants(stack, graph, program, source, options)
            for row in _contest(runs, options.rounds):
                rows.append({"graph": Path(name).name.partition(".")[0], "program": program, **row})
                print(rows[-1], flush=True)
    return rows


def _contestants(
    stack: ExitStack, graph: SearchGraph, program: str, source: int, options: argparse.Namespace
) -> dict[str, Any]:
    kind = _PROGRAMS[program]
    given = {"alpha": 0.85, "tol": 1e-6} if kind is Ranks else {"source": source}
    info = choose_device()
    lists = graph.graph.num_stored_edges * 8
    room = int(options.share * lists) + _VERTEX_BYTES * graph.num_vertices
    whole = stack.enter_context(ProgramRuns(graph, options.threads, info))
    small = ProgramRuns(graph, options.threads, replace(info, memory_bytes=room))
    stack.enter_context(small)

    def run(runs: ProgramRuns, place: Any, schedule: Any = None) -> hb.ProgramResult:
        settings = hb.RunOptions(place=place, schedule=schedule)
        return runs.run(kind(), given, settings)

    on_device = [trace.strategy for trace in run(whole, "device").traces]
    ends = {0, len(on_device) - 1}
    mixed = [one.removeprefix("device ") if i in ends else one for i, one in enumerate(on_device)]
    return {
        "cpu": partial(run, whole, "cpu"),
        "device": partial(run, whole, "device"),
        "migrating": partial(run, whole, "auto", mixed),
        "streamed": partial(run, small, "device"),
    }


def _contest(runs: dict[str, Any], rounds: int) -> list[dict[str, Any]]:
    results: dict[str, list[hb.ProgramResult]] = defaultdict(list)
    for _ in range(rounds + 1):
        for name, run in runs.items():
            _, result = take_turn(lambda _, run=run: _timed(run), 0)
            results[name].append(result)
    expected = answer(results["cpu"][0])
    rows = []
    for name, all_results in results.items():
        last = all_results[-1]
        if np.abs(answer(last) - expected).sum() > 2e-5:
            sys.exit(f"{name} disagrees")
        migrations = [1e3 * t.migration_seconds for t in last.traces if t.migrated_bytes]
        rows.append({
            "contestant": name,
            "median_ms": 1e3 * statistics.median(r.seconds for r in all_results[1:]),
            "iterations": last.iterations,
            "migrations_ms": " ".join(f"{ms:.3f}" for ms in migrations),
            "migrated_bytes": last.migrated_bytes,
            "streamed_bytes": last.streamed_bytes,
        })  # fmt: skip
    return rows


def _timed(run: Any) -> tuple[float, hb.ProgramResult]:
    result = run()
    return result.seconds, result


if __name__ == "__main__":
    run_script(main)
