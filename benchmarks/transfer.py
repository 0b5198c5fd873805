"""Compare speed models of other machines on this one, and calibration.

    python benchmarks/transfer.py --out benchmarks/results/NAME

measures the graphs of `hetero-bfs train --calibrate` once. It then evaluates every shipped model,
unchanged, on the graphs that calibration does not use. It also evaluates a model fitted to the
probes, which is the result of calibration. It writes transfer.csv with a row for each model and
state: the median relative error by strategy, separately for small levels; `excess`, the
seconds of the chosen levels over those of the best strategy at each level, minus 1, without
migration; and `changed`, the share of levels at which this machine's own model chooses another
strategy. With --regret whole searches are replayed, too (training/regret.py), and
transfer-regret.csv has a row for each graph, source and model. transfer.md has all as tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import markdown, provenance, run_script, save

import hetero_bfs as hb
from hetero_bfs.cli.argument_groups import positive
from hetero_bfs.devices.machine import DeviceInfo, machine_slug
from hetero_bfs.devices.opencl.driver import choose_device
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.scheduling.model_files import shipped_models
from hetero_bfs.scheduling.model_selectors import model_selector
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.speed_model import SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES, available
from hetero_bfs.support.files import replacing
from hetero_bfs.support.messages import progress
from hetero_bfs.training.calibrate import (
    FITTED_GRAPHS,
    JUDGED_GRAPHS,
    measure_graphs,
    predict_levels,
    relative_errors,
)
from hetero_bfs.training.fit import fit
from hetero_bfs.training.regret import measure_graph, summarise

Models = dict[tuple[str, str], SpeedModel]
_LEVEL = ["graph", "root", "level"]
_ERRORS = (*STRATEGIES, *(f"{name} small" for name in STRATEGIES))


def main() -> None:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    info = choose_device(options.device)
    own = model_of(info)
    tuning = None if own is None else own.tuning
    fitted = measure_graphs(FITTED_GRAPHS, info, tuning)
    judged = measure_graphs(JUDGED_GRAPHS, info, tuning)
    models = dict(states(fitted))
    if own is not None:
        models["of this machine", "own"] = own
    rows = pd.DataFrame(list(judge(models, own, judged)))
    regret = measure_regret(models, info, options) if options.regret else pd.DataFrame()
    if not regret.empty:
        with replacing(options.out / "transfer-regret.csv") as stream:
            regret.to_csv(stream, index=False, float_format="%.9g")
    lines = describe(rows, regret, info, options)
    save(options.out, "transfer", rows, lines)
    print("\n".join(lines))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="index or part of the name; by default a GPU")
    parser.add_argument("--regret", action="store_true", help="replay whole searches too")
    parser.add_argument("--graphs", type=lambda text: text.split(","), default=list(JUDGED_GRAPHS))
    parser.add_argument("--rounds", type=positive, default=5, help="replays of each schedule")
    parser.add_argument("--sources", type=positive, default=1, help="searches of each graph")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="for the results")
    return parser.parse_args()


def states(fitted: pd.DataFrame) -> Iterator[tuple[tuple[str, str], SpeedModel]]:
    """Yield every shipped model unchanged, and one fitted to the probes."""
    for model in shipped_models():
        if not model.lacking(available(True)):
            yield (model.name, "as it is"), model
    yield ("none", "fitted to the probes"), fit(fitted, "probes", {})


def judge(models: Models, own: SpeedModel | None, samples: pd.DataFrame) -> Iterator[Any]:
    """Yield errors and choices of each model on samples."""
    measured = samples[samples["measured"].isin(list(STRATEGIES))]
    seconds = measured.pivot(index=_LEVEL, columns="measured", values="seconds")
    chosen = {key: choices(model, measured) for key, model in models.items()}
    mine = None if own is None else choices(own, measured)
    for (name, state), model in models.items():
        errors = relative_errors(model, samples)
        picked = chosen[name, state]
        taken = sum(seconds.loc[level, strategy] for level, strategy in picked.items())
        yield {
            "model": name,
            "state": state,
            **{f"{s}_error": errors[s] for s in _ERRORS if s in errors},
            "excess": taken / seconds.min(axis=1).sum() - 1.0,
            "changed": float("nan") if mine is None else float((picked != mine).mean()),
        }


def choices(model: SpeedModel, measured: pd.DataFrame) -> pd.Series[str]:
    parts = [
        rows.assign(predicted=predict_levels(model, str(name), rows))
        for name, rows in measured.groupby("measured")
    ]
    table = pd.concat(parts).pivot(index=_LEVEL, columns="measured", values="predicted")
    return table.idxmin(axis=1)


def measure_regret(models: Models, info: DeviceInfo, options: argparse.Namespace) -> pd.DataFrame:
    """Replay whole searches by each model, uncorrected."""
    rows: list[dict[str, Any]] = []
    for name in progress(options.graphs, "measuring regret", delay_seconds=0.0):
        graph = named_graph(name)
        with hb.Engine(
            build_search_graph(graph.make()), "fixed:TC", str(info.index), correction=False
        ) as engine:
            selectors = {
                f"{model}: {state}": model_selector("learned", made, engine.candidates)
                for (model, state), made in models.items()
            }
            rows += measure_graph(engine, graph, options.sources, options.rounds, selectors)
    return pd.DataFrame(rows)


def describe(
    rows: pd.DataFrame, regret: pd.DataFrame, info: DeviceInfo, options: argparse.Namespace
) -> list[str]:
    shown = rows.copy()
    for column in rows.columns[2:]:
        shown[column] = ["-" if np.isnan(v) else f"{100 * v:.0f} %" for v in rows[column]]
    shown.columns = [c.removesuffix("_error") for c in shown.columns]
    lines = [
        f"# Speed models of other machines on {machine_slug(info)}",
        "",
        *provenance(
            info,
            f"python benchmarks/transfer.py{' --regret' * options.regret} "
            f"--graphs {','.join(options.graphs)} --rounds {options.rounds} "
            f"--sources {options.sources} --out ...",
        ),
        f"- calibrated on {', '.join(FITTED_GRAPHS)}; judged on {', '.join(JUDGED_GRAPHS)}",
        "",
        "Median relative error of the predicted seconds by strategy, of small levels "
        "apart; `excess` of the levels as chosen over the best choice at each level; share of "
        "levels whose choice is `changed` against this machine's own model:",
        "",
        markdown(shown),
        "",
    ]
    if not regret.empty:
        table = summarise(regret)
        for column in table:
            table[column] = ["-" if np.isnan(v) else f"{100 * v:.1f} %" for v in table[column]]
        lines += [
            "Regret of whole searches (training/regret.py), uncorrected, by family of graphs:",
            "",
            markdown(table.reset_index()),
            "",
        ]
    return lines


if __name__ == "__main__":
    run_script(main)
