"""Evaluates speed models by cross-validation: prediction errors, and the cost of their choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from hetero_bfs.scheduling.strategies import STRATEGIES, Strategy
from hetero_bfs.scheduling.trace import LevelFeatures
from hetero_bfs.training.collect import FEATURE_FIELDS
from hetero_bfs.training.fit import fit, fit_zhang


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
