"""Adds watts to this machine's model: `hetero-bfs train --power-only`."""

from __future__ import annotations

from pathlib import Path

from hetero_bfs.devices.machine import machine_slug
from hetero_bfs.errors import ModelError
from hetero_bfs.options import EngineOptions
from hetero_bfs.scheduling.model_files import user_models_folder
from hetero_bfs.scheduling.named_selectors import model_of
from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND
from hetero_bfs.training.energy import add_watts
from hetero_bfs.training.train import training_device


def run_power_training(
    quick: bool = False,
    engine: EngineOptions | None = None,
    power_log: Path | None = None,
) -> int:
    """Add the watts of this machine's strategies to its model; return the exit status.

    The parameters are as for `run_training`. Raises `ModelError` if there is no model of this
    machine, and `MeterError` if no watts can be metered.
    """
    info = training_device(engine)
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
