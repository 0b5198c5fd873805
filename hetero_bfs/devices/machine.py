"""The machine: names for models and reports."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.support.cores import usable_cores

NO_DEVICE = "no-device"
"""Replaces the device's name in `machine_slug` if there is no device."""


@cache
def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model", "Hardware")):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def slug(text: str) -> str:
    """Convert a name to lower-case words joined by hyphens, for a file name."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm|c)\)", "", text.lower())).strip("-")


def cpu_slug() -> str:
    """Return the CPU's name and number of cores, for file names."""
    return f"{slug(cpu_name())}-{usable_cores()}-cores"


def device_slug(device: DeviceInfo | None) -> str | None:
    return None if device is None else slug(device.name)


def machine_slug(device: DeviceInfo | None) -> str:
    """Return the name of CPU and device in names of model files: <cpu>__<device>."""
    return f"{cpu_slug()}__{device_slug(device) or NO_DEVICE}"


def describe_machine(device: DeviceInfo | None) -> dict[str, Any]:
    """Return hardware and versions, to be stored with results."""
    import numba
    import numpy
    import psutil

    return {
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "threads": numba.get_num_threads(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "device": None if device is None else device.to_dict(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "commit": source_commit(),
    }


@cache
def source_commit() -> str | None:
    """Return the checkout's commit; without a checkout $HETERO_BFS_COMMIT, or None."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("HETERO_BFS_COMMIT")
    return done.stdout.strip()
