"""Examines Python, this package and its requirements, threads and memory."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import hetero_bfs
from hetero_bfs.doctor.examination import Finding
from hetero_bfs.errors import HeteroBFSError
from hetero_bfs.support import environment
from hetero_bfs.support.cores import bound_cores, cpu_quota

PYTHON, MACHINE = "Python", "machine"
_SUPPORTED = (3, 11), (3, 14)
"""The first version that works, and the first later one that does not."""

_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^]]*\])?\s*(?:>=\s*([\d.]+))?")


def check_python() -> Iterator[Finding]:
    (low, high), version = _SUPPORTED, sys.version_info[:2]
    text = f"{platform.python_version()}, {sys.executable}"
    if low <= version < high:
        yield Finding(PYTHON, "Python", "ok", text)
    else:
        remedy = "apt-get install python3.13 python3.13-venv, then make the environment anew"
        yield Finding(PYTHON, "Python", "failed", f"{text}; 3.11 to 3.13 work", remedy, True)
    yield from _packages()
    yield _this_package()


def _this_package() -> Finding:
    from hetero_bfs.devices.machine import source_commit

    place = Path(hetero_bfs.__file__).parent
    commit = source_commit()
    of = "" if commit is None else f", commit {commit}"
    return Finding(PYTHON, "hetero_bfs", "ok", f"{hetero_bfs.__version__}{of}, {place}")


def _packages() -> Iterator[Finding]:
    try:
        required = metadata.requires("hetero_bfs") or []
    except metadata.PackageNotFoundError:
        text = "not installed, so nothing says which packages are needed"
        yield Finding(PYTHON, "packages", "missing", text, "pip install .")
        return
    good = []
    for line in required:
        name, least = requirement(line)
        if name is None:
            continue
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(PYTHON, name, "missing", "not installed", _install(line), True)
            continue
        if numbers(found) < numbers(least):
            text = f"{found} is too old; {least} is needed"
            yield Finding(PYTHON, name, "failed", text, _install(line), True)
        else:
            good.append(f"{name} {found}")
    yield Finding(PYTHON, "packages", "ok", ", ".join(good))


def requirement(line: str) -> tuple[str | None, str]:
    """Return the name and the minimum version of a requirement; no name if it belongs to an extra.

    Only `>=` is read: this package requires minimum versions only.
    """
    match = _REQUIREMENT.match(line)
    if match is None or "extra ==" in line:
        return None, ""
    return match[1], match[2] or ""


def numbers(version: str) -> tuple[int, ...]:
    """Return a version's leading numbers, for comparison: (2, 1) for 2.1rc1."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version, maxsplit=1)[0])))


def _install(line: str) -> str:
    return f"{sys.executable} -m pip install '{line.partition(';')[0].strip()}'"


def check_machine() -> Iterator[Finding]:
    """Examine cores, memory, and environment variables that can stop all searches."""
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
    from hetero_bfs.devices.machine import cpu_name

    yield Finding(MACHINE, "CPU", "ok", cpu_name())


def _memory() -> Finding:
    import psutil

    from hetero_bfs.support.memory import format_bytes, free_bytes
    from hetero_bfs.support.memory_limits import memory_limit

    total, limit = psutil.virtual_memory().total, memory_limit()
    text = f"{format_bytes(free_bytes())} of {format_bytes(total)} are free"
    if limit is not None and limit.limit_bytes < total:
        text += f"; a control group's limit is {format_bytes(limit.limit_bytes)}"
    return Finding(MACHINE, "memory", "ok", text)
