"""What the learned model adds to the paper's: both by regret on Kronecker graphs, in one run.

    python benchmarks/zhang.py --out benchmarks/results/NAME [--full] [--scales 14 15 16 17 18]

measures the speeds of selector zhang first, on the training set of `hetero-bfs train --quick` or,
with --full, on the paper's. The other selectors take the installed model. Writes zhang.csv, a row
for each graph, source and configuration (training/regret.py), and prints the regret.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd
from tables import provenance, run_script

from hetero_bfs.devices.opencl.driver import choose_devices
from hetero_bfs.engine.engine import Engine
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import EngineOptions, device_settings
from hetero_bfs.scheduling.model_selectors import ZhangSelector
from hetero_bfs.scheduling.selectors import Selector
from hetero_bfs.scheduling.strategies import host_only
from hetero_bfs.study.zhang import measure_speeds
from hetero_bfs.support.files import replacing
from hetero_bfs.training.collect import PAPER_PLAN, QUICK_PLAN
from hetero_bfs.training.regret import in_percent, measure_graph, summarise

_OTHERS = ("learned", "thresholds", "auto", "alpha-beta", "daga")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", type=int, nargs="+", default=[14, 15, 16, 17, 18])
    parser.add_argument("--full", action="store_true", help="the paper's training set")
    parser.add_argument("--device", help="index or part of the name, or cpu")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    options = parser.parse_args()
    info = next(iter(choose_devices(options.device)), None)
    speeds = measure_speeds(
        PAPER_PLAN if options.full else QUICK_PLAN, EngineOptions(**device_settings(info))
    )
    rows = []
    for scale in options.scales:
        graph = named_graph(f"kronecker{scale}")
        built = build_search_graph(graph.make())
        with Engine(built, host_only(), correction=False, **device_settings(info)) as engine:
            selectors: dict[str, Selector] = {"zhang": ZhangSelector(speeds, engine.candidates)}
            for name in _OTHERS:
                engine.set_selector(name)
                selectors[name] = engine.selector
            found = measure_graph(engine, graph, 4, selectors=selectors)
            rows += [{"scale": scale, **row} for row in found]
    table = pd.DataFrame(rows)
    with replacing(options.out / "zhang.csv") as stream:
        table.to_csv(stream, index=False, float_format="%.6g")
    print(
        *provenance(info, " ".join(["python benchmarks/zhang.py", *sys.argv[1:]])), speeds, sep="\n"
    )
    print(in_percent(summarise(table)).to_string(index=False))


if __name__ == "__main__":
    run_script(main)
