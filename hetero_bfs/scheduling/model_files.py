"""Files of speed models: JSON, checked when read. speed_model.py describes the content.

They are looked for in the folder of `hetero-bfs train`, then among those shipped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from hetero_bfs.devices.machine import DEVICELESS, DeviceInfo, read_tuning
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.schema import COLUMNS, MIGRATION_COLUMNS
from hetero_bfs.scheduling.speed_model import (
    FORMAT,
    MESSAGE_KINDS,
    RUN_COLUMNS,
    TRAIN_COMMAND,
    CostTable,
    Linear,
    ProgramCosts,
    RunCosts,
    RunTable,
    SpeedModel,
    ZhangSpeeds,
)
from hetero_bfs.scheduling.strategies import STRATEGIES, DeviceKind, Strategy
from hetero_bfs.support.environment import usable_cores
from hetero_bfs.support.files import replacing

UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)
"""Errors of reading JSON that is damaged or has another structure."""


@lru_cache(maxsize=8)
def read_model(text: str, origin: str) -> SpeedModel:
    """Parse a model file; `origin` names it in errors."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ModelError(_format_problem(data))
        return SpeedModel(
            name=data["name"],
            learned=_read_table(data["learned"]),
            learned_small=_read_table(data["learned_small"]) if "learned_small" in data else None,
            start={_kind(k): _linear_from_json(m) for k, m in data["start"].items()},
            switch={_kind(k): _linear_from_json(m) for k, m in data["switch"].items()},
            convert={_kind(k): _linear_from_json(m) for k, m in data["convert"].items()},
            about=_about(data["about"]),
            tuning=read_tuning(data["tuning"]) if "tuning" in data else None,
            programs=_program_costs(data["programs"]) if "programs" in data else None,
            algorithms=_run_costs(data["algorithms"]) if "algorithms" in data else None,
            zhang=_zhang_speeds(data["zhang"]) if "zhang" in data else None,
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
        raise ModelError("its description of the machine is not a table")
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


def _linear_from_json(
    data: Mapping[str, float], strategy: Strategy | None = None, columns: Iterable[str] = ()
) -> Linear:
    known = set(columns or (MIGRATION_COLUMNS if strategy is None else COLUMNS))
    unknown = set(data) - known
    if unknown:
        raise ModelError(f"unknown column {sorted(unknown)[0]!r}; known are {sorted(known)}")
    return Linear(tuple(data), tuple(_number(value) for value in data.values()))


def _zhang_speeds(data: Mapping[str, Any]) -> ZhangSpeeds:
    return ZhangSpeeds(
        alpha=_number(data["alpha"], above_zero=True),
        edges_per_second={
            _known(name).name: _number(speed, above_zero=True)
            for name, speed in data["edges_per_second"].items()
        },
        graphs=int(_number(data["graphs"])),
        levels=int(_number(data["levels"])),
    )


def _program_costs(data: Mapping[str, Any]) -> CostTable:
    table: dict[DeviceKind, dict[str, ProgramCosts]] = {}
    for place, kinds in data.items():
        unknown = set(kinds) - set(MESSAGE_KINDS)
        if unknown:
            raise ModelError(f"unknown kind of messages {sorted(unknown)[0]!r}")
        table[_kind(f"on_{place}")] = {
            kind: ProgramCosts(*(_number(costs[name]) for name in ProgramCosts.names()))
            for kind, costs in kinds.items()
        }
    return table


def _run_costs(data: Mapping[str, Any]) -> RunTable:
    return {
        _kind(f"on_{place}"): {
            name: RunCosts(
                *(
                    _linear_from_json(costs[part.name], columns=RUN_COLUMNS)
                    for part in fields(RunCosts)
                )
            )
            for name, costs in runs.items()
        }
        for place, runs in data.items()
    }


def _number(value: Any, above_zero: bool = False) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0 or (above_zero and number == 0):
        raise ModelError(f"{number} is not a speed or coefficient of a speed model")
    return number


MODELS_VARIABLE = "HETERO_BFS_MODELS"


def user_models_folder() -> Path:
    """Return the folder where training writes models: $HETERO_BFS_MODELS or the user's data."""
    if os.environ.get(MODELS_VARIABLE):
        return Path(os.environ[MODELS_VARIABLE])
    import platformdirs

    return platformdirs.user_data_path("hetero_bfs") / "models"


def find_model(host: str, device: str | None) -> SpeedModel | None:
    """Find a model by the names of its host and device (machine.py).

    The user's own models come before shipped ones. Without a device any model of the host will do,
    since all have the host's strategies. Then the newest own model is taken, else the newest
    shipped one; of several from one day, the last by name. Unusable models are skipped. Raises
    `ModelError` if no matching model is usable.
    """
    wanted = f"{host}__{DEVICELESS if device is None else device}"
    files = _shipped_files() | _own_files()
    if wanted in files:
        return _read_file(files[wanted])
    if device is not None:
        return None
    return _newest(host, _own_files()) or _newest(host, _shipped_files())


def similar_model(device: DeviceInfo | None, device_type: str | None = None) -> SpeedModel | None:
    """Return the shipped model of the most similar machine, None if no model is shipped.

    The type of the device counts first, then the name of a GPU, then how many times more or fewer
    compute units and cores the other machine has. Without a device, `device_type` is the type to
    look for.
    """
    wanted = device_type if device is None else device.type
    units = None if device is None else device.compute_units

    def unlikeness(model: SpeedModel) -> tuple[bool, bool, float, str]:
        machine = model.about.get("machine") or {}
        other = machine.get("device") or {}
        times = _times(units, other.get("compute_units")) + _times(
            usable_cores(), machine.get("cores")
        )
        is_other = wanted == "GPU" and device is not None and other.get("name") != device.name
        return other.get("type") != wanted, is_other, times, model.name

    return min(shipped_models(), key=unlikeness, default=None)


def _times(one: int | None, other: int | None) -> float:
    return abs(math.log2(one / other)) if one and other else 0.0


def shipped_models() -> Iterator[SpeedModel]:
    yield from map(_read_file, _shipped_files().values())


def _newest(host: str, files: Mapping[str, Traversable]) -> SpeedModel | None:
    models: list[SpeedModel] = []
    problem: ModelError | None = None
    for name, file in files.items():
        if not name.startswith(f"{host}__"):
            continue
        try:
            models.append(_read_file(file))
        except ModelError as error:
            problem = error
    if problem is not None and not models:
        raise problem
    return max(
        models, key=lambda model: (str(model.about.get("date", "")), model.name), default=None
    )


def _read_file(path: Traversable) -> SpeedModel:
    try:
        return read_model(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} cannot be read as a speed model: {error}") from error


def _own_files() -> dict[str, Traversable]:
    """Return the files of the models that training wrote, by name, without files of samples."""
    folder = user_models_folder()
    if folder.exists() and not folder.is_dir():
        raise ModelError(
            f"{folder}, where models are kept, is not a folder; set {MODELS_VARIABLE} to one"
        )
    paths = sorted(folder.glob("*.json"))
    return {path.stem: path for path in paths if ".samples" not in path.suffixes}


def _shipped_files() -> dict[str, Traversable]:
    try:
        folder = resources.files("hetero_bfs.models")
    except ModuleNotFoundError:  # a checkout on PYTHONPATH that is not installed
        return {}
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return {e.name.removesuffix(".json"): e for e in entries if e.name.endswith(".json")}
