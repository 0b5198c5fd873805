"""Adapt another machine's speed model to this one: `hetero-bfs train --calibrate`.

How a strategy's seconds grow with its work differs less between machines than how fast they are. So
each strategy, and each start, switch and conversion, keeps the other model's formula, with two
factors: one for its constant part (launches, barriers) and one for all that grows with work. They
are fitted to levels of a few small graphs. Far machines differ in more than that (a GPU from a
processor that runs OpenCL): a formula whose factors predict a graph from the others clearly worse
than coefficients fitted to those alone do, is fitted to the probes alone. A start is one number,
which is taken from the probes. All is judged on other graphs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import least_squares

from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.devices.opencl.tuning import Tuning, default_tuning
from hetero_bfs.errors import ModelError
from hetero_bfs.graph.generators.families import named_graph
from hetero_bfs.graph.search_graph import (
    build_search_graph,
)
from hetero_bfs.runtime.engine import Engine
from hetero_bfs.runtime.options import EngineOptions, device_settings
from hetero_bfs.selection.model_store import (
    default_model,
    named_model,
)
from hetero_bfs.selection.schema import MOVE_COLUMNS
from hetero_bfs.selection.speed_model import (
    Linear,
    SpeedModel,
)
from hetero_bfs.selection.strategies import STRATEGIES, available, host_alone
from hetero_bfs.support.progress import progress
from hetero_bfs.training.collect import measure_graph
from hetero_bfs.training.fit import fit, fit_linear
from hetero_bfs.training.train import (
    about_model,
    install_auto,
    install_model,
    make_folder,
    training_device,
)

FITTED_GRAPHS = (
    *("kronecker14", "kronecker16", "kronecker17", "uniform15"),
    *("grid128", "grid256", "roads256"),
)
JUDGED_GRAPHS = ("kronecker15-45-15-25", "small-world15", "preferential15", "grid192", "roads128")
ROOTS = 2

BOUND = 10_000.0
"""Factors stay within 1 / BOUND to BOUND: a host and a GPU differ by hundreds."""

TOGETHER = 0.02
"""What a difference of the two factors weighs against one of predictions, a sample's share."""

CLEARLY = 0.1
"""By how much less the probes' own coefficients must be off to be taken, as `_left_out` has it.

From one calibration to the next that changes by half as much.
"""

Seconds = npt.NDArray[np.float64]
Fit = Callable[[pd.DataFrame], Linear]

_MOVES = {"start": "start", "switch": "to", "convert": "convert"}
"""A model's tables of moves, and what samples call them."""


@dataclass(frozen=True)
class Factors:
    """By what the constant part and the rest of a formula are multiplied."""

    constant: float
    work: float


@dataclass(frozen=True)
class Calibration:
    """A model adapted to this machine, and what was found: factors and errors by what is measured.

    A formula without factors (None) is fitted to the probes alone. `before` and `after` are median
    relative errors on levels that were not used for the fit (`relative_errors`).
    """

    model: SpeedModel
    factors: Mapping[str, Factors | None]
    before: Mapping[str, float]
    after: Mapping[str, float]


def run_calibration(
    engine: EngineOptions | None = None,
    out: Path | None = None,
    source: str | None = None,
) -> int:
    """Calibrate a model for this machine, write and report it; returns the exit status.

    Parameters
    ----------
    engine : EngineOptions, optional
        Which device to calibrate for; of all settings only that counts.
    out : Path, optional
        Folder of the model, by default where the other commands look for models.
    source : str, optional
        Name of the model to start from, by default the shipped one of the most similar machine.

    Raises
    ------
    ModelError
        No such model, or it lacks a strategy or move that this machine has.
    """
    started = time.perf_counter()
    info = training_device(engine)
    base = choose_base(info, source)
    name = machine_slug(info)
    folder = make_folder(out)
    print(
        f"calibrating {base.name} for {name}: levels of small graphs, then whole searches; about "
        "half a minute, the first time a minute or two more to compile"
    )
    tuning = None if info is None else _tuning_of(base, info)
    fitted = measure_graphs(FITTED_GRAPHS, info, tuning)
    judged = measure_graphs(JUDGED_GRAPHS, info, tuning)
    found = calibrate(base, fitted, judged)
    command = f"hetero-bfs train --calibrate{'' if source is None else f' --from {source}'}"
    about = about_model(info, command, fitted) | {
        "calibrated_from": base.origin,
        "probes": list(FITTED_GRAPHS),
        "seconds": round(time.perf_counter() - started, 1),
        "factors": {
            name: None if factors is None else [_round(factors.constant), _round(factors.work)]
            for name, factors in found.factors.items()
        },
        "judged_on": list(JUDGED_GRAPHS),
        "median_relative_error": {"before": dict(found.before), "after": dict(found.after)},
    }
    model = replace(found.model, name=name, about=about, tuning=tuning)
    path = folder / f"{name}.json"
    install_model(model, path)
    _report(found, path, len(fitted), time.perf_counter() - started)
    if out is None:  # else nobody would find the model
        install_auto(model, path, info, quick=True)
    return 0


def choose_base(info: DeviceInfo | None, source: str | None) -> SpeedModel:
    """Return the model to start from; see `run_calibration`."""
    if source is not None:
        base: SpeedModel | None = named_model(source)
    else:
        base = default_model(None if info is None else info.type)
    if base is None:
        raise ModelError("no speed model is installed to start from; train one instead")
    lacking = base.lacking(available(info is not None))
    if lacking:
        raise ModelError(
            f"the speed model {base.name} lacks {', '.join(lacking)}; choose another with --from, "
            "or train without --calibrate"
        )
    return base


def measure_graphs(
    names: Sequence[str], info: DeviceInfo | None, tuning: Tuning | None, roots: int = ROOTS
) -> pd.DataFrame:
    """Measure a few searches of graphs by name (families.py); returns samples (collect.py)."""
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(progress(names, "measuring graphs", delay_seconds=0.0)):
        graph = named_graph(name)
        with Engine(
            build_search_graph(graph.make()), host_alone(), tuning=tuning, **device_settings(info)
        ) as engine:
            rows += measure_graph(engine, number, graph, roots)
    return pd.DataFrame(rows)


def calibrate(
    base: SpeedModel, fitted: pd.DataFrame, judged: pd.DataFrame, clearly: float = CLEARLY
) -> Calibration:
    """Adapt all parts of a model to samples, and judge them by other samples.

    With an infinite `clearly` all is by factors alone.
    """
    factors: dict[str, Factors | None] = {}

    def adapted(
        table: Mapping[Any, Linear], prefix: str, samples: pd.DataFrame = fitted, kind: str = ""
    ) -> dict[Any, Linear]:
        found = {}
        for name, linear in table.items():
            rows = samples[samples["measured"] == f"{prefix}{name}"]
            if not rows.empty:
                columns = MOVE_COLUMNS if prefix else STRATEGIES[name].columns
                found[name], factors[f"{kind}{prefix}{name}"] = adapt(
                    linear, columns, rows, clearly
                )
        return found

    deep = fitted["deep"] > 0
    apart = base.learned_deep is not None
    probes = fit(fitted, "", {})  # a start and the paper's model need no more samples
    start = {kind: probes.start[kind] for kind in base.start if kind in probes.start}
    for kind, linear in start.items():
        there = max(sum(base.start[kind].coefficients), 1.0 / BOUND**2)
        ratio = linear.coefficients[0] / there
        factors[f"start_{kind}"] = Factors(ratio, ratio)
    model = replace(
        base,
        learned=adapted(base.learned, "", fitted[~deep] if apart else fitted),
        learned_deep=adapted(base.learned_deep or {}, "", fitted[deep], "deep ") or None,
        start=start,
        switch=adapted(base.switch, "to_"),
        convert=adapted(base.convert, "convert_"),
        alpha=probes.alpha,
        edges_per_second=probes.edges_per_second,
        auto=None,
        tuning=None,
        power=None,  # another machine's watts say nothing of this one's
    )
    return Calibration(
        model, factors, relative_errors(base, judged), relative_errors(model, judged)
    )


def adapt(
    linear: Linear, columns: Sequence[str], rows: pd.DataFrame, clearly: float = CLEARLY
) -> tuple[Linear, Factors | None]:
    """Adapt a formula to samples: by factors, or (None) fitted to them alone, by `columns`."""

    def scaled(rows: pd.DataFrame) -> Linear:
        factors = fit_factors(linear, rows)
        return linear.scaled(factors.constant, factors.work)

    def anew(rows: pd.DataFrame) -> Linear:
        return fit_linear(rows, columns)

    if _left_out(anew, rows) < _left_out(scaled, rows) - clearly:
        return anew(rows), None
    factors = fit_factors(linear, rows)
    return linear.scaled(factors.constant, factors.work), factors


def _left_out(fit_rows: Fit, rows: pd.DataFrame) -> float:
    """Return how far a graph's seconds are off by a formula fitted to the others.

    The mean over graphs of the mean logarithm of the ratio; of a single graph nothing is known.
    """
    graphs = rows["graph"].unique()
    if len(graphs) < 2:
        return math.inf
    off = []
    for graph in graphs:
        left_out = rows["graph"] == graph
        predicted = predict(fit_rows(rows[~left_out]), rows[left_out])
        ratio = predicted / rows.loc[left_out, "seconds"].to_numpy(np.float64)
        off.append(float(np.abs(np.log(np.clip(ratio, 1.0 / BOUND, BOUND))).mean()))
    return sum(off) / len(off)


def fit_factors(linear: Linear, rows: pd.DataFrame) -> Factors:
    """Fit the two factors of a formula to samples, every family of graphs counting alike.

    What counts is the logarithm of predicted over measured seconds, and large ones count little
    more than in proportion (soft L1): probes are few, and a busy machine disturbs some. Where
    samples hardly tell the two parts apart, both have one factor.
    """
    constant, work = _parts(linear, rows)
    seconds = rows["seconds"].to_numpy(np.float64)
    usable = constant + work > 0.0
    if not usable.any():
        return Factors(1.0, 1.0)
    constant, work, seconds = constant[usable], work[usable], seconds[usable]
    size = rows.loc[usable].groupby("family")["seconds"].transform("size").to_numpy(np.float64)
    alike = np.sqrt(size.size / size / len(np.unique(rows.loc[usable, "family"])))
    together = np.sqrt(TOGETHER * size.size)

    def residuals(logarithms: Seconds) -> Seconds:
        first, second = np.exp(logarithms)
        off = alike * np.log((first * constant + second * work) / seconds)
        return np.append(off, together * (logarithms[0] - logarithms[1]))

    middle = float(np.median(np.log(seconds / (constant + work))))
    limit = np.log(BOUND)
    start = np.full(2, np.clip(middle, -0.99 * limit, 0.99 * limit))
    found = least_squares(residuals, start, bounds=(-limit, limit), loss="soft_l1", f_scale=0.3)
    first, second = np.exp(found.x)
    return Factors(float(first), float(second))


def relative_errors(model: SpeedModel, samples: pd.DataFrame) -> dict[str, float]:
    """Return the median relative error of predicted seconds, by what was measured.

    Deep graphs apart ("deep TC") if the model has formulas for them.
    """
    moves = {f"{_MOVES[w]}_{k}": m for w in _MOVES for k, m in getattr(model, w).items()}
    errors = {}
    for name, rows in samples.groupby("measured"):
        deep = np.zeros(len(rows), np.bool_)
        if name in moves:
            predicted = predict(moves[name], rows)
        elif name in model.learned:
            predicted = predict_levels(model, str(name), rows)
            if model.learned_deep is not None:
                deep = rows["deep"].to_numpy() > 0
        else:
            continue
        error = np.abs(predicted / rows["seconds"].to_numpy(np.float64) - 1.0)
        for kind, those in (("", ~deep), ("deep ", deep)):
            if those.any():
                errors[f"{kind}{name}"] = _round(float(np.median(error[those])))
    return errors


def predict_levels(model: SpeedModel, strategy: str, rows: pd.DataFrame) -> Seconds:
    """Return the seconds that a model predicts of a strategy's samples."""
    shallow, deep = (predict(model.predictor(strategy, kind), rows) for kind in (False, True))
    return np.where(rows["deep"] > 0, deep, shallow)


def predict(linear: Linear, rows: pd.DataFrame) -> Seconds:
    """Return the seconds that a formula predicts of samples."""
    constant, work = _parts(linear, rows)
    return constant + work


def _parts(linear: Linear, rows: pd.DataFrame) -> tuple[Seconds, Seconds]:
    """Return the predicted seconds of samples: the constant part, and what grows with work."""
    constant, work = np.zeros(len(rows)), np.zeros(len(rows))
    for name, value in zip(linear.columns, linear.coefficients, strict=True):
        if name == "constant":
            constant += value
        else:
            work += value * rows[name].to_numpy(np.float64)
    return constant, work


def _tuning_of(base: SpeedModel, info: DeviceInfo) -> Tuning:
    """Return the other model's tuning if its device is of the same maker and type."""
    device = base.about.get("machine", {}).get("device") or {}
    alike = (device.get("platform"), device.get("type")) == (info.platform, info.type)
    return base.tuning if alike and base.tuning is not None else default_tuning(info.type)


def _report(found: Calibration, path: Path, samples: int, seconds: float) -> None:
    print("factors of the other model's constants, and of what grows with work, or fitted anew;")
    print("median relative error on other graphs:")
    print(f"  {'':<15} {'constant':>8} {'work':>8} {'before':>8} {'after':>8}")
    for name, factors in found.factors.items():
        before, after = (
            f"{100 * errors[name]:.0f} %" if name in errors else ""
            for errors in (found.before, found.after)
        )
        constant, work = "fitted", "anew"
        if factors is not None:
            constant, work = (f"x{value:.3g}" for value in (factors.constant, factors.work))
            work = "" if name.startswith("start_") else work  # which is a constant
        print(f"  {name:<15} {constant:>8} {work:>8} {before:>8} {after:>8}")
    print(f"model    {path} ({samples} samples, {seconds:.1f} s)")


def _round(value: float) -> float:
    return float(f"{value:.4g}")
