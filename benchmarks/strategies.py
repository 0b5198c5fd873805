"""Compare the five strategies and the selectors, and give the paper's Table 5 for this machine.

    python benchmarks/strategies.py --scale 20 --out benchmarks/results/NAME

writes NAME-searches.csv (whole searches by strategy and selector: interleaved, medians over keys
and rounds), NAME-levels.csv (seconds of each strategy at each level of one search, all from the
same state: Zhang et al. 2018, Table 5) and NAME.md (both as tables, with machine and versions).
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hetero_bfs as hb
from hetero_bfs.build import build_search_graph
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.files import replacing
from hetero_bfs.kronecker import search_keys
from hetero_bfs.machine import describe_machine
from hetero_bfs.statistics import teps_statistics
from hetero_bfs.strategy import STRATEGIES
from hetero_bfs.training.measure import measure_search

SELECTORS = ("alpha-beta", "daga", "average", "learned")


def main() -> None:
    options = parse()
    edges = hb.KroneckerEdges(options.scale).materialise()
    graph = build_search_graph(edges)
    keys = search_keys(graph.num_vertices, graph.is_isolated, options.keys)
    with hb.Engine(graph, selector="fixed:TC", device=options.device) as engine:
        nedge = validate_once(engine, edges, keys)
        searches = compare(engine, keys, nedge, options.rounds)
        levels = table5(engine, keys[0])
        machine = describe_machine(engine.device_info)
    for suffix, table in (("searches", searches), ("levels", levels)):
        with replacing(options.out.with_name(f"{options.out.name}-{suffix}.csv")) as stream:
            table.to_csv(stream, index=False, float_format="%.9g")
    with replacing(options.out.with_name(f"{options.out.name}.md")) as stream:
        stream.write(describe(options, machine, searches, levels, keys[0]))
    print(searches.to_string(index=False))
    print(levels.to_string(index=False))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--keys", type=int, default=16, help="search keys")
    parser.add_argument("--rounds", type=int, default=3, help="times each key is searched")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, required=True, help="path and prefix of the results")
    return parser.parse_args()


def validate_once(engine: hb.Engine, edges: Any, keys: list[int]) -> dict[int, int]:
    """Validate every way of searching on every key before anything is timed."""
    nedge: dict[int, int] = {}
    for name in ways(engine):
        engine.set_selector(name)
        for key in keys[:4]:
            result = engine.bfs(key)
            outcome = hb.validate(edges, key, result.parent, result.level)
            if not outcome.valid:
                sys.exit(f"{name}: {outcome.message}")
    for key in keys:
        nedge[key] = engine.bfs(key).nedge
    return nedge


def ways(engine: hb.Engine) -> list[str]:
    """List strategies alone and the selectors that this machine can run."""
    names = [f"fixed:{s.name}" for s in engine.candidates]
    for selector in SELECTORS:
        try:
            engine.set_selector(selector)
        except HeteroBFSError as error:
            print(f"{selector} skipped: {error}", file=sys.stderr)
        else:
            names.append(selector)
    return names


def compare(engine: hb.Engine, keys: list[int], nedge: dict[int, int], rounds: int) -> pd.DataFrame:
    """Time whole searches, every way in turn for every key, so that drift hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in ways(engine)}
    searched: list[int] = []
    for _ in range(rounds):
        for key in keys:
            searched.append(key)
            for name in times:
                engine.set_selector(name)
                times[name].append(engine.search(key).seconds)
    counts = [nedge[key] for key in searched]
    best = min(float(np.median(v)) for v in times.values())
    rows = []
    for name, seconds in times.items():
        teps = teps_statistics(seconds, counts)
        rows.append(
            {
                "selector": name,
                "median_seconds": np.median(seconds),
                "harmonic_mean_gteps": teps["harmonic_mean_TEPS"] / 1e9,
                "over_best_median": np.median(seconds) / best,
                "searches": len(seconds),
            }
        )
    return pd.DataFrame(rows)


def table5(engine: hb.Engine, key: int) -> pd.DataFrame:
    """Measure every strategy at every level of one search, from the same state."""
    root = int(engine.graph.relabelling.new_of_old[key])
    rows: dict[int, dict[str, Any]] = {}
    for features, measured, seconds, _ in measure_search(engine, root):
        row = rows.setdefault(
            features.level,
            {
                "level": features.level,
                "frontier_vertices": features.frontier_vertices,
                "frontier_edges": features.frontier_edges,
                "unvisited_vertices": features.unvisited_vertices,
            },
        )
        if measured in STRATEGIES:
            row[f"{measured}_seconds"] = seconds
    table = pd.DataFrame(rows.values())
    measured_columns = [c for c in table.columns if c.endswith("_seconds")]
    table["fastest"] = [c.removesuffix("_seconds") for c in table[measured_columns].idxmin(axis=1)]
    return table


def describe(
    options: argparse.Namespace,
    machine: dict[str, Any],
    searches: pd.DataFrame,
    levels: pd.DataFrame,
    key: int,
) -> str:
    device = machine["device"] or {"name": "none", "driver": "-"}
    shown = searches.copy()
    shown["median_seconds"] = [f"{1e3 * s:.3f} ms" for s in shown["median_seconds"]]
    shown["harmonic_mean_gteps"] = [f"{g:.3f}" for g in shown["harmonic_mean_gteps"]]
    shown["over_best_median"] = [f"{r:.2f}x" for r in shown["over_best_median"]]
    shown.columns = ["selector", "median", "harmonic mean GTEPS", "over best", "searches"]
    table = levels.copy()
    for column in [c for c in table.columns if c.endswith("_seconds")]:
        table[column] = [f"{1e3 * s:.3f}" for s in table[column]]
        table = table.rename(columns={column: column.replace("_seconds", " ms")})
    return "\n".join(
        [
            f"# Strategies and selectors, Kronecker scale {options.scale}, edgefactor 16",
            "",
            f"- machine: {machine['cpu']}, {machine['threads']} threads; {device['name']}, "
            f"driver {device['driver']}",
            f"- versions: Python {machine['python']}, Numba {machine['numba']}, "
            f"commit {machine['commit']}, {datetime.date.today().isoformat()}",
            f"- command: `python benchmarks/strategies.py --scale {options.scale} "
            f"--keys {options.keys} --rounds {options.rounds} --out ...`",
            "",
            "Whole searches, from the key to the complete parent array, all ways in turn:",
            "",
            markdown(shown),
            "",
            f"Milliseconds of each strategy at each level of the search from {key}, all from the "
            "same state (the paper's Table 5):",
            "",
            markdown(table),
            "",
        ]
    )


def markdown(table: pd.DataFrame) -> str:
    """Format a table as Markdown."""
    lines = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    lines += ["| " + " | ".join(str(v) for v in row) + " |" for row in table.to_numpy()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
