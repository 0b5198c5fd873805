"""Devices that pose as lesser ones, and are held to it.

HETERO_BFS_POSE=no-doubles,groups-of-64 lets all devices of a test run pose (conftest.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hetero_bfs.devices.machine import DeviceInfo
from hetero_bfs.devices.opencl import driver
from hetero_bfs.devices.opencl.opencl_device import BoundKernel, OpenCLDevice
from hetero_bfs.errors import DeviceError

VARIABLE = "HETERO_BFS_POSE"
POSES: dict[str, dict[str, Any]] = {
    "no-int64-atomics": {"has_int64_atomics": False},
    "no-doubles": {"has_double": False},
    "local-memory-16k": {"local_memory_bytes": 1 << 14},
    "groups-of-64": {"max_work_group_size": 64},
    "small-allocations": {"max_alloc_bytes": 1 << 20},
    "no-unified-memory": {"unified_memory": False},
}


def pose(info: DeviceInfo, names: Sequence[str]) -> DeviceInfo:
    """Return what a device says of itself if it poses."""
    for name in names:
        lesser = POSES[name]
        if "max_alloc_bytes" in lesser or "local_memory_bytes" in lesser:
            lesser = {key: min(value, getattr(info, key)) for key, value in lesser.items()}
        info = replace(info, **lesser)
    return info


def hold(patch: pytest.MonkeyPatch) -> None:
    """Hold all devices to what they say: a test fails if a launch or a buffer is beyond it."""
    launch, bind, buffer = BoundKernel.launch, OpenCLDevice.bind, OpenCLDevice.buffer

    def held_launch(self: Any, global_size: int, group_size: int, *rest: Any, **more: Any) -> Any:
        most = self._device.info.max_work_group_size
        assert group_size <= most, f"a work-group of {group_size} on a device of {most}"
        return launch(self, global_size, group_size, *rest, **more)

    def held_bind(self: Any, program: Any, name: str, *arguments: Any) -> Any:
        bound, most = bind(self, program, name, *arguments), self.info.local_memory_bytes
        asked = self._cl.kernel_work_group_info.LOCAL_MEM_SIZE
        used = bound._kernel.get_work_group_info(asked, self._device)
        assert used <= most, f"{name} needs {used} bytes of local memory, there are {most}"
        return bound

    def held_buffer(self: Any, size: int, dtype: Any) -> Any:
        made = buffer(self, size, dtype)
        if made.size > self.info.max_alloc_bytes:
            raise DeviceError(f"a buffer of {made.size} bytes is too large")
        return made

    patch.setattr(BoundKernel, "launch", held_launch)
    patch.setattr(OpenCLDevice, "bind", held_bind)
    patch.setattr(OpenCLDevice, "buffer", held_buffer)


def pose_as_asked() -> None:
    """Let all devices of this process pose as HETERO_BFS_POSE says."""
    names = [name for name in os.environ.get(VARIABLE, "").split(",") if name]
    if names:
        describe, patch = driver.describe, pytest.MonkeyPatch()
        hold(patch)
        patch.setattr(driver, "describe", lambda *device: pose(describe(*device), names))
