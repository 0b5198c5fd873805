"""Finds speed models: first in the folder of `hetero-bfs train`, then among those shipped."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from hetero_bfs.devices.machine import NO_DEVICE
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_format import read_model
from hetero_bfs.scheduling.speed_model import SpeedModel

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
    wanted = f"{host}__{NO_DEVICE if device is None else device}"
    files = _all_files()
    if wanted in files:
        return _read_file(files[wanted])
    if device is not None:
        return None
    return _newest(host, _own_files()) or _newest(host, _shipped_files())


def named_model(name: str) -> SpeedModel:
    """Return a model by its name; the user's own models come before shipped ones.

    Raises `ModelError` if no model has that name.
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


def shipped_models() -> Iterator[SpeedModel]:
    yield from map(_read_file, _shipped_files().values())


def _newest(host: str, files: Mapping[str, Traversable]) -> SpeedModel | None:
    """Return a host's newest usable model; raise `ModelError` if none of its models is usable."""
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


def _all_files() -> dict[str, Traversable]:
    """Return the files of all models by name; the user's own replace shipped ones."""
    return _shipped_files() | _own_files()


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
