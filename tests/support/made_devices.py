"""OpenCL devices made by hand."""

from __future__ import annotations

from hetero_bfs.devices.machine import DeviceInfo

CPU = DeviceInfo(
    index=0,
    name="pthread-skylake",
    platform="Portable Computing Language",
    type="CPU",
    compute_units=64,
    memory_bytes=2**34,
    max_alloc_bytes=2**31,
    local_memory_bytes=2**19,
    unified_memory=True,
    has_double=True,
    driver="3.1",
    version="OpenCL 3.0",
    pci=None,
    problem=None,
)
