"""What an OpenCL device says of itself, and whether it can be used."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

REQUIRED_EXTENSION = "cl_khr_int64_base_atomics"

POCL = "Portable Computing Language"


@dataclass(frozen=True)
class DeviceInfo:
    """Properties that one OpenCL device reports; sizes in bytes.

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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def describe(index: int, device: Any) -> DeviceInfo:
    """Ask a driver for the properties of a device, and tell whether it can be used."""
    import pyopencl as cl

    kinds = cl.device_type
    named = {"GPU": kinds.GPU, "ACCELERATOR": kinds.ACCELERATOR, "CPU": kinds.CPU}
    kind = next((name for name, bit in named.items() if device.type & bit), "CUSTOM")
    problem = None
    if REQUIRED_EXTENSION not in device.extensions:
        problem = f"it lacks {REQUIRED_EXTENSION} (64-bit atomics)"
    elif not device.available or not device.compiler_available:
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
    )


def _pci_address(device: Any) -> str | None:
    try:
        domain = getattr(device, "pci_domain_id_nv", 0)
        return f"{domain:04x}:{device.pci_bus_id_nv:02x}:{device.pci_slot_id_nv:02x}.0"
    except Exception:  # only NVIDIA has the attribute; other drivers raise various errors
        return None
