"""Regret of vertex programs, by graph: time of the chosen schedules over the best one's, minus 1.

    python benchmarks/program_regret.py --out benchmarks/results/NAME [--scales 14 16]

writes program_regret.csv (a row for each graph and program) and program_regret.md, after every
graph. training/program_regret.py explains the measurement and the columns. The costs that are
shipped were measured on graphs of other scales.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numba
import pandas as pd
from tables import markdown, provenance, run_script, save

from hetero_bfs.algorithms.base import RUNS_OF_AN_ENGINE
from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl.driver import choose_devices
from hetero_bfs.graph.generators.families import families
from hetero_bfs.training.program_regret import measure_program_regret, summarise_programs
from hetero_bfs.training.regret import ROUNDS

_LONGEST = 60  # characters of a schedule in the table


def main() -> None:
    options = parse()
    info = next(iter(choose_devices(options.device)), None)
    tables = []
    for graph in [graph for scale in options.scales for graph in families(scale)]:
        print(graph.name, flush=True)
        threads = numba.get_num_threads()
        tables.append(measure_program_regret([graph], info, threads, options.rounds))
        table = pd.concat(tables)
        save(options.out, "program_regret", table, describe(table, info, options))
    print(summary_text(table))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name, or cpu; by default a GPU")
    parser.add_argument("--scales", type=positive, nargs="+", default=[14, 16])
    parser.add_argument("--rounds", type=positive, default=ROUNDS, help="replays, at least")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    return parser.parse_args()


def summary_text(table: pd.DataFrame) -> str:
    found = summarise_programs(table)
    groups = {**found.pop("families"), **found.pop("programs"), **found}
    return ", ".join(f"{name} {100 * value:.1f} %" for name, value in groups.items())


def describe(
    table: pd.DataFrame, info: DeviceInfo | None, options: argparse.Namespace
) -> list[str]:
    runs = table[["graph", "program", "place"]].copy()
    runs["ms"] = [f"{1e3 * seconds:.3f}" for seconds in table["seconds"]]
    for name in ("regret", "place_regret", "first_regret", "choosing"):
        runs[name] = ["" if value != value else f"{100 * value:.1f} %" for value in table[name]]
    for name in ("schedule", "best_schedule"):
        texts = table[name].fillna("")
        runs[name] = [text if len(text) <= _LONGEST else "long" for text in texts]
    scales = " ".join(map(str, options.scales))
    words = f"python benchmarks/program_regret.py --out ... --scales {scales}"
    words += " --device cpu" * (options.device == "cpu") + f" --rounds {options.rounds}"
    return [
        "# Regret of vertex programs",
        "",
        *provenance(info, words),
        "",
        "Seconds of the schedules that the scheduler chose over the least of all schedules "
        "replayed in the same run, minus 1, as geometric means; `all` is the mean over "
        "families, `worst` the worst family. `place_regret` is the place's share, "
        "`first_regret` that of the very first run's schedule, on its place. Built-in "
        f"algorithms have one place for a run: `ms` and `regret` are means of {RUNS_OF_AN_ENGINE} "
        "runs from the first, with the seconds of opening a device, and `schedule` has their "
        "places.",
        "",
        summary_text(table),
        "",
        markdown(runs),
    ]


if __name__ == "__main__":
    run_script(main)
