"""The machine and its OpenCL devices: properties, and names for models and reports."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hetero_bfs.errors import BudgetError
from hetero_bfs.support.cores import usable_cores

_INT64_ATOMICS = {"cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"}


@dataclass(frozen=True)
class DeviceInfo:
    """Properties that an OpenCL device reports; sizes in bytes.

    Only `unified_memory` decides whether arrays are shared or copied. A device that shares the
    host's memory also works if this is set to False. Tests do so to run copies and streaming
    without a GPU. The reverse does not work.
    """

    index: int
    name: str
    platform: str
    type: str
    compute_units: int
    memory_bytes: int
    max_alloc_bytes: int
    local_memory_bytes: int
    unified_memory: bool
    has_double: bool
    driver: str
    version: str
    pci: str | None
    problem: str | None
    max_work_group_size: int = 256
    has_int64_atomics: bool = True

    @property
    def may_run_in_one_launch(self) -> bool:
        """Whether a launch may run many steps if its work-groups make progress together (grid.cl).

        Barriers of these launches are inside conditions, and need 64-bit atomics.
        """
        return self.type == "GPU" and self.has_int64_atomics

    def group_size(self, wanted: int) -> int:
        """Return the work-items of a work-group: a power of two, at most `wanted`."""
        most = 1 << (self.max_work_group_size.bit_length() - 1)
        return min(wanted, most)

    def check_room(self, what: str, largest: int, needed: int) -> None:
        """Raise `BudgetError` unless `needed` bytes in total fit, and `largest` in one array.

        `what` begins the message, such as "programs need".
        """
        if largest > self.max_alloc_bytes or needed > self.memory_bytes:
            raise BudgetError(
                f"{what} {needed} bytes on {self.name}, up to {largest} in one piece; "
                f"{self.memory_bytes} bytes may be used, in pieces of {self.max_alloc_bytes}"
            )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def describe(index: int, device: Any) -> DeviceInfo:
    """Read a device's properties from its driver, and decide whether it can be used."""
    import pyopencl as cl

    kinds = cl.device_type
    named = {"GPU": kinds.GPU, "ACCELERATOR": kinds.ACCELERATOR, "CPU": kinds.CPU}
    kind = next((name for name, bit in named.items() if device.type & bit), "CUSTOM")
    problem = None
    if not device.available or not device.compiler_available:
        problem = "it is not available or has no compiler"
    return DeviceInfo(
        index=index,
        name=device.name.strip(),
        platform=device.platform.name.strip(),
        type=kind,
        compute_units=int(device.max_compute_units),
        memory_bytes=int(device.global_mem_size),
        max_alloc_bytes=int(device.max_mem_alloc_size),
        local_memory_bytes=int(device.local_mem_size),
        unified_memory=bool(device.host_unified_memory),
        has_double="cl_khr_fp64" in device.extensions,
        driver=device.driver_version.strip(),
        version=device.version.strip(),
        pci=_pci_address(device),
        problem=problem,
        max_work_group_size=int(device.max_work_group_size),
        has_int64_atomics=set(device.extensions.split()) >= _INT64_ATOMICS,
    )


def _pci_address(device: Any) -> str | None:
    try:
        domain = getattr(device, "pci_domain_id_nv", 0)
        return f"{domain:04x}:{device.pci_bus_id_nv:02x}:{device.pci_slot_id_nv:02x}.0"
    except Exception:  # only NVIDIA has the attribute; other drivers raise various errors
        return None


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
    return f"{slug(cpu_name())}-{usable_cores()}-cores"


def device_slug(device: DeviceInfo | None) -> str | None:
    return None if device is None else slug(device.name)


def machine_slug(device: DeviceInfo | None) -> str:
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
