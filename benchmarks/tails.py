"""Measure selectors and fixed schedules on cores with tails: where CPU and GPU together win.

    python -m benchmarks tails tails20-8x500 tails22-8x1000 --device NVIDIA --out tails.csv

All engines are open at once and search in turn from the same keys. Before each turn there is a
pause, in which the threads of the last engine fall asleep. The searches of a turn follow one
another at once; each one's parents are copied to the caller. The table has milliseconds of a
search, from the source to the complete parents:

- `first`, and the median of the second to the eighth;
- of all from the ninth on, the median, the 90th percentile and the largest;
- `after a pause`, the median of the first search of each turn but the first. Code and data of the
  host have left its caches by then.

`schedule` is that of the last search. Each engine's parents of one key are validated.
`--levels FILE.csv` keeps the levels of the first contestant's search of median time on the last
graph, for a picture of it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from tables import markdown, provenance, run_script, save

import hetero_bfs as hb
from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling.trace import write_csv
from hetero_bfs.training.oracle import schedule_text

CPU, BOTH = {"device": "cpu"}, {}
CONTESTANTS = {
    "auto": (BOTH, "auto"),
    "alpha-beta, device": (BOTH, "alpha-beta"),
    "by hand, both": (BOTH, "fixed:TG,TG,BG,BG,BG,TG,TC"),
    "auto, CPU alone": (CPU, "auto"),
    "alpha-beta, CPU alone": (CPU, "alpha-beta"),
    "by hand, CPU alone": (CPU, "fixed:TC,TC,BC,BC,BC,BC,TC"),
}
WARM = 8
PAUSE_SECONDS = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+", metavar="NAME", help="such as tails22-8x1000")
    parser.add_argument("--device", help="of the contestants that use one (default: a GPU)")
    parser.add_argument("--keys", type=positive, default=8, help="search keys (default 8)")
    parser.add_argument("--rounds", type=positive, default=12, help="times each key is searched")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="keep the table, as .md too")
    parser.add_argument("--levels", type=Path, metavar="FILE.csv", help="of auto's median search")
    options = parser.parse_args()
    tables, info = [], None
    for name in options.graphs:
        edges = named_graph(name).make()
        graph = build_search_graph(edges)
        keys = search_keys(graph.num_vertices, graph.is_isolated, options.keys)
        engines = {
            contestant: hb.Engine(graph, selector, **{"device": options.device, **place})
            for contestant, (place, selector) in CONTESTANTS.items()
        }
        info = engines["auto"].device_info
        rows, typical = measure(engines, keys, options.rounds)
        for engine in engines.values():
            outcome = hb.validate(edges, keys[0], engine.bfs(keys[0]).parent)
            assert outcome.valid, outcome.message
            engine.close()
        tables.append(pd.DataFrame(rows).assign(graph=name))
        print(tables[-1].to_string(index=False), flush=True)
        if options.levels is not None:
            write_csv(options.levels, level_rows(typical))
    table = pd.concat(tables)
    table.insert(0, "graph", table.pop("graph"))
    if options.out is not None:
        command = f"python -m benchmarks tails {' '.join(options.graphs)}"
        head = ["# Cores with tails: milliseconds of a search", "", *provenance(info, command), ""]
        save(options.out.parent, options.out.stem, table, [*head, markdown(table)])


def measure(
    engines: dict[str, hb.Engine], keys: list[int], rounds: int
) -> tuple[list[dict[str, str | float]], hb.BFSResult]:
    found: dict[str, list[hb.BFSResult]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, engine in engines.items():
            time.sleep(PAUSE_SECONDS)
            turn = [engine.bfs(key) for key in keys]
            for result in turn:  # after the last search, since counting empties the caches
                result.drop_parents()
            found[name] += turn
    rows = []
    for name, results in found.items():
        taken = [1e3 * result.seconds for result in results]
        later = np.array(taken[WARM:])
        rows.append(
            {
                "contestant": name,
                "first": round(taken[0], 3),
                "second to eighth": round(float(np.median(taken[1:WARM])), 3),
                "median": round(float(np.median(later)), 3),
                "90 %": round(float(np.quantile(later, 0.9)), 3),
                "largest": round(float(later.max()), 3),
                "after a pause": round(float(np.median(taken[len(keys) :: len(keys)])), 3),
                "schedule": schedule_text([one.strategy for one in results[-1].traces])[:60],
            }
        )
    settled = sorted(found[next(iter(engines))][WARM:], key=lambda result: result.seconds)
    return rows, settled[len(settled) // 2]


def level_rows(result: hb.BFSResult) -> list[dict[str, str | float]]:
    """Return a row for each level, in microseconds; `whole` is the time of the search."""
    return [
        {
            "level": level,
            "strategy": trace.strategy,
            "vertices": trace.features.frontier_vertices,
            "us": round(1e6 * trace.seconds, 3),
            "migration us": round(1e6 * trace.transfer_seconds, 3),
            "whole us": round(1e6 * result.seconds, 1),
        }
        for level, trace in enumerate(result.traces)
    ]


if __name__ == "__main__":
    run_script(main)
