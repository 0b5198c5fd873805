"""The first model of a machine that has none: measured once, and kept for later processes.

It takes a few seconds, most of them to import the packages that fit the model. The measurements are
a third of a second (training/first_model.py). The model is kept in the private cache, for this
host, its number of threads, this device, and the versions of its driver and of this program.

`HETERO_BFS_SELF_TEST=off`, which uses devices untested, leaves them unmeasured, too.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from importlib import import_module

from hetero_bfs.built import VERSION
from hetero_bfs.devices.cpu.host_run import most_threads
from hetero_bfs.devices.machine import DeviceInfo, machine_slug
from hetero_bfs.devices.opencl import verdicts
from hetero_bfs.errors import ModelError
from hetero_bfs.scheduling.model_files import read_model
from hetero_bfs.scheduling.schema import COLUMNS
from hetero_bfs.scheduling.speed_model import FORMAT, SpeedModel
from hetero_bfs.scheduling.strategies import STRATEGIES, available
from hetero_bfs.support import private_cache

_LOCK = "first-model.lock"

_of_this_process: dict[bytes, SpeedModel | None] = {}
_may_measure = True


def first_model(device: DeviceInfo | None, measures: bool) -> SpeedModel | None:
    """Return the first model of this host and a device; measure it if there is none and `measures`.

    None if it was not measured, or could not be. A failure is final for this process.
    """
    if verdicts.is_off():
        return None
    key = _key(device)
    if key in _of_this_process:
        return _of_this_process[key]
    model = _kept(key)
    if model is None and measures and _may_measure:
        text = f"measuring {machine_slug(device)}, which is done once, since no model knows it"
        with verdicts.waiting(text), private_cache.one_at_a_time(_LOCK):
            model = _kept(key) or _measured(device, key)
    if model is not None or measures:
        _of_this_process[key] = model
    return model


def leave_unmeasured() -> None:
    """Measure nothing in this process: others work at the same time, or it has a low priority."""
    global _may_measure
    _may_measure = False


def _kept(key: bytes) -> SpeedModel | None:
    with suppress(OSError, ModelError):
        return read_model(private_cache.read(_name(key), key).decode(), "the first model")
    return None


def _measured(device: DeviceInfo | None, key: bytes) -> SpeedModel | None:
    # A measurement needs engines, so it lies above the package that asks for it.
    measuring = import_module("hetero_bfs.training.first_model")
    with suppress(Exception):  # without one searches choose by Beamer's rule
        model: SpeedModel | None = measuring.measure_first_model(device)
        if model is not None and not model.lacking(available(device is not None)):
            private_cache.write(_name(key), key, json.dumps(model.to_json()).encode())
            return model
    return None


def _key(device: DeviceInfo | None) -> bytes:
    driver = () if device is None else (device.platform, device.driver, device.version)
    settings = most_threads(), os.environ.get("PYOPENCL_BUILD_OPTIONS", "")
    code = VERSION, FORMAT, COLUMNS, tuple(STRATEGIES)
    return repr((machine_slug(device), driver, settings, code)).encode()


def _name(key: bytes) -> str:
    return f"first-model-{hashlib.sha256(key).hexdigest()[:32]}.bin"
