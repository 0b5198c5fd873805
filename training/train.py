"""Runs `hetero-bfs train`, from tuning to the table of regret."""

from __future__ import annotations

import datetime
import json
import math
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numba
import pandas as pd

from hetero_bfs import __version__
from hetero_bfs.devices.machine import (
    DeviceInfo,
    Tuning,
    describe_machine,
    machine_slug,
    read_tuning,
)
from hetero_bfs.devices.opencl.verdicts import Family, is_off, kept_verdict
from hetero_bfs.engine.engine import Engine
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.graph.generators.families import StudyGraph, named_graph, study_graphs
from hetero_bfs.options import EngineOptions, device_settings
from hetero_bfs.scheduling.model_files import (
    MODELS_VARIABLE,
    UNREADABLE,
    similar_model,
    user_models_folder,
    write_model,
)
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.speed_model import CostTable, RunTable, SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES, host_only
from hetero_bfs.support.files import check_new_entry, replacing
from hetero_bfs.support.messages import announce, number_of, progress
from hetero_bfs.training.budget import Budget, announce_limit
from hetero_bfs.training.collect import (
    PAPER_PLAN,
    QUICK_PLAN,
    SOURCES_PER_GRAPH,
    Plan,
    collect,
    finished_graphs,
)
from hetero_bfs.training.fit import evaluate, fit
from hetero_bfs.training.measure import REPEATS
from hetero_bfs.training.measured_runs import (
    fit_algorithms,
    fit_programs,
    graphs_for,
    measure_algorithms,
    measure_programs,
)
from hetero_bfs.training.program_regret import measure_program_regret, summarise_programs
from hetero_bfs.training.regret import in_percent, measure_regret, summarise
from hetero_bfs.training.tune import borrowed_tuning, plan_for, tune

QUICK_SECONDS = 105.0
"""Seconds of a quick training by default."""

_SHARES = {"tuning": 0.15, "graphs": 0.55, "programs": 0.1}
_REGRET_SHARES = {"regret": 0.15, "program_regret": 0.05}
_REGRET_SOURCES = 2
_PROGRAM_SCALE = 14
"""Scale of the graphs on which the regret of programs is measured: no plan measures costs there."""

_TESTED: tuple[Family, ...] = (
    "vertex programs",
    "float32 paths",
    "components",
    "colouring",
    "PageRank",
)
"""The kernels of programs and algorithms."""

_TESTING_SECONDS = 90.0
"""The seconds to compile and test these kernels on two cores with PoCL."""

_LEAST_GRAPHS = 8
"""Costs of programs and algorithms are not fitted to fewer graphs: some have six numbers."""


def run_training(
    quick: bool = False,
    engine: EngineOptions | None = None,
    out: Path | None = None,
    budget_seconds: float | None = None,
) -> int:
    """Train this machine's speed model; return the exit status.

    quick : 27 graphs instead of 152 (with the 80 of the paper)
    engine : the device to train; all other settings are ignored
    out : folder of model and samples; by default the one in which the other commands look for
        models
    budget_seconds : the training ends about then, with a model of its measurements; by default
        `QUICK_SECONDS` if `quick`, else when all is measured
    """
    command = f"hetero-bfs train{' --quick' if quick else ''}"
    if budget_seconds is not None:
        command += f" --budget {budget_seconds:g}"
    elif quick:
        budget_seconds = QUICK_SECONDS
    plan = QUICK_PLAN if quick else PAPER_PLAN
    devices, missing = (engine or EngineOptions()).find_devices(most=1)
    for note in missing:
        print(f"note: {note}", file=sys.stderr)
    info = devices[0] if devices else None
    name = machine_slug(info)
    folder = make_folder(out)
    samples_path = folder / f"{name}.{'quick' if quick else 'full'}.samples.csv"
    model_path = folder / f"{name}.json"

    growing = samples_path.with_suffix(".partial.csv")
    found = folder.resolve() == user_models_folder().resolve()  # whether commands find the model
    budget = Budget(budget_seconds, **_SHARES, **(_REGRET_SHARES if found else {}))
    done = _begin(plan, growing)
    if not found:
        print(
            "note: regret is not measured, since no command looks for "
            f"models in that folder; leave out --out, or set {MODELS_VARIABLE} to it",
            file=sys.stderr,
        )
    _announce_length(budget_seconds, plan, len(done))
    tuning = None if info is None else _tuning(info, quick, growing, budget)
    samples = _collect_all(plan, done, growing, info, tuning, budget)
    scores = evaluate(samples)
    about = about_model(info, command, samples) | {
        "plan": asdict(plan),
        "roots_per_graph": SOURCES_PER_GRAPH,
        "repeats": REPEATS,
        "cross_validation": scores,
    }
    model = fit(samples, name, about, tuning)
    if plan.program_scales:
        programs, algorithms = _train_whole_runs(plan, info, budget)
        model = replace(model, programs=programs, algorithms=algorithms)
    if model.programs is None:
        model = _with_costs_of(model_of(info), model)
    if model_path.exists():
        shutil.copyfile(model_path, model_path.with_name(f"{model_path.name}.previous"))
    write_model(model, model_path)
    _report(model_path, scores)
    if found:
        model = _add_regret(model, model_path, info, budget)
        has_costs = bool(plan.program_scales) and model.programs is not None
        if has_costs and _has_time_for_programs(info, budget):
            _add_program_regret(model, model_path, info, budget)
    _finish(growing, samples_path)
    print(f"samples  {samples_path} ({len(samples)} rows)")
    return 0


def _announce_length(budget_seconds: float | None, plan: Plan, done: int) -> None:
    num_graphs = len(plan.graphs()) - done
    if budget_seconds is not None:
        announce_limit(budget_seconds, num_graphs)
        return
    graphs = number_of(num_graphs, "graph")
    announce(f"measuring {graphs}, then the regret on others; --budget SECONDS ends it earlier")


def _with_costs_of(known: SpeedModel | None, model: SpeedModel) -> SpeedModel:
    """Return a model with the costs of programs and algorithms of this machine's former model."""
    if known is None or known.programs is None:
        return model
    origin = {name: known.about.get(name, known.origin) for name in ("programs", "algorithms")}
    announce(f"costs of programs and algorithms are from {known.origin_text}")
    return replace(
        model,
        programs=known.programs,
        algorithms=known.algorithms,
        about={**model.about, **origin},
    )


def _train_whole_runs(
    plan: Plan, info: DeviceInfo | None, budget: Budget
) -> tuple[CostTable | None, RunTable | None]:
    """None if there was no time to measure enough graphs."""
    if budget.seconds_left == 0.0:
        return None, None
    if not _has_time_for_programs(info, budget):
        announce(
            "programs and algorithms are left out: testing their kernels may take "
            f"{_TESTING_SECONDS:.0f} s; `hetero-bfs doctor --retest` does so beforehand"
        )
        return None, None
    threads = numba.get_num_threads()
    compiling = "compiling and testing programs and algorithms"
    one = [named_graph("kronecker8")]
    for graph in progress(one, compiling, 1, delay_seconds=0.0):  # prints lines meanwhile
        _measure_whole_runs(graph, info, threads)
    graphs, what = graphs_for(info, plan.program_scales), "measuring programs and algorithms"
    measured = [
        _measure_whole_runs(graph, info, threads)
        for graph in budget.within("programs", graphs, what, len(graphs))
    ]
    if len(measured) < _LEAST_GRAPHS:
        announce(f"{what}: too few graphs to fit costs")
        return None, None
    return _fit_whole_runs(measured)


def _has_time_for_programs(info: DeviceInfo | None, budget: Budget) -> bool:
    is_tested = info is None or is_off() or all(kept_verdict(info, one) for one in _TESTED)
    return is_tested or budget.seconds_left is None or budget.seconds_left > _TESTING_SECONDS


def _measure_whole_runs(
    graph: StudyGraph, info: DeviceInfo | None, threads: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    return measure_programs([graph], info, threads), measure_algorithms([graph], info, threads)


def _fit_whole_runs(
    measured: Sequence[tuple[pd.DataFrame, pd.DataFrame]],
) -> tuple[CostTable, RunTable]:
    programs, algorithms = (pd.concat(tables) for tables in zip(*measured, strict=True))
    return fit_programs(programs), fit_algorithms(algorithms)


def about_model(info: DeviceInfo | None, command: str, samples: pd.DataFrame) -> dict[str, Any]:
    return {
        "version": __version__,
        "machine": describe_machine(info),
        "date": datetime.date.today().isoformat(),
        "command": command,
        "features": {name: list(strategy.columns) for name, strategy in STRATEGIES.items()},
        "samples": len(samples),
    }


def make_folder(out: Path | None) -> Path:
    """Without `out` it is this user's folder."""
    folder = user_models_folder() if out is None else out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_new_entry(folder / "model")
    except OSError as error:
        remedy = f"set {MODELS_VARIABLE} to" if out is None else "name"
        raise HeteroBFSError(
            f"{folder} is not a folder for models: {error.strerror}; {remedy} another one"
        ) from error
    return folder


def _add_regret(
    model: SpeedModel, path: Path, info: DeviceInfo | None, budget: Budget
) -> SpeedModel:
    """Selectors find the model at `path`."""
    apart = study_graphs("quick", info is not None and info.type == "GPU")
    some = budget.within("regret", apart, "measuring regret", len(apart), at_least=0)
    table = measure_regret(some, info, _REGRET_SOURCES)
    if table.empty:
        return model
    summary = summarise(table)
    kept = {
        str(config): {name: _rounded(value) for name, value in row.items()}
        for config, row in summary.to_dict("index").items()
    }
    model = replace(model, about={**model.about, "regret": kept})
    write_model(model, path)
    print("time over the best schedule's, minus 1, on graphs kept apart (training/regret.py):")
    print(in_percent(summary).to_string(index=False))
    return model


def _add_program_regret(
    model: SpeedModel, path: Path, info: DeviceInfo | None, budget: Budget
) -> None:
    """Programs find the model at `path`."""
    graphs = graphs_for(info, [_PROGRAM_SCALE])
    some = budget.within(
        "program_regret", graphs, "measuring regret of programs", len(graphs), at_least=0
    )
    table = measure_program_regret(some, info, numba.get_num_threads())
    if table.empty:
        return
    found = summarise_programs(table)
    kept = _rounded_all(found)
    write_model(replace(model, about={**model.about, "program_regret": kept}), path)
    print("the same for vertex programs (training/program_regret.py):")
    for what in ("families", "programs"):
        rows = (f"{name} {100 * value:.1f} %" for name, value in found[what].items())
        print(f"  {what}: {', '.join(rows)}")
    print(
        f"  all: {100 * found['all']:.1f} %; choosing takes {100 * found['choosing']:.1f} % of runs"
    )


def _rounded_all(found: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _rounded_all(value) if isinstance(value, dict) else _rounded(value)
        for name, value in found.items()
    }


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.3g}")


def _tuning(info: DeviceInfo, quick: bool, samples_path: Path, budget: Budget) -> Tuning:
    path = _tuning_path(samples_path)
    if finished_graphs(samples_path) and path.exists():
        try:
            return read_tuning(json.loads(path.read_text()))
        except UNREADABLE as error:
            raise HeteroBFSError(
                f"{path} is damaged ({error}); move it and {samples_path.name} away to train "
                "from the start"
            ) from error
    tuning = _tune(info, quick, budget)
    with replacing(path) as stream:
        stream.write(json.dumps(tuning.to_json(), indent=1) + "\n")
    return tuning


def _tuning_path(samples_path: Path) -> Path:
    return samples_path.with_suffix(".tuning.json")


def _tune(info: DeviceInfo, quick: bool, budget: Budget) -> Tuning:
    start = borrowed_tuning(similar_model(info), info)
    if quick:
        return start
    plan = plan_for(info)
    steps = tune(info, plan, start)
    first = next(steps)  # it makes the graphs, which takes as long as several of the others
    *_, best = first, *budget.within("tuning", steps, "tuning the kernels", plan.steps - 1)
    return best


def _begin(plan: Plan, path: Path) -> set[int]:
    done = finished_graphs(path)
    if done:
        print(
            f"{path} has {len(done)} of {len(plan.graphs())} graphs, which are not measured again; "
            "remove that file to measure all of them",
            file=sys.stderr,
        )
    return done


def _finish(growing: Path, samples_path: Path) -> None:
    """Give the samples of a whole training their name, and keep former ones as .previous."""
    if samples_path.exists():
        samples_path.replace(samples_path.with_suffix(".previous.csv"))
    growing.replace(samples_path)
    _tuning_path(growing).unlink(missing_ok=True)  # the model has it


def _collect_all(
    plan: Plan,
    done: set[int],
    path: Path,
    info: DeviceInfo | None,
    tuning: Tuning | None,
    budget: Budget,
) -> pd.DataFrame:
    opened = partial(Engine, selector=host_only(), tuning=tuning, **device_settings(info))
    left = [(number, graph) for number, graph in enumerate(plan.graphs()) if number not in done]
    costs = [graph.cost for _, graph in left]
    for number, graph in budget.within("graphs", left, "measuring graphs", costs=costs):
        collect(number, graph, path, opened)
    return pd.read_csv(path)


def _report(model_path: Path, scores: dict[str, Any]) -> None:
    print(f"model    {model_path}")
    print("on graphs kept apart (cross-validation), over the best strategy at every level:")
    for name, excess in sorted(scores["excess"].items(), key=lambda item: item[1]):
        print(f"  {name:<10} +{100 * excess:.1f} %")
    print("median relative error of the predicted seconds:")
    for name, error in scores["median_relative_error"].items():
        print(f"  {name:<10} {100 * error:.0f} %")
