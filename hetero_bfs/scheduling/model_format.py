"""Files of speed models: JSON, checked when read. speed_model.py describes the content."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from hetero_bfs.devices.opencl.tuning import read_tuning
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.objective import Power, read_power
from hetero_bfs.scheduling.program_costs import MESSAGE_KINDS, CostTable, ProgramCosts
from hetero_bfs.scheduling.schema import COLUMNS, MIGRATION_COLUMNS
from hetero_bfs.scheduling.speed_model import AUTO_GRAPHS, FORMAT, TRAIN_COMMAND, Linear, SpeedModel
from hetero_bfs.scheduling.strategies import MODEL_SELECTORS, STRATEGIES, DeviceKind, Strategy
from hetero_bfs.support.files import replacing

UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)
"""Errors of reading JSON that is damaged or has another structure."""


def read_model(text: str, origin: str) -> SpeedModel:
    """Parse a model file; `origin` names it in errors.

    Raises `ModelError` if it is not JSON, has another format, or names an unknown strategy or
    column.
    """
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ModelError(_format_problem(data))
        return SpeedModel(
            name=data["name"],
            learned=_read_table(data["learned"]),
            learned_high_diameter=_read_table(data["learned_deep"])
            if "learned_deep" in data
            else None,
            alpha=_number(data["average"]["alpha"]),
            edges_per_second={
                _known(s).name: _number(v, above_zero=True)
                for s, v in data["average"]["edges_per_second"].items()
            },
            start={_kind(k): _linear_from_json(m) for k, m in data["start"].items()},
            switch={_kind(k): _linear_from_json(m) for k, m in data["switch"].items()},
            convert={_kind(k): _linear_from_json(m) for k, m in data["convert"].items()},
            about=_about(data["about"]),
            tuning=read_tuning(data["tuning"]) if "tuning" in data else None,
            auto=_auto_by_graph(data["auto"]) if "auto" in data else None,
            power=_power(data["power"]) if "power" in data else None,
            programs=_program_costs(data["programs"]) if "programs" in data else None,
        )
    except UNREADABLE as error:
        if isinstance(error, ModelError):
            what = f": {error}"
        elif isinstance(error, KeyError):
            what = f" is not a usable speed model: it lacks {error}"
        else:
            what = f" is not a usable speed model ({type(error).__name__}: {error})"
        raise ModelError(f"{origin}{what}; train again with `{TRAIN_COMMAND}`") from error


def write_model(model: SpeedModel, path: Path) -> None:
    """Write a model's file, all or nothing."""
    with replacing(path) as stream:
        stream.write(json.dumps(model.to_json(), indent=1) + "\n")


def _format_problem(data: Mapping[str, Any]) -> str:
    written = data["format"]
    problem = f"model format {written}, this program reads {FORMAT}"
    if isinstance(written, int) and written > FORMAT:
        about = data.get("about")
        version = about.get("version") if isinstance(about, dict) else None
        by = "a newer hetero_bfs" + ("" if version is None else f" ({version})")
        problem += f": it was written by {by}; update this one"
    return problem


def _about(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict) or not isinstance(data.get("machine", {}), dict):
        raise ModelError("what it says about its machine is not a table")
    return data


def _known(name: str) -> Strategy:
    if name not in STRATEGIES:
        raise ModelError(f"unknown strategy {name!r}; this program has {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def _kind(key: str) -> DeviceKind:
    kind = key.partition("_")[2]
    if kind not in ("cpu", "device"):
        raise ModelError(f"unknown device {key!r}")
    return kind  # type: ignore[return-value]


def _read_table(data: Mapping[str, Mapping[str, float]]) -> dict[str, Linear]:
    return {name: _linear_from_json(found, _known(name)) for name, found in data.items()}


def _linear_from_json(data: Mapping[str, float], strategy: Strategy | None = None) -> Linear:
    known = set(MIGRATION_COLUMNS if strategy is None else COLUMNS)
    unknown = set(data) - known
    if unknown:
        raise ModelError(f"unknown column {sorted(unknown)[0]!r}; known are {sorted(known)}")
    return Linear(tuple(data), tuple(_number(value) for value in data.values()))


def _power(data: Mapping[str, Any]) -> Power:
    power = read_power(data)
    if power.auto is None:
        return power
    return replace(
        power,
        auto={
            objective_name: _auto_by_graph(kinds) for objective_name, kinds in power.auto.items()
        },
    )


def _program_costs(data: Mapping[str, Any]) -> CostTable:
    table: dict[DeviceKind, dict[str, ProgramCosts]] = {}
    for place, kinds in data.items():
        unknown = set(kinds) - set(MESSAGE_KINDS)
        if unknown:
            raise ModelError(f"unknown kind of messages {sorted(unknown)[0]!r}")
        table[_kind(f"on_{place}")] = {
            kind: ProgramCosts(**_known_costs(costs)) for kind, costs in kinds.items()
        }
    return table


def _known_costs(costs: Mapping[str, Any]) -> dict[str, float]:
    """Return costs by name; costs that an older model lacks have defaults."""
    optional = {field.name for field in fields(ProgramCosts) if field.default is not MISSING}
    return {
        name: _number(costs[name])
        for name in ProgramCosts.names()
        if name in costs or name not in optional
    }


def _auto_by_graph(data: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {kind: _auto(data[kind]) for kind in AUTO_GRAPHS}


def _auto(data: Mapping[str, Any]) -> dict[str, Any]:
    """Check the entry of the selector that was the fastest in training."""
    if data["selector"] in MODEL_SELECTORS:
        return {"selector": data["selector"]}
    if data["selector"] != "alpha-beta":
        raise ModelError(f"unknown selector {data['selector']!r}")
    return {
        "selector": "alpha-beta",
        "where": _kind(f"on_{data['where']}"),
        "alpha": _number(data["alpha"], above_zero=True),
        "beta": _number(data["beta"], above_zero=True),
    }


def _number(value: Any, above_zero: bool = False) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0 or (above_zero and number == 0):
        raise ModelError(f"{number} is not a speed or coefficient of a speed model")
    return number
