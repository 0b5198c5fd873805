"""Multi-source searches (`Engine.bfs_many`) beside as many single ones, in turn in one run.

    python benchmarks/multi_source.py --scale 16 18 20 --out FILE.md

All run on the CPU. A round is one turn of each; the table has
medians of the rounds, in ms for 64 searches. "single" is from the source to complete parents,
"calls" to the caller's levels by `bfs(source, want="levels")`. "levels" and "sums" are `bfs_many`,
from the call to the result.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from tables import markdown, provenance, run_script

import hetero_bfs as hb
from hetero_bfs.cli.argument_groups import positive, scale
from hetero_bfs.support.files import replacing

_SEARCHES = 64
_SEED = 1


def measure(log2_vertices: int, rounds: int) -> dict[str, float]:
    """Return the row of one Kronecker graph."""
    seconds: dict[str, list[float]] = {name: [] for name in ("single", "calls", "levels", "sums")}
    with hb.Engine(hb.kronecker(log2_vertices), device="cpu") as engine:
        degree = engine.graph.input_degree
        random = np.random.default_rng(_SEED)
        sources = random.choice(np.flatnonzero(degree), _SEARCHES, replace=False).tolist()
        for _ in range(rounds + 1):
            results = engine.bfs_back_to_back(sources)
            seconds["single"].append(sum(result.seconds for result in results))
            began = time.perf_counter()
            levels = [engine.bfs(source, want="levels").level for source in sources]
            seconds["calls"].append(time.perf_counter() - began)
            many = engine.bfs_many(sources)
            seconds["levels"].append(many.seconds)
            seconds["sums"].append(engine.bfs_many(sources, want="sums").seconds)
            assert all(np.array_equal(a, b) for a, b in zip(many.level, levels, strict=True))
            del many, levels, results
    row = {name: 1e3 * float(np.median(times[1:])) for name, times in seconds.items()}
    return {
        "scale": log2_vertices,
        **row,
        "single / sums": row["single"] / row["sums"],
        "single / levels": row["single"] / row["levels"],
        "calls / levels": row["calls"] / row["levels"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=scale, nargs="+", default=[16, 18, 20])
    parser.add_argument("--rounds", type=positive, default=9)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [measure(one, options.rounds) for one in options.scale]
    table = pd.DataFrame(rows).round(2)
    table["scale"] = table["scale"].astype(int)
    scales = " ".join(map(str, options.scale))
    command = f"python benchmarks/multi_source.py --scale {scales} --rounds {options.rounds}"
    text = "\n".join(
        [
            "# 64 multi-source searches, and one by one (ms for all 64)",
            "",
            *provenance(None, command),
            "",
            markdown(table.astype(object)),
            "",
        ]
    )
    print(text)
    with replacing(options.out) as file:
        file.write(text)


if __name__ == "__main__":
    run_script(main)
