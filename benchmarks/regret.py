"""Regret of strategies and selectors, by family of graphs: time over the best schedule's, minus 1.

    python benchmarks/regret.py --out benchmarks/results/NAME [--quick] [--graphs kronecker20,FILE]

writes regret.csv (a row for each graph, source and configuration) and regret.md (selector x family,
and the chosen schedules), after every graph. training/regret.py explains the measurement and the
columns, families.py the names of graphs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import markdown, provenance, run_script, save

from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.driver import choose_devices
from hetero_bfs.graph.generators.families import StudyGraph, named_graph, study_graphs
from hetero_bfs.training.regret import (
    ROUNDS,
    SETTLED,
    SLOWEST,
    in_percent,
    measure_regret,
    summarise,
)

_SHOWN = ("oracle", "learned", "thresholds", "auto", SETTLED, "zhang", "none")


def main() -> None:
    options = parse()
    info = next(iter(choose_devices(options.device)), None)
    tables = []
    for graph in graphs_of(options, info):
        print(graph.name, flush=True)
        tables.append(measure_regret([graph], info, options.sources, options.rounds))
        table = pd.concat(tables)
        save(options.out, "regret", table, describe(table, info, options))
    print(in_percent(summarise(table)).to_string(index=False))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name, or cpu; by default a GPU")
    parser.add_argument("--graphs", help="names and files, with commas; by default every family")
    parser.add_argument("--quick", action="store_true", help="one small graph of each kind")
    parser.add_argument("--sources", type=positive, default=4, help="searches of each graph")
    parser.add_argument("--rounds", type=positive, default=ROUNDS, help="replays, at least")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    return parser.parse_args()


def graphs_of(options: argparse.Namespace, info: DeviceInfo | None) -> list[StudyGraph]:
    if options.graphs is not None:
        return [named_graph(name) for name in options.graphs.split(",")]
    size = "quick" if options.quick else "full"
    return study_graphs(size, info is not None and info.type == "GPU")


def command(options: argparse.Namespace) -> str:
    words = ["python benchmarks/regret.py --out ..."]
    if options.graphs is not None:
        words.append("--graphs " + ",".join(Path(n).name for n in options.graphs.split(",")))
    words += ["--quick"] * options.quick + ["--device cpu"] * (options.device == "cpu")
    return " ".join([*words, f"--sources {options.sources} --rounds {options.rounds}"])


def describe(
    table: pd.DataFrame, info: DeviceInfo | None, options: argparse.Namespace
) -> list[str]:
    shown = table[table["selector"].isin(_SHOWN)]
    searches = shown[["graph", "root", "selector", "schedule"]].copy()
    searches.insert(3, "ms", [f"{1e3 * s:.3f}" for s in shown["seconds"]])
    searches.insert(4, "regret", [f"{100 * r:.1f} %" for r in shown["regret"]])
    return [
        "# Regret by selector and family of graphs",
        "",
        *provenance(info, command(options)),
        "",
        "Seconds of a configuration's schedule over the least of all schedules replayed in the "
        "same run, minus 1; geometric mean of a family's searches (`all`: of the families, "
        "`worst`: the largest). `selection` is what choosing takes of a search, beside that. "
        "`none` is the strategy that was best alone for each search. Schedules that take more "
        f"than {SLOWEST:g} times the best are not replayed but added up from their levels.",
        "",
        markdown(in_percent(summarise(table))),
        "",
        "Each search, by the selectors that matter:",
        "",
        markdown(searches),
    ]


if __name__ == "__main__":
    run_script(main)
