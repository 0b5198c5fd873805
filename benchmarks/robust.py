"""The cost of a model that mispredicts, with and without correction.

    python benchmarks/robust.py --graphs kronecker18,grid512 --out benchmarks/results/NAME

spoils this machine's speed model: the seconds of each strategy and each migration times 10 and
divided by 10, then all of them at random. Each spoiled model searches from the same keys as
Beamer's rule (on the device, and on the host only), one after another. The first search counts,
too. The time of the probes, when the engine opens, is listed separately. Writes robust.csv (a row
for each graph and spoiled model) and robust.md (as a table, with machine and versions).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import markdown, provenance, run_script

import hetero_bfs as hb
from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.generators.kronecker import search_keys
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import device_settings
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.selectors import Selector, alpha_beta
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.support.files import replacing
from hetero_bfs.support.messages import progress

Factors = dict[str, float]
Row = dict[str, Any]
TIMES = 10.0
_MIGRATIONS = ("start", "switch", "convert")


def main() -> None:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    info: DeviceInfo | None = None
    for name in options.graphs:
        graph = build_search_graph(named_graph(name).make())
        keys = search_keys(graph.num_vertices, graph.is_isolated, options.keys)
        with hb.Engine(graph, selector="alpha-beta", device=options.device) as engine:
            info = engine.device_info
            model = model_of(engine.device_info)
            if model is None:
                raise HeteroBFSError(
                    "no speed model of this machine; run `hetero-bfs train --quick`"
                )
            rows += measure(Path(name).name, engine, model, keys, options)
        write(pd.DataFrame(rows), info, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name; by default a GPU")
    parser.add_argument(
        "--graphs",
        type=lambda text: text.split(","),
        default=["kronecker18"],
        help="kronecker18, grid512 and files, with commas (default kronecker18)",
    )
    parser.add_argument("--keys", type=positive, default=32, help="search keys (default 32)")
    parser.add_argument("--random", type=int, default=10, help="models spoiled at random")
    parser.add_argument("--seed", type=int, default=5, help="of the random models")
    parser.add_argument(
        "--uncorrected-keys", type=int, default=4, help="keys without correction; 0: none"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    return parser.parse_args()


def spoilings(names: list[str], count: int, seed: int) -> dict[str, Factors]:
    """Return cases of factors: none, one strategy or migration at a time, all at random."""
    found: dict[str, Factors] = {"nothing": {}}
    for name in names:
        found[f"{name} x{TIMES:g}"] = {name: TIMES}
        found[f"{name} /{TIMES:g}"] = {name: 1 / TIMES}
    random = np.random.default_rng(seed)
    for number in range(count):
        powers = random.integers(-1, 2, len(names))
        found[f"random {number}"] = {
            name: TIMES ** int(power) for name, power in zip(names, powers, strict=True)
        }
    return found


def times(linear: Linear, factor: float) -> Linear:
    """Return a formula of `factor` times the seconds."""
    return replace(linear, coefficients=tuple(factor * value for value in linear.coefficients))


def spoil(model: SpeedModel, factors: Factors) -> SpeedModel:
    """Return the model with the seconds of strategies and migrations times factors."""

    def scaled(table: Any, prefix: str) -> Any:
        return {
            name: times(linear, factors.get(f"{prefix}{name}", 1.0))
            for name, linear in table.items()
        }

    migrations = {what: scaled(getattr(model, what), f"{what} ") for what in _MIGRATIONS}
    small = None if model.learned_small is None else scaled(model.learned_small, "")
    return replace(model, learned=scaled(model.learned, ""), learned_small=small, **migrations)


def measure(
    name: str, engine: hb.Engine, model: SpeedModel, keys: list[int], options: argparse.Namespace
) -> list[Row]:
    """Search by each spoiled model and by Beamer's rule, in turn."""
    things = [s.name for s in engine.candidates]
    things += [f"{what} {kind}" for what in _MIGRATIONS for kind in getattr(model, what)]
    rules = {"device": alpha_beta(engine.device_info, engine.candidates)}
    rules["cpu"] = alpha_beta(engine.device_info, engine.candidates, where="cpu")
    if engine.device_info is None:
        del rules["device"]
    started = time.perf_counter()
    engine.set_selector(model_selector("learned", model, engine.candidates))
    probing = time.perf_counter() - started
    rows = []
    cases = spoilings(things, options.random, options.seed)
    settings = device_settings(engine.device_info)
    uncorrected = hb.Engine(engine.graph, correction=False, **settings)
    for what, factors in progress(cases.items(), f"spoiling for {name}", len(cases)):
        spoiled = model_selector("learned", spoil(model, factors), engine.candidates)
        row: Row = {"graph": name, "spoiled": what, "keys": len(keys), "probing_seconds": probing}
        for where, rule in rules.items():
            row[f"alpha_beta_{where}_seconds"] = sum(run(engine, rule, keys))
        seconds = run(engine, spoiled, keys)
        row["corrected_seconds"] = sum(seconds)
        row["first_seconds"] = seconds[0]
        row["factors"] = " ".join(f"{n}:{f:.3g}" for n, f in engine.corrections.items())
        few = keys[: options.uncorrected_keys]
        alone = run(uncorrected, spoiled, few) if few else [float("nan")]
        row["uncorrected_seconds"] = len(keys) * float(np.mean(alone))
        for where in rules:
            row[f"over_alpha_beta_{where}"] = (
                row["corrected_seconds"] / row[f"alpha_beta_{where}_seconds"]
            )
        rows.append(row)
    uncorrected.close()
    return rows


def run(engine: hb.Engine, selector: Selector, keys: list[int]) -> list[float]:
    engine.set_selector(selector)
    return [engine.search(key).seconds for key in keys]


def write(rows: pd.DataFrame, info: DeviceInfo | None, options: argparse.Namespace) -> None:
    with replacing(options.out / "robust.csv") as stream:
        rows.to_csv(stream, index=False, float_format="%.9g")
    with replacing(options.out / "robust.md") as stream:
        stream.write(describe(rows, info, options))
    print(rows.drop(columns=["factors", "probing_seconds"]).to_string(index=False), flush=True)


def describe(rows: pd.DataFrame, info: DeviceInfo | None, options: argparse.Namespace) -> str:
    names = ",".join(Path(name).name for name in options.graphs)
    over = [column for column in rows if column.startswith("over_alpha_beta")]
    shown = rows[["graph", "spoiled"]].copy()
    for column in rows:
        if column.endswith("_seconds") and column != "probing_seconds":
            label = column.removesuffix("_seconds").replace("_", " ")
            shown[f"{label} ms"] = [f"{1e3 * s:.2f}" for s in rows[column]]
    for column in over:
        shown[column.replace("_", " ")] = [f"{r:.2f}x" for r in rows[column]]
    worst = [
        f"- {graph}: at most "
        + ", ".join(f"{part[c].max():.2f}x alpha-beta ({c.rsplit('_', 1)[1]})" for c in over)
        + f"; probes at the engine's start {1e3 * part['probing_seconds'].iloc[0]:.1f} ms"
        for graph, part in rows.groupby("graph", sort=False)
    ]
    return "\n".join(
        [
            "# A model that mispredicts by 10, corrected by measured level times",
            "",
            *provenance(
                info,
                f"python benchmarks/robust.py --graphs {names} --keys {options.keys} "
                f"--random {options.random} --seed {options.seed} "
                f"--uncorrected-keys {options.uncorrected_keys} --out ...",
            ),
            *worst,
            "",
            f"Milliseconds of {options.keys} searches together, from the first on; `first` is the "
            f"first of them alone, `uncorrected` the mean of {options.uncorrected_keys} times "
            "as many:",
            "",
            markdown(shown),
            "",
        ]
    )


if __name__ == "__main__":
    run_script(main)
