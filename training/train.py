"""What `hetero-bfs train` runs: collect -> evaluate -> fit -> write the model."""

from __future__ import annotations

import datetime
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from hetero_bfs.build import SearchGraph
from hetero_bfs.devices.opencl import DeviceInfo, choose_device
from hetero_bfs.engine import Engine
from hetero_bfs.errors import DeviceError, ModelError
from hetero_bfs.files import replacing
from hetero_bfs.machine import describe_machine, machine_slug
from hetero_bfs.progress import progress
from hetero_bfs.selector import model_of
from hetero_bfs.speed_model import TRAIN_COMMAND, user_models_folder, write_model
from hetero_bfs.training.collect import (
    PAPER_PLAN,
    QUICK_PLAN,
    ROOTS_PER_GRAPH,
    Plan,
    collect,
    finished_graphs,
)
from hetero_bfs.training.compare import compare_selectors
from hetero_bfs.training.energy import add_watts, compare_under_aims, measure_watts, open_meters
from hetero_bfs.training.evaluate import evaluate
from hetero_bfs.training.fit import fit
from hetero_bfs.training.measure import REPEATS
from hetero_bfs.training.tune import plan_for, tune
from hetero_bfs.tuning import Tuning, read_tuning


def run_training(
    quick: bool = False,
    device: str | None = None,
    devices: str = "all",
    out: Path | None = None,
    power_log: Path | None = None,
) -> int:
    """Train this machine's speed model; returns the exit status.

    Parameters
    ----------
    quick : bool
        Nine graphs instead of the paper's 80.
    device, devices
        As for `Engine`.
    out : Path, optional
        Folder of model and samples, by default where the other commands look for models.
    power_log : Path, optional
        The log of an external meter, which must be in writing while this runs.
    """
    plan = QUICK_PLAN if quick else PAPER_PLAN
    info = _device(device, devices)
    name = machine_slug(info)
    folder = user_models_folder() if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    samples_path = folder / f"{name}.{'quick' if quick else 'full'}.samples.csv"
    model_path = folder / f"{name}.json"

    metering, missing = open_meters(info, power_log)
    tuning = None if info is None else _tuning(info, quick, samples_path)
    samples = _collect_all(plan, samples_path, info, tuning)
    scores = evaluate(samples)
    about: dict[str, Any] = {
        "machine": describe_machine(info),
        "date": datetime.date.today().isoformat(),
        "command": f"hetero-bfs train{' --quick' if quick else ''}",
        "plan": {"scales": plan.scales, "graphs_per_scale": plan.per_scale},
        "samples": len(samples),
        "roots_per_graph": ROOTS_PER_GRAPH,
        "repeats": REPEATS,
        "cross_validation": scores,
    }
    model = fit(samples, name, about, tuning)
    if metering is not None:
        model = replace(model, power=measure_watts(info, quick, tuning, metering, missing))
    if model_path.exists():
        model_path.replace(folder / f"{name}.json.previous")
    write_model(model, model_path)
    if out is None:  # else nobody would find the model
        whole = compare_selectors(info, quick)
        model = replace(model, auto=whole["auto"], about=about | {"whole_searches": whole})
        write_model(model, model_path)
        _report_whole(whole)
        if metering is not None and model.power is not None:
            write_model(compare_under_aims(model, info, quick, metering), model_path)
    _report(model_path, samples_path, len(samples), scores)
    return 0


def run_power_training(
    quick: bool = False,
    device: str | None = None,
    devices: str = "all",
    power_log: Path | None = None,
) -> int:
    """Measure the watts of this machine's strategies and add them to its model.

    Parameters are those of `run_training`; returns the exit status.

    Raises
    ------
    ModelError
        There is no model of this machine.
    MeterError
        Nothing can be metered.
    """
    info = _device(device, devices)
    model = model_of(info)
    if model is None or model.name != machine_slug(info):
        raise ModelError(
            f"no speed model for this machine ({machine_slug(info)}) to add watts to; "
            f"train one with `{TRAIN_COMMAND}`"
        )
    folder = user_models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{model.name}.json"
    add_watts(model, info, quick, power_log, path)
    print(f"model    {path}")
    return 0


def _report_whole(whole: dict[str, Any]) -> None:
    for kind, by_selector in whole["seconds"].items():
        print(f"milliseconds of a whole search of {kind} graphs; the fastest becomes `auto`:")
        for name, values in by_selector.items():
            print(f"  {name:<26} " + ", ".join(f"{1e3 * value:.3f}" for value in values))
        print(f"  auto: {json.dumps(whole['auto'][kind])}")


def _device(device: str | None, devices: str) -> DeviceInfo | None:
    if devices == "cpu":
        return None
    try:
        return choose_device(device)
    except DeviceError as error:
        if device is not None:
            raise
        print(f"note: training the CPU only: {error}", file=sys.stderr)
        return None


def _tuning(info: DeviceInfo, quick: bool, samples_path: Path) -> Tuning:
    """Return how to compile and launch the device's kernels: measured, or as samples have it."""
    path = samples_path.with_suffix(".tuning.json")
    if finished_graphs(samples_path) and path.exists():
        return read_tuning(json.loads(path.read_text()))
    tuning = _tune(info, quick)
    with replacing(path) as stream:
        stream.write(json.dumps(tuning.to_json(), indent=1) + "\n")
    return tuning


def _tune(info: DeviceInfo, quick: bool) -> Tuning:
    plan = plan_for(info, quick)
    total = 1 + sum(len(values) for _, values in plan.values)
    *_, best = progress(tune(info, plan), "tuning the kernels", total, delay_seconds=0.0)
    return best


def _collect_all(
    plan: Plan, path: Path, info: DeviceInfo | None, tuning: Tuning | None
) -> pd.DataFrame:
    """Collect what is missing; a finished collection is kept aside and begun anew."""
    total = len(plan.graphs())
    done = finished_graphs(path)
    if done >= total:
        path.rename(path.with_suffix(".previous.csv"))
        done = 0
    elif done:
        print(f"going on after graph {done} of {total} in {path}", file=sys.stderr)

    def open_engine(graph: SearchGraph) -> Engine:
        wanted = None if info is None else str(info.index)
        kind = "cpu" if info is None else "all"
        return Engine(graph, selector="fixed:TC", device=wanted, devices=kind, tuning=tuning)

    steps = collect(plan, path, open_engine, done)
    for _ in progress(steps, "measuring graphs", total=total - done, delay_seconds=0.0):
        pass
    return pd.read_csv(path)


def _report(model_path: Path, samples_path: Path, count: int, scores: dict[str, Any]) -> None:
    print(f"model    {model_path}\nsamples  {samples_path} ({count} rows)")
    print("on graphs kept apart (cross-validation), over the best strategy at every level:")
    for name, excess in sorted(scores["excess"].items(), key=lambda item: item[1]):
        print(f"  {name:<10} +{100 * excess:.1f} %")
    print("median relative error of the predicted seconds:")
    for name, error in scores["median_relative_error"].items():
        print(f"  {name:<10} {100 * error:.0f} %")
