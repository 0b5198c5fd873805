"""Checks whether arrays fit on a device."""

from __future__ import annotations

from hetero_bfs.devices.opencl.device_info import DeviceInfo
from hetero_bfs.errors import BudgetError


def check_room(info: DeviceInfo, what: str, largest: int, needed: int) -> None:
    """Raise `BudgetError` if the bytes in all, or those of the largest array, do not fit on a
    device.

    `what` begins the message, such as "programs need".
    """
    if largest > info.max_alloc_bytes or needed > info.memory_bytes:
        raise BudgetError(
            f"{what} {needed} bytes on {info.name}, up to {largest} in one piece; "
            f"{info.memory_bytes} bytes may be used, in pieces of {info.max_alloc_bytes}"
        )
