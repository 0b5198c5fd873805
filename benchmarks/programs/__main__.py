"""Algorithms of hetero_bfs beside those of other programs: same graphs, in turn in one run.

    python -m benchmarks.programs sssp --graph kronecker18 grid1024 --gap FOLDER --out FOLDER

`user` compares a user's vertex programs with the built-in algorithms that find the same.

GRAPH is kroneckerN, gridN (N x N vertices) or a file. For `sssp` and `user` generated graphs, and
with --draw files too, get random integer weights from 1 to 255. --gap names the folder of GAP's
built programs. NetworKit, python-graphblas and cuGraph take part if they are installed.
contests.py says who takes part, and compares the answers.

Writes ALGORITHM.csv (a row for each graph and contestant: median, least and greatest milliseconds)
and ALGORITHM.md, with the machine, the versions, the command and the commit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import tables
from benchmarks.programs import contests
from benchmarks.programs.contest import Contest, Run, draw_sources, make_graph
from benchmarks.programs.peers import releases
from benchmarks.programs.user import user
from benchmarks.tables import markdown, provenance, run_script
from hetero_bfs.devices.opencl.driver import choose_devices
from hetero_bfs.graph.csr import CSRGraph
from hetero_bfs.graph.edge_list import EdgeList

_ALGORITHMS = {
    "bfs": contests.bfs,
    "colouring": contests.colouring,
    "components": contests.components,
    "pagerank": contests.pagerank,
    "sssp": contests.sssp,
    "user": user,
}

_LONG_SECONDS = 1.0  # a run that takes longer needs no untimed one before it
_PAUSE_SECONDS = 0.02


def main() -> None:
    options = parse()
    make_contest = _ALGORITHMS[options.algorithm]
    rows = []
    for name in options.graph:
        weighted = options.algorithm in ("sssp", "user")
        edges = make_graph(name, weighted, options.draw, options.weights)
        graph = CSRGraph.from_edge_source(edges) if isinstance(edges, EdgeList) else edges
        with make_contest(edges, graph, options) as contest:
            times = take_turns(contest, draw_sources(graph, options.sources), options.rounds)
            floor = contest.least_bytes / options.bandwidth if options.bandwidth else None
        rows += summarise(name, times, floor)
    if options.out is not None:
        save(rows, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("algorithm", choices=_ALGORITHMS)
    add("--graph", nargs="+", default=["kronecker16", "grid512"], metavar="GRAPH")
    add("--draw", action="store_true", help="draw weights for the edges of files")
    add("--weights", choices=("int32", "float32"), default="int32", help="type of drawn weights")
    add("--bandwidth", type=float, metavar="BYTES", help="per second, for a column of floors")
    add("--gap", type=Path, metavar="FOLDER", help="folder of GAP's built programs")
    add("--deltas", type=int, nargs="+", default=[1, 2, 16, 64, 256], help="of GAP's sssp, to try")
    add("--threads", type=int, default=2)
    add("--device", choices=("auto", "cpu"), default="auto")
    add("--sources", type=int, default=8, help="for searches from a vertex")
    add("--rounds", type=int, default=5)
    add("--out", type=Path, metavar="FOLDER")
    return parser.parse_args()


def take_turns(contest: Contest, sources: list[int], rounds: int) -> dict[str, list[float]]:
    """Run every contestant in turn from each source, some rounds; return the seconds of each.

    Before them comes a round that is not timed. It compares all answers and compiles. A contestant
    that takes long is timed once for each source.
    """
    times: dict[str, list[float]] = defaultdict(list)
    for source in sources if contest.has_source else sources[:1]:
        expected = None
        for number in range(rounds + 1):
            for contestant, run in contest.runs.items():
                if number > 1 and times[contestant][-1] > _LONG_SECONDS:
                    continue
                seconds, answer = take_turn(run, source) if number else run(source)
                if number > 0:
                    times[contestant].append(seconds)
                if expected is None:
                    expected = answer
                elif answer is not None and not contest.agree(expected, answer):
                    sys.exit(f"{contestant} disagrees with the others from {source}")
    return times


def take_turn(run: Run, source: int) -> tuple[float, Any]:
    """Run a contestant after a pause, in which the last one's threads fall asleep, and warm."""
    time.sleep(_PAUSE_SECONDS)
    seconds, answer = run(source)
    return (seconds, answer) if seconds > _LONG_SECONDS else run(source)


def summarise(
    name: str, times: dict[str, list[float]], floor: float | None = None
) -> list[dict[str, Any]]:
    """Return a row for each contestant, and print it; beside the floor's seconds if given."""
    rows = []
    for contestant, seconds in times.items():
        row = {
            "graph": Path(name).name.partition(".")[0],
            "contestant": contestant,
            "median_ms": 1e3 * statistics.median(seconds),
            "least_ms": 1e3 * min(seconds),
            "greatest_ms": 1e3 * max(seconds),
            "runs": len(seconds),
        }
        if floor is not None:
            row["floor_ms"] = 1e3 * floor
        rows.append(row)
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    return rows


def save(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    table = pd.DataFrame(rows)
    words = " ".join(["python -m benchmarks.programs", *sys.argv[1:]])
    info = next(iter(choose_devices(options.device)), None)
    text = [*provenance(info, words), f"- libraries: {releases()}", "", markdown(table.round(3))]
    tables.save(options.out, options.algorithm, table, text)


if __name__ == "__main__":
    run_script(main)
