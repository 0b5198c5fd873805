"""Whether a device has room for what is to be on it."""

from __future__ import annotations

from hetero_bfs.devices.opencl.driver import DeviceInfo
from hetero_bfs.errors import BudgetError


def check_room(info: DeviceInfo, what: str, largest: int, needed: int) -> None:
    """Raise `BudgetError` if a device lacks room for so many bytes, or for the largest array.

    `what` begins the message, such as "programs need".
    """
    if largest > info.max_alloc_bytes or needed > info.memory_bytes:
        raise BudgetError(
            f"{what} {needed} bytes on {info.name}, up to {largest} in one piece; "
            f"{info.memory_bytes} bytes may be used, in pieces of {info.max_alloc_bytes}"
        )
