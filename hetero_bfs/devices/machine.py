"""The machine and its OpenCL devices: properties, tunings, and names for models and reports.

A tuning has the settings for compiling and launching a device's kernels. `hetero-bfs train`
measures them (training/tune.py), and the speed model holds them. A device without a model gets
defaults of its type.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hetero_bfs.built import COMMIT, VERSION
from hetero_bfs.errors import BudgetError, ModelError
from hetero_bfs.support.environment import usable_cores
from hetero_bfs.support.files import printable

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


DEVICELESS = "no-device"
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
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm|c)\)", "", text.lower())).strip("-")


def cpu_slug() -> str:
    return f"{slug(cpu_name())}-{usable_cores()}-cores"


def device_slug(device: DeviceInfo | None) -> str | None:
    return None if device is None else slug(device.name)


def machine_slug(device: DeviceInfo | None) -> str:
    return f"{cpu_slug()}__{device_slug(device) or DEVICELESS}"


_PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pyopencl")


def record_of_run(
    device: DeviceInfo | None, seeds: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return the record of a run in every command's JSON: program, time and machine.

    `seeds` are the seeds of everything random in the run, by name. The time is this call's.
    """
    now = datetime.datetime.now(datetime.UTC)
    return {
        "version": VERSION,
        "command": command_line(),
        "time": now.isoformat(timespec="seconds"),
        "host": platform.node(),
        "seeds": dict(seeds or {}),
        "machine": describe_machine(device),
    }


def describe_machine(device: DeviceInfo | None) -> dict[str, Any]:
    import psutil

    numba, mpi = sys.modules.get("numba"), sys.modules.get("mpi4py.MPI")
    library = None if mpi is None else mpi.Get_library_version().split("\n")[0].strip("\0").strip()
    return {
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "threads": None if numba is None else numba.get_num_threads(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "device": None if device is None else device.to_dict(),
        "python": platform.python_version(),
        **{name: version_of(name) for name in _PACKAGES},
        "mpi4py": None if mpi is None else version_of("mpi4py"),
        "mpi": library,
        "commit": source_commit(),
    }


def version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def command_line() -> str:
    """Return the running command; absolute paths are shortened to the file's name."""
    arguments = (Path(a).name if a.startswith("/") else a for a in sys.argv[1:])
    return " ".join(["hetero-bfs", *map(printable, arguments)])


@cache
def source_commit() -> str | None:
    """Return the commit of this code, None if unknown.

    A checkout is asked for it. Elsewhere $HETERO_BFS_COMMIT names it, or the file that
    setuptools-scm wrote when the package was built.
    """
    top = Path(__file__).resolve().parents[2]
    if (top / ".git").exists():  # site-packages may lie in another project's checkout
        command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        try:
            done = subprocess.run(
                command, cwd=top, capture_output=True, text=True, timeout=10, check=True
            )
        except (OSError, subprocess.SubprocessError):
            pass
        else:
            return done.stdout.strip()
    return os.environ.get("HETERO_BFS_COMMIT") or COMMIT


_MOST_TILE_EDGES = 0xFFFF  # PAST_TILE in top_down.cl
_MOST_SINGLE_GROUP_EDGES = 2047  # COOPERATIVE_EDGE_BITS hold a quarter of its square
_MOST_COOPERATIVE_GROUPS = 256
_STATE_BYTES = 4096  # state, policy and other small structs
_OFFSET_BYTES = 8  # of an offset into more than 2^32 edges
_LEAST_GROUP = 32
_BOUNDS = {
    "group_size": (_LEAST_GROUP, 1024),
    "edges_per_item": (1, None),
    "vertices_per_item": (4, 16),
    "groups_per_unit": (1, None),
    "cached_words": (1, None),
    "single_group_edges": (1, _MOST_SINGLE_GROUP_EDGES),
    "cooperative_groups": (1, _MOST_COOPERATIVE_GROUPS),
    "registers": (0, None),
}

SMALL_VERTICES = 1 << 20
"""Graphs with fewer searched vertices are small: their levels have little parallel work."""


@dataclass(frozen=True)
class Tuning:
    """Sizes of work-groups and tiles, and whether one launch may run a whole search.

    group_size : work-items per work-group, a power of two
    edges_per_item : top-down: edges of a work-group's tile per work-item
    vertices_per_item : bottom-up: vertices of a work-group's tile per work-item; 4, 8 or 16
    groups_per_unit : work-groups per compute unit; fewer if one launch runs a whole search and the
        device cannot run as many at the same time
    cached_words : words of the bitmap that BGC keeps in local memory
    single_group_edges : most edges of a frontier that a single work-group expands top-down, if one
        launch runs a whole search
    cooperative_groups : work-groups of the cooperative subset, which expands larger frontiers on
        graphs with short neighbour lists
    registers : most registers per work-item, 0 for the compiler's choice; NVIDIA only
    one_launch : whether one launch may run a whole search, if a probe shows that the device can
    small : the tuning for graphs of less than `SMALL_VERTICES` searched vertices
    """

    group_size: int = 256
    edges_per_item: int = 4
    vertices_per_item: int = 8
    groups_per_unit: int = 8
    cached_words: int = 1024
    single_group_edges: int = 512
    cooperative_groups: int = 32
    registers: int = 0
    one_launch: bool = True
    small: Tuning | None = None

    def __post_init__(self) -> None:
        # It needs NumPy, and doctor reads this module without.
        from hetero_bfs.support.checks import check_flag, check_integer, check_type

        check_flag("one_launch", self.one_launch)
        if self.small is not None:
            check_type("small", self.small, Tuning, "a Tuning or None")
        for name, bounds in _BOUNDS.items():
            object.__setattr__(self, name, check_integer(name, getattr(self, name), *bounds))
        for name in ("group_size", "vertices_per_item"):
            if getattr(self, name) & (getattr(self, name) - 1):
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a power of two")
        size = self.group_size
        if size * self.edges_per_item >= _MOST_TILE_EDGES:
            raise ValueError(
                f"group_size x edges_per_item is {size * self.edges_per_item}; "
                f"it must be below {_MOST_TILE_EDGES}"
            )

    def local_bytes(self, offset_bytes: int) -> int:
        """Return the approximate local memory of a work-group in bytes (Shared in steps.cl)."""
        size = self.group_size
        words = size * self.vertices_per_item // 32
        top_down = size * self.edges_per_item * (2 + offset_bytes)
        bottom_up = words * (16 + offset_bytes + 32 + 64) + 4 * size + 4 * self.cached_words
        cooperative = (
            2 * self.single_group_edges * (6 + 2 * offset_bytes) + 8 * self.cooperative_groups
        )
        return max(top_down, bottom_up, cooperative) + 8 * (size + size // 16) + _STATE_BYTES

    def fitting(self, info: DeviceInfo) -> Tuning:
        small = self.small and self.small.fitting(info)
        fitted = replace(self, group_size=info.group_size(self.group_size), small=small)
        while (
            fitted.group_size > _LEAST_GROUP
            and fitted.local_bytes(_OFFSET_BYTES) > info.local_memory_bytes
        ):
            fitted = replace(
                fitted,
                group_size=fitted.group_size // 2,
                cached_words=-(-fitted.cached_words // 2),
                single_group_edges=-(-fitted.single_group_edges // 2),
            )
        return fitted

    def for_graph(self, num_searched: int) -> Tuning:
        return self if self.small is None or num_searched >= SMALL_VERTICES else self.small

    def step_by_step(self) -> Tuning:
        small = None if self.small is None else self.small.step_by_step()
        return replace(self, one_launch=False, small=small)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        del data["small"]
        return data if self.small is None else {**data, "small": self.small.to_json()}


def read_tuning(data: Mapping[str, Any]) -> Tuning:
    """Read the result of `to_json`; raise `ModelError` for an unknown field or a bad value."""
    known, values = asdict(Tuning()), dict[str, Any]()
    for name, value in data.items():
        if name == "small" and isinstance(value, Mapping):
            values[name] = read_tuning(value)
            continue
        if name == "small" or name not in known or int(value) != value:
            raise ModelError(f"tuning: {name} = {value!r} is not a setting of this program")
        values[name] = type(known[name])(value)
    try:
        return Tuning(**values)
    except ValueError as error:
        raise ModelError(f"tuning: {error}") from error


def default_tuning(device_type: str) -> Tuning:
    if device_type == "GPU":
        return Tuning(vertices_per_item=16)
    return Tuning(groups_per_unit=2)
