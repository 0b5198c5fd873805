"""Compare first models of this machine with its own model.

    python -m benchmarks transfer --out benchmarks/results/NAME

Engines begin with first models (training/first_model.py), each measured anew, and with this
machine's own model. They search, and correct their model. Their selectors before the first search
and after some more make the schedules that are replayed in turn (training/regret.py), on graphs of
all families. transfer.csv has a row for each graph, source and selector; transfer.md has regret by
family.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import markdown, provenance, run_script, save

from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import DeviceInfo, machine_slug
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.families import StudyGraph, families, named_graph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import host_only
from hetero_bfs.support.messages import progress
from hetero_bfs.training.first_model import measure_first_model
from hetero_bfs.training.regret import SLOWEST, in_percent, measure_graph, settle, summarise

AFTER = (8, 24, 100)
"""Numbers of searches after which an engine's selector is judged."""


def main() -> None:
    options = parse()
    info = choose_device(options.device)
    models = models_of(info, options.first_models)
    graphs = families(16) if options.graphs is None else map(named_graph, options.graphs)
    tables = []
    for graph in progress(list(graphs), "measuring regret", delay_seconds=0.0):
        tables.append(measure(graph, models, info, options))
        table = pd.concat(tables)
        save(options.out, "transfer", table, describe(table, info, options))
    print("\n".join(describe(table, info, options)))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name; by default a GPU")
    parser.add_argument(
        "--graphs", type=lambda text: text.split(","), help="by default every family, scale 16"
    )
    parser.add_argument("--sources", type=positive, default=2, help="searches of each graph")
    parser.add_argument("--rounds", type=positive, default=3, help="replays, at least")
    parser.add_argument("--first-models", type=positive, default=3, metavar="N")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    return parser.parse_args()


def models_of(info: DeviceInfo, count: int) -> dict[str, SpeedModel]:
    own, found = model_of(info), {}
    for number in range(1, 1 + count):
        first = measure_first_model(info)
        if first is not None:
            found[f"first model {number}"] = first
    if own is not None:
        found["the machine's own"] = own
    return found


def measure(
    graph: StudyGraph,
    models: dict[str, SpeedModel],
    info: DeviceInfo,
    options: argparse.Namespace,
) -> pd.DataFrame:
    lists, settings = build_search_graph(graph.make()), device_settings(info)
    with Engine(lists, host_only(), correction=False, **settings) as engine:
        selectors: dict[str, Selector] = {}
        for name, model in models.items():
            begin = model_selector("auto", model, engine.candidates)
            selectors[f"{name}: uncorrected"] = begin
            trail = list(settle(lists, begin, options.sources, AFTER[-1], settings))
            for after in AFTER:
                used = [selector for number, selector in trail if number <= after]
                selectors[f"{name}: after {after}"] = used[-1]
        rows = measure_graph(engine, graph, options.sources, options.rounds, selectors)
        return pd.DataFrame(list(rows))


def describe(table: pd.DataFrame, info: DeviceInfo, options: argparse.Namespace) -> list[str]:
    words = ["--graphs " + ",".join(options.graphs)] if options.graphs else []
    words.append(f"--first-models {options.first_models}")
    words.append(f"--sources {options.sources} --rounds {options.rounds}")
    shown = table[~table["selector"].str.startswith("fixed:")]
    return [
        f"# First models and the own model of {machine_slug(info)}",
        "",
        *provenance(info, f"python -m benchmarks transfer --out ... {' '.join(words)}"),
        "",
        "Regret by family of graphs, of `auto` by each model: uncorrected, and as an engine has "
        "corrected it after this many searches from other sources. Schedules that take more than "
        f"{SLOWEST:g} times the best are not replayed but added up from their levels.",
        "",
        markdown(in_percent(summarise(shown))),
    ]


if __name__ == "__main__":
    run_script(main)
