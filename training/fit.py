"""Fits a speed model to samples, and evaluates it by cross-validation.

The model is linear in counts of work, with coefficients that are not negative. The fit is
scikit-learn's LinearRegression with `positive=True`, repeated in rounds. Rows are weighted so that
every family of graphs has the same weight. The square of an error is divided by the measured
seconds and by the seconds that the previous round predicted. If it were divided by the measured
seconds twice, a prediction of 0 would never be more than 100 % wrong. A constant would then be the
harmonic mean of the measurements, and strategies that scan long lists would look fast. The result
is plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.linear_model import LinearRegression

from hetero_bfs.devices.machine import Tuning
from hetero_bfs.scheduling.schema import LEAST_SHARED_EDGES, MIGRATION_COLUMNS
from hetero_bfs.scheduling.speed_model import Linear, SpeedModel, ZhangSpeeds
from hetero_bfs.scheduling.strategies import DEVICE_KINDS, STRATEGIES, DeviceKind, Strategy, plain
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.training.collect import FEATURE_FIELDS

TRAINING_FAMILY = "kronecker"
"""The family of the graphs to which `fit_zhang` fits."""

_ROUNDS = 12  # predictions converge to a percent in far fewer rounds
_FARTHEST = 100.0  # ratio of predicted to measured seconds beyond which weights stay constant


def fit(
    samples: pd.DataFrame,
    name: str,
    about: Mapping[str, Any],
    tuning: Tuning | None = None,
    migration_columns: Sequence[str] = MIGRATION_COLUMNS,
) -> SpeedModel:
    by_measured = {str(key): rows for key, rows in samples.groupby("measured")}
    small = is_small(samples)
    return SpeedModel(
        name=name,
        learned=_fit_strategies(samples[~small], samples),
        learned_small=_fit_strategies(samples[small], samples),
        start=_starts(by_measured),
        switch=_migrations(by_measured, "to", migration_columns),
        convert=_migrations(by_measured, "convert", migration_columns),
        about=about,
        tuning=tuning,
        zhang=fit_zhang(samples),
    )


def is_small(samples: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Tell which samples are of SMALL levels (schema.py)."""
    return samples["frontier_edges"].to_numpy() < LEAST_SHARED_EDGES


def _fit_strategies(levels: pd.DataFrame, samples: pd.DataFrame) -> dict[str, Linear]:
    """Fit to levels of one size. All samples serve a strategy that was measured at none of them."""
    found = {}
    for name, strategy in STRATEGIES.items():
        rows = levels[levels["measured"] == name]
        if rows.empty:
            rows = samples[samples["measured"] == name]
        if not rows.empty:
            found[name] = fit_linear(rows, strategy.columns)
    return found


def fit_linear(rows: pd.DataFrame, columns: Sequence[str]) -> Linear:
    design = np.column_stack(
        [np.ones(len(rows)) if c == "constant" else rows[c].to_numpy(np.float64) for c in columns]
    )
    seconds = rows["seconds"].to_numpy(np.float64)
    scale = np.maximum(design.max(axis=0), 1.0)
    design /= scale
    alike = 1.0 / rows.groupby("family")["seconds"].transform("size").to_numpy(np.float64)
    model = LinearRegression(positive=True, fit_intercept=False)
    predicted = seconds
    for _ in range(_ROUNDS):
        unit = np.sqrt(seconds * np.clip(predicted, seconds / _FARTHEST, seconds * _FARTHEST))
        model.fit(design / unit[:, None], seconds / unit, sample_weight=alike)
        predicted = design @ model.coef_
    coefficients = model.coef_ / scale
    return Linear(tuple(columns), tuple(float(f"{value:.6g}") for value in coefficients))


def _migrations(
    by_measured: Mapping[str, pd.DataFrame], what: str, columns: Sequence[str]
) -> dict[DeviceKind, Linear]:
    return {
        kind: fit_linear(by_measured[f"{what}_{kind}"], columns)
        for kind in DEVICE_KINDS
        if f"{what}_{kind}" in by_measured
    }


def _starts(by_measured: Mapping[str, pd.DataFrame]) -> dict[DeviceKind, Linear]:
    """Return the median seconds of starting; each sample is a difference of two measurements."""
    found = {kind: by_measured.get(f"start_{kind}") for kind in DEVICE_KINDS}
    return {
        kind: Linear(("constant",), (float(f"{rows['seconds'].median():.6g}"),))
        for kind, rows in found.items()
        if rows is not None
    }


def fit_zhang(samples: pd.DataFrame) -> ZhangSpeeds | None:
    """Fit the paper's model (`ZhangSpeeds`) to the Kronecker graphs; None if there are none.

    A level's speed is the inverse of equation 2 or 4: its edges over its seconds. A strategy's
    speed is the mean over all levels, alike for short and long ones. The paper does not say how it
    finds alpha; here it is the mean over levels of the share of unvisited edges that bottom-up on
    the CPU scanned. Choices do not depend on it, since the same alpha is in speeds and predictions.
    """
    levels = samples[(samples["family"] == TRAINING_FAMILY) & samples["measured"].isin(STRATEGIES)]
    scans = levels[
        (levels["measured"] == plain("bottom-up", "cpu").name) & (levels["unvisited_edges"] > 0)
    ]
    if scans.empty:
        return None
    alpha = float((scans["examined"] / scans["unvisited_edges"]).mean())
    speeds = {}
    for name, strategy in STRATEGIES.items():
        rows = levels[levels["measured"] == name]
        if strategy.direction == "top-down":
            edges = rows["frontier_edges"]
        else:
            edges = alpha * rows["unvisited_edges"]
        speed = float((edges / rows["seconds"]).mean()) if len(rows) else 0.0
        if speed > 0:
            speeds[name] = float(f"{speed:.6g}")
    number = len(levels.drop_duplicates(["graph", "root", "level"]))
    return ZhangSpeeds(float(f"{alpha:.6g}"), speeds, levels["graph"].nunique(), number)


def evaluate(samples: pd.DataFrame) -> dict[str, Any]:
    """Cross-validate by family of graphs: a model fitted to the other families predicts each one.

    The paper's model is fitted to one half of the Kronecker graphs and predicts the other half.
    Any of the two predicts the other families.

    Returns
    -------
    dict
        `median_relative_error` per strategy, and `excess` per selector: seconds of the chosen
        levels over seconds of the best strategy at each level, minus 1. Both exclude migration.
    """
    errors: dict[str, list[float]] = {}
    spent: dict[str, float] = {}
    best = 0.0
    levels = samples[samples["measured"].isin(list(STRATEGIES))]
    halves = [fit_zhang(samples[samples["graph"] % 2 != half]) for half in (0, 1)]
    for family in levels["family"].unique():
        others = samples[samples["family"] != family]
        if others.empty:
            continue
        model = fit(others, "", {})
        for _, rows in levels[levels["family"] == family].groupby(["graph", "root", "level"]):
            measured = dict(zip(rows["measured"], rows["seconds"], strict=True))
            features = _features(rows.iloc[0])
            best += min(measured.values())
            for name, seconds in measured.items():
                error = abs(model.learned_seconds(features, STRATEGIES[name]) / seconds - 1)
                errors.setdefault(name, []).append(error)
                key = f"fixed:{name}"
                spent[key] = spent.get(key, 0.0) + seconds
            choosers = {"learned": model.learned_seconds}
            if (zhang := halves[int(rows["graph"].iloc[0]) % 2]) is not None:
                choosers["zhang"] = zhang.seconds
            for key, choose in choosers.items():
                spent[key] = spent.get(key, 0.0) + measured[_choose(choose, features, measured)]
    return {
        "median_relative_error": {k: _round(float(np.median(v))) for k, v in errors.items()},
        "excess": {k: _round(v / best - 1) for k, v in sorted(spent.items())} if best else {},
    }


def _choose(
    seconds: Callable[[LevelFeatures, Strategy], float],
    features: LevelFeatures,
    measured: dict[str, float],
) -> str:
    return min(measured, key=lambda name: seconds(features, STRATEGIES[name]))


def _features(row: pd.Series[Any]) -> LevelFeatures:
    values = {name: row[name] for name in FEATURE_FIELDS}
    others = ("growth", "device_kind", "representation")
    counts = {k: int(v) for k, v in values.items() if k not in others}
    return LevelFeatures(
        **counts, growth=values["growth"], device_kind="cpu", representation="queue"
    )


def _round(value: float) -> float:
    return float(f"{value:.4g}")
