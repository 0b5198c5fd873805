"""Examines this machine: Python and packages, threads, memory, kept files, and the speed model."""

from __future__ import annotations

import os
import platform
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hetero_bfs
from hetero_bfs.devices.machine import DeviceInfo, cpu_name, machine_slug, source_commit
from hetero_bfs.doctor import Finding
from hetero_bfs.errors import HeteroBFSError, ModelError
from hetero_bfs.support import environment, private_cache
from hetero_bfs.support.environment import bound_cores, cpu_quota, memory_limit

if TYPE_CHECKING:
    from hetero_bfs.scheduling.speed_model import SpeedModel

PYTHON, MACHINE = "Python", "machine"
_SUPPORTED = (3, 11), (3, 15)
"""The first version that works, and the first later one that does not."""


def check_python() -> Iterator[Finding]:
    (low, high), version = _SUPPORTED, sys.version_info[:2]
    text = f"{platform.python_version()}, {sys.executable}"
    if low <= version < high:
        yield Finding(PYTHON, "Python", "ok", text)
    else:
        remedy = "apt-get install python3.13 python3.13-venv, then make the environment anew"
        yield Finding(PYTHON, "Python", "failed", f"{text}; 3.11 to 3.14 work", remedy, True)
    yield from _packages()
    place = Path(hetero_bfs.__file__).parent
    commit = source_commit()
    of = "" if commit is None else f", commit {commit}"
    yield Finding(PYTHON, "hetero_bfs", "ok", f"{hetero_bfs.__version__}{of}, {place}")


def _packages() -> Iterator[Finding]:
    try:
        from packaging.requirements import Requirement
    except ImportError:
        remedy = f"{sys.executable} -m pip install packaging"
        yield Finding(PYTHON, "packaging", "missing", "not installed", remedy, True)
        return
    try:
        required = metadata.requires("hetero_bfs") or []
    except metadata.PackageNotFoundError:
        text = "not installed, so nothing says which packages are needed"
        yield Finding(PYTHON, "packages", "missing", text, "pip install .")
        return
    good = []
    for wanted in map(Requirement, required):
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        remedy = f"{sys.executable} -m pip install '{wanted.name}{wanted.specifier}'"
        try:
            found = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            yield Finding(PYTHON, wanted.name, "missing", "not installed", remedy, True)
            continue
        if wanted.specifier.contains(found, prereleases=True):
            good.append(f"{wanted.name} {found}")
        else:
            text = f"{found} does not fit; {wanted.specifier} is needed"
            yield Finding(PYTHON, wanted.name, "failed", text, remedy, True)
    yield Finding(PYTHON, "packages", "ok", ", ".join(good))


def check_machine() -> Iterator[Finding]:
    text = f"{bound_cores()} of {os.cpu_count()} may be used by this process"
    if (quota := cpu_quota()) is not None:
        text += f"; a control group's quota is the time of {quota:.3g}"
    yield Finding(MACHINE, "cores", "ok", text)
    try:
        environment.check()
    except HeteroBFSError as error:
        yield Finding(MACHINE, "environment", "failed", str(error), "", True)
    except ImportError as error:
        yield Finding(MACHINE, "environment", "failed", environment.cannot_load(error))
    yield _memory()
    yield Finding(MACHINE, "CPU", "ok", cpu_name())


def _memory() -> Finding:
    import psutil

    from hetero_bfs.support.memory import format_bytes, free_bytes

    total, limit = psutil.virtual_memory().total, memory_limit()
    text = f"{format_bytes(free_bytes())} of {format_bytes(total)} are free"
    if limit is not None and limit.limit_bytes < total:
        text += f"; a control group's limit is {format_bytes(limit.limit_bytes)}"
    return Finding(MACHINE, "memory", "ok", text)


CACHES = "caches"


def check_kept_files() -> Iterator[Finding]:
    with warnings.catch_warnings(record=True) as caught:  # the reason comes as a warning
        warnings.simplefilter("always")
        folder = private_cache.folder()
    answer = [str(warning.message) for warning in caught]
    if folder is not None:
        yield Finding(CACHES, "compiled code", "ok", f"{folder}, {_content(folder)}, private")
        return
    text = answer[0] if answer else "compiled code is not kept, so every run compiles"
    remedy = "export NUMBA_CACHE_DIR to a folder of yours"
    yield Finding(CACHES, "compiled code", "failed", text.partition("; set ")[0], remedy)


def _content(folder: Path) -> str:
    from hetero_bfs.support.memory import format_bytes

    sizes = []
    for file in folder.rglob("*"):
        with suppress(OSError):  # removed meanwhile
            sizes += [file.stat().st_size] if file.is_file() else []
    return f"{format_bytes(sum(sizes))} in {len(sizes)} files"


MODELS, METERS = "speed model", "energy meters"


def check_models(default: dict[str, Any] | None) -> Iterator[Finding]:
    """`default` has the default device's fields of `DeviceInfo`."""
    from hetero_bfs.scheduling.model_files import user_models_folder
    from hetero_bfs.scheduling.named_selectors import model_of
    from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND

    info = None if default is None else DeviceInfo(**default)
    try:
        model = model_of(info)
    except ModelError as error:
        yield Finding(MODELS, "model", "failed", str(error), TRAIN_COMMAND, True)
        return
    yield _missing(info) if model is None else _fit(model, info)
    folder = user_models_folder()
    count = len(list(folder.glob("*.json"))) if folder.is_dir() else 0
    yield Finding(MODELS, "your models", "ok", f"{folder}, {count} files")


def _missing(info: DeviceInfo | None) -> Finding:
    from hetero_bfs.scheduling.first_model import first_model
    from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND

    first = first_model(info, measures=False)
    instead = "engines that correct their model measure one, once, in a few seconds"
    if first is not None:
        instead = f"searches begin with a first measurement of {first.about.get('date')}"
    text = f"none of this machine ({machine_slug(info)}); {instead}"
    return Finding(MODELS, "model", "missing", text, f"{TRAIN_COMMAND} --quick")


def _fit(model: SpeedModel, info: DeviceInfo | None) -> Finding:
    from hetero_bfs.scheduling.speed_model import TRAIN_COMMAND
    from hetero_bfs.scheduling.strategies import available

    lacking = model.lacking(available(info is not None))
    if lacking:
        text = f"{model.name} does not fit: it lacks {', '.join(lacking)}"
        return Finding(MODELS, "model", "failed", text, TRAIN_COMMAND, True)
    text = f"{model.origin_text}; it is used"
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

    info = None if default is None else DeviceInfo(**default)
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
