"""Examines this machine's speed model and its meters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hetero_bfs.doctor.examination import Finding

if TYPE_CHECKING:
    from hetero_bfs.devices.opencl.device_info import DeviceInfo
    from hetero_bfs.scheduling.speed_model import SpeedModel

MODELS, METERS = "speed model", "energy meters"


def check_models(default: dict[str, Any] | None) -> Iterator[Finding]:
    """`default` has the default device's fields of `DeviceInfo`."""
    from hetero_bfs.errors import ModelError
    from hetero_bfs.scheduling.model_store import user_models_folder
    from hetero_bfs.scheduling.named_selectors import model_of
    from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND

    info = _device(default)
    try:
        model = model_of(info)
    except ModelError as error:
        yield Finding(MODELS, "model", "failed", str(error), TRAIN_COMMAND, True)
        return
    yield _missing(info) if model is None else _fit(model, info)
    folder = user_models_folder()
    count = len(list(folder.glob("*.json"))) if folder.is_dir() else 0
    yield Finding(MODELS, "your models", "ok", f"{folder}, {count} files")


def _device(fields: dict[str, Any] | None) -> DeviceInfo | None:
    from hetero_bfs.devices.opencl.device_info import DeviceInfo

    return None if fields is None else DeviceInfo(**fields)


def _missing(info: DeviceInfo | None) -> Finding:
    from hetero_bfs.devices.machine import machine_slug
    from hetero_bfs.scheduling.model_store import default_model
    from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND

    other = default_model(None if info is None else info.type)
    instead = "none is used" if other is None else f"average speeds of {other.name} are used"
    text = f"none of this machine ({machine_slug(info)}); {instead}"
    return Finding(MODELS, "model", "missing", text, f"{TRAIN_COMMAND} --quick")


def _fit(model: SpeedModel, info: DeviceInfo | None) -> Finding:
    from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND
    from hetero_bfs.scheduling.strategies import available

    lacking = model.lacking(available(info is not None))
    if lacking:
        text = f"{model.name} does not fit: it lacks {', '.join(lacking)}"
        return Finding(MODELS, "model", "failed", text, TRAIN_COMMAND, True)
    watts = "with watts" if model.power is not None else "without watts"
    text = f"{model.origin_text}, {watts}; it is used"
    return Finding(MODELS, "model", "ok", f"{text}{_other_driver(model, info)}")


def _other_driver(model: SpeedModel, info: DeviceInfo | None) -> str:
    machine = model.about.get("machine")
    trained = (machine.get("device") or {}) if isinstance(machine, dict) else {}
    before = trained.get("driver") if isinstance(trained, dict) else None
    if info is None or before in (None, info.driver):
        return ""
    return f"; it was trained with driver {before}, now it is {info.driver}"


def check_meters(default: dict[str, Any] | None) -> Iterator[Finding]:
    from hetero_bfs.energy import find_meters

    info = _device(default)
    name, pci = (None, None) if info is None or info.type == "CPU" else (info.name, info.pci)
    meters, unmeasured = find_meters(name, pci)
    for meter in meters:
        yield Finding(METERS, meter.name, "ok", f"measures the {meter.domain}")
    for lack in unmeasured:
        yield _unmeasured(lack.name, lack.reason)


def _unmeasured(name: str, reason: str) -> Finding:
    kind, _, text = reason.partition(": ")
    if kind == "permission":
        command = re.search(r"`(.+?)`", text)
        return Finding(METERS, name, "failed", text, command[1] if command else "")
    if not text:  # there is nothing to measure
        return Finding(METERS, name, "ok", reason)
    remedy = "log a meter at the wall: --power-log FILE" if name == "whole system" else ""
    return Finding(METERS, name, "missing", text, remedy)
