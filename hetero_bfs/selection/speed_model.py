"""The speed model: seconds per strategy from the features of a level. No scikit-learn here.

A model is one JSON file, named <cpu>__<device>.json, readable by eye:

    learned   per strategy, seconds = sum of coefficient x column, every coefficient >= 0: the
              columns are counts of work, the coefficients seconds per unit of it
    learned_deep
              the same for graphs whose searches take many levels, where kernels work another way
              (squads in squad.cl, owners in expand.py) and small levels are all there is
    average   the paper's model (Zhang et al. 2018, equations 1 to 4): top-down takes
              frontier_edges / speed, bottom-up alpha x unvisited_edges / speed
    start     beginning a search on a device, `switch` moving it to the other device, `convert`
              turning a bitmap into a queue: linear too
    tuning    how the device's kernels are compiled and launched (tuning.py)
    auto      the selector that was the fastest at whole searches after training, of graphs with few
              levels and of deep ones; if that is Beamer's rule, with its alpha, beta and device
    power     watts per strategy (objective.py), where training had a meter

Models are looked up first where `hetero-bfs train` writes them, then among those shipped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from hetero_bfs.devices.opencl.tuning import Tuning, read_tuning
from hetero_bfs.errors import ModelError
from hetero_bfs.selection.objective import Power, read_power
from hetero_bfs.selection.strategies import (
    DEVICE_KINDS,
    MODEL_SELECTORS,
    STRATEGIES,
    DeviceKind,
    Strategy,
)
from hetero_bfs.selection.trace import LevelFeatures
from hetero_bfs.support.files import replacing

FORMAT = 2
MODELS_VARIABLE = "HETERO_BFS_MODELS"
NO_DEVICE = "no-device"
TRAIN_COMMAND = "hetero-bfs train"

ALL_COLUMNS = (
    "constant",
    "num_vertices",
    "frontier_vertices",
    "frontier_edges",
    "unvisited_vertices",
    "unvisited_edges",
    "expected_examined",
    "expected_found",
    "expected_length",
    "expected_claims",
    "wide_vertices",
    "shared_level",
)
"""Every column a model may use, in the order of policy.py."""

AUTO_GRAPHS = ("shallow", "deep")
"""Kinds of graphs for which the fastest selector is kept apart (relabel.py tells them apart)."""

_BOTTOM_UP = (
    "constant",
    "num_vertices",
    "unvisited_vertices",
    "expected_examined",
    "expected_found",
    "expected_length",
)
COLUMNS: dict[str, tuple[str, ...]] = {
    "TC": (
        "constant",
        "frontier_vertices",
        "frontier_edges",
        "expected_claims",
        "wide_vertices",
        "shared_level",
    ),
    "TG": ("constant", "frontier_vertices", "frontier_edges", "expected_found"),
    "BC": _BOTTOM_UP,
    "BG": _BOTTOM_UP,
    "BGC": _BOTTOM_UP,
}
"""Columns of each strategy in training; a model may have others."""

MOVE_COLUMNS = ("constant", "num_vertices", "frontier_vertices")
"""Columns of starting, switching and converting."""


def column(features: LevelFeatures, name: str) -> float:
    """Return one column of the model for a level."""
    return 1.0 if name == "constant" else float(getattr(features, name))


@dataclass(frozen=True)
class Linear:
    """Seconds as a sum of columns times coefficients (seconds per unit)."""

    columns: tuple[str, ...]
    coefficients: tuple[float, ...]

    def weights(self) -> list[float]:
        """Return one weight for each of `ALL_COLUMNS`."""
        given = dict(zip(self.columns, self.coefficients, strict=True))
        return [given.get(name, 0.0) for name in ALL_COLUMNS]

    def scaled(self, constant: float, work: float) -> Linear:
        """Return this with the constant part, and all that grows with work, times factors."""
        named = zip(self.columns, self.coefficients, strict=True)
        return Linear(
            self.columns, tuple(v * (constant if c == "constant" else work) for c, v in named)
        )

    def seconds(self, features: LevelFeatures) -> float:
        """Predict seconds for one level."""
        return sum(
            weight * column(features, name)
            for name, weight in zip(self.columns, self.coefficients, strict=True)
        )


@dataclass(frozen=True)
class SpeedModel:
    """A trained model of one machine pair; see the head of this file."""

    name: str
    learned: Mapping[str, Linear]
    alpha: float
    edges_per_second: Mapping[str, float]
    start: Mapping[DeviceKind, Linear]
    switch: Mapping[DeviceKind, Linear]
    convert: Mapping[DeviceKind, Linear]
    about: Mapping[str, Any]
    tuning: Tuning | None = None
    auto: Mapping[str, Mapping[str, Any]] | None = None
    power: Power | None = None
    learned_deep: Mapping[str, Linear] | None = None

    @property
    def origin(self) -> dict[str, Any]:
        """What reports say of it: name, version, commit and date of its training, if known; and
        the name of the model that it was calibrated from, if it was."""
        machine, source = self.about.get("machine"), self.about.get("calibrated_from")
        return {
            "name": self.name,
            "version": self.about.get("version"),
            "commit": machine.get("commit") if isinstance(machine, dict) else None,
            "date": self.about.get("date"),
            "calibrated_from": source.get("name") if isinstance(source, dict) else None,
        }

    @property
    def origin_text(self) -> str:
        """That in words."""
        origin = self.origin
        date = "at an unknown date" if origin["date"] is None else origin["date"]
        source = origin["calibrated_from"]
        how = "trained" if source is None else f"calibrated from {source}"
        return f"{self.name}, {how} {date} with commit {origin['commit'] or 'unknown'}"

    def predictor(self, strategy: str, deep: bool) -> Linear:
        """Return the learned formula of a strategy, on deep graphs or others."""
        table = self.learned_deep if deep and self.learned_deep is not None else self.learned
        return table.get(strategy, self.learned[strategy])

    def learned_seconds(
        self, features: LevelFeatures, strategy: Strategy, deep: bool = False
    ) -> float:
        """Predict a level by the learned coefficients, moving excluded."""
        return self.predictor(strategy.name, deep).seconds(features)

    def average(self, strategy: Strategy) -> Linear:
        """Return the paper's average model of a strategy: one column and one speed."""
        speed = self.edges_per_second[strategy.name]
        if strategy.direction == "top-down":
            return Linear(("frontier_edges",), (1.0 / speed,))
        return Linear(("unvisited_edges",), (self.alpha / speed,))

    def average_seconds(self, features: LevelFeatures, strategy: Strategy) -> float:
        """Predict a level by the paper's average speeds, moving excluded."""
        return self.average(strategy).seconds(features)

    def lacking(self, candidates: Iterable[Strategy]) -> list[str]:
        """List the strategies, and the moves between them, of which this model knows nothing."""
        known = self.learned.keys() & self.edges_per_second.keys()
        lacking = [s.name for s in candidates if s.name not in known]
        kinds = [kind for kind in DEVICE_KINDS if kind in {s.device_kind for s in candidates}]
        tables = {"start on": self.start, "convert on": self.convert}
        if len(kinds) > 1:
            tables["switch to"] = self.switch
        return lacking + [f"{w} {k}" for w, t in tables.items() for k in kinds if k not in t]

    def to_json(self) -> dict[str, Any]:
        """Return the file's content."""
        return {
            "format": FORMAT,
            "name": self.name,
            "about": dict(self.about),
            **({} if self.tuning is None else {"tuning": self.tuning.to_json()}),
            **({} if self.auto is None else {"auto": {k: dict(v) for k, v in self.auto.items()}}),
            **({} if self.power is None else {"power": self.power.to_json()}),
            "learned": _table(self.learned),
            **({} if self.learned_deep is None else {"learned_deep": _table(self.learned_deep)}),
            "average": {"alpha": self.alpha, "edges_per_second": dict(self.edges_per_second)},
            "start": {f"on_{kind}": _linear_to_json(m) for kind, m in self.start.items()},
            "switch": {f"to_{kind}": _linear_to_json(m) for kind, m in self.switch.items()},
            "convert": {f"on_{kind}": _linear_to_json(m) for kind, m in self.convert.items()},
        }


UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, OverflowError, RecursionError)
"""What comes of reading JSON that is damaged, or other than was asked for."""


def read_model(text: str, origin: str) -> SpeedModel:
    """Parse a model file.

    Raises
    ------
    ModelError
        Not JSON, another format, or a strategy or column that this program does not know.
    """
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ModelError(_format_problem(data))
        return SpeedModel(
            name=data["name"],
            learned=_read_table(data["learned"]),
            learned_deep=_read_table(data["learned_deep"]) if "learned_deep" in data else None,
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


def user_models_folder() -> Path:
    """Return the folder where training writes models: $HETERO_BFS_MODELS or the user's data."""
    if os.environ.get(MODELS_VARIABLE):
        return Path(os.environ[MODELS_VARIABLE])
    import platformdirs

    return platformdirs.user_data_path("hetero_bfs") / "models"


def find_model(host: str, device: str | None) -> SpeedModel | None:
    """Look a model up by the names of its host and device (machine.py).

    The user's own models come before those shipped. Without a device any model of the host will
    do, which all know the host's strategies: the newest of the user's own, else of those shipped;
    of one day the last by name. One of the same kind that cannot be used is passed over.

    Raises
    ------
    ModelError
        The model, or each of the user's that would do, cannot be used.
    """
    wanted = f"{host}__{NO_DEVICE if device is None else device}"
    files = _all_files()
    if wanted in files:
        return _read_file(files[wanted])
    if device is not None:
        return None
    return _newest(host, _own_files()) or _newest(host, _shipped_files())


def named_model(name: str) -> SpeedModel:
    """Return the model of a machine by the model's name, the user's own before those shipped.

    Raises
    ------
    ModelError
        There is none of that name.
    """
    files = _all_files()
    if name not in files:
        raise ModelError(
            f"no speed model is named {name!r}; yours, in {user_models_folder()}: "
            f"{', '.join(_own_files()) or 'none'}; shipped: {', '.join(_shipped_files()) or 'none'}"
        )
    return _read_file(files[name])


def default_model(device_type: str | None) -> SpeedModel | None:
    """Return the shipped model of the most similar machine, by type of device (GPU, CPU)."""
    shipped = list(shipped_models())
    for model in shipped:
        device = model.about.get("machine", {}).get("device") or {}
        if device.get("type") == device_type:
            return model
    return shipped[0] if shipped else None


def _newest(host: str, files: Mapping[str, Traversable]) -> SpeedModel | None:
    """Return a host's newest model that can be used; raise `ModelError` if none of several can."""
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


def shipped_models() -> Iterator[SpeedModel]:
    """Yield the models that are installed with this program."""
    yield from map(_read_file, _shipped_files().values())


def _all_files() -> dict[str, Traversable]:
    """Return the files of all models by name, the user's own in place of those shipped."""
    return _shipped_files() | _own_files()


def _own_files() -> dict[str, Traversable]:
    """Return the files of the models that training wrote, by name; not what lies beside samples."""
    folder = user_models_folder()
    if folder.exists() and not folder.is_dir():
        raise ModelError(
            f"{folder}, where models are kept, is no folder; set {MODELS_VARIABLE} to one"
        )
    paths = sorted(folder.glob("*.json"))
    return {path.stem: path for path in paths if ".samples" not in path.suffixes}


def _shipped_files() -> dict[str, Traversable]:
    """Return the files of the models that are installed with this program, by name."""
    try:
        folder = resources.files("hetero_bfs.models")
    except ModuleNotFoundError:  # a bare checkout on PYTHONPATH, not installed
        return {}
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return {e.name.removesuffix(".json"): e for e in entries if e.name.endswith(".json")}


def _format_problem(data: Mapping[str, Any]) -> str:
    """Say why a model of another format cannot be read."""
    written = data["format"]
    problem = f"model format {written}, this program reads {FORMAT}"
    if isinstance(written, int) and written > FORMAT:
        about = data.get("about")
        version = about.get("version") if isinstance(about, dict) else None
        by = "a newer hetero_bfs" + ("" if version is None else f" ({version})")
        problem += f": it was written by {by}; update this one"
    return problem


def _about(data: Any) -> dict[str, Any]:
    """Check that what a model says of itself can be looked up."""
    if not isinstance(data, dict) or not isinstance(data.get("machine", {}), dict):
        raise ModelError("what it says about its machine is no table")
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


def _table(learned: Mapping[str, Linear]) -> dict[str, dict[str, float]]:
    return {name: _linear_to_json(linear) for name, linear in learned.items()}


def _read_table(data: Mapping[str, Mapping[str, float]]) -> dict[str, Linear]:
    return {name: _linear_from_json(found, _known(name)) for name, found in data.items()}


def _linear_to_json(linear: Linear) -> dict[str, float]:
    return dict(zip(linear.columns, linear.coefficients, strict=True))


def _linear_from_json(data: Mapping[str, float], strategy: Strategy | None = None) -> Linear:
    known = set(MOVE_COLUMNS if strategy is None else ALL_COLUMNS)
    unknown = set(data) - known
    if unknown:
        raise ModelError(f"unknown column {sorted(unknown)[0]!r}; known are {sorted(known)}")
    return Linear(tuple(data), tuple(_number(value) for value in data.values()))


def _power(data: Mapping[str, Any]) -> Power:
    power = read_power(data)
    if power.auto is None:
        return power
    return replace(power, auto={aim: _auto_by_graph(kinds) for aim, kinds in power.auto.items()})


def _auto_by_graph(data: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {kind: _auto(data[kind]) for kind in AUTO_GRAPHS}


def _auto(data: Mapping[str, Any]) -> dict[str, Any]:
    """Check which selector was the fastest in training."""
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
    """Check what seconds or speeds must be: finite, not negative."""
    number = float(value)
    if not math.isfinite(number) or number < 0 or (above_zero and number == 0):
        raise ModelError(f"{number} is no speed or coefficient of a speed model")
    return number
