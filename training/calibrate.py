"""A model from a few measurements: `hetero-bfs train --calibrate`.

Levels of eight small graphs are measured, and the model is fitted to them as in a full training.
Tuning the device's kernels would take the longest, so the tuning comes from another machine's
model. The new model and that other model are compared on other graphs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hetero_bfs.devices.machine import DeviceInfo, Tuning, machine_slug
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import ModelError
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.search_graph import build_search_graph
from hetero_bfs.options import EngineOptions, device_settings
from hetero_bfs.scheduling.model_files import named_model, similar_model
from hetero_bfs.scheduling.schema import LARGE, SMALL
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel
from hetero_bfs.scheduling.strategies import host_only
from hetero_bfs.support.messages import progress
from hetero_bfs.training.collect import measure_graph
from hetero_bfs.training.fit import fit, is_small
from hetero_bfs.training.train import (
    about_model,
    install_model,
    make_folder,
    training_device,
)
from hetero_bfs.training.tune import borrowed_tuning

FITTED_GRAPHS = (
    *("kronecker14", "kronecker16", "kronecker17", "uniform15"),
    *("grid128", "grid256", "roads256", "tails14-8x500"),
)
JUDGED_GRAPHS = (
    *("kronecker15-45-15-25", "small-world15", "preferential15"),
    *("grid192", "roads128", "tails15-20x250"),
)
SOURCES = 2

Seconds = npt.NDArray[np.float64]

_MIGRATIONS = {"start": "start", "switch": "to", "convert": "convert"}
"""A model's tables of migrations, and their names in samples."""


def run_calibration(
    engine: EngineOptions | None = None,
    out: Path | None = None,
    source: str | None = None,
) -> int:
    """Calibrate a model for this machine, write and report it; return the exit status.

    engine : the device to calibrate for; all other settings are ignored
    out : folder of the model; by default the one in which the other commands look for models
    source : name of the model to start from; by default the shipped one of the most similar machine
    """
    started = time.perf_counter()
    info = training_device(engine)
    base = choose_base(info, source)
    name = machine_slug(info)
    folder = make_folder(out)
    print(f"calibrating {name}, starting from {base.name}: levels of {len(FITTED_GRAPHS)} graphs")
    tuning = None if info is None else borrowed_tuning(base, info)
    fitted = measure_graphs(FITTED_GRAPHS, info, tuning)
    judged = measure_graphs(JUDGED_GRAPHS, info, tuning)
    model = fit(fitted, name, {}, tuning)
    before, after = relative_errors(base, judged), relative_errors(model, judged)
    command = f"hetero-bfs train --calibrate{'' if source is None else f' --from {source}'}"
    about = about_model(info, command, fitted) | {
        "calibrated_from": base.origin,
        "probes": list(FITTED_GRAPHS),
        "seconds": round(time.perf_counter() - started, 1),
        "judged_on": list(JUDGED_GRAPHS),
        "median_relative_error": {"before": before, "after": after},
    }
    model = replace(model, about=about)
    path = folder / f"{name}.json"
    install_model(model, path)
    _report(before, after)
    print(f"model    {path} ({len(fitted)} samples, {time.perf_counter() - started:.1f} s)")
    return 0


def choose_base(info: DeviceInfo | None, source: str | None) -> SpeedModel:
    if source is not None:
        base: SpeedModel | None = named_model(source)
    else:
        base = similar_model(info)
    if base is None:
        raise ModelError("no speed model is installed to start from; train one instead")
    return base


def measure_graphs(
    names: Sequence[str], info: DeviceInfo | None, tuning: Tuning | None, sources: int = SOURCES
) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(progress(names, "measuring graphs", delay_seconds=0.0)):
        graph = named_graph(name)
        with Engine(
            build_search_graph(graph.make()), host_only(), tuning=tuning, **device_settings(info)
        ) as engine:
            rows += measure_graph(engine, number, graph, sources)
    return pd.DataFrame(rows)


def relative_errors(model: SpeedModel, samples: pd.DataFrame) -> dict[str, float]:
    """Return the median relative error of predicted seconds, by strategy or migration.

    Small levels are separate ("TC small").
    """
    migrations = {
        f"{_MIGRATIONS[w]}_{k}": m for w in _MIGRATIONS for k, m in getattr(model, w).items()
    }
    errors = {}
    for name, rows in samples.groupby("measured"):
        small = np.zeros(len(rows), np.bool_)
        if name in migrations:
            predicted = predict(migrations[name], rows)
        elif name in model.learned:
            predicted = predict_levels(model, str(name), rows)
            small = is_small(rows)
        else:
            continue
        error = np.abs(predicted / rows["seconds"].to_numpy(np.float64) - 1.0)
        for size, those in (("", ~small), (" small", small)):
            if those.any():
                errors[f"{name}{size}"] = float(f"{np.median(error[those]):.4g}")
    return errors


def predict_levels(model: SpeedModel, strategy: str, rows: pd.DataFrame) -> Seconds:
    small, large = (predict(model.predictor(strategy, size), rows) for size in (SMALL, LARGE))
    return np.where(is_small(rows), small, large)


def predict(linear: Linear, rows: pd.DataFrame) -> Seconds:
    seconds = np.zeros(len(rows))
    for name, value in zip(linear.columns, linear.coefficients, strict=True):
        seconds += value * (1.0 if name == "constant" else rows[name].to_numpy(np.float64))
    return seconds


def _report(before: Mapping[str, float], after: Mapping[str, float]) -> None:
    print("median relative error on other graphs, of the model started from and of this one:")
    print(f"  {'':<18} {'before':>8} {'after':>8}")
    for name in after:
        found = f"{100 * before[name]:.0f} %" if name in before else ""
        print(f"  {name:<18} {found:>8} {100 * after[name]:>6.0f} %")
