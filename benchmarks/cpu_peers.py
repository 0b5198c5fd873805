"""Compare this package's CPU search with those of other packages, in turn in one run.

    python benchmarks/cpu_peers.py --gap DIR --graphs kronecker18,grid2048 --out DIR

writes cpu_peers.csv (a row for each graph and contestant, in seconds) and cpu_peers.md (the same as
one table, with machine, versions, command, commit and date), anew after every graph.

Every contestant reads the same undirected graph and searches from the same keys on the same cores.
Their results are compared before anything is timed. Then they take turns, in an order that rotates
from round to round. A turn begins with a pause, in which the last one's threads fall asleep. Then
come untimed searches until the cores' clocks have risen, and the timed search. Graphs have their
names in families.py (kronecker18 and uniform18 come from GAP's converter if there is one), or are
files.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cpu_contestants import (
    PEERS,
    UNTIMED_SECONDS,
    Case,
    Contestant,
    OurCall,
    OurSearch,
    gap_seconds,
    run_gap,
)
from libraries import timed, usual_spinning
from tables import markdown, run_script

import hetero_bfs as hb
from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import describe_machine
from hetero_bfs.graph.generators.families import StudyGraph, named_graph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.io import registry as io
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.support.environment import usable_cores
from hetero_bfs.support.files import replacing

_PAUSE_SECONDS = 0.02
_LONG_SECONDS = 1.0  # a search that takes longer needs no untimed one before it
_CONSTRUCTIONS = 3
_CONVERTER = {"kronecker": "-g {} -k 16", "uniform": "-u {} -k 16"}  # the same graphs by GAP

Row = dict[str, Any]


def main() -> None:
    options = parse()
    start_over_with(options.threads)
    contestants = [OurSearch(), OurCall(), *open_peers(options.peers, options.gap)]
    options.graphs = find_graphs(options.graphs)
    load = os.getloadavg()[0]
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        for graph in options.graphs:
            rows += measure(graph, contestants, work, options)
            table = with_ratios(pd.DataFrame(rows))
            with replacing(options.out / "cpu_peers.csv") as stream:
                table.to_csv(stream, index=False, float_format="%.9g")
            with replacing(options.out / "cpu_peers.md") as stream:
                stream.write(describe(table, contestants, options, load))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gap", type=Path, metavar="DIR", help="folder of GAP's bfs and converter")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    parser.add_argument("--work", type=Path, metavar="DIR", help="for graphs; else a temporary one")
    parser.add_argument(
        "--graphs", default="kronecker18,kronecker20,kronecker22,uniform20,grid2048"
    )
    parser.add_argument("--keys", type=positive, default=8, help="search keys of each graph")
    parser.add_argument("--rounds", type=positive, default=5, help="times each key is searched")
    parser.add_argument("--threads", type=positive, default=usable_cores())
    parser.add_argument("--peers", default=",".join(PEERS), help="default: %(default)s")
    parser.add_argument(
        "--budget",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="a peer that takes longer for the first key is timed on that alone, once",
    )
    options = parser.parse_args()
    options.graphs, options.peers = options.graphs.split(","), options.peers.split(",")
    for peer in options.peers:
        if peer not in PEERS:
            parser.error(f"--peers {peer!r}: known are {', '.join(PEERS)}")
    options.gap = options.gap and options.gap.resolve()  # "." would search the PATH for bfs
    for program in ("bfs", "converter"):
        if options.gap and not (options.gap / program).is_file():
            parser.error(f"--gap {options.gap}: there is no {program} in it; run make there")
    if not 1 <= options.threads <= usable_cores():
        parser.error(f"--threads {options.threads} is not within 1 to {usable_cores()}, the cores")
    if min(options.keys, options.rounds) < 1:
        parser.error("--keys and --rounds are at least 1")
    return options


def start_over_with(threads: int) -> None:
    """Give all contestants the same cores and as many threads.

    Libraries read their number of threads once, when they load, so the program starts anew.
    """
    wanted = {name: str(threads) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    if wanted.items() <= os.environ.items() and usable_cores() == threads:
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    elif wanted.items() <= os.environ.items():
        return
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | wanted)


def find_graphs(names: Sequence[str]) -> list[StudyGraph]:
    try:
        graphs = [named_graph(name) for name in names]
    except hb.GraphError as error:
        sys.exit(f"--graphs: {error}")
    if len({graph.name for graph in graphs}) < len(graphs):
        sys.exit("--graphs: two of them have the same name; rename a file")
    return graphs


def open_peers(names: Sequence[str], gap: Path | None) -> list[Contestant]:
    """Load the installed peers and say how to get the others."""
    peers = []
    for name in names:
        try:
            with usual_spinning():
                peers.append(PEERS[name](gap))
        except ImportError as error:
            package = PEERS[name].package
            remedy = f"pip install {package} {PEERS[name].needs}" if package else str(error)
            say(f"{name} is left out: {remedy.strip()}")
    return peers


def measure(
    graph: StudyGraph, contestants: Sequence[Contestant], work: Path, options: argparse.Namespace
) -> list[Row]:
    """Make a graph, check every contestant on it, time them; return rows of the table."""
    say(f"{graph.name}: construction")
    case, construction = make_case(graph, work, options.gap, options.keys)
    for contestant in contestants:
        say(f"{case.name}: {contestant.title} gets ready")
        contestant.prepare(case)
    for note in case.engine.notes:
        say(note)
    slow = check(case, contestants, options.budget)
    times = compare(case, contestants, slow, options.rounds)

    def row(contestant: str, what: str, threads: int, keys: int, seconds: list[float]) -> Row:
        return {
            "graph": case.name,
            "vertices": case.graph.num_vertices,
            "edges": case.graph.num_stored_edges // 2,
            "contestant": contestant,
            "what": what,
            "threads": threads,
            "keys": keys,
            "measurements": len(seconds),
            "median_seconds": np.median(seconds),
            "min_seconds": min(seconds),
        }

    rows = []
    for contestant, seconds in times.items():
        threads = options.threads if contestant.parallel else 1
        keys = 1 if contestant in slow else len(case.keys)
        rows.append(row(contestant.name, contestant.what, threads, keys, seconds))
    for builder, seconds in construction.items():
        rows.append(row(builder, "construction", options.threads, 0, seconds))
    return rows


def make_case(
    about: StudyGraph, work: Path, gap: Path | None, num_keys: int
) -> tuple[Case, dict[str, list[float]]]:
    """Make or read a graph, write it for all contestants, and time construction from edges.

    The edges are in memory. GAP's converter makes its own edges, as many as ours and of the same
    kind. Its Build Time ends with neighbour lists, ours with relabelled ones.
    """
    path = work / f"{about.name}.sg"
    option = _CONVERTER.get(about.family) if about.name == f"{about.family}{about.scale}" else None
    by_gap = gap is not None and option is not None
    edges = about.make()
    build_search_graph(hb.KroneckerEdges(8).materialise())  # compile
    seconds: dict[str, list[float]] = {"hetero_bfs": []} | ({"GAP": []} if by_gap else {})
    for _ in range(_CONSTRUCTIONS):
        seconds["hetero_bfs"].append(timed(build_search_graph, edges)[0])
        if gap is not None and option is not None:
            text = run_gap(gap / "converter", *option.format(about.scale).split(), "-b", path)
            seconds["GAP"].append(gap_seconds(text, "Build Time"))
    if not by_gap:
        io.write(edges, path)
    del edges
    graph = io.load(path)
    keys = search_keys(graph.num_vertices, lambda v: graph.neighbours(v).size == 0, num_keys)
    if not keys:
        sys.exit(f"{about.name}: no vertex has an edge, so there is no key to search from")
    return Case(about.name, path, graph, keys), seconds


def check(case: Case, contestants: Sequence[Contestant], budget: float) -> set[Contestant]:
    """Compare all results for every key; return the peers over the budget at the first key."""
    slow: set[Contestant] = set()
    for i, key in enumerate(case.keys):
        say(f"{case.name}: checking key {i + 1} of {len(case.keys)}")
        ours = case.engine.bfs(key)
        for contestant in contestants:
            if contestant in slow:
                continue
            seconds = contestant.check(case, key, ours.level)
            if i > 0 or seconds <= budget or isinstance(contestant, OurCall):
                continue
            seconds, _ = contestant.search(key)  # once more: the first may have loaded or logged
            if seconds > budget:
                say(f"{case.name}: {contestant.title} takes {seconds:.3g} s: one key, one search")
                slow.add(contestant)
    return slow


def compare(
    case: Case, contestants: Sequence[Contestant], slow: set[Contestant], rounds: int
) -> dict[Contestant, list[float]]:
    """Time all in turn, so that drift affects all alike; return seconds of every search."""
    times: dict[Contestant, list[float]] = {contestant: [] for contestant in contestants}
    for number in range(rounds):
        say(f"{case.name}: round {number + 1} of {rounds}")
        for key in case.keys:
            for contestant in rotated(contestants, number):
                if contestant not in slow or (number == 0 and key == case.keys[0]):
                    times[contestant].append(take_turn(contestant, key))
    return times


def rotated(contestants: Sequence[Contestant], number: int) -> list[Contestant]:
    start = number % len(contestants)
    return [*contestants[start:], *contestants[:start]]


def take_turn(contestant: Contestant, key: int) -> float:
    """Return the seconds of a search with warm caches."""
    time.sleep(_PAUSE_SECONDS)
    warm_at = time.perf_counter() + UNTIMED_SECONDS
    seconds, _ = contestant.search(key)
    if seconds >= _LONG_SECONDS or contestant.warms_itself:
        return seconds
    while time.perf_counter() < warm_at:
        contestant.search(key)
    return contestant.search(key)[0]


def with_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Add every median over ours of the same graph and kind (search, call or construction)."""
    ours = table[table.contestant == "hetero_bfs"].set_index(["graph", "what"]).median_seconds
    like = ours.loc[list(zip(table.graph, table.what, strict=True))].to_numpy()
    return table.assign(ratio_to_ours=table.median_seconds / like)


def describe(
    table: pd.DataFrame, contestants: Sequence[Contestant], options: argparse.Namespace, load: float
) -> str:
    """Format the results as Markdown: a row for each graph, a column for each contestant."""
    machine = describe_machine(None)
    releases = ", ".join(dict.fromkeys(c.version() for c in contestants))
    graphs = ",".join(graph.name for graph in options.graphs)
    legend = [
        f"- {c.title} (threads: {options.threads if c.parallel else 1}): {c.gives}"
        for c in contestants
    ]
    return "\n".join(
        [
            "# The CPU search and its peers",
            "",
            f"- machine: {machine['cpu']}, cores used: {machine['cores']}, "
            f"{machine['memory_bytes'] / 2**30:.0f} GiB; load average before the run {load:.2f}",
            f"- versions: Python {machine['python']}, NumPy {machine['numpy']}, Numba "
            f"{machine['numba']}, {releases}",
            f"- commit {machine['commit']}, {datetime.date.today().isoformat()}",
            f"- command: `python benchmarks/cpu_peers.py {'--gap DIR ' if options.gap else ''}"
            f"--graphs {graphs} --keys {options.keys} --rounds {options.rounds} "
            f"--threads {options.threads} --peers {','.join(options.peers)} "
            f"--budget {options.budget:g} --out ...`",
            "",
            "Medians over keys and rounds, all in turn, each after "
            f"{1e3 * UNTIMED_SECONDS:g} ms of untimed searches from the same key. In brackets the "
            "median over ours: a search over our search, a call over our call, a construction over "
            "our construction.",
            "",
            markdown(as_matrix(table)),
            "",
            *legend,
            "- construction (all threads): edges in memory to lists ready to search; GAP's Build "
            "Time, on its own edges of the same kind and number. No peer but GAP is timed for it",
            f"- *: one search from the first key alone, since it took over {options.budget:g} s",
            "",
        ]
    )


def as_matrix(table: pd.DataFrame) -> pd.DataFrame:
    """Format the rows as text, one row for each graph and one column for each contestant."""
    lines: dict[str, dict[str, str]] = {}
    most = table[table.what != "construction"].groupby("graph").measurements.max()
    for row in table.itertuples():
        first = {"graph": row.graph, "vertices": f"{row.vertices}", "edges": f"{row.edges}"}
        line = lines.setdefault(row.graph, first)
        built = row.what == "construction"
        cell = f"{row.median_seconds:.3f} s" if built else f"{1e3 * row.median_seconds:.3f} ms"
        if row.contestant != "hetero_bfs":
            cell += f" ({row.ratio_to_ours:.2f}x)"
        if not built and row.measurements < most[row.graph]:
            cell += " *"
        line[f"{row.contestant} {row.what}"] = cell
    return pd.DataFrame(list(lines.values())).fillna("-")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_script(main)
